"""`algorithms.export_onnx`: from a saved model to one checked file, and back."""

import io
import json
import re
from contextlib import redirect_stdout

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from algorithms import export_onnx, nashconv
from algorithms.compiled.nashconv import nash_conv
from algorithms.games import kuhn, load_game
from algorithms.policies import onnx_writer
from algorithms.policies.network import network_table
from kuhn_bridge import __version__
from tests.models import Spaces, load_model, played, save_model

LEGAL = kuhn().tree.legal


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.zip"
    save_model(path)
    return path


@pytest.fixture(scope="module")
def printed(model):
    """The output of the command that writes policy.onnx beside the model."""
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(text):
        patch.chdir(model.parent)
        assert export_onnx.main([str(model)]) == 0
    return text.getvalue()


@pytest.fixture(scope="module")
def exported(model, printed):
    return model.with_name("policy.onnx")


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_the_command_writes_a_file_that_plays_what_the_model_plays(model, printed, exported):
    assert re.match(r"policy.onnx: .*NashConv.*differs from torch by", printed)
    assert np.abs(played(exported) - played(model)).max() < 1e-6


def test_json_prints_the_policy_alone_and_the_bytes_are_the_same_again(
    model, exported, tmp_path, capsys
):
    again = tmp_path / "again.onnx"
    assert export_onnx.main([str(model), "--out", str(again), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["policy"]
    assert printed["2b"]["FOLD"] == pytest.approx(played(again)[kuhn().tree.keys.index("2b"), 2])
    assert again.read_bytes() == exported.read_bytes()


def test_the_contract_of_the_file(exported):
    one = session(exported)
    found = {x.name: (x.type, x.shape) for x in (*one.get_inputs(), *one.get_outputs())}
    assert found == {
        "observation": ("tensor(float)", ["N", 10]),
        "action_mask": ("tensor(int8)", ["N", 3]),
        "probabilities": ("tensor(float)", ["N", 3]),
        "logits": ("tensor(float)", ["N", 3]),
    }
    proto = onnx.load(exported, load_external_data=False)
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", 18)]
    assert all(not tensor.external_data for tensor in proto.graph.initializer)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_any_batch_runs_and_illegal_actions_are_exactly_zero(exported, size):
    rows = np.arange(size) % len(LEGAL)
    every = onnx_writer.example_inputs(kuhn())._asdict()
    inputs = {name: array[rows] for name, array in every.items()}
    probabilities = session(exported).run(["probabilities"], inputs)[0]
    assert (probabilities[~LEGAL[rows]] == 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-6)
    nothing = inputs | {"action_mask": np.zeros((size, 3), np.int8)}
    assert not session(exported).run(["probabilities"], nothing)[0].any()


def test_the_metadata_is_that_of_the_contract(exported):
    proto = onnx.load(exported)
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    measured = float(properties.pop("nash_conv"))
    assert measured == pytest.approx(nash_conv(kuhn().tree, played(exported)), abs=1e-6)
    assert json.loads(properties.pop("actions")) == {"CHECK_OR_CALL": 0, "BET": 1, "FOLD": 2}
    assert properties == {"name": "kuhn-bridge-policy", "version": __version__, "game": "kuhn"}
    assert (proto.producer_name, proto.graph.name) == ("kuhn-bridge", "policy")
    assert not any(node.metadata_props or node.doc_string for node in proto.graph.node)


def test_no_path_or_source_is_in_the_bytes(exported):
    proto = onnx.load(exported)
    for tensor in proto.graph.initializer:
        tensor.ClearField("raw_data")  # weights may look like anything
    text = proto.SerializeToString().decode("latin-1")
    assert not re.search(r"[\w.-]*/[\w.-]+|\\\\|\.py\b|File |pytorch|torch\.", text)


@pytest.mark.parametrize("scale", [1.0, 300.0])  # with large logits too
def test_any_torch_module_can_be_exported(tmp_path, scale):
    torch.manual_seed(1)
    module = nn.Linear(12, 3)  # the observation and the seat
    with torch.no_grad():
        module.weight *= scale
    assert onnx_writer.export(module, kuhn(), tmp_path / "policy.onnx") < 1e-6
    assert np.abs(played(tmp_path / "policy.onnx") - network_table(module, kuhn())).max() < 1e-6
    with pytest.raises(ValueError, match="only torch modules"):
        onnx_writer.export(lambda seen: seen[:, :3], kuhn(), tmp_path / "policy.onnx")


def test_a_model_of_a_game_without_a_tree_can_be_exported(tmp_path):
    path = tmp_path / "model.zip"
    out = tmp_path / "policy.onnx"
    save_model(path, spaces=Spaces(110, 9), game="phantom_ttt")
    assert export_onnx.main([str(path), "--out", str(out)]) == 0
    proto = onnx.load(out)
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert set(properties) == {"name", "version", "game"}
    first = load_model(path)[0]
    second = load_model(out)[0]
    inputs = np.random.default_rng(1).random((50, 110), np.float32)
    legal = np.ones((50, 9), np.bool_)
    difference = first.probabilities(inputs, legal) - second.probabilities(inputs, legal)
    assert np.abs(difference).max() < 1e-6
    again = tmp_path / "again.onnx"
    assert export_onnx.main([str(path), "--out", str(again), "--json"]) == 2
    assert not again.exists()


def test_an_exported_model_of_a_native_game_is_measured_like_the_model(tmp_path, capsys):
    path = tmp_path / "model.zip"
    out = tmp_path / "policy.onnx"
    game = load_game("dark_hex(num_rows=2,num_cols=4)")
    save_model(path, spaces=Spaces(game.observation_size + 2, 8), game=game.name)
    assert export_onnx.main([str(path), "--out", str(out)]) == 0
    capsys.readouterr()
    assert nashconv.main([str(path), str(out), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["nash_conv"] == pytest.approx(second["nash_conv"], abs=1e-6)


def test_a_difference_or_an_illegal_action_is_seen():
    inputs = onnx_writer.example_inputs(kuhn())
    uniform = kuhn().tree.uniform()
    near = uniform.copy()
    near[0, 0] += 9e-7
    far = uniform.copy()
    far[11, 2] -= 2e-6
    illegal = uniform.copy()
    illegal[0, 2] = 1e-30

    def compared(table, shift=0.0):
        of_torch = onnx_writer.Outputs(probabilities=uniform, logits=uniform)
        exported = onnx_writer.Outputs(probabilities=table, logits=uniform + shift)
        return onnx_writer.disagreement(of_torch, exported, inputs)

    assert compared(near) == pytest.approx(9e-7)
    for table, shift, message in (
        (far, 0, "differs from torch by 2e-06"),
        (illegal, 0, "illegal"),
        (uniform * np.nan, 0, "nan"),
        (uniform, 1e-3, "other logits"),
    ):
        with pytest.raises(ValueError, match=message):
            compared(table, shift)


def test_a_file_that_disagrees_with_torch_is_not_written(model, tmp_path, monkeypatch, capsys):
    out = tmp_path / "policy.onnx"
    out.write_bytes(b"the old one")
    random = kuhn().tree.random(5)
    wrong = onnx_writer.Outputs(probabilities=random, logits=random)
    monkeypatch.setattr(onnx_writer, "run_onnx", lambda path, inputs: wrong)
    assert export_onnx.main([str(model), "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"the old one"]


def test_a_model_of_another_game_is_exported_with_its_sizes(tmp_path, capsys):
    path = tmp_path / "model.zip"
    out = tmp_path / "policy.onnx"
    save_model(path, spaces=Spaces(30), game="leduc_poker")
    assert export_onnx.main([str(path), "--out", str(out)]) == 0
    assert "<Game leduc_poker, " in capsys.readouterr().out
    assert [i.shape for i in session(out).get_inputs()] == [["N", 30], ["N", 3]]
    assert load_model(out)[1] is load_game("leduc_poker")
    assert np.abs(played(out) - played(path)).max() < 1e-6
    assert export_onnx.main([str(path), "--game", "kuhn", "--out", str(tmp_path / "no.onnx")]) == 2
    assert "model.zip: a policy of leduc_poker, not of kuhn" in capsys.readouterr().err
    assert not (tmp_path / "no.onnx").exists()


def test_an_output_that_depends_on_other_rows_is_seen(exported, tmp_path):
    proto = onnx.load(exported)
    softmax = next(node for node in proto.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 0  # over the batch instead of the actions
    onnx.save(proto, tmp_path / "wrong.onnx")
    with pytest.raises(ValueError, match="another output alone than in a batch"):
        onnx_writer.run_onnx(tmp_path / "wrong.onnx", onnx_writer.example_inputs(kuhn()))


def test_bad_input_is_one_line(model, tmp_path, capsys):
    truncated = tmp_path / "truncated.zip"
    truncated.write_bytes(model.read_bytes()[:1000])
    folder = tmp_path / "folder.onnx"
    folder.mkdir()
    for arguments, message in (
        (["missing.zip"], "missing.zip"),
        ([str(truncated)], "truncated.zip"),
        ([str(model), "--out", str(tmp_path / "no" / "policy.onnx")], "there is no directory"),
        ([str(model), "--out", str(tmp_path)], "give a name that ends in .onnx"),
        ([str(model), "--out", str(folder)], "is a directory"),
    ):
        assert export_onnx.main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
