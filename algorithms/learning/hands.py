"""Thousands of hands at once, both seats in view: for learners of any make.

Each hand is one number, the node where it stands; what players see, may do and win is looked up in
the tables that were filled by walking the PettingZoo face.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.learning.selfplay import NOBODY, Tables, kuhn_tables
from algorithms.support.compiled import compiled
from algorithms.support.draws import STEP, mixed
from kuhn_bridge.errors import IllegalActionError

Array: TypeAlias = npt.NDArray[Any]


class Hands:
    """A batch of B hands; where one ends the next is dealt at once.

    The arrays it hands out are its own and are written anew by the next call: copy what you keep.
    """

    def __init__(self, batch: int, *, tables: Tables | None = None, seed: int = 0) -> None:
        self.tables = tables = tables or kuhn_tables()
        rng = np.random.default_rng(seed)
        after, actor, roots = (
            a.astype(np.int32) for a in (tables.after, tables.actor, tables.roots)
        )
        self._game = (after, actor, roots, tables.rewards)
        row = tables.seen[np.arange(len(actor)), np.maximum(actor, 0)]
        seen = tables.observations[row]
        legal = after != NOBODY
        self._choices = _choices(legal)
        self._sight = _packed(np.concatenate([seen, legal], axis=1))  # by node
        self._seen = np.empty((batch, self._sight.shape[1]), np.uint64)
        bits, size = self._seen.view(np.int8), seen.shape[1]
        self._views = bits[:, :size], bits[:, size : size + legal.shape[1]]
        self._node = roots[rng.integers(len(roots), size=batch)]
        self._there = self._node.copy()
        self._draws = rng.integers(2**63, size=1, dtype=np.uint64)
        self._actions = np.zeros(batch, np.int8)
        self._rewards = np.zeros((batch, 2), np.float32)
        self._ended = np.zeros(batch, np.bool_)

    def seats(self) -> Array:
        """Who is to act: int `(B,)`."""
        return self.tables.actor[self._node]

    def look(self) -> tuple[Array, Array]:
        """What each player to act sees, int8 `(B, size)`, and may do, int8 `(B, A)`."""
        _gather(self._sight, self._node, self._seen)
        return self._views

    def random_actions(self) -> Array:
        """A legal action for each, all equally likely: int8 `(B,)`."""
        _pick(self._choices, self._node, self._draws, self._actions)
        return self._actions

    def step(self, actions: Array) -> tuple[Array, Array]:
        """Play them: both players' rewards `(B, 2)`, and whether the hand ended `(B,)`."""
        wrong = _look_ahead(self._game[0], self._node, actions, self._there)
        if wrong != NOBODY:
            raise IllegalActionError(f"action {actions[wrong]} is illegal in hand {wrong}")
        _go(self._game, self._there, self._draws, (self._node, self._rewards, self._ended))
        return self._rewards, self._ended


def _packed(bits: Array) -> Array:
    """Rows of 0 and 1 as bytes in whole machine words, quick to copy: uint64 `(N, words)`."""
    spare = -bits.shape[1] % 8
    return np.pad(bits.astype(np.int8), ((0, 0), (0, spare))).view(np.uint64)


def _choices(masks: Array) -> Array:
    """By node how many actions are legal, then which: int8 `(N, A + 1)`."""
    table = np.zeros((len(masks), masks.shape[1] + 1), np.int8)
    for row, mask in zip(table, masks, strict=True):
        legal = np.flatnonzero(mask)
        row[: len(legal) + 1] = [len(legal), *legal]
    return table


@compiled
def _gather(table: Array, node: Array, out: Array) -> None:
    for i in range(len(node)):
        for k in range(table.shape[1]):
            out[i, k] = table[node[i], k]


@compiled
def _drawn(state: np.uint64, i: int, below: int) -> int:
    """A whole number below `below`, the i-th of many."""
    bits = mixed(state + np.uint64(i) * STEP)
    return int(((bits >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))


@compiled
def _forth(state: Array, draws: int) -> None:
    """Leave behind as many places as were drawn."""
    state[0] += np.uint64(draws) * STEP


@compiled
def _pick(choices: Array, node: Array, state: Array, actions: Array) -> None:
    for i in range(len(node)):
        actions[i] = choices[node[i], 1 + _drawn(state[0], i, choices[node[i], 0])]
    _forth(state, len(node))


@compiled
def _look_ahead(after: Array, node: Array, actions: Array, there: Array) -> int:
    """Fill in where each hand goes; the first whose action is illegal, or NOBODY."""
    for i in range(len(node)):
        there[i] = after[node[i], actions[i]] if 0 <= actions[i] < after.shape[1] else NOBODY
        if there[i] == NOBODY:
            return i
    return NOBODY


@compiled
def _go(game: Any, there: Array, state: Array, hands: Any) -> None:
    """Take every hand there; deal anew where it is over."""
    _, actor, roots, rewards = game
    node, reward, ended = hands
    for i in range(len(there)):
        reward[i, 0] = rewards[there[i], 0]
        reward[i, 1] = rewards[there[i], 1]
        ended[i] = actor[there[i]] == NOBODY
        dealt = roots[_drawn(state[0], i, len(roots))]
        node[i] = dealt if ended[i] else there[i]
    _forth(state, len(there))
