"""Draw learning curves: NashConv over steps.

`python -m algorithms.curves model.csv naive.csv --out training.png` draws two training runs. All
training runs in a folder, e.g. those of one setting of a sweep, are drawn as one line with a band.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import KUHN, load_game
from algorithms.self_play.curve import draw, draw_bands, from_csv
from algorithms.support import command, files
from algorithms.support.errors import UsageError

CURVE_FILE = "model.csv"  # of a training run, in the folders of a sweep


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = the picture is written."""
    parser = command.Parser(prog="python -m algorithms.curves", description=__doc__)
    parser.add_argument(
        "curves",
        nargs="+",
        type=Path,
        metavar="CSV",
        help="the curve of a training run, or a folder of several, drawn as one line with a band",
    )
    parser.add_argument(
        "--band", action="store_true", help="draw all curves as one line with a band"
    )
    parser.add_argument(
        "--game", help=f"the game of the curves (default: as in the .json beside them, or {KUHN})"
    )
    parser.add_import()
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("training.png"),
        metavar="PNG",
        help="the picture (%(default)s)",
    )
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    files.require_png(args.out)
    paths_by_name = _grouped(args.curves)
    paths = [path for group in paths_by_name.values() for path in group]
    games = {args.game} if args.game else {_game_beside(path) for path in paths}
    if len(games) > 1:
        raise UsageError(f"curves of different games: {', '.join(sorted(games))}")
    if args.band:
        paths_by_name = {args.out.stem: paths}
    curves = {name: [from_csv(path) for path in group] for name, group in paths_by_name.items()}
    if args.band or any(path.is_dir() for path in args.curves):
        draw_bands(curves, args.out)
    else:
        game = load_game(games.pop())
        draw({name: group[0] for name, group in curves.items()}, args.out, game)
    print(f"wrote {args.out}")
    return command.EXIT_OK


def _grouped(given: Sequence[Path]) -> dict[str, list[Path]]:
    """The curves of each file or folder, by a name that is as short as it can be."""
    names = [path.name if path.is_dir() else path.stem for path in given]
    if len(set(names)) < len(names):
        names = [str(path) for path in given]
    return {name: _curve_files(path) for name, path in zip(names, given, strict=True)}


def _curve_files(path: Path) -> list[Path]:
    """The file itself, or all curves in a folder except in hidden folders (incomplete copies)."""
    if not path.is_dir():
        return [path]
    curves = []
    for inside in sorted(path.rglob(CURVE_FILE)):
        folders = inside.relative_to(path).parts
        if not any(folder.startswith(".") for folder in folders):
            curves.append(inside)
    if not curves:
        raise UsageError(f"{path}: it contains no learning curve (no {CURVE_FILE})")
    return curves


def _game_beside(path: Path) -> str:
    """The game in the .json of a curve's training run, or Kuhn."""
    try:
        noted = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return str(noted["config"]["game"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return KUHN


if __name__ == "__main__":
    sys.exit(main())
