"""Several learning curves as one line and a band: their interquartile mean and its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.learning.curve import Curve
from algorithms.support import files
from algorithms.support.arrays import Float64Array

MOST_LINES = 10  # that a picture keeps apart
LEVEL = 0.95


class Interval(NamedTuple):
    """The 95% interval of a statistic over seeds."""

    low: Any  # a float, or an array
    high: Any


class Band(NamedTuple):
    """The interquartile mean of curves `(steps,)`, and its interval."""

    steps: Float64Array
    middle: Float64Array
    interval: Interval
    curves: int


def iqm(values: npt.ArrayLike, axis: int = 0) -> Any:
    """The interquartile mean: without the highest and the lowest quarter."""
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
    found = bootstrap(
        (data,),
        statistic,
        n_resamples=resamples,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),  # the same report every time
    )
    return Interval(*found.confidence_interval)


def band(curves: Sequence[Curve]) -> Band:
    """Of each curve the better policy, last or average, as `--save best` would keep it there."""
    steps = np.unique([point.steps for curve in curves for point in curve]).astype(float)
    steps = steps[steps <= min(curve[-1].steps for curve in curves)]
    values = np.stack([_at(steps, curve) for curve in curves])
    return Band(steps, iqm(values), interval(values, resamples=999), len(curves))


def draw_bands(groups: Mapping[str, Sequence[Curve]], path: str | Path) -> None:
    """A picture with one line and one band for each group of curves."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, NullFormatter

    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, curves) in enumerate(list(groups.items())[:MOST_LINES]):
        steps, middle, around, count = band(curves)
        label = f"{name}, {count} seed{'s' * (count > 1)}"
        axes.plot(steps, middle, color=f"C{number}", linewidth=2, label=label)
        axes.fill_between(steps, *around, color=f"C{number}", alpha=0.2, linewidth=0)
    axes.set(yscale="log", xlabel="steps (decisions to learn from)")
    axes.set(ylabel="NashConv of the better policy, last or average")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.yaxis.set_minor_formatter("{x:g}" if high < 30 * low else NullFormatter())
    shown = f", the first {MOST_LINES} of {len(groups)}" if len(groups) > MOST_LINES else ""
    axes.set_title(f"Interquartile mean over seeds, with its 95% interval{shown}")
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper right", framealpha=0.9, edgecolor="none")
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _at(steps: Float64Array, curve: Curve) -> Float64Array:
    """The curve `(steps,)`, straight between its points."""
    values = [min(point.last, point.average) for point in curve]
    return np.interp(steps, [point.steps for point in curve], values)
