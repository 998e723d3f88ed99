"""Exact equilibria: the family, its proof in fractions, the way to it, and linear programs."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from algorithms.compiled.nashconv import evaluate_policy, nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import (
    LARGEST_ALPHA,
    UNIFORM_NASH_CONV,
    VALUE,
    exact_nash,
    from_exact,
    nash,
    nearest_nash,
)
from kuhn_bridge import INFORMATION_STATES, Action, State
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import DEALS
from tests.strategies import policies

TREE = kuhn_tree()
alphas = st.fractions(0, Fraction(1, 3), max_denominator=1000)


def exact_value(policies, deals=DEALS):
    """What player_0 wins in some deals when the seats play these policies, in fractions."""

    def value(state):
        if state.is_terminal:
            return Fraction(state.returns[0])
        row = policies[state.actor][f"{int(state.cards[state.actor])}{state.letters}"]
        return sum(row[action] * value(state.act(action)) for action in row)

    return sum(value(State.new(*deal)) for deal in deals) / len(DEALS)


def exact_gains(policy):
    """How much more each seat wins by its best pure responses, one per card, in fractions."""
    gains = []
    for seat, sign in ((0, 1), (1, -1)):
        best = Fraction(0)
        for card in range(3):
            own = [name for name in policy if name[0] == str(card) and len(name[1:]) % 2 == seat]
            values = []
            for actions in itertools.product(*(policy[name] for name in own)):
                rows = {
                    name: {a: Fraction(a == action) for a in policy[name]}
                    for name, action in zip(own, actions, strict=True)
                }
                pair = [policy | rows if p == seat else policy for p in (0, 1)]
                deals = [deal for deal in DEALS if deal[seat] == card]
                values.append(sign * exact_value(pair, deals))
            best += max(values)
        gains.append(best - sign * exact_value((policy, policy)))
    return tuple(gains)


@given(alphas)
def test_the_family_in_fractions(alpha):
    """For every alpha, in rational arithmetic: value exactly -1/18, no gain at all."""
    policy = exact_nash(alpha)
    assert exact_value((policy, policy)) == VALUE == Fraction(-1, 18)
    assert exact_gains(policy) == (0, 0)


def test_uniform_play_in_fractions():
    half = Fraction(1, 2)
    policy = {name: dict.fromkeys(row, half) for name, row in exact_nash(0).items()}
    assert exact_value((policy, policy)) == Fraction(1, 8)
    assert exact_gains(policy) == (Fraction(3, 8), Fraction(13, 24))
    assert sum(exact_gains(policy)) == UNIFORM_NASH_CONV == Fraction(11, 12)


@given(alphas, st.sampled_from(INFORMATION_STATES), st.fractions(0, 1, max_denominator=50))
def test_fractions_agree_with_the_arrays(alpha, name, share):
    """With one row changed: fractions and floats agree on the gains."""
    first, second = exact_nash(alpha)[name]
    spoiled = exact_nash(alpha) | {name: {first: share, second: 1 - share}}
    measure = evaluate_policy(TREE, from_exact(spoiled))
    gains = exact_gains(spoiled)
    value = exact_value((spoiled, spoiled))
    assert measure.gains == pytest.approx([float(gain) for gain in gains], abs=1e-12)
    assert measure.values[0] == pytest.approx(float(value), abs=1e-12)


@pytest.mark.parametrize("alpha", [-0.01, 0.34, 1])
def test_outside_the_family(alpha):
    with pytest.raises(PolicyError, match=r"outside \[0, 1/3\]"):
        nash(alpha)


@given(alphas)
def test_members_are_at_distance_nothing(alpha):
    nearest = nearest_nash(nash(alpha))
    assert nearest.distance == pytest.approx(0, abs=1e-12)
    assert nearest.alpha == pytest.approx(float(alpha), abs=1e-12)


@given(st.floats(0, 1))
def test_with_king_always_bet_its_answer_is_free(call):
    """At alpha = 1/3 player_0 never checks K, so what it would do then is no part of the set."""
    table = nash(Fraction(1, 3))
    table[INFORMATION_STATES.index("2pb")] = call, 0, 1 - call
    assert nash_conv(TREE, table) == pytest.approx(0, abs=1e-12)
    nearest = nearest_nash(table)
    assert nearest.distance == pytest.approx(0, abs=1e-12)
    assert nearest.alpha == pytest.approx(1 / 3)


def test_bolder_than_all_equilibria_is_nearest_to_the_boldest():
    bold = np.eye(3)[[1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]]
    assert nearest_nash(bold).alpha == pytest.approx(float(LARGEST_ALPHA))


@given(policies(), alphas)
def test_nothing_in_the_family_is_nearer(policy, alpha):
    nearest = nearest_nash(policy.table)
    assert nearest.distance <= np.linalg.norm(policy.table - nash(alpha)) + 1e-12
    assert nash_conv(TREE, nearest.table) == pytest.approx(0, abs=1e-12)


def pure_strategies(player):
    """The 64 pure strategies of a player, as tables whose other rows are uniform."""
    infosets = np.flatnonzero(TREE.owner == player)
    legal = [np.flatnonzero(TREE.legal[infoset]) for infoset in infosets]
    for actions in itertools.product(*legal):
        table = TREE.uniform()
        table[infosets] = np.eye(3)[list(actions)]
        yield table


def realisation(table, player):
    """The probability that a player's own choices give each of its actions: `(18,)`."""
    own_reach = np.ones((12, 1))
    own_reach[9:] = table[:3, [Action.CHECK_OR_CALL]]  # a response to a bet follows a check
    return (own_reach * table)[TREE.owner == player].ravel()


def test_the_family_is_the_whole_set():
    """Linear programs over all equilibria reach as far in random directions as the closed form.

    A mixed strategy that guarantees the value of the game is an equilibrium strategy.
    """
    pure = [list(pure_strategies(player)) for player in (0, 1)]
    payoff = np.array([[values(first, second) for second in pure[1]] for first in pure[0]])
    for player, gains in ((0, payoff), (1, -payoff.T)):
        plans = np.stack([realisation(table, player) for table in pure[player]])
        family = np.stack([realisation(nash(alpha), player) for alpha in (0, LARGEST_ALPHA)])
        value = float(VALUE) * (1, -1)[player]
        for direction in np.random.default_rng(player).normal(size=(30, plans.shape[1])):
            solution = linprog(
                -(plans @ direction),
                A_ub=-gains.T,
                b_ub=np.full(gains.shape[1], -value + 1e-12),
                A_eq=np.ones((1, len(plans))),
                b_eq=[1],
            )
            assert -solution.fun == pytest.approx((family @ direction).max(), abs=1e-7)


def values(first, second):
    """What player_0 wins with the table `first` against `second`."""
    joint = np.where(TREE.owner[:, np.newaxis] == 0, first, second)
    return evaluate_policy(TREE, joint).values[0]
