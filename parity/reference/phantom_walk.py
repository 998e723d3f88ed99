"""The reference: values and best responses by a walk over all histories of a phantom game.

It shares only the rules with the factored products: it finds both players' private sequences itself
and visits every terminal history. A history takes some nanoseconds, which is fast enough for small
boards, and for large ones from a position some moves into the game.

A *position* is an integer that holds, from the lowest bits on, in `MAX_CELLS` bits each,

    the cells that player 0 holds, that player 1 holds,
    the cells that player 0 has tried, that player 1 has tried,

and above these the player to move.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.compiled.jit import compiled, part
from algorithms.large_games.phantom.rules import MAX_CELLS, Rules
from algorithms.large_games.phantom.sequences import Sequences, infosets_of, length_of
from algorithms.nashconv import Measure
from algorithms.support.arrays import Float64Array, Int8Array, Int16Array, Int32Array, Int64Array

# The state of the game after a move.
OPEN = 0
DRAW = 1
WIN = 2
ALL_CELLS = (1 << MAX_CELLS) - 1  # a bit mask
FIRST_SIZE = 2**14  # nodes of a trie for which room is made at first


class Tries(NamedTuple):
    """Both players' private sequences after a position, parents first: up to N nodes of each.

    A trie has a node for each sequence of tried cells and their results: failure, if the other
    player holds the cell, or success. Node 0 is a player's own sequence in the position.
    """

    position: int
    histories: int  # how many there are from the position on, including its own
    sizes: Int64Array  # (2,): how many nodes are used
    children: Int32Array  # (2, N, cells, 2): the node after failure or success; 0: none
    actions: Int8Array  # (2, N, cells): from the first move on, -1 after the last
    outcomes: Int16Array  # (2, N), as in `algorithms.large_games.phantom.sequences`


def find_tries(rules: Rules, opening: Sequence[int] = ()) -> Tries:
    """The private sequences of both players after an opening, a list of cells."""
    size = FIRST_SIZE
    while True:
        tries = _tries_after(rules, opening, size)
        no_values = np.zeros((2, 0))
        histories = _visit(rules, tries, no_values, no_values)
        if histories > 0:
            break
        size *= 4
    used = int(tries.sizes.max())
    return Tries(
        position=tries.position,
        histories=histories,
        sizes=tries.sizes,
        children=np.ascontiguousarray(tries.children[:, :used]),
        actions=np.ascontiguousarray(tries.actions[:, :used]),
        outcomes=np.ascontiguousarray(tries.outcomes[:, :used]),
    )


def _tries_after(rules: Rules, opening: Sequence[int], size: int) -> Tries:
    """Tries of the position after an opening, with room for `size` nodes; node 0 alone is used."""
    actions = np.full((2, size, rules.cells), -1, np.int8)
    outcomes = np.ones((2, size), np.int16)
    position = 0
    for cell in opening:
        player = player_to_move(position)
        position, success, _ = move(rules, position, cell)
        _append(actions[player, 0], outcomes[player], 0, cell, success)
    return Tries(
        position=position,
        histories=0,  # not known yet
        sizes=np.ones(2, np.int64),
        children=np.zeros((2, size, rules.cells, 2), np.int32),
        actions=actions,
        outcomes=outcomes,
    )


def policies_of(
    tries: Tries, sequences: Sequence[Sequences], rows: Sequence[Callable[[Int64Array], Any]]
) -> Float64Array:
    """Policies by node `(2, N, cells)`, normalised; 0 where a player does not act.

    `rows` give the rows `(n, cells)` of each player's policy at information sets `(n,)`.
    """
    policies = np.zeros(tries.actions.shape)
    for player, rows_of in enumerate(rows):
        infosets = infosets_of(sequences[player], tries.actions[player], tries.outcomes[player])
        acts = infosets >= 0  # (N,)
        probabilities = np.asarray(rows_of(infosets[acts]), np.float64)
        policies[player, acts] = probabilities / probabilities.sum(axis=1, keepdims=True)
    return policies


def walk(rules: Rules, tries: Tries, policies: Float64Array) -> Measure:
    """The values of policies `(2, N, cells)` and of best responses, by visiting every history.

    Sequence 0 is node 0, and sequence n * cells + a + 1 ends in action a at node n.
    """
    reach = np.stack([_sequence_reach(tries.children[p], policies[p]) for p in (0, 1)])
    # The counterfactual values of terminal histories, by player and sequence.
    terminal_values = np.zeros_like(reach)
    _visit(rules, tries, reach, terminal_values)
    value = float(reach[0] @ terminal_values[0])
    best0, best1 = (
        _best_value(tries.children[p], tries.actions[p], terminal_values[p]) for p in (0, 1)
    )
    return Measure((value, -value), (best0, best1), tuple, tuple)


@compiled
def player_to_move(position: int) -> int:
    """The player to move in a position."""
    return position >> 4 * MAX_CELLS


@compiled
def held_cells(position: int, player: int) -> int:
    """The cells that a player holds, as a bit mask."""
    return position >> MAX_CELLS * player & ALL_CELLS


@compiled
def tried_cells(position: int, player: int) -> int:
    """The cells that a player has tried, as a bit mask."""
    return position >> MAX_CELLS * (2 + player) & ALL_CELLS


@compiled
def move(rules: Rules, position: int, cell: int) -> tuple[int, bool, int]:
    """The position after a move, whether the move succeeds, and the state of the game."""
    player = player_to_move(position)
    is_held = held_cells(position, 1 - player) >> cell & 1
    success = not is_held
    position |= 1 << (MAX_CELLS * (2 + player) + cell)  # tried
    if success or rules.abrupt:
        position ^= 1 << 4 * MAX_CELLS  # the other player is to move
    if not success:
        return position, False, OPEN
    position |= 1 << (MAX_CELLS * player + cell)  # held
    own = held_cells(position, player)
    if rules.wins[player, own]:
        return position, True, WIN
    if own | held_cells(position, 1 - player) == (1 << rules.cells) - 1:
        return position, True, DRAW
    return position, True, OPEN


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

    The walk is depth first. At each depth the stacks below have the position, the cells that are
    still to be tried there, and for each player its node and its last sequence.
    """
    cells = rules.cells
    children = tries.children
    depths = 2 * cells + 1
    position = np.empty(depths, np.int64)
    cells_left = np.empty(depths, np.int64)
    node = np.zeros((2, depths), np.int64)
    sequence = np.zeros((2, depths), np.int64)
    position[0] = tries.position
    cells_left[0] = _untried(tries.position, cells)
    histories = 1
    depth = 0
    while depth >= 0:
        if cells_left[depth] == 0:
            depth -= 1
            continue
        cell = length_of(cells_left[depth])  # the highest one
        cells_left[depth] ^= 1 << cell
        histories += 1
        player = player_to_move(position[depth])
        other = 1 - player
        parent = node[player, depth]
        action = parent * cells + cell + 1  # the sequence that ends in this move
        after, success, end = move(rules, position[depth], cell)
        if end == WIN and values.size > 0:
            their_sequence = sequence[other, depth]
            values[player, action] += reach[other, their_sequence]
            values[other, their_sequence] -= reach[player, action]
        if end != OPEN:
            continue
        child = children[player, parent, cell, int(success)]
        if child == 0:
            child = tries.sizes[player]
            if child == children.shape[1]:
                return 0
            children[player, parent, cell, int(success)] = child
            tries.sizes[player] += 1
            tries.actions[player, child] = tries.actions[player, parent]
            tries.outcomes[player, child] = tries.outcomes[player, parent]
            _append(tries.actions[player, child], tries.outcomes[player], child, cell, success)
        depth += 1
        position[depth] = after
        cells_left[depth] = _untried(after, cells)
        node[player, depth] = child
        sequence[player, depth] = action
        node[other, depth] = node[other, depth - 1]
        sequence[other, depth] = sequence[other, depth - 1]
    return histories


@part
def _untried(position: int, cells: int) -> int:
    """The cells that the player to move has not tried, as a bit mask."""
    return ~tried_cells(position, player_to_move(position)) & ((1 << cells) - 1)


@compiled
def _sequence_reach(children: Int32Array, policy: Float64Array) -> Float64Array:
    """The probability of each sequence by its owner's choices."""
    nodes, cells, _ = children.shape
    before = np.ones(nodes)
    reach = np.ones(1 + nodes * cells)
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
