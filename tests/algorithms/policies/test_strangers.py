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
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache, partial
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
    cast,
    given,
    graph,
    load_model,
    loop,
    members,
    node,
    played,
    sound_zip,
    with_data,
    with_members,
    with_pickle,
    with_tensors,
    zipped,
)

LAYER = "mlp_extractor.policy_net."
WEIGHT = f"{LAYER}0.weight"
BIAS = f"{LAYER}0.bias"
HEAD = "action_net.weight"
HEAD_BIAS = "action_net.bias"
TRUST = "if you trust the file"
REBUILD = "cannot be rebuilt"
OTHER = "not only tensors.*trust"
BROKEN = "not a complete SB3 model"
FINITE = "the model's output is not finite"
LARGE = "tensors have more than 268,435,456 bytes"
MUCH = "so much memory or time"


@contextmanager
def limited(gigabytes):
    """Fail, instead of using up the machine's memory, if the block takes that much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def refused(path, *, match, gigabytes=1.0):
    """One line with the file's name, quickly and in little memory."""
    started = time.process_time()
    with limited(gigabytes), pytest.raises(BridgeError, match=match) as caught:
        load_policy(path)
    assert time.process_time() - started < 10
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def sound(path):
    """What the sound model plays."""
    return played(with_members(path))


class Calls:
    """An object whose pickle asks for a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def inner_members():
    """The members of the sound model's policy.pth."""
    return members(members(sound_zip())["policy.pth"])


def written(path, content):
    path.write_bytes(content)
    return path


# Zips


@cache
def bomb():
    """400 MiB of zeros, deflated."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    parts = [packer.compress(bytes(2**20)) for _ in range(400)]
    return b"".join([*parts, packer.flush()])


def with_bomb(path, of):
    """The sound model with a member that unpacks to 400 MiB, and the size that it claims."""
    member, claimed = of
    whole = bytearray(zipped(members(sound_zip()) | {member: b"!" * len(bomb())}))
    start = whole.index(b"!" * 64)
    whole[start : start + len(bomb())] = bomb()
    local = whole.rindex(member.encode(), 0, start) - 30
    central = whole.rindex(member.encode()) - 46
    struct.pack_into("<H", whole, local + 8, zipfile.ZIP_DEFLATED)
    struct.pack_into("<H", whole, central + 10, zipfile.ZIP_DEFLATED)
    struct.pack_into("<I", whole, central + 24, claimed)
    return written(path, bytes(whole))


def with_inner_bomb(path):
    """The sound model with a record of 260 MiB in its policy.pth."""
    made = io.BytesIO(zipped(inner_members(), zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data/00", bytes(260 * 2**20))
    return with_members(path, policy=made.getvalue())


def with_directory(path, of):
    """A zip, or the sound model with a policy.pth, that has a directory and nothing else."""
    entries, extra, inside = of
    head = struct.pack("<4s24xHHH12xc", b"PK\x01\x02", 1, len(extra), 0, b"a")
    directory = (head + extra) * entries
    count = min(entries, 65535)
    end = struct.pack("<4s4x2H2LH", b"PK\x05\x06", count, count, len(directory), 0, 0)
    if not inside:
        return written(path, directory + end)
    content = members(sound_zip()) | {"policy.pth": directory + end}
    return written(path, zipped(content, zipfile.ZIP_DEFLATED))  # it takes a thousandth


def with_large_storage(path):
    """The sound model with a storage that claims more than its record has."""
    pickled = next(data for name, data in inner_members().items() if name.endswith("data.pkl"))
    start = pickled.index(b"K(", pickled.index(b"cpu"))  # the first storage has 40 elements
    return with_pickle(
        path, pickled[:start] + b"J" + struct.pack("<i", 10**9) + pickled[start + 2 :]
    )


def with_capitals(path):
    """The sound model with a bad pickle whose name torch reads and a search might not."""
    inner = {name.replace("data.pkl", "DATA.PKL"): data for name, data in inner_members().items()}
    name = next(name for name in inner if name.endswith("DATA.PKL"))
    return with_members(path, policy=zipped(inner | {name: PICKLES["bytearray of 100 GB"][0]}))


def repacked(path, kind):
    """The sound model, compressed by another method."""
    return written(path, zipped(members(sound_zip()), kind))


def dictionary_copies(copies):
    """A pickle of an OrderedDict with 10,000 keys and of copies of it: a gigabyte per thousand."""
    keys = b"".join(b"M" + struct.pack("<H", key) + b"N" for key in range(10_000))
    first = b"\x80\x02ccollections\nOrderedDict\nq\x00)R(" + keys + b"uq\x01"
    return first + b"]q\x02" + b"h\x00h\x01\x85Ra" * copies + b"."


JSON = {
    "5 million maps": (b"[" + b"{}," * 5_000_000 + b"{}]", "more than .* maps and lists"),
    "deep": (b"[" * 90_000, BROKEN),
    "a long number": (b'{"a": ' + b"1" * 5_000 + b"}", BROKEN),
    "long": (b" " * (17 * 2**20), "more than 16,777,216 bytes"),
    "a list": (b"[]", "not a map"),
    "not text": (b"\xff\xfe", BROKEN),
}
PICKLES = {
    "bytearray of 100 GB": (pickle.dumps({"w": Calls(bytearray, 10**11)}, 2), OTHER),
    "tensor of 100 GB": (b"\x80\x02ctorch\nTensor\n\x8a\x05\x00\xe8\x76\x48\x17\x85R.", OTHER),
    "eval": (pickle.dumps({"w": Calls(eval, "1")}, 2), OTHER),
    "complex storage": (b"\x80\x02ctorch\nComplexFloatStorage\n.", OTHER),
    "integer storage": (b"\x80\x02ctorch\nLongStorage\n.", OTHER),
    "a function of ours": (b"\x80\x02calgorithms.support.files\nwrite_text\n.", OTHER),
    "copies": (dictionary_copies(10_000), "more than 10,000 opcodes"),
    "long": (b"\x80\x02X\x00\x00\x10\x00" + bytes(2**20) + b".", "more than 1,048,576 bytes"),
    "protocol 5": (b"\x80\x05\x8e\x01" + bytes(7) + b"x.", BROKEN),
    "a memo of 4 billion": (b"\x80\x02}r\xff\xff\xff\xff.", f"{BROKEN}|{REBUILD}"),
}
zeros = torch.zeros
TENSORS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "complex": (lambda t: t | {WEIGHT: t[WEIGHT] + 0j}, OTHER),
    "integers": (lambda t: t | {WEIGHT: t[WEIGHT].long()}, OTHER),
    "sparse": (lambda t: t | {WEIGHT: t[WEIGHT].to_sparse()}, OTHER),
    "a parameter": (lambda t: t | {WEIGHT: torch.nn.Parameter(t[WEIGHT])}, OTHER),
    "a list": (lambda t: [*t.values()], "not a map"),
    "a number": (lambda t: t | {WEIGHT: 5}, "not a map"),
    "keys that are numbers": (lambda t: dict(enumerate(t.values())), "not a map"),
    "one expanded": (lambda t: t | {WEIGHT: zeros(1).expand(400_000_000)}, LARGE),
    "many expanded": (lambda t: dict.fromkeys("abcde", zeros(1).expand(60_000_000)), LARGE),
    "infinite in float32": (lambda t: t | {HEAD_BIAS: t[HEAD_BIAS].double() + 1e300}, FINITE),
    "overflow": (lambda t: t | {HEAD: t[HEAD] * 0 + 3e38, BIAS: t[BIAS] + 9}, FINITE),
    "no units": (lambda t: t | {WEIGHT: zeros(0, 10), HEAD: zeros(3, 0)}, REBUILD),
    "400 layers": (lambda t: {f"{LAYER}{i}.bias": zeros(1) for i in range(400)}, "opcodes"),
    "layers that do not fit": (lambda t: t | {WEIGHT: zeros(5, 10)}, REBUILD),
    "an unknown parameter": (lambda t: t | {"log_std": zeros(1)}, REBUILD),
    "one more in a layer": (lambda t: t | {f"{LAYER}1.extra": zeros(3)}, REBUILD),
    "4 actions": (lambda t: t | {HEAD: zeros(4, 4), HEAD_BIAS: zeros(4)}, REBUILD),
    "no last layer": (lambda t: {WEIGHT: t[WEIGHT], BIAS: t[BIAS]}, REBUILD),
}
SPACES = ("policy_class", "observation_space", "action_space")
ODD = (None, 3, [], "x", {"_shape": 3}, {"_shape": [11], "n": "x"})
CLASSES = (
    "mine.ReLU",
    *(f"torch.nn.modules.{x}" for x in ("linear.Linear", "activation.MultiheadAttention")),
)
ACTIVATIONS = ("ReLU", 7, None, *(f"<class '{name}'>" for name in CLASSES))
DATA: list[tuple[dict[str, Any], str]] = [
    *(({key: x}, TRUST) for key in SPACES for x in ODD),
    *(({"policy_kwargs": {"activation_fn": x}}, f"activation .*{TRUST}") for x in ACTIVATIONS),
    *(({"game": x}, "is not the name of a game") for x in (7, ["kuhn"], "x" * 200_000)),
    ({"game": "x" * 2_000}, "unknown game 'xxx"),
]
METHODS = (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
BOMBS = [(member, size) for member in ("data", "policy.pth") for size in (400 * 2**20, 100)]
ENTRIES = ((1_000_000, b""), (40, struct.pack("<HH", 0x9999, 0) * 16_383))
DIRECTORIES = [(count, extra, inside) for count, extra in ENTRIES for inside in (False, True)]
TOO_LARGE = "unpacks to more than 268,435,456 bytes"
ZIPS: dict[str, tuple[Callable[[Path], Path], str]] = {
    **{f"JSON: {n}": (partial(with_members, data=x), why) for n, (x, why) in JSON.items()},
    **{f"pickle: {n}": (partial(with_pickle, pickled=x), why) for n, (x, why) in PICKLES.items()},
    **{f"tensors: {n}": (partial(with_tensors, change=x), why) for n, (x, why) in TENSORS.items()},
    **{f"data: {str(x)[-50:]}": (partial(with_data, **x), why) for x, why in DATA},
    **{f"method {x}": (partial(repacked, kind=x), "compressed by a method") for x in METHODS},
    **{f"bomb: {x}": (partial(with_bomb, of=x), f"{TOO_LARGE}|{BROKEN}") for x in BOMBS},
    **{
        f"directory: {x[0]} {x[2]}": (partial(with_directory, of=x), "more than 262,144 bytes")
        for x in DIRECTORIES
    },
    "bomb inside policy.pth": (with_inner_bomb, TOO_LARGE),
    "a pickle in capitals": (with_capitals, OTHER),
    "a large storage": (with_large_storage, "record size .* does not match"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_hostile_zip_is_refused(tmp_path, name):
    make, why = ZIPS[name]
    refused(make(tmp_path / "model.zip"), match=why, gigabytes=0.2 if "bomb" in name else 0.5)


def test_pickles_in_the_description_are_never_opened(tmp_path):
    data = json.loads(members(sound_zip())["data"])
    mark = tmp_path / "ran"
    touch = base64.b64encode(pickle.dumps(Calls(os.system, f"touch {mark}"))).decode()
    changes = {key: data[key] | {":serialized:": touch} for key in (*SPACES, "policy_kwargs")}
    path = with_data(tmp_path / "pickles.zip", **changes)
    assert (played(path) == sound(tmp_path / "sound.zip")).all()
    assert not mark.exists()
    with pytest.raises(BridgeError, match="SB3 cannot load it"):
        load_model(path, trust=True)
    assert mark.exists()  # so the pickles do run code


@pytest.mark.parametrize("protocol", [*range(6), "INST"])
def test_the_calls_that_a_pickle_asks_for_are_not_made(tmp_path, protocol):
    mark = tmp_path / "ran"
    pickled = f"(S'touch {mark}'\nios\nsystem\n.".encode()
    if protocol != "INST":
        pickled = pickle.dumps(Calls(os.system, f"touch {mark}"), protocol)
    refused(with_pickle(tmp_path / "call.zip", pickled), match="call.zip")
    assert not mark.exists()
    pickle.loads(pickled)
    assert mark.exists()  # so the pickle does run code


def test_torch_reads_the_records_that_were_checked(tmp_path):
    """Of two zips one after the other, `zipfile` reads the second directory, torch the first."""
    inner = inner_members()
    name = next(name for name in inner if name.endswith("data.pkl"))
    called = pickle.dumps({"w": Calls(bytearray, 5)}, 2)
    both = zipped(inner | {name: called.ljust(len(inner[name]), b".")}) + zipped(inner)
    assert torch.load(io.BytesIO(both), weights_only=True) == {"w": bytearray(5)}
    path = with_members(tmp_path / "two.zip", policy=both)
    assert (played(path) == sound(tmp_path / "sound.zip")).all()


def other_numbers(dtype):
    def change(tensors):
        other = {key: tensor.to(dtype) for key, tensor in tensors.items()}
        view = torch.zeros(20, 8, dtype=dtype)[3:13, ::2].t()  # neither whole nor contiguous
        return other | {WEIGHT: view.copy_(other[WEIGHT])}

    return change


@pytest.mark.parametrize(
    ("make", "tolerance"),
    [
        (partial(repacked, kind=zipfile.ZIP_DEFLATED), 0),
        *((partial(with_data, policy_kwargs=x), 0) for x in (None, 3, [], "x", {"_shape": 3})),
        (partial(with_tensors, change=other_numbers(torch.float64)), 1e-8),
        (partial(with_tensors, change=other_numbers(torch.float16)), 0.05),
        (partial(with_tensors, change=other_numbers(torch.bfloat16)), 0.05),
    ],
)
def test_unusual_but_sound_models_are_read(tmp_path, make, tolerance):
    """Without settings a model has SB3's defaults."""
    outputs = played(make(tmp_path / "other.zip"))
    assert np.abs(outputs - sound(tmp_path / "sound.zip")).max() <= tolerance


@pytest.mark.parametrize("name", ["endless.zip", "endless.onnx"])
def test_endless_and_missing_files_are_one_line(tmp_path, name):
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
def test_a_damaged_file_is_read_or_refused_but_never_crashes(suffix, data):
    with TemporaryDirectory() as folder, suppress(BridgeError):
        path = Path(folder) / f"model.{suffix}"
        whole = sound_zip() if suffix == "zip" else graph(path).read_bytes()
        start = data.draw(st.integers(0, len(whole) - 1))
        gap = data.draw(st.integers(0, 16))
        path.write_bytes(whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + gap :])
        played(path)


# ONNX


def wide(name, *shape):
    return onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)


def external():
    tensor = wide("more", 3)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


def doubled(count):
    names = ["raw", *(f"x{i}" for i in range(count - 1)), "out"]
    return [node("Concat", a, a, to=b, axis=0) for a, b in pairwise(names)]


def inner_graph():
    """A graph for an attribute."""
    return helper.make_graph([node("Identity", "raw", to="y")], "inner", [], [given("y")])


def made(*steps, **options):
    return lambda path: graph(path, *steps, **options)


SAME = node("Identity", "raw")
ADD_MORE = node("Add", "raw", "more")
LENGTH = helper.make_tensor("length", TensorProto.INT64, (1,), [10**12])
LONG = [
    node("MatMul", "raw", "a", to="x0"),
    *(node("MatMul", f"x{i}", "b", to=f"x{i + 1}") for i in range(30)),
    node("MatMul", "x30", "c"),
]
WEIGHTS = [wide("a", 3, 1_900), wide("b", 1_900, 1_900), wide("c", 1_900, 3)]
ALIEN = {"domain": "com.microsoft"}
BROADCAST = (
    node("Add", "a", "b", to="c"),
    node("ReduceMax", "c", to="d", keepdims=0),
    node("Add", "d", "raw"),
)
MANY = (
    node("MatMul", "raw", "a", to="x"),
    node("Max", *["x"] * 100_000, to="y"),
    node("MatMul", "y", "b"),
)
BY_VALUE = (
    cast("raw", TensorProto.INT64, "x"),
    node("ReduceMax", "x", to="y", keepdims=0),
    node("Reshape", "raw", "y"),
)
TEXT = (cast("raw", TensorProto.STRING, "x"), cast("x", TensorProto.FLOAT))
OF_SHAPE = (node("ConstantOfShape", "length", to="x"), node("Add", "x", "raw"))
CONSTANT = node("Constant", to="more", value=external())
NODES = [node("Abs", "raw", to=f"x{i}") for i in range(1_000)]
UNKNOWN = "unknown shape|cannot run it"
OUTSIDE = "must be in the file itself"
GRAPHS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "values of 2**50 elements": (made(*doubled(40)), MUCH),
    "10**10 elements": (
        made(*BROADCAST, constants=[wide("a", 10**5, 1), wide("b", 1, 10**5)]),
        MUCH,
    ),
    "a product that takes minutes": (made(*LONG, constants=WEIGHTS), MUCH),
    "100,000 inputs": (made(*MANY, constants=[wide("a", 3, 1_000), wide("b", 1_000, 3)]), MUCH),
    "10**12 rows": (made(SAME, batch=10**12), MUCH),
    "10**12 columns": (made(SAME, inputs=[given("more", "n", 10**12)]), MUCH),
    "a negative number of rows": (made(SAME, batch=-(2**40)), UNKNOWN),
    "smaller by its input": (made(*LONG, constants=WEIGHTS, inputs=[given("b", 1, 1)]), MUCH),
    "numbers as text": (made(*TEXT), "the value 'x' of unknown shape"),
    "any length": (made(*OF_SHAPE, constants=[LENGTH]), "operator 'ConstantOfShape'"),
    "another domain": (made(node("Inverse", "raw", **ALIEN)), "operator 'Inverse'"),
    "a known name of it": (made(node("Identity", "raw", **ALIEN)), "operator 'Identity'"),
    "a graph in a node": (made(node("Identity", "raw", body=inner_graph())), "operator 'Identity'"),
    "a shape that depends on values": (made(*BY_VALUE), UNKNOWN),
    "weights in another file": (made(ADD_MORE, constants=[external()]), OUTSIDE),
    "a constant in another file": (made(CONSTANT, ADD_MORE), OUTSIDE),
    "more nodes than allowed": (made(*NODES, SAME), "more than 1,000 nodes"),
    "too many bytes": (
        made(node("Abs", "raw", doc_string="x" * 2**20)),
        "more than 1,000 nodes or",
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_that_takes_too_much_is_refused(tmp_path, name):
    make, why = GRAPHS[name]
    refused(make(tmp_path / "large.onnx"), match=why)


@pytest.mark.parametrize(("operator", "trips"), [("Max", 2**62), ("Concat", 60), ("Max", 3)])
def test_loops_need_trust(tmp_path, operator, trips):
    path = loop(tmp_path / "loop.onnx", operator, trips)
    refused(path, match="the operator 'Loop' is not allowed in an ONNX file unless you trust it")
    if trips == 3:
        plain = graph(tmp_path / "plain.onnx")
        assert np.abs(played(path, trust=True) - played(plain)).max() < 1e-6


def test_an_onnx_file_has_a_largest_size(tmp_path):
    path = graph(tmp_path / "large.onnx", constants=[wide("spare", 4 * 2**20)])
    refused(path, match="larger than 16,777,216 bytes")
    assert load_model(path, trust=True)[0].num_actions == 3


@pytest.mark.parametrize("field", [1, 5, 11])
def test_millions_of_empty_parts_are_refused(tmp_path, field):
    """Nodes, weights and inputs of a graph: two bytes each in the file, 150 when parsed."""
    parts = bytes([field << 3 | 2, 0]) * 1_000_000
    length = [len(parts) >> shift & 127 | 128 for shift in (0, 7, 14)] + [len(parts) >> 21]
    path = written(tmp_path / "empty.onnx", bytes([7 << 3 | 2, *length]) + parts)
    refused(path, match="more than 1,000 nodes", gigabytes=0.5)
