"""`algorithms.export_onnx`: from a saved model to one checked file, and back."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms import export_onnx
from algorithms.games import kuhn, load_game
from algorithms.policies import load_policy
from algorithms.policies.features import CardTimesHistory
from algorithms.policies.sb3 import load_model, network_probabilities
from kuhn_bridge import Policy, __version__
from tests.games import LEGAL


class Spaces(gymnasium.Env):
    """The shapes of the game, which is all that an untrained model needs."""

    observation_space = gymnasium.spaces.Box(0, 1, (10,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.zip"
    MaskablePPO("MlpPolicy", Spaces(), seed=3, device="cpu").save(path)
    return path


@pytest.fixture(scope="module")
def said(model: Path) -> str:
    """What the command says that exports the model to policy.onnx beside it."""
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(text):
        patch.chdir(model.parent)
        assert export_onnx.main([str(model)]) == 0
    return text.getvalue()


@pytest.fixture(scope="module")
def exported(model: Path, said: str) -> Path:
    return model.with_name("policy.onnx")


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_the_command_writes_a_file_that_plays_what_the_model_plays(
    model: Path, said: str, exported: Path
) -> None:
    assert "policy.onnx: " in said
    assert "NashConv" in said
    assert "differs from torch by" in said
    wanted = network_probabilities(load_model(model).network)
    assert np.abs(load_policy(str(exported)).table - wanted).max() < 1e-6


def test_json_prints_the_policy_alone_and_the_bytes_are_the_same_again(
    model: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.onnx"
    assert export_onnx.main([str(model), "--out", str(again), "--json"]) == 0
    policy = Policy.from_document(capsys.readouterr().out)
    assert np.abs(policy.table - load_policy(str(again)).table).max() < 1e-6
    assert again.read_bytes() == exported.read_bytes()


def test_the_contract_of_the_file(exported: Path) -> None:
    inputs = {i.name: (i.type, i.shape) for i in session(exported).get_inputs()}
    outputs = {o.name: (o.type, o.shape) for o in session(exported).get_outputs()}
    assert inputs == {
        "observation": ("tensor(float)", ["N", 10]),
        "action_mask": ("tensor(int8)", ["N", 3]),
    }
    assert outputs == {
        "probabilities": ("tensor(float)", ["N", 3]),
        "logits": ("tensor(float)", ["N", 3]),
    }
    proto = onnx.load(exported, load_external_data=False)
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", 18)]
    assert all(not tensor.external_data for tensor in proto.graph.initializer)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_any_batch_runs_and_illegal_actions_are_exactly_zero(exported: Path, size: int) -> None:
    rows = np.arange(size) % len(LEGAL)
    inputs = {name: array[rows] for name, array in export_onnx.states(kuhn()).items()}
    probabilities = session(exported).run(["probabilities"], inputs)[0]
    assert (probabilities[~LEGAL[rows]] == 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-6)


def test_who_may_do_nothing_does_nothing(exported: Path) -> None:
    inputs = export_onnx.states(kuhn()) | {"action_mask": np.zeros(LEGAL.shape, np.int8)}
    assert not session(exported).run(["probabilities"], inputs)[0].any()


def test_the_file_tells_of_itself_alone(exported: Path) -> None:
    proto = onnx.load(exported)
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert set(properties) == {"name", "version", "game", "actions", "nash_conv"}
    assert (properties["name"], properties["version"]) == ("kuhn-bridge-policy", __version__)
    assert properties["game"] == "kuhn"
    assert json.loads(properties["actions"]) == {"CHECK_OR_CALL": 0, "BET": 1, "FOLD": 2}
    measured = load_policy(str(exported)).nash_conv()
    assert float(properties["nash_conv"]) == pytest.approx(measured, abs=1e-6)
    assert (proto.producer_name, proto.graph.name) == ("kuhn-bridge", "policy")
    assert not any(node.metadata_props or node.doc_string for node in proto.graph.node)


def test_no_path_or_source_is_in_the_bytes(exported: Path) -> None:
    proto = onnx.load(exported)
    for tensor in proto.graph.initializer:
        tensor.ClearField("raw_data")  # weights may look like anything
    text = proto.SerializeToString().decode("latin-1")
    assert not re.search(r"[\w.-]*/[\w.-]+|\\\\|\.py\b|File |pytorch|torch\.", text)


@pytest.mark.parametrize("scale", [1.0, 300.0])  # and those who are very sure
def test_other_networks_go_too(tmp_path: Path, scale: float) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(CardTimesHistory(), nn.LazyLinear(3))
    network(torch.zeros(1, 10))
    with torch.no_grad():
        network[1].weight *= scale
    policy, difference = export_onnx.export(network, kuhn(), tmp_path / "policy.onnx")
    assert difference < 1e-6
    assert np.abs(policy.table - network_probabilities(network)).max() < 1e-6


def test_a_difference_or_an_illegal_action_is_seen() -> None:
    uniform = Policy.uniform("kuhn").table
    near, far, illegal = uniform.copy(), uniform.copy(), uniform.copy()
    near[0, 0] += 9e-7
    far[11, 2] -= 2e-6
    illegal[0, 2] = 1e-30

    def compared(table: np.ndarray, shift: float = 0.0) -> float:
        wanted = {"probabilities": uniform, "logits": uniform}
        got = {"probabilities": table, "logits": uniform + shift}
        return export_onnx.disagreement(wanted, got, kuhn())

    assert compared(near) == pytest.approx(9e-7)
    with pytest.raises(ValueError, match="differs from torch by 2e-06"):
        compared(far)
    with pytest.raises(ValueError, match="illegal"):
        compared(illegal)
    with pytest.raises(ValueError, match="nan"):
        compared(uniform * np.nan)
    with pytest.raises(ValueError, match="other logits"):
        compared(uniform, shift=1e-3)


def test_a_file_that_disagrees_never_takes_the_place(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "policy.onnx"
    out.write_bytes(b"the old one")
    wrong = {"probabilities": Policy.random("kuhn", 5).table}
    monkeypatch.setattr(export_onnx, "run_onnx", lambda path, game: wrong)
    assert export_onnx.main([str(model), "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"the old one"]


class LeducSpaces(gymnasium.Env):
    """The shapes of another game."""

    observation_space = gymnasium.spaces.Box(0, 1, (30,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)


def test_a_model_of_another_game_is_read_and_exported_as_one_of_that_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MaskablePPO("MlpPolicy", LeducSpaces(), seed=3, device="cpu")
    made.save(tmp_path / "unnamed.zip")
    made.game = "leduc_poker"
    made.save(tmp_path / "model.zip")
    leduc = load_game("leduc_poker")
    with torch.no_grad():
        seen, masks = torch.tensor(leduc.observations), leduc.tree.legal.copy()
        theirs = made.policy.get_distribution(seen, masks).distribution.probs.double().numpy()
    for path, options in (("model.zip", {}), ("unnamed.zip", {"game": leduc})):
        for trust in (False, True):
            policy = load_policy(tmp_path / path, trust=trust, **options)
            assert policy.game.name == "leduc_poker"
            assert np.abs(policy.table - theirs).max() < 1e-6
    out = tmp_path / "policy.onnx"
    assert export_onnx.main([str(tmp_path / "model.zip"), "--out", str(out)]) == 0
    assert "<Game leduc_poker, " in capsys.readouterr().out
    assert [i.shape for i in session(out).get_inputs()] == [["N", 30], ["N", 3]]
    read = load_policy(str(out))
    assert read.game.name == "leduc_poker"
    assert np.abs(read.table - policy.table).max() < 1e-6
    refused = [str(tmp_path / "model.zip"), "--game", "kuhn", "--out", str(tmp_path / "no.onnx")]
    assert export_onnx.main(refused) == 2
    assert "a model of leduc_poker, not of kuhn" in capsys.readouterr().err
    assert not (tmp_path / "no.onnx").exists()


def test_a_file_that_answers_by_its_neighbours_is_seen(exported: Path, tmp_path: Path) -> None:
    proto = onnx.load(exported)
    softmax = next(node for node in proto.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 0  # over the batch instead of the actions
    onnx.save(proto, tmp_path / "wrong.onnx")
    with pytest.raises(ValueError, match="alone and among others"):
        export_onnx.run_onnx(tmp_path / "wrong.onnx", kuhn())


def test_bad_input_is_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truncated = tmp_path / "truncated.zip"
    truncated.write_bytes(model.read_bytes()[:1000])
    for arguments, message in (
        (["missing.zip"], "missing.zip"),
        ([str(truncated)], "truncated.zip"),
        ([str(model), "--out", str(tmp_path / "no" / "policy.onnx")], "there is no directory"),
        ([str(model), "--out", str(tmp_path)], "is a directory"),
    ):
        assert export_onnx.main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
