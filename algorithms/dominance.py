"""Iterated elimination of dominated strategies, and the gate that policies fail most often.

`python -m algorithms.dominance` explains the rounds for Kuhn; with a policy it also says where that
policy plays dominated actions and what that costs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from algorithms import cli, sources
from algorithms.tree import Bools, Floats, GameError, Policy, Tree, kuhn_tree
from algorithms.values import nash_conv
from kuhn_bridge.bridge import parse_information_state
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action

MAX_STRATEGIES = 2_000
TOLERANCE = 1e-12  # payoffs are sums of chance's probabilities, which are rounded


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
    """A dominated action that a policy plays, how often, and what that costs in chips a hand.

    `cost` is against the policy's own other seat, `worst` against whoever punishes it most: what
    its player would win more by never playing the action, all else equal.
    """

    round: int
    key: str
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
    alive = [np.ones(len(plan), np.bool_) for plan in plans]
    played = [plan.any(axis=0) for plan in plans]
    sizes = [(len(plans[0]), len(plans[1]))]
    removals: list[Removal] = []
    while True:
        views = [payoffs[p][np.ix_(alive[p], alive[1 - p])] for p in PLAYERS]
        dominated = [_dominated(view, strict=strict) for view in views]
        if not any(mask.any() for mask in dominated):
            return Elimination(tuple(removals), tuple(sizes))
        for player in PLAYERS:
            alive[player][np.flatnonzero(alive[player])[dominated[player]]] = False
            still = plans[player][alive[player]].any(axis=0)
            gone = np.flatnonzero(played[player] & ~still) - 1
            played[player] = still
            removals += [Removal(len(sizes), *tree.slots[slot, [0, 3]].tolist()) for slot in gone]
        sizes.append((int(alive[0].sum()), int(alive[1].sum())))


def reduced_strategies(tree: Tree, player: int) -> Floats:
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
    tree: Tree, policy: Policy, elimination: Elimination, *, above: float = 0.0
) -> tuple[Exposure, ...]:
    """Where a joint policy `(I, A)` plays dominated actions with probability over `above`."""
    cleaned = without_dominated(tree, policy, elimination)
    found = []
    for removal in elimination.removals:
        row, action = removal.row, removal.action
        if policy[row, action] > above:
            owner = int(tree.owner[row])
            better = np.where(np.arange(len(policy))[:, None] == row, cleaned, policy)
            gained = _plan(tree, better, owner) - _plan(tree, policy, owner)
            gained = gained @ _payoff(tree, owner)
            cost = float(gained @ _plan(tree, policy, 1 - owner))
            worst = float((reduced_strategies(tree, 1 - owner) @ gained).max())
            share = float(policy[row, action])
            found.append(Exposure(removal.round, tree.keys[row], action, share, cost, worst))
    return tuple(found)


def without_dominated(tree: Tree, policy: Policy, elimination: Elimination) -> Policy:
    """The policy `(I, A)` that plays the remaining actions in their old proportions."""
    left = tree.legal.copy()
    for removal in elimination.removals:
        left[removal.row, removal.action] = False
    weights = policy * left
    weights[weights.sum(axis=1) == 0] = 1
    weights = weights * left
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def described(key: str, action: int) -> str:
    """E.g. `player_0 with J after check-bet: call`."""
    card, letters = parse_information_state(key)
    row = BETTING[letters]
    word = BETTING[row.after[Action(action)]].words[-1]
    before = f"after {'-'.join(row.words)}" if row.words else "to start"
    return f"{AGENTS[row.actor or 0]} with {card.name} {before}: {word}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the policy plays dominated actions."""
    parser = cli.Parser(prog="python -m algorithms.dominance", description=__doc__.splitlines()[0])
    parser.add_argument("policy", nargs="?", metavar="POLICY", help=sources.HELP)
    parser.add_argument("--strict", action="store_true", help="remove only what is always worse")
    parser.add_argument(
        "--max",
        type=float,
        default=1e-6,
        metavar="P",
        help="probability that a dominated action may have (%(default)s)",
    )
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return cli.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if not 0 <= args.max <= 1:
        raise cli.UsageError(f"--max {args.max}: want a probability, 0 to 1")
    tree = kuhn_tree()
    elimination = eliminate(tree, strict=args.strict)
    result = asdict(elimination) | {"removals": [_removed(tree, r) for r in elimination.removals]}
    lines = _rounds(tree, elimination)
    found: tuple[Exposure, ...] = ()
    if args.policy is not None:
        policy = sources.load(args.policy, trust=args.trust).probabilities
        found = exposures(tree, policy, elimination, above=args.max)
        with_them = nash_conv(tree, policy).total
        without = nash_conv(tree, without_dominated(tree, policy, elimination)).total
        result |= {
            "source": args.policy,
            "exposures": [asdict(e) | {"action": Action(e.action).name} for e in found],
            "nash_conv": with_them,
            "nash_conv_without": without,
        }
        lines += ["", *_verdict(args.policy, found, with_them, without)]
    print(json.dumps(result) if args.json else "\n".join(lines))
    return cli.DOES_NOT_HOLD if found else cli.HOLDS


def _removed(tree: Tree, removal: Removal) -> dict[str, object]:
    key, action = tree.keys[removal.row], Action(removal.action)
    return {"round": removal.round, "key": key, "action": action.name}


def _rounds(tree: Tree, elimination: Elimination) -> list[str]:
    lines = ["{} x {} reduced pure strategies".format(*elimination.sizes[0])]
    for number, size in enumerate(elimination.sizes[1:], start=1):
        lines.append("round {} leaves {} x {}; nobody plays any more".format(number, *size))
        lines += [
            f"  {described(tree.keys[removal.row], removal.action)}"
            for removal in elimination.removals
            if removal.round == number
        ]
    return lines if elimination.removals else [*lines, "none is dominated"]


def _verdict(source: str, found: Sequence[Exposure], before: float, after: float) -> list[str]:
    if not found:
        return [f"{source} plays no dominated action"]
    header = ("dominated action", "round", "played", "cost", "at worst")
    rows = [
        (
            described(exposure.key, exposure.action),
            str(exposure.round),
            f"{exposure.probability:.4f}",
            f"{exposure.cost:.4f}",
            f"{exposure.worst:.4f}",
        )
        for exposure in found
    ]
    return [
        f"{source} plays dominated actions (cost in chips a hand: against its own other seat, and "
        "against whoever punishes it most)",
        cli.table(header, rows),
        f"NashConv {before:.6f}; with the dominated actions removed {after:.6f}",
    ]


def _payoff(tree: Tree, player: int) -> Floats:
    """A player's returns, chance included, by its own and the other's sequence: `(S + 1,) * 2`."""
    table = np.zeros((tree.num_slots + 1,) * 2)
    np.add.at(table, (tree.ends[player], tree.ends[1 - player]), tree.stakes[player])
    return table


def _plan(tree: Tree, policy: Policy, player: int) -> Floats:
    """How likely a player is to play each of its sequences: `(S + 1,)`."""
    plan = np.zeros(tree.num_slots + 1)
    plan[0] = 1
    for row in np.flatnonzero(tree.owner == player):
        own = slice(tree.first_slot[row] + 1, tree.first_slot[row + 1] + 1)
        plan[own] = plan[tree.parent[row]] * policy[row, tree.legal[row]]
    return plan


def _dominated(payoff: Floats, *, strict: bool) -> Bools:
    """Which rows of `(own, other's)` another row dominates."""
    margin = payoff[None, :, :] - payoff[:, None, :]  # [s, r]: what r wins more than s
    better = margin > TOLERANCE
    if strict:
        return np.asarray(np.any(np.all(better, axis=2), axis=1))
    never_worse = np.all(margin >= -TOLERANCE, axis=2)
    return np.asarray(np.any(never_worse & np.any(better, axis=2), axis=1))


if __name__ == "__main__":
    sys.exit(main())
