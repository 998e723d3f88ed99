"""The reference: values and best responses by a walk over all histories of a phantom game.

It shares nothing with the factored products but the rules: both players' tries of private sequences
are found on the way, and every terminal history is visited. A history takes some nanoseconds, so
this measures small boards, and large ones from a position some moves into the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.exact.phantom.rules import Rules
from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    Int64Array,
)
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import HistoryError

_OPEN, _DRAW, _WIN = 0, 1, 2  # what a move does to the game

# A position as (2, 3): what the players hold, what they have tried, and whether they are to move.
_Position: TypeAlias = Int64Array
_Children: TypeAlias = tuple[Int32Array, Int32Array]
_Numbers: TypeAlias = tuple[Float64Array, Float64Array]  # one per player


class Tries(NamedTuple):
    """Both players' private sequences after a position, parents first: N_p nodes of player p.

    Node 0 is what a player knows in the position.
    """

    position: _Position
    histories: int  # how many there are from the position on, itself included
    children: _Children  # (N_p, cells, 2): the node after failure or success; 0: none
    actions: tuple[Int8Array, Int8Array]  # (N_p, cells): from the first move on, -1 behind the last
    outcomes: tuple[Int16Array, Int16Array]  # (N_p,), as in `algorithms.exact.phantom.sequences`


class Values(NamedTuple):
    """What the players win from the position on, and what best responses would win."""

    values: tuple[float, float]
    best_values: tuple[float, float]


def find_tries(rules: Rules, opening: Sequence[int] = ()) -> Tries:
    """The private sequences of both players after the moves of the opening."""
    position = np.array([[0, 0, 1], [0, 0, 0]])
    played: tuple[list[tuple[int, bool]], ...] = ([], [])
    for cell in opening:
        player = int(position[1, 2])
        success, end = _move(rules.wins, rules.abrupt, position, cell)
        if end != _OPEN:
            raise HistoryError(f"opening {list(opening)}: the game ends at {cell}")
        played[player].append((cell, success))
    children, histories = _discover(rules, position)
    (actions0, outcomes0), (actions1, outcomes1) = map(_name, children, played)
    return Tries(position, histories, children, (actions0, actions1), (outcomes0, outcomes1))


def _discover(rules: Rules, position: _Position) -> tuple[_Children, int]:
    capacity, histories = 2**12, 0
    nothing = np.zeros(0), np.zeros(0)
    while not histories:
        capacity *= 4
        first, second = np.zeros((2, capacity, rules.cells, 2), np.int32)
        sizes = np.ones(2, np.int64)
        tries = first, second, sizes
        histories = _visit(rules.wins, rules.abrupt, position, tries, (nothing, nothing))
    return (first[: sizes[0]].copy(), second[: sizes[1]].copy()), histories


def _name(children: Int32Array, played: list[tuple[int, bool]]) -> tuple[Int8Array, Int16Array]:
    """The actions `(N, cells)` and outcomes `(N,)` that lead to each node."""
    actions = np.full(children.shape[:2], -1, np.int8)
    outcomes = np.ones(len(children), np.int16)
    actions[0, : len(played)] = [cell for cell, _ in played]
    outcomes[0] = 1 << len(played) | sum(success << i for i, (_, success) in enumerate(played))
    _write_names(children, actions, outcomes)
    return actions, outcomes


def walk(rules: Rules, tries: Tries, policies: _Numbers) -> Values:
    """Values and best responses of policies `(N_p, cells)`, by visiting every history.

    Number 0 of `reach` and `gain` belongs to node 0; action a at node n has n * cells + a + 1.
    """
    first, second = (_sequence_reach(tries.children[p], policies[p]) for p in (0, 1))
    reach, gain = (first, second), (np.zeros_like(first), np.zeros_like(second))
    sizes = np.array([len(children) for children in tries.children])
    _visit(rules.wins, rules.abrupt, tries.position, (*tries.children, sizes), (reach, gain))
    value = float(first @ gain[0])
    best0, best1 = (_best_value(tries.children[p], tries.actions[p], gain[p]) for p in (0, 1))
    return Values((value, -value), (best0, best1))


@compiled
def _move(wins: BoolArray, abrupt: bool, position: _Position, cell: int) -> tuple[bool, int]:
    """Make a move; whether it succeeds and what it does to the game."""
    player = position[1, 2]
    success = not position[1 - player, 0] >> cell & 1
    position[player, 1] |= 1 << cell
    if success:
        position[player, 0] |= 1 << cell
    if success or abrupt:
        position[player, 2], position[1 - player, 2] = 0, 1
    if success and wins[player, position[player, 0]]:
        return success, _WIN
    full = position[0, 0] | position[1, 0] == wins.shape[1] - 1
    return success, _DRAW if full else _OPEN


@compiled
def _visit(
    wins: BoolArray,
    abrupt: bool,
    start: _Position,
    tries: tuple[Int32Array, Int32Array, Int64Array],
    numbers: tuple[_Numbers, _Numbers],
) -> int:
    """Walk over all histories from a position; how many there are, or 0 if there is no room left.

    New nodes are added to the tries, children and sizes `(2,)`. `numbers` are reach and gain:
    unless they are empty, every end adds to a player's gain the payoff times the other's reach.
    """
    (reach, gain), sizes = numbers, tries[2]
    cells = tries[0].shape[1]
    depths = 2 * cells + 1
    position, tried = np.empty((depths, 2, 3), np.int64), np.zeros(depths, np.int64)
    node, sequence = np.zeros((depths, 2), np.int64), np.zeros((depths, 2), np.int64)
    position[0] = start
    histories, depth = 1, 0
    while depth >= 0:
        player, cell = position[depth, 1, 2], tried[depth]
        tried[depth] += 1
        if cell == cells:
            depth -= 1
            continue
        if position[depth, player, 1] >> cell & 1:
            continue
        histories += 1
        position[depth + 1], node[depth + 1] = position[depth], node[depth]
        sequence[depth + 1] = sequence[depth]
        sequence[depth + 1, player] = node[depth, player] * cells + cell + 1
        success, end = _move(wins, abrupt, position[depth + 1], cell)
        if end == _WIN and len(reach[0]):
            payoff = 1.0 - 2.0 * player  # player 0's
            first, second = sequence[depth + 1]
            gain[0][first] += payoff * reach[1][second]
            gain[1][second] -= payoff * reach[0][first]
        if end != _OPEN:
            continue
        trie = tries[0] if player == 0 else tries[1]
        child = trie[node[depth, player], cell, int(success)]
        if child == 0:
            if sizes[player] == len(trie):
                return 0
            child = trie[node[depth, player], cell, int(success)] = sizes[player]
            sizes[player] += 1
        depth += 1
        node[depth, player], tried[depth] = child, 0
    return histories


@compiled
def _write_names(children: Int32Array, actions: Int8Array, outcomes: Int16Array) -> None:
    for node in range(len(children)):
        length = 0
        while length < actions.shape[1] and actions[node, length] >= 0:
            length += 1
        for cell in range(children.shape[1]):
            for success in range(2):
                child = children[node, cell, success]
                if child > 0:
                    actions[child] = actions[node]
                    actions[child, length] = cell
                    outcomes[child] = outcomes[node] + ((1 + success) << length)


@compiled
def _sequence_reach(children: Int32Array, policy: Float64Array) -> Float64Array:
    """The owner's probability of each sequence that ends with an action, numbered as in `walk`."""
    nodes, cells, _ = children.shape
    before, reach = np.ones(nodes), np.ones(1 + nodes * cells)
    for node in range(nodes):
        for cell in range(cells):
            probability = before[node] * policy[node, cell]
            reach[1 + node * cells + cell] = probability
            for success in range(2):
                if children[node, cell, success] > 0:
                    before[children[node, cell, success]] = probability
    return reach


@compiled
def _best_value(children: Int32Array, actions: Int8Array, gain: Float64Array) -> float:
    """The value of a best response, from the last nodes to the first."""
    nodes, cells, _ = children.shape
    values = np.zeros(nodes)
    for node in range(nodes - 1, -1, -1):
        best = -np.inf
        for cell in range(cells):
            if not np.any(actions[node] == cell):
                value = gain[1 + node * cells + cell]
                for success in range(2):
                    child = children[node, cell, success]
                    if child > 0:
                        value += values[child]
                best = max(best, value)
        values[node] = best
    best_value: float = values[0] + gain[0]
    return best_value
