"""How policies of Kuhn poker are written down: by name, in percent, as text.

A table is float64 `(12, 3)`: rows as in `INFORMATION_STATES`, columns our action IDs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES, parse_information_state
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import AGENTS, BETTING, Action, Card

PERCENT_TOLERANCE = 0.02  # allows for two rounded numbers
_FRACTIONS = "; it sums to 1, so these seem to be fractions: multiply them by 100"

# Opponents that are easy to beat. One row per card, J Q K, the same for both players: percent of
# check, bet; fold, call.
OPPONENTS = {
    "random": ((50, 50, 50, 50),) * 3,
    "heuristic": ((100, 0, 100, 0), (100, 0, 0, 100), (0, 100, 0, 100)),  # never bluffs
    "always-bet": ((0, 100, 0, 100),) * 3,  # and calls
    "always-check": ((100, 0, 100, 0),) * 3,  # and folds
}


class _Pair(NamedTuple):
    """Two percentages that belong to one information set."""

    player: int
    card: int
    half: int  # of the row [check, bet, fold, call]
    infoset: int
    actions: tuple[Action, Action]


def _pairs() -> list[_Pair]:
    """The twelve pairs; a player's first half is before, its second half facing a bet."""
    first_half = (Action.CHECK_OR_CALL, Action.BET)
    second_half = (Action.FOLD, Action.CHECK_OR_CALL)
    pairs = []
    for player, histories in enumerate((("", "pb"), ("p", "b"))):
        for card in range(len(Card)):
            for half, letters in enumerate(histories):
                infoset = INFORMATION_STATES.index(f"{card}{letters}")
                actions = second_half if half else first_half
                pairs.append(_Pair(player, card, half, infoset, actions))
    return pairs


_PAIRS = _pairs()


def from_percentages(percentages: npt.ArrayLike) -> Float64Array:
    """The table of percentages `(2, 3, 4)`, as `Policy.from_percentages` takes them."""
    try:
        numbers = np.asarray(percentages, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2, 3, 4):
        raise PolicyError("percentages are numbers: 2 players x 3 cards x 4")
    halves = numbers.reshape(2, 3, 2, 2)
    table = np.zeros((len(INFORMATION_STATES), len(Action)))
    for pair in _PAIRS:
        percent = halves[pair.player, pair.card, pair.half]
        total = percent.sum()
        if not (abs(total - 100) <= PERCENT_TOLERANCE and (percent >= 0).all()):  # NaN too
            hint = _FRACTIONS if abs(total - 1) <= PERCENT_TOLERANCE else ""
            place = f"{AGENTS[pair.player]} {Card(pair.card).name}: the pair {percent.tolist()}"
            raise PolicyError(f"{place} does not sum to 100{hint}")
        table[pair.infoset, pair.actions] = percent / total
    return table


def to_percentages(table: Float64Array) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """`(player_0, player_1)`, each three rows `(check, bet, fold, call)` in percent.

    Rounded to 12 decimals, so that printed percentages are recovered exactly.
    """
    numbers = np.zeros((2, 3, 2, 2))
    for pair in _PAIRS:
        percent = 100 * table[pair.infoset, pair.actions]
        numbers[pair.player, pair.card, pair.half] = percent.round(12)
    players = numbers.reshape(2, 3, 4).tolist()
    return tuple(tuple(map(tuple, cards)) for cards in players)


def to_names(table: Float64Array) -> dict[str, dict[str, float]]:
    """`{"2pb": {"CHECK_OR_CALL": 1.0, "FOLD": 0.0}, ...}`: the legal actions of every row."""
    return {
        name: {action.name: float(row[action]) for action in BETTING[name[1:]].after}
        for name, row in zip(INFORMATION_STATES, table, strict=True)
    }


def to_text(table: Float64Array) -> str:
    """A table as text, one line per information state."""
    lines = [f"{'state':<6}{'seat':<10}{'card':<6}{'after':<12}  check/call     bet    fold"]
    for name, row in zip(INFORMATION_STATES, table, strict=True):
        card, letters = parse_information_state(name)
        betting = BETTING[letters]
        cells = [f"{row[action]:.4f}" if action in betting.after else "-" for action in Action]
        seat = AGENTS[betting.actor or 0]
        after = "-".join(betting.words) or "start"
        lines.append(
            f"{name:<6}{seat:<10}{card.name:<6}{after:<12}{cells[0]:>12}{cells[1]:>8}{cells[2]:>8}"
        )
    return "\n".join(lines)
