"""The rules of Kuhn poker: three enums and one table of nine betting histories.

Phase, actor, legal actions, stake and winner are looked up in `BETTING` and computed nowhere else,
so they cannot disagree.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import permutations
from typing import Any, TypeVar

from kuhn_bridge import errors
from kuhn_bridge.errors import short_repr

PLAYERS = (0, 1)
AGENTS = ("player_0", "player_1")


class Card(IntEnum):
    """The deck, lowest first."""

    J = 0
    Q = 1
    K = 2


class Action(IntEnum):
    """Action IDs. They never change, because trained models depend on them."""

    CHECK_OR_CALL = 0
    BET = 1
    FOLD = 2


class Phase(IntEnum):
    """The phase of a hand; `label` is its name in text."""

    DEAL = 0
    P0_ACT = 1
    P1_ACT = 2
    P1_RESPONSE = 3
    P0_RESPONSE = 4
    TERMINAL = 5

    @property
    def label(self) -> str:
        """The name in lower case, e.g. `p0_act`."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Betting:
    """One row of the betting table: a public history, its phase, actor, legal actions and stake.

    `after` maps each legal action to the letters of the next history. In terminal histories `stake`
    is what the loser pays, and `winner` is the player who gets it; `None` means a showdown, which
    the higher card wins.
    """

    letters: str
    words: tuple[str, ...]
    phase: Phase
    actor: int | None
    after: Mapping[Action, str] = field(default_factory=dict)
    stake: int = 0
    winner: int | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self.phase is Phase.TERMINAL

    @property
    def faces_bet(self) -> bool:
        """Whether the player to act must call or fold."""
        return Action.FOLD in self.after


_CHECK_OR_CALL, _BET, _FOLD = Action

_ROWS = (
    Betting("", (), Phase.P0_ACT, 0, {_CHECK_OR_CALL: "p", _BET: "b"}),
    Betting("p", ("check",), Phase.P1_ACT, 1, {_CHECK_OR_CALL: "pp", _BET: "pb"}),
    Betting("b", ("bet",), Phase.P1_RESPONSE, 1, {_CHECK_OR_CALL: "bb", _FOLD: "bp"}),
    Betting("pb", ("check", "bet"), Phase.P0_RESPONSE, 0, {_CHECK_OR_CALL: "pbb", _FOLD: "pbp"}),
    Betting("pp", ("check", "check"), Phase.TERMINAL, None, stake=1),
    Betting("bp", ("bet", "fold"), Phase.TERMINAL, None, stake=1, winner=0),
    Betting("bb", ("bet", "call"), Phase.TERMINAL, None, stake=2),
    Betting("pbp", ("check", "bet", "fold"), Phase.TERMINAL, None, stake=1, winner=1),
    Betting("pbb", ("check", "bet", "call"), Phase.TERMINAL, None, stake=2),
)

BETTING: Mapping[str, Betting] = {row.letters: row for row in _ROWS}
DECISIONS = tuple(row.letters for row in _ROWS if not row.is_terminal)
ENDINGS = tuple(row.letters for row in _ROWS if row.is_terminal)
DEALS = tuple(permutations(Card, 2))
_CARDS = {card.name: card for card in Card}


def betting(letters: str) -> Betting:
    """The row of a public history, e.g. `"pb"`."""
    if isinstance(letters, str) and letters in BETTING:
        return BETTING[letters]
    known = ", ".join(map(repr, BETTING))
    raise errors.HistoryError(f"{short_repr(letters)} is not a history; the histories are {known}")


_T = TypeVar("_T")


def _converted(
    value: Any, kind: Callable[[int], _T], error: type[errors.BridgeError], expected: str
) -> _T:
    """`kind` of an integer, numpy's included; a bool or a member of another enum is a mistake."""
    try:
        if isinstance(value, (bool, Enum)) and type(value) is not kind:
            raise TypeError
        return kind(operator.index(value))
    except (TypeError, ValueError):
        raise error(f"{short_repr(value)} is not {expected}") from None


def as_card(value: Any) -> Card:
    """A card from a `Card`, an index 0..2 or a name `"J"`, `"Q"`, `"K"`."""
    if isinstance(value, str) and value in _CARDS:
        return _CARDS[value]
    return _converted(value, Card, errors.CardError, "a card; the cards are J, Q, K or 0, 1, 2")


def as_deal(cards: Any) -> tuple[Card, Card]:
    """Two different cards, player_0's first."""
    ordered = isinstance(cards, Iterable) and not isinstance(cards, (str, Set))
    held = [*cards] if ordered else []
    if len(held) != len(PLAYERS):
        raise errors.CardError(f"{short_repr(cards)} is not a deal; a deal is e.g. ('K', 'J')")
    card0, card1 = map(as_card, held)
    if card0 is card1:
        raise errors.CardError(f"both players hold {card0.name}; the deck has one of each card")
    return card0, card1


def as_action(value: Any) -> Action:
    """The action of an integer ID."""
    expected = "an action ID; the IDs are 0 = CHECK_OR_CALL, 1 = BET, 2 = FOLD"
    return _converted(value, Action, errors.ActionError, expected)


def as_seat(value: Any) -> int:
    """A seat, 0 or 1."""
    return _converted(value, PLAYERS.index, errors.SeatError, "a seat; the seats are 0 and 1")


def as_seed(value: Any) -> int:
    """A seed: a whole number from 0 up."""
    return _converted(value, _natural, errors.BridgeError, "a seed: a whole number from 0 up")


def _natural(number: int) -> int:
    if number < 0:
        raise ValueError
    return number


def payoff(cards: tuple[Card, Card], row: Betting) -> tuple[int, int]:
    """Net chips of both players; (0, 0) before the end."""
    winner = row.winner if row.winner is not None else int(cards[1] > cards[0])
    return (row.stake, -row.stake) if winner == 0 else (-row.stake, row.stake)
