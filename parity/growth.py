"""`python -m parity.growth`: time and memory per node, from Kuhn to millions of nodes."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from algorithms.games import load_game
from algorithms.solvers import MODES, make_solver
from algorithms.support.command import EXIT_OK, Parser, number, table
from algorithms.support.progress import progress
from kuhn_bridge.errors import GameError

SECONDS = 0.5  # per sample
SAMPLES = 3  # the fastest one counts, because other programs may slow down the machine
SHORTEST_SECONDS = 1e-6  # the clock may be coarse
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Time and memory of one game, of its tree and of both modes of CFR."""

    game: str
    nodes: int
    nodes_per_second: float  # while the tree is built
    nanoseconds: dict[str, float]  # per node and iteration, by mode
    solver_bytes: dict[str, float]  # per node, without the tree, by mode
    tree_bytes: float  # per node

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.game,
            f"{self.nodes:,}",
            f"{self.nodes_per_second:,.0f}",
            *(f"{self.nanoseconds[mode]:.2f}" for mode in MODES),
            f"{self.tree_bytes:.0f}",
            *(f"{self.solver_bytes[mode]:.0f}" for mode in MODES),
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.growth", description=__doc__)
    parser.add_argument(
        "--most",
        type=number(1),
        default=20_000_000,
        metavar="NODES",
        help="the largest game (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    measurements = []
    with progress("measuring", len(GAMES)) as show:
        for done, (label, game) in enumerate(GAMES.items()):
            show(done, label)
            try:
                measurements.append(measure(label, game, arguments.most))
            except GameError as error:
                if "too large" not in str(error):
                    raise
    measurements.sort(key=attrgetter("nodes"))
    if arguments.json:
        print(json.dumps([asdict(measurement) for measurement in measurements], indent=2))
    else:
        print(table(HEADER, [measurement.cells for measurement in measurements]))
    return EXIT_OK


def measure(label: str, game: str, most: int) -> Measurement:
    """Time and memory per node: the tree of a game, and both modes of CFR on it."""
    start = time.process_time()
    tree = load_game(game, max_nodes=most, cached=False).tree
    seconds = max(time.process_time() - start, SHORTEST_SECONDS)
    nodes = tree.num_nodes
    tree_bytes = _num_bytes(tree, set()) / nodes
    nanoseconds: dict[str, float] = {}
    solver_bytes: dict[str, float] = {}
    for mode in MODES:
        solver = make_solver(tree, "cfr", mode=mode)
        nanoseconds[mode] = 1e9 * _seconds_per_iteration(solver) / nodes
        solver_bytes[mode] = _num_bytes(solver, set()) / nodes - tree_bytes
    return Measurement(
        game=label,
        nodes=nodes,
        nodes_per_second=nodes / seconds,
        nanoseconds=nanoseconds,
        solver_bytes=solver_bytes,
        tree_bytes=tree_bytes,
    )


def _seconds_per_iteration(solver: Any) -> float:
    """CPU time of one iteration."""
    solver.run(1)  # compiles
    iterations = 1  # between two looks at the clock
    best = float("inf")
    for _ in range(SAMPLES):
        start = time.process_time()
        done = 0
        spent = 0.0
        while spent < SECONDS:
            solver.run(iterations)
            done += iterations
            spent = time.process_time() - start
            if spent <= SECONDS / 20:
                iterations *= 2
        best = min(best, spent / done)
    return best


def _num_bytes(thing: Any, seen: set[int]) -> int:
    """The bytes of all arrays that an object leads to, each counted once."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes if thing.base is None else _num_bytes(thing.base, seen)
    if is_dataclass(thing):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    elif isinstance(thing, tuple):
        parts = list(thing)
    else:
        parts = list(getattr(thing, "__dict__", {}).values())
    return sum(_num_bytes(part, seen) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
