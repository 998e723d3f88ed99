"""The reference: values and best responses by a walk over all histories of a phantom game.

It shares only the rules with the factored products: it finds both players' private sequences itself
and visits every terminal history. A history takes some nanoseconds, which is fast enough for small
boards, and for large ones from a position some moves into the game.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.exact.phantom.rules import MAX_CELLS, Rules
from algorithms.exact.phantom.sequences import length_of
from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    Int64Array,
)
from algorithms.support.compiled import compiled, part
from kuhn_bridge.errors import HistoryError

OPEN, DRAW, WIN = 0, 1, 2  # the state of the game after a move

_Children: TypeAlias = tuple[Int32Array, Int32Array]
_Numbers: TypeAlias = tuple[Float64Array, Float64Array]  # one per player


class Tries(NamedTuple):
    """Both players' private sequences after a position, parents first: N_p nodes of player p.

    Node 0 is a player's own sequence in the position.
    """

    position: int
    histories: int  # how many there are from the position on, including its own
    children: _Children  # (N_p, cells, 2): the node after failure or success; 0: none
    actions: tuple[Int8Array, Int8Array]  # (N_p, cells): from the first move on, -1 after the last
    outcomes: tuple[Int16Array, Int16Array]  # (N_p,), as in `algorithms.exact.phantom.sequences`


class Values(NamedTuple):
    """The values of a joint policy from the position on, and those of best responses."""

    values: tuple[float, float]
    best_values: tuple[float, float]


def find_tries(rules: Rules, opening: Sequence[int] = ()) -> Tries:
    """The private sequences of both players after an opening, a list of cells."""
    position = 0
    played: tuple[list[tuple[int, bool]], ...] = ([], [])
    for cell in opening:
        player = position >> 4 * MAX_CELLS
        position, success, end = move(rules.wins, rules.abrupt, position, cell)
        if end != OPEN:
            raise HistoryError(f"opening {list(opening)}: the game ends at {cell}")
        played[player].append((cell, success))
    children, histories = _discover(rules, position)
    (actions0, outcomes0), (actions1, outcomes1) = map(_name, children, played)
    return Tries(position, histories, children, (actions0, actions1), (outcomes0, outcomes1))


def _discover(rules: Rules, position: int) -> tuple[_Children, int]:
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

    Sequence 0 is node 0, and sequence n * cells + a + 1 ends in action a at node n.
    """
    first, second = (_sequence_reach(tries.children[p], policies[p]) for p in (0, 1))
    reach, values = (first, second), (np.zeros_like(first), np.zeros_like(second))
    sizes = np.array([len(children) for children in tries.children])
    _visit(rules.wins, rules.abrupt, tries.position, (*tries.children, sizes), (reach, values))
    value = float(first @ values[0])
    best0, best1 = (_best_value(tries.children[p], tries.actions[p], values[p]) for p in (0, 1))
    return Values((value, -value), (best0, best1))


@compiled
def move(wins: BoolArray, abrupt: bool, position: int, cell: int) -> tuple[int, bool, int]:
    """The position after a move, whether the move succeeds, and the state of the game.

    A position is, from the lowest bits on, the cells that player 0 holds, that player 1 holds, that
    player 0 has tried, that player 1 has tried, of `MAX_CELLS` bits each, and the player to move.
    """
    every, player = (1 << MAX_CELLS) - 1, position >> 4 * MAX_CELLS
    success = not position >> (MAX_CELLS * (1 - player) + cell) & 1
    position |= 1 << (MAX_CELLS * (2 + player) + cell)
    if success or abrupt:
        position ^= 1 << 4 * MAX_CELLS
    if not success:
        return position, False, OPEN
    position |= 1 << (MAX_CELLS * player + cell)
    if wins[player, position >> MAX_CELLS * player & every]:
        return position, True, WIN
    held = (position | position >> MAX_CELLS) & every
    return position, True, DRAW if held == wins.shape[1] - 1 else OPEN


@compiled
def _visit(
    wins: BoolArray,
    abrupt: bool,
    start: int,
    tries: tuple[Int32Array, Int32Array, Int64Array],
    numbers: tuple[_Numbers, _Numbers],
) -> int:
    """Walk over all histories from a position; return their number, or 0 if there is no room left.

    New nodes are added to the tries, children and sizes `(2,)`. `numbers` are reach probabilities
    and counterfactual values by sequence: unless they are empty, every terminal history adds the
    payoff times the other player's reach to a player's value.
    """
    (reach, values), sizes = numbers, tries[2]
    cells, measuring = tries[0].shape[1], len(reach[0]) > 0
    depths = 2 * cells + 1
    position, left = np.empty(depths, np.int64), np.empty(depths, np.int64)
    node, last = np.zeros((2, depths), np.int64), np.zeros((2, depths), np.int64)
    position[0], histories, depth = start, 1, 0
    left[0] = _untried(start, cells)
    while depth >= 0:
        if left[depth] == 0:
            depth -= 1
            continue
        cell = length_of(left[depth])  # the highest one
        left[depth] ^= 1 << cell
        histories += 1
        player, other = position[depth] >> 4 * MAX_CELLS, 1 - (position[depth] >> 4 * MAX_CELLS)
        action = node[player, depth] * cells + cell + 1
        after, success, end = move(wins, abrupt, position[depth], cell)
        if end == WIN and measuring:
            theirs = last[other, depth]
            if player == 0:
                values[0][action] += reach[1][theirs]
                values[1][theirs] -= reach[0][action]
            else:
                values[1][action] += reach[0][theirs]
                values[0][theirs] -= reach[1][action]
        if end != OPEN:
            continue
        trie = tries[0] if player == 0 else tries[1]
        child = trie[node[player, depth], cell, int(success)]
        if child == 0:
            if sizes[player] == len(trie):
                return 0
            child = trie[node[player, depth], cell, int(success)] = sizes[player]
            sizes[player] += 1
        depth += 1
        position[depth], left[depth] = after, _untried(after, cells)
        node[player, depth], last[player, depth] = child, action
        node[other, depth], last[other, depth] = node[other, depth - 1], last[other, depth - 1]
    return histories


@part
def _untried(position: int, cells: int) -> int:
    """The cells that the player to move has not tried."""
    player = position >> 4 * MAX_CELLS
    return ~(position >> MAX_CELLS * (2 + player)) & ((1 << cells) - 1)


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
    """The probability of each sequence by its owner's own actions."""
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
def _best_value(children: Int32Array, actions: Int8Array, terminal: Float64Array) -> float:
    """The value of a best response, from the last nodes to the first.

    `terminal` has the counterfactual values of terminal histories by sequence.
    """
    nodes, cells, _ = children.shape
    values = np.zeros(nodes)
    for node in range(nodes - 1, -1, -1):
        best = -np.inf
        for cell in range(cells):
            if not np.any(actions[node] == cell):
                value = terminal[1 + node * cells + cell]
                for success in range(2):
                    child = children[node, cell, success]
                    if child > 0:
                        value += values[child]
                best = max(best, value)
        values[node] = best
    best_value: float = values[0] + terminal[0]
    return best_value
