"""The list of checks: each has a name, a group and a line that says what it compares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from algorithms.games import Game
from parity.tally import MAX_CASES, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of the command that checks depend on."""

    quick: bool = False
    model: Path | None = None
    game: Game | None = None


class Skipped(Exception):  # noqa: N818  # an outcome, not an error
    """A check cannot run here, for a reason that is not a mismatch."""


class KnownFault(Exception):  # noqa: N818  # an outcome, not an error
    """A check saw the upstream fault that it watches."""


Body: TypeAlias = Callable[..., None]
"""Takes a tally and settings; what it checks are keyword arguments, so that tests can replace it
by something wrong."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table."""

    name: str
    group: str
    title: str
    body: Body


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a check: `status` is pass, FAIL, skipped or known."""

    check: Check
    status: str
    tally: Tally
    seconds: float
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON; an infinite deviation is null."""
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


OWN_PACKAGES = ("kuhn_bridge", "algorithms", "parity")
GAME, NATIVE = "game", "native"
GROUPS = ("rules", "faces", "algorithms", "policies", GAME, NATIVE)
CHECKS: dict[str, Check] = {}
GAME_CHECKS: dict[str, Check] = {}  # of `--game`, for games with a tree
NATIVE_CHECKS: dict[str, Check] = {}  # of `--game`, for games with a native form


def check(name: str, group: str, title: str) -> Callable[[Body], Body]:
    """Register a function as a check; those of `game` and `native` are the checks of `--game`."""
    checks = {GAME: GAME_CHECKS, NATIVE: NATIVE_CHECKS}.get(group, CHECKS)

    def register(body: Body) -> Body:
        checks[name] = Check(name, group, title, body)
        return body

    return register


def run(item: Check, settings: Settings, *, max_cases: int = MAX_CASES, **subject: Any) -> Result:
    """Run one check; an exception counts as a mismatch.

    Args:
        item: the check.
        settings: the options of the command.
        max_cases: how many cases are described.
        subject: what to check instead of our own implementation.
    """
    tally, status, note = Tally(max_cases=max_cases), "", ""
    start = time.perf_counter()
    try:
        item.body(tally, settings, **subject)
    except Skipped as reason:
        status, note = "skipped", str(reason)
    except KnownFault as fault:
        status, note = "known", str(fault)
    except Exception as error:  # a check that breaks must not pass
        package = str(getattr(error, "name", "")).split(".")[0]
        if isinstance(error, ModuleNotFoundError) and package not in OWN_PACKAGES:
            status, note = "skipped", f"{error.name} is not installed"
        else:
            tally.fail(f"the check raised {type(error).__name__}: {error}")
    if not status:
        if not tally.compared:
            tally.fail("the check compared nothing")
        status = "FAIL" if tally.wrong else "pass"
    return Result(item, status, tally, time.perf_counter() - start, note)
