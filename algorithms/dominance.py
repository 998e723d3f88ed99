"""Eliminate dominated strategies, and report where a policy plays dominated actions."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from algorithms.exact.two_player import (
    Elimination,
    Exposure,
    Removal,
    eliminate,
    exposures,
    without_dominated,
)
from algorithms.exact.values import nash_conv
from algorithms.games import KUHN, Game, load_game
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.errors import UsageError
from kuhn_bridge.rules import Action


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the policy plays dominated actions."""
    parser = command.Parser(prog="python -m algorithms.dominance", description=__doc__)
    parser.add_argument("policy", nargs="?", metavar="POLICY", help=sources.HELP)
    parser.add_argument("--game", metavar="NAME", help=sources.GAME_HELP)
    parser.add_argument(
        "--strict", action="store_true", help="remove only strategies that are always worse"
    )
    parser.add_argument(
        "--max",
        type=float,
        default=1e-6,
        metavar="P",
        help="tolerated probability of a dominated action (%(default)s)",
    )
    parser.add_argument("--trust", action="store_true", help="allow the model's file to run code")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if not 0 <= args.max <= 1:
        raise UsageError(f"--max {args.max}: want a probability from 0 to 1")
    policy = None
    if args.policy is not None:
        [policy] = sources.load_policies([args.policy], args.game, trust=args.trust)
    game = policy.game if policy else load_game(args.game or KUHN)
    elimination = eliminate(game.tree, strict=args.strict)
    removals = [_as_json(game, removal) for removal in elimination.removals]
    result = {"game": game.name} | asdict(elimination) | {"removals": removals}
    lines = _rounds(game, elimination)
    found: tuple[Exposure, ...] = ()
    if policy:
        found = exposures(game.tree, policy.table, elimination, above=args.max)
        cleaned = without_dominated(game.tree, policy.table, elimination)
        before, after = policy.nash_conv(), nash_conv(game.tree, cleaned)
        result |= {
            "source": args.policy,
            "exposures": [asdict(exposure) | _as_json(game, exposure) for exposure in found],
            "nash_conv": before,
            "nash_conv_without": after,
        }
        lines += ["", *_verdict(game, args.policy, found, before, after)]
    print(json.dumps(result) if args.json else "\n".join(lines))
    return command.EXIT_FAILED if found else command.EXIT_OK


def _as_json(game: Game, at: Removal | Exposure) -> dict[str, object]:
    """Round, information set and action; Kuhn's actions by name, others by ID."""
    action = Action(at.action).name if game.name == KUHN else at.action
    player, key = int(game.tree.owner[at.infoset]), game.tree.keys[at.infoset]
    return {"round": at.round, "player": player, "key": key, "action": action}


def _label(game: Game, at: Removal | Exposure) -> str:
    """E.g. `player_0 with J after check-bet: call`."""
    return f"{game.infoset_label(at.infoset)}: {game.action_label(at.infoset, at.action)}"


def _rounds(game: Game, elimination: Elimination) -> list[str]:
    lines = ["{} x {} reduced pure strategies".format(*elimination.sizes[0])]
    for number, size in enumerate(elimination.sizes[1:], start=1):
        lines.append("round {} leaves {} x {} and removes".format(number, *size))
        removed = [removal for removal in elimination.removals if removal.round == number]
        lines += [f"  {_label(game, removal)}" for removal in removed]
    return lines if elimination.removals else [*lines, "no strategy is dominated"]


def _verdict(
    game: Game, source: str, found: Sequence[Exposure], before: float, after: float
) -> list[str]:
    if not found:
        return [f"{source} plays no dominated action"]
    header = ("dominated action", "round", "played", "cost", "at worst")
    rows = [
        (
            _label(game, exposure),
            str(exposure.round),
            f"{exposure.probability:.4f}",
            f"{exposure.cost:.4f}",
            f"{exposure.worst:.4f}",
        )
        for exposure in found
    ]
    return [
        f"{source} plays dominated actions (cost in chips per hand: against its own other seat, "
        "and at worst, against the opponent that makes it highest)",
        command.table(header, rows),
        f"NashConv {before:.6f}; with the dominated actions removed {after:.6f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
