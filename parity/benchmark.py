"""`python -m parity.benchmark`: exact exploitability and its cost in the large benchmark games.

The games of Rudolph et al., "Reevaluating Policy Gradient Methods for Imperfect-Information Games"
(ICLR 2026). A benchmark gives one or more rows of the table in `docs/benchmark.md`.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from statistics import mean, stdev

from algorithms.games import Game, load_game, make_solver
from algorithms.policies import load_policy
from algorithms.support import files
from algorithms.support.command import EXIT_OK, Parser, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress

GAMES = {
    "PTTT": "phantom_ttt(obstype=reveal-nothing)",
    "DH3": "dark_hex(gameversion=cdh,board_size=3,obstype=reveal-nothing)",
    "LD2D5": "liars_dice(numdice=2,dice_sides=5)",
    "APTTT": "phantom_ttt(gameversion=abrupt,obstype=reveal-nothing)",
    "ADH3": "dark_hex(gameversion=adh,board_size=3,obstype=reveal-nothing)",
}
TRAINED = (("PTTT", 10), ("PTTT", 40), ("DH3", 10), ("LD2D5", 10))  # millions of decisions
SOLVED = (("cfr+", "PTTT"), ("dcfr", "PTTT"), ("cfr+", "DH3"))
MEASURED_AFTER = (10, 30, 100, 300)  # iterations
SEEDS = range(5)
T_97_5 = 2.776  # the 97.5% quantile of Student's t with four degrees of freedom
HEADER = ("what", "game", "NashConv", "exploitability", "CPU s", "GiB", "remarks")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; CPU seconds are of one process with one thread."""

    what: str
    game: str
    nash_conv: float
    cpu_seconds: float
    gib: float  # the largest resident memory of the process
    remarks: str = ""
    half_width: float | None = None  # of the 95% interval of NashConv over seeds

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        return (
            self.what,
            self.game,
            _number(self.nash_conv, self.half_width),
            _number(self.nash_conv / 2, self.half_width and self.half_width / 2),
            f"{self.cpu_seconds:.2f}" if self.cpu_seconds < 10 else f"{self.cpu_seconds:.0f}",
            f"{self.gib:.1f}",
            self.remarks,
        )


def _number(value: float, half_width: float | None) -> str:
    return f"{value:.6f}" if half_width is None else f"{value:.4f} ± {half_width:.4f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.benchmark", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="run this benchmark; repeatable")
    add("--list", action="store_true", help="list the benchmarks and stop")
    add("--update", type=Path, metavar="FILE.md", help="replace the rows of the table in this file")
    add("--json", action="store_true", help="print one JSON list")
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    for name in arguments.only or ():
        if name not in BENCHMARKS:
            raise unknown("benchmark", name, BENCHMARKS)
    chosen = arguments.only or list(BENCHMARKS)
    if arguments.list:
        print("\n".join(chosen))
        return EXIT_OK
    if arguments.update:
        update(arguments.update, [])  # fails before the work starts if it cannot be written
    rows: list[Row] = []
    with progress("measuring", len(chosen)) as show:
        for done, name in enumerate(chosen):
            show(done, name)
            rows += in_own_process(name)
    if arguments.update:
        update(arguments.update, rows)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print(table(HEADER, [row.cells for row in rows], left=2))
    return EXIT_OK


def in_own_process(name: str) -> list[Row]:
    """The rows of a benchmark, measured in a new process so that its memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run_benchmark, (name,))


def run_benchmark(name: str) -> list[Row]:
    """The rows of a benchmark, measured in this process."""
    import torch

    torch.set_num_threads(1)
    return list(BENCHMARKS[name]())


def uniform(short: str, game: Game | None = None) -> Iterator[Row]:
    """Uniform play: the cost of the first evaluation, set-up included, and of a second one."""
    start = time.process_time()
    game = game or load_game(GAMES[short])
    policy = game.uniform_table()
    built = time.process_time()
    measure = game.measure(policy)
    first = time.process_time()
    game.measure(policy)
    again = time.process_time() - first
    infosets = f"{sum(game.native.num_infosets):,} information sets; " if game.native else ""
    remarks = f"{built - start:.1f} s of it to build; {again:.2f} s per further evaluation"
    numbers = measure.nash_conv, first - start, _peak_gib()
    yield Row("uniform play", short, *numbers, infosets + remarks)


def solved(
    variant: str, short: str, game: Game | None = None, *, after: Sequence[int] = MEASURED_AFTER
) -> Iterator[Row]:
    """A solver's average policy over iterations; CPU seconds are those of the iterations."""
    game = game or load_game(GAMES[short])
    solver = make_solver(game, variant)
    seconds = 0.0
    for stop in after:
        start = time.process_time()
        solver.run(stop - solver.iterations)
        seconds += time.process_time() - start
        found = game.measure(solver.average_policy()).nash_conv
        what = f"{variant.upper()}, {stop} iteration{'s' * (stop > 1)}"
        yield Row(what, short, found, seconds, _peak_gib())


def trained(short: str, steps: int, *, seeds: Sequence[int] = SEEDS) -> Iterator[Row]:
    """`train_ppo` without measures, once per seed; then the models as they were saved."""
    from algorithms import train_ppo

    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        models = [Path(folder, f"{seed}.zip") for seed in seeds]
        for seed, out in zip(seeds, models, strict=True):
            options = {"game": GAMES[short], "steps": steps, "seed": seed, "points": 0, "out": out}
            given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
            train_ppo.main([*given, "--quiet"])
        seconds, gib = (time.process_time() - start) / len(seeds), _peak_gib()
        found = [load_policy(model).nash_conv() for model in models]
    what = f"train_ppo, {steps // 10**6} million decisions"
    remarks = f"seeds {seeds[0]} to {seeds[-1]}; CPU s per seed, training alone"
    half_width = T_97_5 * stdev(found) / len(found) ** 0.5
    yield Row(what, short, mean(found), seconds, gib, remarks, half_width)


BENCHMARKS = (
    {f"uniform {short}": partial(uniform, short) for short in GAMES}
    | {f"{variant} {short}": partial(solved, variant, short) for variant, short in SOLVED}
    | {f"train_ppo {short} {n}M": partial(trained, short, n * 10**6) for short, n in TRAINED}
)


def update(path: Path, rows: Sequence[Row]) -> None:
    """Replace the rows of the table that have the same first two columns; add the others."""
    lines = path.read_text(encoding="utf-8").splitlines()
    headers = [number for number, line in enumerate(lines) if cells_of(line) == HEADER]
    if not headers:
        raise UsageError(f"{path}: no table with the columns {', '.join(HEADER)}")
    first = headers[0] + 2  # after the rule below the header
    old = list(takewhile(lambda line: line.startswith("|"), lines[first:]))
    body = {cells_of(line)[:2]: line for line in old}
    body |= {row.cells[:2]: f"| {' | '.join(row.cells)} |" for row in rows}
    whole = [*lines[:first], *body.values(), *lines[first + len(old) :]]
    files.write_text(path, "\n".join(whole) + "\n")


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of a row of a Markdown table."""
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    sys.exit(main())
