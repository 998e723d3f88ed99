"""Plant an error in what a check of `parity.check` compares, and require that it fails."""

from types import SimpleNamespace

from algorithms import nashconv
from algorithms.games import kuhn

# importing them registers the checks
from parity import gambit, policies  # noqa: F401
from parity.registry import CHECKS, GAME_CHECKS, NATIVE_CHECKS, Settings, run

QUICK = Settings(quick=True)


def failures(row, subject, *, game=None):
    """The cases that a check describes when `subject` replaces our own implementation."""
    item = (CHECKS if game is None else GAME_CHECKS | NATIVE_CHECKS)[row]
    settings = Settings(quick=True, game=game or kuhn())
    tally = run(item, settings, max_cases=10**6, **subject)
    assert tally.status == "FAIL"
    return tally.cases


def measured(**changes):
    """A measure of which some attributes are wrong."""

    def evaluate(tree, table):
        right = nashconv.evaluate_policy(tree, table)
        names = ("nash_conv", "gains", "values", "best_values", "best_responses")
        return SimpleNamespace(**({name: getattr(right, name) for name in names} | changes))

    return {"evaluate": evaluate}
