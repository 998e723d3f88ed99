"""Draws speed.png and growth.png from what two commands measured, each given by its JSON file.

python -m parity.speed --json > speed.json
python -m parity.growth --json > growth.json
python docs/speed_charts.py speed.json growth.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
BAR_COLOR = "#2f6fb3"
BAR_HEIGHT = 0.62
MODE_COLORS = {"exact": "#8a8a8a", "fast": "#2f6fb3"}
TREE_COLOR = "#c0504d"


def draw_speed(ratios: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A bar per measured ratio on a log axis; 1 is the peer's own speed."""
    measured = [ratio for ratio in ratios if ratio["measured"]]
    measured.reverse()  # the first one is drawn at the top
    labels = [f"{ratio['contest']}  vs  {ratio['peer']}" for ratio in measured]
    widths = [ratio["ratio"] for ratio in measured]
    figure = Figure(figsize=(8, 0.42 * len(measured) + 1), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(labels, widths, color=BAR_COLOR, height=BAR_HEIGHT)
    axes.bar_label(bars, fmt="%.0fx", padding=3, fontsize=9)
    for row, ratio in enumerate(measured):
        if ratio["target"]:
            ends = [row - BAR_HEIGHT / 2, row + BAR_HEIGHT / 2]
            axes.plot([ratio["target"]] * 2, ends, color="#222222", lw=1.5)
    axes.set(xscale="log", xlim=(1, 2 * max(widths)))
    axes.set_xlabel("times the peer's speed\n(black: the target)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def draw_growth(measurements: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Time and memory over the number of nodes: a line for Liar's Dice, dots for other games."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    time_axes.set(title="CFR: ns per node and iteration", yscale="log")
    memory_axes.set(title="bytes per node")
    for mode, color in MODE_COLORS.items():
        nanoseconds = [one["nanoseconds"][mode] for one in measurements]
        _plot(time_axes, measurements, nanoseconds, label=f"{mode} mode", color=color)
        solver_bytes = [one["solver_bytes"][mode] for one in measurements]
        _plot(memory_axes, measurements, solver_bytes, label=f"solver, {mode} mode", color=color)
    tree_bytes = [one["tree_bytes"] for one in measurements]
    _plot(memory_axes, measurements, tree_bytes, label="tree", color=TREE_COLOR)
    memory_axes.set_ylim(0, None)
    for axes in (time_axes, memory_axes):
        axes.set(xscale="log", xlabel="nodes (line: Liar's Dice with 3 to 8 sides)")
        axes.margins(x=0.2)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def _plot(
    axes: Axes,
    measurements: Sequence[Mapping[str, Any]],
    heights: Sequence[float],
    *,
    label: str,
    color: str,
) -> None:
    """Games over their numbers of nodes, with names at the dots."""
    nodes = np.array([one["nodes"] for one in measurements])
    is_dice = np.array([one["game"].startswith("Liar's Dice") for one in measurements])
    y = np.array(heights)
    axes.plot(nodes[is_dice], y[is_dice], "o-", ms=4, color=color, label=label)
    axes.plot(nodes[~is_dice], y[~is_dice], "D", ms=4, color=color)
    for index in np.flatnonzero(~is_dice):
        name = measurements[index]["game"]
        spot = (nodes[index], y[index])
        axes.annotate(name, spot, (4, 4), textcoords="offset points", fontsize=6)


def main(speed: str, growth: str) -> None:
    """Draw both pictures."""
    draw_speed(json.loads(Path(speed).read_text(encoding="utf-8")), HERE / "speed.png")
    draw_growth(json.loads(Path(growth).read_text(encoding="utf-8")), HERE / "growth.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
