"""Linear programs in sequence form, in floats and in fractions."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from algorithms import linear_program
from algorithms.compiled.nashconv import nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import nearest_nash
from algorithms.linear_program import exact_payoffs, guaranteed, solve_exactly, solve_zero_sum
from kuhn_bridge.errors import GameError
from tests.games import DICE, KUHN3, LEDUC, tree

TREE = kuhn_tree()
DICE3 = "liars_dice(numdice=1,dice_sides=3)"
GOOFSPIEL = (
    "turn_based_simultaneous_game("
    "game=goofspiel(imp_info=True,num_cards=4,points_order=descending))"
)


def test_kuhn():
    solution = solve_zero_sum(TREE)
    assert solution.value == pytest.approx(-1 / 18, abs=1e-12)
    assert nash_conv(TREE, solution.policy) == pytest.approx(0, abs=1e-12)
    assert nearest_nash(solution.policy).distance == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "value"), [(LEDUC, -0.0856064), (DICE, 0.0625), (GOOFSPIEL, 0.0), (DICE3, 1 / 9)]
)
def test_larger_games(name, value):
    solution = solve_zero_sum(tree(name))
    assert solution.value == pytest.approx(value, abs=1e-6)
    assert nash_conv(tree(name), solution.policy) < 1e-9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kuhn_poker", Fraction(-1, 18)),
        (DICE3, Fraction(1, 9)),  # Gambit's rational program gives the same
        (DICE, Fraction(1, 16)),
        (GOOFSPIEL, Fraction(0)),
    ],
)
def test_values_in_fractions(name, value):
    assert solve_exactly(tree(name)).value == value


def test_leducs_value_in_fractions():
    solution = solve_exactly(tree(LEDUC))
    assert solution.value.denominator > 10**30  # no float comes near it
    assert float(solution.value) == pytest.approx(solve_zero_sum(tree(LEDUC)).value, abs=1e-14)


def test_an_equilibrium_in_fractions():
    solution = solve_exactly(TREE)
    table = TREE.table_of([float(share) for row in solution.policy for share in row])
    assert all(sum(row) == 1 and min(row) >= 0 for row in solution.policy)
    assert nash_conv(TREE, table) < 1e-15
    assert nearest_nash(table).distance < 1e-12


def test_a_corner_that_is_no_equilibrium_is_not_believed(monkeypatch):
    """One player's plan is another corner of its constraints: always the first action."""
    flat = tree(DICE3)
    exact_corner = linear_program._exact_corner

    def planted(game, player, corner, payoffs):
        plan = exact_corner(game, player, corner, payoffs)
        if player == 1:
            return plan
        first = {int(game.first_choice[i]) + 1 for i in np.flatnonzero(game.owner == 0)}
        found = {0: Fraction(1)}
        for sequence in corner.sequences[1:].tolist():
            parent = found[int(game.choice_parent[sequence - 1])]
            found[sequence] = parent if sequence in first else Fraction(0)
        return list(found.values())

    monkeypatch.setattr(linear_program, "_exact_corner", planted)
    with pytest.raises(GameError, match="no equilibrium in fractions was found"):
        solve_exactly(flat)


def test_what_a_plan_guarantees_in_fractions():
    """Uniform play of Kuhn against a best response, as both players."""
    plan = [Fraction(1)] * (TREE.num_choices + 1)
    for choice, infoset in enumerate(TREE.choice_infoset.tolist()):
        actions = int(TREE.legal[infoset].sum())
        plan[choice + 1] = plan[int(TREE.parent_sequence[infoset])] / actions
    payoffs = exact_payoffs(TREE)
    lost = [-guaranteed(TREE, player, plan, payoffs) for player in (0, 1)]
    assert sum(lost) == Fraction(11, 12)  # uniform play's NashConv


@pytest.mark.parametrize("solve", [solve_zero_sum, solve_exactly])
def test_only_two_player_zero_sum_games_have_such_programs(solve):
    with pytest.raises(GameError, match="has 3 players; the linear program is for two"):
        solve(tree(KUHN3))
    with pytest.raises(GameError, match="is not zero-sum"):
        solve(tree("tiny_hanabi"))  # two players who win together
    with pytest.raises(GameError, match="is not zero-sum"):
        solve(replace(TREE, returns=TREE.returns + 0.01))


def test_games_that_are_too_large_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("scipy.optimize.linprog", None)
    monkeypatch.setattr(linear_program, "MAX_CHOICES", 23)
    with pytest.raises(GameError, match=r"24 choices .* is for at most 23. CFR has no such limit"):
        solve_zero_sum(TREE)
    monkeypatch.setattr(linear_program, "MAX_EXACT_CHOICES", 22)
    with pytest.raises(GameError, match="the linear program in fractions is for at most 22"):
        solve_exactly(TREE)


def test_odds_that_are_no_fractions_are_refused():
    odds = TREE.chance_probability.copy()
    odds[1:4] = (1 / 3, 1 / 3 + 1e-8, 1 / 3 - 1e-8)
    with pytest.raises(GameError, match=r"not a fraction of small numbers|that sum to 1"):
        solve_exactly(replace(TREE, chance_probability=odds))


def test_a_program_that_is_not_solved_is_an_error(monkeypatch):
    unsolved = SimpleNamespace(status=2, message="infeasible", x=np.zeros(99), fun=0.0)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *args, **options: unsolved)
    with pytest.raises(GameError, match="the linear program was not solved: infeasible"):
        solve_zero_sum(TREE)


def test_a_solution_that_is_not_close_is_an_error(monkeypatch):
    monkeypatch.setattr(linear_program, "PROMISED", 1e-20)
    with pytest.raises(GameError, match="was solved only to a NashConv of"):
        solve_zero_sum(tree(LEDUC))
