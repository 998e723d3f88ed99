"""Models on a device that is not the CPU: they learn, and are measured."""

from pathlib import Path

import pytest
import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from algorithms.self_play.saving import save_model
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training, read_checkpoint
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv
from tests.pretended_device import DEVICE, PretendedDevice


def test_the_pretended_device_refuses_what_a_real_one_refuses() -> None:
    with PretendedDevice():
        there = torch.ones(3, device=DEVICE)
        here = torch.ones(3)
        assert there.device == DEVICE
        assert (there + there.to(DEVICE)).device == DEVICE
        assert (there.cpu() + here).device.type == "cpu"
        with pytest.raises(RuntimeError, match="on the CPU"):
            there + here
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        with pytest.raises(TypeError, match="float64"):
            there.double()
        module = torch.nn.Linear(3, 2).to(DEVICE)
        module(there).sum().backward()
        assert module.weight.grad is not None
        assert module.weight.grad.device == DEVICE
        with pytest.raises(RuntimeError, match="on the CPU"):
            module(here)
        assert module.cpu()(here).device.type == "cpu"


@pytest.mark.parametrize(
    ("game", "on"), [("kuhn", "tree"), ("leduc_poker", "tree"), ("leduc_poker", "states")]
)
def test_a_model_on_another_device_learns_and_is_measured(game: str, on: str) -> None:
    with PretendedDevice():
        env = SelfPlayVecEnv(32, game, on=on)
        model = MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=64, n_epochs=2, device=DEVICE)
        before = [weights.detach().cpu() for weights in model.policy.parameters()]
        callback = SelfPlay()
        model.learn(256, callback=callback)
        after = [weights.detach().cpu() for weights in model.policy.parameters()]
        assert all(weights.device == DEVICE for weights in model.policy.parameters())
        assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
        if on == "tree":
            policy = callback.last_policy
            assert policy.nash_conv() == pytest.approx(callback.curve[-1].last)


def test_a_module_on_another_device_is_measured() -> None:
    network = torch.nn.Linear(10, 3)
    here = kb.Policy.from_network(network, "kuhn").nash_conv()
    with PretendedDevice():
        there = kb.Policy.from_network(network.to(DEVICE), "kuhn").nash_conv()
    assert here == pytest.approx(there, abs=1e-6)


def test_a_network_on_another_device_plays_and_is_responded_to() -> None:
    game = "dark_hex(num_rows=4,num_cols=3)"
    size = kb.load_game(game).observation_size
    with PretendedDevice():
        network = torch.nn.Linear(size, 12).to(DEVICE)
        policy = kb.Policy.from_network(network, game)
        bound = policy.lower_bound(decisions=64, hands=1_000)
        assert bound.nash_conv_at_least >= 0


def test_opponents_may_be_on_another_device() -> None:
    network = torch.nn.Linear(10, 3)
    with PretendedDevice():
        policy = kb.Policy.from_network(network.to(DEVICE), "kuhn")
        env = SelfPlayVecEnv(32, "kuhn", opponents={1: policy})
        model = MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=64, device=DEVICE)
        model.learn(128)  # one seat is left: PPO alone learns to play it
        callback = SelfPlay()
        model.learn(128, callback=callback)
        assert kb.Policy.from_sb3(model).nash_conv() == pytest.approx(callback.curve[-1].last)


def test_training_runs_on_another_device(tmp_path: Path) -> None:
    settings = configure(
        {
            "game": "leduc_poker",
            "env": "states",
            "learner": "ppo",
            "steps": 256,
            "n_envs": 16,
            "n_steps": 8,
        }
    )
    path = tmp_path / "model.ckpt"
    with PretendedDevice():
        training = Training(settings, device="mps", checkpoint=path, checkpoint_every=1)
        training.run()
        assert next(training.model.policy.parameters()).device == DEVICE
        save_model(training, tmp_path / "model.zip", holds="average")
    saved = kb.load_policy(tmp_path / "model.zip")
    assert saved.nash_conv() == pytest.approx(training.recorder.points[-1].average, abs=1e-4)
    assert read_checkpoint(path)["steps"] > 0


@pytest.mark.parametrize(
    ("device", "env", "reason"),
    [
        ("cuda", "states", "finds no such device"),
        ("gpu", "states", "device='gpu'"),
        ("mps", "tree", "no effect on regrets"),
        ("mps", "states", "no effect on regrets"),
    ],
)
def test_devices_that_cannot_be_used_are_refused(device: str, env: str, reason: str) -> None:
    with pytest.raises(kb.BridgeError, match=reason):
        kb.train("leduc_poker", steps=64, n_envs=16, env=env, device=device)
