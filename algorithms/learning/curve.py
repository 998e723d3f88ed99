"""Learning curves: NashConv over steps, in a table and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from algorithms.exact.cfr import Solver
from algorithms.exact.values import nash_conv
from algorithms.games import Game
from algorithms.support import files
from algorithms.support.errors import UsageError

COLUMNS = ("steps", "seconds", "nash_conv", "nash_conv_average")
CFR_ITERATIONS = (100, 1000)
MOST_VISITS = 100_000_000  # of nodes, that CFR may make for the sake of a picture


class Point(NamedTuple):
    """NashConv of the last policy and of the average policy after `steps` decisions."""

    steps: int
    seconds: float
    last: float
    average: float


Curve: TypeAlias = Sequence[Point]
MAX_BYTES = 2**24  # of a file: a curve takes one thousandth of it


def to_csv(curve: Curve) -> str:
    """One line per point, under a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((p.steps, f"{p.seconds:.2f}", repr(p.last), repr(p.average)) for p in curve)
    return text.getvalue()


def from_csv(path: Path) -> list[Point]:
    """What `to_csv` wrote."""
    try:
        text = files.read_bytes(path, max_bytes=MAX_BYTES).decode()
        header, *rows = csv.reader(text.splitlines())
        points = [Point(int(s), float(t), float(last), float(mean)) for s, t, last, mean in rows]
        _ = [float(point.steps) for point in points]  # a picture has no other numbers
    except (ValueError, OverflowError, csv.Error):
        header, points = [], []
    if tuple(header) != COLUMNS or not points:
        raise UsageError(f"{path}: not a learning curve; its columns are {','.join(COLUMNS)}")
    return points


def draw(curves: Mapping[str, Curve], path: str | Path, game: Game) -> None:
    """A picture of curves by name, beside the uniform policy and CFR of their game."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, curve) in enumerate(curves.items()):
        points = [point for point in curve if point.steps or len(curves) == 1]  # no log of 0
        steps = [point.steps for point in points]
        color, average = f"C{number}", [point.average for point in points]
        axes.plot(steps, average, color=color, linewidth=2.2, label=f"{name}: average policy")
        last = [point.last for point in points]
        axes.plot(steps, last, color=color, linewidth=0.9, alpha=0.6, label=f"{name}: last policy")
    for name, level in _levels(game).items():
        axes.axhline(level, color="0.45", linewidth=0.9, linestyle=(0, (4, 3)))
        where = (1.01, level)
        axes.annotate(name, where, xycoords=("axes fraction", "data"), va="center", color="0.35")
    axes.set(xscale="log" if len(curves) > 1 else "linear", yscale="log")
    axes.set(xlabel="steps (decisions to learn from)", ylabel="NashConv (chips per hand)")
    axes.set_title("How far from equilibrium: what best responses still gain")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", framealpha=0.9, edgecolor="none")
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _levels(game: Game) -> dict[str, float]:
    """NashConv of what everybody knows."""
    tree = game.tree
    uniform = nash_conv(tree, tree.uniform())
    known = game.closed_form.uniform_nash_conv if game.closed_form else f"{uniform:.3f}"
    levels = {f"uniform\n{known}": uniform}
    solver, done = Solver(tree), 0
    for iterations in CFR_ITERATIONS:
        if iterations * tree.num_nodes > MOST_VISITS:
            break
        solver.run(iterations - done)
        done = iterations
        levels[f"CFR\n{iterations:,} iterations"] = nash_conv(tree, solver.average_policy())
    return {name: level for name, level in levels.items() if level > 0}  # no log of 0
