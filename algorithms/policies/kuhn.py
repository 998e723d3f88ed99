"""Kuhn policies as percentages, as names of actions and as text, and simple policies by name.

A table is float64 `(12, 3)`: rows as in `INFORMATION_STATES`, columns our action IDs.
"""

from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES, parse_information_state
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import AGENTS, BETTING, Action, Card

Percentages: TypeAlias = tuple[tuple[tuple[float, ...], ...], ...]

PERCENT_TOLERANCE = 0.02  # allows for two rounded numbers
_FRACTIONS = "; it sums to 1, so these seem to be fractions: multiply them by 100"

# A percentage row is [check, bet, fold, call]: the information set and the actions of each pair, by
# player, card and half of the row.
_HISTORIES = (("", "pb"), ("p", "b"))
_ACTIONS = ((Action.CHECK_OR_CALL, Action.BET), (Action.FOLD, Action.CHECK_OR_CALL))
_PAIRS = {
    (player, card, half): (
        INFORMATION_STATES.index(f"{card}{_HISTORIES[player][half]}"),
        _ACTIONS[half],
    )
    for player, card, half in np.ndindex(2, 3, 2)
}

# One row per card, J Q K, the same for both players: percent of check, bet; fold, call.
STYLES = MappingProxyType(
    {
        "random": ((50, 50, 50, 50),) * 3,
        "heuristic": ((100, 0, 100, 0), (100, 0, 0, 100), (0, 100, 0, 100)),  # never bluffs
        "always-bet": ((0, 100, 0, 100),) * 3,  # and calls
        "always-check": ((100, 0, 100, 0),) * 3,  # and folds
    }
)


def from_percentages(percentages: Any) -> Float64Array:
    """The table of percentages `(2, 3, 4)`, as `Policy.from_percentages` takes them."""
    try:
        numbers = np.asarray(percentages, np.float64)
    except (TypeError, ValueError):
        raise PolicyError("percentages are numbers: 2 players x 3 cards x 4") from None
    if numbers.shape != (2, 3, 4):
        raise PolicyError(f"percentages are 2 players x 3 cards x 4; got {numbers.shape}")
    table = np.zeros((len(INFORMATION_STATES), len(Action)))
    for place, (infoset, actions) in _PAIRS.items():
        pair = numbers.reshape(2, 3, 2, 2)[place]
        total = pair.sum()
        if not (abs(total - 100) <= PERCENT_TOLERANCE and (pair >= 0).all()):  # NaN is refused too
            hint = _FRACTIONS if abs(total - 1) <= PERCENT_TOLERANCE else ""
            where = f"{AGENTS[place[0]]} {Card(place[1]).name}: the pair {pair.tolist()}"
            raise PolicyError(f"{where} does not sum to 100{hint}")
        table[infoset, actions] = pair / total
    return table


def to_percentages(table: Float64Array) -> Percentages:
    """`(player_0, player_1)`, each three rows `(check, bet, fold, call)` in percent.

    Rounded to 12 decimals, so that printed percentages are recovered exactly.
    """
    numbers = np.zeros((2, 3, 2, 2))
    for place, (infoset, actions) in _PAIRS.items():
        numbers[place] = (100 * table[infoset, actions]).round(12)
    return tuple(tuple(map(tuple, cards)) for cards in numbers.reshape(2, 3, 4).tolist())


def to_names(table: Float64Array) -> dict[str, dict[str, float]]:
    """`{"2pb": {"CHECK_OR_CALL": 1.0, "FOLD": 0.0}, ...}`: the legal actions of every row."""
    return {
        name: {action.name: float(row[action]) for action in BETTING[name[1:]].after}
        for name, row in zip(INFORMATION_STATES, table, strict=True)
    }


def as_text(table: Float64Array) -> str:
    """A table as text, one line per information state."""
    lines = [f"{'state':<6}{'seat':<10}{'card':<6}{'after':<12}  check/call     bet    fold"]
    for name, row in zip(INFORMATION_STATES, table, strict=True):
        card, letters = parse_information_state(name)
        betting = BETTING[letters]
        cells = [f"{row[action]:.4f}" if action in betting.after else "-" for action in Action]
        lines.append(
            f"{name:<6}{AGENTS[betting.actor or 0]:<10}{card.name:<6}"
            f"{'-'.join(betting.words) or 'start':<12}{cells[0]:>12}{cells[1]:>8}{cells[2]:>8}"
        )
    return "\n".join(lines)
