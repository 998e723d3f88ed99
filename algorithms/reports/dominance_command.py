"""Eliminate dominated strategies, and report where a policy plays dominated actions."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from algorithms.compiled.nashconv import nash_conv
from algorithms.dominance import (
    Elimination,
    Exposure,
    Removal,
    eliminate,
    exposures,
    without_dominated,
)
from algorithms.games import KUHN, Game, load_game
from algorithms.policies import Policy, load
from algorithms.support import command


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the policy plays dominated actions."""
    parser = command.Parser(prog="python -m algorithms.dominance", description=__doc__)
    parser.add_argument("policy", nargs="?", metavar="POLICY", help=load.HELP)
    parser.add_argument("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    parser.add_argument(
        "--strict", action="store_true", help="remove only strategies that are always worse"
    )
    parser.add_argument(
        "--max",
        type=command.number(0, 1, kind=float),
        default=1e-6,
        metavar="P",
        help="tolerated probability of a dominated action (%(default)s)",
    )
    parser.add_argument("--trust", action="store_true", help="allow the model's file to run code")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    policy: Policy | None = None
    if args.policy is None:
        game = load_game(args.game or KUHN)
    else:
        [policy] = load.load_policies([args.policy], args.game, trust=args.trust)
        game = policy.game
    elimination = eliminate(game.tree, strict=args.strict)
    result: dict[str, Any] = {"game": game.name} | asdict(elimination)
    result["removals"] = [_as_json(game, removal) for removal in elimination.removals]
    lines = _elimination_lines(game, elimination)
    played: tuple[Exposure, ...] = ()
    if policy:
        played = exposures(game.tree, policy.table, elimination, above=args.max)
        cleaned = without_dominated(game.tree, policy.table, elimination)
        nash_conv_before = policy.nash_conv()
        nash_conv_after = nash_conv(game.tree, cleaned)
        result["source"] = args.policy
        result["exposures"] = [asdict(exposure) | _as_json(game, exposure) for exposure in played]
        result["nash_conv"] = nash_conv_before
        result["nash_conv_without"] = nash_conv_after
        lines.append("")
        if played:
            lines += _exposure_lines(game, args.policy, played)
            lines.append(
                f"NashConv {nash_conv_before:.6f}; with the dominated actions removed "
                f"{nash_conv_after:.6f}"
            )
        else:
            lines.append(f"{args.policy} plays no dominated action")
    print(json.dumps(result) if args.json else "\n".join(lines))
    return command.EXIT_FAILED if played else command.EXIT_OK


def _as_json(game: Game, dominated: Removal | Exposure) -> dict[str, object]:
    """Round, information set and action; Kuhn's actions by name, others by ID."""
    return {
        "round": dominated.round,
        "player": int(game.tree.owner[dominated.infoset]),
        "key": game.tree.keys[dominated.infoset],
        "action": game.action_name(dominated.action),
    }


def _label(game: Game, dominated: Removal | Exposure) -> str:
    """E.g. `player_0 with J after check-bet: call`."""
    label = game.infoset_label(dominated.infoset)
    action = game.action_label(dominated.infoset, dominated.action)
    return f"{label}: {action}"


def _elimination_lines(game: Game, elimination: Elimination) -> list[str]:
    """The numbers of strategies before and after each round, and what the round removes."""
    first, *others = elimination.sizes
    lines = [f"{first[0]} x {first[1]} reduced pure strategies"]
    for number, size in enumerate(others, start=1):
        lines.append(f"round {number} leaves {size[0]} x {size[1]} and removes")
        for removal in elimination.removals:
            if removal.round == number:
                lines.append(f"  {_label(game, removal)}")
    if not elimination.removals:
        lines.append("no strategy is dominated")
    return lines


def _exposure_lines(game: Game, source: str, played: Sequence[Exposure]) -> list[str]:
    header = ("dominated action", "round", "played", "cost", "at worst")
    rows = [
        (
            _label(game, exposure),
            str(exposure.round),
            f"{exposure.probability:.4f}",
            f"{exposure.cost:.4f}",
            f"{exposure.worst:.4f}",
        )
        for exposure in played
    ]
    return [
        f"{source} plays dominated actions (cost in chips per hand: against its own other seat, "
        "and at worst, against the opponent that makes it highest)",
        command.table(header, rows),
    ]
