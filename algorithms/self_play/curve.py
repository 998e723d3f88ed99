"""Learning curves: NashConv over steps, recorded, stored in files and drawn as pictures."""

import csv
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.games import Game
from algorithms.support import files
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from kuhn_bridge import notebook

COLUMNS = ("steps", "seconds", "nash_conv", "nash_conv_average")  # columns of a curve's file
BOUND = "nash_conv_at_least"  # instead of nash_conv where a curve has lower bounds
MAX_BYTES = 2**24  # of a file; a curve takes a thousandth of that
MAX_LINES = 10  # in a picture, which has ten distinct colours


class Point(NamedTuple):
    """NashConv of the last policy and of the average after `steps` decisions; NaN: not measured."""

    steps: int
    seconds: float  # of training, without measuring
    last: float
    average: float


Curve: TypeAlias = Sequence[Point]


class LearningCurve(list[Point]):
    """The points of a learning curve, which a notebook shows as a picture."""

    def _repr_html_(self) -> str:
        """NashConv over steps, of the last policy and of the average."""
        series = {
            "last policy": [(point.steps, point.last) for point in self],
            "average policy": [(point.steps, point.average) for point in self],
        }
        picture = notebook.line_chart(series, x_label="decisions", y_label="NashConv")
        return notebook.box("NashConv, chips per hand", picture)


class Recorder:
    """Records a learning curve, and the time of this process spent on training and on measuring.

    `watch` is called with each point, and in between with the latest figures. `measure` names them.
    """

    def __init__(
        self, watch: Callable[[Point], None] | None = None, *, measure: str = COLUMNS[2]
    ) -> None:
        self.measure = measure
        self.watch = watch
        self.clear()
        self.start()

    def clear(self) -> None:
        """Begin a new curve."""
        self.points: list[Point] = []
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.measuring_cpu_seconds = 0.0
        self.latest_measurement = 0.0  # seconds that it took
        self._first_point = 0

    def start(self, *, first_point: int = 0) -> None:
        """Start the clocks of a run whose first point has this number."""
        self._first_point = first_point
        self._since = _now()

    def is_due(self, steps: int, progress: float, points: int) -> bool:
        """Whether the next of `points` is due: more often at the start, where a curve is steep."""
        fresh = not self.points or self.points[-1].steps < steps
        recorded = len(self.points) - self._first_point
        return fresh and progress * points**2 >= recorded**2

    def add(self, steps: int, measures: Callable[[], tuple[float, float]]) -> None:
        """Measure the last policy and the average, unless there is a point for these steps."""
        if self.points and self.points[-1].steps >= steps:
            return
        self._count_training()
        point = Point(steps, self.seconds, *measures())
        before = self._since
        self._since = _now()
        self.latest_measurement = self._since.time - before.time
        self.measuring_cpu_seconds += self._since.cpu_time - before.cpu_time
        self.points.append(point)
        if self.watch is not None:
            self.watch(point)

    def show(self, steps: int) -> None:
        """Report progress between points, with the latest figures."""
        if self.points and self.watch is not None:
            self._count_training()
            self.watch(self.points[-1]._replace(steps=steps, seconds=self.seconds))

    def get_state(self) -> dict[str, Any]:
        """The curve and the clocks."""
        self._count_training()
        clocks = self.seconds, self.cpu_seconds, self.measuring_cpu_seconds
        return {"points": [tuple(point) for point in self.points], "clocks": clocks}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.points = [Point(*point) for point in state["points"]]
        self.seconds, self.cpu_seconds, self.measuring_cpu_seconds = state["clocks"]

    def _count_training(self) -> None:
        """Count the time since the clocks were last read as training."""
        before = self._since
        self._since = _now()
        self.seconds += self._since.time - before.time
        self.cpu_seconds += self._since.cpu_time - before.cpu_time


class Clocks(NamedTuple):
    """The time and this process's CPU time, in seconds."""

    time: float
    cpu_time: float


def _now() -> Clocks:
    return Clocks(time.perf_counter(), time.process_time())


def to_csv(curve: Curve, measure: str = COLUMNS[2]) -> str:
    """One line per point, under a header; steps and seconds only if nothing was measured."""
    width = 2 if any(math.isnan(point.last) for point in curve) else 4
    header = (*COLUMNS[:2], measure, f"{measure}_average")
    rows = [(str(p.steps), f"{p.seconds:.2f}", repr(p.last), repr(p.average)) for p in curve]
    return "".join(",".join(row[:width]) + "\n" for row in (header, *rows))


def from_csv(path: Path) -> list[Point]:
    """The curve that `to_csv` wrote; one without NashConv is refused."""
    try:
        text = files.read_bytes(path, max_bytes=MAX_BYTES).decode()
        header, *rows = csv.reader(text.splitlines())
        points = [Point(int(s), float(t), float(last), float(mean)) for s, t, last, mean in rows]
        _ = [float(point.steps) for point in points]  # raises if one is too large to draw
    except (ValueError, OverflowError, csv.Error):
        header = []
        points = []
    if tuple(header) != COLUMNS or not points:
        raise UsageError(f"{path}: not a learning curve; its columns are {','.join(COLUMNS)}")
    return points


def draw(curves: Mapping[str, Curve], path: str | Path, game: Game) -> None:
    """Draw curves by name, beside uniform play in their game."""
    with _picture(path) as axes:
        for number, (name, curve) in enumerate(curves.items()):
            points = list(curve)
            if len(curves) > 1:  # the axis is logarithmic
                points = [point for point in curve if point.steps]
            steps = [point.steps for point in points]
            color = f"C{number}"
            average = [point.average for point in points]
            axes.plot(steps, average, color=color, linewidth=2.2, label=f"{name}: average policy")
            last = [point.last for point in points]
            axes.plot(
                steps, last, color=color, linewidth=0.9, alpha=0.6, label=f"{name}: last policy"
            )
        uniform = game.measure(game.uniform()).nash_conv
        if uniform > 0:  # the axis is logarithmic
            _draw_level(axes, _uniform_label(game, uniform), uniform)
        axes.set(
            xscale="log" if len(curves) > 1 else "linear",
            ylabel="NashConv (chips per hand)",
        )
        axes.set_title("How far from equilibrium: what best responses still gain")
        axes.legend(loc="lower left", framealpha=0.9, edgecolor="none")


def _uniform_label(game: Game, nash_conv: float) -> str:
    """Uniform play and its NashConv, as a fraction where that is known."""
    known = game.closed_form
    number = str(known.uniform_nash_conv) if known else f"{nash_conv:.3f}"
    return f"uniform\n{number}"


def _draw_level(axes: Any, name: str, level: float) -> None:
    """Draw a dashed line, with its name to the right of the picture."""
    axes.axhline(level, color="0.45", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        name, (1.01, level), xycoords=("axes fraction", "data"), va="center", color="0.35"
    )


@contextmanager
def _picture(path: str | Path) -> Iterator[Any]:
    """The axes of a picture over steps with a logarithmic scale, written at the end."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set(yscale="log", xlabel="steps (decisions to learn from)")
    yield axes
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


class Interval(NamedTuple):
    """The 95% interval of a statistic over seeds, of floats or arrays."""

    low: Any
    high: Any


def iqm(values: npt.ArrayLike, axis: int = 0) -> Any:
    """The interquartile mean: the mean without the highest and the lowest quarter."""
    from scipy.stats import trim_mean

    return trim_mean(values, 0.25, axis)


def interval(
    values: npt.ArrayLike, statistic: Callable[..., Any] = iqm, *, resamples: int = 9999
) -> Interval:
    """The percentile bootstrap interval of a statistic of `values` `(seeds,)` or `(seeds, steps)`.

    One seed has no spread: its interval is the value itself.
    """
    from scipy.stats import bootstrap

    data = np.asarray(values, float)
    if len(data) == 1:
        return Interval(data[0], data[0])
    result = bootstrap(
        (data,),
        statistic,
        n_resamples=resamples,
        method="percentile",
        rng=np.random.default_rng(0),  # so that it is repeatable
    )
    return Interval(*result.confidence_interval)


def band(curves: Sequence[Curve]) -> tuple[Float64Array, Float64Array, Interval]:
    """Steps, and the interquartile mean of several curves' better policies, with its interval."""
    steps = np.unique([point.steps for curve in curves for point in curve]).astype(float)
    shortest = min(curve[-1].steps for curve in curves)
    steps = steps[steps <= shortest]
    interpolated = []
    for curve in curves:
        steps_of_curve = [point.steps for point in curve]
        better = [min(point.last, point.average) for point in curve]
        interpolated.append(np.interp(steps, steps_of_curve, better))
    values = np.stack(interpolated)  # (curves, steps)
    return steps, iqm(values), interval(values, resamples=999)


def draw_bands(groups: Mapping[str, Sequence[Curve]], path: str | Path) -> None:
    """Draw one line and one band for each group of curves."""
    from matplotlib.ticker import NullFormatter

    with _picture(path) as axes:
        for number, (name, curves) in enumerate(list(groups.items())[:MAX_LINES]):
            steps, middle, around = band(curves)
            seeds = "1 seed" if len(curves) == 1 else f"{len(curves)} seeds"
            label = f"{name}, {seeds}"
            axes.plot(steps, middle, color=f"C{number}", linewidth=2, label=label)
            axes.fill_between(steps, *around, color=f"C{number}", alpha=0.2, linewidth=0)
        axes.set(ylabel="NashConv of the better policy, last or average")
        axes.yaxis.set_major_formatter("{x:g}")
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:g}" if high < 30 * low else NullFormatter())
        shown = f", the first {MAX_LINES} of {len(groups)}" if len(groups) > MAX_LINES else ""
        axes.set_title(f"Interquartile mean over seeds, with its 95% interval{shown}")
        axes.legend(loc="upper right", framealpha=0.9, edgecolor="none")
