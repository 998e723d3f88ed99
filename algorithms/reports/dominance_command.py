"""Eliminate dominated strategies, and report where a policy plays dominated actions."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from algorithms.dominance import (
    Elimination,
    Exposure,
    Removal,
    eliminate,
    exposures,
    without_dominated,
)
from algorithms.games import KUHN, Game, load_game
from algorithms.nashconv import nash_conv
from algorithms.policies import load
from algorithms.support import command
from kuhn_bridge.rules import Action


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the policy plays dominated actions."""
    parser = command.Parser(prog="python -m algorithms.dominance", description=__doc__)
    add = parser.add_argument
    add("policy", nargs="?", metavar="POLICY", help=load.HELP)
    add("--game", metavar="NAME", help=load.GAME_HELP)
    add("--strict", action="store_true", help="remove only strategies that are always worse")
    most = "tolerated probability of a dominated action (%(default)s)"
    probability = command.number(0, 1, kind=float)
    add("--max", type=probability, default=1e-6, metavar="P", help=most)
    add("--trust", action="store_true", help="allow the model's file to run code")
    add("--json", action="store_true", help="print one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    policy = None
    if args.policy is not None:
        [policy] = load.load_policies([args.policy], args.game, trust=args.trust)
    game = policy.game if policy else load_game(args.game or KUHN)
    removed = eliminate(game.tree, strict=args.strict)
    removals = [_as_json(game, removal) for removal in removed.removals]
    result = {"game": game.name} | asdict(removed) | {"removals": removals}
    lines = _rounds(game, removed)
    found: tuple[Exposure, ...] = ()
    if policy:
        found = exposures(game.tree, policy.table, removed, above=args.max)
        cleaned = without_dominated(game.tree, policy.table, removed)
        before, after = policy.nash_conv(), nash_conv(game.tree, cleaned)
        shown = [asdict(exposure) | _as_json(game, exposure) for exposure in found]
        result |= {"source": args.policy, "exposures": shown}
        result |= {"nash_conv": before, "nash_conv_without": after}
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


def _rounds(game: Game, removed: Elimination) -> list[str]:
    lines = ["{} x {} reduced pure strategies".format(*removed.sizes[0])]
    for number, size in enumerate(removed.sizes[1:], start=1):
        lines.append("round {} leaves {} x {} and removes".format(number, *size))
        lines += [f"  {_label(game, at)}" for at in removed.removals if at.round == number]
    return lines if removed.removals else [*lines, "no strategy is dominated"]


def _verdict(
    game: Game, source: str, found: Sequence[Exposure], before: float, after: float
) -> list[str]:
    if not found:
        return [f"{source} plays no dominated action"]
    header = ("dominated action", "round", "played", "cost", "at worst")
    rows = [
        (
            _label(game, at),
            str(at.round),
            *(f"{x:.4f}" for x in (at.probability, at.cost, at.worst)),
        )
        for at in found
    ]
    return [
        f"{source} plays dominated actions (cost in chips per hand: against its own other seat, "
        "and at worst, against the opponent that makes it highest)",
        command.table(header, rows),
        f"NashConv {before:.6f}; with the dominated actions removed {after:.6f}",
    ]
