"""Measure policies exactly: NashConv, gains, values, and where they lose chips."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from algorithms.policies import sources
from algorithms.policies.report import KuhnReport, Report, as_json, report
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

OPENSPIEL_TOLERANCE = 1e-10  # between our numbers and OpenSpiel's, per chip at stake
MIN_PROBABILITY = 5e-5  # that four decimals show
SHOWN_LOSSES = 10
WIDEST = 120  # characters of an information set's label; --json has all of it


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: exit 1 if a NashConv is above `--max`, or if OpenSpiel disagrees."""
    parser = command.Parser(prog="python -m algorithms.nashconv", description=__doc__)
    add = parser.add_argument
    add("policies", nargs="+", metavar="POLICY", help=f"{sources.HELP}; {sources.BEST_RESPONSE}")
    add("--game", metavar="NAME", help=sources.GAME_HELP)
    add("--max", type=float, metavar="X", help="exit 1 if a NashConv is above X")
    add("--deterministic", action="store_true", help="play the most probable action everywhere")
    losses = "show the N largest losses (default: %(default)s)"
    add("--losses", type=int, default=SHOWN_LOSSES, metavar="N", help=losses)
    add("--trust", action="store_true", help="let model files run code")
    add("--openspiel", action="store_true", help="measure with OpenSpiel too, and compare")
    add("--json", action="store_true", help="print one JSON object, or a list of them")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.max is not None and math.isnan(args.max):
        raise UsageError("--max must be a number, not nan")
    if args.losses < 0:
        raise UsageError(f"--losses must be 0 or more, not {args.losses}")
    policies = sources.load_policies(
        args.policies, args.game, trust=args.trust, deterministic=args.deterministic
    )
    reports = []
    with progress("measuring", len(policies)) as bar:
        for source, policy in zip(args.policies, policies, strict=True):
            reports.append(report(source, policy, openspiel=args.openspiel))
            bar(len(reports), source)
    if args.json:
        found = [as_json(item) for item in reports]
        print(json.dumps(found[0] if len(found) == 1 else found))
    else:
        one = len(reports) == 1
        print("\n".join(_details(reports[0], args.losses) if one else _overview(reports)))
    failures = list(_failures(reports, args.max))
    for failure in failures:
        print(failure, file=sys.stderr)
    return command.EXIT_FAILED if failures else command.EXIT_OK


def _failures(reports: Sequence[Report], limit: float | None) -> Iterator[str]:
    for item in reports:
        if limit is not None and item.measure.nash_conv > limit:
            yield f"{item.source}: NashConv is above {limit:g}"
        if not _agrees(item):
            yield f"{item.source}: OpenSpiel disagrees"


def _agrees(item: Report) -> bool:
    """Whether OpenSpiel's numbers, if there are any, are ours up to rounding."""
    if item.theirs is None:
        return True
    stakes = max(1.0, float(np.abs(item.game.tree.returns).max()))
    return item.theirs.gap(item.measure) <= OPENSPIEL_TOLERANCE * stakes


def _overview(reports: Sequence[Report]) -> Iterator[str]:
    game, compared = reports[0].game, reports[0].theirs is not None
    header = ["policy", "NashConv", *(f"gain {agent}" for agent in game.agents)]
    if reports[0].kuhn:
        header += ["value", "distance", "dominated"]
    else:
        header += [f"value {agent}" for agent in game.agents]
    rows = [
        [
            item.source,
            *(f"{x:.6f}" for x in (item.measure.nash_conv, *item.measure.gains)),
            *_last_columns(item),
            *([f"{item.theirs.nash_conv:z.6f}"] if item.theirs else []),
        ]
        for item in reports
    ]
    yield command.table([*header, *(["OpenSpiel"] if compared else [])], rows)
    yield f"uniform play has NashConv {reports[0].uniform:.6f}, an equilibrium 0"


def _last_columns(item: Report) -> list[str]:
    """Values; for Kuhn the value, the distance to equilibrium and dominated actions."""
    if item.kuhn is None:
        return [f"{value:+.6f}" for value in item.measure.values]
    known = item.kuhn
    value, distance = f"{item.measure.values[0]:+.6f}", f"{known.nearest.distance:.4f}"
    return [value, distance, f"{known.dominated:.4f}"]


def _details(item: Report, max_losses: int) -> Iterator[str]:
    measure, theirs, players = item.measure, item.theirs, item.game.num_players
    yield f"{item.source}: NashConv {measure.nash_conv:.6g}, {item.verdict}"
    if item.kuhn is None:
        yield item.game.size_label
    else:
        yield ""
        yield _kuhn_rows(item, item.kuhn)
    yield ""
    lines = {
        "value": measure.values,
        "value of a best response": measure.best_values,
        "gain": measure.gains,
    }
    if theirs:
        lines["gain, by OpenSpiel"] = theirs.gains
    yield command.table(
        ("chips per hand", *item.game.agents),
        [(name, *(f"{x:+z.9f}" for x in values)) for name, values in lines.items()],
    )
    yield ""
    if item.kuhn is not None:
        yield from _kuhn_lines(item, item.kuhn)
    yield f"exploitability       {measure.exploitability:.6g} (NashConv / {players} players)"
    if theirs:
        word = "agrees" if _agrees(item) else "DISAGREES"
        values = ", ".join(f"{value:+.6f}" for value in theirs.values)
        yield f"OpenSpiel            NashConv {theirs.nash_conv:.6g}, value {values}"
        yield f"                     {word}: the largest difference is {theirs.gap(measure):.1e}"
    if item.losses and max_losses:
        yield ""
        yield from _losses(item, max_losses)


def _losses(item: Report, count: int) -> Iterator[str]:
    """The information sets where the policy loses most, and what it should do there."""
    game, total = item.game, item.measure.nash_conv
    rows = [
        (
            command.shortened(game.infoset_label(loss.infoset, loss.player), WIDEST),
            f"{loss.reach:.4f}",
            f"{game.action_label(loss.infoset, loss.played, loss.player)} {loss.probability:.2f}",
            game.action_label(loss.infoset, loss.best, loss.player),
            f"{loss.lost:.6f}",
            f"{loss.lost / total:.0%}" if total else "-",
        )
        for loss in item.losses[:count]
    ]
    header = ("where chips are lost", "reached", "plays", "best", "chips per hand", "share")
    yield command.table(header, rows)
    if len(item.losses) > count:
        rest = total - sum(loss.lost for loss in item.losses[:count])
        more = f"{len(item.losses) - count:,} more" if game.fits_tree else "others"
        yield f"... and {more} that lose {rest:.6f} together (--losses N)"


def _kuhn_lines(item: Report, known: KuhnReport) -> Iterator[str]:
    near, game = known.nearest, item.game
    if game.closed_form:
        value = game.closed_form.value
        yield f"value against {value}  {item.measure.values[0] - float(value):+.6f}"
    yield f"distance             {near.distance:.6f} to the equilibrium of alpha {near.alpha:.4f}"
    shown = [exposure for exposure in known.exposures if exposure.probability > MIN_PROBABILITY]
    if not shown:
        yield "dominated actions    none played"
    for exposure in shown:
        where = game.infoset_label(exposure.infoset)
        action = game.action_label(exposure.infoset, exposure.action)
        yield f"dominated            {exposure.probability:.4f} on {where}: {action}"


def _kuhn_rows(item: Report, known: KuhnReport) -> str:
    """Probabilities of the policy and of the nearest equilibrium, and the best response."""
    names, tree = ("check/call", "bet", "fold"), item.game.tree
    header = ("state", *names, *(f"~{name}" for name in names), "best response")
    both = np.hstack([item.policy.table, known.nearest.table])
    legal = np.hstack([tree.legal, tree.legal])
    rows = [
        (
            key,
            *(f"{p:.4f}" if ok else "-" for p, ok in zip(both[row], legal[row], strict=True)),
            item.game.action_label(row, int(item.measure.best_responses[row])),
        )
        for row, key in enumerate(tree.keys)
    ]
    return f"{command.table(header, rows)}\n(~ is the nearest equilibrium)"


if __name__ == "__main__":
    sys.exit(main())
