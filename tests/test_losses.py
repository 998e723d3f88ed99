"""Where a policy gives its chips away: the losses are the gains of best responses, split up."""

import numpy as np
import pytest

from algorithms.exact.kuhn import nash
from algorithms.exact.losses import losses
from algorithms.exact.values import evaluate_policy, expected_values
from algorithms.games import kuhn, load_game
from tests.games import GAMES


@pytest.mark.parametrize("name", GAMES)
def test_losses_sum_to_the_gains(name):
    tree = load_game(name).tree
    for seed in range(3):
        policy = tree.random(seed)
        lost = np.zeros(tree.num_players)
        for loss in losses(tree, policy):
            lost[tree.owner[loss.row]] += loss.lost
        assert lost == pytest.approx(evaluate_policy(tree, policy).gains, abs=1e-10)


def test_an_equilibrium_loses_nothing():
    assert losses(kuhn().tree, nash(0.2)) == ()


def test_one_mistake_is_found_with_its_price():
    """K folds to a bet, against an opponent who always bets: 3 chips, one time in three."""
    tree = kuhn().tree
    policy = nash(0).copy()
    for key in ("0", "1", "2"):
        policy[tree.keys.index(key)] = 0, 1, 0
    policy[tree.keys.index("2b")] = 0, 0, 1
    worst = losses(tree, policy)[0]
    assert tree.keys[worst.row] == "2b"
    assert (worst.played, worst.share, worst.best) == (2, 1.0, 0)
    assert worst.reach == pytest.approx(1 / 3)
    assert worst.lost == pytest.approx(1)


def test_the_largest_comes_first_and_mending_it_gains_as_much():
    tree = load_game("leduc_poker").tree
    policy = tree.random(1)
    found = losses(tree, policy)
    assert [x.lost for x in found] == sorted((x.lost for x in found), reverse=True)
    last = max(found, key=lambda x: x.row)  # nothing of its owner follows: best play is play
    mended = policy.copy()
    mended[last.row] = np.eye(3)[last.best]
    owner = tree.owner[last.row]
    gained = expected_values(tree, mended)[owner] - expected_values(tree, policy)[owner]
    assert gained == pytest.approx(last.lost)


def test_reach_is_how_often_a_hand_comes_there():
    tree = kuhn().tree
    reach = {tree.keys[x.row]: x.reach for x in losses(tree, tree.uniform())}
    assert reach["2b"] == pytest.approx(1 / 6)
    assert reach["1pb"] == pytest.approx(1 / 12)
