"""Iterated elimination of dominated strategies, and where a policy plays what it removes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.exact.tree import Tree
from algorithms.support.arrays import BoolArray, Float64Array
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import PLAYERS

MAX_STRATEGIES = 2_000
PAYOFF_TOLERANCE = 1e-12  # of the largest payoff: chance's probabilities are rounded


@dataclass(frozen=True, slots=True)
class Removal:
    """An action that no surviving strategy plays any more, and the round that removed it."""

    round: int
    row: int
    action: int


@dataclass(frozen=True, slots=True)
class Elimination:
    """What iterated elimination removes; `sizes` are strategies left, at first and each round."""

    removals: tuple[Removal, ...]
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Exposure:
    """A dominated action that a policy plays, how often, and what that costs in chips per hand.

    `cost` is against the policy's own other seat, `worst` against whoever punishes it most: what
    its player would win more by never playing the action, all else equal.
    """

    round: int
    row: int
    action: int
    probability: float
    cost: float
    worst: float


def eliminate(tree: Tree, *, strict: bool = False) -> Elimination:
    """Remove all dominated pure strategies of both players, round by round, until none is left.

    A strategy is dominated if another one is never worse and sometimes better (`strict`: always
    better). Strategies are reduced: they say nothing about what they themselves prevent.
    """
    if tree.num_players != 2:
        raise GameError(f"{tree.name} has {tree.num_players} players; this compares two")
    plans = [reduced_strategies(tree, player) for player in PLAYERS]
    payoffs = [plans[p] @ _payoff(tree, p) @ plans[1 - p].T for p in PLAYERS]
    slacks = [PAYOFF_TOLERANCE * max(1.0, np.abs(payoff).max()) for payoff in payoffs]
    alive = [np.ones(len(plan), np.bool_) for plan in plans]
    played = [plan.any(axis=0) for plan in plans]
    sizes = [(len(plans[0]), len(plans[1]))]
    removals: list[Removal] = []
    while True:
        views = [payoffs[p][np.ix_(alive[p], alive[1 - p])] for p in PLAYERS]
        dominated = [
            _dominated(view, slack, strict) for view, slack in zip(views, slacks, strict=True)
        ]
        if not any(mask.any() for mask in dominated):
            return Elimination(tuple(removals), tuple(sizes))
        for player in PLAYERS:
            alive[player][np.flatnonzero(alive[player])[dominated[player]]] = False
            still = plans[player][alive[player]].any(axis=0)
            gone = np.flatnonzero(played[player] & ~still) - 1
            played[player] = still
            removals += [Removal(len(sizes), *tree.slots[slot, [0, 3]].tolist()) for slot in gone]
        sizes.append((int(alive[0].sum()), int(alive[1].sum())))


def reduced_strategies(tree: Tree, player: int) -> Float64Array:
    """All pure strategies of a player as realisation plans of 0 and 1: `(strategies, S + 1)`."""
    plans = np.zeros((1, tree.num_slots + 1))
    plans[0, 0] = 1
    for row in np.flatnonzero(tree.owner == player):  # parents first
        at = plans[:, tree.parent[row]] > 0
        choices = []
        for slot in range(tree.first_slot[row], tree.first_slot[row + 1]):
            choice = plans[at]
            choice[:, slot + 1] = 1
            choices.append(choice)
        plans = np.concatenate([plans[~at], *choices])
        if len(plans) > MAX_STRATEGIES:
            raise GameError(f"{tree.name} has more than {MAX_STRATEGIES:,} strategies for a player")
    return plans


def exposures(
    tree: Tree, policy: Float64Array, elimination: Elimination, *, above: float = 0.0
) -> tuple[Exposure, ...]:
    """Where a joint policy `(I, A)` plays dominated actions with probability over `above`.

    Not where all actions were removed: what a player does there does no harm, getting there does.
    """
    cleaned = without_dominated(tree, policy, elimination)
    playable = _playable(tree, elimination)
    found = []
    for removal in elimination.removals:
        row, action = removal.row, removal.action
        if playable[row].any() and policy[row, action] > above:
            owner = int(tree.owner[row])
            better = np.where(np.arange(len(policy))[:, None] == row, cleaned, policy)
            gained = _plan(tree, better, owner) - _plan(tree, policy, owner)
            gained = gained @ _payoff(tree, owner)
            cost = float(gained @ _plan(tree, policy, 1 - owner))
            worst = float((reduced_strategies(tree, 1 - owner) @ gained).max())
            share = float(policy[row, action])
            found.append(Exposure(removal.round, row, action, share, cost, worst))
    return tuple(found)


def without_dominated(tree: Tree, policy: Float64Array, elimination: Elimination) -> Float64Array:
    """The policy `(I, A)` that plays the remaining actions in their old proportions.

    Where none remains, and no surviving strategy arrives, it stays as it is.
    """
    left = _playable(tree, elimination)
    left |= tree.legal & ~left.any(axis=1, keepdims=True)
    weights = policy * left
    unplayed = weights.sum(axis=1) == 0
    weights[unplayed] = left[unplayed]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _playable(tree: Tree, elimination: Elimination) -> BoolArray:
    """Which actions some surviving strategy plays: `(I, A)`."""
    left = tree.legal.copy()
    for removal in elimination.removals:
        left[removal.row, removal.action] = False
    return left


def _payoff(tree: Tree, player: int) -> Float64Array:
    """A player's returns, chance included, by its own and the other's sequence: `(S + 1,) * 2`."""
    table = np.zeros((tree.num_slots + 1,) * 2)
    np.add.at(table, (tree.ends[player], tree.ends[1 - player]), tree.stakes[player])
    return table


def _plan(tree: Tree, policy: Float64Array, player: int) -> Float64Array:
    """How likely a player is to play each of its sequences: `(S + 1,)`."""
    plan = np.zeros(tree.num_slots + 1)
    plan[0] = 1
    for row in np.flatnonzero(tree.owner == player):
        own = slice(tree.first_slot[row] + 1, tree.first_slot[row + 1] + 1)
        plan[own] = plan[tree.parent[row]] * policy[row, tree.legal[row]]
    return plan


def _dominated(payoff: Float64Array, slack: float, strict: bool) -> BoolArray:
    """Which rows of `(own, other's)` another row dominates."""
    found = np.zeros(len(payoff), np.bool_)
    _find_dominated(payoff, slack, strict, found)
    return found


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
