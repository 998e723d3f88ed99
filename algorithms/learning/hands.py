"""Thousands of hands at once, all seats in view: for learners of any make, on any game.

Each hand is one number, the node where it stands; what players see, may do and win is looked up.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import CHANCE, TERMINAL, Tree
from algorithms.games import KUHN, Game, as_game
from algorithms.learning.board import Board, board_of
from algorithms.support.compiled import compiled
from algorithms.support.draws import STEP, mixed
from kuhn_bridge.errors import IllegalActionError

Array: TypeAlias = npt.NDArray[Any]

NOBODY = -1


class Hands:
    """A batch of B hands; where one ends the next is dealt at once.

    The arrays it hands out are its own and are written anew by the next call: copy what you keep.
    """

    def __init__(self, batch: int, game: Game | str = KUHN, *, seed: int = 0) -> None:
        self.game = as_game(game)
        board, tree = board_of(self.game), self.game.tree
        rng = np.random.default_rng(seed)
        self._rules = _rules(tree, board)
        self._choices = _choices(tree.legal)
        seen = _whole(self.game.observations)
        self._sight = _packed(seen, tree.legal)
        self._seen = np.empty((batch, self._sight.shape[1]), np.uint64)
        cells, size = self._seen.view(np.int8), seen.shape[1] * seen.itemsize
        self._views = cells[:, :size].view(seen.dtype), cells[:, size : size + tree.legal.shape[1]]
        self._draws = rng.integers(2**63, size=1, dtype=np.uint64)
        self._node, self._there = np.zeros(batch, np.int32), np.zeros(batch, np.int32)
        self._actions = np.zeros(batch, np.int8 if tree.legal.shape[1] < 128 else np.int64)
        self._rewards = np.zeros((batch, tree.num_players), np.float32)
        self._ended = np.zeros(batch, np.bool_)
        _deal(self._rules, self._draws, self._node)

    def seats(self) -> Array:
        """Who is to act: int `(B,)`."""
        return self._rules.player[self._node]

    def look(self) -> tuple[Array, Array]:
        """What each player to act sees, `(B, size)`, and may do, int8 `(B, A)`.

        What is seen are int8 where a game's tensors are whole numbers, as most are, else float32.
        """
        _gather(self._sight, self._rules.row, self._node, self._seen)
        return self._views

    def random_actions(self) -> Array:
        """A legal action for each, all equally likely: int `(B,)`."""
        _pick(self._choices, self._rules.row, self._node, self._draws, self._actions)
        return self._actions

    def step(self, actions: Array) -> tuple[Array, Array]:
        """Play them: all players' rewards `(B, P)`, and whether the hand ended `(B,)`."""
        wrong = _look_ahead(self._rules.after, self._node, actions, self._there)
        if wrong != NOBODY:
            raise IllegalActionError(f"action {actions[wrong]} is illegal in hand {wrong}")
        _go(self._rules, self._there, self._draws, (self._node, self._rewards, self._ended))
        return self._rewards, self._ended


class _Rules(NamedTuple):
    """What the kernels look up, for N nodes and D deals."""

    after: Array  # (N, A) the node after each action, NOBODY where illegal
    player: Array  # (N,)
    row: Array  # (N,)
    first_child: Array  # (N + 1,)
    chance: Array  # (N,) running sums of chance's probabilities among siblings
    returns: Array  # (N, P)
    deals: Array  # (D, 2) nodes: the own one of each deal, and the one that shares its cell
    own: Array  # (D,) the own one's part of the cell (Vose's alias method)
    draws: int  # how many draws a hand takes at most between two decisions


def _rules(tree: Tree, board: Board) -> _Rules:
    after = np.full((tree.num_nodes, tree.legal.shape[1]), NOBODY, np.int32)
    inner = np.flatnonzero(tree.infoset >= 0)
    rows = tree.infoset[inner]
    after[inner] = np.where(
        tree.legal[rows], tree.first_child[inner][:, None] + board.child[rows], NOBODY
    )
    own, other = _aliases(np.diff(board.dealt, prepend=0.0))
    deals = np.column_stack([board.deals, board.deals[other]]).astype(np.int32)
    player = board.player.astype(np.int32)
    draws = 1 + int((player == CHANCE).any()) * int(tree.depths().max())
    lists = (after, player, board.infoset, board.first_child, board.chance, board.returns)
    return _Rules(*lists, deals, own, draws)


def _aliases(shares: Array) -> tuple[Array, Array]:
    """Cells of equal size for shares `(D,)`: how much of each is its own, and whose the rest is."""
    count = len(shares)
    own, other = shares * count, np.arange(count)
    small = [i for i in range(count) if own[i] < 1]
    large = [i for i in range(count) if own[i] >= 1]
    while small and large:
        i, j = small.pop(), large[-1]
        other[i] = j
        own[j] -= 1 - own[i]
        if own[j] < 1:
            small.append(large.pop())
    own[small + large] = 1.0  # but for rounding
    return own, other


def _whole(seen: Array) -> Array:
    """As int8 where that loses nothing: an eighth of a float64 is quicker to copy."""
    small = seen.astype(np.int8)
    return small if np.array_equal(small, seen) else np.ascontiguousarray(seen, np.float32)


def _packed(seen: Array, legal: Array) -> Array:
    """Rows of sights and masks as whole machine words, quick to copy: uint64 `(I, words)`."""
    cells = np.concatenate([seen.view(np.int8), legal.astype(np.int8)], axis=1)
    return np.pad(cells, ((0, 0), (0, -cells.shape[1] % 8))).view(np.uint64)


def _choices(masks: Array) -> Array:
    """By row how many actions are legal, then which: `(I, A + 1)`."""
    table = np.zeros((len(masks), masks.shape[1] + 1), np.int32)
    table[:, 0] = masks.sum(axis=1)
    rows, actions = np.nonzero(masks)
    table[rows, np.cumsum(masks, axis=1)[rows, actions]] = actions
    return table


@compiled
def _gather(table: Array, row: Array, node: Array, out: Array) -> None:
    for i in range(len(node)):
        for k in range(table.shape[1]):
            out[i, k] = table[row[node[i]], k]


@compiled
def _drawn(state: np.uint64, i: int, below: int) -> int:
    """A whole number below `below`, the i-th of many."""
    bits = mixed(state + np.uint64(i) * STEP)
    return int(((bits >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))


@compiled
def _share(state: np.uint64, i: int) -> float:
    """A number from [0, 1), the i-th of many."""
    return (mixed(state + np.uint64(i) * STEP) >> np.uint64(11)) * 2.0**-53


@compiled
def _advance(state: Array, draws: int) -> None:
    """Advance the stream."""
    state[0] += np.uint64(draws) * STEP


@compiled
def _pick(choices: Array, row: Array, node: Array, state: Array, actions: Array) -> None:
    for i in range(len(node)):
        legal = choices[row[node[i]]]
        actions[i] = legal[1 + _drawn(state[0], i, legal[0])]
    _advance(state, len(node))


@compiled
def _look_ahead(after: Array, node: Array, actions: Array, there: Array) -> int:
    """Fill in where each hand goes; the first whose action is illegal, or NOBODY."""
    for i in range(len(node)):
        there[i] = after[node[i], actions[i]] if 0 <= actions[i] < after.shape[1] else NOBODY
        if there[i] == NOBODY:
            return i
    return NOBODY


@compiled
def _dealt(rules: _Rules, state: np.uint64, i: int) -> int:
    """A deal by its probability, the i-th of many."""
    place = _share(state, i) * len(rules.deals)
    cell = int(place)
    return int(rules.deals[cell, 0 if place - cell < rules.own[cell] else 1])


@compiled
def _after_chance(rules: _Rules, node: int, state: np.uint64, i: int, step: int) -> int:
    """Where chance leads from `node`, with draws i, i + step and so on."""
    while rules.player[node] == CHANCE:
        draw, node = _share(state, i), rules.first_child[node]
        while rules.chance[node] <= draw:
            node += 1
        i += step
    return node


@compiled
def _deal(rules: _Rules, state: Array, node: Array) -> None:
    """Deal every hand."""
    for i in range(len(node)):
        node[i] = _dealt(rules, state[0], i)
    _advance(state, len(node))


@compiled
def _go(rules: _Rules, there: Array, state: Array, hands: Any) -> None:
    """Take every hand there; deal anew where it is over."""
    node, rewards, ended = hands
    count = len(there)
    for i in range(count):
        at = there[i]
        if rules.player[at] == CHANCE:
            at = _after_chance(rules, at, state[0], count + i, count)
        for seat in range(rewards.shape[1]):
            rewards[i, seat] = rules.returns[at, seat]
        ended[i] = rules.player[at] == TERMINAL
        node[i] = _dealt(rules, state[0], i) if ended[i] else at
    _advance(state, count * rules.draws)
