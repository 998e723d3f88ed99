"""Simple ways to play Kuhn poker, by name: opponents to measure a policy or a person against."""

from __future__ import annotations

from types import MappingProxyType

from kuhn_bridge.policy import TabularPolicy
from kuhn_bridge.rules import PLAYERS

# One row per card, J Q K, the same in both seats: percent of check, bet; fold, call.
STYLES = MappingProxyType(
    {
        "random": ((50, 50, 50, 50),) * 3,
        "heuristic": ((100, 0, 100, 0), (100, 0, 0, 100), (0, 100, 0, 100)),  # never bluffs
        "always-bet": ((0, 100, 0, 100),) * 3,  # and calls
        "always-check": ((100, 0, 100, 0),) * 3,  # and folds
    }
)


def style(name: str) -> TabularPolicy:
    """The policy called `name` in `STYLES`."""
    return TabularPolicy.from_percentages([STYLES[name]] * len(PLAYERS))
