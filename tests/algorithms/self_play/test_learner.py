"""Credit per seat, `SelfPlay` with stock models, and networks on states."""

from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

from algorithms.compiled.nashconv import nash_conv
from algorithms.games import load_game
from algorithms.policies import load_policy
from algorithms.self_play.advantages import UNKNOWN_NODE, LastStep, SeatRolloutBuffer
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.self_play.naive_ppo import TurnsEnv
from algorithms.self_play.saving import save_model
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training
from kuhn_bridge import BridgeError
from tests.games import LEDUC

KUHN = load_game("kuhn")
STOCK: dict[str, Any] = {"n_steps": 8, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3}
STOCK |= {"gamma": 1.0, "gae_lambda": 1.0, "device": "cpu"}


# --- the buffer ---------------------------------------------------------------------------------


class Scripted:
    """Steps of one hand after another in a single slot, as an environment would tell of them."""

    def __init__(self, script, players=2):
        self._script = script
        self.at = 0
        self._players = players

    def last_step(self):
        acted, returns = self._script[max(self.at - 1, 0)]
        seat = self._script[self.at][0] if self.at < len(self._script) else 0
        paid = np.array([returns or (0.0,) * self._players], np.float32)
        return LastStep(
            acted=np.array([acted]),
            returns=paid,
            ended=np.array([returns is not None]),
            seats=np.array([seat]),
            nodes=np.array([UNKNOWN_NODE]),
        )


def advantages_of(script, values, n_steps, rollouts=1, **options):
    """For each rollout the (value, advantage) of the decisions that are learned from, as lists."""
    env = Scripted(script)
    found = []
    spaces = SelfPlayVecEnv(1)
    options = {"gamma": 1.0, "n_envs": 1, "players": 2, "last_step": env.last_step} | options
    buffer = SeatRolloutBuffer(n_steps, spaces.observation_space, spaces.action_space, **options)
    for _ in range(rollouts):
        buffer.reset()
        for _ in range(n_steps):
            value = torch.tensor([values[env.at]])
            env.at += 1
            buffer.add(np.zeros((1, 10)), np.zeros((1, 1)), 0, 0, value, torch.zeros(1))
        last = torch.tensor([values[env.at] if env.at < len(values) else 0.0])
        buffer.compute_returns_and_advantage(last, np.zeros(1))
        batch = next(buffer.get())
        pairs = zip(batch.old_values.tolist(), batch.advantages.tolist(), strict=True)
        found.append([[round(number, 6) for number in pair] for pair in sorted(pairs)])
        assert torch.allclose(batch.returns, batch.old_values + batch.advantages)
    return found


HAND = [(0, None), (1, None), (0, None), (1, (2.0, -2.0))]  # seat 1 ends it, seat 0 wins 2
VALUES = [0.1, 0.2, 0.3, 0.4, 0.5]


def test_credit_follows_each_seats_own_decisions():
    (found,) = advantages_of(HAND, VALUES[:4], 4, gae_lambda=1.0)
    assert found == [[0.1, 2 - 0.1], [0.2, -2 - 0.2], [0.3, 2 - 0.3], [0.4, -2 - 0.4]]


def test_gamma_and_lambda_count_a_seats_own_decisions():
    (found,) = advantages_of(HAND, VALUES[:4], 4, gamma=0.5, gae_lambda=0.5)
    assert found[0][1] == pytest.approx(0.5 * 0.3 - 0.1 + 0.25 * (2 - 0.3))
    assert found[1][1] == pytest.approx(0.5 * 0.4 - 0.2 + 0.25 * (-2 - 0.4))


def test_a_decision_whose_outcome_is_open_is_carried_over():
    # Two rollouts of two steps: at the cut seat 0 is to act, with value 0.3; seat 1's waits.
    first, second = advantages_of([*HAND, (0, None)], VALUES, 2, 2, gae_lambda=1.0)
    assert first == [[0.1, 0.2]]
    assert second == [[0.2, -2 - 0.2], [0.3, 2 - 0.3], [0.4, -2 - 0.4]]


def test_a_decision_is_carried_over_as_long_as_it_takes():
    script = [(0, None), *[(1, None)] * 5, (0, (1.0, -1.0)), (0, None)]
    advantages = advantages_of(script, [0.1 * i for i in range(8)], 2, 3, gae_lambda=1.0)
    assert sum(map(len, advantages)) == 5  # all but seat 1's last, whose outcome is open
    assert [0.0, 0.6] in advantages[2]  # seat 0's first: it acts next


def test_a_rollout_in_which_nothing_is_known_yet_is_a_batch_all_the_same():
    advantages = advantages_of([(0, None), (1, None), (0, None)], VALUES[:3], 1)
    assert advantages == [[[0.1, 0.0]]]


def test_batches_are_of_about_equal_size():
    model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(50), n_steps=10, batch_size=64, device="cpu")
    callback = SelfPlay()
    model.learn(500, callback=callback)
    buffer = callback._buffer
    sizes = [len(batch.actions) for batch in buffer.get(64)]
    assert sum(sizes) == buffer.in_update.sum()
    assert max(sizes) - min(sizes) <= 1
    assert 50 <= min(sizes) <= 80


# --- SelfPlay() ---------------------------------------------------------------------------------


def trained(**settings):
    made = Training(configure(settings))
    made.run()
    return made


def learn(env, callback, steps, **options):
    model = MaskablePPO("MlpPolicy", env, seed=0, **{**STOCK, **options})
    return model.learn(steps, callback=callback)


def test_stock_ppo_learns_and_is_left_as_it_was():
    """The uniform policy has 0.917. The network follows the average."""
    env = SelfPlayVecEnv(256)
    callback = SelfPlay()
    model = learn(env, callback, 40_000)
    assert callback.curve[0].last > 0.8
    assert callback.curve[-1].average < 0.15
    assert callback.curve[-1].last < 0.25
    assert nash_conv(KUHN.tree, callback.learner.last) == pytest.approx(callback.curve[-1].last)
    assert model.ent_coef == 0
    assert not model.policy.action_net._forward_hooks
    assert type(model.rollout_buffer).__name__ == "MaskableRolloutBuffer"
    assert env.guarded


@pytest.mark.parametrize(
    "make",
    [
        lambda: DummyVecEnv([SelfPlayEnv] * 4),
        lambda: SelfPlayVecEnv(4, LEDUC, on="states"),
        lambda: SelfPlayVecEnv(4, "kuhn_poker(players=3)"),
        lambda: SelfPlayVecEnv(4, "phantom_ttt"),
    ],
)
def test_every_self_play_environment_can_be_learned_on(make):
    callback = SelfPlay()
    learn(make(), callback, 128, n_steps=16, batch_size=16)
    assert [point.steps for point in callback.curve] == [0, 64, 128]


class Changed(VecEnvWrapper):
    """An environment whose observations go through a function."""

    def __init__(self, env, change):
        super().__init__(env)
        self._change = change

    def reset(self):
        return self._change(self.venv.reset())

    def step_wait(self):
        observations, *others = self.venv.step_wait()
        return self._change(observations), *others


def test_a_strange_observation_is_refused_and_a_negative_zero_is_a_zero():
    with pytest.raises(BridgeError, match="no decision of this game has"):
        learn(Changed(SelfPlayVecEnv(64), lambda seen: 2 * seen), SelfPlay(), 512)
    signed = Changed(SelfPlayVecEnv(64), lambda seen: np.where(seen, seen, np.float32(-0.0)))
    learn(signed, SelfPlay(), 512)


def test_self_play_needs_an_environment_of_its_own():
    model = MaskablePPO("MlpPolicy", DummyVecEnv([TurnsEnv]), n_steps=8, batch_size=8)
    with pytest.raises(BridgeError, match="SelfPlayVecEnv"):
        model.learn(8, callback=SelfPlay())


@pytest.mark.parametrize(("given", "end"), [(None, 0.1), (0.02, 0.02)])
def test_on_states_the_entropy_weight_falls_only_if_its_end_is_given(given, end):
    """Also if the model has the weight that `train_ppo` begins with."""
    env = SelfPlayVecEnv(16, LEDUC, on="states")
    callback = SelfPlay(ent_coef_end=given)
    learn(env, callback, 64, ent_coef=0.1, n_steps=2, batch_size=32)
    assert callback.learner.before_rollout(0.0) == pytest.approx(0.1)
    assert callback.learner.before_rollout(1.0) == pytest.approx(end)


def test_a_game_without_a_tree_is_measured_by_what_is_given():
    seen: list[Any] = []

    def measure(network):
        seen.append(network(torch.zeros(1, 110)).shape)
        return 0.5

    callback = SelfPlay(measure=measure)
    learn(SelfPlayVecEnv(4, "phantom_ttt"), callback, 64)
    assert callback.curve[-1].last == callback.curve[-1].average == 0.5
    assert set(seen) == {(1, 9)}


def test_a_saved_model_goes_on_learning_the_sb3_way(tmp_path):
    path = tmp_path / "model.zip"
    first = trained(steps=1_000_000)
    save_model(first, path, holds="average")
    before = load_policy(path).nash_conv()
    model = MaskablePPO.load(path, env=SelfPlayVecEnv(1024), device="cpu")
    callback = SelfPlay()
    model.learn(300_000, callback=callback)
    assert callback.curve[0].last == pytest.approx(before, abs=1e-5)
    assert callback.curve[-1].last < max(1.2 * before, 0.012)
    assert np.abs(callback.learner.last - first.learner.average).max() > 1e-3  # and it does learn
    model.save(tmp_path / "more.zip")
    again = load_policy(tmp_path / "more.zip")
    assert again.nash_conv() == pytest.approx(callback.curve[-1].last, abs=1e-5)
