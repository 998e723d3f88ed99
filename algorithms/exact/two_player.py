"""Two players: iterated elimination of dominated strategies, and equilibria by linear programs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.exact.tree import Tree
from algorithms.exact.values import reach_probabilities
from algorithms.support.arrays import BoolArray, Float64Array
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import PLAYERS

MAX_STRATEGIES = 2_000
PAYOFF_TOLERANCE = 1e-12  # of the largest payoff: chance probabilities are rounded


@dataclass(frozen=True, slots=True)
class Removal:
    """An action that no surviving strategy plays, and the round that removed it."""

    round: int
    infoset: int
    action: int


@dataclass(frozen=True, slots=True)
class Elimination:
    """The removed actions, and the players' numbers of strategies at first and after each round."""

    removals: tuple[Removal, ...]
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Exposure(Removal):
    """A dominated action that a policy plays, its probability, and its cost in chips per hand.

    The cost is how much more the player would win by never playing the action, all else equal:
    `cost` against the policy's own other seat, `worst` against the opponent that makes it highest.
    """

    probability: float
    cost: float
    worst: float


def eliminate(tree: Tree, *, strict: bool = False) -> Elimination:
    """Remove all dominated pure strategies of both players, in rounds, until there are none.

    A strategy is dominated if another one is never worse and sometimes better (`strict`: always
    better). Strategies are reduced: they do not choose at information sets that they never reach.
    """
    if tree.num_players != 2:
        raise GameError(f"{tree.name} has {tree.num_players} players; elimination needs two")
    plans = [reduced_strategies(tree, player) for player in PLAYERS]
    payoffs = [plans[p] @ payoff_matrix(tree, p) @ plans[1 - p].T for p in PLAYERS]
    slacks = [PAYOFF_TOLERANCE * max(1.0, np.abs(payoff).max()) for payoff in payoffs]
    removals: list[Removal] = []
    sizes = [(len(plans[0]), len(plans[1]))]
    while True:
        undominated = [~dominated_rows(payoffs[p], slacks[p], strict) for p in PLAYERS]
        if all(mask.all() for mask in undominated):
            return Elimination(tuple(removals), tuple(sizes))
        for player in PLAYERS:
            played, plans[player] = plans[player].any(axis=0), plans[player][undominated[player]]
            removed = np.flatnonzero(played & ~plans[player].any(axis=0)) - 1
            removals += [Removal(len(sizes), *tree.slots[s, [0, 3]].tolist()) for s in removed]
            payoffs[player] = payoffs[player][np.ix_(undominated[player], undominated[1 - player])]
        sizes.append((len(plans[0]), len(plans[1])))


def reduced_strategies(tree: Tree, player: int) -> Float64Array:
    """All pure strategies of a player as realization plans of 0 and 1: `(strategies, S + 1)`."""
    plans = np.zeros((1, tree.num_slots + 1))
    plans[0, 0] = 1
    for infoset in np.flatnonzero(tree.owner == player):  # parents first
        arrives = plans[:, tree.parent_sequence[infoset]] > 0
        choices = []
        for slot in range(tree.first_slot[infoset], tree.first_slot[infoset + 1]):
            choice = plans[arrives]
            choice[:, slot + 1] = 1
            choices.append(choice)
        plans = np.concatenate([plans[~arrives], *choices])
        if len(plans) > MAX_STRATEGIES:
            raise GameError(f"{tree.name} has more than {MAX_STRATEGIES:,} strategies per player")
    return plans


def exposures(
    tree: Tree, policy: Float64Array, elimination: Elimination, *, above: float = 0.0
) -> tuple[Exposure, ...]:
    """Where a joint policy `(I, A)` plays dominated actions with probability over `above`.

    Information sets where all actions were removed are left out: the mistake is to get there.
    """
    cleaned = without_dominated(tree, policy, elimination)
    surviving, reach = _surviving_actions(tree, elimination), reach_probabilities(tree, policy)
    found = []
    for removal in elimination.removals:
        infoset, action = removal.infoset, removal.action
        if surviving[infoset].any() and policy[infoset, action] > above:
            owner = int(tree.owner[infoset])
            better = policy.copy()
            better[infoset] = cleaned[infoset]
            # The owner's gain, by the opponent's sequence.
            gained = (reach_probabilities(tree, better) - reach) @ payoff_matrix(tree, owner)
            cost = float(gained @ reach)
            worst = float((reduced_strategies(tree, 1 - owner) @ gained).max())
            probability = float(policy[infoset, action])
            found.append(Exposure(removal.round, infoset, action, probability, cost, worst))
    return tuple(found)


def without_dominated(tree: Tree, policy: Float64Array, elimination: Elimination) -> Float64Array:
    """The policy `(I, A)` with dominated actions removed and the others rescaled.

    Unchanged where all actions were removed, because no surviving strategy arrives there.
    """
    left = _surviving_actions(tree, elimination)
    left |= tree.legal & ~left.any(axis=1, keepdims=True)
    weights = policy * left
    unplayed = weights.sum(axis=1) == 0
    weights[unplayed] = left[unplayed]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def payoff_matrix(tree: Tree, player: int) -> Float64Array:
    """A player's payoffs by its own and the opponent's sequence: `(S + 1, S + 1)`."""
    matrix = np.zeros((tree.num_slots + 1,) * 2)
    sequences = tree.terminal_sequence[player], tree.terminal_sequence[1 - player]
    np.add.at(matrix, sequences, tree.terminal_payoff[player])
    return matrix


def _surviving_actions(tree: Tree, elimination: Elimination) -> BoolArray:
    """Which actions some surviving strategy plays: `(I, A)`."""
    left = tree.legal.copy()
    for removal in elimination.removals:
        left[removal.infoset, removal.action] = False
    return left


@compiled
def dominated_rows(payoff: Float64Array, slack: float, strict: bool) -> BoolArray:
    """Which rows of payoffs `(own strategies, opponent's)` another row dominates."""
    rows, columns = payoff.shape
    found = np.zeros(rows, np.bool_)
    for row in range(rows):
        for other in range(rows):
            never_worse, better = other != row, strict
            for column in range(columns):
                margin = payoff[other, column] - payoff[row, column]
                if margin < -slack or (strict and margin <= slack):
                    never_worse = False
                    break
                better = better or margin > slack
            if never_worse and better:
                found[row] = True
                break
    return found


class Solution(NamedTuple):
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
    matrix = np.zeros((len(infosets) + 1, tree.num_slots + 1))
    matrix[0, 0] = 1
    for row, infoset in enumerate(infosets, start=1):
        matrix[row, tree.first_slot[infoset] + 1 : tree.first_slot[infoset + 1] + 1] = 1
        matrix[row, tree.parent_sequence[infoset]] = -1
    return matrix
