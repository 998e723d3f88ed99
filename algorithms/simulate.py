"""Play hands between two policies in both seatings, next to the exact value.

`python -m algorithms.simulate A B --hands N` plays N hands with A as player_0 and N as player_1.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from algorithms import cli, sources
from algorithms.tree import TERMINAL, Floats, Indices, Policy, Progress, Tree, kuhn_tree
from algorithms.values import expected_values, seated
from kuhn_bridge.rules import AGENTS, PLAYERS

CHUNK = 1 << 16
LEAST_HANDS = 30  # fewer say too little about their own spread
CERTAIN = 5.0  # standard errors: a right mean is further off once in two million runs


@dataclass(frozen=True, slots=True)
class Sample:
    """What one policy won, in chips a hand, and what it should have won."""

    hands: int
    mean: float
    standard_error: float
    exact: float

    @property
    def interval(self) -> tuple[float, float]:
        """95% of such intervals contain the exact value."""
        reach = 1.959964 * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def off(self) -> float:
        """How many standard errors lie between the mean and the exact value."""
        gap = abs(self.mean - self.exact)
        if gap < 1e-9:
            return 0.0
        return gap / self.standard_error if self.standard_error else math.inf


def simulate(
    tree: Tree,
    policies: Sequence[Policy],
    *,
    hands: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Sample, ...]:
    """What `policies[0]` wins in each seat against `policies[1]`, `hands` hands a seat."""
    random = np.random.default_rng(seed)
    samples = []
    for seat in PLAYERS:
        policy = seated(tree, [policies[seat], policies[1 - seat]])
        count = np.zeros(tree.num_nodes, np.int64)
        for start in range(0, hands, CHUNK):
            ends = play(tree, policy, min(CHUNK, hands - start), random)
            count += np.bincount(ends, minlength=tree.num_nodes)
            if progress:
                progress(seat * hands + start, "hands")
        won = tree.returns[seat]
        mean = float(count @ won) / hands
        variance = float(count @ (won - mean) ** 2) / max(hands - 1, 1)
        error = math.sqrt(variance / hands)
        samples.append(Sample(hands, mean, error, expected_values(tree, policy)[seat]))
    return tuple(samples)


def both_seats(samples: Sequence[Sample]) -> Sample:
    """The seats together, equally often."""
    seats = len(samples)
    return Sample(
        sum(sample.hands for sample in samples),
        sum(sample.mean for sample in samples) / seats,
        math.hypot(*(sample.standard_error for sample in samples)) / seats,
        sum(sample.exact for sample in samples) / seats,
    )


def play(tree: Tree, policy: Policy, hands: int, random: np.random.Generator) -> Indices:
    """The terminal nodes `(hands,)` that a joint policy `(I, A)` plays to, all hands at once."""
    thresholds = _thresholds(tree, policy)
    nodes = np.zeros(hands, np.intp)
    going = np.arange(hands)
    while len(going):
        at = nodes[going]
        draw = random.random((len(going), 1))
        nodes[going] = tree.first_child[at] + (draw >= thresholds[at]).sum(axis=1)
        going = going[tree.player[nodes[going]] != TERMINAL]
    return nodes


def _thresholds(tree: Tree, policy: Policy) -> Floats:
    """Where a draw passes from one child to the next: `(N, most children)`, never past the last."""
    sizes = np.diff(tree.first_child)
    parents = np.repeat(np.arange(tree.num_nodes), sizes)  # of the nodes from 1 on
    rank = np.arange(1, tree.num_nodes) - tree.first_child[parents]
    rows, share = tree.infoset[parents], tree.edge[1:].copy()
    chosen = rows >= 0
    share[chosen] = policy[rows[chosen], tree.action[1:][chosen]]
    shares = np.zeros((tree.num_nodes, sizes.max()))
    shares[parents, rank] = share
    last = np.arange(sizes.max()) >= sizes[:, None] - 1
    return np.where(last, np.inf, np.cumsum(shares, axis=1))


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the exact value is too far from what was played."""
    parser = cli.Parser(prog="python -m algorithms.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs=2, metavar="POLICY", help=sources.HELP)
    parser.add_argument("--hands", type=int, default=100_000, help="a seating (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the deals and draws (%(default)s)")
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return cli.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.hands < LEAST_HANDS:
        raise cli.UsageError(f"--hands {args.hands}: an interval needs at least {LEAST_HANDS}")
    if args.seed < 0:
        raise cli.UsageError(f"--seed {args.seed}: want a whole number from 0 up")
    policies = [sources.load(name, trust=args.trust).probabilities for name in args.policies]
    with cli.progress("playing", 2 * args.hands) as bar:
        samples = simulate(kuhn_tree(), policies, hands=args.hands, seed=args.seed, progress=bar)
    named = dict(zip((*AGENTS, "both seats"), (*samples, both_seats(samples)), strict=True))
    if args.json:
        shown = {name: asdict(s) | {"interval": s.interval} for name, s in named.items()}
        print(json.dumps({"policies": args.policies, "seed": args.seed} | shown))
    else:
        print(_report(args.policies, named))
    return cli.DOES_NOT_HOLD if any(s.off > CERTAIN for s in samples) else cli.HOLDS


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
    return f"what {policies[0]} wins from {policies[1]}, chips a hand\n{cli.table(header, rows)}"


if __name__ == "__main__":
    sys.exit(main())
