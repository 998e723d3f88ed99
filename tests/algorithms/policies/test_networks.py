"""Models from files and functions: what they play."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from algorithms import dominance, evaluate, export_onnx, nashconv, play, simulate
from algorithms.games import kuhn, load_game
from algorithms.policies import network as network_module
from algorithms.policies import onnx_writer
from algorithms.policies.network import as_network, network_table
from kuhn_bridge import BridgeError
from tests.models import (
    Spaces,
    cast,
    given,
    graph,
    load_model,
    node,
    played,
    save_model,
    sound_zip,
    with_data,
)

LEDUC = "leduc_poker"
OBSERVATIONS = kuhn().observations
LEGAL = kuhn().tree.legal


class Doubled(BaseFeaturesExtractor):
    """A features extractor that is on no list."""

    def __init__(self, space):
        super().__init__(space, 10)

    def forward(self, observations):
        return 2 * observations


class OtherPolicy(MaskableActorCriticPolicy):
    """A policy class that is on no list."""


def masked(weights, legal=LEGAL):
    allowed = np.where(legal, weights, 0)
    return allowed / allowed.sum(axis=1, keepdims=True)


def sb3_probabilities(made, game=None):
    """What SB3 itself plays."""
    game = game or kuhn()
    with torch.no_grad():
        seen = torch.tensor(game.network_inputs(made.observation_space.shape[0]))
        free = made.policy.get_distribution(seen).distribution.probs
    return masked(free.double().numpy(), game.tree.legal)


NETWORKS: dict[str, dict[str, Any]] = {
    "default": {},
    "relu": {"activation_fn": nn.ReLU, "net_arch": [32]},
    "deep": {"net_arch": {"pi": [16, 8, 4], "vf": [4]}, "activation_fn": nn.ELU},
    "an activation with weights": {"activation_fn": nn.PReLU, "net_arch": [16]},
    "linear": {"net_arch": []},
    "plain PPO": {"algorithm": PPO},
}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_plays_as_it_does_in_sb3(tmp_path, name, trust):
    made = save_model(tmp_path / "model.zip", **NETWORKS[name])
    assert (
        np.abs(played(tmp_path / "model.zip", trust=trust) - sb3_probabilities(made)).max() < 1e-6
    )
    network, game = load_model(tmp_path / "model.zip", trust=trust)
    assert (network.input_size, network.num_actions, game) == (10, 3, kuhn())
    assert not network.module.training  # so that dropout, if there is any, is off


@pytest.mark.parametrize("size", [30, 32])
@pytest.mark.parametrize("trust", [False, True])
def test_the_input_size_says_whether_a_network_gets_the_seat(tmp_path, size, trust):
    made = save_model(tmp_path / "model.zip", spaces=Spaces(size), game=LEDUC)
    leduc = load_game(LEDUC)
    wanted = sb3_probabilities(made, leduc)
    assert np.abs(played(tmp_path / "model.zip", trust=trust) - wanted).max() < 1e-6
    assert np.abs(network_table(nn.Linear(size, 3), leduc).sum(axis=1) - 1).max() < 1e-12


@pytest.mark.parametrize("trust", [False, True])
def test_a_network_of_another_size_is_one_line_with_both_sizes_that_fit(tmp_path, trust):
    sizes = "10 inputs, or 12 with a one-hot of the seat, and 3 actions"
    for name, spaces in (("inputs", Spaces(11)), ("actions", Spaces(actions=4))):
        path = tmp_path / f"{name}.zip"
        save_model(path, spaces=spaces)
        with pytest.raises(BridgeError, match=rf"{name}.zip: a model for another game: .*{sizes}"):
            played(path, trust=trust)
    with pytest.raises(BridgeError, match=r"cannot be called with 10 inputs.* nor with 12"):
        network_table(nn.Linear(11, 3), kuhn())
    with pytest.raises(BridgeError, match=r"has shape \(12, 4\); want \(12, 3\)"):
        network_table(nn.Linear(10, 4), kuhn())


@pytest.mark.parametrize("output", ["logits", "probabilities"])
def test_a_network_can_be_any_function(output, monkeypatch):
    weights = np.linspace(0.1, 1, 30, dtype=np.float32).reshape(10, 3)
    products = OBSERVATIONS @ weights
    wanted = masked(np.exp(products) if output == "logits" else products)
    for size in (network_module.BATCH, 5):  # the last of three batches has 2 rows
        monkeypatch.setattr(network_module, "BATCH", size)
        network = as_network(lambda seen: seen @ weights, kuhn(), output=output)  # type: ignore[arg-type]
        table = network_table(network, kuhn())
        assert np.abs(table - wanted).max() < 1e-6


def test_a_model_of_a_game_without_a_tree_is_read_without_one(tmp_path):
    large = "phantom_ttt"
    save_model(tmp_path / "model.zip", spaces=Spaces(110, 9), game=large)
    network, game = load_model(tmp_path / "model.zip")
    assert (network.input_size, game.name) == (110, large)
    legal = np.ones((7, 9), np.bool_)
    legal[:, 3] = False
    table = network.probabilities(np.zeros((7, 110), np.float32), legal)
    assert (table[:, 3] == 0).all()
    assert table.sum(axis=1) == pytest.approx(1)


def test_a_file_names_its_game(tmp_path):
    path = with_data(tmp_path / "named.zip", game="kuhn")
    assert (played(path) == played(path, kuhn())).all()
    with pytest.raises(BridgeError, match=rf"named.zip: a policy of kuhn, not of {LEDUC}$"):
        played(path, load_game(LEDUC))
    with pytest.raises(BridgeError, match=r"named.zip: a model for another game"):
        played(with_data(path, game=LEDUC))
    with pytest.raises(BridgeError, match=r"named.zip: unknown game 'no_such_game'"):
        played(with_data(path, game="no_such_game"))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"features_extractor_class": Doubled}, "Doubled"),
        ({"activation_fn": nn.Tanhshrink}, "Tanhshrink"),
        ({"policy": OtherPolicy}, "a policy class from 'tests.algorithms.policies.test_networks'"),
    ],
)
def test_what_cannot_be_rebuilt_needs_trust(tmp_path, options, word):
    made = save_model(tmp_path / "model.zip", **options)
    with pytest.raises(BridgeError, match=rf"{word}.*if you trust the file .trust=True"):
        load_model(tmp_path / "model.zip")
    trusted = played(tmp_path / "model.zip", trust=True)
    assert np.abs(trusted - sb3_probabilities(made)).max() < 1e-6


def test_every_command_that_reads_models_can_trust_one(tmp_path, monkeypatch, capsys):
    path = str(tmp_path / "model.zip")
    hands = ["--hands", "30"]
    save_model(tmp_path / "model.zip", activation_fn=nn.Tanhshrink)  # not on the list
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr(play.Server, "serve_forever", lambda self: None)
    monkeypatch.setattr(onnx_writer, "export", lambda *args: 0.0)  # which takes seconds
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
        assert "if you trust the file" in capsys.readouterr().err
        assert command.main([*arguments, "--trust"]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("trust", [False, True])
def test_bad_zips_are_one_clear_line(tmp_path, trust):
    whole = sound_zip()
    (tmp_path / "truncated.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zip").write_text("not a zip")
    made = MaskablePPO("MlpPolicy", Spaces(), device="cpu")
    with torch.no_grad():
        made.policy.action_net.weight[0, 0] = float("nan")
    made.save(tmp_path / "nan.zip")
    words = {"missing": "No such file", "truncated": "SB3", "text": "SB3", "nan": "not finite"}
    for name, word in words.items():
        with pytest.raises(BridgeError, match=rf"{name}.zip: .*{word}") as caught:
            played(tmp_path / f"{name}.zip", trust=trust)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("batch", ["n", 1, 5])
@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("mask", [None, TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT8])
@pytest.mark.parametrize("trust", [False, True])
def test_onnx_policies_of_all_kinds_are_read(tmp_path, mask, softmax, batch, trust):
    inputs = []
    steps = []
    last = "raw"
    if mask is not None:
        inputs = [given("action_mask", batch, 3, kind=mask)]
        steps = [cast("action_mask", TensorProto.BOOL, "legal")]
        steps += [node("Where", "legal", "raw", "low", to="masked")]
        last = "masked"
    path = graph(
        tmp_path / "policy.onnx",
        *steps,
        node("Softmax" if softmax else "Identity", last),
        inputs=inputs,
        constants=[helper.make_tensor("low", TensorProto.FLOAT, (), [-1e9])],
        batch=batch,
    )
    weights = np.linspace(-1, 1, 30).reshape(10, 3)
    assert np.abs(played(path, trust=trust) - masked(np.exp(OBSERVATIONS @ weights))).max() < 1e-6


def test_an_onnx_file_gets_the_mask_of_each_row(tmp_path):
    """With all actions allowed, those that are legal here would have probability 0."""
    path = graph(
        tmp_path / "policy.onnx",
        node("Mul", "raw", "large", to="sure"),
        node("Where", "action_mask", "sure", "low", to="masked"),
        node("Softmax", "masked"),
        inputs=[given("action_mask", "n", 3, kind=TensorProto.BOOL)],
        constants=[
            helper.make_tensor("large", TensorProto.FLOAT, (3,), [1, 1, 1e4]),
            helper.make_tensor("low", TensorProto.FLOAT, (), [-1e9]),
        ],
    )
    scaled = OBSERVATIONS @ np.linspace(-1, 1, 30).reshape(10, 3) * [1, 1, 1e4]
    allowed = np.where(LEGAL, scaled, -np.inf)
    wanted = masked(np.exp(allowed - allowed.max(axis=1, keepdims=True)))
    assert np.abs(played(path) - wanted).max() < 1e-6


def test_an_onnx_file_names_its_game_and_its_output(tmp_path):
    logits = node("Identity", "raw", to="logits")
    names = ["a", "logits"]
    doubled = node("Add", "raw", "raw", to="a")
    same = node("Identity", "raw", to="a")
    path = graph(tmp_path / "named.onnx", doubled, logits, outputs=names)
    first = graph(tmp_path / "first.onnx", same, logits, outputs=names)
    assert (played(path) == played(first)).all()
    path = graph(tmp_path / "named.onnx", game="kuhn")
    with pytest.raises(BridgeError, match=f"a policy of kuhn, not of {LEDUC}"):
        played(path, load_game(LEDUC))
    seat = played(graph(tmp_path / "seat.onnx", size=12))  # the observation and the seat
    assert not np.allclose(seat, played(path))


def test_bad_onnx_is_one_clear_line(tmp_path):
    (tmp_path / "text.onnx").write_text("not a model")
    words = {
        graph(tmp_path / "size.onnx", size=4): "4 inputs and 3 actions; kuhn has 10 inputs, or 12",
        graph(tmp_path / "two.onnx", actions=2): "10 inputs and 2 actions",
        graph(tmp_path / "inputs.onnx", inputs=[given("more", "n", 7)]): "want one observation",
        graph(tmp_path / "flat.onnx", node("Squeeze", "raw"), actions=1): "no output is",
        graph(tmp_path / "nan.onnx", node("Log", "raw")): "the model's output is not finite",
        tmp_path / "text.onnx": "onnxruntime cannot run it",
        tmp_path / "missing.onnx": "No such file",
    }
    for path, word in words.items():
        with pytest.raises(BridgeError, match=rf"{path.name}: .*{word}") as caught:
            played(path)
        assert "\n" not in str(caught.value)
