"""Kuhn's equilibria in closed form, and exact values of Kuhn policies in fractions.

The equilibria are a family of policies of player_0, with alpha from 0 to 1/3, and one policy of
player_1 (H. W. Kuhn, A simplified two-person poker, 1950). At alpha = 1/3 player_0 never checks K,
so its response with K to a bet after a check is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
# The probability of betting, or of calling a bet: a constant and the coefficient of alpha.
_BET_OR_CALL: Mapping[str, tuple[Fraction, int]] = {
    "0": (Fraction(0), 1),
    "1": (Fraction(0), 0),
    "2": (Fraction(0), 3),
    "0p": (_THIRD, 0),
    "1p": (Fraction(0), 0),
    "2p": (Fraction(1), 0),
    "0b": (Fraction(0), 0),
    "1b": (_THIRD, 0),
    "2b": (Fraction(1), 0),
    "0pb": (Fraction(0), 0),
    "1pb": (_THIRD, 1),
    "2pb": (Fraction(1), 0),
}
_FREE_AT_LARGEST = INFORMATION_STATES.index("2pb")


@dataclass(frozen=True, slots=True)
class Certificate:
    """player_0's value of a policy, and each player's best-response gain, as fractions."""

    value: Fraction
    gains: tuple[Fraction, Fraction]

    @property
    def nash_conv(self) -> Fraction:
        """0 for an equilibrium."""
        return sum(self.gains, Fraction(0))


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
    return {
        name: _row(name, constant + slope * alpha)
        for name, (constant, slope) in _BET_OR_CALL.items()
    }


def nash(alpha: Fraction | float) -> Float64Array:
    """Kuhn's equilibrium for `alpha` in [0, 1/3]: float64 `(12, 3)`."""
    return from_exact(exact_nash(Fraction(alpha)))


def from_exact(policy: Exact) -> Float64Array:
    """The table `(12, 3)` of a policy in fractions, rounded to floats."""
    return np.array(
        [[float(policy[name].get(a, 0)) for a in Action] for name in INFORMATION_STATES]
    )


def certify(policy: Exact) -> Certificate:
    """Value and best-response gains of a policy in fractions, without floating point."""

    def value(seat: int, choose: _Choice) -> Fraction:
        hands = [_hands(seat, card) for card in Card]
        return sum((_exact_value(same, seat, policy, choose) for same in hands), Fraction(0))

    values = [value(seat, _expectation(policy)) for seat in PLAYERS]
    best = [value(seat, _maximum) for seat in PLAYERS]
    return Certificate(values[0], (best[0] - values[0], best[1] - values[1]))


def move_costs(policy: Exact) -> dict[str, dict[Action, Fraction]]:
    """What each action loses against `policy` compared with the best action, in chips.

    The average over the hands that reach the information state, with best play afterwards; 0 where
    `policy` never lets the player arrive.
    """
    costs: dict[str, dict[Action, Fraction]] = {}

    def best(name: str, outcomes: Mapping[Action, Fraction], reach: Fraction) -> Fraction:
        highest = max(outcomes.values())
        costs[name] = {action: (highest - v) / (reach or 1) for action, v in outcomes.items()}
        return highest

    for seat in PLAYERS:
        for card in Card:
            _exact_value(_hands(seat, card), seat, policy, best)
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
    candidates = [(share / 3, low + share * (high - low)), (1 / 3, free)]
    alpha, closest = min(candidates, key=lambda pair: _norm(table - pair[1]))
    return Nearest(closest, alpha, _norm(table - closest))


def _row(name: str, bet_or_call: Fraction) -> dict[Action, Fraction]:
    if BETTING[name[1:]].faces_bet:
        return {Action.CHECK_OR_CALL: bet_or_call, Action.FOLD: 1 - bet_or_call}
    return {Action.CHECK_OR_CALL: 1 - bet_or_call, Action.BET: bet_or_call}


def _norm(difference: Float64Array) -> float:
    return float(np.linalg.norm(difference))


_Hands: TypeAlias = Sequence[tuple[State, Fraction]]
# (information state, value of each action, reach probability of chance and opponent) -> value
_Choice: TypeAlias = Callable[[str, Mapping[Action, Fraction], Fraction], Fraction]


def _hands(seat: int, card: Card) -> _Hands:
    """The deals in which `seat` holds `card`, each with its probability."""
    chance = Fraction(1, len(DEALS))
    return [(State.new(*deal), chance) for deal in DEALS if deal[seat] is card]


def _exact_value(hands: _Hands, seat: int, policy: Exact, choose: _Choice) -> Fraction:
    """The counterfactual value for `seat` of hands that it cannot distinguish.

    Hands come with the probability that chance and the opponent play to them.
    """
    state = hands[0][0]
    if state.is_terminal:
        return sum((weight * hand.returns[seat] for hand, weight in hands), Fraction(0))

    def after(action: Action) -> Fraction:
        played = [
            (
                hand.act(action),
                weight if state.actor == seat else weight * _probabilities(policy, hand)[action],
            )
            for hand, weight in hands
        ]
        return _exact_value(played, seat, policy, choose)

    outcomes = {action: after(action) for action in state.legal_actions}
    if state.actor != seat:
        return sum(outcomes.values(), Fraction(0))
    reach = sum((weight for _, weight in hands), Fraction(0))
    return choose(information_state(state.cards[seat], state.letters), outcomes, reach)


def _probabilities(policy: Exact, hand: State) -> Mapping[Action, Fraction]:
    return policy[information_state(hand.cards[hand.actor or 0], hand.letters)]


def _expectation(policy: Exact) -> _Choice:
    return lambda name, outcomes, _: sum(
        (policy[name][action] * value for action, value in outcomes.items()), Fraction(0)
    )


def _maximum(_: str, outcomes: Mapping[Action, Fraction], __: Fraction) -> Fraction:
    return max(outcomes.values())
