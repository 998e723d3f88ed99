"""`parity.check --game`: passes on games of every kind; each check fails on a planted error."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from algorithms.exact import values
from algorithms.exact.solving import make_solver
from algorithms.games import load_game
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.policies import Policy
from parity import check, games
from parity.registry import GAME_CHECKS, Settings, Tally, run
from tests.games import KUHN3, altered
from tests.planting import failures
from tests.shared_strings import SHARED

ONE_PLAYER = "cliff_walking(height=2,width=3,horizon=3)"
SKIPPED = {
    SHARED: {"cfr", "cfr+"},
    ONE_PLAYER: {"cfr", "cfr+"},
    "dark_hex(board_size=2)": {"observations"},
}
GAME = load_game(KUHN3)
TREE = GAME.tree
TERMINAL, DECISION = int(TREE.terminals[7]), int(TREE.members[5])
OTHER = Policy.random(KUHN3, 77)


@pytest.mark.parametrize(
    "name",
    [KUHN3, ONE_PLAYER, "tiny_hanabi", "matching_pennies_3p", "dark_hex(board_size=2)", SHARED],
)
def test_everything_agrees(name):
    settings = Settings(quick=True, game=load_game(name))
    results = {row: run(item, settings) for row, item in GAME_CHECKS.items()}
    skipped = {row for row, result in results.items() if result.status == "skipped"}
    assert skipped == SKIPPED.get(name, set())
    for row, result in results.items():
        assert result.cases == []
        assert row in skipped or result.compared > 0


def tree(**changes):
    """Three-player Kuhn with other arrays in its tree."""
    new = {name: change(getattr(TREE, name)) for name, change in changes.items()}
    wrong = replace(TREE, **new)
    return altered(GAME, tree=wrong)


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


@pytest.mark.parametrize(("row", "game", "text"), WRONG_GAMES)
def test_an_error_in_the_tree_is_described(row, game, text):
    assert any(text in case for case in failures(row, {}, game=game))


def measured(**changes):
    """A measure of which some attributes are wrong."""

    def evaluate(tree, table):
        right = values.evaluate_policy(tree, table)
        names = ("nash_conv", "gains", "best_values", "best_responses")
        return SimpleNamespace(**({name: getattr(right, name) for name in names} | changes))

    return {"evaluate_policy": evaluate}


def variant(wrong):
    return {"make_solver": lambda tree, variant, mode: make_solver(tree, wrong, mode=mode)}


def fast_average_differs(tree, variant, mode):
    """The fast mode of discounted CFR averages with another exponent."""
    wrong = mode == "fast" and variant == "dcfr"
    return make_solver(tree, variant, mode=mode, discounts=(1.5, 0, 1) if wrong else None)


def back(**methods):
    """Another way to read a policy."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return {"Policy": type("OtherPolicy", (Policy,), static)}


def environment(**methods):
    return {"SelfPlayVecEnv": type("OtherEnv", (SelfPlayVecEnv,), methods)}


def other_returns(self):
    last = SelfPlayVecEnv.last_step(self)
    return last._replace(returns=last.returns + np.float32(0.125) * last.ended[:, None])


def other_actions(self, actions):
    """Play the other of the two actions in slots that are not replayed."""
    SelfPlayVecEnv.step_async(self, actions ^ (np.arange(len(actions)) >= games.REPLAYED))


PLANTED = [
    (
        "values",
        {"expected_values": lambda *args: [v + 1e-6 for v in values.expected_values(*args)]},
        "random policy 0: ours pays player_0",
    ),
    ("best-response", measured(best_values=(7.0,) * 3), "policy 0: ours lets player_0 win 7"),
    (
        "best-response",
        measured(best_responses=TREE.legal.argmax(axis=1)),
        "random policy 0, played out: ours lets player_0 win",
    ),
    ("nashconv", measured(nash_conv=9.0), "random policy 0: ours has NashConv 9"),
    ("nashconv", measured(gains=(9.0,) * 3), "random policy 0: ours lets player_0 gain 9"),
    (
        "nashconv",
        {"nash_convs": lambda *args: values.nash_convs(*args) + 1e-6},
        "random policy 0 of a batch: ours has NashConv",
    ),
    ("cfr", variant("lcfr"), "iteration 2, average_policy, '0': ours plays 0"),
    ("cfr+", variant("lcfr"), "ours plays"),
    ("fast", {"make_solver": fast_average_differs}, "dcfr, iteration 2"),
    (
        "policies",
        back(from_document=lambda text, game: OTHER),
        "JSON gives the same policy back does not hold",
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


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject, game=GAME))


def test_every_check_has_a_planted_error():
    assert {row for row, _, _ in WRONG_GAMES + PLANTED} == set(GAME_CHECKS)


NODE = {tuple(TREE.history(node)): node for node in range(TREE.num_nodes)}
DEAL = (0, 1, 2)
STEP = games.Step(0, NODE[DEAL], 0, NODE[*DEAL, 0], (0.0, 0.0, 0.0))  # the first player passes


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"seat": 1}, "ours lets 1 act, OpenSpiel lets 0 act"),
        ({"mask": [True, False]}, "ours allows [True, False]"),
        ({"next_node": NODE[*DEAL, 1]}, "ours continues from [0, 1, 2, 1]"),
        ({"next_node": NODE[*DEAL, 0, 0]}, "0 is a move of chance does not hold"),
        ({"returns": (1.0, 0.0, -1.0)}, "ours pays (1.0, 0.0, -1.0) before the end"),
        ({"next_node": None}, "the returns (0.0, 0.0, 0.0) are possible does not hold"),
    ],
)
def test_every_error_of_a_step_is_described(change, text):
    assert step_cases({}) == []
    assert any(text in case for case in step_cases(change))


def step_cases(change):
    tally, mask = Tally(), change.get("mask", [True, True])
    step = STEP._replace(**{name: new for name, new in change.items() if name != "mask"})
    games.compare_step(GAME, step, mask, tally)
    return tally.cases


def test_tolerances_are_strict():
    assert games.TIE == 1e-11


def test_the_command(capsys):
    assert check.main(["--game", "tiny_hanabi", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "everything agrees" in out
    rows = out.splitlines()[1 : len(GAME_CHECKS) + 1]
    assert [line.split()[1] for line in rows] == list(GAME_CHECKS)
    assert check.main(["--game", "tiny_hanabi", "--only", "tree", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["status"], row["wrong"]) == ("tree", "pass", 0)
    assert check.main(["--game", "tiny_hanabi", "--list"]) == 0
    assert "every node of the tree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--game", "leduk"], "unknown game 'leduk'"),
        (["--game", "nfg_game"], "OpenSpiel cannot load it"),
        (["--game", "tiny_hanabi", "--only", "core"], "unknown check 'core'"),
        (["--game", "tiny_hanabi", "--model", "m.zip"], "--model cannot be combined with --game"),
        (["--game", "tiny_hanabi", "--candidate", "x:y"], "--game cannot be combined with"),
    ],
)
def test_bad_input(arguments, message, capsys):
    assert check.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
