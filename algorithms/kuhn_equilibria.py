"""Kuhn's equilibria in closed form.

The equilibria are a family of policies of player_0, with alpha from 0 to 1/3, and one policy of
player_1 (H. W. Kuhn, A simplified two-person poker, 1950). At alpha = 1/3 player_0 never checks K,
so its response with K to a bet after a check is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import BETTING, Action

Exact: TypeAlias = Mapping[str, Mapping[Action, Fraction]]
VALUE = Fraction(-1, 18)
UNIFORM_NASH_CONV = Fraction(11, 12)
LARGEST_ALPHA = Fraction(1, 3)
_THIRD = Fraction(1, 3)
# By history, for J, Q and K: the probability of betting, or of calling a bet, as a constant and the
# coefficient of alpha.
_BET_OR_CALL: Mapping[str, tuple[tuple[Fraction | int, int], ...]] = {
    "": ((0, 1), (0, 0), (0, 3)),
    "p": ((_THIRD, 0), (0, 0), (1, 0)),
    "b": ((0, 0), (_THIRD, 0), (1, 0)),
    "pb": ((0, 0), (_THIRD, 1), (1, 0)),
}
_FREE_AT_LARGEST = INFORMATION_STATES.index("2pb")


@dataclass(frozen=True, slots=True)
class Nearest:
    """The equilibrium closest to a policy, and the Euclidean distance between the two tables."""

    table: Float64Array  # (12, 3)
    alpha: float
    distance: float


def exact_nash(alpha: Fraction) -> Exact:
    """Kuhn's equilibrium for `alpha` in [0, 1/3], as fractions."""
    if not 0 <= alpha <= LARGEST_ALPHA:
        raise PolicyError(f"alpha {alpha} is outside [0, 1/3]: not an equilibrium")
    policy = {}
    for name in INFORMATION_STATES:
        constant, slope = _BET_OR_CALL[name[1:]][int(name[0])]
        bet_or_call = constant + slope * alpha
        if BETTING[name[1:]].faces_bet:
            policy[name] = {Action.CHECK_OR_CALL: bet_or_call, Action.FOLD: 1 - bet_or_call}
        else:
            policy[name] = {Action.CHECK_OR_CALL: 1 - bet_or_call, Action.BET: bet_or_call}
    return policy


def nash(alpha: Fraction | float) -> Float64Array:
    """Kuhn's equilibrium for `alpha` in [0, 1/3]: float64 `(12, 3)`."""
    return from_exact(exact_nash(Fraction(alpha)))


def from_exact(policy: Exact) -> Float64Array:
    """The table `(12, 3)` of a policy in fractions, rounded to floats."""
    return np.array(
        [[float(policy[name].get(a, 0)) for a in Action] for name in INFORMATION_STATES]
    )


def nearest_nash(table: Float64Array) -> Nearest:
    """The equilibrium nearest to a table `(12, 3)`: its projection onto the family.

    At alpha = 1/3 the free response is the table's own.
    """
    low = nash(0)
    high = nash(LARGEST_ALPHA)
    projection = ((table - low) * (high - low)).sum() / ((high - low) ** 2).sum()
    share = min(max(float(projection), 0.0), 1.0)
    free = high.copy()
    free[_FREE_AT_LARGEST] = table[_FREE_AT_LARGEST]
    candidates = [(low + share * (high - low), share / 3), (free, 1 / 3)]
    equilibria = [
        Nearest(near, alpha, float(np.linalg.norm(table - near))) for near, alpha in candidates
    ]
    return min(equilibria, key=lambda one: one.distance)
