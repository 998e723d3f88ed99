"""Labels of Leduc poker: cards, board and bets instead of OpenSpiel's information state string."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RANKS = "JQKA"  # of up to three players: n players have n + 1 ranks
SUITS = "♠♥"
FOLD, CALL, RAISE = range(3)
_STATE = re.compile(
    r"\[Observer: (?P<player>\d+)\]\[Private: (?P<card>\d+)\]\[Round (?P<round>[12])\]"
    r".*?(?:\[Public: (?P<board>\d+)\])?"
    r"\[Round1: (?P<first>[\d ]*)\]\[Round2: (?P<second>[\d ]*)\]"
)


@dataclass(frozen=True, slots=True)
class LeducLabels:
    """Labels of one variant of Leduc poker; under `suit_isomorphism` cards have no suits."""

    num_players: int
    suits: bool

    def card(self, number: int) -> str:
        """A card, e.g. `K♠`: ranks are two cards each, one per suit."""
        return f"{RANKS[number // 2]}{SUITS[number % 2]}" if self.suits else RANKS[number]

    def infoset(self, key: str) -> str:
        """An information state string in words, e.g. `player_0 with K♠ after check-raise`."""
        state = _parsed(key)
        who = f"player_{state['player']} with {self.card(int(state['card']))}"
        first, second = _words(state["first"]), _words(state["second"])
        if state["round"] == "1":
            return f"{who} after {first}" if first else f"{who} to start"
        board = self.card(int(state["board"]))
        return f"{who}, board {board}, round 1 {first}, round 2 {second or 'to start'}"

    def action(self, key: str, action: int) -> str:
        """An action there: `fold`, `check` or `call`, `raise`."""
        state = _parsed(key)
        return _word(action, _actions(state["first" if state["round"] == "1" else "second"]))

    def chance(self, history: Sequence[int], outcome: int) -> str:
        """A card that chance deals after a history: one to each player, then the board."""
        dealt = len(history)
        to = f"player_{dealt} gets" if dealt < self.num_players else "board"
        return f"{to} {self.card(outcome)}"


def leduc_labels(game: Any) -> LeducLabels | None:
    """The labels of a `pyspiel.Game` if it is Leduc poker of two or three players."""
    players = game.num_players()
    if game.get_type().short_name != "leduc_poker" or players >= len(RANKS):
        return None
    return LeducLabels(players, suits=not game.get_parameters()["suit_isomorphism"])


def _parsed(key: str) -> re.Match[str]:
    found = _STATE.match(key)
    assert found is not None, key  # noqa: S101  # OpenSpiel writes every string of this game so
    return found


def _actions(sequence: str) -> list[int]:
    return [int(action) for action in sequence.split()]


def _word(action: int, before: Sequence[int]) -> str:
    """A call before anybody has raised in a round is a check."""
    if action == CALL:
        return "call" if RAISE in before else "check"
    return "fold" if action == FOLD else "raise"


def _words(sequence: str) -> str:
    """A round of betting, e.g. `check-raise-call`."""
    actions = _actions(sequence)
    return "-".join(_word(action, actions[:place]) for place, action in enumerate(actions))
