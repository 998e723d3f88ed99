"""Solvers by the name of their variant, and runs that measure NashConv along the way."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

from algorithms.cfr import VARIANTS, BaseSolver, Variant
from algorithms.compiled.cfr import FastSolver
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.large_games.solver import LargeGameSolver, Tables
from algorithms.mccfr import SAMPLING, SamplingSolver
from algorithms.nashconv import Measure
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import unknown
from algorithms.tree import Tree
from kuhn_bridge.errors import BridgeError

Mode: TypeAlias = Literal["exact", "fast"]
AnySolver: TypeAlias = BaseSolver | LargeGameSolver
SolverPolicy: TypeAlias = Float64Array | Tables  # (I, A) on a tree, else one table per player
CurvePoint: TypeAlias = tuple[int, float]  # iterations, and NashConv after them
Kind: TypeAlias = Literal["average", "last"]  # a solver's policies: the average, the current one
Save: TypeAlias = Literal["best", "average", "last"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SAVE: tuple[Save, ...] = get_args(Save)
NAMES = (*VARIANTS, *SAMPLING)
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_VARIANT = "pdcfr+"  # the best overall: docs/variants.py
DEFAULT_ITERATIONS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The policy of a run, its measure, and NashConv along the way."""

    policy: SolverPolicy
    measure: Measure
    kind: Kind  # which of the solver's policies it is
    curve: tuple[CurvePoint, ...]  # of the better policy that was measured
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
    return FastSolver(tree, variant) if mode == "fast" else ExactSolver(tree, variant)


def run_solver(  # noqa: PLR0913  # options by name
    solver: AnySolver,
    measure: Callable[[SolverPolicy], Measure],
    *,
    iterations: int,
    until: float = -math.inf,
    save: Save = "best",
    along: bool = True,
    progress: Callable[[int, str], None] = lambda done, note: None,
    watch: Callable[[int, float], object] = lambda iterations, nash_conv: None,
) -> Solved:
    """Run up to `iterations` in all, or until NashConv is at most `until`, or until Ctrl-C.

    Args:
        solver: solver to run, from where it is.
        measure: exact measure of a policy.
        iterations: largest number of iterations, those included that the solver has run before.
        until: NashConv at which the run ends.
        save: policy that is measured and returned: the average, the last, or the better of both.
        along: whether to measure after each of the first iterations, then less and less often,
            and not only at the end.
        progress: called after each measure, and every few seconds, with the iterations and a note.
        watch: called after each measure with the iterations and NashConv; False ends the run.
    """
    if iterations <= solver.iterations:
        raise BridgeError(f"iterations must be more than {solver.iterations:,}; got {iterations:,}")
    kinds: tuple[Kind, ...] = KINDS if save == "best" else (save,)
    points = _measuring_points(solver.iterations, iterations) if along else iter([iterations])
    curve: list[CurvePoint] = []
    better: _Measured | None = None
    interrupted = False

    def show() -> None:
        progress(solver.iterations, f"NashConv {curve[-1][1]:.2e}" if curve else "")

    try:
        for stop in points:
            _run_to(solver, stop, show)
            better = None  # a policy of a large game takes a GiB: keep as few as possible
            better = _measure_better(solver, kinds, measure)
            nash_conv = better.measure.nash_conv
            curve.append((stop, nash_conv))
            show()
            goes_on = watch(stop, nash_conv)
            if nash_conv <= until or goes_on is False:
                break
    except KeyboardInterrupt:
        if not solver.iterations:
            raise
        interrupted = True
    if interrupted or better is None:
        better = _measure_better(solver, kinds, measure)
        curve.append((solver.iterations, better.measure.nash_conv))
    return Solved(
        policy=better.policy,
        measure=better.measure,
        kind=better.kind,
        curve=tuple(curve),
        interrupted=interrupted,
    )


class _Measured(NamedTuple):
    """One of a solver's policies and its measure."""

    kind: Kind
    policy: SolverPolicy
    measure: Measure


def _measure_better(
    solver: AnySolver, kinds: Sequence[Kind], measure: Callable[[SolverPolicy], Measure]
) -> _Measured:
    """The policy of the smallest NashConv among these kinds; the first of them in a tie."""
    better: _Measured | None = None
    for kind in kinds:
        policy = solver.average_policy() if kind == "average" else solver.current_policy()
        measured = _Measured(kind, policy, measure(policy))
        if better is None or measured.measure.nash_conv < better.measure.nash_conv:
            better = measured
    assert better is not None  # noqa: S101  # `kinds` is never empty
    return better


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
