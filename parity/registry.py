"""The list of checks: each has a name, a group and a line that says what it compares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from algorithms.games import Game
from parity.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for."""

    quick: bool = False
    model: Path | None = None
    game: Game | None = None


class Skipped(Exception):  # noqa: N818  # it is an outcome, not a fault
    """A check cannot run here, for a reason that is not a mismatch."""


class KnownFault(Exception):  # noqa: N818  # somebody else's
    """A check saw the upstream fault that it is there to watch."""


Body: TypeAlias = Callable[[Tally, Settings], None]


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table."""

    name: str
    group: str
    title: str
    body: Body


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a check: `status` is pass, FAIL, skipped or known."""

    check: Check
    status: str
    tally: Tally
    seconds: float
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For machines; a deviation that is no number is null."""
        deviation = self.tally.deviation
        return {
            "name": self.check.name,
            "group": self.check.group,
            "title": self.check.title,
            "status": self.status.lower(),
            "compared": self.tally.compared,
            "wrong": self.tally.wrong,
            "deviation": deviation if deviation < float("inf") else None,
            "seconds": round(self.seconds, 3),
            "cases": self.tally.cases,
            "note": self.note,
        }


OWN = ("kuhn_bridge", "algorithms", "parity")
GROUPS = ("rules", "faces", "algorithms", "policies", "game")
CHECKS: dict[str, Check] = {}
GAME_CHECKS: dict[str, Check] = {}


def check(name: str, group: str, title: str) -> Callable[[Body], Body]:
    """Put a function on the list."""

    def register(body: Body) -> Body:
        CHECKS[name] = Check(name, group, title, body)
        return body

    return register


def game_check(name: str, title: str) -> Callable[[Body], Body]:
    """Put a function on the list of `--game`."""

    def register(body: Body) -> Body:
        GAME_CHECKS[name] = Check(name, "game", title, body)
        return body

    return register


def run(item: Check, settings: Settings) -> Result:
    """Run one check; whatever it raises counts as a mismatch."""
    tally, status, note = Tally(), "", ""
    start = time.perf_counter()
    try:
        item.body(tally, settings)
    except Skipped as reason:
        status, note = "skipped", str(reason)
    except KnownFault as fault:
        status, note = "known", str(fault)
    except Exception as error:  # a check that breaks must not look like one that passed
        if isinstance(error, ModuleNotFoundError) and str(error.name).split(".")[0] not in OWN:
            status, note = "skipped", f"{error.name} is not installed"
        else:
            tally.holds("the check itself", f"it ran ({type(error).__name__}: {error})", False)
    if not status:
        tally.holds("the check itself", "it compared something", tally.compared > 0)
        tally.compared -= 1
        status = "FAIL" if tally.wrong else "pass"
    return Result(item, status, tally, time.perf_counter() - start, note)
