"""Equilibria of two-player zero-sum trees by linear programs in sequence form."""

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
    if tree.num_players != 2 or np.abs(tree.returns.sum(axis=0)).max() > 1e-9:
        raise GameError(f"{tree.name} is not a two-player zero-sum game; linear programs need one")
    plans, values = zip(*(_maxmin(tree, player) for player in PLAYERS), strict=True)
    plan = np.where(tree.slots[:, 1] == 0, plans[0][1:], plans[1][1:])
    policy = tree.normalized(np.maximum(plan, 0), above=1e-12)
    return Solution(policy, (values[0] - values[1]) / 2)


def _maxmin(tree: Tree, player: int) -> tuple[Float64Array, float]:
    """The realization plan `(S + 1,)` of a player with the highest guaranteed value, and the value.

    Maximize q[0] over plans x and values q of the opponent's information sets, subject to E x = e
    (x is a plan) and F^T q <= A^T x (no sequence of the opponent gives it more than q says).
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, coo_array

    own, other = _constraints(tree, player), _constraints(tree, 1 - player)
    sequences = tree.terminal_sequence[1 - player], tree.terminal_sequence[player]
    payoff = coo_array((tree.terminal_payoff[player], sequences), shape=(tree.num_slots + 1,) * 2)
    fixed = np.zeros(own.shape[0])
    fixed[0] = 1
    objective = np.zeros(own.shape[1] + other.shape[0])
    objective[own.shape[1]] = -1
    result = linprog(
        objective,
        A_ub=block_array([[-payoff, other.T]]).tocsr(),
        b_ub=np.zeros(tree.num_slots + 1),
        A_eq=block_array([[own, coo_array((own.shape[0], other.shape[0]))]]).tocsr(),
        b_eq=fixed,
        bounds=[(0, None)] * own.shape[1] + [(None, None)] * other.shape[0],
        method="highs",
    )
    if result.status != 0:
        raise GameError(f"{tree.name}: the linear program was not solved: {result.message}")
    return np.asarray(result.x[: own.shape[1]]), -float(result.fun)


def _constraints(tree: Tree, player: int) -> Any:
    """Sparse `(1 + own information sets, S + 1)`.

    The empty sequence has probability 1; an information set's slots sum to its parent sequence.
    """
    from scipy.sparse import coo_array

    infosets = np.flatnonzero(tree.owner == player)
    starts, stops = tree.first_slot[infosets], tree.first_slot[infosets + 1]
    slots = ranges(starts, stops)
    number = np.arange(1, len(infosets) + 1)
    values = np.concatenate([[1.0], np.ones(len(slots)), -np.ones(len(infosets))])
    row = np.concatenate([[0], np.repeat(number, stops - starts), number])
    column = np.concatenate([[0], slots + 1, tree.parent_sequence[infosets]])
    return coo_array((values, (row, column)), shape=(len(infosets) + 1, tree.num_slots + 1))
