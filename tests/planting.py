"""Plant an error in what a check of `parity.check` compares, and require that it fails."""

from unittest.mock import patch

from algorithms.games import kuhn

# importing them registers the checks
from parity import faces, games, native, policies, rules, solvers  # noqa: F401
from parity.registry import CHECKS, GAME_CHECKS, NATIVE_CHECKS, Settings, run

QUICK = Settings(quick=True)


def failures(row, subject, *, game=None):
    """The cases that a check describes when `subject` replaces names of the check's module."""
    item = (CHECKS if game is None else GAME_CHECKS | NATIVE_CHECKS)[row]
    with patch.dict(item.body.__globals__, subject):
        tally = run(item, Settings(quick=True, game=game or kuhn()), max_cases=10**6)
    assert tally.status == "FAIL"
    return tally.cases
