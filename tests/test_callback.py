"""`SelfPlay` on stock PPO: it seats, steers, averages and measures; and models go on learning."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common import logger
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from algorithms.exact.kuhn import nash
from algorithms.exact.values import (
    evaluate_policy,
    joint_policy,
    nash_conv,
    reach_probabilities,
    returns_std,
)
from algorithms.games import load_game
from algorithms.learning import building
from algorithms.learning.average import Average
from algorithms.learning.callback import Measure, SelfPlay
from algorithms.learning.recipes import configure
from algorithms.learning.selfplay import SelfPlayEnv, SelfPlayVecEnv
from algorithms.learning.steering import RowsAtOnce, SampleBySample, Steering
from algorithms.learning.training import Training
from algorithms.learning.tutorial import TurnsEnv
from algorithms.policies import load_policy
from kuhn_bridge import BridgeError

KUHN = load_game("kuhn")
STOCK = {"n_steps": 8, "batch_size": 512, "gamma": 1.0, "gae_lambda": 1.0, "n_epochs": 4}
STOCK |= {"learning_rate": 1e-3}


def trained(**settings) -> Training:
    made = Training(configure(settings))
    made.run()
    return made


def test_the_average_of_two_policies_plays_like_one_of_them_drawn_for_the_whole_hand() -> None:
    tree = load_game("leduc_poker").tree
    one, two, other = (tree.random(seed) for seed in range(3))
    average = Average(tree)
    for policy in (one, two):
        average.add(policy)
    won = [
        evaluate_policy(tree, joint_policy(tree, [mine, other])).values[0] for mine in (one, two)
    ]
    mixed = evaluate_policy(tree, joint_policy(tree, [average.mean, other])).values[0]
    assert mixed == pytest.approx((won[0] + 4 * won[1]) / 5)  # the t-th counts t² times
    assert reach_probabilities(tree, one).min() > 0


def test_a_row_that_was_never_arrived_at_is_uniform_in_the_average() -> None:
    average, never = Average(KUHN.tree), KUHN.tree.uniform()
    never[:3] = [1, 0, 0]  # never bets, but after a check it is asked again
    average.add(never)
    assert (average.mean == never).all()
    bets = KUHN.tree.uniform()
    bets[:3] = [0, 1, 0]  # so it never has to answer a bet after its own check
    average = Average(KUHN.tree)
    average.add(bets)
    assert (average.mean[9:] == KUHN.tree.uniform()[9:]).all()


def test_an_average_goes_on_from_its_state() -> None:
    one, other = Average(KUHN.tree), Average(KUHN.tree)
    one.add(KUHN.tree.random(0))
    other.set_state(one.get_state())
    for average in (one, other):
        average.add(KUHN.tree.random(1))
    assert np.array_equal(one.mean, other.mean)
    assert one.count == other.count == 2


def test_models_are_built_as_configured(tmp_path: Path) -> None:
    common = {"vf_coef": 0.7, "seed": 5, "n_steps": 2, "n_envs": 8}
    usual = {"recipe": "tutorial", "lr": 0.1, "entropy": 0.3}
    network = {"net": "mlp", "width": 24, "fit": 3, "fit_lr": 0.5}
    models = [
        building.build(configure({**settings, **common}), tensorboard=tmp_path)
        for settings in (usual, network)
    ]
    for model in models:
        assert (model.vf_coef, model.seed, model.n_steps, model.n_envs) == (0.7, 5, 2, 8)
        assert model.tensorboard_log == str(tmp_path)
    assert (models[0].learning_rate, models[0].ent_coef) == (0.1, 0.3)
    assert (models[1].policy.net_arch, models[1].n_epochs) == ([24, 24], 3)
    assert [models[1].lr_schedule(left) for left in (1, 0)] == pytest.approx([0.5, 0.15])


def begun(callback: Measure, **settings) -> MaskablePPO:
    """A small stock model, about to learn with the callback."""
    options = {"n_steps": 2, "batch_size": 16, "device": "cpu", **settings}
    model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(8), **options)
    model.set_logger(logger.configure(None, []))
    callback.init_callback(model)
    callback.on_training_start({}, {})
    return model


@pytest.mark.parametrize("normalised", [False, True])
def test_steps_the_magnet_and_its_pull_follow_their_schedules(normalised: bool) -> None:
    callback = SelfPlay(step=2.0, entropy=(0.4, 0.1), magnet=0.1)
    model = begun(callback, normalize_advantage=normalised)
    unit = 1.0 if normalised else returns_std(KUHN.tree, KUHN.tree.uniform())
    for done, left, pull in ((0.0, 1.0, 0.4), (0.5, 0.51, 0.2), (1.0, 0.02, 0.1)):
        callback.progress = lambda done=done: done
        callback._seat(callback.last)
        steering = callback._steering
        assert (steering.step, steering.rate) == pytest.approx((2 * left, 0.1 * left))
        assert (steering.pull, model.ent_coef) == pytest.approx((pull, pull * unit))
    callback = SelfPlay(entropy=(0.4, 0.0))
    begun(callback)
    callback.progress = lambda: 0.75
    callback._seat(callback.last)
    assert callback._steering.pull == pytest.approx(0.1)  # straight down where the end is 0


@pytest.mark.parametrize(("large", "points"), [(10**9, 201), (58, 51)])
def test_a_curve_has_most_points_where_it_is_steep(
    large: int, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("algorithms.learning.callback.LARGE", large)
    callback, even = Measure("kuhn"), KUHN.tree.uniform()
    model = begun(callback)
    callback.average.add(KUHN.tree.random(0))
    for step in range(1001):
        callback.progress = lambda step=step: step / 1000
        model.num_timesteps = step
        callback._measure(even)
    assert len(callback.curve) == points
    assert sum(point.steps <= 250 for point in callback.curve) == points // 2 + 1
    last, average = callback.curve[-1][2:]
    assert last == pytest.approx(11 / 12)
    assert average == pytest.approx(nash_conv(KUHN.tree, KUHN.tree.random(0)))
    told = callback.logger.name_to_value
    assert (told["game/nash_conv"], told["game/nash_conv_average"]) == (last, average)


def test_the_magnet_pulls_a_policy_back_and_comes_along() -> None:
    steering = Steering(KUHN, rate=0.5)
    steering.pull = 1.0
    rows, counts = slice(None), torch.full((12,), 100)
    steering.count(rows, counts)
    logits = torch.zeros(12, 3)
    nothing = torch.zeros(12, 3)
    assert torch.allclose(steering.wanted(nothing, logits, rows, counts), nothing)
    bets = np.where(KUHN.tree.legal, [0.1, 0.9, 0.9], 0)
    steering.follow(bets, at_once=True)
    step = steering.wanted(nothing, logits, rows, counts)
    assert torch.sign(step[0]).tolist() == [-1, 1, 0]
    before = steering._magnet.clone()
    steering.follow(KUHN.tree.uniform())
    towards = (steering._magnet - before)[0]
    assert torch.sign(towards).tolist() == [1, -1, 0]


def test_a_step_is_as_large_where_rows_and_actions_are_rare() -> None:
    """The same advantage in a rare row: PPO's gradient is 100 times smaller, the step ten times."""
    steering = Steering(KUHN, rate=0.0, unit=1.0)
    counts = torch.tensor([1000] + [10] * 11)
    steering.count(slice(None), counts)
    share = (counts / counts.sum()).float()[:, None]
    likely = torch.tensor([[0.5, 0.5, 0.0]])
    gradient = -share * likely * torch.tensor([[1.0, -1.0, 0.0]])  # of an advantage of 1
    step = steering.wanted(gradient, torch.zeros(12, 3), slice(None), counts)
    assert step[0, 0] / step[1, 0] == pytest.approx(10, rel=1e-3)
    assert gradient[0, 0] / gradient[1, 0] == pytest.approx(100, rel=1e-3)


def counted(*counts: int) -> tuple[Steering, torch.Tensor]:
    """Steering that has met Kuhn's rows so often, the rest never."""
    steering = Steering(KUHN, rate=0.5, unit=1.0)
    met = torch.tensor([*counts, *[0] * (12 - len(counts))])
    steering.count(slice(None), met)
    return steering, met


def test_the_magnet_is_slower_where_samples_are_few() -> None:
    steering, _ = counted(100, 1000, 10_000)
    before = steering._magnet.clone()
    bets = np.where(KUHN.tree.legal, [0.1, 0.9, 0.9], 0)
    steering.follow(bets)
    way = torch.as_tensor(np.log(np.maximum(bets, 1e-30))).float() - before
    moved = ((steering._magnet - before) / way)[:4, 0].tolist()
    assert moved == pytest.approx([0.5 * 0.1**0.7, 0.5, 0.5, 0.0])


def test_shares_forget_no_faster_than_a_hundredth() -> None:
    steering, _ = counted(8)
    steering.count(slice(None), torch.tensor([0, 8, *[0] * 10]))
    assert steering._share[:2].tolist() == [0.5, 0.5]  # at first all batches count alike
    steering._batches = 1000
    steering.count(slice(None), torch.tensor([0, 8, *[0] * 10]))
    assert steering._share[:2].tolist() == pytest.approx([0.495, 0.505])


def test_a_step_grows_no_more_where_samples_are_plenty_and_moves_no_sum() -> None:
    steps = []
    for plenty in (1000, 1_000_000):
        steering, counts = counted(plenty)
        gradient = torch.zeros(12, 3)
        gradient[0] = torch.tensor([-0.3, 0.3, 0.0])
        logits = torch.tensor([[1.0, -1.0, 0.0]]).repeat(12, 1)
        steps.append(steering.wanted(gradient, logits, slice(None), counts)[0])
    assert steps[0].tolist() == pytest.approx(steps[1].tolist())
    assert steps[0][0] > 0.5
    assert steps[0].sum() == pytest.approx(0, abs=1e-6)


def test_a_table_of_values_is_the_mean_of_the_latest_returns() -> None:
    """SB3's gradient of the squared error, made a step of 1 / n, of 1 / 3,000 later on."""
    steering, counts = Steering(KUHN, rate=0.0), torch.full((12,), 100)
    reins = RowsAtOnce(SimpleNamespace(tabular=True), steering, value_weight=0.5)
    for batches, samples in ((0, 100), (9, 1000), (10**6, 3000)):
        steering._batches = batches
        reins.begin()
        logits, values = (torch.zeros(12, n, requires_grad=True) for n in (3, 1))
        reins._steer(logits * 1, shown := values * 1, slice(None), counts)
        shown.sum().backward()
        assert values.grad.flatten().tolist() == pytest.approx([1200 / samples] * 12)


def test_a_network_gives_each_row_its_weight_however_often_it_was_met() -> None:
    policy = SimpleNamespace(features_extractor=nn.Flatten(), action_net=nn.Linear(10, 3))
    steering = Steering(KUHN, rate=0.0)
    SampleBySample(policy, steering, KUHN)
    steering.wanted = lambda total, here, rows, counts: torch.eye(3)[: len(rows)]
    seen = torch.tensor(KUHN.observations[[0, 0, 0, 0, 0, 0, 0, 0, 0, 5]])  # 9 to 1
    policy.action_net(policy.features_extractor(seen)).sum().backward()
    assert policy.action_net.bias.grad.tolist() == pytest.approx([-0.75, -0.25, 0])


def test_training_leaves_the_policy_free_and_counts_its_last() -> None:
    made = trained(steps=64, n_envs=8, n_steps=4)
    assert made.model.policy.steer is None
    assert made.callback.average.count == 3  # before each of two updates, and after
    assert [point.steps for point in made.curve] == [0, 32, 64]


def test_a_table_plays_what_it_is_told_to() -> None:
    made, table = Training(configure({"n_envs": 2})), nash(0)
    made.model.policy.play(table)
    assert np.abs(made.last - table).max() < 1e-6


def test_the_clock_goes_on_where_it_was_stopped() -> None:
    callback = Measure("kuhn")
    begun(callback)
    callback.set_state(callback.get_state() | {"seconds": 100.0})
    assert 100 < callback.get_state()["seconds"] < 110


def test_a_run_that_is_stopped_ends_its_curve_there() -> None:
    callback = Measure("kuhn")
    model = begun(callback)
    callback.progress = lambda: 1e-9  # long before the next point is due
    for model.num_timesteps in (0, 7):
        callback._measure(callback.last)
    callback._on_training_end()
    assert [point.steps for point in callback.curve] == [0, 7]


def test_self_play_needs_an_environment_of_its_own() -> None:
    model = MaskablePPO("MlpPolicy", DummyVecEnv([TurnsEnv]), n_steps=8, batch_size=8)
    with pytest.raises(BridgeError, match="SelfPlayVecEnv"):
        model.learn(8, callback=SelfPlay())


@pytest.mark.filterwarnings("ignore:nobody has seated")
def test_stock_ppo_learns_with_the_callback_and_not_without() -> None:
    """Measured with seeds 0 to 2: averages of 0.14 to 0.17; without it 0.66 to 0.67."""
    figures = {}
    for callback in (SelfPlay(), Measure("kuhn")):
        model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(256), seed=0, device="cpu", **STOCK)
        before = model.ent_coef
        model.learn(24_000, callback=callback)
        assert callback.curve[0].last > 0.8
        figures[type(callback)] = callback.curve[-1].average
        assert nash_conv(KUHN.tree, callback.last) == pytest.approx(callback.curve[-1].last)
        assert model.ent_coef == before
        assert not model.policy.action_net._forward_hooks  # it leaves the model as it was
        assert not model.policy.features_extractor._forward_pre_hooks
    assert figures[SelfPlay] < 0.25
    assert figures[Measure] > 0.5


def test_the_plain_environment_can_be_learned_on_too() -> None:
    hands = DummyVecEnv([SelfPlayEnv] * 4)
    model = MaskablePPO("MlpPolicy", hands, n_steps=16, batch_size=64, device="cpu")
    callback = SelfPlay()
    model.learn(128, callback=callback)
    assert [point.steps for point in callback.curve] == [0, 64, 128]


def test_without_the_steering_leduc_is_far_from_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: PPO's own gradient, without the division by shares and probabilities."""
    settings = {"game": "leduc_poker", "steps": 200_000}
    steered = trained(**settings).curve[-1].last

    def plain(self, grad, logits, rows, counts):
        return -100 * self.step * grad / self.unit  # PPO's own gradient, however fast

    monkeypatch.setattr(Steering, "wanted", plain)
    assert trained(**settings).curve[-1].last > steered + 0.4


def test_a_saved_model_goes_on_learning_the_sb3_way(tmp_path: Path) -> None:
    """Measured over 300,000 more steps: Kuhn 0.0165 -> 0.0146, Leduc 0.611 -> 0.594."""
    path = tmp_path / "model.zip"
    first = trained(steps=1_000_000)
    first.save_model(path, first.average, holds="average")
    before = load_policy(path).nash_conv()
    for more in ({}, {"learning_rate": 1e-3}):
        model = MaskablePPO.load(path, env=SelfPlayVecEnv(2048), device="cpu", custom_objects=more)
        callback = SelfPlay()
        model.learn(300_000, callback=callback)
        assert callback.curve[0].last == pytest.approx(before, abs=1e-5)
        assert callback.curve[-1].last < max(1.2 * before, 0.01)
        assert np.abs(callback.last - first.average).max() > 1e-3  # and it does learn
        model.save(tmp_path / "more.zip")
        again = load_policy(tmp_path / "more.zip")
        assert again.nash_conv() == pytest.approx(callback.curve[-1].last, abs=1e-5)


def after_one_update(monkeypatch: pytest.MonkeyPatch, **other) -> tuple[np.ndarray, np.ndarray]:
    """The logits `(I, A)` of a table after an update with other settings of PPO, and as promised.

    The promise, from what was played alone: each action's mean return against the row's, in
    standard deviations, over its probability + 0.05, and smaller where there are few samples.
    """
    with monkeypatch.context() as patch:
        patch.setattr(building, "_SELF_PLAY_PPO", building._SELF_PLAY_PPO | other)
        made = trained(game="leduc_poker", steps=8192)
    tree, buffer = made.game.tree, made.model.rollout_buffer
    won, later = np.zeros((4, 2048)), np.zeros(2048)
    ends = np.vstack([buffer.episode_starts[1:], made.model._last_episode_starts])
    for move in reversed(range(4)):  # what a hand that goes on later brings is not known yet
        later = won[move] = buffer.rewards[move] + np.where(ends[move], 0, later)
    rows, actions = buffer.observations[:, 0].astype(int), buffer.actions[:, 0].astype(int)
    even, sums = tree.uniform(), np.zeros(tree.legal.shape)
    np.add.at(sums, (rows, actions), won.T.flatten())
    counts = np.bincount(rows, minlength=len(even))[:, None]
    gain = (sums - even * sums.sum(1, keepdims=True)) / np.maximum(counts, 1)
    step = np.where(tree.legal, gain / returns_std(tree, even) / (even + 0.05), 0)
    step -= np.where(tree.legal, step.sum(1, keepdims=True) / tree.legal.sum(1, keepdims=True), 0)
    step *= np.minimum(1, np.sqrt(counts / 1000))
    return made.model.policy.action_net.weight.detach().numpy(), step


def test_an_update_is_what_the_hands_say(monkeypatch: pytest.MonkeyPatch) -> None:
    found, promised = after_one_update(monkeypatch)
    assert np.abs(promised).max() > 0.1
    assert found == pytest.approx(promised, abs=1e-5)


@pytest.mark.parametrize(
    "other", [{"gae_lambda": 0.95}, {"gamma": 0.99}, {"normalize_advantage": True}]
)
def test_other_credit_is_other_steps(
    monkeypatch: pytest.MonkeyPatch, other: dict[str, float]
) -> None:
    found, promised = after_one_update(monkeypatch, **other)
    assert np.abs(found - promised).max() > 1e-3


def saved(**settings) -> float:
    """NashConv of what a run on Kuhn would save after 2,000,000 steps."""
    end = trained(steps=2_000_000, **settings).curve[-1]
    return min(end.last, end.average)


def test_a_run_is_as_good_as_measured_and_not_without_the_magnet() -> None:
    """Measured with seeds 0 to 3: 0.032 to 0.041; a frozen magnet 0.071 to 0.073, none 0.20 up."""
    assert saved() < 0.05
    assert 0.06 < saved(magnet=0.0) < 0.09
    assert saved(entropy=0.0, entropy_end=0.0) > 0.15
