"""Cards and histories as arrays: the observation of 10 numbers and the action mask."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, PLAYERS, Action, Betting, Card

Observation: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.int8]

OBSERVATION_SIZE = 10


def one_hot(index: int | None, size: int) -> Observation:
    """float32 `(size,)` with a 1 at `index`; all zero for `None`."""
    vector = np.zeros(size, np.float32)
    if index is not None:
        vector[index] = 1
    return vector


def encode_history(row: Betting) -> Observation:
    """float32 `(5,)`: `[]`, `[check]`, `[bet]`, `[check, bet]`, any finished history."""
    slot = len(DECISIONS) if row.is_terminal else DECISIONS.index(row.letters)
    return one_hot(slot, len(DECISIONS) + 1)


def encode(card: Card, letters: str) -> Observation:
    """The observation of the holder of `card` after `letters`.

    float32 `(10,)`, binary:

    | index | meaning |
    |---|---|
    | 0..2 | own card J, Q, K |
    | 3..7 | history `[]`, `[check]`, `[bet]`, `[check, bet]`, finished |
    | 8..9 | to act: player_0, player_1; neither at the end |
    """
    row = BETTING[letters]
    actor = one_hot(row.actor, len(AGENTS))
    return np.concatenate([one_hot(card, len(Card)), encode_history(row), actor])


def encode_mask(row: Betting, seat: int) -> Mask:
    """int8 `(3,)`, 1 = legal for `seat`; all zero when `seat` is not to act."""
    return np.array([seat == row.actor and a in row.after for a in Action], np.int8)


# By history, then by card or by seat. Callers get copies.
OBSERVATIONS = {at: tuple(encode(card, at) for card in Card) for at in BETTING}
MASKS = {at: tuple(encode_mask(row, seat) for seat in PLAYERS) for at, row in BETTING.items()}
