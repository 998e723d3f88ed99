"""Leduc poker with labels in words instead of OpenSpiel's information state strings."""

import re
from collections.abc import Sequence

from algorithms.games.game import Game

RANKS = "JQKA"  # of up to three players: n players have n + 1 ranks
SUITS = "♠♥"
_STATE = re.compile(  # card, board, and the actions of both rounds
    r"\[Private: (\d+)\].*?(?:\[Public: (\d+)\])?\[Round1: ([\d ]*)\]\[Round2: ([\d ]*)\]"
)


class LeducGame(Game):
    """Leduc poker of two or three players; under `suit_isomorphism` cards have no suits."""

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 with K♠ after check-raise`."""
        card, board, first, second = _STATE.findall(self.tree.keys[infoset])[0]
        who = f"player_{self.tree.owner[infoset]} with {self._card(int(card))}"
        if not board:
            return f"{who} after {_words(first)}" if first else f"{who} to start"
        where = f"board {self._card(int(board))}, round 1 {_words(first)}"
        return f"{who}, {where}, round 2 {_words(second) or 'to start'}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """`fold`, `check` or `call`, `raise`."""
        _, board, first, second = _STATE.findall(self.tree.keys[infoset])[0]
        return _word(action, second if board else first)

    def _chance_labels(self, history: Sequence[int], outcomes: Sequence[int]) -> list[str]:
        """One card to each player, then the board."""
        dealt = len(history)
        to = f"player_{dealt} gets" if dealt < self.num_players else "board"
        return [f"{to} {self._card(card)}" for card in outcomes]

    def _card(self, number: int) -> str:
        """A card, e.g. `K♠`: ranks are two cards each, one per suit."""
        if self.origin.get_parameters()["suit_isomorphism"]:
            return RANKS[number]
        return f"{RANKS[number // 2]}{SUITS[number % 2]}"


def _word(action: int, before: str) -> str:
    """An action after others of a round: a call before anybody has raised is a check."""
    return ("fold", "call" if "2" in before else "check", "raise")[action]


def _words(actions: str) -> str:
    """A round of betting, e.g. `check-raise-call`."""
    return "-".join(_word(int(actions[i]), actions[:i]) for i in range(0, len(actions), 2))
