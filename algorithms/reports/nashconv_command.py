"""Measure policies exactly: NashConv, gains, values, and where they lose chips.

In games that are too large for that, and with `--respond` in any game, best responses are trained
to find a lower bound of NashConv.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from algorithms.policies import Policy, load
from algorithms.reports import measure_report
from algorithms.support import budget, command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

UNIFORM = "uniform"
SHOWN_LOSSES = 10
RESPONSE_OPTIONS = ("decisions", "hands", "seeds", "cpus", "address")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: exit 1 if a NashConv is above `--max`, or if OpenSpiel disagrees."""
    parser = command.Parser(prog="python -m algorithms.nashconv", description=__doc__)
    add, number = parser.add_argument, command.number
    add("policies", nargs="+", metavar="POLICY", help=f"{load.HELP}; {load.BEST_RESPONSE}")
    add("--game", metavar="NAME", help=load.GAME_HELP)
    add("--max", type=number(0, kind=float), metavar="X", help="exit 1 if a NashConv is above X")
    add("--deterministic", action="store_true", help="play the most probable action everywhere")
    losses = "show the N largest losses (default: %(default)s)"
    add("--losses", type=number(0), default=SHOWN_LOSSES, metavar="N", help=losses)
    add("--trust", action="store_true", help="let model files run code")
    add("--openspiel", action="store_true", help="measure with OpenSpiel too, and compare")
    add("--json", action="store_true", help="print one JSON object, or a list of them")
    add = parser.add_argument_group(
        "trained best responses",
        "a lower bound of NashConv; the default in a game that has no exact measure",
    ).add_argument
    add("--respond", action="store_true", help="find a lower bound too, and its share of NashConv")
    decisions = f"number of decisions that each training run learns from ({budget.DECISIONS:,})"
    add("--decisions", type=number(1), metavar="N", help=decisions)
    hands = (
        "number of hands on which each player's response is measured "
        f"({budget.HANDS:,}; with a tree {budget.TREE_HANDS:,})"
    )
    add("--hands", type=number(budget.MIN_HANDS), metavar="N", help=hands)
    seeds = f"random seeds: 0-2, or 0,3,7, or a count ({len(budget.SEEDS)})"
    add("--seeds", metavar="SEEDS", help=seeds)
    cpus = "number of training runs at a time; more than 1 run on Ray (1)"
    add("--cpus", type=number(1), metavar="N", help=cpus)
    add("--address", help="address of a Ray cluster: auto, host:port or ray://host:port")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    options = {
        name: value for name in RESPONSE_OPTIONS if (value := getattr(args, name)) is not None
    }
    if args.seeds is not None:
        from algorithms.sweeps.plan import parse_seeds

        options["seeds"] = parse_seeds(args.seeds)
    loaded = load.load_policies(
        args.policies, args.game, trust=args.trust, deterministic=args.deterministic
    )
    game = loaded[0].game
    if args.openspiel and not game.fits_tree:
        raise UsageError(f"--openspiel measures on a tree, and {game.name} is too large for one")
    if options and game.is_exact and not args.respond:
        raise UsageError(f"--{next(iter(options))} requires --respond")
    return (_measure if game.is_exact else _bound)(args, loaded, options)


def _measure(args: argparse.Namespace, policies: Sequence[Policy], options: dict[str, Any]) -> int:
    """Print exact measures; with `--respond`, lower bounds beside them."""
    reports = []
    with progress("measuring", len(policies)) as bar:
        for source, policy in zip(args.policies, policies, strict=True):
            reports.append(measure_report.report(source, policy, openspiel=args.openspiel))
            bar(len(reports), source)
    found = [measure_report.to_json(item) for item in reports] if args.json else []
    texts = [_text(reports, args.losses)]
    if args.respond:
        from algorithms.lower_bound import bound_with_bar, to_json, to_text

        for place, (item, policy) in enumerate(zip(reports, policies, strict=True)):
            bound, gains = bound_with_bar(item.source, policy, **options), item.measure.gains
            texts.append(to_text(item.source, bound, exact=gains))
            if args.json:
                share = {"share_found": bound.share_of(gains)}
                found[place]["lower_bound"] = to_json(item.source, bound) | share
    _print(args, found, texts)
    above = _report_above(args, [item.measure.nash_conv for item in reports])
    disagreeing = [item.source for item in reports if not item.agrees]
    for source in disagreeing:
        print(f"{source}: OpenSpiel disagrees", file=sys.stderr)
    return command.EXIT_FAILED if above or disagreeing else command.EXIT_OK


def _bound(args: argparse.Namespace, policies: Sequence[Policy], options: dict[str, Any]) -> int:
    """Print lower bounds of the policies, beside that of uniform play."""
    from algorithms.lower_bound import bound_with_bar, to_json, to_text
    from algorithms.self_play.states import origin

    game = policies[0].game
    origin(game)  # raises if no network can play it
    print(
        f"{game.name} has no exact measure: training best responses for a lower bound of NashConv",
        file=sys.stderr,
    )
    known = dict(zip(args.policies, policies, strict=True)) | {UNIFORM: Policy.uniform(game)}
    bounds = {name: bound_with_bar(name, policy, **options) for name, policy in known.items()}
    found, uniform = [(name, bounds[name]) for name in args.policies], bounds[UNIFORM]
    _print(
        args,
        [to_json(name, bound, uniform=uniform) for name, bound in found],
        [to_text(name, bound, uniform=uniform) for name, bound in found],
    )
    at_least = [bound.nash_conv_at_least for _, bound in found]
    above = _report_above(args, at_least)
    if args.max is not None and not above:
        why = "but a bound cannot show that NashConv is small"
        raise UsageError(f"--max {args.max:g}: NashConv is at least {max(at_least):.6g}, {why}")
    return command.EXIT_FAILED if above else command.EXIT_OK


def _text(reports: Sequence[measure_report.Report], max_losses: int) -> str:
    if len(reports) > 1:
        return measure_report.overview(reports)
    more = " (--losses N)" if len(reports[0].measure.losses) > max_losses > 0 else ""
    return f"{measure_report.to_text(reports[0], max_losses=max_losses)}{more}"


def _print(args: argparse.Namespace, found: list[dict[str, Any]], texts: list[str]) -> None:
    as_json = json.dumps(found[0] if len(found) == 1 else found)
    print(as_json if args.json else "\n\n".join(texts))


def _report_above(args: argparse.Namespace, nash_convs: Sequence[float]) -> bool:
    """Whether a NashConv is above `--max`, with a line for each."""
    limit = math.inf if args.max is None else args.max
    for source, nash_conv in zip(args.policies, nash_convs, strict=True):
        if nash_conv > limit:
            print(f"{source}: NashConv is above {limit:g}", file=sys.stderr)
    return max(nash_convs) > limit
