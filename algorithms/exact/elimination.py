"""Iterated elimination of dominated strategies, and where a policy plays dominated actions."""

from dataclasses import dataclass

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
class Exposure:
    """A dominated action that a policy plays, its probability, and its cost in chips per hand.

    The cost is how much more the player would win by never playing the action, all else equal:
    `cost` against the policy's own other seat, `worst` against the opponent that makes it highest.
    """

    round: int
    infoset: int
    action: int
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
    alive = [np.ones(len(plan), np.bool_) for plan in plans]
    played = [plan.any(axis=0) for plan in plans]
    sizes = [(len(plans[0]), len(plans[1]))]
    removals: list[Removal] = []
    while True:
        dominated = [
            dominated_rows(payoffs[p][np.ix_(alive[p], alive[1 - p])], slacks[p], strict=strict)
            for p in PLAYERS
        ]
        if not any(mask.any() for mask in dominated):
            return Elimination(tuple(removals), tuple(sizes))
        for player in PLAYERS:
            alive[player][np.flatnonzero(alive[player])[dominated[player]]] = False
            still = plans[player][alive[player]].any(axis=0)
            removed = np.flatnonzero(played[player] & ~still) - 1
            played[player] = still
            removals += [Removal(len(sizes), *tree.slots[s, [0, 3]].tolist()) for s in removed]
        sizes.append((int(alive[0].sum()), int(alive[1].sum())))


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
    surviving = _surviving_actions(tree, elimination)
    reach = reach_probabilities(tree, policy)
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


def dominated_rows(payoff: Float64Array, slack: float, *, strict: bool) -> BoolArray:
    """Which rows of payoffs `(own strategies, opponent's)` another row dominates."""
    found = np.zeros(len(payoff), np.bool_)
    _find_dominated(payoff, slack, strict, found)
    return found


def _surviving_actions(tree: Tree, elimination: Elimination) -> BoolArray:
    """Which actions some surviving strategy plays: `(I, A)`."""
    left = tree.legal.copy()
    for removal in elimination.removals:
        left[removal.infoset, removal.action] = False
    return left


@compiled
def _find_dominated(payoff: Float64Array, slack: float, strict: bool, found: BoolArray) -> None:
    rows, columns = payoff.shape
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
