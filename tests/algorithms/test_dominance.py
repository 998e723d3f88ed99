"""Elimination of dominated strategies, and policies that play dominated actions."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from algorithms.dominance import (
    dominated_rows,
    eliminate,
    exposures,
    main,
    reduced_strategies,
    without_dominated,
)
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import nash
from algorithms.tree import TERMINAL, TreeBuilder, Visit
from kuhn_bridge import Action
from kuhn_bridge.errors import GameError
from tests.games import KUHN3, LEDUC, tree
from tests.strategies import policies

TREE = kuhn_tree()
WEAK = eliminate(TREE)


def test_the_rounds_of_kuhn(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "27 x 64 reduced pure strategies",
        "round 1 leaves 12 x 8 and removes",
        "  player_0 with J after check-bet: call",
        "  player_0 with K after check-bet: fold",
        "  player_1 with K after check: check",
        "  player_1 with J after bet: call",
        "  player_1 with K after bet: fold",
        "round 2 leaves 8 x 4 and removes",
        "  player_0 with Q to start: bet",
        "  player_1 with Q after check: bet",
    ]


def test_nothing_is_strictly_dominated(capsys):
    """Every action of Kuhn is as good as any against an opponent who never lets it come up."""
    assert eliminate(TREE, strict=True).removals == ()
    assert main(["--strict"]) == 0
    assert capsys.readouterr().out == "27 x 64 reduced pure strategies\nno strategy is dominated\n"


def test_the_gate(capsys):
    assert main(["nash:0.2"]) == 0
    assert "nash:0.2 plays no dominated action" in capsys.readouterr().out
    assert main(["uniform"]) == 1
    out = capsys.readouterr().out
    assert "player_1 with K after bet: fold            1  0.5000   0.2500    0.5000" in out
    assert "NashConv 0.916667; with the dominated actions removed 0.166667" in out
    assert main(["uniform", "--max", "0.6"]) == 0


def test_json(capsys):
    assert main(["random:3", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["sizes"] == [[27, 64], [12, 8], [8, 4]]
    assert {"round": 2, "player": 0, "key": "1", "action": "BET"} in document["removals"]
    assert document["nash_conv_without"] < document["nash_conv"]
    assert {e["key"] for e in document["exposures"]} <= set(TREE.keys)


@pytest.mark.parametrize("arguments", [["nowhere.json"], ["uniform", "--max", "nan"], ["--max=-1"]])
def test_bad_input(arguments, refused):
    assert refused(main, arguments)


def test_what_an_exposure_costs():
    """Fold K to a bet always: that alone costs 3 chips each time a bettor meets K."""
    policy = nash(0).copy()
    policy[TREE.keys.index("2b")] = 0, 0, 1
    (found,) = exposures(TREE, policy, WEAK)
    assert (found.round, TREE.keys[found.infoset], found.action) == (1, "2b", Action.FOLD)
    assert found.cost == pytest.approx(0)  # nash:0 never bets as player_0
    assert found.worst == pytest.approx(1 / 3 * 3)  # K one time in three, -1 instead of +2


@given(policies())
def test_costs_of_any_policy_and_the_same_policy_cleaned(policy):
    for found in exposures(TREE, policy.table, WEAK):
        assert found.worst >= -1e-12
        assert found.cost >= -1e-12 or found.round > 1
    cleaned = without_dominated(TREE, policy.table, WEAK)
    assert exposures(TREE, cleaned, WEAK) == ()
    assert cleaned.sum(axis=1) == pytest.approx(1)
    assert (cleaned[~TREE.legal] == 0).all()


def test_reduced_strategies_are_strategies():
    for player, count in ((0, 27), (1, 64)):
        plans = reduced_strategies(TREE, player)
        assert len(plans) == len(np.unique(plans, axis=0)) == count
        for row in np.flatnonzero(TREE.owner == player):
            own = plans[:, TREE.first_choice[row] + 1 : TREE.first_choice[row + 1] + 1]
            assert np.array_equal(own.sum(axis=1), plans[:, TREE.parent_sequence[row]])


@pytest.mark.parametrize(("name", "words"), [(KUHN3, "3 players"), (LEDUC, "more than")])
def test_games_that_are_too_much(name, words):
    with pytest.raises(GameError, match=words):
        eliminate(tree(name))


def test_another_game(capsys):
    assert main(["--game", "turn_based_simultaneous_game(game=matrix_pd())", "--strict"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 x 2 reduced pure strategies",
        "round 1 leaves 1 x 1 and removes",
        "  player_0 at 'Current player: 0 Observing player: 0. Non-terminal': Cooperate",
        "  player_1 at 'Current player: 1 Observing player: 1. Non-terminal': Cooperate",
    ]
    assert main(["uniform", "--game", "matrix_pd", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["game"] == "turn_based_simultaneous_game(game=matrix_pd())"
    assert [(e["player"], e["probability"]) for e in document["exposures"]] == [(0, 0.5), (1, 0.5)]
    assert main(["uniform", "--game", "leduc_poker"]) == 2


# Unreached information sets, many strategies, large payoffs.


def _retreat():
    """Player 0 takes 1 chip, or goes on and loses 1 or 2; player 1 only watches."""
    yield Visit(0, 0, key="first", legal=(0, 1))
    yield Visit(1, TERMINAL, 0, returns=(1.0, -1.0))
    yield Visit(1, 0, 1, key="second", legal=(0, 1))
    yield Visit(2, TERMINAL, 0, returns=(-1.0, 1.0))
    yield Visit(2, TERMINAL, 1, returns=(-2.0, 2.0))


def test_an_information_set_that_no_survivor_reaches():
    """All its actions are removed: the policy there stays, and the way there is the mistake."""
    flat = TreeBuilder("retreat", 2, 2).build(_retreat())
    elimination = eliminate(flat)
    assert {(r.infoset, r.action) for r in elimination.removals} == {(0, 1), (1, 0), (1, 1)}
    policy = np.array([[0.5, 0.5], [0.25, 0.75]])
    cleaned = without_dominated(flat, policy, elimination)
    assert cleaned.tolist() == [[1, 0], [0.25, 0.75]]
    (found,) = exposures(flat, policy, elimination)
    assert (flat.keys[found.infoset], found.action, found.probability) == ("first", 1, 0.5)
    assert found.cost == pytest.approx(0.5 * (1 + 1.75))
    assert exposures(flat, cleaned, elimination) == ()


@pytest.mark.parametrize("strict", [False, True])
def test_dominance_by_its_definition(strict):
    rng = np.random.default_rng(1)
    for _ in range(200):
        payoff = rng.integers(0, 3, size=(rng.integers(1, 7), rng.integers(1, 4))).astype(float)
        margin = payoff[None] - payoff[:, None]  # [s, r]: what r wins more than s
        wins = (margin > 0).all(axis=2)
        weakly = (margin >= 0).all(axis=2) & (margin > 0).any(axis=2)
        expected = (wins if strict else weakly).any(axis=1)
        for slack in (0.0, 1e-12):
            assert dominated_rows(payoff, slack, strict).tolist() == expected.tolist()


def test_comparing_strategies_takes_little_memory():
    """Every pair at once would take 10 bytes for each of 400 x 400 x 400 numbers."""
    payoff = np.random.default_rng(0).normal(size=(400, 400))
    dominated_rows(payoff[:2], 1e-12, False)
    tracemalloc.start()
    try:
        dominated_rows(payoff, 1e-12, False)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_the_tolerance_grows_with_the_payoffs():
    """A rounding error of millions is a tie."""
    big = replace(TREE, terminal_payoff=TREE.terminal_payoff * 1e9 * (1 + 1e-15))
    assert eliminate(big).sizes == WEAK.sizes
