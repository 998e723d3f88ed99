"""`kuhn_bridge.train`: what the command does, in memory."""

import signal

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

import kuhn_bridge as kb
from algorithms import train_ppo
from kuhn_bridge.sb3 import SelfPlay
from tests.games import LEDUC


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("kuhn", {}),
        (LEDUC, {"net": "mlp", "width": 16}),
        (LEDUC, {"env": "states"}),
        (LEDUC, {"env": "states", "learner": "ppo"}),
    ],
)
def test_it_is_what_the_command_writes(game, options, tmp_path):
    settings = {"steps": 4_096, "n_envs": 64, "seed": 3, **options}
    policy, model, curve = kb.train(game, **settings)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    out = str(tmp_path / "model.zip")
    assert train_ppo.main(["--game", game, "--out", out, "--quiet", *flags]) == 0
    assert np.abs(policy.table - kb.load_policy(out).table).max() < 1e-6
    assert type(model) is MaskablePPO
    assert kb.Policy.from_sb3(model) == policy
    assert curve[-1].steps >= 4_096
    model.learn(512, callback=SelfPlay())  # and it goes on learning


class Count(BaseCallback):
    def _on_step(self) -> bool:
        return True


def test_own_networks_and_callbacks():
    count = Count()
    seen: list[int] = []
    policy, model, curve = kb.train(
        LEDUC,
        steps=2_048,
        n_envs=64,
        batch_size=128,
        policy_kwargs={"net_arch": [24], "activation_fn": nn.ReLU},
        callback=[count, lambda local, shared: seen.append(1) or True],
    )
    assert count.n_calls == len(seen) == 2_048 // 64
    assert model.policy.mlp_extractor.policy_net[0].out_features == 24
    assert curve[-1].last == pytest.approx(kb.Policy.from_sb3(model).nash_conv())
    assert policy.nash_conv() == pytest.approx(min(curve[-1].last, curve[-1].average))


class PressCtrlC(BaseCallback):
    def _on_step(self) -> bool:
        if self.n_calls == 20:
            signal.raise_signal(signal.SIGINT)
        return True


@pytest.mark.parametrize("options", [{}, {"policy_kwargs": {}}])
def test_ctrl_c_leaves_what_there_is(options):
    with pytest.warns(UserWarning, match="interrupted after"):
        policy, _, curve = kb.train(
            "kuhn", steps=10**9, n_envs=64, n_steps=4, callback=PressCtrlC(), points=0, **options
        )
    assert curve[-1].steps <= 64 * 24
    assert 0 < policy.nash_conv() < 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stps": 3}, "unknown setting 'stps': did you mean 'steps'"),
        ({"steps": "3"}, "steps='3': want a whole number"),
        ({"callback": 3}, "callback=3: it is not a callback"),
        ({"callback": SelfPlay()}, "train has its own SelfPlay"),
        ({"policy_kwargs": {}, "net": "table"}, "no effect with policy_kwargs"),
        ({"policy_kwargs": {}, "env": "aec"}, "want 'tree' or 'states'"),
    ],
)
def test_what_cannot_be_is_refused(options, reason):
    with pytest.raises(kb.BridgeError, match=reason):
        kb.train("kuhn", **options)


def test_a_game_that_no_network_can_play_has_no_model():
    """134 information sets, and 70 tensors."""
    policy, model, curve = kb.train("dark_hex(board_size=2)", steps=2_048, n_envs=64)
    assert model is None
    assert policy.nash_conv() == pytest.approx(min(curve[-1].last, curve[-1].average))
