"""Draw learning curves: NashConv over steps.

`python -m algorithms.curves model.csv usual.csv --out training.png` draws two training runs. All
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


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = command.Parser(prog="python -m algorithms.curves", description=__doc__)
    add = parser.add_argument
    curves = "the curve of a training run, or a folder of several, drawn as one line with a band"
    add("curves", nargs="+", type=Path, metavar="CSV", help=curves)
    add("--band", action="store_true", help="draw all curves as one line with a band")
    add("--game", help=f"the game of the curves (default: as in the .json beside them, or {KUHN})")
    out = Path("training.png")
    add("--out", type=Path, default=out, metavar="PNG", help="the picture (%(default)s)")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    paths, out = args.curves, args.out
    files.require_png(out)
    names = [path.name if path.is_dir() else path.stem for path in paths]
    if len({*names}) < len(names):
        names = [str(path) for path in paths]
    groups = {name: _files(path) for name, path in zip(names, paths, strict=True)}
    found = [path for group in groups.values() for path in group]
    games = {args.game} if args.game else {_game_beside(path) for path in found}
    if len(games) > 1:
        raise UsageError(f"curves of different games: {', '.join(sorted(games))}")
    groups = {out.stem: found} if args.band else groups
    curves = {name: [from_csv(path) for path in group] for name, group in groups.items()}
    if args.band or any(path.is_dir() for path in paths):
        draw_bands(curves, out)
    else:
        draw({name: curve for name, (curve,) in curves.items()}, out, load_game(games.pop()))
    print(f"wrote {out}")
    return command.EXIT_OK


def _files(path: Path) -> list[Path]:
    """The file itself, or all curves in a folder except in hidden folders (incomplete copies)."""
    if not path.is_dir():
        return [path]
    inside = sorted(p.relative_to(path) for p in path.rglob("model.csv"))
    found = [path / p for p in inside if not any(part.startswith(".") for part in p.parts)]
    if not found:
        raise UsageError(f"{path}: it contains no learning curve (no model.csv)")
    return found


def _game_beside(path: Path) -> str:
    """The game in the .json of a curve's training run, or Kuhn."""
    try:
        game = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["config"]["game"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return KUHN
    return str(game)


if __name__ == "__main__":
    sys.exit(main())
