"""`parity.check --game`: passes on games of every kind; each row goes red on a planted error."""

import json
from dataclasses import replace

import numpy as np
import pytest

from algorithms.exact import cfr, fast, values
from algorithms.games import load_game
from algorithms.learning import selfplay
from algorithms.policies import Policy
from parity import check, games
from parity import tally as tally_module
from parity.registry import GAME_CHECKS, Settings, run
from tests.games import KUHN3
from tests.shared_strings import SHARED

ALL = set(GAME_CHECKS)
ALONE = "cliff_walking(height=2,width=3,horizon=3)"  # one player


def results(game):
    settings = Settings(quick=True, game=game)
    return {name: run(item, settings) for name, item in GAME_CHECKS.items()}


def red(game):
    return {name for name, result in results(game).items() if result.status == "FAIL"}


@pytest.mark.parametrize(
    "name", [KUHN3, ALONE, "tiny_hanabi", "matching_pennies_3p", "dark_hex(board_size=2)", SHARED]
)
def test_everything_agrees(name):
    found = results(load_game(name))
    status = {result.status for result in found.values()}
    assert status <= {"pass", "skipped"}
    compared = {name for name, result in found.items() if result.tally.compared}
    skipped = {name for name, result in found.items() if result.status == "skipped"}
    assert compared == ALL - skipped
    expected = {SHARED: {"cfr", "cfr+"}, ALONE: {"cfr", "cfr+"}}
    expected |= {"dark_hex(board_size=2)": {"sights"}}
    assert skipped == expected.get(name, set())


def test_as_much_is_compared_as_ever():
    """Were it less, a comparison would have been lost."""
    found = results(load_game(KUHN3))
    assert {name: result.tally.compared for name, result in found.items()} == {
        "tree": 2099, "sights": 288, "values": 3, "best-response": 6, "nashconv": 5,
        "cfr": 480, "cfr+": 480, "fast": 156, "policies": 4, "environment": 1063,
    }  # fmt: skip


def with_tree(**arrays):
    """Kuhn for three with another array or so in its tree."""
    game = load_game(KUHN3)
    changes = {name: change(getattr(game.tree, name).copy()) for name, change in arrays.items()}
    return replace(game, tree=replace(game.tree, **changes))


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


TREE = load_game(KUHN3).tree
END, DECISION = int(TREE.terminals[7]), int(TREE.members[5])


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        (lambda: with_tree(returns=at((1, END), -9.0)), {"tree", "cfr", "cfr+", "fast"}),
        (lambda: with_tree(edge=at(1, 0.3)), {"tree"}),
        (lambda: with_tree(action=at(int(TREE.first_child[DECISION]), 2)), {"tree"}),
        (lambda: with_tree(player=at(DECISION, 2)), {"tree"}),
        (lambda: with_tree(legal=at((0, 1), False)), {"tree"}),
        (lambda: with_tree(infoset=at(DECISION, 9)), {"tree", "sights"}),
        (
            lambda: with_tree(stakes=at((1, 3), 0.7)),
            {"values", "best-response", "nashconv", "fast"},
        ),
    ],
)
def test_a_wrong_tree_is_noticed(planted, expected):
    assert expected <= red(planted())


def test_wrong_sights_are_noticed():
    right = load_game(KUHN3)

    def wrong(_):
        seen = right.observations.copy()
        seen[3, 1] += 0.5
        return seen

    source = replace(right.source, observations=wrong)
    assert red(replace(right, source=source)) == {"sights"}


def off(function, change):
    return lambda *args, **kwargs: change(function(*args, **kwargs))


@pytest.mark.parametrize(
    ("module", "name", "change", "expected"),
    [
        (values, "nash_convs", lambda found: found + 1e-6, {"nashconv"}),
        (values, "expected_values", lambda v: (v[0] + 1e-6, *v[1:]), {"values", "best-response"}),
        (values, "pure_policy", lambda table: np.roll(table, 1, axis=1), {"best-response"}),
        (cfr, "CFR", None, {"cfr"}),
        (cfr, "CFR_PLUS", None, {"cfr+"}),
        (games, "to_pyspiel_tabular", lambda _: games.to_python_tabular(OTHER), {"policies"}),
        (games, "to_python_tabular", lambda _: games.to_openspiel(OTHER), {"policies"}),
        (games, "measured_by_openspiel", lambda t: replace(t, gains=(9.0,) * 3), {"nashconv"}),
    ],
)
def test_a_wrong_function_is_noticed(module, name, change, expected, monkeypatch):
    right = getattr(module, name)
    wrong = cfr.LINEAR_CFR if change is None else off(right, change)
    monkeypatch.setattr(module, name, wrong)
    assert red(load_game(KUHN3)) == expected


def doubled(layout):
    blocks, matrices, first = layout
    return blocks, np.concatenate([2 * matrices[:1], matrices[1:]]), first


def moved(layout):
    (at, others, which), matrices, first = layout
    return (at, others, np.roll(which, 1)), matrices, first


@pytest.mark.parametrize("name", [KUHN3, "leduc_poker"])
@pytest.mark.parametrize("wrong", [doubled, moved])
def test_a_wrong_layout_of_the_fast_mode_is_noticed(name, wrong, monkeypatch):
    settings = Settings(quick=True, game=load_game(name))
    assert run(GAME_CHECKS["fast"], settings).status == "pass"
    monkeypatch.setattr(fast, "_blocks", off(fast._blocks, wrong))
    result = run(GAME_CHECKS["fast"], settings)
    assert result.status == "FAIL"
    assert "iteration 1" in result.tally.cases[0]


def test_a_fast_mode_that_averages_otherwise_is_noticed(monkeypatch):
    def wrong(tree, variant, mode):
        return right(tree, replace(variant, gamma=variant.gamma + (mode == "fast")), mode=mode)

    right = games.make_solver
    monkeypatch.setattr(games, "make_solver", wrong)
    assert red(load_game(KUHN3)) == {"fast"}


def wrong_returns(board):
    return board._replace(returns=board.returns + (board.player[:, None] == -4) * np.float32(0.125))


def wrong_deal(board):
    return board._replace(dealt=np.linspace(0.5, 1, len(board.dealt)))


def wrong_turns(board):
    player = board.player.copy()
    player[player == 2] = 1
    return board._replace(player=player)


@pytest.mark.parametrize("wrong", [wrong_returns, wrong_deal, wrong_turns])
def test_a_wrong_environment_is_noticed(wrong, monkeypatch):
    monkeypatch.setattr(selfplay, "board_of", off(selfplay.board_of, wrong))
    assert red(load_game(KUHN3)) == {"environment"}


def test_opponents_that_play_something_else_are_noticed(monkeypatch):
    uniform = load_game(KUHN3).tree.uniform()
    right = selfplay.SelfPlayVecEnv.set_opponent
    monkeypatch.setattr(
        selfplay.SelfPlayVecEnv, "set_opponent", lambda env, policy: right(env, uniform)
    )
    assert red(load_game(KUHN3)) == {"environment"}


OTHER = Policy.random(KUHN3, 77)


# One row compares several things. Each is seen to fail: (row, game, what is patched, what is told).


def nothing(monkeypatch):
    """The game itself is wrong."""


def set_to(thing, name, value):
    return lambda monkeypatch: monkeypatch.setattr(thing, name, value)


def wrong_best_values(monkeypatch):
    right = values.evaluate_policy

    def wrong(tree, policy):
        return replace(right(tree, policy), best_values=(7.0,) * 3)

    monkeypatch.setattr(values, "evaluate_policy", wrong)


def fast_mode_off(monkeypatch):
    right = games.make_solver

    def make_solver(tree, variant, mode):
        wrong = mode == "fast" and variant is cfr.DISCOUNTED_CFR
        return right(tree, replace(variant, gamma=1) if wrong else variant, mode=mode)

    monkeypatch.setattr(games, "make_solver", make_solver)


def other_keys():
    game = load_game(KUHN3)
    return replace(game, tree=replace(game.tree, keys=("other", *game.tree.keys[1:])))


def a_little_more(honest):
    return lambda *args: honest(*args) + 1e-6


RIGHT = games.measured_by_openspiel
FIRST = int(TREE.first_child[DECISION])
EACH = [
    ("tree", other_keys, nothing, "ours knows (0, 'other')"),
    ("tree", lambda: with_tree(infoset=at(DECISION, 9)), nothing, "OpenSpiel is information set 9"),
    ("tree", lambda: with_tree(action=at(FIRST, 2)), nothing, "ours allows [2, 1]"),
    (
        "tree",
        lambda: with_tree(player=lambda array: np.append(array, array[-1:])),
        nothing,
        f"the whole tree: ours has {TREE.num_nodes + 1} nodes",
    ),
    (
        "best-response",
        lambda: load_game(KUHN3),
        wrong_best_values,
        "random policy 0: ours lets player_0 win 7",
    ),
    (
        "nashconv",
        lambda: load_game(KUHN3),
        set_to(games, "measured_by_openspiel", lambda p: replace(RIGHT(p), nash_conv=9.0)),
        "random policy 0: ours has NashConv",
    ),
    (
        "cfr",
        lambda: load_game(KUHN3),
        set_to(cfr.Solver, "average_policy", a_little_more(cfr.Solver.average_policy)),
        "iteration 1, '0': ours plays 0 with probability",
    ),
    ("fast", lambda: load_game(KUHN3), fast_mode_off, "dcfr, iteration 2"),
    (
        "policies",
        lambda: load_game(KUHN3),
        set_to(Policy, "from_json", lambda text, game: OTHER),
        "JSON gives the same policy back does not hold",
    ),
]


@pytest.mark.parametrize(("row", "game", "plant", "told"), EACH)
def test_every_comparison_of_a_row_is_seen_to_fail(row, game, plant, told, monkeypatch):
    wrong = game()
    monkeypatch.setattr(tally_module, "CASES_KEPT", 10**6)
    plant(monkeypatch)
    result = run(GAME_CHECKS[row], Settings(quick=True, game=wrong))
    assert result.status == "FAIL"
    assert [case for case in result.tally.cases if told in case] != []


NODE = {tuple(TREE.history(node)): node for node in range(TREE.num_nodes)}
DEAL = (0, 1, 2)
STEP = games._Step(0, NODE[DEAL], 0, NODE[*DEAL, 0, 1, 0], 0.0)  # pass, bet, fold: asked again


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seat": 1}, "ours lets 1 act, OpenSpiel lets 0 act"),
        ({"mask": [True, False]}, "ours allows [True, False]"),
        ({"there": NODE[*DEAL, 1, 0, 0]}, "ours goes on from [0, 1, 2, 1]"),
        ({"there": NODE[*DEAL, 0, 0, 1, 0]}, "0 is another's move does not hold"),
        ({"there": NODE[*DEAL, 0, 0]}, "ours then lets 0 act, OpenSpiel then lets 2 act"),
        ({"reward": 1.0}, "ours pays 1 on the way"),
        ({"there": None, "reward": 0.125}, "0.125 can be won does not hold"),
    ],
)
def test_every_fault_of_a_step_is_told(change, told):
    assert faults({}) == []
    assert any(told in case for case in faults(change))


def faults(change):
    tally, mask = tally_module.Tally(), change.get("mask", [True, True])
    step = STEP._replace(**{name: new for name, new in change.items() if name != "mask"})
    games._compare_step(load_game(KUHN3), step, mask, tally)
    return tally.cases


def test_a_lossy_file_is_noticed(monkeypatch):
    right = Policy.to_players

    def rounded(policy):
        players = right(policy)
        key = next(iter(players[0]))
        players[0][key] = {a: round(p, 9) for a, p in players[0][key].items()}
        return players

    monkeypatch.setattr(Policy, "to_players", rounded)
    assert red(load_game(KUHN3)) == {"policies"}


def test_the_command(capsys):
    assert check.main(["--game", "tiny_hanabi", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "everything agrees" in out
    assert [line.split()[1] for line in out.splitlines()[1 : len(ALL) + 1]] == list(GAME_CHECKS)
    assert check.main(["--game", "tiny_hanabi", "--only", "tree", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["status"], row["wrong"]) == ("tree", "pass", 0)
    assert check.main(["--game", "tiny_hanabi", "--list"]) == 0
    assert "every node of the tree" in capsys.readouterr().out


def test_a_mismatch_exits_1_and_says_where(capsys, monkeypatch):
    monkeypatch.setattr(cfr, "CFR", cfr.LINEAR_CFR)
    assert check.main(["--game", "tiny_hanabi", "--only", "cfr"]) == 1
    out = capsys.readouterr().out
    assert "cfr: iteration 2, 'p0:d0': ours plays 0 with probability" in out
    assert "1 of 1 checks FAIL" in out


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
