"""`python -m parity.growth`: time and memory per node, from Kuhn to millions of nodes."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.games import load_game
from algorithms.solvers import MODES, make_solver
from algorithms.support.command import EXIT_OK, Parser, number, table
from algorithms.support.files import replacing, require_png
from algorithms.support.progress import progress
from kuhn_bridge.errors import GameError

SECONDS = 0.5  # per sample
SAMPLES = 3  # the fastest one counts, because other programs may slow down the machine
GAMES = {
    "Kuhn": "kuhn_poker",
    "Kuhn, 3 players": "kuhn_poker(players=3)",
    "Leduc": "leduc_poker",
    "Tiny Bridge": "tiny_bridge_2p",
    "Tic-tac-toe": "tic_tac_toe",
    "Sheriff, 7 rounds": "sheriff(max_bribe=3,max_items=2,num_rounds=7)",
    **{f"Liar's Dice {n}": f"liars_dice(numdice=1,dice_sides={n})" for n in range(3, 9)},
}
HEADER = ("game", "nodes", "built/s", "exact, ns", "fast, ns", "tree, B", "exact, B", "fast, B")
COLORS = {"exact": "#8a8a8a", "fast": "#2f6fb3", "tree": "#c0504d"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.growth", description=__doc__)
    add, most = parser.add_argument, "the largest game (%(default)s)"
    add("--most", type=number(1), default=20_000_000, metavar="NODES", help=most)
    add("--chart", type=Path, metavar="PNG", help="draw a chart")
    add("--json", action="store_true", help="print one JSON list")
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.chart:
        require_png(arguments.chart)
    points = []
    with progress("measuring", len(GAMES)) as show:
        for done, (name, game) in enumerate(GAMES.items()):
            show(done, name)
            try:
                points.append(measure(name, game, arguments.most))
            except GameError as error:
                if "too large" not in str(error):
                    raise
    points.sort(key=itemgetter("nodes"))
    if arguments.chart:
        draw(points, arguments.chart)
    if arguments.json:
        print(json.dumps(points, indent=2))
    else:
        print(table(HEADER, map(_row, points)))
    return EXIT_OK


def measure(name: str, game: str, most: int) -> dict[str, Any]:
    """Time and memory per node: the tree of a game, and both modes of CFR on it."""
    start = time.process_time()
    tree = load_game(game, max_nodes=most, cached=False).tree
    seconds = max(time.process_time() - start, 1e-6)  # the clock may be coarse
    nodes, tree_bytes = tree.num_nodes, _nbytes(tree, set()) / tree.num_nodes
    solvers = {mode: make_solver(tree, "cfr", mode=mode) for mode in MODES}
    spent = {mode: _seconds(solver) for mode, solver in solvers.items()}
    size = {mode: _nbytes(solver, set()) for mode, solver in solvers.items()}
    return {
        "game": name,
        "nodes": nodes,
        "nodes_per_second": nodes / seconds,  # while the tree is built
        "nanoseconds": {mode: 1e9 * spent[mode] / nodes for mode in MODES},  # per iteration
        "solver_bytes": {mode: size[mode] / nodes - tree_bytes for mode in MODES},
        "tree_bytes": tree_bytes,
    }


def _seconds(solver: Any) -> float:
    """CPU time per iteration."""
    solver.run(1)
    count, best = 1, float("inf")
    for _ in range(SAMPLES):
        start, done, spent = time.process_time(), 0, 0.0
        while spent < SECONDS:
            solver.run(count)
            done += count
            spent = time.process_time() - start
            count = count if spent > SECONDS / 20 else 2 * count
        best = min(best, spent / done)
    return best


def _nbytes(thing: Any, seen: set[int]) -> int:
    """The bytes of all arrays reachable from an object, each counted once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes if thing.base is None else _nbytes(thing.base, seen)
    if is_dataclass(thing):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    else:
        parts = list(thing if isinstance(thing, tuple) else getattr(thing, "__dict__", {}).values())
    return sum(_nbytes(part, seen) for part in parts)


def _row(point: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        point["game"],
        f"{point['nodes']:,}",
        f"{point['nodes_per_second']:,.0f}",
        *(f"{point['nanoseconds'][mode]:.2f}" for mode in MODES),
        f"{point['tree_bytes']:.0f}",
        *(f"{point['solver_bytes'][mode]:.0f}" for mode in MODES),
    )


def draw(points: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Time and memory over the number of nodes: a line for Liar's Dice, dots for other games."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    time_axes.set(title="CFR: ns per node and iteration", yscale="log")
    memory_axes.set(title="bytes per node")
    nodes = np.array([point["nodes"] for point in points])
    dice = np.array([point["game"].startswith("Liar's Dice") for point in points])

    def plot(axes: Any, label: str, color: str, heights: list[float]) -> None:
        found = np.array(heights)
        axes.plot(nodes[dice], found[dice], "o-", ms=4, color=color, label=label)
        axes.plot(nodes[~dice], found[~dice], "D", ms=4, color=color)
        for place in np.flatnonzero(~dice).tolist():
            spot, game = (nodes[place], found[place]), points[place]["game"]
            axes.annotate(game, spot, (4, 4), textcoords="offset points", fontsize=6)

    for mode in MODES:
        plot(time_axes, f"{mode} mode", COLORS[mode], [p["nanoseconds"][mode] for p in points])
        size = [point["solver_bytes"][mode] for point in points]
        plot(memory_axes, f"solver, {mode} mode", COLORS[mode], size)
    plot(memory_axes, "tree", COLORS["tree"], [point["tree_bytes"] for point in points])
    memory_axes.set_ylim(0, None)
    for axes in (time_axes, memory_axes):
        axes.set(xscale="log", xlabel="nodes (line: Liar's Dice with 3 to 8 sides)")
        axes.margins(x=0.2)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=140)


if __name__ == "__main__":
    sys.exit(main())
