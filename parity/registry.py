"""The list of checks, and the tally that counts the comparisons of each."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from algorithms.games import Game, kuhn

MAX_CASES = 6
OWN_PACKAGES = ("kuhn_bridge", "algorithms", "parity")


@dataclass(slots=True)
class Tally:
    """The comparisons of one check. `ours` and `theirs` name the two sides in messages."""

    ours: str = "ours"
    theirs: str = "OpenSpiel"
    max_cases: int = MAX_CASES
    compared: int = 0
    wrong: int = 0
    deviation: float = 0.0  # the largest one
    cases: list[str] = field(default_factory=list)  # the first mismatches
    status: str = ""  # pass, FAIL, skipped, or known: the fault of another project
    note: str = ""
    seconds: float = 0.0

    def same(self, where: str, phrase: str, ours: Any, theirs: Any) -> None:
        """Require equality. `phrase` says what a side does, e.g. `"pays {}"`."""
        if ours == theirs:
            self.compared += 1
            return
        numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
        self.deviation = max(self.deviation, float(abs(ours - theirs)) if numbers else math.inf)
        self._differ(where, phrase, format_value(ours), format_value(theirs))

    def close(self, where: str, phrase: str, ours: Any, theirs: Any, tolerance: float) -> None:
        """Require numbers within `tolerance` of each other; NaN is never close."""
        distance = abs(ours - theirs)
        distance = math.inf if math.isnan(distance) else distance
        self.deviation = max(self.deviation, distance)
        if distance <= tolerance:
            self.compared += 1
        else:
            self._differ(where, phrase, f"{ours:.9g}", f"{theirs:.9g}")

    def holds(self, where: str, claim: str, truth: bool) -> None:
        """Require that `claim` is true."""
        if truth:
            self.compared += 1
        else:
            self.fail(f"{where}: {claim} does not hold")

    def fail(self, case: str) -> None:
        """Count a mismatch, described by `case`."""
        self.compared += 1
        self.wrong += 1
        if len(self.cases) < self.max_cases:
            self.cases.append(case)

    def _differ(self, where: str, phrase: str, ours: str, theirs: str) -> None:
        mine = f"{self.ours} {phrase.format(ours)}".lstrip()
        self.fail(f"{where}: {mine}, {self.theirs} {phrase.format(theirs)}")


def format_value(value: Any) -> str:
    """A value in a message: integers without a decimal point, sets in order."""
    if value is None:
        return "nobody"
    if isinstance(value, frozenset):
        return " or ".join(sorted(value)) or "nothing"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of the command that checks depend on."""

    quick: bool = False
    model: Path | None = None
    game: Game = field(default_factory=kuhn)


class Skipped(Exception):  # noqa: N818  # an outcome, not an error
    """A check cannot run here, for a reason that is not a mismatch."""


Subject: TypeAlias = Callable[..., Any]
"""What a check checks: a keyword argument, by default our own; a test passes a wrong one."""
Body: TypeAlias = Callable[..., None]  # takes a tally, settings and subjects


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table; `title` says what it compares."""

    name: str
    group: str
    title: str
    body: Body


GAME, NATIVE = "game", "native"
GROUPS = ("rules", "faces", "algorithms", "policies", GAME, NATIVE)
CHECKS: dict[str, Check] = {}  # of Kuhn poker
GAME_CHECKS: dict[str, Check] = {}  # of `--game`, for games with a tree
NATIVE_CHECKS: dict[str, Check] = {}  # of `--game`, for games with a native form


def check(name: str, group: str, title: str) -> Callable[[Body], Body]:
    """Register a function as a check of its keyword arguments, whose defaults are our own."""

    def register(body: Body) -> Body:
        checks = {GAME: GAME_CHECKS, NATIVE: NATIVE_CHECKS}.get(group, CHECKS)
        checks[name] = Check(name, group, title, body)
        return body

    return register


def run(item: Check, settings: Settings, *, max_cases: int = MAX_CASES, **subject: Any) -> Tally:
    """Run one check, on `subject` instead of our own if given; an exception is a mismatch."""
    tally, start = Tally(max_cases=max_cases), time.perf_counter()
    try:
        item.body(tally, settings, **subject)
        if not tally.compared:
            tally.fail("the check compared nothing")
    except Skipped as reason:
        tally.status, tally.note = "skipped", str(reason)
    except Exception as error:  # a check that breaks must not pass
        package = str(getattr(error, "name", "")).split(".")[0]
        if isinstance(error, ModuleNotFoundError) and package not in OWN_PACKAGES:
            tally.status, tally.note = "skipped", f"{error.name} is not installed"
        else:
            tally.fail(f"the check raised {type(error).__name__}: {error}")
    tally.status = tally.status or ("FAIL" if tally.wrong else "pass")
    tally.seconds = time.perf_counter() - start
    return tally
