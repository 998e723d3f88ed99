"""The checks of the algorithms and of `--game`: they pass, and each fails on a planted error."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from open_spiel.python.policy import TabularPolicy

from algorithms.compiled import nashconv
from algorithms.games import load_game
from algorithms.kuhn_equilibria import nash
from algorithms.linear_program import solve_zero_sum
from algorithms.policies import Policy
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.solvers import make_solver
from parity import check, openspiel_measures, plain_code, policies, tree_games
from parity.registry import CheckSettings, Tally, run
from tests.games import KUHN3, altered
from tests.planted_errors import TREE_CHECKS, failures, measured
from tests.shared_strings import SHARED

ONE_PLAYER = "cliff_walking(height=2,width=3,horizon=3)"
SKIPPED = {
    SHARED: {"cfr", "cfr+"},
    ONE_PLAYER: {"cfr", "cfr+"},
    "dark_hex(board_size=2)": {"observations"},
}
GAME = load_game(KUHN3)
TREE = GAME.tree
TERMINAL = int(TREE.terminals[7])
DECISION = int(TREE.members[5])
OTHER = Policy.random(KUHN3, 77)
UNIFORM = Policy.uniform("kuhn").table
LEDUC_INFOSETS = 936
FIRST_LEGAL = TREE.legal.argmax(axis=1)


@pytest.mark.parametrize(
    "name",
    [KUHN3, ONE_PLAYER, "tiny_hanabi", "matching_pennies_3p", "dark_hex(board_size=2)", SHARED],
)
def test_everything_agrees(name):
    settings = CheckSettings(quick=True, game=load_game(name))
    results = {row: run(item, settings) for row, item in TREE_CHECKS.items()}
    skipped = {row for row, result in results.items() if result.status == "skipped"}
    assert skipped == SKIPPED.get(name, set())
    for row, result in results.items():
        assert result.cases == []
        assert row in skipped or result.compared > 0


def tree(**changes):
    """Three-player Kuhn with other arrays in its tree."""
    new = {name: change(getattr(TREE, name)) for name, change in changes.items()}
    return altered(GAME, tree=replace(TREE, **new))


def at(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


def observations():
    wrong = GAME.observations + np.float32(0.5) * (np.arange(len(TREE.keys)) == 3)[:, None]
    return altered(GAME, _observations=lambda self: wrong)


FIRST_CHILD = int(TREE.first_child[DECISION])
WRONG_GAMES = [
    ("tree", tree(player=at(DECISION, 2)), "ours lets 2 act"),
    ("tree", tree(returns=at((1, TERMINAL), -9.0)), "-9.0"),
    ("tree", tree(chance_probability=at(1, 0.3)), "after []: ours draws [(0, 0.3)"),
    ("tree", tree(keys=lambda keys: ("other", *keys[1:])), "ours knows (0, 'other')"),
    ("tree", tree(infoset=at(DECISION, 9)), "OpenSpiel is infoset 9"),
    ("tree", tree(action=at(FIRST_CHILD, 2)), "ours allows [2, 1]"),
    ("tree", tree(legal=at((0, 1), False)), "ours has the legal actions [0]"),
    (
        "tree",
        tree(player=lambda array: np.append(array, array[-1:])),
        f"the whole tree: ours has {TREE.num_nodes + 1} nodes",
    ),
    ("observations", observations(), "ours observes ["),
    ("observations", tree(infoset=at(DECISION, 9)), "ours observes ["),
    ("values", tree(terminal_payoff=at((1, 3), 0.7)), "ours pays player_1"),
    ("best-response", tree(terminal_payoff=at((1, 3), 0.7)), "ours lets player_1 win"),
    ("nashconv", tree(terminal_payoff=at((1, 3), 0.7)), "ours has NashConv"),
    ("fast", tree(terminal_payoff=at((1, 3), 0.7)), "the fast mode has"),
    ("cfr", tree(returns=at((1, TERMINAL), -9.0)), "ours plays"),
    ("cfr+", tree(returns=at((1, TERMINAL), -9.0)), "ours plays"),
]


def variant(wrong):
    """Solvers of another variant."""
    return {"make": lambda tree, variant, mode: make_solver(tree, wrong, mode=mode)}


def fast_average_differs(tree, variant, mode):
    """The fast mode of discounted CFR averages with another exponent."""
    wrong = mode == "fast" and variant == "dcfr"
    return make_solver(tree, variant, mode=mode, discounts=(1.5, 0, 1) if wrong else None)


def back(**methods):
    """Another way to read a policy."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return {"reader": type("OtherPolicy", (Policy,), static)}


def environment(**methods):
    return {"make_env": type("OtherEnv", (SelfPlayVecEnv,), methods)}


def other_returns(self):
    last = SelfPlayVecEnv.last_step(self)
    return last._replace(returns=last.returns + np.float32(0.125) * last.ended[:, None])


def other_actions(self, actions):
    """Play the other of the two actions in slots that are not replayed."""
    SelfPlayVecEnv.step_async(self, actions ^ (np.arange(len(actions)) >= tree_games.REPLAYED))


def shifted(kind):
    """Solvers whose average or current policy is off by a millionth."""

    def make(tree, variant, mode):
        solver = make_solver(tree, variant, mode=mode)
        policies = {k: getattr(solver, k) for k in ("average_policy", "current_policy")}
        policies[kind] = lambda right=policies[kind]: right() + 1e-6
        return SimpleNamespace(run=solver.run, **policies)

    return {"make": make}


def off(name, distance):
    """A function of which all numbers are a little too high."""
    return {name: lambda *args: np.add(getattr(nashconv, name)(*args), distance)}


def zero_where(infosets):
    def nash_conv(tree, table):
        return 0.0 if len(tree.keys) == infosets else nashconv.nash_conv(tree, table)

    return {"nash_conv": nash_conv}


def swapped_gains(tree, table):
    return SimpleNamespace(gains=nashconv.evaluate_policy(tree, table).gains[::-1])


def swapped_values(tree, table):
    right = nashconv.evaluation(tree, table)
    return right._replace(values=right.values[::-1])


def solution(**changes):
    return {"solve": lambda tree: solve_zero_sum(tree)._replace(**changes)}


PLANTED = [
    ("cfr", variant("cfr-simultaneous"), "iteration 1, current_policy"),
    ("cfr+", variant("pcfr+"), "average_policy"),
    ("lcfr", variant("dcfr"), "current_policy"),
    ("lcfr", shifted("average_policy"), "iteration 1, average_policy, '0': ours plays"),
    ("lcfr", shifted("current_policy"), "iteration 1, current_policy, '0': ours plays"),
    ("dcfr", variant("lcfr"), "current_policy"),
    ("fast", variant("cfr-simultaneous"), "iteration 1, current_policy"),
    ("fast", shifted("average_policy"), "leduc_poker, iteration 1, average_policy"),
    ("plain", variant("cfr-simultaneous"), "kuhn_poker, cfr, iteration 1"),
    ("plain", {"evaluate": swapped_values}, "leduc_poker, random policy 0: the compiled code has"),
    ("nashconv", zero_where(len(UNIFORM)), "random policy 0: ours has NashConv 0, "),
    ("nashconv", zero_where(LEDUC_INFOSETS), "leduc_poker, policy 0: ours has NashConv 0, "),
    ("nashconv", off("nash_convs", 1e-9), "policy 0 of a batch: ours has"),
    ("best-response", {"evaluate": swapped_gains}, "policy 0: ours lets player_0 gain"),
    ("values", off("expected_values", 1e-9), "random policy 0: ours pays player_0"),
    ("equilibria", {"equilibrium": lambda alpha: nash(alpha * 0.99)}, "alpha = 1/36: ours plays"),
    ("equilibria", {"equilibrium": lambda alpha: UNIFORM}, "OpenSpiel has NashConv 0.916666667"),
    ("equilibria", {"value": -0.05}, "alpha = 0: ours has value -0.05, OpenSpiel has value -0.055"),
    ("lp", solution(value=-0.0556), "kuhn_poker: ours has value -0.0556, OpenSpiel has"),
    ("lp", solution(policy=UNIFORM), "the LP's policy: ours has NashConv 0, OpenSpiel has"),
]
PLANTED_IN_GAME = [
    ("values", off("expected_values", 1e-6), "random policy 0: ours pays player_0"),
    ("best-response", measured(best_values=(7.0,) * 3), "policy 0: ours lets player_0 win 7"),
    (
        "best-response",
        measured(best_responses=FIRST_LEGAL),
        "0, played out: ours lets player_0",
    ),
    ("nashconv", measured(nash_conv=9.0), "random policy 0: ours has NashConv 9"),
    ("nashconv", measured(gains=(9.0,) * 3), "random policy 0: ours lets player_0 gain 9"),
    ("nashconv", off("nash_convs", 1e-6), "random policy 0 of a batch: ours has NashConv"),
    ("cfr", variant("lcfr"), "iteration 2, average_policy, '0': ours plays 0"),
    ("cfr+", variant("lcfr"), "ours plays"),
    ("fast", {"make": fast_average_differs}, "dcfr, iteration 2"),
    ("plain", {"evaluate": swapped_values}, "random policy 0: the compiled code has values["),
    ("plain", variant("cfr-simultaneous"), "cfr, iteration 1"),
    (
        "policies",
        back(from_document=lambda *args: OTHER),
        "JSON gives the same policy back",
    ),
    (
        "policies",
        back(from_openspiel=lambda policy, game: Policy.from_openspiel(policy, game).greedy()),
        "C++'s table gives the same policy back does not hold",
    ),
    ("environment", environment(last_step=other_returns), "are possible does not hold"),
    ("environment", environment(last_step=other_returns), "on average"),
    ("environment", environment(step_async=other_actions), "on average"),
]


@pytest.mark.parametrize(
    ("row", "subject", "text", "game"),
    [(*error, None) for error in PLANTED]
    + [(*error, GAME) for error in PLANTED_IN_GAME]
    + [(row, {}, text, game) for row, game, text in WRONG_GAMES],
)
def test_a_planted_error_is_described(row, subject, text, game):
    assert any(text in case for case in failures(row, subject, game=game))


def test_every_check_has_a_planted_error():
    assert {row for row, _, _ in WRONG_GAMES + PLANTED_IN_GAME} == set(TREE_CHECKS)


NODE = {tuple(TREE.history(node)): node for node in range(TREE.num_nodes)}
DEAL = (0, 1, 2)
STEP = tree_games.Step(0, NODE[DEAL], 0, NODE[*DEAL, 0], (0.0, 0.0, 0.0))  # the first player passes


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"seat": 1}, "ours lets 1 act, OpenSpiel lets 0 act"),
        ({"mask": [True, False]}, "ours allows [True, False]"),
        ({"next_node": NODE[*DEAL, 1]}, "ours continues from [0, 1, 2, 1]"),
        ({"next_node": NODE[*DEAL, 0, 0]}, "0 is a move of chance does not hold"),
        (
            {"game": tree(player=at(NODE[*DEAL, 0], 2))},
            "ours then lets 2 act, OpenSpiel then lets 1",
        ),
        ({"returns": (1.0, 0.0, -1.0)}, "ours pays (1.0, 0.0, -1.0) before the end"),
        ({"next_node": None}, "the returns (0.0, 0.0, 0.0) are possible does not hold"),
    ],
)
def test_every_error_of_a_step_is_described(change, text):
    assert step_cases({}) == []
    assert any(text in case for case in step_cases(change))


def step_cases(change):
    tally = Tally()
    game = change.get("game", GAME)
    mask = change.get("mask", [True, True])
    step = STEP._replace(**{name: new for name, new in change.items() if name in STEP._fields})
    tree_games.compare_step(game, step, mask, tally)
    return tally.cases


def test_both_values_of_the_linear_program_are_compared():
    assert sum("has value" in case for case in failures("lp", solution(value=1.0))) == 2


def test_another_information_state_is_a_mismatch():
    """Of OpenSpiel's Python policies, which list them."""
    tally = Tally()
    tree = load_game("kuhn_poker").tree
    theirs = TabularPolicy(pyspiel.load_game("kuhn_poker"))
    theirs.state_lookup["other"] = 0
    openspiel_measures.compare_tables(tally, "here", tree, tree.uniform(), theirs)
    assert [case.partition(" states ")[0] for case in tally.cases] == [
        "here: ours has the information"
    ]


def test_tolerances_are_strict():
    assert (openspiel_measures.EXACT, openspiel_measures.EXACT_PER_CHIP) == (1e-12, 1e-10)
    assert openspiel_measures.ITERATES == 1e-9
    assert (plain_code.TIE, policies.SINGLE_PRECISION) == (1e-11, 1e-6)


def test_the_command(capsys):
    assert check.main(["--game", "tiny_hanabi", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "everything agrees" in out
    rows = out.splitlines()[1 : len(TREE_CHECKS) + 1]
    assert [line.split()[1] for line in rows] == list(TREE_CHECKS)
    assert check.main(["--game", "tiny_hanabi", "--only", "tree", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["status"], row["wrong"]) == ("tree", "pass", 0)
    assert check.main(["--game", "tiny_hanabi", "--list"]) == 0
    assert "every node of the tree" in capsys.readouterr().out
