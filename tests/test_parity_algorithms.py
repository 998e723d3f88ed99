"""The checks of the algorithms fail on planted errors."""

from fractions import Fraction
from types import SimpleNamespace

import pyspiel
import pytest
from open_spiel.python.policy import TabularPolicy

from algorithms.exact import values
from algorithms.exact.kuhn import nash
from algorithms.exact.solving import make_solver
from algorithms.exact.two_player import solve_zero_sum
from algorithms.games import load_game
from kuhn_bridge import Policy
from parity import solvers
from parity.registry import Tally
from tests.planting import failures

UNIFORM = Policy.uniform("kuhn").table
LEDUC_INFOSETS = 936


def variant(wrong):
    """Solvers of another variant."""
    return {"make_solver": lambda tree, variant, mode: make_solver(tree, wrong, mode=mode)}


def shifted(kind):
    """Solvers whose average or current policy is off by a millionth."""

    def make(tree, variant, mode):
        solver = make_solver(tree, variant, mode=mode)
        policies = {k: getattr(solver, k) for k in ("average_policy", "current_policy")}
        policies[kind] = lambda right=policies[kind]: right() + 1e-6
        return SimpleNamespace(run=solver.run, **policies)

    return {"make_solver": make}


def halved(function):
    return lambda *args: function(*args) / 2


def zero_where(infosets):
    def nash_conv(tree, table):
        return 0.0 if len(tree.keys) == infosets else values.nash_conv(tree, table)

    return {"nash_conv": nash_conv}


def swapped_gains(tree, table):
    return SimpleNamespace(gains=values.evaluate_policy(tree, table).gains[::-1])


def solution(**changes):
    return {"solve_zero_sum": lambda tree: solve_zero_sum(tree)._replace(**changes)}


PLANTED = [
    ("cfr", variant("cfr-simultaneous"), "iteration 1, current_policy"),
    ("cfr+", variant("pcfr+"), "average_policy"),
    ("lcfr", variant("dcfr"), "current_policy"),
    ("lcfr", shifted("average_policy"), "iteration 1, average_policy, '0': ours plays"),
    ("lcfr", shifted("current_policy"), "iteration 1, current_policy, '0': ours plays"),
    ("dcfr", variant("lcfr"), "current_policy"),
    ("fast", variant("cfr-simultaneous"), "iteration 1, current_policy"),
    ("fast", shifted("average_policy"), "leduc_poker, iteration 1, average_policy"),
    ("nashconv", zero_where(len(UNIFORM)), "random policy 0: ours has NashConv 0, "),
    ("nashconv", zero_where(LEDUC_INFOSETS), "leduc_poker, policy 0: ours has NashConv 0, "),
    ("nashconv", {"nash_convs": halved(values.nash_convs)}, "policy 0 of a batch: ours has"),
    ("best-response", {"evaluate_policy": swapped_gains}, "policy 0: ours lets player_0 gain"),
    (
        "values",
        {"expected_values": lambda *args: [v + 1e-9 for v in values.expected_values(*args)]},
        "random policy 0: ours pays player_0",
    ),
    (
        "equilibria",
        {"nash": lambda alpha: nash(alpha * Fraction(99, 100))},
        "alpha = 1/36: ours plays",
    ),
    (
        "equilibria",
        {"nash": lambda alpha: UNIFORM},
        "ours has NashConv 0, OpenSpiel has NashConv 0.916666667",
    ),
    ("equilibria", {"VALUE": -0.05}, "alpha = 0: ours has value -0.05, OpenSpiel has value -0.055"),
    ("lp", solution(value=-0.0556), "kuhn_poker: ours has value -0.0556, OpenSpiel has"),
    (
        "lp",
        solution(policy=UNIFORM),
        "the LP's policy: ours has NashConv 0, OpenSpiel has NashConv 0.916666667",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject))


def test_both_values_of_the_linear_program_are_compared():
    assert sum("has value" in case for case in failures("lp", solution(value=1.0))) == 2


def test_another_information_state_is_a_mismatch():
    """Of OpenSpiel's Python policies, which list them."""
    tally, tree = Tally(), load_game("kuhn_poker").tree
    theirs = TabularPolicy(pyspiel.load_game("kuhn_poker"))
    theirs.state_lookup["other"] = 0
    solvers.compare_tables(tally, "here", tree, tree.uniform(), theirs)
    assert [case.partition(" states ")[0] for case in tally.cases] == [
        "here: ours has the information"
    ]


def test_tolerances_are_strict():
    tolerances = solvers.EXACT, solvers.EXACT_PER_CHIP, solvers.ITERATES
    assert tolerances == (1e-12, 1e-10, 1e-9)
