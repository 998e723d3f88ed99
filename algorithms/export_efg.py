"""`python -m algorithms.export_efg --game leduc_poker`: write a game for Gambit."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import load_game
from algorithms.policies.load import GAMES
from algorithms.support.command import EXIT_OK, Parser
from algorithms.support.files import require_writable


def main(argv: Sequence[str] | None = None) -> int:
    """Write a game with a tree as an .efg file, which Gambit and load_game read."""
    parser = Parser(prog="python -m algorithms.export_efg", description=main.__doc__)
    parser.add_argument("--game", metavar="NAME", required=True, help=GAMES)
    parser.add_import()
    parser.add_argument(
        "--out", type=Path, metavar="EFG", help="the file to write (the game's short name)"
    )
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    game = load_game(args.game)
    short_name = Path(args.game).name.partition("(")[0].removesuffix(".efg")
    path = args.out or Path(f"{short_name}.efg")
    require_writable(path)
    game.save(path)
    print(f"{path}: {path.stat().st_size:,} bytes, {game.size_label}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
