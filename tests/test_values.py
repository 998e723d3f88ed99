"""Exact values, best responses and NashConv, against OpenSpiel and against themselves."""

from dataclasses import replace

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python.algorithms import exploitability

from algorithms.exact.kuhn import nash
from algorithms.exact.values import expected_values, nash_conv, nash_convs, pure, seated
from algorithms.games.kuhn import kuhn_tree
from kuhn_bridge import TabularPolicy
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.openspiel import to_python_policy
from tests.games import DICE, KUHN, KUHN3, LEDUC, game, tabular, tree
from tests.strategies import policies

TREE = kuhn_tree()


def test_uniform_play_in_kuhn():
    measure = nash_conv(TREE, TabularPolicy.uniform().probabilities)
    assert measure.total == pytest.approx(11 / 12, abs=1e-15)
    assert measure.gains == pytest.approx((3 / 8, 13 / 24))
    assert measure.values == pytest.approx((1 / 8, -1 / 8))
    assert measure.exploitability == measure.total / 2


@pytest.mark.parametrize("alpha", np.linspace(0, 1 / 3, 7))
def test_equilibria_leave_nothing_to_gain(alpha):
    measure = nash_conv(TREE, nash(alpha).probabilities)
    assert measure.total == pytest.approx(0, abs=1e-15)
    assert measure.values[0] == pytest.approx(-1 / 18, abs=1e-15)


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC, DICE])
@pytest.mark.parametrize("seed", range(3))
def test_nash_conv_is_openspiels(name, seed):
    flat = tree(name)
    policy = flat.random(seed)
    theirs = pyspiel.nash_conv(game(name), tabular(flat, policy))
    assert nash_conv(flat, policy).total == pytest.approx(theirs, abs=1e-12)


@given(policies())
def test_every_number_is_that_of_openspiels_python(policy):
    ours = nash_conv(TREE, policy.probabilities)
    theirs = exploitability.nash_conv(
        game(KUHN), to_python_policy(policy), return_only_nash_conv=False
    )
    assert ours.total == pytest.approx(theirs.nash_conv, abs=1e-12)
    assert ours.gains == pytest.approx(theirs.player_improvements, abs=1e-12)


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
def test_a_best_response_wins_what_it_promises(name):
    flat = tree(name)
    policy = flat.random(7)
    measure = nash_conv(flat, policy)
    answer = pure(flat, measure.best_responses)
    assert (answer[~flat.legal] == 0).all()
    for player in range(flat.num_players):
        sides = [answer if p == player else policy for p in range(flat.num_players)]
        won = expected_values(flat, seated(flat, sides))[player]
        assert won == pytest.approx(measure.best_values[player], abs=1e-12)


@given(policies(), policies())
def test_no_policy_beats_the_best_response(policy, other):
    measure = nash_conv(TREE, policy.probabilities)
    assert min(measure.gains) >= 0
    for player in (0, 1):
        sides = [policy.probabilities] * 2
        sides[player] = other.probabilities
        won = expected_values(TREE, seated(TREE, sides))[player]
        assert won <= measure.best_values[player] + 1e-12


def test_many_at_once():
    batch = np.stack([TREE.random(seed) for seed in range(20)])
    assert nash_convs(TREE, batch) == pytest.approx([nash_conv(TREE, p).total for p in batch])


def test_results_are_frozen():
    measure = nash_conv(TREE, TREE.uniform())
    with pytest.raises(AttributeError):
        measure.total = 0
    with pytest.raises(ValueError, match="read-only"):
        measure.best_responses[0] = 0


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("2pb", [0.5, 0, 0.4]),
        ("0", [0.5, 0.5, 0.1]),
        ("1p", [1.5, -0.5, 0]),
        ("0b", [np.nan, 0, 1]),
        ("0b", [0.5, 0.5, 0]),
    ],
)
def test_half_a_policy_is_refused(row, value):
    policy = TREE.uniform()
    policy[TREE.keys.index(row)] = value
    with pytest.raises(PolicyError, match=f"'{row}'.*not probabilities"):
        nash_conv(TREE, policy)
    with pytest.raises(PolicyError, match=f"'{row}'"):
        nash_convs(TREE, [TREE.uniform(), policy])


def test_a_policy_of_another_shape_is_refused():
    with pytest.raises(PolicyError, match="a joint policy of kuhn is 12 x 3"):
        nash_conv(TREE, np.full((12, 2), 0.5))


def test_a_wrong_payoff_would_be_noticed():
    """The circulating mistake, 2 chips at check-check, undoes every equilibrium."""
    wrong = np.sign(TREE.returns[:, TREE.terminals]) * TREE.chance[TREE.terminals] * 2
    assert nash_conv(replace(TREE, stakes=wrong), nash(0.2).probabilities).total > 0.01


def test_a_best_response_that_loses_would_be_noticed():
    slots = TREE.slots.copy()
    slots[slots[:, 1] == 0, 1] = 2  # player_0's rows belong to nobody: nothing is handed on
    with pytest.raises(AssertionError):
        nash_conv(replace(TREE, slots=slots), TREE.uniform())
