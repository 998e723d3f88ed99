"""The reference: values and best responses by a walk over all histories of a phantom game.

It shares only the rules with the factored products: it finds both players' private sequences itself
and visits every terminal history. A history takes some nanoseconds, which is fast enough for small
boards, and for large ones from a position some moves into the game.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.compiled.jit import compiled, part
from algorithms.large_games.phantom.rules import MAX_CELLS, Rules
from algorithms.large_games.phantom.sequences import Sequences, infosets_of, length_of
from algorithms.nashconv import Measure
from algorithms.support.arrays import Float64Array, Int8Array, Int16Array, Int32Array, Int64Array

OPEN, DRAW, WIN = 0, 1, 2  # the state of the game after a move


class Tries(NamedTuple):
    """Both players' private sequences after a position, parents first: up to N nodes of each.

    Node 0 is a player's own sequence in the position.
    """

    position: int
    histories: int  # how many there are from the position on, including its own
    sizes: Int64Array  # (2,): how many nodes are used
    children: Int32Array  # (2, N, cells, 2): the node after failure or success; 0: none
    actions: Int8Array  # (2, N, cells): from the first move on, -1 after the last
    outcomes: Int16Array  # (2, N), as in `algorithms.large_games.phantom.sequences`


def find_tries(rules: Rules, opening: Sequence[int] = ()) -> Tries:
    """The private sequences of both players after an opening, a list of cells."""
    size, histories, nothing = 2**12, 0, np.zeros((2, 0))
    while not histories:
        size *= 4
        actions = np.full((2, size, rules.cells), -1, np.int8)
        children, outcomes = np.zeros((*actions.shape, 2), np.int32), np.ones((2, size), np.int16)
        position = 0
        for cell in opening:
            player = position >> 4 * MAX_CELLS
            position, success, _ = move(rules, position, cell)
            _append(actions[player, 0], outcomes[player], 0, cell, success)
        tries = Tries(position, 0, np.ones(2, np.int64), children, actions, outcomes)
        histories = _visit(rules, tries, nothing, nothing)
    used: Any = [np.ascontiguousarray(x[:, : tries.sizes.max()]) for x in tries[3:]]
    return Tries(position, histories, tries.sizes, *used)


def policies_of(
    tries: Tries, sequences: Sequence[Sequences], rows: Sequence[Callable[[Int64Array], Any]]
) -> Float64Array:
    """Policies by node `(2, N, cells)`, normalised; 0 where a player does not act.

    `rows` give the rows `(n, cells)` of each player's policy at information sets `(n,)`.
    """
    policies = np.zeros(tries.actions.shape)
    for player, of_infosets in enumerate(rows):
        infosets = infosets_of(sequences[player], tries.actions[player], tries.outcomes[player])
        found = np.asarray(of_infosets(infosets[infosets >= 0]), np.float64)
        policies[player, infosets >= 0] = found / found.sum(axis=1, keepdims=True)
    return policies


def walk(rules: Rules, tries: Tries, policies: Float64Array) -> Measure:
    """The values of policies `(2, N, cells)` and of best responses, by visiting every history.

    Sequence 0 is node 0, and sequence n * cells + a + 1 ends in action a at node n.
    """
    reach = np.stack([_sequence_reach(tries.children[p], policies[p]) for p in (0, 1)])
    values = np.zeros_like(reach)
    _visit(rules, tries, reach, values)
    value = float(reach[0] @ values[0])
    best0, best1 = (_best_value(tries.children[p], tries.actions[p], values[p]) for p in (0, 1))
    return Measure((value, -value), (best0, best1), tuple, tuple)


@compiled
def move(rules: Rules, position: int, cell: int) -> tuple[int, bool, int]:
    """The position after a move, whether the move succeeds, and the state of the game.

    A position is, from the lowest bits on, the cells that player 0 holds, that player 1 holds, that
    player 0 has tried, that player 1 has tried, of `MAX_CELLS` bits each, and the player to move.
    """
    every, player = (1 << MAX_CELLS) - 1, position >> 4 * MAX_CELLS
    success = not position >> (MAX_CELLS * (1 - player) + cell) & 1
    position |= 1 << (MAX_CELLS * (2 + player) + cell)
    if success or rules.abrupt:
        position ^= 1 << 4 * MAX_CELLS
    if not success:
        return position, False, OPEN
    position |= 1 << (MAX_CELLS * player + cell)
    if rules.wins[player, position >> MAX_CELLS * player & every]:
        return position, True, WIN
    held = (position | position >> MAX_CELLS) & every
    return position, True, DRAW if held == (1 << rules.cells) - 1 else OPEN


@compiled
def _append(actions: Int8Array, outcomes: Int16Array, node: int, cell: int, success: bool) -> None:
    """Append a move to the actions `(cells,)` and the outcomes of a node."""
    length = length_of(outcomes[node])
    actions[length] = cell
    outcomes[node] += (1 + success) << length


@compiled
def _visit(rules: Rules, tries: Tries, reach: Float64Array, values: Float64Array) -> int:
    """Walk over all histories from a position; return their number, or 0 if there is no room left.

    New nodes are added to the tries. Unless reach and values by sequence `(2, 1 + N * cells)` are
    empty, every terminal history adds the payoff times the other player's reach to a player's
    counterfactual value.
    """
    cells, children = rules.cells, tries.children
    depths = 2 * cells + 1
    position, left = np.empty(depths, np.int64), np.empty(depths, np.int64)
    node, last = np.zeros((2, depths), np.int64), np.zeros((2, depths), np.int64)
    position[0], histories, depth = tries.position, 1, 0
    left[0] = _untried(tries.position, cells)
    while depth >= 0:
        if left[depth] == 0:
            depth -= 1
            continue
        cell = length_of(left[depth])  # the highest one
        left[depth] ^= 1 << cell
        histories += 1
        player, other = position[depth] >> 4 * MAX_CELLS, 1 - (position[depth] >> 4 * MAX_CELLS)
        parent = node[player, depth]
        action = parent * cells + cell + 1
        after, success, end = move(rules, position[depth], cell)
        if end == WIN and values.size > 0:
            theirs = last[other, depth]
            values[player, action] += reach[other, theirs]
            values[other, theirs] -= reach[player, action]
        if end != OPEN:
            continue
        child = children[player, parent, cell, int(success)]
        if child == 0:
            if tries.sizes[player] == children.shape[1]:
                return 0
            child = children[player, parent, cell, int(success)] = tries.sizes[player]
            tries.sizes[player] += 1
            tries.actions[player, child] = tries.actions[player, parent]
            tries.outcomes[player, child] = tries.outcomes[player, parent]
            _append(tries.actions[player, child], tries.outcomes[player], child, cell, success)
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
def _sequence_reach(children: Int32Array, policy: Float64Array) -> Float64Array:
    """The probability of each sequence by its owner's choices."""
    nodes, cells, _ = children.shape
    before, reach = np.ones(nodes), np.ones(1 + nodes * cells)
    for node in range(nodes):
        for cell in range(cells):
            probability = before[node] * policy[node, cell]
            reach[1 + node * cells + cell] = probability
            for child in children[node, cell]:
                if child > 0:
                    before[child] = probability
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
                for child in children[node, cell]:
                    value += values[child] if child > 0 else 0.0
                best = max(best, value)
        values[node] = best
    return float(values[0] + terminal[0])
