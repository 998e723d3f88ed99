"""The information sets that self-play on OpenSpiel's states has seen, numbered as they come up.

In a game with a tree all information sets are known before the first hand is played. On states they
become known one after another: an information set is what a network sees there, the observation of
the player to act, and gets the next number when it is first seen. Its legal actions are its
choices, numbered in the same order, as in `algorithms.tree`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.self_play.states import StateSimulator
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
)

UNSEEN = -1  # instead of the number of an information set
SAMPLED_DECISIONS = 200_000  # of random play, to find out whether information sets recur
# In Liar's Dice 6 (1.2%) and the river endgame of docs/poker.md (1.3%) a network alone ends better
# after 10 million decisions; in all games below 0.7% that were tried regrets do.
MAX_SHARE_SEEN_ONCE = 0.01


class DecisionNodes(NamedTuple):
    """I information sets with C choices, as `algorithms.sampled_regrets` reads those of a tree.

    Every information set stands for one node, since nobody sees the nodes, and a choice leads to
    the node of its own number. So the critic knows what choices are worth, by what their owner
    sees, and not by all cards.
    """

    infoset: Int32Array  # (I,) 0, 1, 2, ...
    player: Int8Array  # (I,)
    first_child: Int32Array  # (I + 1,) the same as `first_choice`
    first_choice: Int32Array  # (I + 1,)
    owner: Int8Array  # (I,) the same as `player`
    num_players: int


class SeenInfosets:
    """The information sets seen so far; I of them, with A action IDs.

    Args:
        size: number of entries of an observation.
        num_actions: number of action IDs.
    """

    def __init__(self, size: int, num_actions: int) -> None:
        self.size = size
        self.num_actions = num_actions
        self._numbers: dict[bytes, int] = {}
        # Rows up to `len(self)` are in use; when all are, there will be twice as many.
        self._legal = np.zeros((1024, num_actions), np.bool_)
        self._running_sums = np.zeros((1024, num_actions))
        self._owner = np.zeros(1024, np.int8)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def legal(self) -> BoolArray:
        """The legal actions `(I, A)`."""
        return self._legal[: len(self)]

    @property
    def owner(self) -> Int8Array:
        """The player of each information set `(I,)`."""
        return self._owner[: len(self)]

    @property
    def running_sums(self) -> Float64Array:
        """The running sums of the probabilities with which actions are drawn: `(I, A)`.

        Those of a new information set are the sums of uniform play.
        """
        return self._running_sums[: len(self)]

    def observations(self) -> Float32Array:
        """What the players see: `(I, size)`."""
        joined = b"".join(self._numbers)
        return np.frombuffer(joined, np.float32).reshape(len(self), self.size)

    def find(self, observations: Float32Array) -> Int64Array:
        """The numbers of observations `(n, size)`, UNSEEN where there is none: `(n,)`."""
        numbers = [self._numbers.get(key, UNSEEN) for key in _keys(observations)]
        return np.array(numbers, np.int64)

    def number(self, observations: Float32Array, legal: BoolArray) -> Int64Array:
        """The numbers of observations `(n, size)` with legal actions `(n, A)`; new ones get one."""
        keys = _keys(observations)
        numbers = np.array([self._numbers.get(key, UNSEEN) for key in keys], np.int64)
        for row in np.flatnonzero(numbers == UNSEEN).tolist():
            numbers[row] = self._number_of_new(keys[row], legal[row])
        return numbers

    def _number_of_new(self, key: bytes, legal: BoolArray) -> int:
        known = self._numbers.get(key)  # it may be twice among the observations
        if known is not None:
            return known
        number = len(self)
        if number == len(self._legal):
            self._legal = _doubled(self._legal)
            self._running_sums = _doubled(self._running_sums)
            self._owner = _doubled(self._owner)
        self._numbers[key] = number
        self._legal[number] = legal
        uniform = legal[np.newaxis] / legal.sum()
        self._running_sums[number] = running_sums(uniform)[0]
        return number

    def first_choice(self) -> Int32Array:
        """The first choice of each information set, and the number of all choices: `(I + 1,)`."""
        counts = self.legal.sum(axis=1)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def nodes(self, num_players: int) -> DecisionNodes:
        """The information sets as nodes."""
        first_choice = self.first_choice()
        owner = np.array(self.owner)
        return DecisionNodes(
            infoset=np.arange(len(self), dtype=np.int32),
            player=owner,
            first_child=first_choice,
            first_choice=first_choice,
            owner=owner,
            num_players=num_players,
        )

    def get_state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything in it, as arrays."""
        return {
            "observations": np.array(self.observations()),
            "legal": np.array(self.legal),
            "owner": np.array(self.owner),
        }

    def set_state(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Contain what `get_state` returned, and nothing else."""
        self._numbers.clear()
        self.number(
            np.asarray(state["observations"], np.float32), np.asarray(state["legal"], np.bool_)
        )
        self.owner[:] = state["owner"]


def _keys(observations: Float32Array) -> list[bytes]:
    """The bytes of each observation `(n, size)`; those of -0 are the bytes of 0."""
    rows = np.ascontiguousarray(observations + np.float32(0), np.float32)
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))
    keys: list[bytes] = as_bytes[:, 0].tolist()
    return keys


def _doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array with as many more rows, of zeros."""
    return np.concatenate([array, np.zeros_like(array)])


class Recurrence(NamedTuple):
    """How often random play arrives at the same information sets again."""

    seen: int  # how many information sets
    share_seen_once: float  # of all decisions, those at information sets that were seen only once


@lru_cache(maxsize=4)
def recurrence(game: Game) -> Recurrence:
    """Play random hands and count their information sets.

    The share that was seen once estimates how probable it is that the next decision is at an
    information set that was never seen before (Good 1953).
    """
    simulator = StateSimulator(game, 256)
    infosets = SeenInfosets(simulator.observations.shape[1], game.num_actions)
    rng = np.random.default_rng(0)
    numbers = []
    for _ in range(SAMPLED_DECISIONS // 256):
        masks = simulator.masks
        numbers.append(infosets.number(simulator.observations, masks))
        simulator.step((masks * rng.random(masks.shape)).argmax(axis=1))
    visits = np.bincount(np.concatenate(numbers))
    once = int(np.count_nonzero(visits == 1))
    return Recurrence(seen=len(infosets), share_seen_once=once / int(visits.sum()))


def infosets_recur(game: Game) -> bool:
    """Whether play arrives at nearly all information sets again and again."""
    return recurrence(game).share_seen_once <= MAX_SHARE_SEEN_ONCE
