"""What a check is: its comparisons, which a `Tally` counts, and its group in the table."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from algorithms.games import Game, kuhn

MAX_CASES = 6  # mismatches of one check that are printed
OWN_PACKAGES = ("kuhn_bridge", "algorithms", "parity")


@dataclass(slots=True)
class Tally:
    """The comparisons of one check. `ours` and `theirs` name the two sides in messages.

    `place` says what is compared, and `phrase` what each side does there. So

        tally.same("pp with K against Q", "pays {}", 2, 1)

    describes its mismatch as `pp with K against Q: ours pays 2, OpenSpiel pays 1`.
    """

    ours: str = "ours"
    theirs: str = "OpenSpiel"
    max_cases: int = MAX_CASES
    compared: int = 0
    wrong: int = 0
    deviation: float = 0.0  # the largest difference between two numbers
    cases: list[str] = field(default_factory=list)  # descriptions of the first mismatches
    status: str = ""  # pass, FAIL, skipped, or known: the fault of another project
    note: str = ""
    seconds: float = 0.0

    def same(self, place: str, phrase: str, ours: Any, theirs: Any) -> None:
        """Require that both values are equal."""
        if ours == theirs:
            self.compared += 1
            return
        if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
            self.deviation = max(self.deviation, float(abs(ours - theirs)))
        else:
            self.deviation = math.inf
        self._describe(place, phrase, format_value(ours), format_value(theirs))

    def close(self, place: str, phrase: str, ours: Any, theirs: Any, tolerance: float) -> None:
        """Require that two numbers differ by at most `tolerance`; NaN is never close."""
        distance = float(abs(ours - theirs))
        if math.isnan(distance):
            distance = math.inf
        self.deviation = max(self.deviation, distance)
        if distance <= tolerance:
            self.compared += 1
        else:
            self._describe(place, phrase, f"{ours:.9g}", f"{theirs:.9g}")

    def holds(self, place: str, claim: str, truth: bool) -> None:
        """Require that `claim` is true."""
        if truth:
            self.compared += 1
        else:
            self.fail(f"{place}: {claim} does not hold")

    def fail(self, case: str) -> None:
        """Count a mismatch, described by `case`."""
        self.compared += 1
        self.wrong += 1
        if len(self.cases) < self.max_cases:
            self.cases.append(case)

    def _describe(self, place: str, phrase: str, ours: str, theirs: str) -> None:
        """Count a mismatch, described by what both sides do."""
        we_do = f"{self.ours} {phrase.format(ours)}".lstrip()
        they_do = f"{self.theirs} {phrase.format(theirs)}"
        self.fail(f"{place}: {we_do}, {they_do}")


def format_value(value: Any) -> str:
    """A value in a message: integers without a decimal point, sets in order."""
    if value is None:
        return "nobody"
    if isinstance(value, frozenset):
        return " or ".join(sorted(value)) or "nothing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """The options of the command that checks depend on."""

    quick: bool = False
    model: Path | None = None
    game: Game = field(default_factory=kuhn)


class Skipped(Exception):  # noqa: N818  # an outcome, not an error
    """A check cannot run here, for a reason that is not a mismatch."""


CheckBody: TypeAlias = Callable[..., None]
"""Takes a tally and settings.

What it checks is a keyword argument, by default our own implementation: a test passes a wrong one.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table; `title` says what it compares."""

    name: str
    group: str
    title: str
    body: CheckBody


# Names of groups of `--game`.
TREE_GAMES = "game"
LARGE_GAMES = "large game"


@dataclass(frozen=True, slots=True)
class Group:
    """The checks of one part of the table, in order, by name."""

    name: str
    checks: dict[str, Check] = field(default_factory=dict)

    def check(self, name: str, title: str) -> Callable[[CheckBody], CheckBody]:
        """A decorator that adds a function to the group as a check."""

        def add(body: CheckBody) -> CheckBody:
            self.checks[name] = Check(name, self.name, title, body)
            return body

        return add


def run(
    check: Check, settings: CheckSettings, *, max_cases: int = MAX_CASES, **implementation: Any
) -> Tally:
    """Run one check, on `implementation` instead of our own if given; an exception fails it."""
    tally = Tally(max_cases=max_cases)
    start = time.perf_counter()
    try:
        check.body(tally, settings, **implementation)
        if tally.compared == 0:
            tally.fail("the check compared nothing")
    except Skipped as reason:
        tally.status = "skipped"
        tally.note = str(reason)
    except ModuleNotFoundError as error:
        missing = str(error.name).split(".", maxsplit=1)[0]
        if missing in OWN_PACKAGES:
            tally.fail(f"the check raised {type(error).__name__}: {error}")
        else:
            tally.status = "skipped"
            tally.note = f"{error.name} is not installed"
    except Exception as error:  # a check that breaks must not pass
        tally.fail(f"the check raised {type(error).__name__}: {error}")
    if not tally.status:
        tally.status = "FAIL" if tally.wrong else "pass"
    tally.seconds = time.perf_counter() - start
    return tally
