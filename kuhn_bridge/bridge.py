"""The bridge: our action IDs, OpenSpiel's Pass and Bet, the literature's letters, and words.

OpenSpiel's `kuhn_poker` has two actions whose meaning depends on whether the player faces a
bet; ours has three that do not:

| ours | not facing a bet | facing a bet |
|---|---|---|
| `CHECK_OR_CALL` | Pass (0) | Bet (1) |
| `BET` | Bet (1) | illegal |
| `FOLD` | illegal | Pass (0) |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from kuhn_bridge.errors import (
    ActionError,
    BridgeError,
    CardError,
    HistoryError,
    IllegalActionError,
    printable,
    short_repr,
)
from kuhn_bridge.rules import (
    BETTING,
    DECISIONS,
    PLAYERS,
    Action,
    Betting,
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
LONGEST = max(len(letters) for letters in BETTING)

_TO_OPENSPIEL = {
    (Action.CHECK_OR_CALL, False): PASS,
    (Action.BET, False): BET,
    (Action.FOLD, True): PASS,
    (Action.CHECK_OR_CALL, True): BET,
}
_FROM_OPENSPIEL = {(theirs, faces): ours for (ours, faces), theirs in _TO_OPENSPIEL.items()}


def to_openspiel(action: Any, facing_bet: bool) -> int:
    """OpenSpiel's ID (0 = Pass, 1 = Bet) of one of our actions."""
    ours, faces = as_action(action), _as_bool(facing_bet)
    try:
        return _TO_OPENSPIEL[ours, faces]
    except KeyError:
        where = "facing a bet" if faces else "without a bet to face"
        raise IllegalActionError(f"{ours.name} is illegal {where}") from None


def from_openspiel(action: Any, facing_bet: bool) -> Action:
    """Our action for OpenSpiel's ID (0 = Pass, 1 = Bet)."""
    faces = _as_bool(facing_bet)
    try:
        return _FROM_OPENSPIEL[as_action(action).value, faces]
    except (ActionError, KeyError):
        raise ActionError(
            f"{short_repr(action)} is not an OpenSpiel action; 0 = Pass, 1 = Bet"
        ) from None


def words_to_letters(words: Iterable[str]) -> str:
    """`("check", "bet")` -> `"pb"`."""
    return _matching(
        _first(words, LONGEST + 1), {row.words: row.letters for row in BETTING.values()}
    )


def letters_to_words(letters: str) -> tuple[str, ...]:
    """`"pb"` -> `("check", "bet")`."""
    return betting(letters).words


def actions_to_letters(actions: Iterable[Any]) -> str:
    """`(CHECK_OR_CALL, BET)` -> `"pb"`."""
    return _matching(tuple(map(as_action, _first(actions, LONGEST + 1))), _LETTERS_OF_ACTIONS)


def letters_to_actions(letters: str) -> tuple[Action, ...]:
    """`"pb"` -> `(CHECK_OR_CALL, BET)`."""
    return _ACTIONS_OF_LETTERS[betting(letters).letters]


def state_to_openspiel(state: State) -> tuple[int, ...]:
    """OpenSpiel's history of a state: both cards, then Pass and Bet, e.g. `(2, 0, 0, 1)`."""
    return (*map(int, state.cards), *map(LETTERS.index, state.letters))


def state_from_openspiel(history: Iterable[Any]) -> State:
    """The state of an OpenSpiel history in which both cards are dealt."""
    moves = _first(history, len(PLAYERS) + LONGEST + 1)
    if len(moves) < len(PLAYERS):
        raise HistoryError(
            f"{short_repr(list(moves))} is not a dealt hand; it starts with two cards"
        )
    state = State.new(*moves[: len(PLAYERS)])
    for move in moves[len(PLAYERS) :]:
        state = state.act(from_openspiel(move, BETTING[state.letters].faces_bet))
    return state


def information_state(card: Any, letters: str) -> str:
    """OpenSpiel's name of what the holder of `card` knows after `letters`, e.g. `"2pb"`."""
    return f"{int(as_card(card))}{betting(letters).letters}"


def parse_information_state(name: str) -> tuple[Card, str]:
    """The card and letters of a decision, e.g. `"2pb"` -> `(Card.K, "pb")`."""
    if not isinstance(name, str) or name not in INFORMATION_STATES:
        known = ", ".join(INFORMATION_STATES)
        raise HistoryError(f"{short_repr(name)} is not an information state; they are {known}")
    return Card(int(name[0])), name[1:]


class KuhnPoker:
    """The rulebook in letters: histories of `p` (pass) and `b` (bet), cards 0..2."""

    def is_terminal(self, history: str) -> bool:
        """Whether the hand is over."""
        return betting(history).is_terminal

    def get_current_player(self, history: str) -> int:
        """Who is to act, 0 or 1."""
        actor = betting(history).actor
        if actor is None:
            raise HistoryError(f"nobody acts after {history!r}: the hand is over")
        return actor

    def get_payoff(self, cards: Sequence[Any], history: str) -> int:
        """What player_0 wins, in chips, when a hand is over."""
        row = betting(history)
        if not row.is_terminal:
            raise HistoryError(f"nobody is paid after {history!r}: the hand is not over")
        return payoff(_dealt(cards), row)[0]


def _dealt(cards: Sequence[Any]) -> tuple[Card, Card]:
    """A deal in the rulebook's own cards, which are numbers only."""
    if isinstance(cards, (list, tuple)) and any(isinstance(card, str) for card in cards):
        raise CardError(f"{short_repr(cards)} is not a deal of the rulebook; its cards are 0, 1, 2")
    return as_deal(cards)


def _as_bool(facing_bet: Any) -> bool:
    try:
        return bool(facing_bet)
    except (TypeError, ValueError):  # an array is neither
        raise BridgeError(f"facing_bet is true or false; got {short_repr(facing_bet)}") from None


def _first(items: Any, most: int) -> tuple[Any, ...]:
    """The first `most` items, in order: one more than fits is enough to tell that they do not."""
    if isinstance(items, (str, bytes, Set, Mapping)):
        raise HistoryError(f"{short_repr(items)} is not a history; give its moves as a list")
    try:
        return tuple(islice(items, most))
    except TypeError:
        raise HistoryError(
            f"{short_repr(items)} is not a history; give its moves as a list"
        ) from None


def _matching(key: tuple[Any, ...], table: Mapping[tuple[Any, ...], str]) -> str:
    try:
        return table[key]
    except (KeyError, TypeError):
        told = ", ".join(map(printable, key))
        raise HistoryError(f"[{told[:80]}] is not a history of the game") from None


def _actions_to(row: Betting) -> tuple[Action, ...]:
    """The actions that lead to a row, found in the table itself."""
    for parent in BETTING.values():
        for action, letters in parent.after.items():
            if letters == row.letters:
                return (*_actions_to(parent), action)
    return ()


_ACTIONS_OF_LETTERS = {row.letters: _actions_to(row) for row in BETTING.values()}
_LETTERS_OF_ACTIONS = {actions: letters for letters, actions in _ACTIONS_OF_LETTERS.items()}
INFORMATION_STATES = tuple(information_state(card, row) for row in DECISIONS for card in Card)
