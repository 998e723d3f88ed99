"""Play hands between two policies in every seating, next to the exact value.

`python -m algorithms.simulate A B --hands N` plays N hands with A in each seat and B in the others.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from algorithms.exact.simulation import MAX_ERRORS, Sample, require_hands
from algorithms.learning.matches import play_match
from algorithms.policies import sources
from algorithms.support import command
from algorithms.support.progress import progress


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the mean of the hands is too far from the exact value."""
    parser = command.Parser(
        prog="python -m algorithms.simulate",
        description=command.summary(__doc__),
    )
    parser.add_argument(
        "policies", nargs=2, metavar="POLICY", help=f"{sources.HELP}; {sources.BEST_RESPONSE}"
    )
    parser.add_argument("--game", metavar="NAME", help=sources.GAME_HELP)
    parser.add_argument(
        "--hands", type=int, default=100_000, help="number of hands per seat (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of deals and draws (%(default)s)"
    )
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    require_hands(args.hands, args.seed)
    one, other = sources.load_policies(args.policies, args.game, trust=args.trust)
    game = one.game
    with progress("playing", game.num_players * args.hands) as bar:
        match = play_match((one, other), hands=args.hands, seed=args.seed, progress=bar)
    together = "both seats" if game.num_players == 2 else "all seats"
    named = dict(zip((*game.agents, together), (*match.seats, match.together), strict=True))
    if args.json:
        shown = {name: asdict(s) | {"interval": s.interval} for name, s in named.items()}
        head = {"policies": args.policies, "game": game.name, "seed": args.seed}
        print(json.dumps(head | shown))
    else:
        print(_report(args.policies, named))
    off = max(sample.errors_off for sample in match.seats)
    return command.EXIT_FAILED if off > MAX_ERRORS else command.EXIT_OK


def _report(policies: Sequence[str], named: Mapping[str, Sample]) -> str:
    rows = [_row(name, sample) for name, sample in named.items()]
    header = ("seat", "hands", "mean", "error", "95% interval", "exact", "exact is")
    return (
        f"what {policies[0]} wins from {policies[1]}, chips per hand\n"
        f"{command.table(header[: len(rows[0])], rows)}"
    )


def _row(name: str, sample: Sample) -> list[str]:
    low, high = sample.interval
    row = [
        name,
        f"{sample.hands:,}",
        f"{sample.mean:+.5f}",
        f"{sample.standard_error:.5f}",
        f"[{low:+.5f}, {high:+.5f}]",
    ]
    if sample.exact is not None:
        row += [f"{sample.exact:+.5f}", "inside" if low <= sample.exact <= high else "outside"]
    return row


if __name__ == "__main__":
    sys.exit(main())
