"""Draws equilibria.png, cfr.png and leduc.png: `python docs/pictures.py`.

The curves of training runs are stored in docs/curves; everything else is computed here.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import LARGEST_ALPHA, nash
from algorithms.self_play.curve import from_csv
from kuhn_bridge import INFORMATION_STATES, Action, Policy

HERE = Path(__file__).parent
BLUE = "#2f6fb3"
RED = "#b3512f"
GREEN = "#3d8b4f"
GREY = "#8a8a8a"
FREE_CHOICES = {  # the information states at which player_0's equilibria differ
    "2": ("bets the king", Action.BET, BLUE),
    "1pb": ("calls with the queen", Action.CHECK_OR_CALL, GREEN),
    "0": ("bets the jack (a bluff)", Action.BET, RED),
}


def draw_equilibria(path: Path) -> None:
    """player_0's equilibria, and NashConv with other frequencies of bets."""
    figure, (left, right) = _panels()
    alphas = [Fraction(k, 30) for k in range(11)]
    for name, (words, action, colour) in FREE_CHOICES.items():
        shares = [Policy("kuhn", nash(alpha))[name][action] for alpha in alphas]
        left.plot(list(map(float, alphas)), shares, color=colour, lw=2.4, label=words)
    left.legend(frameon=False, loc="upper left")
    left.set(xlabel="alpha", ylabel="how often", xlim=(0, 1 / 3), ylim=(0, 1.02))
    left.set_title("player_0's equilibria, one for each alpha")
    bluffs = np.linspace(0, 1, 101)
    for kings, colour in ((0.0, GREY), (0.5, GREEN), (1.0, BLUE)):
        costs = [_cost(bluff, kings) for bluff in bluffs]
        right.plot(bluffs, costs, color=colour, lw=2.4, label=f"bets the king {kings:.0%}")
    right.legend(frameon=False, loc="upper left")
    right.set(
        xlabel="how often player_0 bets the jack",
        ylabel="NashConv, chips per hand",
        xlim=(0, 1),
        ylim=(0, None),
    )
    right.set_title("one bluff for every three kings costs nothing")
    _save(figure, path)


def draw_cfr(path: Path, iterations: int = 10_000) -> None:
    """CFR's current policy circles around the equilibria, its average approaches them."""
    figure, (left, right) = _panels()
    solver = ExactSolver(kuhn_tree())
    current = []
    average = []
    points = np.unique(np.geomspace(1, iterations, 160).astype(int))
    for end in points:
        solver.run(int(end) - solver.iterations)
        current.append(solver.current_policy())
        average.append(solver.average_policy())
    for tables, colour, name in ((current, RED, "current"), (average, BLUE, "average")):
        costs = [nash_conv(solver.tree, table) for table in tables]
        left.loglog(points, costs, color=colour, lw=2, label=f"the {name} policy")
        style = "." if name == "current" else ".-"
        policies = [Policy("kuhn", table) for table in tables]
        right.plot(
            [policy["0"][Action.BET] for policy in policies],
            [policy["2"][Action.BET] for policy in policies],
            style,
            color=colour,
            ms=5,
        )
    left.set(xlabel="iterations", ylabel="NashConv, chips per hand")
    left.set_title("only the average approaches an equilibrium")
    left.legend(frameon=False)
    right.plot([0, 1 / 3], [0, 1], color=GREEN, lw=5, alpha=0.45, solid_capstyle="round")
    right.annotate("the equilibria", (0.05, 0.05), color=GREEN, va="center")
    right.set(
        xlabel="player_0 bets the jack",
        ylabel="player_0 bets the king",
        xlim=(-0.02, 1.02),
        ylim=(-0.03, 1.03),
    )
    right.set_title("player_0's bets in both policies")
    _save(figure, path)


def draw_leduc(path: Path) -> None:
    """NashConv on Leduc against seconds: a table, a network, and OpenSpiel's NFSP."""
    figure = Figure(figsize=(8, 4.2), dpi=130, layout="constrained")
    axes = figure.subplots()
    for name, colour in (("table", BLUE), ("mlp", GREEN)):
        curve = [point for point in from_csv(HERE / "curves" / f"leduc_{name}.csv") if point.steps]
        seconds = [point.seconds for point in curve]
        average = [point.average for point in curve]
        axes.loglog(seconds, average, color=colour, lw=2, label=f"--net {name}: average policy")
    nfsp = np.loadtxt(HERE / "curves" / "leduc_nfsp.csv", delimiter=",", skiprows=1)
    axes.loglog(nfsp[:, 1], nfsp[:, 2], color=RED, lw=2, label="OpenSpiel's NFSP (PyTorch)")
    uniform = Policy.uniform("leduc_poker").nash_conv()
    axes.axhline(uniform, color=GREY, lw=1, ls=":")
    axes.set(xlabel="seconds, one core", ylabel="NashConv, chips per hand")
    axes.set_title(f"Leduc poker; uniform play has {uniform:.2f}", fontsize=11)
    axes.legend(frameon=False, loc="lower left")
    _bare(axes)
    figure.savefig(path)


def _cost(bluffs: float, kings: float) -> float:
    """NashConv of equilibrium play with player_0's bets of jack and king replaced."""
    table = nash(min(Fraction(kings) / 3, LARGEST_ALPHA))
    table[INFORMATION_STATES.index("0"), :2] = 1 - bluffs, bluffs
    table[INFORMATION_STATES.index("2"), :2] = 1 - kings, kings
    return nash_conv(kuhn_tree(), table)


def _panels() -> tuple[Figure, tuple[Axes, Axes]]:
    figure = Figure(figsize=(10, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    return figure, (left, right)


def _bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    for axes in figure.axes:
        _bare(axes)
        axes.title.set_fontsize(11)
    figure.savefig(path)


if __name__ == "__main__":
    draw_equilibria(HERE / "equilibria.png")
    draw_cfr(HERE / "cfr.png")
    draw_leduc(HERE / "leduc.png")
