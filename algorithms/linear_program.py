"""Equilibria of two-player zero-sum games by linear programs in sequence form."""

from typing import NamedTuple

import numpy as np

from algorithms.support.arrays import Float64Array
from algorithms.tree import Tree
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import PLAYERS


class Solution(NamedTuple):
    """One equilibrium `(I, A)` of a two-player zero-sum tree, and its value for player 0."""

    policy: Float64Array
    value: float


def solve_zero_sum(tree: Tree) -> Solution:
    """An equilibrium from the sequence-form linear programs (Koller, Megiddo, von Stengel 1996)."""
    if tree.num_players != 2 or np.abs(tree.returns.sum(axis=0)).max() > 1e-9:
        raise GameError(f"{tree.name} is not a two-player zero-sum game; linear programs need one")
    plans, values = zip(*(_maxmin(tree, player) for player in PLAYERS), strict=True)
    plan = np.where(tree.choice_owner == 0, plans[0][1:], plans[1][1:])
    policy = tree.normalized(np.maximum(plan, 0), above=1e-12)
    return Solution(policy, (values[0] - values[1]) / 2)


def _maxmin(tree: Tree, player: int) -> tuple[Float64Array, float]:
    """The realization plan `(S + 1,)` of a player with the highest guaranteed value, and the value.

    Maximize q[0] over plans x and values q of the opponent's information sets, subject to E x = e
    (x is a plan) and F^T q <= A^T x (no sequence of the opponent gives it more than q says).
    """
    from scipy.optimize import linprog

    own, other = _constraints(tree, player), _constraints(tree, 1 - player)
    (rows, sequences), values = own.shape, len(other)
    result = linprog(
        -np.eye(1, sequences + values, sequences),
        A_ub=np.hstack([-payoff_matrix(tree, player).T, other.T]),
        b_ub=np.zeros(sequences),
        A_eq=np.hstack([own, np.zeros((rows, values))]),
        b_eq=np.eye(1, rows),
        bounds=[(0, None)] * sequences + [(None, None)] * values,
        method="highs",
    )
    if result.status != 0:
        raise GameError(f"{tree.name}: the linear program was not solved: {result.message}")
    return np.asarray(result.x[:sequences]), -float(result.fun)


def _constraints(tree: Tree, player: int) -> Float64Array:
    """E or F: `(1 + own information sets, S + 1)`.

    The empty sequence has probability 1; an information set's slots sum to its parent sequence.
    """
    infosets = np.flatnonzero(tree.owner == player)
    matrix = np.zeros((len(infosets) + 1, tree.num_choices + 1))
    matrix[0, 0] = 1
    for row, infoset in enumerate(infosets, start=1):
        matrix[row, tree.first_choice[infoset] + 1 : tree.first_choice[infoset + 1] + 1] = 1
        matrix[row, tree.parent_sequence[infoset]] = -1
    return matrix


def payoff_matrix(tree: Tree, player: int) -> Float64Array:
    """A player's payoffs by its own and the opponent's sequence: `(S + 1, S + 1)`."""
    matrix = np.zeros((tree.num_choices + 1,) * 2)
    sequences = tree.terminal_sequence[player], tree.terminal_sequence[1 - player]
    np.add.at(matrix, sequences, tree.terminal_payoff[player])
    return matrix
