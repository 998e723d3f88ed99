"""Equilibria of two-player zero-sum trees by linear programs in sequence form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.exact.tree import Tree, ranges
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import PLAYERS


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """One equilibrium `(I, A)` of a two-player zero-sum tree, and its value for player 0."""

    policy: Float64Array
    value: float


def solve_zero_sum(tree: Tree) -> Solution:
    """An equilibrium from the sequence-form linear programs (Koller, Megiddo, von Stengel 1996)."""
    total = tree.returns.sum(axis=0)
    if tree.num_players != 2 or np.abs(total).max() > 1e-9:
        raise GameError(f"{tree.name} is not a two-player zero-sum game; the program needs one")
    plans, values = zip(*(_maxmin(tree, player) for player in PLAYERS), strict=True)
    slot_owner = np.repeat(tree.owner, np.diff(tree.first_slot))
    plan = np.where(slot_owner == 0, plans[0][1:], plans[1][1:])
    return Solution(behaviour(tree, plan), (values[0] - values[1]) / 2)


def behaviour(tree: Tree, plan: Float64Array) -> Float64Array:
    """The policy `(I, A)` of a realisation plan over slots `(S,)`; uniform off its path."""
    weights = tree.policy_of(np.maximum(plan, 0))
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 1e-12, weights / np.maximum(sums, 1e-12), tree.uniform())


def _maxmin(tree: Tree, player: int) -> tuple[Float64Array, float]:
    """The plan `(S + 1,)` of `player` that guarantees most, and what it guarantees.

    Maximise q[0] over plans x and counter-values q of the other's information sets: x and q obey
    E x = e, and no sequence of the other gives it more than q says: F^T q <= A^T x.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, coo_array

    own, other = _constraints(tree, player), _constraints(tree, 1 - player)
    payoff = coo_array(
        (tree.stakes[player], (tree.ends[1 - player], tree.ends[player])),
        shape=(tree.num_slots + 1,) * 2,
    )
    fixed = np.zeros(own.shape[0])
    fixed[0] = 1
    goal = np.zeros(own.shape[1] + other.shape[0])
    goal[own.shape[1]] = -1
    free = [(0, None)] * own.shape[1] + [(None, None)] * other.shape[0]
    result = linprog(
        goal,
        A_ub=block_array([[-payoff, other.T]]).tocsr(),
        b_ub=np.zeros(tree.num_slots + 1),
        A_eq=block_array([[own, coo_array((own.shape[0], other.shape[0]))]]).tocsr(),
        b_eq=fixed,
        bounds=free,
        method="highs",
    )
    if result.status != 0:
        raise GameError(f"{tree.name}: the linear program was not solved: {result.message}")
    return np.asarray(result.x[: own.shape[1]]), -float(result.fun)


def _constraints(tree: Tree, player: int) -> Any:
    """Sparse `(1 + own information sets, S + 1)`: a plan starts at 1 and is handed on whole."""
    from scipy.sparse import coo_array

    rows = np.flatnonzero(tree.owner == player)
    starts, stops = tree.first_slot[rows], tree.first_slot[rows + 1]
    slots = ranges(starts, stops)
    number = np.arange(1, len(rows) + 1)
    values = np.concatenate([[1.0], np.ones(len(slots)), -np.ones(len(rows))])
    row = np.concatenate([[0], np.repeat(number, stops - starts), number])
    column = np.concatenate([[0], slots + 1, tree.parent[rows]])
    return coo_array((values, (row, column)), shape=(len(rows) + 1, tree.num_slots + 1))
