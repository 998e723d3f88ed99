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


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if the mean of the hands is too far from the exact value."""
    parser = command.Parser(prog="python -m algorithms.simulate", description=__doc__)
    policies = f"{load.HELP}; {load.BEST_RESPONSE}"
    parser.add_argument("policies", nargs=2, metavar="POLICY", help=policies)
    matches.add_options(parser)
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    one, other = load.load_policies(args.policies, args.game, trust=args.trust)
    match = matches.play_match(one, other, hands=args.hands, seed=args.seed)
    names = (*one.game.agents, "both seats" if one.game.num_players == 2 else "all seats")
    if args.json:
        head = {"policies": args.policies, "game": one.game.name, "seed": args.seed}
        print(json.dumps(head | matches.as_json(names, match)))
    else:
        rows = [_row(name, sample) for name, sample in zip(names, match, strict=True)]
        header = ("seat", "hands", "mean", "error", "95% interval", "exact", "exact is")
        print("what {} wins from {}, chips per hand".format(*args.policies))
        print(command.table(header[: len(rows[0])], rows))
    return matches.exit_code([match])


def _row(name: str, sample: matches.Sample) -> list[str]:
    (low, high), exact = sample.interval, sample.exact
    row = [name, f"{sample.hands:,}", f"{sample.mean:+.5f}", f"{sample.standard_error:.5f}"]
    row.append(f"[{low:+.5f}, {high:+.5f}]")
    if exact is not None:
        row += [f"{exact:+.5f}", "inside" if low <= exact <= high else "outside"]
    return row


if __name__ == "__main__":
    sys.exit(main())
