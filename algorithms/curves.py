"""Learning curves: NashConv over steps, in a table and as a picture.

`python -m algorithms.curves model.csv tutorial.csv --out training.png` draws what training runs wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import KUHN, load_game
from algorithms.learning.curve import draw, from_csv
from algorithms.support import command, files
from algorithms.support.errors import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = command.Parser(
        prog="python -m algorithms.curves", description=command.summary(__doc__)
    )
    parser.add_argument(
        "curves", nargs="+", type=Path, metavar="CSV", help="a training run's curve"
    )
    parser.add_argument("--game", help=f"whose curves (what the .json beside them says, or {KUHN})")
    parser.add_argument("--out", type=Path, default=Path("training.png"), metavar="PNG")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args.curves, args.game, args.out), parser.prog)


def _run(paths: Sequence[Path], game: str | None, out: Path) -> int:
    files.require_png(out)
    alike = len({path.stem for path in paths}) < len(paths)
    curves = {str(path) if alike else path.stem: from_csv(path) for path in paths}
    games = {game} if game else {_game_beside(path) for path in paths}
    if len(games) > 1:
        raise UsageError(f"curves of different games: {', '.join(sorted(games))}")
    draw(curves, out, load_game(games.pop()))
    print(f"wrote {out}")
    return command.HOLDS


def _game_beside(path: Path) -> str:
    """The game that the training run of a curve notes in its .json; Kuhn's runs need not."""
    try:
        game = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["config"]["game"]
    except (OSError, ValueError, KeyError, TypeError):
        return KUHN
    return str(game)


if __name__ == "__main__":
    sys.exit(main())
