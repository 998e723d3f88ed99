"""Files from strangers: no code from them runs, and time and memory are limited."""

import base64
import io
import json
import os
import pickle
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from algorithms.policies import load_policy
from kuhn_bridge import BridgeError
from tests.models import (
    graph,
    load_model,
    loop,
    members,
    played,
    sound_zip,
    with_data,
    with_members,
    with_pickle,
    with_tensors,
    zipped,
)

WEIGHT = "mlp_extractor.policy_net.0.weight"
BIAS = "mlp_extractor.policy_net.0.bias"


@contextmanager
def limited(gigabytes: float) -> Iterator[None]:
    """Fail, instead of using up the machine's memory, if the block takes that much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def refused(path: Path, *, match: str, gigabytes: float = 1.0) -> None:
    """One line with the file's name, quickly and in little memory."""
    started = time.process_time()
    with limited(gigabytes), pytest.raises(BridgeError, match=match) as caught:
        load_policy(path)
    assert time.process_time() - started < 10
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def sound(path: Path) -> np.ndarray:
    """What the sound model plays."""
    return played(with_members(path))


class Calls:
    """An object whose pickle asks for a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def test_pickles_in_the_description_are_never_opened(tmp_path: Path) -> None:
    data, mark = json.loads(members(sound_zip())["data"]), tmp_path / "ran"
    touch = base64.b64encode(pickle.dumps(Calls(os.system, f"touch {mark}"))).decode()
    keys = ("policy_class", "policy_kwargs", "observation_space", "action_space")
    path = with_data(
        tmp_path / "pickles.zip", **{key: data[key] | {":serialized:": touch} for key in keys}
    )
    assert (played(path) == sound(tmp_path / "sound.zip")).all()
    assert not mark.exists()
    with pytest.raises(BridgeError, match="SB3 cannot load it"):
        load_model(path, trust=True)
    assert mark.exists()  # so the pickles do run code


@pytest.mark.parametrize(
    "key", ["policy_class", "policy_kwargs", "observation_space", "action_space"]
)
@pytest.mark.parametrize("value", [None, 3, [], "x", {"_shape": 3}, {"_shape": [11], "n": "x"}])
def test_a_changed_description_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    path = with_data(tmp_path / "changed.zip", **{key: value})
    if key == "policy_kwargs":  # empty: SB3's defaults
        assert (played(path) == sound(tmp_path / "sound.zip")).all()
    else:
        refused(path, match="if you trust the file")


@pytest.mark.parametrize("game", [7, ["kuhn"], "x" * 2_000])
def test_an_invalid_name_of_a_game_is_refused(tmp_path: Path, game: Any) -> None:
    refused(with_data(tmp_path / "named.zip", game=game), match="is not the name of a game")


@pytest.mark.parametrize(
    "name",
    [
        "<class 'mine.ReLU'>",
        "ReLU",
        "<class 'torch.nn.modules.linear.Linear'>",
        "<class 'torch.nn.modules.activation.MultiheadAttention'>",
        7,
        None,
    ],
)
def test_only_activations_on_the_list_are_built(tmp_path: Path, name: Any) -> None:
    path = with_data(tmp_path / "named.zip", policy_kwargs={"activation_fn": name})
    refused(path, match="the activation .* if you trust the file")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" + b"{}," * 5_000_000 + b"{}]", "more than .* maps and lists"),
        (b"[" * 90_000, "not a complete SB3 model"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "not a complete SB3 model"),
        (b" " * (17 * 2**20), "more than 16,777,216 bytes"),
        (b"[]", "not a map"),
        (b"\xff\xfe", "not a complete SB3 model"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_is_limited_before_it_is_parsed(tmp_path: Path, text: bytes, why: str) -> None:
    refused(with_members(tmp_path / "json.zip", data=text), match=why, gigabytes=0.5)


@cache
def bomb() -> bytes:
    """400 MiB of zeros, deflated."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    parts = [packer.compress(bytes(2**20)) for _ in range(400)]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("claimed", [400 * 2**20, 100])
@pytest.mark.parametrize("member", ["data", "policy.pth"])
def test_what_unpacks_to_gigabytes_is_not_unpacked(
    tmp_path: Path, member: str, claimed: int
) -> None:
    """Whether the directory claims the true size or a small one."""
    path = tmp_path / "bomb.zip"
    path.write_bytes(zipped(members(sound_zip()) | {member: b"!" * len(bomb())}))
    whole = bytearray(path.read_bytes())
    start = whole.index(b"!" * 64)
    whole[start : start + len(bomb())] = bomb()
    local = whole.rindex(member.encode(), 0, start) - 30
    central = whole.rindex(member.encode()) - 46
    struct.pack_into("<H", whole, local + 8, zipfile.ZIP_DEFLATED)
    struct.pack_into("<H", whole, central + 10, zipfile.ZIP_DEFLATED)
    struct.pack_into("<I", whole, central + 24, claimed)
    path.write_bytes(whole)
    refused(path, match="unpacks to more than|not a complete SB3 model", gigabytes=0.2)


def test_what_unpacks_to_gigabytes_inside_policy_pth_is_not_unpacked(tmp_path: Path) -> None:
    inner = members(members(sound_zip())["policy.pth"])
    record = next(name for name in inner if name.endswith("data/0"))
    with zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in inner.items():
            packed.writestr(name, data)
        with packed.open(record + "0", "w", force_zip64=True) as large:
            for _ in range(260):
                large.write(bytes(2**20))
    path = with_members(tmp_path / "deep.zip", policy=made.getvalue())
    refused(path, match="unpacks to more than 268,435,456 bytes", gigabytes=0.2)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_whose_output_cannot_be_limited_is_refused(
    tmp_path: Path, compression: int
) -> None:
    path = tmp_path / "other.zip"
    path.write_bytes(zipped(members(sound_zip()), compression))
    refused(path, match="compressed by a method")


def test_a_deflated_model_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "deflated.zip"
    path.write_bytes(zipped(members(sound_zip()), zipfile.ZIP_DEFLATED))
    assert (played(path) == sound(tmp_path / "sound.zip")).all()


@pytest.mark.parametrize("member", ["model.zip", "policy.pth"])
@pytest.mark.parametrize(
    ("entries", "extra"),
    [(1_000_000, b""), (40, struct.pack("<HH", 0x9999, 0) * 16_383)],
    ids=["a million entries", "entries of 64 KiB"],
)
def test_a_long_directory_is_not_read(
    tmp_path: Path, member: str, entries: int, extra: bytes
) -> None:
    head = struct.pack("<4s24xHHH12xc", b"PK\x01\x02", 1, len(extra), 0, b"a")
    directory = (head + extra) * entries
    count = min(entries, 65535)
    end = struct.pack("<4s4x2H2LH", b"PK\x05\x06", count, count, len(directory), 0, 0)
    path = tmp_path / "long.zip"
    path.write_bytes(directory + end)
    if member == "policy.pth":  # deflated it takes a thousandth
        content = members(sound_zip()) | {member: directory + end}
        path.write_bytes(zipped(content, zipfile.ZIP_DEFLATED))
    refused(path, match="its directory has more than 262,144 bytes", gigabytes=0.5)


PICKLES = {
    "bytearray of 100 GB": pickle.dumps({"w": Calls(bytearray, 10**11)}, 2),
    "tensor of 100 GB": b"\x80\x02ctorch\nTensor\n\x8a\x05\x00\xe8\x76\x48\x17\x85R.",
    "eval": pickle.dumps({"w": Calls(eval, "1")}, 2),
    "complex storage": b"\x80\x02ctorch\nComplexFloatStorage\n.",
    "integer storage": b"\x80\x02ctorch\nLongStorage\n.",
    "a function of this project": b"\x80\x02calgorithms.support.files\nwrite_text\n.",
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_may_name_dictionaries_and_real_tensors_only(tmp_path: Path, name: str) -> None:
    path = with_pickle(tmp_path / "pickle.zip", PICKLES[name])
    refused(path, match="not only tensors.* if you trust the file", gigabytes=0.5)


@pytest.mark.parametrize("protocol", [*range(6), "INST"])
def test_the_calls_that_a_pickle_asks_for_are_not_made(tmp_path: Path, protocol: Any) -> None:
    mark = tmp_path / "ran"
    pickled = f"(S'touch {mark}'\nios\nsystem\n.".encode()
    if protocol != "INST":
        pickled = pickle.dumps(Calls(os.system, f"touch {mark}"), protocol)
    refused(with_pickle(tmp_path / "call.zip", pickled), match="call.zip")
    assert not mark.exists()
    pickle.loads(pickled)
    assert mark.exists()  # so the pickle does run code


def test_the_name_of_the_pickle_in_other_letters_is_no_way_around(tmp_path: Path) -> None:
    inner = members(members(sound_zip())["policy.pth"])
    changed = {n.replace("data.pkl", "DATA.PKL"): data for n, data in inner.items()}
    name = next(name for name in changed if name.endswith("DATA.PKL"))
    content = zipped(changed | {name: PICKLES["bytearray of 100 GB"]})
    path = with_members(tmp_path / "letters.zip", policy=content)
    refused(path, match="not only tensors", gigabytes=0.5)


def test_torch_reads_the_records_that_were_checked(tmp_path: Path) -> None:
    """Of two zips one after the other, `zipfile` reads the second directory, torch the first."""
    inner = members(members(sound_zip())["policy.pth"])
    name = next(name for name in inner if name.endswith("data.pkl"))
    called = pickle.dumps({"w": Calls(bytearray, 5)}, 2)
    forged = zipped(inner | {name: called.ljust(len(inner[name]), b".")})
    both = forged + zipped(inner)
    assert torch.load(io.BytesIO(both), weights_only=True) == {"w": bytearray(5)}
    path = with_members(tmp_path / "two.zip", policy=both)
    assert (played(path) == sound(tmp_path / "sound.zip")).all()


def dictionary_copies(copies: int) -> bytes:
    """A pickle of an OrderedDict with 10,000 keys and of copies of it: a gigabyte per thousand."""
    keys = b"".join(b"M" + struct.pack("<H", key) + b"N" for key in range(10_000))
    first = b"\x80\x02ccollections\nOrderedDict\nq\x00)R(" + keys + b"uq\x01"
    return first + b"]q\x02" + b"h\x00h\x01\x85Ra" * copies + b"."


@pytest.mark.parametrize(
    ("pickled", "why"),
    [
        (dictionary_copies(10_000), "more than 10,000 opcodes"),
        (b"\x80\x02X\x00\x00\x10\x00" + bytes(2**20) + b".", "more than 1,048,576 bytes"),
        (b"\x80\x05\x8e\x01" + bytes(7) + b"x.", "not a complete SB3 model"),
        (b"\x80\x02}r\xff\xff\xff\xff.", "not a complete SB3 model|cannot be rebuilt"),
    ],
    ids=["copies", "long", "protocol 5", "a memo of 4 billion"],
)
def test_long_and_odd_pickles_are_refused(tmp_path: Path, pickled: bytes, why: str) -> None:
    refused(with_pickle(tmp_path / "pickle.zip", pickled), match=why, gigabytes=0.5)


REBUILD = "cannot be rebuilt"
ODD_TENSORS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "complex": (lambda t: t | {WEIGHT: t[WEIGHT] + 0j}, "not only tensors"),
    "integers": (lambda t: t | {WEIGHT: t[WEIGHT].long()}, "not only tensors"),
    "sparse": (lambda t: t | {WEIGHT: t[WEIGHT].to_sparse()}, "not only tensors"),
    "a parameter": (lambda t: t | {WEIGHT: torch.nn.Parameter(t[WEIGHT])}, "not only tensors"),
    "a list": (lambda t: [*t.values()], "not a map"),
    "a number": (lambda t: t | {WEIGHT: 5}, "not a map"),
    "keys that are numbers": (lambda t: dict(enumerate(t.values())), "not a map"),
    "expanded to gigabytes": (
        lambda t: t | {WEIGHT: torch.zeros(1).expand(10_000, 40_000)},
        "tensors have more than 268,435,456 bytes",
    ),
    "many expanded": (
        lambda t: t | {f"value_net.{i}": torch.zeros(1).expand(60_000_000) for i in range(5)},
        "tensors have more than 268,435,456 bytes",
    ),
    "infinite in float32": (
        lambda t: t | {"action_net.bias": torch.full((3,), 1e300, dtype=torch.float64)},
        "the model's output is not finite",
    ),
    "logits that overflow": (
        lambda t: t | {"action_net.weight": t["action_net.weight"] * 0 + 3e38, BIAS: t[BIAS] + 9},
        "the model's output is not finite",
    ),
    "a layer without units": (
        lambda t: t | {WEIGHT: torch.zeros(0, 10), "action_net.weight": torch.zeros(3, 0)},
        REBUILD,
    ),
    "400 layers": (
        lambda t: {f"mlp_extractor.policy_net.{i}.bias": torch.zeros(1) for i in range(400)},
        "more than 10,000 opcodes",
    ),
    "layers that do not fit": (lambda t: t | {WEIGHT: torch.zeros(5, 10)}, REBUILD),
    "an unknown parameter": (lambda t: t | {"log_std": torch.zeros(1)}, REBUILD),
    "one more in a layer": (
        lambda t: t | {"mlp_extractor.policy_net.1.extra": torch.zeros(3)},
        REBUILD,
    ),
    "another number of actions": (
        lambda t: t | {"action_net.weight": torch.zeros(4, 4), "action_net.bias": torch.zeros(4)},
        REBUILD,
    ),
    "no last layer": (lambda t: {WEIGHT: t[WEIGHT], BIAS: t[BIAS]}, REBUILD),
}


@pytest.mark.parametrize("name", ODD_TENSORS)
def test_odd_tensors_are_refused(tmp_path: Path, name: str) -> None:
    change, why = ODD_TENSORS[name]
    refused(with_tensors(tmp_path / "odd.zip", change), match=why)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_real_numbers_and_views_are_read(tmp_path: Path, dtype: torch.dtype) -> None:
    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        other = {key: tensor.to(dtype) for key, tensor in tensors.items()}
        view = torch.zeros(20, 8, dtype=dtype)[3:13, ::2].t()  # neither whole nor contiguous
        view.copy_(other[WEIGHT])
        return other | {WEIGHT: view}

    wanted = sound(tmp_path / "sound.zip")
    found = played(with_tensors(tmp_path / "other.zip", change))
    assert np.abs(found - wanted).max() < (1e-8 if dtype is torch.float64 else 0.05)


def test_a_storage_larger_than_its_record_is_refused(tmp_path: Path) -> None:
    inner = members(members(sound_zip())["policy.pth"])
    pickled = next(data for name, data in inner.items() if name.endswith("data.pkl"))
    start = pickled.index(b"K(", pickled.index(b"cpu"))  # the first storage has 40 elements
    changed = pickled[:start] + b"J" + struct.pack("<i", 10**9) + pickled[start + 2 :]
    refused(with_pickle(tmp_path / "large.zip", changed), match="record size .* does not match")


@pytest.mark.parametrize("name", ["endless.zip", "endless.onnx"])
def test_endless_and_missing_files_are_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    refused(path, match="larger than [0-9,]* bytes", gigabytes=1.5)
    refused(tmp_path / f"missing-{name}", match="No such file")
    path.unlink()
    path.mkdir()
    refused(path, match="Is a directory")


@pytest.mark.parametrize("suffix", ["zip", "onnx"])
@settings(max_examples=150)
@drawn(st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    suffix: str, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder, suppress(BridgeError):
        path = Path(folder) / f"model.{suffix}"
        whole = sound_zip() if suffix == "zip" else graph(path).read_bytes()
        start, gap = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 16))
        path.write_bytes(whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + gap :])
        played(path)


def node(operator: str, *inputs: str, to: str = "out", **attributes: Any) -> Any:
    return helper.make_node(operator, inputs, [to], **attributes)


def wide(name: str, *shape: int) -> Any:
    return onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)


def external() -> Any:
    tensor = wide("more", 3)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


def doubled(count: int) -> list[Any]:
    names = ["raw", *(f"x{i}" for i in range(count - 1)), "out"]
    return [node("Concat", a, a, to=b, axis=0) for a, b in pairwise(names)]


def inner() -> Any:
    """A graph for an attribute."""
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [])
    return helper.make_graph([helper.make_node("Identity", ["raw"], ["y"])], "inner", [], [value])


def given(name: str, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


LONG: dict[str, Any] = {
    "steps": [
        node("MatMul", "raw", "a", to="x0"),
        *(node("MatMul", f"x{i}", "b", to=f"x{i + 1}") for i in range(30)),
        node("MatMul", "x30", "c"),
    ],
    "constants": [wide("a", 3, 1_900), wide("b", 1_900, 1_900), wide("c", 1_900, 3)],
}
GRAPHS: dict[str, tuple[dict[str, Any], str]] = {
    "values of 2**50 elements": ({"steps": doubled(40)}, "so much memory or time"),
    "broadcast to 10**10 elements": (
        {
            "steps": [node("Add", "a", "b", to="c"), node("ReduceMax", "c", to="d", keepdims=0),
                      node("Add", "d", "raw")],
            "constants": [wide("a", 100_000, 1), wide("b", 1, 100_000)],
        },
        "so much memory or time",
    ),
    "a product that takes minutes": (LONG,
        "so much memory or time",
    ),
    "one value in 100,000 places": (
        {
            "steps": [node("MatMul", "raw", "a", to="x"), node("Max", *["x"] * 100_000, to="y"),
                      node("MatMul", "y", "b")],
            "constants": [wide("a", 3, 1_000), wide("b", 1_000, 3)],
        },
        "so much memory or time",
    ),
    "an input of 10**12 rows": (
        {"batch": 10**12, "steps": [node("Identity", "raw")]}, "so much memory or time"
    ),
    "an input of 10**12 columns": (
        {"inputs": [given("more", "n", 10**12)], "steps": [node("Identity", "raw")]},
        "so much memory or time",
    ),
    "a negative number of rows": (
        {"batch": -(2**40), "steps": [node("Identity", "raw")]}, "unknown shape|cannot run it"
    ),
    "weights said to be smaller": (
        LONG | {"inputs": [given("b", 1, 1)]},
        "so much memory or time",
    ),
    "numbers as text": (
        {
            "steps": [
                helper.make_node("Cast", ["raw"], ["x"], to=TensorProto.STRING),
                helper.make_node("Cast", ["x"], ["out"], to=TensorProto.FLOAT),
            ]
        },
        "the value 'x' of unknown shape",
    ),
    "a vector of any length": (
        {"steps": [node("ConstantOfShape", "length", to="x"), node("Add", "x", "raw")],
         "constants": [helper.make_tensor("length", TensorProto.INT64, (1,), [10**12])]},
        "the operator 'ConstantOfShape'",
    ),
    "an operator of another domain": (
        {"steps": [node("Inverse", "raw", domain="com.microsoft")]}, "the operator 'Inverse'"
    ),
    "a known name of another domain": (
        {"steps": [node("Identity", "raw", domain="com.microsoft")]}, "the operator 'Identity'"
    ),
    "a graph within a node": (
        {"steps": [node("Identity", "raw", body=inner())]}, "the operator 'Identity'"
    ),
    "a shape that depends on values": (
        {
            "steps": [
                helper.make_node("Cast", ["raw"], ["x"], to=TensorProto.INT64),
                helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0),
                helper.make_node("Reshape", ["raw", "y"], ["out"]),
            ]
        },
        "unknown shape|cannot run it",
    ),
    "weights in another file": (
        {"steps": [node("Add", "raw", "more")], "constants": [external()]},
        "must be in the file itself",
    ),
    "a constant in another file": (
        {"steps": [helper.make_node("Constant", [], ["more"], value=external()),
                   node("Add", "raw", "more")]},
        "must be in the file itself",
    ),
    "more nodes than allowed": (
        {"steps": [*(node("Abs", "raw", to=f"x{i}") for i in range(1_000)), node("Abs", "raw")]},
        "more than 1,000 nodes",
    ),
    "too many bytes in nodes": (
        {"steps": [node("Identity", "raw", doc_string="x" * 2**20)]}, "more than 1,000 nodes or"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_that_takes_too_much_is_refused(tmp_path: Path, name: str) -> None:
    parts, why = GRAPHS[name]
    steps, options = parts["steps"], {key: parts[key] for key in parts if key != "steps"}
    refused(graph(tmp_path / "large.onnx", *steps, **options), match=why)


@pytest.mark.parametrize(("operator", "trips"), [("Max", 2**62), ("Concat", 60), ("Max", 3)])
def test_loops_need_trust(tmp_path: Path, operator: str, trips: int) -> None:
    path = loop(tmp_path / "loop.onnx", operator, trips)
    refused(path, match="the operator 'Loop' is not allowed in an ONNX file unless you trust it")
    if trips == 3:
        plain = graph(tmp_path / "plain.onnx")
        assert np.abs(played(path, trust=True) - played(plain)).max() < 1e-6


def test_an_onnx_file_has_a_largest_size(tmp_path: Path) -> None:
    path = graph(tmp_path / "large.onnx", constants=[wide("spare", 4 * 2**20)])
    refused(path, match="larger than 16,777,216 bytes")
    assert load_model(path, trust=True)[0].num_actions == 3


@pytest.mark.parametrize("field", [1, 5, 11])
def test_millions_of_empty_parts_are_refused(tmp_path: Path, field: int) -> None:
    """Nodes, weights and inputs of a graph: two bytes each in the file, 150 when parsed."""
    parts = bytes([field << 3 | 2, 0]) * 1_000_000
    length = [len(parts) >> shift & 127 | 128 for shift in (0, 7, 14)] + [len(parts) >> 21]
    path = tmp_path / "empty.onnx"
    path.write_bytes(bytes([7 << 3 | 2, *length]) + parts)
    refused(path, match="more than 1,000 nodes", gigabytes=0.5)
