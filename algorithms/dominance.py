"""Iterated elimination of dominated strategies, and the gate that policies fail most often.

`python -m algorithms.dominance` explains the rounds for Kuhn; with a policy it also says where that
policy plays dominated actions and what that costs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from algorithms.exact.elimination import (
    Elimination,
    Exposure,
    Removal,
    eliminate,
    exposures,
    without_dominated,
)
from algorithms.exact.tree import Tree
from algorithms.exact.values import nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.errors import UsageError
from kuhn_bridge.bridge import parse_information_state
from kuhn_bridge.rules import AGENTS, BETTING, Action


def described(key: str, action: int) -> str:
    """E.g. `player_0 with J after check-bet: call`."""
    card, letters = parse_information_state(key)
    row = BETTING[letters]
    word = BETTING[row.after[Action(action)]].words[-1]
    before = f"after {'-'.join(row.words)}" if row.words else "to start"
    return f"{AGENTS[row.actor or 0]} with {card.name} {before}: {word}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the policy plays dominated actions."""
    parser = command.Parser(
        prog="python -m algorithms.dominance", description=__doc__.splitlines()[0]
    )
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
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if not 0 <= args.max <= 1:
        raise UsageError(f"--max {args.max}: want a probability, 0 to 1")
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
    return command.DOES_NOT_HOLD if found else command.HOLDS


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
        command.table(header, rows),
        f"NashConv {before:.6f}; with the dominated actions removed {after:.6f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
