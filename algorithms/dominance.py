"""Dominated strategies: iterated elimination, and where a policy plays dominated actions."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.compiled.jit import compiled
from algorithms.compiled.nashconv import reach_probabilities
from algorithms.linear_program import payoff_matrix
from algorithms.support.arrays import BoolArray, Float64Array
from algorithms.tree import Tree
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
    # By player: what each own strategy wins against each of the opponent's.
    payoffs = [plans[p] @ payoff_matrix(tree, p) @ plans[1 - p].T for p in PLAYERS]
    slacks = [PAYOFF_TOLERANCE * max(1.0, np.abs(payoff).max()) for payoff in payoffs]
    removals: list[Removal] = []
    sizes = [(len(plans[0]), len(plans[1]))]
    while True:
        undominated = [~dominated_rows(payoffs[p], slacks[p], strict) for p in PLAYERS]
        if all(mask.all() for mask in undominated):
            return Elimination(tuple(removals), tuple(sizes))
        for player in PLAYERS:
            played_before = plans[player].any(axis=0)  # (C + 1,) by sequence
            plans[player] = plans[player][undominated[player]]
            played_after = plans[player].any(axis=0)
            for sequence in np.flatnonzero(played_before & ~played_after):
                choice = sequence - 1
                removal = Removal(
                    round=len(sizes),
                    infoset=int(tree.choice_infoset[choice]),
                    action=int(tree.choice_action[choice]),
                )
                removals.append(removal)
            payoffs[player] = payoffs[player][np.ix_(undominated[player], undominated[1 - player])]
        sizes.append((len(plans[0]), len(plans[1])))


def reduced_strategies(tree: Tree, player: int) -> Float64Array:
    """All pure strategies of a player as realization plans of 0 and 1: `(strategies, C + 1)`.

    A plan has a 1 at every sequence that the strategy plays if chance and the opponent let it.
    """
    plans = np.zeros((1, tree.num_choices + 1))
    plans[0, 0] = 1
    for infoset in np.flatnonzero(tree.owner == player):  # parents first
        arrives = plans[:, tree.parent_sequence[infoset]] > 0
        continued = []  # the plans that arrive, once with each choice
        for choice in range(tree.first_choice[infoset], tree.first_choice[infoset + 1]):
            with_choice = plans[arrives]
            with_choice[:, choice + 1] = 1
            continued.append(with_choice)
        plans = np.concatenate([plans[~arrives], *continued])
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
    reach = reach_probabilities(tree, policy)  # (C + 1,) by sequence
    dominated = []
    for removal in elimination.removals:
        infoset = removal.infoset
        probability = float(policy[infoset, removal.action])
        if not surviving[infoset].any() or probability <= above:
            continue
        owner = int(tree.owner[infoset])
        better = policy.copy()
        better[infoset] = cleaned[infoset]
        more_reach = reach_probabilities(tree, better) - reach
        gained = more_reach @ payoff_matrix(tree, owner)  # (C + 1,) by the opponent's sequence
        against_strategies = reduced_strategies(tree, 1 - owner) @ gained
        exposure = Exposure(
            round=removal.round,
            infoset=infoset,
            action=removal.action,
            probability=probability,
            cost=float(gained @ reach),
            worst=float(against_strategies.max()),
        )
        dominated.append(exposure)
    return tuple(dominated)


def without_dominated(tree: Tree, policy: Float64Array, elimination: Elimination) -> Float64Array:
    """The policy `(I, A)` with dominated actions removed and the others rescaled.

    Unchanged where all actions were removed, because no surviving strategy arrives there.
    """
    allowed = _surviving_actions(tree, elimination)
    allowed |= tree.legal & ~allowed.any(axis=1, keepdims=True)
    weights = policy * allowed
    is_unplayed = weights.sum(axis=1) == 0  # rows with dominated actions alone become uniform
    weights[is_unplayed] = allowed[is_unplayed]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _surviving_actions(tree: Tree, elimination: Elimination) -> BoolArray:
    """Which actions some surviving strategy plays: `(I, A)`."""
    surviving = tree.legal.copy()
    for removal in elimination.removals:
        surviving[removal.infoset, removal.action] = False
    return surviving


@compiled
def dominated_rows(payoff: Float64Array, slack: float, strict: bool) -> BoolArray:
    """Which rows of payoffs `(own strategies, opponent's)` another row dominates."""
    rows, columns = payoff.shape
    dominated = np.zeros(rows, np.bool_)
    for row in range(rows):
        for other in range(rows):
            never_worse = other != row
            better = strict
            for column in range(columns):
                margin = payoff[other, column] - payoff[row, column]
                if margin < -slack or (strict and margin <= slack):
                    never_worse = False
                    break
                better = better or margin > slack
            if never_worse and better:
                dominated[row] = True
                break
    return dominated


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `dominance`, which is in `algorithms.reports.dominance_command`."""
    from algorithms.reports.dominance_command import main as command

    return command(argv)


if __name__ == "__main__":
    sys.exit(main())
