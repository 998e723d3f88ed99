"""Conversions between our action IDs, OpenSpiel's Pass and Bet, letters, and words.

The meaning of the two actions of OpenSpiel's `kuhn_poker` depends on whether the player faces a
bet; the meaning of our three does not:

| ours | not facing a bet | facing a bet |
|---|---|---|
| `CHECK_OR_CALL` | Pass (0) | Bet (1) |
| `BET` | Bet (1) | illegal |
| `FOLD` | illegal | Pass (0) |
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kuhn_bridge.errors import ActionError, HistoryError, IllegalActionError, short_repr
from kuhn_bridge.rules import (
    BETTING,
    DECISIONS,
    PLAYERS,
    Action,
    Card,
    as_action,
    as_card,
    as_deal,
    betting,
    payoff,
)
from kuhn_bridge.state import State

PASS, BET = 0, 1
LETTERS = "pb"
LONGEST = max(len(letters) for letters in BETTING)  # moves of a hand

_TO_OPENSPIEL = {
    (Action.CHECK_OR_CALL, False): PASS,
    (Action.BET, False): BET,
    (Action.FOLD, True): PASS,
    (Action.CHECK_OR_CALL, True): BET,
}
_FROM_OPENSPIEL = {(theirs, faces): ours for (ours, faces), theirs in _TO_OPENSPIEL.items()}


def to_openspiel(action: Any, facing_bet: bool) -> int:
    """OpenSpiel's ID (0 = Pass, 1 = Bet) of one of our actions."""
    ours = as_action(action)
    try:
        return _TO_OPENSPIEL[ours, facing_bet]
    except KeyError:
        where = "facing a bet" if facing_bet else "without a bet to face"
        raise IllegalActionError(f"{ours.name} is illegal {where}") from None


def from_openspiel(action: Any, facing_bet: bool) -> Action:
    """Our action for OpenSpiel's ID (0 = Pass, 1 = Bet)."""
    try:
        return _FROM_OPENSPIEL[as_action(action).value, facing_bet]
    except (ActionError, KeyError):
        raise ActionError(
            f"{short_repr(action)} is not an OpenSpiel action; 0 = Pass, 1 = Bet"
        ) from None


def words_to_letters(words: Iterable[str]) -> str:
    """`("check", "bet")` -> `"pb"`."""
    return _look_up(_LETTERS_OF_WORDS, words)


def letters_to_words(letters: str) -> tuple[str, ...]:
    """`"pb"` -> `("check", "bet")`."""
    return betting(letters).words


def actions_to_letters(actions: Iterable[Any]) -> str:
    """`(CHECK_OR_CALL, BET)` -> `"pb"`."""
    return _look_up(_LETTERS_OF_ACTIONS, map(as_action, actions))


def letters_to_actions(letters: str) -> tuple[Action, ...]:
    """`"pb"` -> `(CHECK_OR_CALL, BET)`."""
    return _ACTIONS_OF_LETTERS[betting(letters).letters]


def state_to_openspiel(state: State) -> tuple[int, ...]:
    """The OpenSpiel history of a state: both cards, then Pass and Bet, e.g. `(2, 0, 0, 1)`."""
    return (*map(int, state.cards), *map(LETTERS.index, state.letters))


def state_from_openspiel(history: Iterable[Any]) -> State:
    """The state of an OpenSpiel history that contains both cards."""
    moves = list(history)
    if len(moves) < len(PLAYERS):
        raise HistoryError(f"{moves} is not a dealt hand; it starts with two cards")
    state = State.new(*moves[: len(PLAYERS)])
    for move in moves[len(PLAYERS) :]:
        state = state.act(from_openspiel(move, BETTING[state.letters].faces_bet))
    return state


def information_state(card: Any, letters: str) -> str:
    """OpenSpiel's information state of the holder of `card` after `letters`, e.g. `"2pb"`."""
    return f"{int(as_card(card))}{betting(letters).letters}"


def parse_information_state(name: str) -> tuple[Card, str]:
    """The card and letters of a decision, e.g. `"2pb"` -> `(Card.K, "pb")`."""
    if name not in INFORMATION_STATES:
        known = ", ".join(INFORMATION_STATES)
        raise HistoryError(f"{short_repr(name)} is not an information state; they are {known}")
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


def _look_up(table: Mapping[tuple[Any, ...], str], moves: Iterable[Any]) -> str:
    """The letters of a history that is given by its moves."""
    key = tuple(moves)
    try:
        return table[key]
    except KeyError:
        raise HistoryError(f"{short_repr(list(key))} is not a history of the game") from None


_LETTERS_OF_WORDS = {row.words: row.letters for row in BETTING.values()}
_ACTIONS_OF_LETTERS: dict[str, tuple[Action, ...]] = {"": ()}
for _row in BETTING.values():  # each row comes after the one that leads to it
    for _action, _letters in _row.after.items():
        _ACTIONS_OF_LETTERS[_letters] = (*_ACTIONS_OF_LETTERS[_row.letters], _action)
_LETTERS_OF_ACTIONS = {actions: letters for letters, actions in _ACTIONS_OF_LETTERS.items()}
INFORMATION_STATES = tuple(information_state(card, row) for row in DECISIONS for card in Card)
