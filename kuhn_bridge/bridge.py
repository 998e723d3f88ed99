"""Conversions between our action IDs, OpenSpiel's Pass and Bet, and letters.

The meaning of the two actions of OpenSpiel's `kuhn_poker` depends on whether the player faces a
bet; the meaning of our three does not:

| ours | not facing a bet | facing a bet |
|---|---|---|
| `CHECK_OR_CALL` | Pass (0) | Bet (1) |
| `BET` | Bet (1) | illegal |
| `FOLD` | illegal | Pass (0) |
"""

from collections.abc import Sequence
from typing import Any

from kuhn_bridge.errors import ActionError, HistoryError, IllegalActionError, short_repr
from kuhn_bridge.rules import DECISIONS, Action, Card, as_action, as_card, as_deal, betting, payoff

PASS = 0
BET = 1
LETTERS = "pb"
LONGEST = 3  # moves of a hand

_CHECK_OR_CALL, _BET, _FOLD = Action
_ACTIONS = {"check": _CHECK_OR_CALL, "call": _CHECK_OR_CALL, "bet": _BET, "fold": _FOLD}
_FROM_OPENSPIEL = {  # by OpenSpiel's action and whether the player faces a bet
    (PASS, False): _CHECK_OR_CALL,
    (BET, False): _BET,
    (PASS, True): _FOLD,
    (BET, True): _CHECK_OR_CALL,
}
_TO_OPENSPIEL = {(ours, faces): theirs for (theirs, faces), ours in _FROM_OPENSPIEL.items()}


def to_openspiel(action: Any, facing_bet: bool) -> int:
    """OpenSpiel's ID (0 = Pass, 1 = Bet) of one of our actions."""
    ours = as_action(action)
    try:
        return _TO_OPENSPIEL[ours, facing_bet]
    except KeyError:
        situation = "facing a bet" if facing_bet else "without a bet to face"
        raise IllegalActionError(f"{ours.name} is illegal {situation}") from None


def from_openspiel(action: Any, facing_bet: bool) -> Action:
    """Our action for OpenSpiel's ID (0 = Pass, 1 = Bet)."""
    try:
        return _FROM_OPENSPIEL[as_action(action).value, facing_bet]
    except (ActionError, KeyError):
        wrong = f"{short_repr(action)} is not an OpenSpiel action"
        raise ActionError(f"{wrong}; 0 = Pass, 1 = Bet") from None


def letters_to_actions(letters: str) -> tuple[Action, ...]:
    """`"pb"` -> `(CHECK_OR_CALL, BET)`."""
    return tuple(_ACTIONS[word] for word in betting(letters).words)


def information_state(card: Any, letters: str) -> str:
    """OpenSpiel's information state of the holder of `card` after `letters`, e.g. `"2pb"`."""
    return f"{int(as_card(card))}{betting(letters).letters}"


def parse_information_state(name: str) -> tuple[Card, str]:
    """The card and letters of a decision, e.g. `"2pb"` -> `(Card.K, "pb")`."""
    return Card(int(name[0])), name[1:]


class KuhnPoker:
    """The rulebook in letters: histories of `p` (pass) and `b` (bet), cards 0..2."""

    def is_terminal(self, history: str) -> bool:
        """Whether the hand is over."""
        return betting(history).is_terminal

    def get_current_player(self, history: str) -> int:
        """The player to act, 0 or 1."""
        actor = betting(history).actor
        if actor is None:
            raise HistoryError(f"nobody acts after {history!r}: the hand is over")
        return actor

    def get_payoff(self, cards: Sequence[Any], history: str) -> int:
        """The return of player_0 in a finished hand, in chips."""
        row = betting(history)
        if not row.is_terminal:
            raise HistoryError(f"there is no payoff after {history!r}: the hand is not over")
        return payoff(as_deal(cards), row)[0]


INFORMATION_STATES = tuple(information_state(card, row) for row in DECISIONS for card in Card)
