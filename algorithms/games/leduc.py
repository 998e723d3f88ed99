"""Leduc poker with labels in words instead of OpenSpiel's information state strings."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from algorithms.games.game import PyspielGame
from algorithms.games.openspiel import OpenSpielGame

RANKS = "JQKA"  # of up to three players: n players have n + 1 ranks
SUITS = "♠♥"
_STATE = re.compile(  # card, board, and the actions of both rounds
    r"\[Private: (\d+)\].*?(?:\[Public: (\d+)\])?\[Round1: ([\d ]*)\]\[Round2: ([\d ]*)\]"
)


class _State(NamedTuple):
    """The parts of OpenSpiel's information state string."""

    card: int
    board: int | None  # in the second round
    first_round: str  # actions, e.g. "1 2"
    second_round: str


def is_leduc(game: PyspielGame) -> bool:
    """Whether this is Leduc poker with cards that `RANKS` can name."""
    return bool(game.get_type().short_name == "leduc_poker" and game.num_players() < len(RANKS))


class LeducGame(OpenSpielGame):
    """Leduc poker of two or three players; under `suit_isomorphism` cards have no suits."""

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 with K♠ after check-raise`."""
        state = self._parts(infoset)
        holder = f"player_{self.tree.owner[infoset]} with {self._card(state.card)}"
        if state.board is None:
            first = _words(state.first_round)
            return f"{holder} after {first}" if first else f"{holder} to start"
        board = f"board {self._card(state.board)}, round 1 {_words(state.first_round)}"
        return f"{holder}, {board}, round 2 {_words(state.second_round) or 'to start'}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """`fold`, `check` or `call`, `raise`."""
        self._require_infoset(infoset, action)
        state = self._parts(infoset)
        return _word(action, state.first_round if state.board is None else state.second_round)

    def _chance_labels(self, node: int, outcomes: Sequence[int]) -> list[str]:
        """One card to each player, then the board."""
        dealt = len(self.tree.history(node))
        to = f"player_{dealt} gets" if dealt < self.num_players else "board"
        return [f"{to} {self._card(card)}" for card in outcomes]

    def _parts(self, infoset: int) -> _State:
        self._require_infoset(infoset)
        [(card, board, first_round, second_round)] = _STATE.findall(self.tree.keys[infoset])
        return _State(int(card), int(board) if board else None, first_round, second_round)

    def _card(self, number: int) -> str:
        """A card, e.g. `K♠`: ranks are two cards each, one per suit."""
        if self.openspiel_game().get_parameters()["suit_isomorphism"]:
            return RANKS[number]
        return f"{RANKS[number // 2]}{SUITS[number % 2]}"


def _word(action: int, before: str) -> str:
    """An action after others of a round: a call before anybody has raised is a check."""
    if action == 0:
        return "fold"
    if action == 2:
        return "raise"
    return "call" if "2" in before else "check"


def _words(actions: str) -> str:
    """A round of betting, e.g. `check-raise-call`."""
    return "-".join(_word(int(actions[i]), actions[:i]) for i in range(0, len(actions), 2))
