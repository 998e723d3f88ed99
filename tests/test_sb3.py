"""Models from files: what they play, and what they may not do."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from algorithms import dominance, evaluate, export_onnx, nashconv, play, simulate
from algorithms.games import kuhn, load_game
from algorithms.learning.networks import DistinctPolicy
from algorithms.learning.selfplay import SelfPlayVecEnv
from algorithms.policies import load_policy
from algorithms.policies import onnx as onnx_policy
from algorithms.policies.features import CardTimesHistory
from algorithms.policies.sb3 import load_model, network_probabilities
from kuhn_bridge import INFORMATION_STATES, BridgeError, State
from kuhn_bridge.bridge import parse_information_state
from kuhn_bridge.rules import BETTING, DEALS
from tests.games import LEGAL

OBSERVATIONS = kuhn().observations


class Doubled(BaseFeaturesExtractor):
    """An extractor that no loader can know."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 10)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return 2 * observations


class Square(nn.Module):
    """An activation that no loader can know."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


def saved(
    path: Path, policy: Any = "MlpPolicy", algorithm: Any = MaskablePPO, **kwargs: Any
) -> Any:
    environment = SelfPlayVecEnv(8)
    made = algorithm(
        policy, environment, n_steps=2, batch_size=16, policy_kwargs=kwargs, device="cpu", seed=1
    )
    with torch.no_grad():  # far from uniform, so that a mistake shows
        for weight in made.policy.action_net.parameters():
            weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    made.save(path)
    return made


def sb3_probabilities(made: Any) -> np.ndarray:
    """What SB3 itself plays, illegal actions taken out."""
    with torch.no_grad():
        free = made.policy.get_distribution(torch.tensor(OBSERVATIONS)).distribution.probs
    legal = np.where(LEGAL, free.double().numpy(), 0)
    return legal / legal.sum(axis=1, keepdims=True)


NETWORKS = {
    "default": {},
    "relu": {"activation_fn": nn.ReLU, "net_arch": [32]},
    "deep": {"net_arch": {"pi": [16, 8, 4], "vf": [4]}, "activation_fn": nn.ELU},
    "prelu": {"activation_fn": nn.PReLU, "net_arch": [16]},  # an activation with weights
    "linear": {"net_arch": []},
    "table": {"net_arch": [], "features_extractor_class": CardTimesHistory},
}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_is_read_as_sb3_plays_it(tmp_path: Path, name: str, trust: bool) -> None:
    made = saved(tmp_path / "model.zip", **NETWORKS[name])
    policy = load_policy(tmp_path / "model.zip", trust=trust)
    assert np.abs(policy.table - sb3_probabilities(made)).max() < 1e-6
    network = load_model(tmp_path / "model.zip", trust=trust).network
    assert network(torch.zeros(5, 10)).shape == (5, 3)
    assert not network.training  # so that dropout, if there is any, is off


@pytest.mark.parametrize("trust", [False, True])
def test_plain_ppo_and_our_own_policy_class_are_read(tmp_path: Path, trust: bool) -> None:
    for policy, algorithm in (("MlpPolicy", PPO), (DistinctPolicy, MaskablePPO)):
        made = saved(tmp_path / "model.zip", policy, algorithm)
        read = load_policy(tmp_path / "model.zip", trust=trust)
        assert np.abs(read.table - sb3_probabilities(made)).max() < 1e-6


def test_every_command_that_reads_models_can_be_told_to_trust_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, hands = str(tmp_path / "model.zip"), ["--hands", "30"]
    saved(tmp_path / "model.zip", activation_fn=nn.Tanhshrink)  # on no list of ours
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr(play.Server, "serve_forever", lambda self: None)
    written = load_policy("uniform"), 0.0  # not in earnest: that takes seconds
    monkeypatch.setattr(export_onnx, "export", lambda *args: written)
    for command, arguments in (
        (nashconv, [path]),
        (evaluate, [path, "--against", "uniform", *hands]),
        (evaluate, ["uniform", "--against", path, *hands]),
        (simulate, [path, "uniform", *hands]),
        (dominance, [path, "--max", "1"]),
        (export_onnx, [path, "--json"]),
        (play, [path, "--terminal"]),
        (play, [path, "--no-open", "--port", "0"]),
    ):
        assert command.main(arguments) == 2
        assert "trust the file (--trust)" in capsys.readouterr().err
        assert command.main([*arguments, "--trust"]) == 0
        capsys.readouterr()


def test_a_network_is_asked_about_its_game() -> None:
    assert network_probabilities(nn.Linear(10, 3)).shape == (12, 3)
    assert network_probabilities(nn.Linear(30, 3), load_game("leduc_poker")).shape == (936, 3)


def test_the_likeliest_actions_can_be_read(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip")
    table = load_policy(tmp_path / "model.zip").table
    greedy = load_policy(str(tmp_path / "model.zip"), deterministic=True).table
    assert (greedy.argmax(axis=1) == table.argmax(axis=1)).all()
    assert set(greedy.flat) == {0.0, 1.0}


def test_observations_are_those_of_the_information_states() -> None:
    for row, name in enumerate(INFORMATION_STATES):
        card, letters = parse_information_state(name)
        seat = BETTING[letters].actor or 0
        state = State.new(*next(deal for deal in DEALS if deal[seat] is card))
        while state.letters != letters:
            follow = (state.act(action) for action in state.legal_actions)
            state = next(s for s in follow if letters.startswith(s.letters))
        assert (OBSERVATIONS[row] == state.observe(seat)).all()


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def rewritten(path: Path, change: dict[str, bytes]) -> Path:
    """A copy of a zip with some members replaced."""
    out = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change.get(name, old.read(name)))
    return out


def data_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("data"))


def test_a_strangers_zip_does_not_run_code(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip", net_arch=[4], activation_fn=nn.ReLU)
    data, mark = data_of(tmp_path / "model.zip"), tmp_path / "ran"
    for key in ("policy_class", "policy_kwargs", "observation_space", "action_space"):
        data[key][":serialized:"] = base64.b64encode(pickle.dumps(Bomb(mark))).decode()
    bad = rewritten(tmp_path / "model.zip", {"data": json.dumps(data).encode()})
    expected = load_policy(tmp_path / "model.zip")
    assert load_policy(bad) == expected  # all that is needed is plain text and tensors
    assert load_model(bad).game == kuhn()
    assert not mark.exists()
    with pytest.raises(BridgeError, match="SB3 cannot load it"):
        load_policy(bad, trust=True)
    assert mark.exists()  # so the bomb was live


def test_tensors_that_are_not_only_tensors_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip")
    mark, file = tmp_path / "ran", io.BytesIO()
    torch.save({"action_net.weight": Bomb(mark)}, file)
    bad = rewritten(tmp_path / "model.zip", {"policy.pth": file.getvalue()})
    with pytest.raises(BridgeError, match="--trust"):
        load_policy(bad)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"features_extractor_class": Doubled}, "Doubled"),
        ({"activation_fn": Square}, "Square"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused_unless_trusted(
    tmp_path: Path, kwargs: dict[str, Any], word: str
) -> None:
    made = saved(tmp_path / "model.zip", **kwargs)
    with pytest.raises(BridgeError, match=rf"{word}.*--trust"):
        load_policy(tmp_path / "model.zip")
    trusted = load_policy(tmp_path / "model.zip", trust=True)
    assert np.abs(trusted.table - sb3_probabilities(made)).max() < 1e-6


def test_a_policy_class_of_a_stranger_is_refused(tmp_path: Path) -> None:
    class Mine(DistinctPolicy):
        pass

    saved(tmp_path / "model.zip", Mine)
    with pytest.raises(BridgeError, match="policy class"):
        load_policy(tmp_path / "model.zip")


def test_a_trusted_network_that_cannot_be_run_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(network: nn.Module, game: object) -> None:
        raise RuntimeError("no such layer\nand more")

    saved(tmp_path / "model.zip", net_arch=[4])
    monkeypatch.setattr("algorithms.policies.sb3.network_probabilities", broken)
    with pytest.raises(BridgeError, match=r"its network cannot be run \(no such layer\)$"):
        load_policy(tmp_path / "model.zip", trust=True)


@pytest.mark.parametrize("trust", [False, True])
def test_bad_zips_get_one_clear_line(tmp_path: Path, trust: bool) -> None:
    good = tmp_path / "model.zip"
    made = saved(good)
    whole = good.read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zip").write_text("not a zip")
    with torch.no_grad():
        made.policy.action_net.weight[0, 0] = float("nan")
    made.save(tmp_path / "nan.zip")
    cartpole = PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu")
    cartpole.save(tmp_path / "cartpole.zip")
    words = {
        "missing.zip": "No such file",
        "cut.zip": "SB3",
        "text.zip": "SB3",
        "nan.zip": "not finite",
        "cartpole.zip": "another game",
    }
    for name, word in words.items():
        with pytest.raises(BridgeError, match=word) as caught:
            load_policy(tmp_path / name, trust=trust)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


def test_layers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "model.zip")
    for changes in (
        {"mlp_extractor.policy_net.2.weight": torch.zeros(64, 32)},
        {"mlp_extractor.policy_net.1.extra": torch.zeros(3)},
        {"log_std": torch.zeros(1)},
        {"action_net.weight": torch.zeros(4, 64)},
    ):
        with zipfile.ZipFile(tmp_path / "model.zip") as archive:
            tensors = torch.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)
        file = io.BytesIO()
        torch.save({**tensors, **changes}, file)
        with pytest.raises(BridgeError, match="cannot be rebuilt"):
            load_policy(rewritten(tmp_path / "model.zip", {"policy.pth": file.getvalue()}))


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_zip_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        whole = _zip_bytes()
        start = data.draw(st.integers(0, len(whole) - 1))
        junk = data.draw(st.binary(max_size=8))
        path = Path(folder) / "model.zip"
        path.write_bytes(whole[:start] + junk + whole[start + data.draw(st.integers(0, 16)) :])
        with suppress(BridgeError):
            load_policy(path)


@pytest.mark.parametrize(
    "key", ["policy_class", "policy_kwargs", "observation_space", "action_space"]
)
@pytest.mark.parametrize("value", [None, 3, [], "x", {"_shape": 3}, {"_shape": [11], "n": "x"}])
def test_a_changed_description_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    (tmp_path / "model.zip").write_bytes(_zip_bytes())
    data = data_of(tmp_path / "model.zip") | {key: value}
    bad = rewritten(tmp_path / "model.zip", {"data": json.dumps(data).encode()})
    if key != "policy_kwargs":
        with pytest.raises(BridgeError):
            load_policy(bad)
    else:  # nothing is said of the network: SB3's defaults
        assert load_policy(bad) == load_policy(tmp_path / "model.zip")


@cache
def _zip_bytes() -> bytes:
    """A small, whole model."""
    with TemporaryDirectory() as folder:
        saved(Path(folder) / "model.zip", net_arch=[4])
        return (Path(folder) / "model.zip").read_bytes()


def onnx_model(
    path: Path,
    *,
    mask: int | None = None,
    softmax: bool = False,
    size: int = 10,
    actions: int = 3,
    batch: str | int = "n",
) -> np.ndarray:
    """A linear ONNX policy; `mask` is the type of a mask input. Returns its weights."""
    weights = np.linspace(-1, 1, size * actions).reshape(size, actions).astype(np.float32)
    inputs = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [batch, size])]
    steps = [helper.make_node("MatMul", ["observation", "w"], ["raw"])]
    if mask is not None:
        inputs.append(helper.make_tensor_value_info("action_mask", mask, [batch, actions]))
        steps.append(helper.make_node("Cast", ["action_mask"], ["legal"], to=TensorProto.BOOL))
        steps.append(helper.make_node("Where", ["legal", "raw", "low"], ["masked"]))
    last = steps[-1].output[0]
    steps.append(helper.make_node("Softmax" if softmax else "Identity", [last], ["out"]))
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [batch, actions])
    constants = [
        helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel()),
        helper.make_tensor("low", TensorProto.FLOAT, (), [-1e9]),
    ]
    graph = helper.make_graph(steps, "policy", inputs, [output], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(made, path)
    return weights


@pytest.mark.parametrize("batch", ["n", 1])
@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("mask", [None, TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT8])
def test_onnx_policies_of_all_kinds_are_read(
    tmp_path: Path, mask: int, softmax: bool, batch: str | int
) -> None:
    weights = onnx_model(tmp_path / "policy.onnx", mask=mask, softmax=softmax, batch=batch)
    expected = np.where(LEGAL, np.exp(OBSERVATIONS @ weights), 0)
    expected /= expected.sum(axis=1, keepdims=True)
    policy = onnx_policy.load_policy(tmp_path / "policy.onnx")
    assert np.abs(policy.table - expected).max() < 1e-6


def test_bad_onnx_gets_one_clear_line(tmp_path: Path) -> None:
    onnx_model(tmp_path / "wide.onnx", size=4)
    onnx_model(tmp_path / "two.onnx", actions=2)
    onnx_model(tmp_path / "mask.onnx", size=3)
    (tmp_path / "text.onnx").write_text("not a model")
    words = {
        "wide": "10",
        "two": "no output",
        "mask": "no input is an observation",
        "text": "onnxruntime",
        "missing": "No such file",
    }
    for name, word in words.items():
        with pytest.raises(BridgeError, match=word) as caught:
            onnx_policy.load_policy(tmp_path / f"{name}.onnx")
        assert "\n" not in str(caught.value)


def with_tensors(path: Path, change: Callable[[Any], Any]) -> Path:
    """The model with its tensors changed."""
    with zipfile.ZipFile(path) as archive:
        stored = torch.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)
    file = io.BytesIO()
    torch.save(change(stored), file)
    return rewritten(path, {"policy.pth": file.getvalue()})


def with_module(path: Path, name: Any) -> Path:
    """The model with the module of its policy class changed."""
    data = data_of(path)
    data["policy_class"]["__module__"] = name
    return rewritten(path, {"data": json.dumps(data).encode()})


HIDDEN = "mlp_extractor.policy_net.0.weight"
ODD_MODELS: dict[str, Callable[[Path], Path]] = {
    "a class that is a list": lambda path: with_module(path, ["x"]),
    "keys that are numbers": lambda path: with_tensors(path, lambda t: dict(enumerate(t.values()))),
    "a tensor that unpacks to gigabytes": lambda path: with_tensors(
        path, lambda t: t | {HIDDEN: torch.zeros(1).expand(10_000, 40_000)}
    ),
    "logits beyond all numbers": lambda path: with_tensors(
        path, lambda t: t | {"action_net.weight": t["action_net.weight"] * 0 + 3e38}
    ),
}


@pytest.mark.parametrize("oddity", ODD_MODELS)
def test_odd_models_are_refused_in_one_line(tmp_path: Path, oddity: str) -> None:
    (tmp_path / "model.zip").write_bytes(_zip_bytes())
    path = ODD_MODELS[oddity](tmp_path / "model.zip")
    with pytest.raises(BridgeError, match=path.name) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)
