"""Files from strangers: what they claim is not believed, and what they ask for is bounded."""

from __future__ import annotations

import io
import json
import pickle
import resource
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from sb3_contrib import MaskablePPO

from algorithms.games import kuhn, load_game
from algorithms.policies import archive, onnx_worker, sb3
from algorithms.policies import onnx as onnx_policy
from algorithms.policies.features import CardTimesHistory
from kuhn_bridge import BridgeError

GOLDEN = Path(__file__).parent / "golden"
MLP, TABLE = GOLDEN / "mlp-0.1.zip", GOLDEN / "table-0.1.zip"
WEIGHT = "mlp_extractor.policy_net.0.weight"


@contextmanager
def limited(gigabytes: float) -> Any:
    """Fails, rather than eat the machine's memory, if the block takes that much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def members(path: Path = MLP) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as model:
        return {name: model.read(name) for name in model.namelist()}


def zipped(path: Path, content: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, data in content.items():
            made.writestr(name, data)
    return path


def with_data(path: Path, **changes: Any) -> Path:
    content = members()
    data = json.loads(content["data"]) | changes
    return zipped(path, content | {"data": json.dumps(data).encode()})


def with_tensors(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    content, file = members(), io.BytesIO()
    torch.save(change(torch.load(io.BytesIO(content["policy.pth"]), weights_only=True)), file)
    return zipped(path, content | {"policy.pth": file.getvalue()})


def refused(path: Path, *, match: str, gigabytes: float = 1.0, **options: Any) -> None:
    """One line, with the file's name, quickly and in little memory."""
    started = time.process_time()
    with limited(gigabytes), pytest.raises(BridgeError, match=match) as caught:
        sb3.load_policy(path, **options)
    assert time.process_time() - started < 10
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("path", "figure"), [(MLP, 0.286539), (TABLE, 0.105133)])
def test_models_of_version_0_1_play_as_ever(path: Path, figure: float) -> None:
    """Held to a figure: their classes are ours still, and so is what those make of a card."""
    assert sb3.load_policy(path).nash_conv() == pytest.approx(figure, abs=1e-6)


@pytest.mark.parametrize("path", [MLP, TABLE], ids=lambda path: path.stem)
def test_models_of_version_0_1_still_open(path: Path) -> None:
    policy = sb3.load_policy(path)
    assert policy.game.name == "kuhn"
    model = MaskablePPO.load(path, device="cpu")
    seen = torch.tensor(kuhn().observations)
    masks = kuhn().tree.legal.copy()
    with torch.no_grad():
        theirs = model.policy.get_distribution(seen, masks).distribution.probs.double().numpy()
    assert np.abs(policy.table - theirs).max() < 1e-6
    assert np.abs(sb3.load_policy(path, trust=True).table - policy.table).max() < 1e-6


def test_features_of_version_0_1_are_cards_times_histories() -> None:
    seen = torch.tensor(kuhn().observations)
    found = CardTimesHistory()(seen)
    places = 5 * seen[:, :3].argmax(dim=1) + seen[:, 3:8].argmax(dim=1)
    assert torch.equal(found, torch.nn.functional.one_hot(places, 15).float())


@cache
def bomb() -> bytes:
    """400 MiB of nothing, deflated."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    parts = [packer.compress(bytes(2**20)) for _ in range(400)]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("claimed", [400 * 2**20, 100])
@pytest.mark.parametrize("member", ["data", "policy.pth"])
def test_what_unpacks_to_gigabytes_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str, claimed: int
) -> None:
    """Whatever the directory claims: what is read is bounded, not what is said."""
    monkeypatch.setattr(archive, "MAX_BYTES", 8 * 2**20)
    path = zipped(tmp_path / "bomb.zip", members() | {member: b"!" * len(bomb())})
    whole = bytearray(path.read_bytes())
    start = whole.index(b"!" * 64)
    whole[start : start + len(bomb())] = bomb()
    local = whole.rindex(member.encode(), 0, start) - 30
    central = whole.rindex(member.encode()) - 46
    struct.pack_into("<H", whole, local + 8, zipfile.ZIP_DEFLATED)
    struct.pack_into("<H", whole, central + 10, zipfile.ZIP_DEFLATED)
    struct.pack_into("<I", whole, central + 24, claimed)
    path.write_bytes(whole)
    refused(path, match="not a whole SB3 model", gigabytes=0.2)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_ways_to_compress_that_cannot_be_bounded_are_refused(
    tmp_path: Path, compression: int
) -> None:
    path = zipped(tmp_path / "other.zip", members(), compression)
    refused(path, match="compressed in a way")


def test_a_deflated_model_is_read_as_well(tmp_path: Path) -> None:
    path = zipped(tmp_path / "deflated.zip", members(), zipfile.ZIP_DEFLATED)
    assert sb3.load_policy(path) == sb3.load_policy(MLP)


def test_records_inside_policy_pth_are_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 8 * 2**20)
    inner = members_of(members()["policy.pth"])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in inner.items():
            made.writestr(name, bytes(60 * 2**20) if name.endswith("data/0") else data)
    path = zipped(tmp_path / "deep.zip", members() | {"policy.pth": file.getvalue()})
    refused(path, match="data/0 unpacks to more than 8,", gigabytes=0.05)


def test_records_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = members()
    path = zipped(tmp_path / "sum.zip", content, zipfile.ZIP_DEFLATED)
    whole = len(content["data"]) + len(content["policy.pth"])
    monkeypatch.setattr(archive, "MAX_BYTES", whole)
    assert sb3.load_policy(path)
    monkeypatch.setattr(archive, "MAX_BYTES", whole - 1)
    refused(path, match="policy.pth unpacks to more than")


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        return {name: inner.read(name) for name in inner.namelist()}


def test_a_directory_of_a_million_members_is_not_read(tmp_path: Path) -> None:
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"a"
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, 1_000_000 * len(entry), 0, 0)
    (tmp_path / "many.zip").write_bytes(entry * 1_000_000 + end)
    refused(tmp_path / "many.zip", match="more than 10,000 members", gigabytes=0.5)


@pytest.mark.parametrize("member", ["model.zip", "policy.pth"])
def test_a_directory_of_endless_entries_is_not_read(tmp_path: Path, member: str) -> None:
    """10,000 entries are allowed, but an entry of 64 KiB takes `zipfile` a tenth of a second."""
    extra = struct.pack("<HH", 0x9999, 0) * 16_383
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", 1, len(extra), 0) + bytes(12) + b"a"
    size = 40 * len(entry + extra)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 40, 40, size, 0, 0)
    path, made = tmp_path / "endless.zip", (entry + extra) * 40 + end
    if member == "model.zip":
        path.write_bytes(made)
    else:  # deflated it takes a thousandth
        zipped(path, members() | {member: made}, zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 2**17
    refused(path, match="a directory of more than 2,097,152 bytes")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" + b"{}," * 5_000_000 + b"{}]", "values"),
        (b"[" + b"1," * 100_001 + b"1]", "more than 100,000 values"),
        (b"[" * 100_000, "too deep"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "too deep"),
        (b'"' + b'\\"' * 8_000_000, "not a whole"),
        (b'"' + b"\\", "not a whole"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "not a whole"),
        (b" " * (17 * 2**20), "unpacks to more than 16,777,216"),
        (b"[]", "no map"),
        (b"\xff\xfe", "not a whole"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_is_bounded_before_it_is_parsed(tmp_path: Path, text: bytes, why: str) -> None:
    refused(zipped(tmp_path / "json.zip", members() | {"data": text}), match=why, gigabytes=0.5)


def test_brackets_in_strings_are_not_counted(tmp_path: Path) -> None:
    path = with_data(tmp_path / "strings.zip", note="[{" * 1_000 + '\\"[,' * 50_000)
    assert sb3.load_policy(path) == sb3.load_policy(MLP)


def test_json_as_deep_as_allowed_is_read() -> None:
    assert archive._parsed(b'{"a":' * 32 + b"1" + b"}" * 32)


def plain(pickled: bytes) -> dict[str, bytes]:
    """A policy.pth with that pickle."""
    inner = members_of(members()["policy.pth"])
    name = next(name for name in inner if name.endswith("data.pkl"))
    file = io.BytesIO()
    zipped(file, inner | {name: pickled})  # type: ignore[arg-type]  # zipfile takes either
    return {"policy.pth": file.getvalue()}


class Calls:
    """Pickled, it asks for a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
PICKLES = {
    "bytearray of 100 GB": pickle.dumps({"w": Calls(bytearray, 10**11)}, 2),
    "eval": pickle.dumps({"w": Calls(eval, "1")}, 2),
    "complex storage": b"\x80\x02ctorch\nComplexFloatStorage\n.",
    "integer storage": b"\x80\x02ctorch\nLongStorage\n.",
    "protocol 5": b"\x80\x05\x8e\x01" + bytes(7) + b"x.",
    "a memo of 4 billion": b"\x80\x02}r\xff\xff\xff\xff.",
    "the builder rebuilt": b"\x80\x02" + TENSOR + b"}X\x05\x00\x00\x00_leftK\x01sb.",
    "a class of this project": b"\x80\x02calgorithms.support.files\nwrite_text\n.",
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_can_ask_for_tensors_of_real_numbers_and_nothing_else(
    tmp_path: Path, name: str
) -> None:
    path = zipped(tmp_path / "pickle.zip", members() | plain(PICKLES[name]))
    refused(path, match="more in it than tensors.*--trust", gigabytes=0.5)


def test_bytes_in_another_order_are_refused(tmp_path: Path) -> None:
    inside = {
        name: b"big" if name.endswith("byteorder") else content
        for name, content in members_of(members()["policy.pth"]).items()
    }
    weights = zipped(tmp_path / "policy.pth", inside).read_bytes()
    path = zipped(tmp_path / "model.zip", {**members(), "policy.pth": weights})
    refused(path, match="bytes in another order")


@pytest.mark.parametrize("names", [[], ["a/data.pkl", "b/data.pkl"]], ids=len)
def test_weights_are_one_pickle_and_its_storages(tmp_path: Path, names: list[str]) -> None:
    weights = zipped(tmp_path / "policy.pth", dict.fromkeys(["a/version", *names], b"3"))
    path = zipped(tmp_path / "model.zip", members() | {"policy.pth": weights.read_bytes()})
    refused(path, match="not what torch.save writes today")


def test_a_pickle_of_more_than_a_megabyte_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "long.zip", members() | plain(bytes(2**20 + 1)))
    refused(path, match=r"data.pkl unpacks to more than 1,048,576 bytes")


def test_a_pickle_that_refers_to_something_unknown_is_refused(tmp_path: Path) -> None:
    inner = members_of(members()["policy.pth"])
    pickled = next(data for name, data in inner.items() if name.endswith("data.pkl"))
    changed = pickled.replace(b"\x07\0\0\0storage", b"\x07\0\0\0garages")
    assert changed != pickled
    path = zipped(tmp_path / "unknown.zip", members() | plain(changed))
    refused(path, match="refers to something unknown")


def test_tensors_together_take_as_much_as_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 2 * 640 * 4)
    tensors = archive._Tensors(None, "")  # type: ignore[arg-type]  # it reads nothing
    whole = np.zeros(640, np.float32), 0, [64, 10], [10, 1]
    assert tensors(*whole).nbytes == tensors(*whole).nbytes == 640 * 4
    with pytest.raises(ValueError, match="take more than 5,120 bytes"):
        tensors(*whole)


ODD_TENSORS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "complex": (lambda t: t | {WEIGHT: t[WEIGHT] + 0j}, "more in it than tensors"),
    "integers": (lambda t: t | {WEIGHT: t[WEIGHT].long()}, "more in it than tensors"),
    "sparse": (lambda t: t | {WEIGHT: t[WEIGHT].to_sparse()}, "more in it than tensors"),
    "no map": (lambda t: [*t.values()], "no map"),
    "a number": (lambda t: t | {WEIGHT: 5}, "no map of names to tensors"),
    "expanded to gigabytes": (
        lambda t: t | {WEIGHT: torch.zeros(1).expand(10_000, 40_000)},
        "take more than 268,435,456 bytes",
    ),
    "many expanded": (
        lambda t: t | {f"value_net.{i}": torch.zeros(1).expand(60_000_000) for i in range(5)},
        "take more than 268,435,456 bytes",
    ),
    "infinite in float32": (
        lambda t: t | {"action_net.bias": torch.full((3,), 1e300, dtype=torch.float64)},
        "not finite",
    ),
    "no units": (lambda t: t | {WEIGHT: torch.zeros(0, 10)}, "a layer of no units"),
    "50,000 layers": (
        lambda t: (
            {f"mlp_extractor.policy_net.{2 * i}.weight": torch.zeros(1, 1) for i in range(5_000)}
            | {"action_net.weight": torch.zeros(3, 1), "action_net.bias": torch.zeros(3)}
        ),
        "more than 64 layers|not a whole",
    ),
}


@pytest.mark.parametrize("name", ODD_TENSORS)
def test_odd_tensors_are_refused(tmp_path: Path, name: str) -> None:
    change, why = ODD_TENSORS[name]
    refused(with_tensors(tmp_path / "odd.zip", change), match=why)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_real_numbers_and_views_are_read(tmp_path: Path, dtype: torch.dtype) -> None:
    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        halves = {key: tensor.to(dtype) for key, tensor in tensors.items()}
        stored = torch.zeros(20, 128, dtype=dtype)
        view = stored[3:13, ::2].t()  # neither at the start nor contiguous
        view.copy_(halves[WEIGHT])
        return halves | {WEIGHT: view}

    wanted = sb3.load_policy(MLP).table
    read = sb3.load_policy(with_tensors(tmp_path / "half.zip", change)).table
    assert np.abs(read - wanted).max() < {torch.float64: 1e-12}.get(dtype, 0.05)
    assert (dtype is torch.float64) == (np.abs(read - wanted).max() < 1e-12)


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(0, [64, 11], [11, 1]), (1, [64, 10], [10, 1]), (10**30, [1], [1])],
)
def test_a_tensor_larger_than_its_storage_is_refused(
    offset: int, size: list[int], stride: list[int]
) -> None:
    tensors = archive._Tensors(None, "")  # type: ignore[arg-type]  # it reads nothing
    storage = np.zeros(640, np.float32)
    assert tensors(storage, 0, [64, 10], [10, 1]).shape == (64, 10)
    assert tensors(storage, 640, [0], [1]).shape == (0,)
    with pytest.raises(ValueError, match="larger than its storage"):
        tensors(storage, offset, size, stride)
    for bad in ((-1, [1], [1]), (0, [-1], [1]), (0, [2], [-1]), (True, [1], [1]), (0, [1], [])):
        with pytest.raises(ValueError, match=r"policy.pth has a tensor"):
            tensors(storage, *bad)


@pytest.mark.parametrize(
    "name",
    [
        "<class 'mine.ReLU'>",
        "ReLU",
        "<class 'torch.nn.modules.linear.Linear'>",
        "<class 'torch.nn.modules.activation.Softmax2d'>",
        "<class 'torch.nn.modules.activation.MultiheadAttention'>",
        "<class 'torch.nn.modules.activation.Module'>",
        7,
        None,
    ],
)
def test_only_activations_on_the_list_are_built(tmp_path: Path, name: Any) -> None:
    path = with_data(tmp_path / "named.zip", policy_kwargs={"activation_fn": name})
    refused(path, match="cannot be rebuilt safely")


def test_endless_and_missing_files_are_one_line(tmp_path: Path) -> None:
    refused(Path("/dev/zero"), match="larger than 268,435,456 bytes", gigabytes=1.5)
    refused(tmp_path / "none.zip", match="No such file")
    refused(tmp_path, match="Is a directory")


LEDUC = "leduc_poker"


def test_a_zip_names_its_game(tmp_path: Path) -> None:
    """Absent it is Kuhn; a game asked for must be the one that is named."""
    named = with_data(tmp_path / "named.zip", game="kuhn")
    assert sb3.load_policy(named) == sb3.load_policy(MLP) == sb3.load_policy(MLP, game=kuhn())
    refused(with_data(tmp_path / "leduc.zip", game=LEDUC), match=r"another game.*leduc_poker has")
    refused(named, match=f"a model of kuhn, not of {LEDUC}", game=load_game(LEDUC))
    refused(MLP, match="another game", game=load_game(LEDUC))
    for name in (7, ["kuhn"], "x" * 2_000):
        refused(with_data(tmp_path / "bad.zip", game=name), match="is not the name of a game")
    refused(with_data(tmp_path / "bad.zip", game="no_such_game"), match="its game: unknown game")


# ONNX: a graph is run in a process of its own.


def graph(path: Path, *steps: Any, constants: Any = (), width: int = 3, **properties: str) -> Path:
    """`observation` and `raw = observation @ w`, then `steps` up to `out`."""
    weights = np.linspace(-1, 1, 30, dtype=np.float32)
    inputs = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["n", 10])]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", width])]
    first = helper.make_node("MatMul", ["observation", "w"], ["raw"])
    constants = [helper.make_tensor("w", TensorProto.FLOAT, (10, 3), weights), *constants]
    made = helper.make_model(
        helper.make_graph([first, *steps], "policy", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    helper.set_model_props(made, properties)
    onnx.save(made, path)
    return path


def loop(path: Path, operator: str, trips: int) -> Path:
    """A Loop whose body applies `operator` to `x` and `x`."""
    attributes = {"axis": 0} if operator == "Concat" else {}
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes"]),
            helper.make_node(operator, ["x", "x"], ["y"], **attributes),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", 3]),
        ],
        [
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k", 3]),
        ],
    )
    constants = [
        helper.make_tensor("trips", TensorProto.INT64, (), [trips]),
        helper.make_tensor("yes", TensorProto.BOOL, (), [True]),
    ]
    step = helper.make_node("Loop", ["trips", "yes", "raw"], ["out"], body=body)
    return graph(path, step, constants=constants)


def onnx_refused(path: Path, *, match: str) -> None:
    with pytest.raises(BridgeError, match=match) as caught:
        onnx_policy.load_policy(path)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_policy, "CPU_SECONDS", 1)
    onnx_refused(loop(tmp_path / "endless.onnx", "Max", 2**62), match="stopped: .* 1 s or 4 GiB")
    monkeypatch.setattr(onnx_policy, "CPU_SECONDS", 30)
    monkeypatch.setattr(onnx_policy, "CLOCK_SECONDS", 1)
    started = time.monotonic()
    onnx_refused(loop(tmp_path / "endless.onnx", "Max", 2**62), match="stopped")
    assert time.monotonic() - started < 20


def test_a_graph_that_doubles_without_end_takes_no_more_memory_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_policy, "MEMORY", 2**30)
    path = loop(tmp_path / "doubling.onnx", "Concat", 60)
    onnx_refused(path, match=r"stopped|memory|onnxruntime cannot run it")


def test_a_loop_that_ends_is_read(tmp_path: Path) -> None:
    policy = onnx_policy.load_policy(loop(tmp_path / "short.onnx", "Max", 3))
    plain = graph(tmp_path / "plain.onnx", helper.make_node("Identity", ["raw"], ["out"]))
    assert policy == onnx_policy.load_policy(plain)


def test_no_clock_runs_on_after_a_model_is_read(tmp_path: Path) -> None:
    """A command would wait for it, a minute long."""
    onnx_policy.load_policy(graph(tmp_path / "a.onnx", helper.make_node("Abs", ["raw"], ["out"])))
    clocks = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    for clock in clocks:
        clock.join(10)
        assert not clock.is_alive()


def test_an_answer_that_breaks_off_is_one_line() -> None:
    half = io.BytesIO(b"{}\n" + bytes(100))
    worker = SimpleNamespace(stdin=io.BytesIO(), stdout=half, kill=lambda: None)
    with pytest.raises(BridgeError, match=r"half.onnx: stopped: it takes more than"):
        onnx_policy._asked(
            Path("half.onnx"), worker, [["observation", "tensor(float)", ["n", 10]]], kuhn()
        )


def test_a_worker_that_dies_early_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"game": None, "inputs": [["observation", "tensor(float)", ["n", 10]]]}
    script = tmp_path / "worker.py"
    script.write_text(f"import os; os.close(0); print({json.dumps(about)!r}, flush=True)")
    monkeypatch.setattr(onnx_policy, "onnx_worker", SimpleNamespace(__file__=str(script)))
    onnx_refused(tmp_path / "any.onnx", match="stopped")


def test_a_worker_bounds_its_time_and_memory_and_leaves_no_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    onnx_worker._bound(7, 2**30)
    assert limits == {
        resource.RLIMIT_CPU: (7, 7),
        resource.RLIMIT_AS: (2**30, 2**30),
        resource.RLIMIT_CORE: (0, 0),
    }


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "it needs more memory than a policy may"),
        (FileNotFoundError(2, "No such file"), "No such file"),
        (OSError("the disk is gone"), "the disk is gone"),
        (ValueError("a\nb"), "onnxruntime cannot run it (a)"),
    ],
)
def test_a_worker_says_at_once_what_went_wrong(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str, most: int) -> None:
        raise error

    heard = io.BytesIO()
    stdout = SimpleNamespace(buffer=io.BufferedWriter(heard))  # type: ignore[arg-type]  # it writes
    system = SimpleNamespace(argv=["worker", "any.onnx", "1", "1", "1"], stdout=stdout)
    monkeypatch.setattr(onnx_worker, "sys", system)
    monkeypatch.setattr(onnx_worker, "_bound", lambda seconds, memory: None)
    monkeypatch.setattr(onnx_worker, "_session", fails)
    onnx_worker.main()
    assert json.loads(heard.getvalue()) == {"error": words}


def test_information_sets_are_run_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = graph(tmp_path / "plain.onnx", helper.make_node("Identity", ["raw"], ["out"]))
    whole = onnx_policy.load_policy(path).table
    monkeypatch.setattr(onnx_policy, "BATCH", 5)  # the last of three has 2 rows
    assert onnx_policy.load_policy(path).table == pytest.approx(whole)


def test_without_onnxruntime_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_policy, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="onnxruntime"):
        onnx_policy.load_policy("any.onnx")


def test_masks_are_told_from_observations_by_width_then_by_name() -> None:
    square: Any = SimpleNamespace(
        observations=np.zeros((1, 3)), tree=SimpleNamespace(legal=np.ones((1, 3)))
    )
    assert onnx_policy._is_observation("unmasked", ["n", 10], kuhn())
    assert not onnx_policy._is_observation("observation", ["n", 3], kuhn())
    assert onnx_policy._is_observation("observation", ["n", 3], square)
    assert not onnx_policy._is_observation("action_mask", ["n", 3], square)


def test_only_what_sums_to_1_is_taken_for_probabilities() -> None:
    legal = kuhn().tree.legal
    for row, weights in (([0.9, 0.5, 0.2], np.exp), ([0.5, 0.3, 0.20005], np.asarray)):
        kept = np.where(legal, weights(row), 0)
        found = onnx_policy._as_probabilities(np.tile(row, (12, 1)), kuhn())
        assert found == pytest.approx(kept / kept.sum(axis=1, keepdims=True))


def test_an_onnx_file_names_its_game(tmp_path: Path) -> None:
    same = helper.make_node("Identity", ["raw"], ["out"])
    path = graph(tmp_path / "named.onnx", same, game="kuhn")
    assert onnx_policy.load_policy(path).game.name == "kuhn"
    onnx_refused(graph(tmp_path / "leduc.onnx", same, game=LEDUC), match="an observation is")
    with pytest.raises(BridgeError, match=f"a model of kuhn, not of {LEDUC}"):
        onnx_policy.load_policy(path, game=load_game(LEDUC))


def test_answers_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    log = helper.make_node("Log", ["raw"], ["out"])
    onnx_refused(graph(tmp_path / "nan.onnx", log), match="are no probabilities")


def test_onnx_files_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = helper.make_tensor("spare", TensorProto.FLOAT, (2**16,), np.zeros(2**16))
    same = helper.make_node("Identity", ["raw"], ["out"])
    path = graph(tmp_path / "plain.onnx", same, constants=[spare])
    monkeypatch.setattr(onnx_policy, "MAX_BYTES", path.stat().st_size)
    assert onnx_policy.load_policy(path).game == kuhn()
    monkeypatch.setattr(onnx_policy, "MAX_BYTES", 100)
    onnx_refused(path, match="larger than 100 bytes")
    with pytest.raises(BridgeError, match="larger than 100 bytes"):
        onnx_policy.load_policy("/dev/zero")
