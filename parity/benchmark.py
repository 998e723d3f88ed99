"""`python -m parity.benchmark`: exact exploitability and its cost in the large benchmark games.

The games of Rudolph et al., "Reevaluating Policy Gradient Methods for Imperfect-Information Games"
(ICLR 2026). A benchmark gives one or more rows of the table in `docs/benchmark.md`.
"""

import argparse
import json
import math
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

from algorithms.games import ExactGame, TreeGame, load_game
from algorithms.policies import Policy, load_policy
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
DISTILLED = (("PTTT", 100), ("DH3", 100), ("LD2D5", 300))  # iterations of DCFR
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
        if self.half_width is None:
            nash_conv = f"{self.nash_conv:.6f}"
            exploitability = f"{self.nash_conv / 2:.6f}"
        else:
            nash_conv = f"{self.nash_conv:.4f} ± {self.half_width:.4f}"
            exploitability = f"{self.nash_conv / 2:.4f} ± {self.half_width / 2:.4f}"
        digits = 2 if self.cpu_seconds < 10 else 0
        cpu_seconds = f"{self.cpu_seconds:.{digits}f}"
        gib = f"{self.gib:.1f}"
        return (self.what, self.game, nash_conv, exploitability, cpu_seconds, gib, self.remarks)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.benchmark", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run this benchmark; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument(
        "--update", type=Path, metavar="FILE.md", help="replace the rows of the table in this file"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list")
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


def uniform(short: str, game: ExactGame | None = None) -> Iterator[Row]:
    """Uniform play: the cost of the first evaluation, set-up included, and of a second one."""
    start = time.process_time()
    game = game or load_game(GAMES[short]).require_exact()
    policy = game.uniform()
    built = time.process_time()
    measure = game.measure(policy)
    measured = time.process_time()
    game.measure(policy)
    again = time.process_time() - measured
    remarks = f"{built - start:.1f} s of it to build; {again:.2f} s per further evaluation"
    if not isinstance(game, TreeGame):
        remarks = f"{game.size.infosets:,} information sets; {remarks}"
    yield Row(
        what="uniform play",
        game=short,
        nash_conv=measure.nash_conv,
        cpu_seconds=measured - start,
        gib=_peak_gib(),
        remarks=remarks,
    )


def solved(
    variant: str,
    short: str,
    game: ExactGame | None = None,
    *,
    after: Sequence[int] = MEASURED_AFTER,
) -> Iterator[Row]:
    """A solver's average policy over iterations; CPU seconds are those of the iterations."""
    game = game or load_game(GAMES[short]).require_exact()
    solver = game.make_solver(variant)
    seconds = 0.0
    for iteration in after:
        start = time.process_time()
        solver.run(iteration - solver.iterations)
        seconds += time.process_time() - start
        iterations = "1 iteration" if iteration == 1 else f"{iteration} iterations"
        yield Row(
            what=f"{variant.upper()}, {iterations}",
            game=short,
            nash_conv=game.measure(solver.average_policy()).nash_conv,
            cpu_seconds=seconds,
            gib=_peak_gib(),
        )


def distilled(
    short: str, iterations: int, game: ExactGame | None = None, *, steps: int | None = None
) -> Iterator[Row]:
    """DCFR's policy in a network; CPU seconds are those of the iterations and of the fit."""
    game = game or load_game(GAMES[short]).require_exact()
    start = time.process_time()
    solver = game.make_solver("dcfr")
    solver.run(iterations)
    policy = Policy(game, solver.average_policy())
    network = policy.distil(steps=steps, seed=0)
    seconds = time.process_time() - start
    yield Row(
        what=f"distil of DCFR, {iterations} iterations",
        game=short,
        nash_conv=network.nash_conv_after,
        cpu_seconds=seconds,
        gib=_peak_gib(),
        remarks=f"2 x {network.width}, seed 0; {network.nash_conv_before:.6f} before",
    )


def trained(short: str, steps: int, *, seeds: Sequence[int] = SEEDS) -> Iterator[Row]:
    """`train_ppo` without measures, once per seed; then the models as they were saved."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        models = [_train(short, steps, seed, Path(folder)) for seed in seeds]
        seconds = (time.process_time() - start) / len(seeds)
        gib = _peak_gib()
        nash_convs = [load_policy(model).nash_conv() for model in models]
    yield Row(
        what=f"train_ppo, {steps // 10**6} million decisions",
        game=short,
        nash_conv=mean(nash_convs),
        cpu_seconds=seconds,
        gib=gib,
        remarks=f"seeds {seeds[0]} to {seeds[-1]}; CPU s per seed, training alone",
        half_width=T_97_5 * stdev(nash_convs) / math.sqrt(len(nash_convs)),
    )


def _train(short: str, steps: int, seed: int, folder: Path) -> Path:
    """The model of a training run that measures nothing on its way."""
    from algorithms import train_ppo

    out = folder / f"{seed}.zip"
    arguments = ["--game", GAMES[short], "--steps", str(steps), "--seed", str(seed)]
    train_ppo.main([*arguments, "--points", "0", "--out", str(out), "--quiet"])
    return out


BENCHMARKS = (
    {f"uniform {short}": partial(uniform, short) for short in GAMES}
    | {f"{variant} {short}": partial(solved, variant, short) for variant, short in SOLVED}
    | {f"distil {short}": partial(distilled, short, count) for short, count in DISTILLED}
    | {f"train_ppo {short} {n}M": partial(trained, short, n * 10**6) for short, n in TRAINED}
)


def update(path: Path, rows: Sequence[Row]) -> None:
    """Replace the rows of the table that have the same first two columns; add the others."""
    lines = path.read_text(encoding="utf-8").splitlines()
    headers = [place for place, line in enumerate(lines) if cells_of(line) == HEADER]
    if not headers:
        raise UsageError(f"{path}: no table with the columns {', '.join(HEADER)}")
    first = headers[0] + 2  # after the rule below the header
    old_rows = list(takewhile(lambda line: line.startswith("|"), lines[first:]))
    by_name = {cells_of(line)[:2]: line for line in old_rows}
    for row in rows:
        by_name[row.cells[:2]] = f"| {' | '.join(row.cells)} |"
    rest = lines[first + len(old_rows) :]
    files.write_text(path, "\n".join([*lines[:first], *by_name.values(), *rest]) + "\n")


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of a row of a Markdown table."""
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    sys.exit(main())
