"""`algorithms.public_tree` compiled: one walk over the public tree.

It is linear in the number of hands. Nodes are visited in depth-first order. The vectors of the
nodes from the root to the current one are on a stack, by depth. A node is *entered* when its turn
comes (reach probabilities, policy, the terminal nodes behind it) and *left* after its last
descendant (its values go to its parent).
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.cfr import Weights
from algorithms.compiled.jit import compiled, inlined, part
from algorithms.public_tree import CHANCE, COUNT, FOLD, PublicTree
from algorithms.support.arrays import Float32Array, Float64Array, Int16Array, Int64Array

ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
Vectors: TypeAlias = tuple[Float32Array, Float32Array, Float32Array]


class _Stack(NamedTuple):
    """The nodes from the root to the current one: D depths, L levels, A actions, n hands."""

    tree: PublicTree
    node: Int64Array  # (D,)
    policy: Float64Array  # (D, A, n) by edge of the node
    reach: Float64Array  # (2, L, n) by player and level
    end: Float64Array  # (2, n) both players' values at a terminal node
    card_mass: Float64Array  # (cards,) reach of the hands that hold a card
    mass: Float64Array  # (strengths,) reach by strength
    result: Float64Array  # (strengths,) value by the own strength


class _Values(NamedTuple):
    """Values of the nodes on the stack, by depth and hand."""

    best: Float64Array  # (2, D, n) of both players' best responses
    mixture: Float64Array  # (D, n) of the mover's policy, with its best response afterwards
    action: Int64Array  # (D, n) the mover's best action


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
    most_cards = 1
    if tree.cards.size > 0:
        most_cards += tree.cards.max()
    strengths = tree.strength.max() + 1
    reach = np.zeros((2, levels, hands))
    for player in range(2):
        for x in range(hands):
            reach[player, 0, x] = tree.weight[player, x]
    return _Stack(
        tree,
        np.zeros(depths, np.int64),
        np.zeros((depths, most_actions(tree), hands)),
        reach,
        np.zeros((2, hands)),
        np.zeros(most_cards),
        np.zeros(strengths),
        np.zeros(strengths),
    )


@compiled
def most_actions(tree: PublicTree) -> int:
    """The largest number of actions of a player."""
    most = 1
    for node in range(len(tree.player)):
        if tree.player[node] != CHANCE:
            most = max(most, tree.first_edge[node + 1] - tree.first_edge[node])
    return most


@compiled
def walk(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    best_actions: tuple[Int16Array, Int16Array],
    losses: tuple[Float64Array, Float64Array],
) -> Walk:
    """Measure a joint policy; write best actions `(I_p,)`, and losses where those are not empty."""
    stack = new_stack(tree)
    depths, _, hands = stack.policy.shape
    best = np.zeros((2, depths, hands))
    mixture = np.zeros((depths, hands))
    action = np.zeros((depths, hands), np.int64)
    values = _Values(best, mixture, action)
    value = 0.0
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _leave(stack, values, finished, best_actions, losses)
        last = depth
        _enter(stack, node, depth)
        player = tree.player[node]
        if player != CHANCE:
            invalid = _read_policy(stack, depth, tables[player])
            if invalid >= 0:
                return Walk(0.0, 0.0, 0.0, node, invalid)
        for x in range(tree.num_hands[tree.board[node]]):
            best[0, depth, x] = 0.0
            best[1, depth, x] = 0.0
            mixture[depth, x] = 0.0
            if player != CHANCE:
                best[player, depth, x] = -np.inf
        value += _add_terminals(stack, values, depth)
    for finished in range(last, -1, -1):
        _leave(stack, values, finished, best_actions, losses)
    best_0 = 0.0
    best_1 = 0.0
    for x in range(tree.num_hands[0]):
        best_0 += tree.weight[0, x] * best[0, 0, x]
        best_1 += tree.weight[1, x] * best[1, 0, x]
    return Walk(value, best_0, best_1, 0, -1)


@inlined
def _enter(stack: _Stack, node: int, depth: int) -> None:
    """Put a node on the stack, with the reach probabilities that change on the way to it."""
    tree = stack.tree
    stack.node[depth] = node
    if depth > 0:
        parent = stack.node[depth - 1]
        if tree.player[parent] == CHANCE:
            _deal(stack, depth - 1, tree.board[node])
        else:
            _act(stack, depth - 1, tree.parent_edge[node] - tree.first_edge[parent])


@inlined
def _act(stack: _Stack, depth: int, k: int) -> None:
    """The mover's reach after action k of the node at a depth, on its next level."""
    node = stack.node[depth]
    mover = stack.tree.player[node]
    level = stack.tree.level[node, mover]
    for x in range(stack.tree.num_hands[stack.tree.board[node]]):
        stack.reach[mover, level + 1, x] = stack.reach[mover, level, x] * stack.policy[depth, k, x]


@inlined
def _deal(stack: _Stack, depth: int, board: int) -> None:
    """Both players' reach on a new board, on their next levels."""
    node = stack.node[depth]
    for player in range(2):
        level = stack.tree.level[node, player]
        for x in range(stack.tree.num_hands[board]):
            old = stack.tree.old_hand[board, x]
            stack.reach[player, level + 1, x] = stack.reach[player, level, old]


@inlined
def _read_policy(stack: _Stack, depth: int, table: Float32Array) -> int:
    """Put the policy of a node on the stack; return an invalid information set, or -1."""
    tree = stack.tree
    node = stack.node[depth]
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
def _add_terminals(stack: _Stack, values: _Values, depth: int) -> float:
    """Add the values of the terminal nodes behind a node; return the policy's, to player 0."""
    tree = stack.tree
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
            _deal(stack, depth, board)
            level_0 += 1
            level_1 += 1
        else:
            _act(stack, depth, edge - first)
            if mover == 0:
                level_0 += 1
            else:
                level_1 += 1
        _write_values(stack, rule, 0, stack.reach[1, level_1], stack.end[0])
        _write_values(stack, rule, 1, stack.reach[0, level_0], stack.end[1])
        for x in range(tree.num_hands[board]):
            won += stack.reach[0, level_0, x] * stack.end[0, x]
        _add(stack, values, depth, edge, (stack.end[0], stack.end[1]))
    return won


@part
def _write_values(
    stack: _Stack, rule: int, player: int, reach: Float64Array, values: Float64Array
) -> None:
    """Write a player's values by hand `(n,)` at a terminal node, from the opponent's reach."""
    tree = stack.tree
    win, tie, lose = tree.payoff[rule, 0], tree.payoff[rule, 1], tree.payoff[rule, 2]
    kind = tree.rule[rule]
    if player == 1 and kind == FOLD:
        win = -win
    elif player == 1 and kind == COUNT:
        win, lose = -win, -lose  # the rule does not depend on whose strength is whose
    elif player == 1:
        win, tie, lose = -lose, -tie, -win
    if kind == FOLD:
        _write_fold(stack, rule, win, reach, values)
    elif kind == COUNT:
        _write_count(stack, rule, (win, lose), reach, values)
    elif tree.cards.shape[2] == 2:
        _write_showdown_of_two(stack, rule, (win, tie, lose), reach, values)
    else:
        _write_showdown(stack, rule, (win, tie, lose), reach, values)


@inlined
def _write_fold(
    stack: _Stack, rule: int, payoff: float, reach: Float64Array, values: Float64Array
) -> None:
    """The payoff times the reach of all hands that share no card."""
    cards = stack.tree.cards
    board = stack.tree.rule_board[rule]
    hands = stack.tree.num_hands[board]
    size = cards.shape[2]
    mass = stack.card_mass
    mass[:] = 0.0
    total = 0.0
    for x in range(hands):
        total += reach[x]
        for c in range(size):
            mass[cards[board, x, c]] += reach[x]
    itself = 1.0 if size == 2 else 0.0  # a pair of cards is subtracted twice from its own hand
    for x in range(hands):
        free = total + itself * reach[x]
        for c in range(size):
            free -= mass[cards[board, x, c]]
        values[x] = payoff * free


@inlined
def _write_count(
    stack: _Stack,
    rule: int,
    payoffs: tuple[float, float],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Win against strengths below the quantity minus the own strength, else lose."""
    tree = stack.tree
    win, lose = payoffs
    hands = tree.num_hands[tree.rule_board[rule]]
    order = tree.rule_order[rule]
    quantity = tree.rule_quantity[rule]
    mass = stack.mass
    for m in range(len(mass)):
        mass[m] = 0.0
    for x in range(hands):
        mass[tree.strength[order, x]] += reach[x]
    for m in range(len(mass)):
        value = 0.0
        for k in range(len(mass)):
            value += mass[k] * (win if m + k < quantity else lose)
        stack.result[m] = value
    for x in range(hands):
        values[x] = stack.result[tree.strength[order, x]]


@inlined
def _write_showdown(
    stack: _Stack,
    rule: int,
    payoffs: tuple[float, float, float],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Hands of one card, which share it with no other hand."""
    tree = stack.tree
    win, tie, lose = payoffs
    hands = tree.num_hands[tree.rule_board[rule]]
    strength = tree.strength[tree.rule_order[rule]]
    order = tree.by_strength[tree.rule_order[rule]]
    total = 0.0
    for x in range(hands):
        total += reach[x]
    weaker = 0.0
    start = 0
    while start < hands:
        equal = 0.0
        stop = start
        while stop < hands and strength[order[stop]] == strength[order[start]]:
            equal += reach[order[stop]]
            stop += 1
        stronger = total - weaker - equal
        for i in range(start, stop):
            x = order[i]
            values[x] = win * weaker + tie * (equal - reach[x]) + lose * stronger
        weaker += equal
        start = stop


@inlined
def _write_showdown_of_two(
    stack: _Stack,
    rule: int,
    payoffs: tuple[float, float, float],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Hands of two cards, in ascending order of strength.

    With W the reach of weaker hands, E that of weaker or equal ones and C that of all, hands that
    share a card left out, the value is win W + tie (E - W) + lose (C - E).
    """
    win, tie, lose = payoffs
    board = stack.tree.rule_board[rule]
    hands = stack.tree.num_hands[board]
    cards = stack.tree.cards[board]
    strength = stack.tree.strength[stack.tree.rule_order[rule]]
    order = stack.tree.by_strength[stack.tree.rule_order[rule]]
    mass = stack.card_mass
    mass[:] = 0.0
    total = 0.0
    start = 0
    while start < hands:
        stop = start
        while stop < hands and strength[order[stop]] == strength[order[start]]:
            x = order[stop]
            values[x] = (win - tie) * (total - mass[cards[x, 0]] - mass[cards[x, 1]])
            stop += 1
        for i in range(start, stop):
            x = order[i]
            total += reach[x]
            mass[cards[x, 0]] += reach[x]
            mass[cards[x, 1]] += reach[x]
        for i in range(start, stop):
            x = order[i]
            until = total - mass[cards[x, 0]] - mass[cards[x, 1]] + reach[x]
            values[x] += (tie - lose) * until
        start = stop
    for x in range(hands):
        values[x] += lose * (total - mass[cards[x, 0]] - mass[cards[x, 1]] + reach[x])


@inlined
def _add(
    stack: _Stack,
    values: _Values,
    depth: int,
    edge: int,
    after: tuple[Float64Array, Float64Array],
) -> None:
    """Add both players' values after an edge to those of the node at a depth."""
    tree = stack.tree
    node = stack.node[depth]
    mover = tree.player[node]
    target = tree.target[edge]
    board = tree.board[target] if target >= 0 else tree.rule_board[-1 - target]
    hands = tree.num_hands[board]
    if mover == CHANCE:
        for x in range(hands):
            old = tree.old_hand[board, x]
            values.best[0, depth, old] += after[0][x]
            values.best[1, depth, old] += after[1][x]
    else:
        chosen = tree.action[edge]
        k = edge - tree.first_edge[node]
        own = after[mover]
        other = after[1 - mover]
        for x in range(hands):
            value = own[x]
            values.best[1 - mover, depth, x] += other[x]
            values.mixture[depth, x] += stack.policy[depth, k, x] * value
            before = values.best[mover, depth, x]
            if value > before or (value == before and chosen < values.action[depth, x]):
                values.best[mover, depth, x] = value
                values.action[depth, x] = chosen


@inlined
def _leave(
    stack: _Stack,
    values: _Values,
    depth: int,
    best_actions: tuple[Int16Array, Int16Array],
    losses: tuple[Float64Array, Float64Array],
) -> None:
    """Write a node's best actions and losses, and add its values to its parent's."""
    tree = stack.tree
    node = stack.node[depth]
    mover = tree.player[node]
    if mover != CHANCE:
        hands = tree.num_hands[tree.board[node]]
        first = tree.first_infoset[node]
        for x in range(hands):
            best_actions[mover][first + x] = values.action[depth, x]
        if len(losses[mover]) > 0:
            level = tree.level[node, mover]
            for x in range(hands):
                missed = values.best[mover, depth, x] - values.mixture[depth, x]
                losses[mover][first + x] = stack.reach[mover, level, x] * missed
    if depth > 0:
        after = (values.best[0, depth], values.best[1, depth])
        _add(stack, values, depth - 1, tree.parent_edge[node], after)


@compiled
def write_own_reach(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    reach: tuple[Float64Array, Float64Array],
) -> int:
    """Write each information set's reach by its owner's actions, times its hand's weight `(I_p,)`.

    Returns a node with a row that is not a distribution, or -1.
    """
    stack = new_stack(tree)
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        _enter(stack, node, depth)
        player = tree.player[node]
        if player != CHANCE:
            if _read_policy(stack, depth, tables[player]) >= 0:
                return node
            level = tree.level[node, player]
            first = tree.first_infoset[node]
            for x in range(tree.num_hands[tree.board[node]]):
                reach[player][first + x] = stack.reach[player, level, x]
    return -1


@compiled
def iterate(
    tree: PublicTree, vectors: Vectors, player: int, weights: Weights, updates: Int64Array
) -> None:
    """Update a player's regrets, predicted regrets and averages `(E, n)` in one walk."""
    stack = new_stack(tree)
    value = np.zeros(stack.policy.shape)  # the player's, by depth and action
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _finish(stack, value, finished, vectors, (player, weights))
        last = depth
        _enter(stack, node, depth)
        owner = tree.player[node]
        hands = tree.num_hands[tree.board[node]]
        if owner == CHANCE:
            for x in range(hands):
                value[depth, 0, x] = 0.0
        else:
            first = tree.first_edge[node]
            actions = tree.first_edge[node + 1] - first
            match_regrets(vectors[1], first, actions, hands, stack.policy[depth])
            if owner == player:
                level = tree.level[node, owner]
                for k in range(actions):
                    for x in range(hands):
                        weighted = weights[2] * stack.reach[owner, level, x]
                        vectors[2][first + k, x] += weighted * stack.policy[depth, k, x]
        _set_terminals(stack, value, depth, player)
    for finished in range(last, -1, -1):
        _finish(stack, value, finished, vectors, (player, weights))
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
def _set_terminals(stack: _Stack, value: Float64Array, depth: int, player: int) -> None:
    """Set a player's values of the terminal nodes behind a node."""
    tree = stack.tree
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
            _deal(stack, depth, board)
            level += 1
        elif owner == opponent:
            _act(stack, depth, edge - first)
            level += 1
        if owner == CHANCE:
            _write_values(stack, rule, player, stack.reach[opponent, level], stack.end[0])
            for x in range(tree.num_hands[board]):
                value[depth, 0, tree.old_hand[board, x]] += stack.end[0, x]
        else:
            k = edge - first
            _write_values(stack, rule, player, stack.reach[opponent, level], value[depth, k])


@inlined
def _finish(
    stack: _Stack,
    value: Float64Array,
    depth: int,
    vectors: Vectors,
    update: tuple[int, Weights],
) -> None:
    """Update the player's regrets if it acts at the node, and hand its values to the parent."""
    tree = stack.tree
    node = stack.node[depth]
    owner = tree.player[node]
    player, weights = update
    hands = tree.num_hands[tree.board[node]]
    actions = tree.first_edge[node + 1] - tree.first_edge[node]
    mean = stack.end[1]
    for x in range(hands):
        total = 0.0
        if owner == CHANCE:
            total = value[depth, 0, x]
        elif owner == player:
            for k in range(actions):
                total += stack.policy[depth, k, x] * value[depth, k, x]
        else:
            for k in range(actions):  # the opponent's probabilities are in its reach
                total += value[depth, k, x]
        mean[x] = total
    if owner == player:
        _update_regrets(stack, value, depth, vectors, weights)
    if depth > 0:
        parent = stack.node[depth - 1]
        board = tree.board[node]
        k = tree.parent_edge[node] - tree.first_edge[parent]
        for x in range(hands):
            if tree.player[parent] == CHANCE:
                value[depth - 1, 0, tree.old_hand[board, x]] += mean[x]
            else:
                value[depth - 1, k, x] = mean[x]


@inlined
def _update_regrets(
    stack: _Stack, value: Float64Array, depth: int, vectors: Vectors, weights: Weights
) -> None:
    """Update regrets and predicted regrets at a node, whose mean values are in `stack.end[1]`."""
    tree = stack.tree
    node = stack.node[depth]
    first = tree.first_edge[node]
    regret, predicted, _ = vectors
    discount_positive, discount_negative, _, prediction = weights
    for k in range(tree.first_edge[node + 1] - first):
        for x in range(tree.num_hands[tree.board[node]]):
            new = value[depth, k, x] - stack.end[1, x]
            total = regret[first + k, x] + new
            total *= discount_positive if total >= 0 else discount_negative
            regret[first + k, x] = total
            if prediction > 0:
                predicted[first + k, x] = total + new


@compiled
def write_policy(
    tree: PublicTree, weights: Float32Array, tables: tuple[Float32Array, Float32Array]
) -> None:
    """Write the policy in proportion to positive weights `(E, n)` into one table per player."""
    policy = np.zeros((most_actions(tree), tree.weight.shape[1]))
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
