"""Measure policies exactly: NashConv, gains, values, and where they lose chips.

In games that are too large for that, and with `--respond` in any game, best responses are trained
to find a lower bound of NashConv.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from algorithms.policies import Policy, report, sources
from algorithms.support import budget, command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.learning.best_response import LowerBound

UNIFORM = "uniform"
SHOWN_LOSSES = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: exit 1 if a NashConv is above `--max`, or if OpenSpiel disagrees."""
    description = command.summary(__doc__)
    parser = command.Parser(prog="python -m algorithms.nashconv", description=description)
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
    add = parser.add_argument_group(
        "trained best responses",
        "a lower bound of NashConv; the default in a game that has no exact measure",
    ).add_argument
    add("--respond", action="store_true", help="find a lower bound too, and its share of NashConv")
    decisions = f"number of decisions that each training run learns from ({budget.DECISIONS:,})"
    add("--decisions", type=int, metavar="N", help=decisions)
    hands = (
        "number of hands on which each player's response is measured "
        f"({budget.HANDS:,}; with a tree {budget.TREE_HANDS:,})"
    )
    add("--hands", type=int, metavar="N", help=hands)
    seeds = f"random seeds: 0-2, or 0,3,7, or a count ({len(budget.SEEDS)})"
    add("--seeds", metavar="SEEDS", help=seeds)
    cpus = "number of training runs at a time; more than 1 run on Ray (1)"
    add("--cpus", type=int, metavar="N", help=cpus)
    add("--address", help="address of a Ray cluster: auto, host:port or ray://host:port")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.max is not None and math.isnan(args.max):
        raise UsageError("--max must be a number, not nan")
    if args.losses < 0:
        raise UsageError(f"--losses must be 0 or more, not {args.losses}")
    options = _response_options(args)
    policies = sources.load_policies(
        args.policies, args.game, trust=args.trust, deterministic=args.deterministic
    )
    game = policies[0].game
    if args.openspiel and not game.fits_tree:
        raise UsageError(f"--openspiel measures on a tree, and {game.name} is too large for one")
    if not game.is_exact:
        return _bound(args, policies, options)
    if options and not args.respond:
        raise UsageError(f"--{next(iter(options))} requires --respond")
    return _measure(args, policies, options)


def _response_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `lower_bound` that were given, checked."""
    names = ("decisions", "hands", "seeds", "cpus", "address")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if "seeds" in given:
        from algorithms.sweeping.plan import parse_seeds

        given["seeds"] = parse_seeds(args.seeds)
    budget.require_budget(**{name: given[name] for name in given if name != "address"})
    return given


def _measure(args: argparse.Namespace, policies: Sequence[Policy], options: dict[str, Any]) -> int:
    """Print exact measures; with `--respond`, lower bounds beside them."""
    reports = []
    with progress("measuring", len(policies)) as bar:
        for source, policy in zip(args.policies, policies, strict=True):
            reports.append(report.report(source, policy, openspiel=args.openspiel))
            bar(len(reports), source)
    bounds = _lower_bounds(args.policies, policies, options) if args.respond else []
    print(_as_json(reports, bounds) if args.json else _as_text(reports, bounds, args.losses))
    code = command.EXIT_OK
    for item in reports:
        if args.max is not None and item.measure.nash_conv > args.max:
            print(f"{item.source}: NashConv is above {args.max:g}", file=sys.stderr)
            code = command.EXIT_FAILED
        if not item.agrees:
            print(f"{item.source}: OpenSpiel disagrees", file=sys.stderr)
            code = command.EXIT_FAILED
    return code


def _bound(args: argparse.Namespace, policies: Sequence[Policy], options: dict[str, Any]) -> int:
    """Print lower bounds of the policies, beside that of uniform play."""
    from algorithms.learning.best_response import exit_code, to_json, to_text
    from algorithms.learning.states import origin

    game = policies[0].game
    origin(game)  # raises if no network can play it
    print(
        f"{game.name} has no exact measure: training best responses for a lower bound of NashConv",
        file=sys.stderr,
    )
    known = dict(zip(args.policies, policies, strict=True)) | {UNIFORM: Policy.uniform(game)}
    found = _lower_bounds(list(known), list(known.values()), options)
    bounds = dict(zip(known, found, strict=True))
    if args.json:
        print(_json([to_json(s, bounds[s], uniform=bounds[UNIFORM]) for s in args.policies]))
    else:
        texts = (to_text(s, bounds[s], uniform=bounds[UNIFORM]) for s in args.policies)
        print("\n\n".join(texts))
    for source in args.policies:
        if args.max is not None and bounds[source].nash_conv_at_least > args.max:
            print(f"{source}: NashConv is above {args.max:g}", file=sys.stderr)
    return exit_code([bounds[source] for source in args.policies], args.max)


def _lower_bounds(
    names: Sequence[str], policies: Sequence[Policy], options: dict[str, Any]
) -> list[LowerBound]:
    from algorithms.learning.best_response import total_decisions

    own = {name: options[name] for name in ("decisions", "seeds") if name in options}
    bounds = []
    for name, policy in zip(names, policies, strict=True):
        with progress(f"responding to {name}", total_decisions(policy.game, **own)) as bar:
            bounds.append(policy.lower_bound(**options, progress=bar))
    return bounds


def _as_json(reports: Sequence[report.Report], bounds: Sequence[LowerBound]) -> str:
    found = [report.to_json(item) for item in reports]
    if bounds:
        from algorithms.learning.best_response import to_json

        for item, bound, entry in zip(reports, bounds, found, strict=True):
            share = {"share_found": bound.share_of(item.measure.gains)}
            entry["lower_bound"] = to_json(item.source, bound) | share
    return _json(found)


def _as_text(
    reports: Sequence[report.Report], bounds: Sequence[LowerBound], max_losses: int
) -> str:
    if len(reports) > 1:
        texts = [report.overview(reports)]
    else:
        texts = [report.to_text(reports[0], max_losses=max_losses)]
        if len(reports[0].measure.losses) > max_losses > 0:
            texts[0] += " (--losses N)"
    if bounds:
        from algorithms.learning.best_response import to_text

        for item, bound in zip(reports, bounds, strict=True):
            texts.append(to_text(item.source, bound, exact=item.measure.gains))
    return "\n\n".join(texts)


def _json(found: list[dict[str, Any]]) -> str:
    return json.dumps(found[0] if len(found) == 1 else found)


if __name__ == "__main__":
    sys.exit(main())
