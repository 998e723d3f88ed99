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
from algorithms.support.compiled import compiled, part
from algorithms.support.draws import STEP, mixed
from algorithms.support.lanes import Index
from kuhn_bridge.errors import IllegalActionError

Array: TypeAlias = npt.NDArray[Any]

GOES_ON, ENDED, CHANCES = 0, 1, 2
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class Hands:
    """A batch of B hands; where one ends the next is dealt at once.

    The arrays it hands out are its own and are written anew by the next call: copy what you keep.
    """

    def __init__(self, batch: int, game: Game | str = KUHN, *, seed: int = 0) -> None:
        self.game = as_game(game)
        board, tree = board_of(self.game), self.game.tree
        rng = np.random.default_rng(seed)
        self._rules = _rules(tree, board)
        self._choices, self._player = _choices(tree.legal), tree.player.astype(np.int32)
        seen = _whole(self.game.observations)
        self._sight = _packed(seen, tree.legal)
        even = batch + batch % 2  # two hands share a draw; a last one without partner gets one
        self._seen = np.empty((even, self._sight.shape[1]), self._sight.dtype)
        cells, size = self._seen[:batch].view(np.int8), seen.shape[1] * seen.itemsize
        self._views = cells[:, :size].view(seen.dtype), cells[:, size : size + tree.legal.shape[1]]
        self._draws = rng.integers(2**63, size=1, dtype=np.uint64)
        self._node, self._there = np.zeros((2, even), self._rules.after.dtype)
        self._drawn = np.zeros(even, self._choices[0].dtype)
        self._actions = self._drawn[:batch].view(f"i{self._drawn.itemsize}")
        self._paid = np.zeros((even, self._rules.paid.shape[1]), np.uint64)
        self._rewards = self._paid.view(np.float32)[:batch, : tree.num_players]
        self._over = np.zeros(even, np.bool_)
        self._ended = self._over[:batch]
        _deal(self._rules, self._draws[0], self._node)
        self._there[:] = self._node
        self._advance(1)

    def seats(self) -> Array:
        """Who is to act: int `(B,)`."""
        return self._player[self._node[: len(self._actions)]]

    def look(self) -> tuple[Array, Array]:
        """What each player to act sees, `(B, size)`, and may do, int8 `(B, A)`.

        What is seen are int8 where a game's tensors are whole numbers, as most are, else float32.
        """
        _gather(self._sight, self._rules.row, self._node, self._seen)
        return self._views

    def random_actions(self) -> Array:
        """A legal action for each, all equally likely: int `(B,)`."""
        _pick(self._choices, self._rules.row, self._node, self._draws[0], self._drawn)
        self._advance(1)
        return self._actions

    def step(self, actions: Array) -> tuple[Array, Array]:
        """Play them: all players' rewards `(B, P)`, and whether the hand ended `(B,)`."""
        if np.shape(actions) != self._ended.shape:
            raise IllegalActionError(
                f"{len(self._ended):,} hands want as many actions; got {np.shape(actions)}"
            )
        if not _look_ahead(self._rules.after, self._node, actions, self._there):
            wrong = int((self._there == 0).argmax())
            raise IllegalActionError(f"action {actions[wrong]} is illegal in hand {wrong}")
        if self._rules.draws > 1:
            _chance(self._rules, self._there, self._draws[0])
        _go(self._rules, self._there, self._draws[0], (self._node, self._paid, self._over))
        self._advance(self._rules.draws)
        return self._rewards, self._ended

    def _advance(self, draws: int) -> None:
        """Advance the stream by `draws` draws per hand."""
        self._draws += np.array([len(self._node) * draws], np.uint64) * STEP


class _Rules(NamedTuple):
    """What the kernels look up, for N nodes and D deals; node numbers take few bytes."""

    after: Array  # (N, A) the node after each action; 0, the root, where illegal
    state: Array  # (N,) GOES_ON, ENDED or CHANCES
    row: Array  # (N,)
    first_child: Array  # (N + 1,)
    chance: Array  # (N,) running sums of chance's probabilities among siblings
    paid: Array  # (N, words) returns as float32 in whole machine words
    deals: Array  # (D, 2) nodes: the own one of each deal, and the one that shares its cell
    own: Array  # (D,) the own one's part of the cell in 2^32nds (Vose's alias method)
    uneven: bool  # whether any cell is shared
    draws: int  # how many draws a hand takes at most from one decision to the next


def _rules(tree: Tree, board: Board) -> _Rules:
    short = np.min_scalar_type(tree.num_nodes)
    after = np.zeros((tree.num_nodes, tree.legal.shape[1]), short)
    inner = np.flatnonzero(tree.infoset >= 0)
    rows = tree.infoset[inner]
    after[inner] = np.where(
        tree.legal[rows], tree.first_child[inner][:, None] + board.child[rows], 0
    )
    own, other = _aliases(np.diff(board.dealt, prepend=0.0))
    deals = np.column_stack([board.deals, board.deals[other]]).astype(short)
    state = np.select([board.player == TERMINAL, board.player == CHANCE], [ENDED, CHANCES], GOES_ON)
    later = (tree.sequence[:, state == CHANCES] > 0).any()  # chance acts after a player
    draws = 1 + int(later) * int(tree.depths().max())
    row = np.maximum(board.infoset, 0).astype(short)
    paid = np.pad(board.returns, ((0, 0), (0, tree.num_players % 2))).view(np.uint64)
    lists = after, state.astype(np.uint8), row, board.first_child, board.chance, paid
    own = np.rint(own * 2**32).astype(np.uint64)
    return _Rules(*lists, deals, own, bool((own < 2**32).any()), draws)


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
    """Rows of sights and masks in pieces of 16 bytes, quick to copy: complex `(I, pieces)`."""
    cells = np.concatenate([seen.view(np.int8), legal.astype(np.int8)], axis=1)
    return np.pad(cells, ((0, 0), (0, -cells.shape[1] % 16))).view(np.complex128)


def _choices(masks: Array) -> tuple[Array, Array]:
    """By row how many actions are legal, `(I,)`, and which, those first: `(I, A)`; unsigned."""
    short = np.uint8 if masks.shape[1] < 128 else np.uint64
    legal_first = np.argsort(~masks, axis=1, kind="stable")
    return masks.sum(axis=1).astype(short), legal_first.astype(short)


@compiled
def _gather(table: Array, row: Array, node: Array, out: Array) -> None:
    for i in range(np.uint64(len(node))):
        at = np.uint64(row[np.uint64(node[i])])
        out[i, 0] = table[at, 0]
        for k in range(np.uint64(1), np.uint64(table.shape[1])):
            out[i, k] = table[at, k]


@part
def _bits(state: np.uint64, i: Index) -> np.uint64:
    """64 random bits, the i-th of many."""
    return mixed(state + np.uint64(i) * STEP)


@compiled
def _pick(choices: Any, row: Array, node: Array, state: np.uint64, actions: Array) -> None:
    """Fill in random actions."""
    counts, legal = choices
    for pair in range(np.uint64(len(node) // 2)):
        bits = _bits(state, pair)
        for half in range(2):
            i = pair + pair + np.uint64(half)
            at = np.uint64(row[np.uint64(node[i])])
            actions[i] = legal[at, ((bits & _LOW) * np.uint64(counts[at])) >> _HALF]
            bits >>= _HALF


@compiled
def _look_ahead(after: Array, node: Array, actions: Array, there: Array) -> bool:
    """Fill in where each hand goes, 0 where its action is illegal; whether all are legal."""
    legal, width = True, np.uint64(after.shape[1])
    for i in range(np.uint64(len(actions))):
        action = np.uint64(actions[i])  # below 0 is far above `width`
        known = action < width
        there[i] = after[np.uint64(node[i]), action if known else np.uint64(0)] if known else 0
        legal &= there[i] != 0
    return legal


@part
def _dealt(rules: _Rules, bits: np.uint64) -> np.uint64:
    """A deal by its probability, from 32 random bits: the cell, and the place within it."""
    drawn = bits * np.uint64(len(rules.deals))
    cell = drawn >> _HALF
    other = np.uint64((drawn & _LOW) >= rules.own[cell]) if rules.uneven else np.uint64(0)
    return np.uint64(rules.deals[cell, other])


@compiled
def _chance(rules: _Rules, there: Array, state: np.uint64) -> None:
    """Take hands on from where chance acts; hand i has draws i + B, i + 2B and so on."""
    for i in range(len(there)):
        node, draw = np.int64(there[i]), i
        while rules.state[node] == CHANCES:
            draw += len(there)
            share = (_bits(state, np.uint64(draw)) >> np.uint64(11)) * 2.0**-53
            node = np.int64(rules.first_child[node])
            while rules.chance[node] <= share:
                node += np.int64(1)
        there[i] = node


@compiled
def _deal(rules: _Rules, state: np.uint64, node: Array) -> None:
    """Deal every hand."""
    for i in range(np.uint64(len(node))):
        node[i] = _dealt(rules, _bits(state, i) & _LOW)


@compiled
def _go(rules: _Rules, there: Array, state: np.uint64, hands: Any) -> None:
    """Take every hand there; deal anew where it is over."""
    node, paid, ended = hands
    for pair in range(np.uint64(len(there) // 2)):
        bits = _bits(state, pair)
        for half in range(2):
            i = pair + pair + np.uint64(half)
            at = np.uint64(there[i])
            paid[i, 0] = rules.paid[at, 0]
            over = np.uint64(rules.state[at] == ENDED)
            ended[i] = over
            # Without a branch, which would be guessed wrong every other time.
            node[i] = at ^ ((at ^ _dealt(rules, bits & _LOW)) & (np.uint64(0) - over))
            bits >>= _HALF
    for word in range(1, paid.shape[1]):
        for hand in range(len(there)):
            paid[hand, word] = rules.paid[there[hand], word]
