"""Play hands between two policies in both seatings, next to the exact value.

`python -m algorithms.simulate A B --hands N` plays N hands with A as player_0 and N as player_1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from algorithms.exact.simulation import CERTAIN, LEAST_HANDS, Sample, both_seats, simulate
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress
from kuhn_bridge.rules import AGENTS


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the exact value is too far from what was played."""
    parser = command.Parser(
        prog="python -m algorithms.simulate", description=__doc__.splitlines()[0]
    )
    parser.add_argument("policies", nargs=2, metavar="POLICY", help=sources.HELP)
    parser.add_argument("--hands", type=int, default=100_000, help="a seating (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the deals and draws (%(default)s)")
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.hands < LEAST_HANDS:
        raise UsageError(f"--hands {args.hands}: an interval needs at least {LEAST_HANDS}")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: want a whole number from 0 up")
    policies = [sources.load(name, trust=args.trust).probabilities for name in args.policies]
    with progress("playing", 2 * args.hands) as bar:
        samples = simulate(kuhn_tree(), policies, hands=args.hands, seed=args.seed, progress=bar)
    named = dict(zip((*AGENTS, "both seats"), (*samples, both_seats(samples)), strict=True))
    if args.json:
        shown = {name: asdict(s) | {"interval": s.interval} for name, s in named.items()}
        print(json.dumps({"policies": args.policies, "seed": args.seed} | shown))
    else:
        print(_report(args.policies, named))
    return command.DOES_NOT_HOLD if any(s.off > CERTAIN for s in samples) else command.HOLDS


def _report(policies: Sequence[str], named: Mapping[str, Sample]) -> str:
    rows = [
        (
            name,
            f"{sample.hands:,}",
            f"{sample.mean:+.5f}",
            f"{sample.standard_error:.5f}",
            "[{:+.5f}, {:+.5f}]".format(*sample.interval),
            f"{sample.exact:+.5f}",
            "inside" if sample.interval[0] <= sample.exact <= sample.interval[1] else "outside",
        )
        for name, sample in named.items()
    ]
    header = ("seat", "hands", "mean", "error", "95% interval", "exact", "exact is")
    return (
        f"what {policies[0]} wins from {policies[1]}, chips a hand\n{command.table(header, rows)}"
    )


if __name__ == "__main__":
    sys.exit(main())
