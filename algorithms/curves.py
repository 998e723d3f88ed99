"""Learning curves: NashConv over steps, in a table and as a picture.

`python -m algorithms.curves model.csv tutorial.csv --out training.png` draws what trainings wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.learning.curve import draw, from_csv
from algorithms.support import command, files


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = command.Parser(
        prog="python -m algorithms.curves", description=command.summary(__doc__)
    )
    parser.add_argument("curves", nargs="+", type=Path, metavar="CSV", help="a training's curve")
    parser.add_argument("--out", type=Path, default=Path("training.png"), metavar="PNG")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args.curves, args.out), parser.prog)


def _run(paths: Sequence[Path], out: Path) -> int:
    files.require_png(out)
    alike = len({path.stem for path in paths}) < len(paths)
    draw({str(path) if alike else path.stem: from_csv(path) for path in paths}, out)
    print(f"wrote {out}")
    return command.HOLDS


if __name__ == "__main__":
    sys.exit(main())
