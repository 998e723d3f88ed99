"""Kuhn's equilibria in closed form, and the cost of every move against them in fractions.

The equilibria are a family of policies of player_0, with alpha from 0 to 1/3, and one policy of
player_1 (H. W. Kuhn, A simplified two-person poker, 1950). At alpha = 1/3 player_0 never checks K,
so its response with K to a bet after a check is free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES, information_state
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import BETTING, DEALS, PLAYERS, Action, Card
from kuhn_bridge.state import State

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
        bold = constant + slope * alpha
        if BETTING[name[1:]].faces_bet:
            policy[name] = {Action.CHECK_OR_CALL: bold, Action.FOLD: 1 - bold}
        else:
            policy[name] = {Action.CHECK_OR_CALL: 1 - bold, Action.BET: bold}
    return policy


def nash(alpha: Fraction | float) -> Float64Array:
    """Kuhn's equilibrium for `alpha` in [0, 1/3]: float64 `(12, 3)`."""
    return from_exact(exact_nash(Fraction(alpha)))


def from_exact(policy: Exact) -> Float64Array:
    """The table `(12, 3)` of a policy in fractions, rounded to floats."""
    return np.array(
        [[float(policy[name].get(a, 0)) for a in Action] for name in INFORMATION_STATES]
    )


def move_costs(policy: Exact) -> dict[str, dict[Action, Fraction]]:
    """The cost of each action against `policy` compared with the best action, in chips.

    It is the average over the hands that reach the information state, with best play afterwards; 0
    where `policy` never lets the player arrive.
    """
    costs: dict[str, dict[Action, Fraction]] = {}
    for seat in PLAYERS:
        for card in Card:
            hands = [(State.new(*deal), Fraction(1)) for deal in DEALS if deal[seat] is card]
            _add_costs(hands, seat, policy, costs)
    return {name: costs[name] for name in INFORMATION_STATES}


def nearest_nash(table: Float64Array) -> Nearest:
    """The equilibrium nearest to a table `(12, 3)`: its projection onto the family.

    At alpha = 1/3 the free response is the table's own.
    """
    low, high = nash(0), nash(LARGEST_ALPHA)
    projection = ((table - low) * (high - low)).sum() / ((high - low) ** 2).sum()
    share = min(max(float(projection), 0.0), 1.0)
    free = high.copy()
    free[_FREE_AT_LARGEST] = table[_FREE_AT_LARGEST]
    candidates = [(low + share * (high - low), share / 3), (free, 1 / 3)]
    found = [
        Nearest(near, alpha, float(np.linalg.norm(table - near))) for near, alpha in candidates
    ]
    return min(found, key=lambda one: one.distance)


def _add_costs(
    hands: Sequence[tuple[State, Fraction]],
    seat: int,
    policy: Exact,
    costs: dict[str, dict[Action, Fraction]],
) -> Fraction:
    """Add the costs at and below hands that `seat` cannot distinguish; their value by best play.

    Each hand comes with the probability that the opponent plays to it.
    """
    state = hands[0][0]
    if state.is_terminal:
        return sum((weight * hand.returns[seat] for hand, weight in hands), Fraction(0))
    values = {}
    for action in state.legal_actions:
        after = []
        for hand, weight in hands:
            theirs = policy[information_state(hand.cards[1 - seat], hand.letters)]
            probability = Fraction(1) if state.actor == seat else theirs[action]
            after.append((hand.act(action), weight * probability))
        values[action] = _add_costs(after, seat, policy, costs)
    if state.actor != seat:
        return sum(values.values(), Fraction(0))
    best, reach = max(values.values()), sum(weight for _, weight in hands)
    name = information_state(state.cards[seat], state.letters)
    costs[name] = {action: (best - value) / (reach or 1) for action, value in values.items()}
    return best
