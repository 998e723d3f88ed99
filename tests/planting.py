"""Plant an error in what a check of `parity.check` compares, and require that it fails."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from algorithms.games import Game, kuhn

# importing them registers the checks
from parity import faces, games, native, policies, rules, selfplay, solvers  # noqa: F401
from parity.registry import CHECKS, GAME_CHECKS, NATIVE_CHECKS, Settings, run
from parity.sides import Side

QUICK = Settings(quick=True)


def failures(row: str, subject: Mapping[str, Any], *, game: Game | None = None) -> list[str]:
    """The cases that a check describes when `subject` replaces our own implementation."""
    checks = CHECKS if game is None else GAME_CHECKS | NATIVE_CHECKS
    settings = Settings(quick=True, game=game or kuhn())
    result = run(checks[row], settings, max_cases=10**6, **subject)
    assert result.status == "FAIL"
    return result.tally.cases


def changed_side(side: Side, **changes: Any) -> Side:
    """A side with other views: `returns=lambda deal, letters, view: ...`."""

    def view(deal: Any, letters: str) -> Any:
        right = side.view(deal, letters)
        new = {name: change(deal, letters, right) for name, change in changes.items()}
        return replace(right, **new)

    return replace(side, view=view)
