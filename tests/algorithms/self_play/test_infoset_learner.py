"""Regrets per information set on OpenSpiel's states, in games whose tree is not built."""

import numpy as np
import pytest
import torch

import kuhn_bridge as kb
from algorithms.games import load_game
from algorithms.policies.network import network_table
from algorithms.self_play.infoset_learner import InfosetLearner
from algorithms.self_play.network_learner import NetworkLearner
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training
from tests.games import LEDUC

RIVER = "river(board=7dJc3s9hQd,pot=2000)"


def trained(game, **settings):
    made = Training(configure({"game": game, "env": "states", **settings}))
    made.run()
    return made


@pytest.mark.parametrize(
    ("game", "steps", "most"),
    [
        ("kuhn_poker", 300_000, 0.03),
        ("kuhn_poker(players=3)", 300_000, 0.2),
        (LEDUC, 500_000, 1.2),
    ],
)
def test_training_approaches_an_equilibrium(game, steps, most):
    made = trained(game, steps=steps, points=1)
    assert isinstance(made.learner, InfosetLearner)
    assert made.recorder.points[-1].average < most


def test_a_game_without_a_tree_is_learned_and_its_network_measured():
    policy, model, curve = kb.train(RIVER, learner="regrets", steps=200_000, points=1, width=64)
    uniform = kb.Policy.uniform(RIVER).nash_conv()
    assert curve[-1].average < 0.85 * uniform
    assert policy.nash_conv() < 0.85 * uniform
    assert model is not None
    assert kb.Policy.from_sb3(model).nash_conv() == policy.nash_conv()


def test_own_reach_is_that_of_the_tree():
    made = trained(LEDUC, steps=50_000, points=0)
    game = load_game(LEDUC)
    rows, weights = made.learner.rows("average")
    table = network_table(made.learner.average, game)
    numbers = made.learner._infosets.find(game.network_inputs())
    seen = numbers >= 0
    assert table[seen] == pytest.approx(rows.probabilities[numbers[seen]], abs=1e-6)
    # A few were seen in hands only whose first decisions were not.
    known = np.flatnonzero(seen & (weights[numbers] > 0))
    assert len(known) > 850
    reach = game.own_reach(table)
    assert weights[numbers[known]] == pytest.approx(reach[known], abs=1e-5)


def test_another_seed_gives_another_policy_and_the_same_seed_the_same():
    first, again, other = (
        network_table(trained(LEDUC, steps=20_000, seed=seed).learner.average, load_game(LEDUC))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_it_plays_what_it_has_learned_with_exploration():
    made = trained(LEDUC, steps=20_000, exploration=0.5)
    learner = made.learner
    learner.before_rollout(1.0)
    infosets = learner._infosets
    played = np.diff(infosets.running_sums, axis=1, prepend=0)
    legal = infosets.legal
    uniform = legal / legal.sum(axis=1, keepdims=True)
    learned = learner.rows("last")[0].probabilities
    assert played == pytest.approx(0.5 * learned + 0.5 * uniform)


def test_where_nothing_was_seen_play_is_uniform():
    made = trained(LEDUC, steps=2_048, points=0)
    nothing = torch.full((1, 30), 5.0)
    assert made.learner.last(nothing).unique().numel() == 1
    with pytest.raises(ValueError, match="want observations of 30 numbers"):
        made.learner.last(torch.zeros(1, 32))


@pytest.mark.parametrize(
    ("game", "settings", "learner"),
    [
        (LEDUC, {}, InfosetLearner),
        (LEDUC, {"learner": "ppo"}, NetworkLearner),
        (LEDUC, {"learning_rate": 1e-3}, NetworkLearner),
        ("phantom_ttt", {}, NetworkLearner),
        ("phantom_ttt", {"learner": "regrets"}, InfosetLearner),
    ],
)
def test_the_learner_follows_from_the_game_unless_it_is_chosen(game, settings, learner):
    made = Training(configure({"game": game, "env": "states", "n_envs": 4, **settings}))
    assert isinstance(made.learner, learner)
