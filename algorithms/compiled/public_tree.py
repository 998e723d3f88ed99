"""`algorithms.large_games.public_tree` compiled: one walk over the public tree, linear in the hands.

Nodes are visited in depth-first order. The vectors of the nodes from the root to the current one
are on a stack, by depth. A node is *entered* when its turn comes (reach probabilities, policy, the
terminal nodes behind it) and *left* after its last descendant (its values go to its parent).
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.cfr import Weights
from algorithms.compiled.jit import compiled, inlined, part
from algorithms.large_games.public_tree import CHANCE, COUNT, FOLD, PublicTree
from algorithms.support.arrays import (
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
)

ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
Vectors: TypeAlias = tuple[Float32Array, Float32Array, Float32Array]
BestActions: TypeAlias = tuple[Int8Array, Int8Array] | tuple[Int32Array, Int32Array]


class _Stack(NamedTuple):
    """The nodes from the root to the current one: D depths, L levels, A actions, n hands."""

    node: Int64Array  # (D,)
    policy: Float64Array  # (D, A, n) by edge of the node
    reach: Float64Array  # (2, L, n) by player and level
    end: Float64Array  # (2, n) both players' values at a terminal node
    card_mass: Float64Array  # (cards,) reach of the hands that hold a card
    weaker: Float64Array  # (n,) scratch
    mass: Float64Array  # (strengths,) reach by strength


class Walk(NamedTuple):
    """What one walk finds."""

    value: float  # player 0's
    best_value_0: float
    best_value_1: float
    invalid_node: int  # where a row is not a distribution; the walk ends there
    invalid_infoset: int  # whose row it is, or -1


@compiled
def new_stack(tree: PublicTree) -> _Stack:
    """A stack before the root: each player's reach is the weight of its hands."""
    depths = int(tree.depth.max()) + 1
    levels = int(tree.level.max()) + 2
    hands = tree.weight.shape[1]
    actions = 0
    for node in range(len(tree.player)):
        if tree.player[node] != CHANCE:
            actions = max(actions, tree.first_edge[node + 1] - tree.first_edge[node])
    most_cards = 1
    if tree.cards.size > 0:
        most_cards += tree.cards.max()
    reach = np.zeros((2, levels, hands))
    for player in range(2):
        for x in range(hands):
            reach[player, 0, x] = tree.weight[player, x]
    return _Stack(
        np.zeros(depths, np.int64),
        np.zeros((depths, actions, hands)),
        reach,
        np.zeros((2, hands)),
        np.zeros(most_cards),
        np.zeros(hands),
        np.zeros(tree.strength.max() + 1),
    )


@compiled
def walk(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    best_actions: BestActions,
    losses: tuple[Float64Array, Float64Array],
) -> Walk:
    """Measure a joint policy; write best actions `(I_p,)`, and losses where those are not empty."""
    stack = new_stack(tree)
    depths, _, hands = stack.policy.shape
    best = np.zeros((2, depths, hands))
    mixture = np.zeros((depths, hands))
    action = np.zeros((depths, hands), np.int64)
    value = 0.0
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _leave(tree, stack, best, mixture, action, finished, best_actions, losses)
        last = depth
        _enter(tree, stack, node, depth)
        player = tree.player[node]
        invalid = -1
        if player != CHANCE:
            invalid = _read_policy(tree, stack, node, depth, tables[player])
        if invalid >= 0:
            return Walk(0.0, 0.0, 0.0, node, invalid)
        count = tree.num_hands[tree.board[node]]
        for x in range(count):
            best[0, depth, x] = 0.0
            best[1, depth, x] = 0.0
        if player != CHANCE:
            for x in range(count):
                best[player, depth, x] = -np.inf
                mixture[depth, x] = 0.0
        value += _add_terminals(tree, stack, best, mixture, action, depth)
    for finished in range(last, -1, -1):
        _leave(tree, stack, best, mixture, action, finished, best_actions, losses)
    best_0 = 0.0
    best_1 = 0.0
    for x in range(tree.num_hands[0]):
        best_0 += tree.weight[0, x] * best[0, 0, x]
        best_1 += tree.weight[1, x] * best[1, 0, x]
    return Walk(value, best_0, best_1, 0, -1)


@inlined
def _enter(tree: PublicTree, stack: _Stack, node: int, depth: int) -> None:
    """Put a node on the stack, with the reach probabilities that change on the way to it."""
    stack.node[depth] = node
    if depth > 0:
        parent = stack.node[depth - 1]
        edge = tree.parent_edge[node]
        mover = tree.player[parent]
        if mover == CHANCE:
            _deal(tree, stack, parent, tree.board[node])
        else:
            _act(tree, stack, parent, depth - 1, edge - tree.first_edge[parent], mover)


@inlined
def _act(tree: PublicTree, stack: _Stack, node: int, depth: int, k: int, mover: int) -> None:
    """The mover's reach after action k, on its next level."""
    level = tree.level[node, mover]
    for x in range(tree.num_hands[tree.board[node]]):
        stack.reach[mover, level + 1, x] = stack.reach[mover, level, x] * stack.policy[depth, k, x]


@inlined
def _deal(tree: PublicTree, stack: _Stack, node: int, board: int) -> None:
    """Both players' reach on a new board, on their next levels."""
    for player in range(2):
        level = tree.level[node, player]
        for x in range(tree.num_hands[board]):
            old = tree.old_hand[board, x]
            stack.reach[player, level + 1, x] = stack.reach[player, level, old]


@inlined
def _read_policy(
    tree: PublicTree, stack: _Stack, node: int, depth: int, table: Float32Array
) -> int:
    """Put the policy of a node on the stack; return an invalid information set, or -1."""
    first = tree.first_edge[node]
    count = tree.first_edge[node + 1] - first
    hands = tree.num_hands[tree.board[node]]
    if count == 1:
        for x in range(hands):
            stack.policy[depth, 0, x] = 1.0
        return -1
    infoset = tree.first_infoset[node]
    for x in range(hands):
        total = 0.0
        least = 0.0
        for k in range(count):
            probability = float(table[infoset + x, tree.action[first + k]])
            total += probability
            least = min(least, probability)
            stack.policy[depth, k, x] = probability
        if least < 0 or not abs(total - 1) <= ROW_SUM_TOLERANCE:
            return int(infoset + x)
        scale = 1 / total
        for k in range(count):
            stack.policy[depth, k, x] *= scale
    return -1


@inlined
def _add_terminals(
    tree: PublicTree,
    stack: _Stack,
    best: Float64Array,
    mixture: Float64Array,
    action: Int64Array,
    depth: int,
) -> float:
    """Add the values of the terminal nodes behind a node; return the policy's, to player 0."""
    node = stack.node[depth]
    mover = int(tree.player[node])
    first = tree.first_edge[node]
    won = 0.0
    for edge in range(first, tree.first_edge[node + 1]):
        target = tree.target[edge]
        if target >= 0:
            continue
        rule = -1 - target
        board = tree.rule_board[rule]
        level_0 = tree.level[node, 0]
        level_1 = tree.level[node, 1]
        if mover == CHANCE:
            _deal(tree, stack, node, board)
            level_0 += 1
            level_1 += 1
        else:
            _act(tree, stack, node, depth, edge - first, mover)
            if mover == 0:
                level_0 += 1
            else:
                level_1 += 1
        _write_values(tree, stack, rule, 0, stack.reach[1, level_1], stack.end[0])
        _write_values(tree, stack, rule, 1, stack.reach[0, level_0], stack.end[1])
        for x in range(tree.num_hands[board]):
            won += stack.reach[0, level_0, x] * stack.end[0, x]
        _add(
            tree, stack, best, mixture, action, depth, edge, board, stack.end[0], stack.end[1]
        )
    return won


@part
def _write_values(
    tree: PublicTree,
    stack: _Stack,
    rule: int,
    player: int,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Write a player's values by hand `(n,)` at a terminal node, from the opponent's reach."""
    win, tie, lose = tree.payoff[rule, 0], tree.payoff[rule, 1], tree.payoff[rule, 2]
    kind = tree.rule[rule]
    if player == 1 and kind == FOLD:
        win = -win
    elif player == 1 and kind == COUNT:
        win, lose = -win, -lose  # the rule does not depend on whose strength is whose
    elif player == 1:
        win, tie, lose = -lose, -tie, -win
    if kind == FOLD:
        _write_fold(tree, stack, rule, win, reach, values)
    elif kind == COUNT:
        _write_count(tree, stack, rule, win, lose, reach, values)
    elif tree.cards.shape[2] == 2:
        _write_showdown_of_two(tree, stack, rule, win, tie, lose, reach, values)
    else:
        _write_showdown(tree, stack, rule, win, tie, lose, reach, values)


@inlined
def _write_fold(
    tree: PublicTree,
    stack: _Stack,
    rule: int,
    payoff: float,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """The payoff times the reach of all hands that share no card."""
    board = tree.rule_board[rule]
    hands = tree.num_hands[board]
    size = tree.cards.shape[2]
    mass = stack.card_mass
    mass[:] = 0.0
    total = 0.0
    for x in range(hands):
        total += reach[x]
        for c in range(size):
            mass[tree.cards[board, x, c]] += reach[x]
    itself = 1.0 if size == 2 else 0.0  # a pair of cards is subtracted twice from its own hand
    for x in range(hands):
        free = total + itself * reach[x]
        for c in range(size):
            free -= mass[tree.cards[board, x, c]]
        values[x] = payoff * free


@inlined
def _write_count(
    tree: PublicTree,
    stack: _Stack,
    rule: int,
    win: float,
    lose: float,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Win against strengths below the quantity minus the own strength, else lose."""
    board = tree.rule_board[rule]
    order = tree.rule_order[rule]
    quantity = tree.rule_quantity[rule]
    mass = stack.mass
    result = stack.weaker
    for m in range(len(mass)):
        mass[m] = 0.0
    for x in range(tree.num_hands[board]):
        mass[tree.strength[order, x]] += reach[x]
    for m in range(len(mass)):
        value = 0.0
        for k in range(len(mass)):
            value += mass[k] * (win if m + k < quantity else lose)
        result[m] = value
    for x in range(tree.num_hands[board]):
        values[x] = result[tree.strength[order, x]]


@inlined
def _write_showdown(
    tree: PublicTree,
    stack: _Stack,
    rule: int,
    win: float,
    tie: float,
    lose: float,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Hands of one card: equally strong hands share no card with another hand."""
    board = tree.rule_board[rule]
    order = tree.rule_order[rule]
    hands = tree.num_hands[board]
    total = 0.0
    for x in range(hands):
        total += reach[x]
    start = 0
    weaker = 0.0
    while start < hands:
        strength = tree.strength[order, tree.by_strength[order, start]]
        stop = start
        equal = 0.0
        while stop < hands and tree.strength[order, tree.by_strength[order, stop]] == strength:
            equal += reach[tree.by_strength[order, stop]]
            stop += 1
        stronger = total - weaker - equal
        for i in range(start, stop):
            x = tree.by_strength[order, i]
            values[x] = win * weaker + tie * (equal - reach[x]) + lose * stronger
        weaker += equal
        start = stop


@inlined
def _write_showdown_of_two(
    tree: PublicTree,
    stack: _Stack,
    rule: int,
    win: float,
    tie: float,
    lose: float,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Hands of two cards, in ascending order of strength.

    With W the reach of weaker hands, E that of weaker or equal ones and C that of all, hands that
    share a card left out, the value is win W + tie (E - W) + lose (C - E).
    """
    board = tree.rule_board[rule]
    order = tree.rule_order[rule]
    hands = tree.num_hands[board]
    mass = stack.card_mass
    mass[:] = 0.0
    total = 0.0
    start = 0
    while start < hands:
        strength = tree.strength[order, tree.by_strength[order, start]]
        stop = start
        while stop < hands:
            x = tree.by_strength[order, stop]
            if tree.strength[order, x] != strength:
                break
            weaker = total - mass[tree.cards[board, x, 0]] - mass[tree.cards[board, x, 1]]
            values[x] = (win - tie) * weaker
            stop += 1
        for i in range(start, stop):
            x = tree.by_strength[order, i]
            total += reach[x]
            mass[tree.cards[board, x, 0]] += reach[x]
            mass[tree.cards[board, x, 1]] += reach[x]
        for i in range(start, stop):
            x = tree.by_strength[order, i]
            until = total - mass[tree.cards[board, x, 0]] - mass[tree.cards[board, x, 1]]
            values[x] += (tie - lose) * (until + reach[x])
        start = stop
    for x in range(hands):
        free = total - mass[tree.cards[board, x, 0]] - mass[tree.cards[board, x, 1]]
        values[x] += lose * (free + reach[x])


@inlined
def _add(
    tree: PublicTree,
    stack: _Stack,
    best: Float64Array,
    mixture: Float64Array,
    action: Int64Array,
    depth: int,
    edge: int,
    board: int,
    values_0: Float64Array,
    values_1: Float64Array,
) -> None:
    """Add both players' values after an edge, on a board, to those of the node at a depth."""
    node = stack.node[depth]
    mover = tree.player[node]
    hands = tree.num_hands[board]
    if mover == CHANCE:
        for x in range(hands):
            old = tree.old_hand[board, x]
            best[0, depth, old] += values_0[x]
            best[1, depth, old] += values_1[x]
    else:
        chosen = tree.action[edge]
        k = edge - tree.first_edge[node]
        for x in range(hands):
            value = values_0[x] if mover == 0 else values_1[x]
            best[1 - mover, depth, x] += values_1[x] if mover == 0 else values_0[x]
            mixture[depth, x] += stack.policy[depth, k, x] * value
            before = best[mover, depth, x]
            if value > before or (value == before and chosen < action[depth, x]):
                best[mover, depth, x] = value
                action[depth, x] = chosen


@inlined
def _leave(
    tree: PublicTree,
    stack: _Stack,
    best: Float64Array,
    mixture: Float64Array,
    action: Int64Array,
    depth: int,
    best_actions: BestActions,
    losses: tuple[Float64Array, Float64Array],
) -> None:
    """Write a node's best actions and losses, and add its values to its parent's."""
    node = stack.node[depth]
    mover = tree.player[node]
    board = tree.board[node]
    if mover != CHANCE:
        first = tree.first_infoset[node]
        for x in range(tree.num_hands[board]):
            best_actions[mover][first + x] = action[depth, x]
        if len(losses[mover]) > 0:
            level = tree.level[node, mover]
            for x in range(tree.num_hands[board]):
                missed = best[mover, depth, x] - mixture[depth, x]
                losses[mover][first + x] = stack.reach[mover, level, x] * missed
    if depth > 0:
        edge = tree.parent_edge[node]
        values_0, values_1 = best[0, depth], best[1, depth]
        _add(tree, stack, best, mixture, action, depth - 1, edge, board, values_0, values_1)


@compiled
def iterate(
    tree: PublicTree, vectors: Vectors, player: int, weights: Weights, updates: Int64Array
) -> None:
    """Update a player's regrets, predicted regrets and averages `(E, n)` in one walk."""
    stack = new_stack(tree)
    depths, actions, hands = stack.policy.shape
    value = np.zeros((depths, max(actions, 1), hands))  # of the player, by depth and action
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _update_regrets(tree, stack, value, finished, vectors, player, weights)
        last = depth
        _enter(tree, stack, node, depth)
        owner = tree.player[node]
        count = tree.num_hands[tree.board[node]]
        if owner == CHANCE:
            for x in range(count):
                value[depth, 0, x] = 0.0
        else:
            first = tree.first_edge[node]
            actions = tree.first_edge[node + 1] - first
            match_regrets(vectors[1], first, actions, count, stack.policy[depth])
            if owner == player:
                level = tree.level[node, owner]
                for k in range(actions):
                    for x in range(count):
                        weighted = weights[2] * stack.reach[owner, level, x]
                        vectors[2][first + k, x] += weighted * stack.policy[depth, k, x]
        _set_terminals(tree, stack, value, depth, player)
    for finished in range(last, -1, -1):
        _update_regrets(tree, stack, value, finished, vectors, player, weights)
    updates[0] += 1


@inlined
def match_regrets(
    weights: Float32Array, first: int, actions: int, hands: int, policy: Float64Array
) -> None:
    """Make a policy `(actions, n)` proportional to positive weights, uniform where none is > 0."""
    uniform = 1.0 / actions
    for x in range(hands):
        total = 0.0
        for k in range(actions):
            total += max(weights[first + k, x], 0.0)
        for k in range(actions):
            policy[k, x] = max(weights[first + k, x], 0.0) / total if total > 0 else uniform


@inlined
def _set_terminals(
    tree: PublicTree, stack: _Stack, value: Float64Array, depth: int, player: int
) -> None:
    """Set a player's values of the terminal nodes behind a node."""
    node = stack.node[depth]
    owner = int(tree.player[node])
    opponent = 1 - player
    first = tree.first_edge[node]
    for edge in range(first, tree.first_edge[node + 1]):
        target = tree.target[edge]
        if target >= 0:
            continue
        rule = -1 - target
        board = tree.rule_board[rule]
        level = tree.level[node, opponent]
        if owner == CHANCE:
            _deal(tree, stack, node, board)
            level += 1
        elif owner == opponent:
            _act(tree, stack, node, depth, edge - first, owner)
            level += 1
        _write_values(tree, stack, rule, player, stack.reach[opponent, level], stack.end[0])
        for x in range(tree.num_hands[board]):
            if owner == CHANCE:
                value[depth, 0, tree.old_hand[board, x]] += stack.end[0, x]
            else:
                value[depth, edge - first, x] = stack.end[0, x]


@inlined
def _update_regrets(
    tree: PublicTree,
    stack: _Stack,
    value: Float64Array,
    depth: int,
    vectors: Vectors,
    player: int,
    weights: Weights,
) -> None:
    """Update the player's regrets if it acts at the node, and hand its values to the parent."""
    node = stack.node[depth]
    owner = tree.player[node]
    board = tree.board[node]
    hands = tree.num_hands[board]
    first = tree.first_edge[node]
    actions = tree.first_edge[node + 1] - first
    regret, predicted, _ = vectors
    discount_positive, discount_negative, _, prediction = weights
    mean = stack.end[1]
    if owner == CHANCE:
        for x in range(hands):
            mean[x] = value[depth, 0, x]
    elif owner != player:
        for x in range(hands):
            total = 0.0
            for k in range(actions):  # the opponent's probabilities are in its reach
                total += value[depth, k, x]
            mean[x] = total
    else:
        for x in range(hands):
            total = 0.0
            for k in range(actions):
                total += stack.policy[depth, k, x] * value[depth, k, x]
            mean[x] = total
            for k in range(actions):
                new = value[depth, k, x] - total
                summed = regret[first + k, x] + new
                summed *= discount_positive if summed >= 0 else discount_negative
                regret[first + k, x] = summed
                if prediction > 0:
                    predicted[first + k, x] = summed + new
    if depth > 0:
        parent = stack.node[depth - 1]
        if tree.player[parent] == CHANCE:
            for x in range(hands):
                value[depth - 1, 0, tree.old_hand[board, x]] += mean[x]
        else:
            k = tree.parent_edge[node] - tree.first_edge[parent]
            for x in range(hands):
                value[depth - 1, k, x] = mean[x]


@compiled
def write_policy(
    tree: PublicTree, weights: Float32Array, tables: tuple[Float32Array, Float32Array]
) -> None:
    """Write the policy in proportion to positive weights `(E, n)` into one table per player."""
    most = 0
    for node in range(len(tree.player)):
        if tree.player[node] != CHANCE:
            most = max(most, tree.first_edge[node + 1] - tree.first_edge[node])
    policy = np.zeros((most, tree.weight.shape[1]))
    for node in range(len(tree.player)):
        player = tree.player[node]
        if player == CHANCE:
            continue
        first = tree.first_edge[node]
        actions = tree.first_edge[node + 1] - first
        hands = tree.num_hands[tree.board[node]]
        match_regrets(weights, first, actions, hands, policy)
        table = tables[player]
        infoset = tree.first_infoset[node]
        for x in range(hands):
            for k in range(actions):
                table[infoset + x, tree.action[first + k]] = policy[k, x]
