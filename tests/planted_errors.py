"""Plant an error in what a check of `parity.check` compares, and require that it fails."""

from types import SimpleNamespace

from algorithms.compiled import nashconv
from algorithms.games import kuhn
from parity.algorithms import ALGORITHMS
from parity.gambit import GAMBIT
from parity.kuhn_adapters import ADAPTERS
from parity.kuhn_rules import RULES
from parity.large_games import LARGE_GAMES
from parity.policies import POLICIES
from parity.registry import CheckSettings, run
from parity.tree_games import TREE_GAMES

QUICK = CheckSettings(quick=True)
KUHN_GROUPS = (RULES, ADAPTERS, ALGORITHMS, POLICIES, GAMBIT)
KUHN_CHECKS = {name: check for group in KUHN_GROUPS for name, check in group.checks.items()}
TREE_CHECKS = TREE_GAMES.checks
LARGE_CHECKS = LARGE_GAMES.checks
EVERY_CASE = 10**6


def failures(name, implementation, *, game=None):
    """The mismatches that a check describes on a wrong implementation, or on a wrong game."""
    checks = KUHN_CHECKS if game is None else TREE_CHECKS | LARGE_CHECKS
    settings = CheckSettings(quick=True, game=game or kuhn())
    tally = run(checks[name], settings, max_cases=EVERY_CASE, **implementation)
    assert tally.status == "FAIL"
    return tally.cases


def measured(**changes):
    """Measures of which some attributes are wrong."""

    def evaluate(tree, table):
        measure = nashconv.evaluate_policy(tree, table)
        names = ("nash_conv", "gains", "values", "best_values", "best_responses")
        attributes = {name: getattr(measure, name) for name in names}
        return SimpleNamespace(**(attributes | changes))

    return {"evaluate": evaluate}
