"""Solvers by the name of their variant, and runs that measure NashConv along the way."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from algorithms.cfr import VARIANTS, BaseSolver, Solver, Variant
from algorithms.compiled.cfr import FastSolver
from algorithms.large_games.large_game import NativeSolver
from algorithms.mccfr import SAMPLING, SamplingSolver
from algorithms.nashconv import Measure
from algorithms.support.errors import unknown
from algorithms.tree import Tree
from kuhn_bridge.errors import BridgeError

Mode: TypeAlias = Literal["exact", "fast"]
AnySolver: TypeAlias = BaseSolver | NativeSolver
CurvePoint: TypeAlias = tuple[int, float]  # iterations, and NashConv after them
NAMES = (*VARIANTS, *SAMPLING)
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_VARIANT, DEFAULT_ITERATIONS = "cfr+", 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The average policy of a run, its measure, and NashConv along the way."""

    policy: Any  # (I, A) on a tree
    measure: Measure
    curve: tuple[CurvePoint, ...]
    interrupted: bool = False

    @property
    def iterations(self) -> int:
        """The number of iterations that were run."""
        return self.curve[-1][0]


def make_solver(
    tree: Tree,
    variant: str | Variant = DEFAULT_VARIANT,
    *,
    discounts: Sequence[float] | None = None,
    seed: int = 0,
    mode: Mode = "fast",
) -> BaseSolver:
    """The solver of a variant: one of `NAMES`, or a `Variant`.

    `discounts` are alpha, beta and gamma instead of the variant's own. The mode `exact` gives
    OpenSpiel's iterates bit for bit, `fast` the same up to rounding. Sampling has neither, but a
    seed.
    """
    if isinstance(variant, str):
        if variant in SAMPLING:
            return SamplingSolver(tree, variant, seed=seed)
        if variant not in VARIANTS:
            raise unknown("variant", variant, NAMES)
        variant = VARIANTS[variant]
    if discounts:
        alpha, beta, gamma = discounts
        variant = replace(variant, alpha=alpha, beta=beta, gamma=gamma)
    return FastSolver(tree, variant) if mode == "fast" else Solver(tree, variant)


def run_solver(
    solver: AnySolver,
    measure: Callable[[Any], Measure],
    *,
    iterations: int,
    until: float = -math.inf,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> Solved:
    """Run up to `iterations` in all, or until NashConv is at most `until`, or until Ctrl-C.

    The average policy is measured after each of the first iterations, then less and less often.
    After each measure, and every few seconds, `progress` gets the iterations and a note.
    """
    if iterations <= solver.iterations:
        raise BridgeError(f"iterations must be more than {solver.iterations:,}; got {iterations:,}")
    curve: list[CurvePoint] = []
    policy = measured = None
    interrupted = False

    def show() -> None:
        progress(solver.iterations, f"NashConv {curve[-1][1]:.2e}" if curve else "")

    try:
        for stop in _measuring_points(solver.iterations, iterations):
            _run_to(solver, stop, show)
            policy = measured = None  # a policy of a large game takes a GiB: keep one at a time
            policy = solver.average_policy()
            measured = measure(policy)
            curve.append((stop, measured.nash_conv))
            show()
            if measured.nash_conv <= until:
                break
    except KeyboardInterrupt:
        if not solver.iterations:
            raise
        interrupted = True
    if interrupted or measured is None:
        policy = solver.average_policy()
        measured = measure(policy)
        curve.append((solver.iterations, measured.nash_conv))
    return Solved(policy, measured, tuple(curve), interrupted)


def _run_to(solver: AnySolver, stop: int, show: Callable[[], None]) -> None:
    """Run until `stop` iterations are complete, in parts of at least a second."""
    count = 1
    while (left := stop - solver.iterations) > 0:
        start = time.monotonic()
        solver.run(min(left, count))
        if time.monotonic() - start < 1:
            count *= 2
        elif solver.iterations < stop:
            show()


def _measuring_points(start: int, end: int) -> Iterator[int]:
    """1, 2, 3 and so on, later about 10% apart: those above `start`, up to and including `end`."""
    while start < end:
        start = min(end, max(start + 1, round(start * 1.1)))
        yield start
