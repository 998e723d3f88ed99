"""How far policies are from equilibrium, exactly: NashConv, best responses, value, distance."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from algorithms.dominance import described
from algorithms.exact.elimination import Elimination, Exposure, eliminate, exposures
from algorithms.exact.kuhn import UNIFORM_NASH_CONV, VALUE, Nearest, nearest_nash
from algorithms.exact.tree import Tree
from algorithms.exact.values import NashConv, nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress
from kuhn_bridge.policy import LEGAL, TabularPolicy
from kuhn_bridge.rules import AGENTS, Action

AGREEMENT = 1e-9  # between our arithmetic and OpenSpiel's
ROUNDING = 1e-9  # a NashConv below this is 0 up to rounding
SHOWN = 5e-5  # a probability that four decimals show


@dataclass(frozen=True, slots=True)
class Theirs:
    """What OpenSpiel's own `exploitability` says of a policy on its `kuhn_poker`."""

    nash_conv: float
    gains: tuple[float, ...]
    value: float

    def gap(self, ours: NashConv) -> float:
        """The largest difference to our numbers."""
        pairs = zip(
            (self.nash_conv, *self.gains, self.value),
            (ours.total, *ours.gains, ours.values[0]),
            strict=True,
        )
        return max(abs(a - b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Report:
    """All that is known about one policy."""

    source: str
    policy: TabularPolicy
    measure: NashConv
    nearest: Nearest
    exposures: tuple[Exposure, ...]
    theirs: Theirs | None = None

    @property
    def dominated(self) -> float:
        """The largest probability on a dominated action."""
        return max((exposure.probability for exposure in self.exposures), default=0.0)


def report(source: str, policy: TabularPolicy, *, openspiel: bool = False) -> Report:
    """Measure a policy; `openspiel` has OpenSpiel measure it too."""
    tree, table = _tree(), policy.probabilities
    return Report(
        source,
        policy,
        nash_conv(tree, table),
        nearest_nash(policy),
        exposures(tree, table, _elimination()),
        by_openspiel(policy) if openspiel else None,
    )


def by_openspiel(policy: TabularPolicy) -> Theirs:
    """The same numbers from OpenSpiel, through the bridge."""
    try:
        import pyspiel
        from open_spiel.python.algorithms import expected_game_score, exploitability

        from kuhn_bridge.openspiel import to_python_policy
    except ImportError as error:
        raise UsageError(
            f"--openspiel: not installed ({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    game, theirs = pyspiel.load_game("kuhn_poker"), to_python_policy(policy)
    found = exploitability.nash_conv(game, theirs, return_only_nash_conv=False)
    value = expected_game_score.policy_value(game.new_initial_state(), [theirs] * 2)[0]
    gains = tuple(float(gain) for gain in found.player_improvements)
    return Theirs(float(found.nash_conv), gains, float(value))


def verdict(total: float) -> str:
    """A NashConv in words, between equilibrium and uniform play."""
    uniform = float(UNIFORM_NASH_CONV)
    if total <= ROUNDING:
        return "an equilibrium, up to rounding"
    if abs(total - uniform) <= ROUNDING:
        return f"as far from equilibrium as uniform play ({uniform:.4f})"
    if total > uniform:
        return f"worse than uniform play ({uniform:.4f})"
    share = 1 - total / uniform
    return f"{share:.1%} of the way from uniform play ({uniform:.4f}) to equilibrium (0)"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 above `--max`, or if OpenSpiel disagrees."""
    parser = command.Parser(prog="python -m algorithms.nashconv", description=__doc__)
    parser.add_argument("policies", nargs="+", metavar="POLICY", help=sources.HELP)
    parser.add_argument("--max", type=float, metavar="X", help="exit 1 if a NashConv is above X")
    parser.add_argument(
        "--deterministic", action="store_true", help="always play the likeliest action"
    )
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    parser.add_argument("--openspiel", action="store_true", help="have OpenSpiel measure it too")
    parser.add_argument("--json", action="store_true", help="one JSON object, or a list of them")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.max is not None and math.isnan(args.max):
        raise UsageError("--max nan: want a number")
    reports = []
    with progress("measuring", len(args.policies)) as bar:
        for number, source in enumerate(args.policies, start=1):
            policy = sources.load(source, trust=args.trust, deterministic=args.deterministic)
            reports.append(report(source, policy, openspiel=args.openspiel))
            bar(number, source)
    if args.json:
        found = [_as_json(item) for item in reports]
        print(json.dumps(found[0] if len(found) == 1 else found))
    else:
        lines = _details(reports[0]) if len(reports) == 1 else _overview(reports)
        print("\n".join(lines))
    above = [item for item in reports if args.max is not None and item.measure.total > args.max]
    apart = [item for item in reports if item.theirs and item.theirs.gap(item.measure) > AGREEMENT]
    for item in above:
        print(f"{item.source}: NashConv is above {args.max:g}", file=sys.stderr)
    for item in apart:
        print(f"{item.source}: OpenSpiel disagrees", file=sys.stderr)
    return command.DOES_NOT_HOLD if above or apart else command.HOLDS


@cache
def _tree() -> Tree:
    return kuhn_tree()


@cache
def _elimination() -> Elimination:
    return eliminate(_tree())


def _as_json(item: Report) -> dict[str, Any]:
    measure, theirs = item.measure, item.theirs
    answers = zip(_tree().keys, measure.best_responses.tolist(), strict=True)
    found = {
        "source": item.source,
        "nash_conv": measure.total,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "value": measure.values[0],
        "best_response_values": measure.best_values,
        "best_response": {key: Action(action).name for key, action in answers},
        "distance": item.nearest.distance,
        "alpha": item.nearest.alpha,
        "dominated": [
            {"key": e.key, "action": Action(e.action).name, "probability": e.probability}
            for e in item.exposures
        ],
        "verdict": verdict(measure.total),
        "policy": item.policy.to_dict(),
    }
    if theirs:
        shown = {"nash_conv": theirs.nash_conv, "gains": theirs.gains, "value": theirs.value}
        found["openspiel"] = shown | {"gap": theirs.gap(measure)}
    return found


def _overview(reports: Sequence[Report]) -> Iterator[str]:
    header = ["policy", "NashConv", *(f"gain {agent}" for agent in AGENTS)]
    header += ["value", "distance", "dominated"]
    compared = any(item.theirs for item in reports)
    rows = [
        [
            item.source,
            *(f"{x:.6f}" for x in (item.measure.total, *item.measure.gains)),
            f"{item.measure.values[0]:+.6f}",
            f"{item.nearest.distance:.4f}",
            f"{item.dominated:.4f}",
            *([f"{item.theirs.nash_conv:z.6f}"] if item.theirs else []),
        ]
        for item in reports
    ]
    yield command.table([*header, *(["OpenSpiel"] if compared else [])], rows)
    yield f"uniform play has NashConv {float(UNIFORM_NASH_CONV):.6f}, an equilibrium 0"


def _details(item: Report) -> Iterator[str]:
    measure, theirs, near = item.measure, item.theirs, item.nearest
    yield f"{item.source}: NashConv {measure.total:.6g}, {verdict(measure.total)}"
    yield ""
    yield _rows(item)
    yield ""
    header = ("chips a hand", *AGENTS)
    lines = {
        "value": measure.values,
        "value of a best response": measure.best_values,
        "gain": measure.gains,
    }
    if theirs:
        lines["gain, by OpenSpiel"] = theirs.gains
    yield command.table(
        header, [(name, *(f"{x:+z.9f}" for x in values)) for name, values in lines.items()]
    )
    yield ""
    lost = measure.values[0] - float(VALUE)
    yield f"value against {VALUE}  {lost:+.6f}"
    yield f"exploitability       {measure.exploitability:.6g} (NashConv / 2 players)"
    yield f"distance             {near.distance:.6f} to the equilibrium of alpha {near.alpha:.4f}"
    if theirs:
        gap = theirs.gap(measure)
        word = "agrees" if gap <= AGREEMENT else "DISAGREES"
        yield f"OpenSpiel            NashConv {theirs.nash_conv:.6g}, value {theirs.value:+.6f}"
        yield f"                     {word}: the largest difference is {gap:.1e}"
    shown = [exposure for exposure in item.exposures if exposure.probability > SHOWN]
    if not shown:
        yield "dominated actions    none played"
    for exposure in shown:
        where = described(exposure.key, exposure.action)
        yield f"dominated            {exposure.probability:.4f} on {where}"


def _rows(item: Report) -> str:
    """The twelve rows, the nearest equilibrium beside each, and what the owner should answer."""
    names = ("check/call", "bet", "fold")
    header = ("state", *names, *(f"~{name}" for name in names), "best response")
    both = np.hstack([item.policy.probabilities, item.nearest.policy.probabilities])
    legal = np.hstack([LEGAL, LEGAL])
    rows = [
        (
            key,
            *(f"{p:.4f}" if ok else "-" for p, ok in zip(*cells, strict=True)),
            described(key, answer).rpartition(": ")[2],
        )
        for key, answer, *cells in zip(
            _tree().keys, item.measure.best_responses.tolist(), both, legal, strict=True
        )
    ]
    return f"{command.table(header, rows)}\n(~ is the nearest equilibrium)"


if __name__ == "__main__":
    sys.exit(main())
