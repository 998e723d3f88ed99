"""Draws docs/game_tree.png from the betting table: `python docs/game_tree.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from kuhn_bridge.rules import AGENTS, BETTING, Betting

COLOURS = ("#2f6fb3", "#b3512f")
PLACES = {
    "": (5.0, 3.6),
    "p": (3.0, 2.4),
    "b": (7.6, 2.4),
    "pp": (1.2, 1.2),
    "pb": (4.4, 1.2),
    "bp": (6.6, 1.2),
    "bb": (8.7, 1.2),
    "pbp": (3.4, 0.0),
    "pbb": (5.4, 0.0),
}


def ending(row: Betting) -> str:
    """The payoff at a terminal history, in two lines."""
    if row.winner is None:
        return f"showdown\nfor {row.stake}"
    return f"{AGENTS[row.winner]}\nwins {row.stake}"


def draw(path: Path) -> None:
    """The nine public histories, with the player to act, the phase, and the payoff."""
    figure, axes = plt.subplots(figsize=(9, 4.6), dpi=140)
    for row in BETTING.values():
        x, y = PLACES[row.letters]
        for letters in row.after.values():
            child = BETTING[letters]
            cx, cy = PLACES[letters]
            axes.plot([x, cx], [y, cy], color="#9a9a9a", lw=1.4, zorder=1)
            axes.text(
                (x + cx) / 2,
                (y + cy) / 2,
                child.words[-1],
                ha="center",
                va="center",
                fontsize=10,
                style="italic",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        text = ending(row) if row.actor is None else f"{AGENTS[row.actor]}\n{row.phase.label}"
        face = "#f3f3f0" if row.actor is None else COLOURS[row.actor]
        axes.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize=9.5,
            color="#222222" if row.actor is None else "white",
            bbox={"boxstyle": "round,pad=0.45", "facecolor": face, "edgecolor": "#777777"},
            zorder=2,
        )
    axes.text(
        0.15,
        3.6,
        "6 deals x 9 histories\n+ 4 chance nodes = 58 nodes",
        fontsize=9.5,
        color="#444444",
        va="center",
    )
    axes.set_xlim(0, 10)
    axes.set_ylim(-0.5, 4.1)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
