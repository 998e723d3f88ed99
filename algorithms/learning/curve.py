"""Learning curves: a measure over steps, recorded, in a file and as a picture."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from algorithms.exact.cfr import Solver
from algorithms.exact.tree import Tree
from algorithms.exact.values import nash_conv
from algorithms.games import Game
from algorithms.support import files
from algorithms.support.errors import UsageError

NASH_CONV = "nash_conv"  # the name of the column of an exact measure
NASH_CONV_AT_LEAST = "nash_conv_at_least"  # of a lower bound
CFR_ITERATIONS = (100, 1000)
MAX_VISITS = 100_000_000  # of nodes, that CFR may make for the sake of a picture
MAX_BYTES = 2**24  # of a file: a curve takes one thousandth of it


class Point(NamedTuple):
    """A measure of the last policy and of the average after `steps` decisions; NaN: none."""

    steps: int
    seconds: float  # of training alone
    last: float
    average: float


Curve: TypeAlias = Sequence[Point]


class Recorder:
    """A learning curve in the making, and its clocks.

    Attributes:
        points: the curve so far.
        measure: what `last` and `average` are, as columns name it.
        seconds: of training so far, without measuring.
        cpu_seconds: the same of this process's CPU time.
        measuring_cpu_seconds: CPU time that measuring took.
    """

    def __init__(
        self, watch: Callable[[Point], None] | None = None, *, measure: str = NASH_CONV
    ) -> None:
        self.points, self.measure = list[Point](), measure
        self._watch = watch or (lambda point: None)
        self.seconds, self.cpu_seconds, self.measuring_cpu_seconds = 0.0, 0.0, 0.0
        self._since = _now()

    def start(self) -> None:
        """Start the clocks."""
        self._since = _now()

    def is_due(self, steps: int, progress: float, points: int) -> bool:
        """Whether the next of `points` is due: more often at the start, where a curve is steep."""
        fresh = not self.points or self.points[-1].steps < steps
        return fresh and progress * points**2 >= len(self.points) ** 2

    def add(self, steps: int, measures: Callable[[], tuple[float, float]]) -> None:
        """Measure the last policy and the average, unless there is a point after so many steps."""
        if self.points and self.points[-1].steps >= steps:
            return
        self._count_training()
        point = Point(steps, self.seconds, *measures())
        self.measuring_cpu_seconds += time.process_time() - self._since[1]
        self._since = _now()
        self.points.append(point)
        self._watch(point)

    def show(self, steps: int) -> None:
        """Report progress between points, with the latest figures."""
        if self.points:
            self._count_training()
            self._watch(self.points[-1]._replace(steps=steps, seconds=self.seconds))

    def log(self, logger: Any) -> None:
        """Write the last point to SB3's logger."""
        logger.record(f"game/{self.measure}", self.points[-1].last)
        logger.record(f"game/{self.measure}_average", self.points[-1].average)

    def get_state(self) -> dict[str, Any]:
        """The curve and the clocks."""
        self._count_training()
        return {
            "points": [tuple(point) for point in self.points],
            "clocks": (self.seconds, self.cpu_seconds, self.measuring_cpu_seconds),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self.points = [Point(*point) for point in state["points"]]
        self.seconds, self.cpu_seconds, self.measuring_cpu_seconds = state["clocks"]

    def _count_training(self) -> None:
        """Count the time since the clocks were last read as training."""
        before, self._since = self._since, _now()
        self.seconds += self._since[0] - before[0]
        self.cpu_seconds += self._since[1] - before[1]


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def columns(measure: str | None = NASH_CONV) -> tuple[str, ...]:
    """The columns of a curve's file: steps, seconds, and what was measured."""
    return ("steps", "seconds", *((measure, f"{measure}_average") if measure else ()))


def to_csv(curve: Curve, measure: str = NASH_CONV) -> str:
    """One line per point, under a header that names the measure; without it if there was none."""
    measured = not any(math.isnan(point.last) for point in curve)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns(measure if measured else None))
    for point in curve:
        figures = (repr(point.last), repr(point.average)) if measured else ()
        writer.writerow((point.steps, f"{point.seconds:.2f}", *figures))
    return text.getvalue()


def from_csv(path: Path, measure: str = NASH_CONV) -> list[Point]:
    """What `to_csv` wrote; a curve of another measure is refused."""
    try:
        text = files.read_bytes(path, max_bytes=MAX_BYTES).decode()
        header, *rows = csv.reader(text.splitlines())
        points = [Point(int(s), float(t), float(last), float(mean)) for s, t, last, mean in rows]
        _ = [float(point.steps) for point in points]  # a picture has no other numbers
    except (ValueError, OverflowError, csv.Error):
        header, points = [], []
    if tuple(header) != columns(measure) or not points:
        wanted = ",".join(columns(measure))
        raise UsageError(f"{path}: not a learning curve of this measure; its columns are {wanted}")
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
    uniform = game.measure(game.uniform_table()).nash_conv
    known = game.closed_form.uniform_nash_conv if game.closed_form else f"{uniform:.3f}"
    levels = {f"uniform\n{known}": uniform}
    if game.fits_tree:
        levels |= _cfr_levels(game.tree)
    return {name: level for name, level in levels.items() if level > 0}  # no log of 0


def _cfr_levels(tree: Tree) -> dict[str, float]:
    """NashConv that CFR reaches, as long as that does not take long."""
    solver, levels, done = Solver(tree), dict[str, float](), 0
    for iterations in CFR_ITERATIONS:
        if iterations * tree.num_nodes > MAX_VISITS:
            break
        solver.run(iterations - done)
        done = iterations
        levels[f"CFR\n{iterations:,} iterations"] = nash_conv(tree, solver.average_policy())
    return levels
