"""A game as compiled code plays it: a hand is one number, the node where it stands."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import CHANCE, TERMINAL, Tree
from algorithms.games import Game
from algorithms.support.arrays import Float64Array, Int8Array, Int32Array
from algorithms.support.compiled import compiled

GOLDEN = (5**0.5 - 1) / 2  # multiples of it, modulo 1, fill [0, 1) more evenly than any draws


class Board(NamedTuple):
    """N nodes, I information sets, A actions, P players, D deals."""

    first_child: Int32Array  # (N + 1,)
    player: Int8Array  # (N,) who acts: a player, CHANCE or TERMINAL
    infoset: Int32Array  # (N,) the row, -1 where no player acts
    child: npt.NDArray[np.int16]  # (I, A) which child an action leads to, -1 where illegal
    chance: Float64Array  # (N,) running sums of chance's probabilities among the children of a node
    returns: npt.NDArray[np.float32]  # (N, P)
    deals: (
        Int32Array  # (D,) the nodes after chance's first moves; the root alone if a player begins
    )
    dealt: Float64Array  # (D,) running sums of their probabilities


@lru_cache(maxsize=4)
def board_of(game: Game) -> Board:
    """The arrays of a game."""
    tree = game.tree
    deals = _deals(tree)
    child = np.where(tree.legal, np.cumsum(tree.legal, axis=1) - 1, -1).astype(np.int16)
    return Board(
        tree.first_child,
        tree.player,
        tree.infoset,
        child,
        _running(tree),
        np.ascontiguousarray(tree.returns.T, np.float32),
        deals,
        cumulative(tree.chance_reach[deals][None])[0],
    )


def cumulative(probabilities: npt.ArrayLike) -> Float64Array:
    """Running sums of each row, `(R, A)`, ending in exactly 1 at the last action with weight."""
    sums = np.cumsum(np.asarray(probabilities, np.float64), axis=1)
    return np.asarray(sums / sums[:, -1:])


def deal_of(board: Board, number: int) -> int:
    """Which deal the hand of that number gets, as `begin` reckons it."""
    return int(np.searchsorted(board.dealt, number * GOLDEN % 1.0, side="right"))


def _deals(tree: Tree) -> Int32Array:
    """Where a hand stands after chance's first moves, breadth first."""
    found, level = list[int](), [0]
    while level:
        found += [node for node in level if tree.player[node] != CHANCE]
        dealing = [node for node in level if tree.player[node] == CHANCE]
        level = [
            child
            for node in dealing
            for child in range(tree.first_child[node], tree.first_child[node + 1])
        ]
    return np.array(found, np.int32)


def _running(tree: Tree) -> Float64Array:
    """Running sums of `chance_probability` among siblings, ending in exactly 1."""
    sums = np.zeros(tree.num_nodes)
    for node in np.flatnonzero(tree.player == CHANCE):
        own = slice(tree.first_child[node], tree.first_child[node + 1])
        sums[own] = cumulative(tree.chance_probability[None, own])[0]
    return sums


@compiled
def begin(board: Board, number: int) -> int:
    """The deal of hand `number`: over many hands each comes as often as its probability says."""
    place = np.searchsorted(board.dealt, number * GOLDEN % 1.0, side="right")
    return int(board.deals[place])


@compiled
def onward(
    board: Board, policy: Float64Array, node: int, seat: int, random: np.random.Generator
) -> int:
    """Where `seat` is to act next or the hand is over; chance and the others have moved until then.

    `policy` `(I, A)` is what the others play, as running sums.
    """
    while board.player[node] != seat and board.player[node] != TERMINAL:
        draw = random.random()
        next_node = board.first_child[node]
        if board.player[node] == CHANCE:
            while board.chance[next_node] <= draw:
                next_node += 1
        else:
            row, action = board.infoset[node], 0
            while policy[row, action] <= draw:
                action += 1
            next_node += board.child[row, action]
        node = next_node
    return node
