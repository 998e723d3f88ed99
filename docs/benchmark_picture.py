"""Draw benchmark.png from the table in benchmark.md."""

from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure

from parity.benchmark import HEADER, cells_of

DOCS = Path(__file__).parent


def main() -> None:
    """NashConv over CPU seconds: a line per solver and game, a point per trained model."""
    lines, points = defaultdict(list), []
    for row in (DOCS / "benchmark.md").read_text(encoding="utf-8").splitlines():
        cells = dict(zip(HEADER, cells_of(row), strict=False))
        what = cells["what"]
        if len(cells) < len(HEADER) or not ("iterations" in what or "train_ppo" in what):
            continue
        point = float(cells["CPU s"]), float(cells["NashConv"].split()[0])
        if "train_ppo" in what:
            points.append((f"train_ppo, {cells['game']}", point))
        else:
            lines[f"{what.partition(',')[0]}, {cells['game']}"].append(point)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for label, curve in lines.items():
        axes.plot(*zip(*curve, strict=True), marker="o", label=label)
    for label, point in points:
        axes.plot(*point, marker="s", linestyle="none", color="black", label=label)
    axes.set(xlabel="CPU seconds", ylabel="NashConv (chips per hand)")
    axes.grid(which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(DOCS / "benchmark.png", dpi=150)


if __name__ == "__main__":
    main()
