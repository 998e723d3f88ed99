"""Measure policies exactly: NashConv, gains, values, and where they lose chips.

In games that are too large for that, and with `--respond` in any game, best responses are trained
to find a lower bound of NashConv.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.games import ExactGame, TreeGame
from algorithms.policies import Policy, load
from algorithms.reports import measure_report
from algorithms.reports.measure_report import MeasureReport
from algorithms.support import budget, command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

UNIFORM = "uniform"
SHOWN_LOSSES = 10
RESPONSE_OPTIONS = ("decisions", "hands", "seeds", "cpus", "address")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: exit 1 if a NashConv is above `--max`, or if OpenSpiel disagrees."""
    parser = command.Parser(prog="python -m algorithms.nashconv", description=__doc__)
    _add_options(parser)
    _add_response_options(parser)
    return parser.run(_run, argv)


def _add_options(parser: command.Parser) -> None:
    parser.add_argument(
        "policies", nargs="+", metavar="POLICY", help=f"{load.HELP}; {load.BEST_RESPONSE}"
    )
    parser.add_argument("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    parser.add_argument(
        "--max",
        type=command.number(0, kind=float),
        metavar="X",
        help="exit 1 if a NashConv is above X",
    )
    parser.add_argument(
        "--deterministic", action="store_true", help="play the most probable action everywhere"
    )
    parser.add_argument(
        "--losses",
        type=command.number(0),
        default=SHOWN_LOSSES,
        metavar="N",
        help="show the N largest losses (default: %(default)s)",
    )
    parser.add_argument("--trust", action="store_true", help="let model files run code")
    parser.add_argument(
        "--openspiel", action="store_true", help="measure with OpenSpiel too, and compare"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, or a list of them"
    )


def _add_response_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "trained best responses",
        "a lower bound of NashConv; the default in a game that has no exact measure",
    )
    group.add_argument(
        "--respond", action="store_true", help="find a lower bound too, and its share of NashConv"
    )
    group.add_argument(
        "--decisions",
        type=command.number(1),
        metavar="N",
        help=f"number of decisions that each training run learns from ({budget.DECISIONS:,})",
    )
    group.add_argument(
        "--hands",
        type=command.number(budget.MIN_HANDS),
        metavar="N",
        help="number of hands on which each player's response is measured "
        f"({budget.HANDS:,}; with a tree {budget.TREE_HANDS:,})",
    )
    group.add_argument(
        "--seeds",
        metavar="SEEDS",
        help=f"random seeds: 0-2, or 0,3,7, or a count ({len(budget.SEEDS)})",
    )
    group.add_argument(
        "--cpus",
        type=command.number(1),
        metavar="N",
        help="number of training runs at a time; more than 1 run on Ray (1)",
    )
    group.add_argument(
        "--address", help="address of a Ray cluster: auto, host:port or ray://host:port"
    )


def _run(args: argparse.Namespace) -> int:
    options = _response_options(args)
    policies = load.load_policies(
        args.policies, args.game, trust=args.trust, deterministic=args.deterministic
    )
    game = policies[0].game
    if args.openspiel and not isinstance(game, TreeGame):
        raise UsageError(f"--openspiel measures on a tree, and {game.name} is too large for one")
    if not isinstance(game, ExactGame):
        return _bound(args, policies, options)
    if options and not args.respond:
        first = next(iter(options))
        raise UsageError(f"--{first} requires --respond")
    return _measure(args, policies, options)


def _response_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of trained best responses that were given."""
    options = {name: getattr(args, name) for name in RESPONSE_OPTIONS}
    if args.seeds is not None:
        from algorithms.sweeps.plan import parse_seeds

        options["seeds"] = parse_seeds(args.seeds)
    return {name: value for name, value in options.items() if value is not None}


def _measure(
    args: argparse.Namespace, policies: Sequence[Policy], options: Mapping[str, Any]
) -> int:
    """Print exact measures; with `--respond`, lower bounds beside them."""
    reports = []
    with progress("measuring", len(policies)) as show:
        for source, policy in zip(args.policies, policies, strict=True):
            reports.append(measure_report.report(source, policy, openspiel=args.openspiel))
            show(len(reports), source)
    results = [measure_report.to_json(report) for report in reports] if args.json else []
    texts = [_text(reports, args.losses)]
    if args.respond:
        from algorithms.lower_bound import bound_with_bar, to_json, to_text

        for index, report in enumerate(reports):
            bound = bound_with_bar(report.source, report.policy, **options)
            gains = report.measure.gains
            texts.append(to_text(report.source, bound, exact=gains))
            if args.json:
                lower_bound = to_json(report.source, bound)
                lower_bound["share_found"] = bound.share_of(gains)
                results[index]["lower_bound"] = lower_bound
    _print(args, results, texts)
    is_above = _report_above(args, [report.measure.nash_conv for report in reports])
    disagreeing = [report.source for report in reports if not report.agrees]
    for source in disagreeing:
        print(f"{source}: OpenSpiel disagrees", file=sys.stderr)
    return command.EXIT_FAILED if is_above or disagreeing else command.EXIT_OK


def _bound(args: argparse.Namespace, policies: Sequence[Policy], options: Mapping[str, Any]) -> int:
    """Print lower bounds of the policies, beside that of uniform play."""
    from algorithms.lower_bound import bound_with_bar, to_json, to_text
    from algorithms.self_play.states import playable_pyspiel_game

    game = policies[0].game
    playable_pyspiel_game(game)  # raises if no network can play it
    print(
        f"{game.name} has no exact measure: training best responses for a lower bound of NashConv",
        file=sys.stderr,
    )
    by_name = dict(zip(args.policies, policies, strict=True))
    by_name[UNIFORM] = Policy.uniform(game)
    bounds = {name: bound_with_bar(name, policy, **options) for name, policy in by_name.items()}
    uniform = bounds[UNIFORM]
    results = [to_json(name, bounds[name], uniform=uniform) for name in args.policies]
    texts = [to_text(name, bounds[name], uniform=uniform) for name in args.policies]
    _print(args, results, texts)
    at_least = [bounds[name].nash_conv_at_least for name in args.policies]
    is_above = _report_above(args, at_least)
    if args.max is not None and not is_above:
        raise UsageError(
            f"--max {args.max:g}: NashConv is at least {max(at_least):.6g}, "
            "but a bound cannot show that NashConv is small"
        )
    return command.EXIT_FAILED if is_above else command.EXIT_OK


def _text(reports: Sequence[MeasureReport], max_losses: int) -> str:
    if len(reports) > 1:
        return measure_report.overview(reports)
    text = measure_report.to_text(reports[0], max_losses=max_losses)
    if len(reports[0].measure.losses) > max_losses > 0:
        text += " (--losses N)"
    return text


def _print(args: argparse.Namespace, results: list[dict[str, Any]], texts: list[str]) -> None:
    if args.json:
        print(json.dumps(results[0] if len(results) == 1 else results))
    else:
        print("\n\n".join(texts))


def _report_above(args: argparse.Namespace, nash_convs: Sequence[float]) -> bool:
    """Whether a NashConv is above `--max`, with a line for each."""
    limit = math.inf if args.max is None else args.max
    for source, nash_conv in zip(args.policies, nash_convs, strict=True):
        if nash_conv > limit:
            print(f"{source}: NashConv is above {limit:g}", file=sys.stderr)
    return max(nash_convs) > limit
