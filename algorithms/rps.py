"""Regret matching on rock-paper-scissors: the idea of CFR on one page.

Each action is played in proportion to the regret of not having played it, if that is positive. In
self-play the average policy converges to 1/3 each; against a biased opponent it converges to the
best response (Hart and Mas-Colell 2000; Neller and Lanctot 2013 is an introduction).
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from algorithms.support import command
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError

NAMES = ("rock", "paper", "scissors")
PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # the row's payoff against the column
TOLERANCE = 0.05  # points per round that the average policy may fall short


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """A player's average policy `(3,)`, and how much more the best policy wins per round."""

    average: Float64Array
    shortfall: float


def regret_matching(regret: Float64Array) -> Float64Array:
    """The policy `(3,)` in proportion to the positive regrets; uniform if there are none."""
    positive = np.maximum(regret, 0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(regret), 1 / len(regret))


def self_play(rounds: int, *, seed: int = 0) -> Averages:
    """Regret matching against itself."""
    random = Random(seed)
    regrets, total = np.zeros((2, 3)), np.zeros(3)
    for _ in range(rounds):
        policies = [regret_matching(regret) for regret in regrets]
        total += policies[0]
        mine, yours = (_draw_move(policy, random) for policy in policies)
        regrets[0] += PAYOFF[:, yours] - PAYOFF[mine, yours]
        regrets[1] += PAYOFF[:, mine] - PAYOFF[yours, mine]
    average = total / rounds
    return Averages(average, float((PAYOFF @ average).max()))  # what an opponent would win


def against(opponent: Sequence[float], rounds: int, *, seed: int = 0) -> Averages:
    """Regret matching against a fixed policy `(3,)`."""
    random = Random(seed)
    regret, total = np.zeros(3), np.zeros(3)
    for _ in range(rounds):
        policy = regret_matching(regret)
        total += policy
        mine, yours = _draw_move(policy, random), _draw_move(opponent, random)
        regret += PAYOFF[:, yours] - PAYOFF[mine, yours]
    average, wins = total / rounds, PAYOFF @ opponent
    return Averages(average, float(wins.max() - average @ wins))


def _draw_move(policy: Iterable[float], random: Random) -> int:
    return random.choices(range(3), list(policy))[0]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if an average policy falls short by more than the tolerance."""
    parser = command.Parser(prog="python -m algorithms.rps", description=command.summary(__doc__))
    parser.add_argument("--rounds", type=int, default=20_000, help="number of rounds (%(default)s)")
    parser.add_argument(
        "--opponent",
        type=float,
        nargs=3,
        default=(0.4, 0.3, 0.3),
        metavar=("R", "P", "S"),
        help="probabilities of the fixed opponent (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    if args.rounds < 1:
        raise UsageError(f"--rounds {args.rounds}: want at least 1")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: want an integer from 0 up")
    if min(args.opponent) < 0 or not abs(sum(args.opponent) - 1) < 1e-9:
        raise UsageError(f"--opponent {args.opponent}: want three probabilities that sum to 1")
    outcomes = {
        "self-play": self_play(args.rounds, seed=args.seed),
        "against the opponent": against(args.opponent, args.rounds, seed=args.seed),
    }
    if args.json:
        result = {
            name: {"average": outcome.average.tolist(), "shortfall": outcome.shortfall}
            for name, outcome in outcomes.items()
        }
        print(json.dumps({"rounds": args.rounds, "seed": args.seed} | result))
    else:
        rows = [
            (name, *(f"{p:.4f}" for p in (*outcome.average, outcome.shortfall)))
            for name, outcome in outcomes.items()
        ]
        print(command.table((f"average of {args.rounds:,} rounds", *NAMES, "shortfall"), rows))
    close = all(outcome.shortfall <= TOLERANCE for outcome in outcomes.values())
    return command.EXIT_OK if close else command.EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
