"""Play a policy against opponents: what it wins exactly in each seat, and in a simulated match.

`python -m algorithms.evaluate model.zip --against heuristic nash:1/3 other.zip --hands 100000`
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from types import MappingProxyType

from algorithms.exact.simulation import CERTAIN, LEAST_HANDS, Sample, both_seats, simulate
from algorithms.exact.values import nash_conv, pure
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress
from kuhn_bridge.policy import TabularPolicy
from kuhn_bridge.rules import AGENTS, PLAYERS

# One row a card, J Q K, the same in both seats: percent of check, bet; fold, call.
STYLES = MappingProxyType(
    {
        "random": ((50, 50, 50, 50),) * 3,
        "heuristic": ((100, 0, 100, 0), (100, 0, 0, 100), (0, 100, 0, 100)),  # never bluffs
        "always-bet": ((0, 100, 0, 100),) * 3,  # and calls
        "always-check": ((100, 0, 100, 0),) * 3,  # and folds
    }
)
BEST_RESPONSE = "best-response"
OPPONENTS = (*STYLES, "nash:0", "nash:1/3", BEST_RESPONSE)


def opponent(name: str, policy: TabularPolicy, *, trust: bool = False) -> TabularPolicy:
    """The opponent called `name`: a style, the best response to `policy`, or any policy source."""
    name = name.removesuffix("-legal")  # random-legal is random
    if name == BEST_RESPONSE:
        tree = kuhn_tree()
        return TabularPolicy(pure(tree, nash_conv(tree, policy.probabilities).best_responses))
    if name in STYLES:
        return TabularPolicy.from_percentages([STYLES[name]] * len(PLAYERS))
    return sources.load(name, trust=trust, besides=OPPONENTS)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if a match is further from the exact value than chance explains."""
    parser = command.Parser(
        prog="python -m algorithms.evaluate", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("policy", metavar="POLICY", help=sources.HELP)
    add(
        "--against",
        nargs="+",
        metavar="OPPONENT",
        default=OPPONENTS,
        help=f"{', '.join(STYLES)}, "
        f"{BEST_RESPONSE} (to the policy), or any POLICY (default: {' '.join(OPPONENTS)})",
    )
    add("--hands", type=int, default=100_000, help="a seating (%(default)s)")
    add("--seed", type=int, default=0, help="of the deals and draws (%(default)s)")
    add("--deterministic", action="store_true", help="always the policy's likeliest action")
    add("--trust", action="store_true", help="let a model's file run code")
    add("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.hands < LEAST_HANDS or args.seed < 0:
        raise UsageError(f"--hands must be {LEAST_HANDS} or more, --seed 0 or more")
    policy = sources.load(args.policy, trust=args.trust, deterministic=args.deterministic)
    others = {name: opponent(name, policy, trust=args.trust) for name in args.against}
    matches = {name: _match(policy, other, args) for name, other in others.items()}
    if args.json:
        shown = {name: _as_json(samples) for name, samples in matches.items()}
        print(json.dumps({"source": args.policy, "seed": args.seed, "against": shown}))
    else:
        print(f"what {args.policy} wins, chips a hand, over {2 * args.hands:,} hands a match")
        print(_table(matches))
    off = [sample.off for samples in matches.values() for sample in samples]
    return command.DOES_NOT_HOLD if max(off) > CERTAIN else command.HOLDS


def _match(
    policy: TabularPolicy, other: TabularPolicy, args: argparse.Namespace
) -> tuple[Sample, ...]:
    tables = (policy.probabilities, other.probabilities)
    with progress("playing", 2 * args.hands) as bar:
        return simulate(kuhn_tree(), tables, hands=args.hands, seed=args.seed, progress=bar)


def _table(matches: dict[str, tuple[Sample, ...]]) -> str:
    header = (
        "against",
        *(f"exact as {agent}" for agent in AGENTS),
        "exact",
        "match",
        "95% interval",
    )
    rows = []
    for name, samples in matches.items():
        both = both_seats(samples)
        exact = [f"{sample.exact:+.5f}" for sample in (*samples, both)]
        low, high = both.interval
        rows.append((name, *exact, f"{both.mean:+.5f}", f"[{low:+.5f}, {high:+.5f}]"))
    return command.table(header, rows)


def _as_json(samples: tuple[Sample, ...]) -> dict[str, object]:
    named = zip((*AGENTS, "both"), (*samples, both_seats(samples)), strict=True)
    return {name: asdict(sample) | {"interval": sample.interval} for name, sample in named}


if __name__ == "__main__":
    sys.exit(main())
