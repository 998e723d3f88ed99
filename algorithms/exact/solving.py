"""Solve a game by a variant's name, and look at NashConv on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from algorithms.exact.cfr import VARIANTS, Solver, Variant
from algorithms.exact.fast import FastSolver
from algorithms.exact.sampling import SamplingSolver, Scheme
from algorithms.exact.tree import Tree
from algorithms.exact.values import Measure, evaluate_policy
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import unknown

AnySolver: TypeAlias = Solver | FastSolver | SamplingSolver
Mode: TypeAlias = Literal["exact", "fast"]
Milestone: TypeAlias = tuple[int, float]  # iterations, and NashConv after them
SAMPLING: Mapping[str, Scheme] = MappingProxyType({"es-mccfr": "external", "os-mccfr": "outcome"})
NAMES = (*VARIANTS, *SAMPLING)
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The average policy `(I, A)` of a run, its NashConv, and the curve that led there."""

    policy: Float64Array
    measure: Measure
    curve: tuple[Milestone, ...]

    @property
    def iterations(self) -> int:
        """How many it took."""
        return self.curve[-1][0]


def solve(
    solver: AnySolver,
    *,
    iterations: int,
    until: float = -math.inf,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> Solved:
    """Run until NashConv is `until` or less, or for `iterations`; measure ever less often."""
    curve: list[Milestone] = []
    for stop in _checkpoints(iterations):
        solver.run(stop - solver.iteration)
        policy = solver.average_policy()
        measure = evaluate_policy(solver.tree, policy)
        curve.append((solver.iteration, measure.nash_conv))
        progress(solver.iteration, f"NashConv {measure.nash_conv:.2e}")
        if measure.nash_conv <= until:
            break
    return Solved(policy, measure, tuple(curve))


def make_solver(
    tree: Tree,
    name: str,
    *,
    discounts: Sequence[float] | None = None,
    seed: int = 0,
    mode: Mode = "fast",
) -> AnySolver:
    """The solver of a variant's name; `discounts` are alpha, beta and gamma instead of its own.

    `exact` gives OpenSpiel's iterates bit for bit, `fast` the same up to rounding; sampling knows
    no modes.
    """
    if name in SAMPLING:
        return SamplingSolver(tree, SAMPLING[name], seed=seed)
    if name not in VARIANTS:
        raise unknown("variant", name, NAMES)
    variant = VARIANTS[name]
    if discounts:
        alpha, beta, gamma = discounts
        variant = replace(variant, alpha=alpha, beta=beta, gamma=gamma)
    return in_mode(mode, tree, variant)


def in_mode(mode: Mode, tree: Tree, variant: Variant) -> Solver | FastSolver:
    """The solver of a variant, exact or fast."""
    return FastSolver(tree, variant) if mode == "fast" else Solver(tree, variant)


def _checkpoints(iterations: int) -> Iterator[int]:
    """1, 2, 3 ... and then about every tenth more, up to and with the last."""
    stop = 0
    while stop < iterations:
        stop = min(iterations, max(stop + 1, round(stop * 1.1)))
        yield stop
