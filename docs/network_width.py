"""Draws network-width.png of docs/solving.md: `python docs/network_width.py`, 150 CPU seconds.

How much of a solver's policy does a network of a given size keep? DCFR's policy is put into
networks with two hidden layers of 4 to 256 units, and NashConv is drawn over their width.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

import kuhn_bridge as kb
from algorithms.policies.distilled_policy import distil

HERE = Path(__file__).parent
BLUE = "#2f6fb3"
RED = "#b3512f"
WIDTHS = (4, 8, 16, 32, 64, 128, 256)
ITERATIONS = 3_000
# Name, label, colour, the optimizer's steps, and NashConv of self-play
# (networks of 2 x 128 units, 120 and 10 million decisions, commit 770d8c5).
GAMES = (
    ("leduc_poker", "Leduc", BLUE, 7_649, 0.081),
    ("liars_dice(numdice=1,dice_sides=6)", "Liar's Dice 6", RED, 12_000, 0.071),
)


def main() -> None:
    """Fit, print a table in Markdown, and draw."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    print("| game | solver |", *(f"2 x {width} |" for width in WIDTHS))
    print("|---|---|" + "---|" * len(WIDTHS))
    for name, label, colour, steps, self_play in GAMES:
        policy = kb.solve(name, "dcfr", iterations=ITERATIONS)
        points = policy.game.curve_points
        networks = [distil(policy, width=width, steps=steps, points=points) for width in WIDTHS]
        lost = [network.nash_conv_after for network in networks]
        print(f"| {label} | {policy.nash_conv():.1e} |", *(f"{value:.1e} |" for value in lost))
        axes.plot(WIDTHS, lost, marker="o", color=colour, label=f"{label}, a network of DCFR")
        axes.axhline(self_play, color=colour, linestyle="--", label=f"{label}, self-play's best")
    axes.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
    axes.minorticks_off()
    axes.set(xlabel="units of each of two hidden layers", ylabel="NashConv, chips per hand")
    axes.grid(which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(HERE / "network-width.png", dpi=150)


if __name__ == "__main__":
    main()
