"""Leduc poker with labels in words instead of OpenSpiel's information state strings."""

import re
from collections.abc import Sequence

from algorithms.games.game import Game

RANKS = "JQKA"  # of up to three players: n players have n + 1 ranks
SUITS = "♠♥"
FOLD, CALL, RAISE = range(3)
_STATE = re.compile(
    r"\[Observer: \d+\]\[Private: (?P<card>\d+)\].*?(?:\[Public: (?P<board>\d+)\])?"
    r"\[Round1: (?P<first>[\d ]*)\]\[Round2: (?P<second>[\d ]*)\]"
)


class LeducGame(Game):
    """Leduc poker of two or three players; under `suit_isomorphism` cards have no suits."""

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 with K♠ after check-raise`."""
        card, board, first, second = self._state(infoset)
        who = f"player_{self.tree.owner[infoset]} with {self._card(int(card))}"
        if board is None:
            return f"{who} after {_words(first)}" if first else f"{who} to start"
        where = f"board {self._card(int(board))}, round 1 {_words(first)}"
        return f"{who}, {where}, round 2 {_words(second) or 'to start'}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """`fold`, `check` or `call`, `raise`."""
        _, board, first, second = self._state(infoset)
        return _word(action, first if board is None else second)

    def _chance_labels(self, history: Sequence[int], outcomes: Sequence[int]) -> list[str]:
        """One card to each player, then the board."""
        dealt = len(history)
        to = f"player_{dealt} gets" if dealt < self.num_players else "board"
        return [f"{to} {self._card(card)}" for card in outcomes]

    def _state(self, infoset: int) -> tuple[str, str | None, str, str]:
        """Card, board, and the actions of both rounds."""
        found = _STATE.match(self.tree.keys[infoset])
        assert found is not None  # noqa: S101  # OpenSpiel writes every string of this game so
        return found["card"], found["board"], found["first"], found["second"]

    def _card(self, number: int) -> str:
        """A card, e.g. `K♠`: ranks are two cards each, one per suit."""
        if self.origin.get_parameters()["suit_isomorphism"]:
            return RANKS[number]
        return f"{RANKS[number // 2]}{SUITS[number % 2]}"


def _word(action: int, before: str) -> str:
    """A call before anybody has raised in a round is a check."""
    if action == CALL:
        return "call" if str(RAISE) in before else "check"
    return "fold" if action == FOLD else "raise"


def _words(actions: str) -> str:
    """A round of betting, e.g. `check-raise-call`."""
    return "-".join(_word(int(actions[i]), actions[:i]) for i in range(0, len(actions), 2))
