"""Regret matching on rock-paper-scissors: the idea of CFR on one page.

Each action is played in proportion to the regret of not having played it, if that is positive. In
self-play the average policy converges to 1/3 each; against a biased opponent it converges to the
best response (Hart and Mas-Colell 2000; Neller and Lanctot 2013 is an introduction).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from random import Random

import numpy as np

from algorithms.support import command
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError

NAMES = ("rock", "paper", "scissors")
PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # the row's payoff against the column
TOLERANCE = 0.05  # points per round that the average policy may fall short


def regret_matching(regret: Float64Array) -> Float64Array:
    """The policy `(3,)` in proportion to the positive regrets; uniform if there are none."""
    positive = np.maximum(regret, 0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regret), 1 / len(regret))


def average_policy(
    rounds: int, opponent: Sequence[float] | None = None, *, seed: int = 0
) -> tuple[Float64Array, float]:
    """The average policy `(3,)` of regret matching, and how much more the best one wins per round.

    Best against a fixed opponent `(3,)`; by default, in self-play, against the average itself.
    """
    random = Random(seed)
    regrets = np.zeros((2, 3))  # by player and action
    total = np.zeros(3)
    for _ in range(rounds):
        first = regret_matching(regrets[0])
        second = regret_matching(regrets[1])
        total += first
        own_move = _draw_move(first, random)
        other_move = _draw_move(opponent or second, random)
        # What each action would have won more than the one that was played.
        regrets[0] += PAYOFF[:, other_move] - PAYOFF[own_move, other_move]
        regrets[1] += PAYOFF[:, own_move] - PAYOFF[other_move, own_move]
    average = total / rounds
    wins = PAYOFF @ (opponent or average)  # (3,) of each action per round
    return average, float(wins.max() - average @ wins)


def _draw_move(policy: Sequence[float] | Float64Array, random: Random) -> int:
    return random.choices(range(3), list(policy))[0]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if an average policy falls short by more than the tolerance."""
    parser = command.Parser(prog="python -m algorithms.rps", description=__doc__)
    parser.add_argument(
        "--rounds", type=command.number(1), default=20_000, help="number of rounds (%(default)s)"
    )
    parser.add_argument(
        "--opponent",
        type=float,
        nargs=3,
        default=(0.4, 0.3, 0.3),
        metavar=("R", "P", "S"),
        help="probabilities of the fixed opponent (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=command.number(0), default=0, help="random seed (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    if min(args.opponent) < 0 or not abs(sum(args.opponent) - 1) < 1e-9:
        raise UsageError(f"--opponent {args.opponent}: want three probabilities that sum to 1")
    results = {
        "self-play": average_policy(args.rounds, seed=args.seed),
        "against the opponent": average_policy(args.rounds, args.opponent, seed=args.seed),
    }
    if args.json:
        result = {
            name: {"average": average.tolist(), "shortfall": shortfall}
            for name, (average, shortfall) in results.items()
        }
        print(json.dumps({"rounds": args.rounds, "seed": args.seed} | result))
    else:
        rows = []
        for name, (average, shortfall) in results.items():
            numbers = (*average, shortfall)
            rows.append((name, *(f"{number:.4f}" for number in numbers)))
        print(command.table((f"average of {args.rounds:,} rounds", *NAMES, "shortfall"), rows))
    close = all(shortfall <= TOLERANCE for _, shortfall in results.values())
    return command.EXIT_OK if close else command.EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
