"""Counting comparisons: how many, the largest deviation, and the first cases that differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

CASES_KEPT = 6


@dataclass(slots=True)
class Tally:
    """What one check compared. `ours` and `theirs` name the two sides in what people read."""

    ours: str = "ours"
    theirs: str = "OpenSpiel"
    compared: int = 0
    wrong: int = 0
    deviation: float = 0.0
    cases: list[str] = field(default_factory=list)

    def same(self, where: str, phrase: str, ours: Any, theirs: Any) -> None:
        """Require equality. `phrase` says what a side does, e.g. `"pays {}"`."""
        self.compared += 1
        if ours != theirs:
            self._differ(where, phrase.format(show(ours)), phrase.format(show(theirs)))
            self.deviation = max(self.deviation, _distance(ours, theirs))

    def close(self, where: str, phrase: str, ours: Any, theirs: Any, tolerance: float) -> None:
        """Require numbers within `tolerance` of each other; NaN is never close."""
        self.compared += 1
        distance = abs(ours - theirs)
        distance = math.inf if math.isnan(distance) else distance
        self.deviation = max(self.deviation, distance)
        if distance > tolerance:
            self._differ(where, phrase.format(f"{ours:.9g}"), phrase.format(f"{theirs:.9g}"))

    def holds(self, where: str, claim: str, truth: bool) -> None:
        """Require that `claim` is true."""
        if truth:
            self.compared += 1
        else:
            self.fail(f"{where}: {claim} does not hold")

    def fail(self, case: str) -> None:
        """Count a comparison that cannot even be made."""
        self.compared += 1
        self._note(case)

    def add(self, other: Tally) -> None:
        """Count what another tally counted."""
        self.compared += other.compared
        self.wrong += other.wrong
        self.deviation = max(self.deviation, other.deviation)
        self.cases = (self.cases + other.cases)[:CASES_KEPT]

    def _differ(self, where: str, ours: str, theirs: str) -> None:
        self._note(f"{where}: {self.ours} {ours}, {self.theirs} {theirs}".replace(":  ", ": "))

    def _note(self, case: str) -> None:
        self.wrong += 1
        if len(self.cases) < CASES_KEPT:
            self.cases.append(case)


def show(value: Any) -> str:
    """A value as people read it: whole numbers without a point, sets in order."""
    if value is None:
        return "nobody"
    if isinstance(value, (set, frozenset)):
        return " or ".join(sorted(value)) or "nothing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _distance(ours: Any, theirs: Any) -> float:
    numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
    return float(abs(ours - theirs)) if numbers else math.inf
