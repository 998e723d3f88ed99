"""Cards and histories as arrays: the observation of 10 numbers and the action mask."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, PLAYERS, Action, Betting, Card

Observation: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.int8]

OBSERVATION_SIZE = 10
HISTORY_SLOTS = len(DECISIONS) + 1  # four decisions, and one slot for all finished histories


def one_hot(index: int | None, size: int) -> Observation:
    """float32 `(size,)` with a 1 at `index`; all zero for `None`."""
    vector = np.zeros(size, np.float32)
    if index is not None:
        vector[index] = 1
    return vector


def encode_card(card: Card | None) -> Observation:
    """float32 `(3,)`: J, Q, K; all zero before the deal."""
    return one_hot(card, len(Card))


def encode_history(row: Betting) -> Observation:
    """float32 `(5,)`: `[]`, `[check]`, `[bet]`, `[check, bet]`, any finished history."""
    slot = len(DECISIONS) if row.is_terminal else DECISIONS.index(row.letters)
    return one_hot(slot, HISTORY_SLOTS)


def encode_actor(row: Betting) -> Observation:
    """float32 `(2,)`: player_0, player_1; all zero at the end."""
    return one_hot(row.actor, len(AGENTS))


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
    return np.concatenate([encode_card(card), encode_history(row), encode_actor(row)])


def encode_mask(letters: str, seat: int) -> Mask:
    """int8 `(3,)`, 1 = legal for `seat`; all zero when `seat` is not to act."""
    row = BETTING[letters]
    return np.array([seat == row.actor and a in row.after for a in Action], np.int8)


_Scalar = TypeVar("_Scalar", bound=np.generic)


def frozen(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """A read-only copy."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


# By history, then by card or by seat. Read-only: callers get copies.
OBSERVATIONS: Mapping[str, tuple[Observation, ...]] = MappingProxyType(
    {letters: tuple(frozen(encode(card, letters)) for card in Card) for letters in BETTING}
)
MASKS: Mapping[str, tuple[Mask, ...]] = MappingProxyType(
    {letters: tuple(frozen(encode_mask(letters, seat)) for seat in PLAYERS) for letters in BETTING}
)
