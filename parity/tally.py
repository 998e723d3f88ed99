"""Count comparisons: how many, the largest deviation, and the first cases that differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

MAX_CASES = 6


@dataclass(slots=True)
class Tally:
    """The comparisons of one check. `ours` and `theirs` name the two sides in messages."""

    ours: str = "ours"
    theirs: str = "OpenSpiel"
    max_cases: int = MAX_CASES
    compared: int = 0
    wrong: int = 0
    deviation: float = 0.0
    cases: list[str] = field(default_factory=list)

    def same(self, where: str, phrase: str, ours: Any, theirs: Any) -> None:
        """Require equality. `phrase` says what a side does, e.g. `"pays {}"`."""
        self.compared += 1
        if ours != theirs:
            self._add_difference(where, phrase, format_value(ours), format_value(theirs))
            numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
            distance = float(abs(ours - theirs)) if numbers else math.inf
            self.deviation = max(self.deviation, distance)

    def close(self, where: str, phrase: str, ours: Any, theirs: Any, tolerance: float) -> None:
        """Require numbers within `tolerance` of each other; NaN is never close."""
        self.compared += 1
        distance = abs(ours - theirs)
        distance = math.inf if math.isnan(distance) else distance
        self.deviation = max(self.deviation, distance)
        if distance > tolerance:
            self._add_difference(where, phrase, f"{ours:.9g}", f"{theirs:.9g}")

    def holds(self, where: str, claim: str, truth: bool) -> None:
        """Require that `claim` is true."""
        if truth:
            self.compared += 1
        else:
            self.fail(f"{where}: {claim} does not hold")

    def fail(self, case: str) -> None:
        """Count a comparison that cannot be made as a mismatch."""
        self.compared += 1
        self._add_case(case)

    def add(self, other: Tally) -> None:
        """Add the counts and cases of another tally."""
        self.compared += other.compared
        self.wrong += other.wrong
        self.deviation = max(self.deviation, other.deviation)
        self.cases = (self.cases + other.cases)[: self.max_cases]

    def _add_difference(self, where: str, phrase: str, ours: str, theirs: str) -> None:
        mine, right = phrase.format(ours), phrase.format(theirs)
        self._add_case(f"{where}: {self.ours} {mine}, {self.theirs} {right}".replace(":  ", ": "))

    def _add_case(self, case: str) -> None:
        self.wrong += 1
        if len(self.cases) < self.max_cases:
            self.cases.append(case)


def format_value(value: Any) -> str:
    """A value in a message: integers without a decimal point, sets in order."""
    if value is None:
        return "nobody"
    if isinstance(value, (set, frozenset)):
        return " or ".join(sorted(value)) or "nothing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
