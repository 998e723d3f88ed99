"""Write policies of a game as one HTML file: how good they are, where they lose, a game to play.

The file needs no network and no server. Beside the policies it shows an equilibrium.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import TreeGame
from algorithms.policies import load
from algorithms.reports import writing
from algorithms.support import budget, command, files


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = the file is written."""
    parser = command.Parser(prog="python -m algorithms.report", description=__doc__)
    parser.add_argument(
        "policies", nargs="+", metavar="POLICY", help=f"{load.HELP}; {load.BEST_RESPONSE}"
    )
    parser.add_argument("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    parser.add_argument(
        "--out", type=Path, default="report.html", metavar="HTML", help="the file (%(default)s)"
    )
    parser.add_argument(
        "--equilibrium",
        metavar="POLICY",
        help="the policy to show beside them "
        f"({TreeGame.usual_reference}; {writing.NO_REFERENCE}: nothing)",
    )
    parser.add_argument(
        "--decisions",
        type=command.number(0),
        default=budget.DECISIONS,
        metavar="N",
        help="decisions that best responses learn from in a game without an exact measure "
        f"({budget.DECISIONS:,}; 0: no bound of NashConv)",
    )
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    writing.require_html(args.out)
    files.require_writable(args.out)
    document = writing.report_document(
        args.policies,
        args.game,
        equilibrium=args.equilibrium,
        trust=args.trust,
        decisions=args.decisions,
    )
    size = writing.write_document(args.out, document)
    print(f"wrote {args.out}: {size / 1e6:.2f} MB")
    if document["without_tree"]:
        print(document["without_tree"])
    return command.EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
