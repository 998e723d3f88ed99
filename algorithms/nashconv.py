"""Measure policies exactly: NashConv, gains, values, and where they lose chips.

In a game that is too large for that, and with `--respond` in any game, responses are trained, which
gives a lower bound of NashConv.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from algorithms.policies import Policy, sources
from algorithms.policies.report import KuhnReport, Report, as_json, report
from algorithms.support import budget, command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.learning.best_response import LowerBound

UNIFORM = "uniform"
OPENSPIEL_TOLERANCE = 1e-10  # between our numbers and OpenSpiel's, per chip at stake
MIN_PROBABILITY = 5e-5  # that four decimals show
SHOWN_LOSSES = 10
WIDEST = 120  # characters of an information set's label; --json has all of it


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
    add("--respond", action="store_true", help="find a lower bound too, and the share it finds")
    decisions = f"that each training run learns from ({budget.DECISIONS:,})"
    add("--decisions", type=int, metavar="N", help=decisions)
    hands = f"on which each player's response is measured ({budget.HANDS:,})"
    add("--hands", type=int, metavar="N", help=hands)
    add("--seeds", metavar="SEEDS", help=f"0-2, or 0,3,7, or a count ({len(budget.SEEDS)})")
    add("--cpus", type=int, metavar="N", help="training runs at a time; more than 1 on Ray (1)")
    add("--address", help="a Ray cluster: auto, host:port or ray://host:port")
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
        return _run_without_exact(args, policies, options)
    if options and not args.respond:
        raise UsageError(f"--{next(iter(options))} requires --respond")
    reports = []
    with progress("measuring", len(policies)) as bar:
        for source, policy in zip(args.policies, policies, strict=True):
            reports.append(report(source, policy, openspiel=args.openspiel))
            bar(len(reports), source)
    bounds = _lower_bounds(args.policies, policies, options) if args.respond else []
    if args.json:
        _print_json(_as_json(reports, bounds))
    else:
        one = len(reports) == 1
        print("\n".join(_details(reports[0], args.losses) if one else _overview(reports)))
        for item, bound in zip(reports, bounds, strict=False):
            print(f"\n{_bound_text(item.source, bound, exact=item.measure.gains)}")
    failures = list(_failures(reports, args.max))
    for failure in failures:
        print(failure, file=sys.stderr)
    return command.EXIT_FAILED if failures else command.EXIT_OK


def _run_without_exact(
    args: argparse.Namespace, policies: Sequence[Policy], options: dict[str, Any]
) -> int:
    """Bounds alone, and that of uniform play."""
    from algorithms.learning.bound_report import exit_code, to_json, to_text
    from algorithms.learning.states import origin

    game = policies[0].game
    origin(game)  # raises if no network can play it
    print(
        f"{game.name} has no exact measure: training best responses for a lower bound of NashConv",
        file=sys.stderr,
    )
    names = list(dict.fromkeys([*args.policies, UNIFORM]))
    known = dict(zip(args.policies, policies, strict=True)) | {UNIFORM: Policy.uniform(game)}
    found = _lower_bounds(names, [known[name] for name in names], options)
    bounds = dict(zip(names, found, strict=True))
    if args.json:
        _print_json([to_json(s, bounds[s], uniform=bounds[UNIFORM]) for s in args.policies])
    else:
        texts = (to_text(s, bounds[s], uniform=bounds[UNIFORM]) for s in args.policies)
        print("\n\n".join(texts))
    code = exit_code([bounds[source] for source in args.policies], args.max)
    for source in args.policies if code == command.EXIT_FAILED else ():
        if bounds[source].nash_conv_at_least > args.max:
            print(f"{source}: NashConv is above {args.max:g}", file=sys.stderr)
    return code


def _response_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `lower_bound` that were given, checked."""
    names = ("decisions", "hands", "seeds", "cpus", "address")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if "seeds" in given:
        from algorithms.sweeping.plan import parse_seeds

        given["seeds"] = parse_seeds(args.seeds)
    budget.require_budget(**{name: given[name] for name in given if name != "address"})
    return given


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


def _as_json(reports: Sequence[Report], bounds: Sequence[LowerBound]) -> list[dict[str, Any]]:
    found = [as_json(item) for item in reports]
    if bounds:
        from algorithms.learning.bound_report import to_json

        for item, bound, document in zip(reports, bounds, found, strict=True):
            share = bound.share_of(item.measure.gains)
            document["lower_bound"] = to_json(item.source, bound) | {"share_found": share}
    return found


def _bound_text(source: str, bound: LowerBound, *, exact: Sequence[float]) -> str:
    from algorithms.learning.bound_report import to_text

    return to_text(source, bound, exact=exact)


def _print_json(found: list[dict[str, Any]]) -> None:
    print(json.dumps(found[0] if len(found) == 1 else found))


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
