"""Draw benchmark.png from the table in benchmark.md."""

from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure

from parity.benchmark import HEADER, cells_of

DOCS = Path(__file__).parent


def main() -> None:
    """NashConv over CPU seconds: a curve per algorithm and game, squares for trained models."""
    curves = defaultdict(list)
    for row in (DOCS / "benchmark.md").read_text(encoding="utf-8").splitlines():
        cells = dict(zip(HEADER, cells_of(row), strict=False))
        algorithm, _, budget = cells["what"].partition(", ")
        if len(cells) == len(HEADER) and budget:
            point = float(cells["CPU s"]), float(cells["NashConv"].split()[0])
            curves[f"{algorithm}, {cells['game']}"].append(point)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for label, curve in curves.items():
        marker = "s" if label.startswith(("train_ppo", "distil")) else "o"
        axes.plot(*zip(*curve, strict=True), marker=marker, label=label)
    axes.set(xlabel="CPU seconds", ylabel="NashConv (chips per hand)")
    axes.grid(which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(DOCS / "benchmark.png", dpi=150)


if __name__ == "__main__":
    main()
