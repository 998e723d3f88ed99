"""The checks against Gambit fail on planted errors."""

import re
from dataclasses import replace

import pytest

from algorithms.games.efg_writer import write_efg
from algorithms.linear_program import Solution, solve_zero_sum
from parity import gambit
from parity.gambit import GAMBIT
from parity.registry import run
from tests.planted_errors import QUICK, failures, measured

pytest.importorskip("pygambit")


def edited(pattern, replacement):
    """Files of games whose text differs in one place."""

    def write(path, tree, labels, players):
        write_efg(path, tree, labels, players)
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(pattern, replacement, text, count=1), encoding="utf-8")

    return {"write": write}


def solved(**changes):
    def solve(tree):
        right = solve_zero_sum(tree)
        return Solution(**(right._asdict() | {name: f(tree, right) for name, f in changes.items()}))

    return {"solve": solve}


PLANTED = [
    ("gambit-tree", edited('p "" 1 2 "[^"]*"', 'p "" 1 99 "new"'), "has 6 information sets"),
    ("gambit-tree", edited("\nt ", '\np "" 1 99 "new" { "only" } 0\nt '), "has [2, 58, 4] players"),
    ("gambit-tree", edited("1/2(.*)1/2", r"1/4\g<1>3/4"), "ours arrives with probability"),
    ("gambit-regrets", measured(values=(7.0, -7.0, 0.0)), "ours has the value 7, Gambit has"),
    ("gambit-regrets", measured(gains=(0.5, 0.5, 0.5)), "ours gains 0.5, Gambit gains"),
    (
        "gambit-value",
        solved(value=lambda tree, right: right.value + 1e-6),
        "kuhn: ours has the value -0.0555545556, Gambit has the value -0.0555555556",
    ),
    (
        "gambit-value",
        solved(policy=lambda tree, right: tree.uniform()),
        "kuhn: ours leaves a regret of 0, Gambit leaves a regret of 0.",
    ),
]


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject)), failures(row, subject)[:5]


def test_a_machine_without_gambit_skips_the_checks(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pygambit", None)
    for row in ("gambit-tree", "gambit-regrets", "gambit-value"):
        result = run(GAMBIT.checks[row], QUICK)
        assert (result.status, result.note) == ("skipped", "pygambit is not installed")


def test_the_random_games_differ_and_have_chance_and_both_kinds_of_players():
    trees = [gambit.random_tree(seed) for seed in range(4)]
    assert {tree.num_players for tree in trees} == {2, 3}
    assert len({tree.num_nodes for tree in trees}) == 4
    for tree in trees:
        assert len(tree.keys) < tree.num_nodes / 3  # information sets have several nodes
        assert replace(tree).num_nodes > 50
