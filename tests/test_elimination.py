"""Elimination at its edges: unreached information sets, many strategies, large payoffs."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from algorithms.exact.elimination import (
    dominated_rows,
    eliminate,
    exposures,
    without_dominated,
)
from algorithms.exact.tree import TERMINAL, Visit, compile_tree
from algorithms.games.kuhn import kuhn_tree


def _retreat():
    """Player 0 takes 1 chip, or goes on and loses 1 or 2; player 1 only watches."""
    yield Visit(0, 0, key="first", legal=(0, 1))
    yield Visit(1, TERMINAL, 0, returns=(1.0, -1.0))
    yield Visit(1, 0, 1, key="second", legal=(0, 1))
    yield Visit(2, TERMINAL, 0, returns=(-1.0, 1.0))
    yield Visit(2, TERMINAL, 1, returns=(-2.0, 2.0))


def test_an_information_set_that_no_survivor_reaches():
    """All its actions are removed: the policy there stays, and the way there is the mistake."""
    flat = compile_tree("retreat", 2, 2, _retreat())
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
            assert dominated_rows(payoff, slack, strict=strict).tolist() == expected.tolist()


def test_comparing_strategies_takes_little_memory():
    """Every pair at once would take 10 bytes for each of 400 x 400 x 400 numbers."""
    payoff = np.random.default_rng(0).normal(size=(400, 400))
    dominated_rows(payoff[:2], 1e-12, strict=False)
    tracemalloc.start()
    try:
        dominated_rows(payoff, 1e-12, strict=False)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_the_tolerance_grows_with_the_payoffs():
    """A rounding error of millions is a tie."""
    flat = kuhn_tree()
    big = replace(flat, terminal_payoff=flat.terminal_payoff * 1e9 * (1 + 1e-15))
    assert eliminate(big).sizes == eliminate(flat).sizes
