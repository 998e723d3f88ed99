"""Play hands between two policies in every seating, next to the exact value.

`python -m algorithms.simulate A B --hands N` plays N hands with A in each seat and B in the others.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from algorithms.policies import load
from algorithms.self_play import matches
from algorithms.support import command

HEADER: tuple[str, ...] = ("seat", "hands", "mean", "error", "95% interval")
EXACT_HEADER = ("exact", "exact is")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the mean of the hands is too far from the exact value."""
    parser = command.Parser(prog="python -m algorithms.simulate", description=__doc__)
    parser.add_argument(
        "policies", nargs=2, metavar="POLICY", help=f"{load.HELP}; {load.BEST_RESPONSE}"
    )
    matches.add_options(parser)
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    one, other = load.load_policies(args.policies, args.game, trust=args.trust)
    game = one.game
    match = matches.play_match(one, other, hands=args.hands, seed=args.seed)
    together = "both seats" if game.num_players == 2 else "all seats"
    names = (*game.agents, together)
    if args.json:
        about = {"policies": args.policies, "game": game.name, "seed": args.seed}
        print(json.dumps(about | matches.as_json(names, match)))
    else:
        name, other_name = args.policies
        print(f"what {name} wins from {other_name}, chips per hand")
        header = HEADER
        if all(sample.exact is not None for sample in match):
            header += EXACT_HEADER
        rows = [_row(name, sample) for name, sample in zip(names, match, strict=True)]
        print(command.table(header, rows))
    return matches.exit_code([match])


def _row(name: str, sample: matches.Sample) -> list[str]:
    low, high = sample.interval
    row = [
        name,
        f"{sample.hands:,}",
        f"{sample.mean:+.5f}",
        f"{sample.standard_error:.5f}",
        f"[{low:+.5f}, {high:+.5f}]",
    ]
    if sample.exact is not None:
        row.append(f"{sample.exact:+.5f}")
        row.append("inside" if low <= sample.exact <= high else "outside")
    return row


if __name__ == "__main__":
    sys.exit(main())
