"""`algorithms.public_tree` compiled: one walk over the public tree.

It is linear in the number of hands. Nodes are visited in depth-first order. The vectors of the
nodes from the root to the current one are on a stack, by depth. A node is *entered* when its turn
comes (reach probabilities, policy, the terminal nodes behind it) and *left* after its last
descendant (its values go to its parent).
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.cfr import Weights
from algorithms.compiled.jit import compiled, inlined, part, without_references
from algorithms.public_tree import CHANCE, COUNT, FOLD, PublicTree
from algorithms.support.arrays import Float32Array, Float64Array, Int16Array, Int32Array, Int64Array

ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
Vectors: TypeAlias = tuple[Float32Array, Float32Array, Float32Array]


class Stack(NamedTuple):
    """The nodes from the root to the current one: D depths, L levels, A actions, n hands."""

    node: Int64Array  # (D,)
    policy: Float64Array  # (D, A, n) by edge of the node
    reach: Float64Array  # (2, L, n) by player and level
    end: Float64Array  # (2, n) both players' values at a terminal node
    card_mass: Float64Array  # (cards,) reach of the hands that hold a card
    mass: Float64Array  # (strengths,) reach by strength
    result: Float64Array  # (strengths,) value by the own strength


class Values(NamedTuple):
    """Values of the nodes on the stack, by depth and hand."""

    best: Float64Array  # (2, D, n) of both players' best responses
    mixture: Float64Array  # (D, n) of the mover's policy and its best response afterwards
    action: Int64Array  # (D, n) the mover's best action
    edge: Float64Array  # (E, n) the mover's after each edge; (0, n) if nobody wants to know


class Walk(NamedTuple):
    """What one walk finds."""

    value: float  # player 0's
    best_value_0: float
    best_value_1: float
    invalid_node: int  # where a row is not a distribution; the walk ends there
    invalid_infoset: int  # whose row it is, or -1


@compiled
def new_stack(tree: PublicTree) -> Stack:
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
    return Stack(
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


def walk(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    best_actions: tuple[Int16Array, Int16Array],
    losses: tuple[Float64Array, Float64Array],
    action_values: Float64Array,
) -> Walk:
    """Measure a joint policy; write best actions `(I_p,)`.

    Losses `(I_p,)` and action values `(E, n)` are written where those arrays are not empty.
    """
    stack = new_stack(tree)
    depths, _, hands = stack.policy.shape
    wants_losses = any(len(lost) > 0 for lost in losses)
    values = Values(
        best=np.zeros((2, depths, hands)),
        mixture=np.zeros((depths if wants_losses else 0, hands)),
        action=np.zeros((depths, hands), np.int64),
        edge=action_values,
    )
    return _walk(tree, tables, (stack, values), best_actions, losses)


@without_references
def _walk(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    scratch: tuple[Stack, Values],
    best_actions: tuple[Int16Array, Int16Array],
    losses: tuple[Float64Array, Float64Array],
) -> Walk:
    """`walk`, with arrays to work in."""
    stack, values = scratch
    best = values.best
    value = 0.0
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _leave(tree, stack, values, finished, best_actions, losses)
        last = depth
        _enter(tree, stack, node, depth)
        player = tree.player[node]
        if player != CHANCE:
            invalid = _read_policy(tree, stack, depth, tables[player])
            if invalid >= 0:
                return Walk(0.0, 0.0, 0.0, node, invalid)
        first_0 = 0.0
        first_1 = 0.0
        if player == 0:
            first_0 = -np.inf
        elif player == 1:
            first_1 = -np.inf
        for x in range(tree.num_hands[tree.board[node]]):
            best[0, depth, x] = first_0
            best[1, depth, x] = first_1
        if len(values.mixture) > 0:
            values.mixture[depth, :] = 0.0
        value += _add_terminals(tree, stack, values, depth)
    for finished in range(last, -1, -1):
        _leave(tree, stack, values, finished, best_actions, losses)
    best_0 = 0.0
    best_1 = 0.0
    for x in range(tree.num_hands[0]):
        best_0 += tree.weight[0, x] * best[0, 0, x]
        best_1 += tree.weight[1, x] * best[1, 0, x]
    return Walk(value, best_0, best_1, 0, -1)


@inlined
def _enter(tree: PublicTree, stack: Stack, node: int, depth: int) -> None:
    """Put a node on the stack, with the reach probabilities that change on the way to it."""
    stack.node[depth] = node
    if depth > 0:
        parent = stack.node[depth - 1]
        if tree.player[parent] == CHANCE:
            _deal(tree, stack, depth - 1, tree.board[node])
        else:
            _act(tree, stack, depth - 1, tree.parent_edge[node] - tree.first_edge[parent])


@inlined
def _act(tree: PublicTree, stack: Stack, depth: int, k: int) -> None:
    """The mover's reach after action k of the node at a depth, on its next level."""
    node = stack.node[depth]
    mover = tree.player[node]
    level = tree.level[node, mover]
    for x in range(tree.num_hands[tree.board[node]]):
        stack.reach[mover, level + 1, x] = stack.reach[mover, level, x] * stack.policy[depth, k, x]


@inlined
def _deal(tree: PublicTree, stack: Stack, depth: int, board: int) -> None:
    """Both players' reach on a new board, on their next levels."""
    node = stack.node[depth]
    for player in range(2):
        level = tree.level[node, player]
        for x in range(tree.num_hands[board]):
            old = tree.old_hand[board, x]
            stack.reach[player, level + 1, x] = stack.reach[player, level, old]


@inlined
def _read_policy(tree: PublicTree, stack: Stack, depth: int, table: Float32Array) -> int:
    """Put the policy of a node on the stack; return an invalid information set, or -1."""
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
def _add_terminals(tree: PublicTree, stack: Stack, values: Values, depth: int) -> float:
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
            _deal(tree, stack, depth, board)
            level_0 += 1
            level_1 += 1
        else:
            _act(tree, stack, depth, edge - first)
            if mover == 0:
                level_0 += 1
            else:
                level_1 += 1
        _write_values(tree, stack, rule, 0, stack.reach[1, level_1], stack.end[0])
        _write_values(tree, stack, rule, 1, stack.reach[0, level_0], stack.end[1])
        for x in range(tree.num_hands[board]):
            won += stack.reach[0, level_0, x] * stack.end[0, x]
        _add(tree, stack, values, depth, edge, (stack.end[0], stack.end[1]))
    return won


@inlined
def _write_values(  # noqa: PLR0913, PLR0917  # arrays
    tree: PublicTree,
    stack: Stack,
    rule: int,
    player: int,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Write a player's values by hand `(n,)` at a terminal node, from the opponent's reach."""
    # Player 0's chips if it wins, ties and loses.
    win = tree.payoff[rule, 0]
    tie = tree.payoff[rule, 1]
    lose = tree.payoff[rule, 2]
    kind = tree.rule[rule]
    hands = tree.num_hands[tree.rule_board[rule]]
    order = tree.rule_order[rule]
    cards = tree.cards[tree.rule_board[rule], :hands]
    if kind == COUNT:
        # Who wins depends on the sum of both strengths alone, so only the sign is player 1's.
        sign = 1.0 if player == 0 else -1.0
        payoffs_below_or_not = (sign * win, sign * lose)
        quantity = tree.rule_quantity[rule]
        strength = tree.strength[order, :hands]
        _write_count(
            strength, quantity, payoffs_below_or_not, (stack.mass, stack.result), reach, values
        )
    elif kind == FOLD:
        payoff = win if player == 0 else -win
        _write_fold(cards, payoff, stack.card_mass, reach, values)
    else:
        # Player 1 wins what player 0 loses.
        payoffs = (win, tie, lose) if player == 0 else (-lose, -tie, -win)
        ranks = (tree.strength[order], tree.by_strength[order])
        _write_showdown(cards, ranks, payoffs, stack.card_mass, reach, values)


@inlined
def _write_count(  # noqa: PLR0913, PLR0917  # arrays
    strength: Int32Array,
    quantity: int,
    payoffs: tuple[float, float],
    scratch: tuple[Float64Array, Float64Array],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """The first payoff if both strengths together are below the quantity, else the second."""
    below, enough = payoffs
    mass, result = scratch  # by strength, of which there are few
    for m in range(len(mass)):
        mass[m] = 0.0
    for x in range(len(strength)):
        mass[strength[x]] += reach[x]
    for m in range(len(mass)):
        value = 0.0
        for k in range(len(mass)):
            value += mass[k] * (below if m + k < quantity else enough)
        result[m] = value
    for x in range(len(strength)):
        values[x] = result[strength[x]]


@part
def _write_fold(
    cards: Int32Array,
    payoff: float,
    mass: Float64Array,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """The payoff times the reach of all hands that share no card."""
    hands, size = cards.shape
    # The reach of all hands, and of those that hold each card.
    mass[:] = 0.0
    total = 0.0
    for x in range(hands):
        total += reach[x]
        for c in range(size):
            mass[cards[x, c]] += reach[x]
    # Hands that share a card are those in the masses of both cards. The hand itself is in both, so
    # it is added once.
    itself = 1.0 if size == 2 else 0.0
    for x in range(hands):
        free = total + itself * reach[x]
        for c in range(size):
            free -= mass[cards[x, c]]
        values[x] = payoff * free


@part
def _write_showdown(  # noqa: PLR0913, PLR0917  # arrays
    cards: Int32Array,
    ranks: tuple[Int32Array, Int32Array],
    payoffs: tuple[float, float, float],
    mass: Float64Array,
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Values by hand, in ascending order of strength.

    With W the reach of weaker hands, E that of weaker or equal ones and C that of all, hands that
    share a card left out, the value is

        win W + tie (E - W) + lose (C - E)  =  (win - tie) W + (tie - lose) E + lose C

    of which each of the three loops over hands adds one term.
    """
    win, tie, lose = payoffs
    strength, order = ranks
    hands, size = cards.shape
    first = 0
    second = size - 1
    # With one card per hand there is no second card, and both indices are the same.
    pair = 1.0 if size == 2 else 0.0
    # The reach of the hands so far, and of those that hold each card.
    mass[:] = 0.0
    total = 0.0
    # Hands start to stop - 1 of the order are equally strong.
    start = 0
    while start < hands:
        stop = start
        # W: nothing of this strength has been added yet.
        while stop < hands and strength[order[stop]] == strength[order[start]]:
            x = order[stop]
            shared = mass[cards[x, first]] + pair * mass[cards[x, second]]
            values[x] = (win - tie) * (total - shared)
            stop += 1
        # E: all of this strength have been added, the hand itself included, which holds both cards.
        for i in range(start, stop):
            x = order[i]
            total += reach[x]
            mass[cards[x, first]] += reach[x]
            mass[cards[x, second]] += pair * reach[x]
        for i in range(start, stop):
            x = order[i]
            shared = mass[cards[x, first]] + pair * (mass[cards[x, second]] - reach[x])
            values[x] += (tie - lose) * (total - shared)
        start = stop
    # C: all hands.
    for x in range(hands):
        shared = mass[cards[x, first]] + pair * (mass[cards[x, second]] - reach[x])
        values[x] += lose * (total - shared)


@inlined
def _add(  # noqa: PLR0913, PLR0917  # arrays
    tree: PublicTree,
    stack: Stack,
    values: Values,
    depth: int,
    edge: int,
    after: tuple[Float64Array, Float64Array],
) -> None:
    """Add both players' values after an edge to those of the node at a depth."""
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
        movers_values = after[mover]
        others_values = after[1 - mover]
        for x in range(hands):
            value = movers_values[x]
            values.best[1 - mover, depth, x] += others_values[x]
            before = values.best[mover, depth, x]
            if value > before or (value == before and chosen < values.action[depth, x]):
                values.best[mover, depth, x] = value
                values.action[depth, x] = chosen
        if len(values.mixture) > 0:
            for x in range(hands):
                values.mixture[depth, x] += stack.policy[depth, k, x] * movers_values[x]
        if len(values.edge) > 0:
            for x in range(hands):
                values.edge[edge, x] = movers_values[x]


@inlined
def _leave(  # noqa: PLR0913, PLR0917  # arrays
    tree: PublicTree,
    stack: Stack,
    values: Values,
    depth: int,
    best_actions: tuple[Int16Array, Int16Array],
    losses: tuple[Float64Array, Float64Array],
) -> None:
    """Write a node's best actions and losses, and add its values to its parent's."""
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
        _add(tree, stack, values, depth - 1, tree.parent_edge[node], after)


@compiled
def write_own_reach(
    tree: PublicTree,
    tables: tuple[Float32Array, Float32Array],
    reach: tuple[Float64Array, Float64Array],
) -> tuple[int, int]:
    """Write each information set's reach by its owner's actions `(I_p,)`; 0 for hands never dealt.

    Returns the player and the information set of a row that is not a distribution, or (-1, -1).
    """
    stack = new_stack(tree)
    for player in range(2):
        for x in range(tree.num_hands[0]):
            stack.reach[player, 0, x] = 1.0 if tree.weight[player, x] > 0 else 0.0
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        _enter(tree, stack, node, depth)
        player = tree.player[node]
        if player != CHANCE:
            invalid = _read_policy(tree, stack, depth, tables[player])
            if invalid >= 0:
                return int(player), invalid
            level = tree.level[node, player]
            first = tree.first_infoset[node]
            for x in range(tree.num_hands[tree.board[node]]):
                reach[player][first + x] = stack.reach[player, level, x]
    return -1, -1


def iterate(  # noqa: PLR0913, PLR0917  # arrays
    tree: PublicTree,
    vectors: Vectors,
    player: int,
    weights: Weights,
    updates: Int64Array,
    policy_from: Float32Array,
) -> None:
    """Update a player's regrets, predicted regrets and averages `(E, n)` in one walk.

    The policy is proportional to the positive part of `policy_from`: the predicted regrets, or a
    copy from before the other player's update if both update at once.
    """
    stack = new_stack(tree)
    value = np.zeros(stack.policy.shape)  # the player's, by depth and action
    _iterate(tree, vectors, (player, weights, policy_from), updates, (stack, value))


@without_references
def _iterate(
    tree: PublicTree,
    vectors: Vectors,
    update: tuple[int, Weights, Float32Array],
    updates: Int64Array,
    scratch: tuple[Stack, Float64Array],
) -> None:
    """`iterate`, with arrays to work in."""
    stack, value = scratch
    player, weights, policy_from = update
    last = -1
    for node in range(len(tree.player)):
        depth = int(tree.depth[node])
        for finished in range(last, depth - 1, -1):
            _finish(tree, stack, value, finished, vectors, player, weights)
        last = depth
        _enter(tree, stack, node, depth)
        owner = tree.player[node]
        hands = tree.num_hands[tree.board[node]]
        if owner == CHANCE:
            for x in range(hands):
                value[depth, 0, x] = 0.0
        else:
            first = tree.first_edge[node]
            actions = tree.first_edge[node + 1] - first
            match_regrets(policy_from, first, actions, hands, stack.policy[depth])
            if owner == player and actions > 1:
                level = tree.level[node, owner]
                for k in range(actions):
                    for x in range(hands):
                        weighted = weights[2] * stack.reach[owner, level, x]
                        vectors[2][first + k, x] += weighted * stack.policy[depth, k, x]
        _set_terminals(tree, stack, value, depth, player)
    for finished in range(last, -1, -1):
        _finish(tree, stack, value, finished, vectors, player, weights)
    updates[0] += 1


@inlined
def match_regrets(
    weights: Float32Array, first: int, actions: int, hands: int, policy: Float64Array
) -> None:
    """Make a policy `(actions, n)` proportional to positive weights, uniform where none is > 0."""
    uniform = 1.0 / actions
    for x in range(hands if actions > 1 else 0):
        total = 0.0
        for k in range(actions):
            weight = weights[first + k, x]
            policy[k, x] = weight if weight > 0 else 0.0  # not -0.0, as `max` may be
            total += policy[k, x]
        for k in range(actions):
            policy[k, x] = policy[k, x] / total if total > 0 else uniform
    if actions == 1:
        for x in range(hands):
            policy[0, x] = 1.0


@inlined
def _set_terminals(
    tree: PublicTree, stack: Stack, value: Float64Array, depth: int, player: int
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
            _deal(tree, stack, depth, board)
            level += 1
        elif owner == opponent:
            _act(tree, stack, depth, edge - first)
            level += 1
        if owner == CHANCE:
            _write_values(tree, stack, rule, player, stack.reach[opponent, level], stack.end[0])
            for x in range(tree.num_hands[board]):
                value[depth, 0, tree.old_hand[board, x]] += stack.end[0, x]
        else:
            k = edge - first
            _write_values(tree, stack, rule, player, stack.reach[opponent, level], value[depth, k])


@inlined
def _finish(  # noqa: PLR0913, PLR0917  # arrays
    tree: PublicTree,
    stack: Stack,
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

    # Where the values go: to an action of the parent, or to the hands on the board before.
    above = max(depth - 1, 0)
    parent = stack.node[above]
    k_above = tree.parent_edge[node] - tree.first_edge[parent]
    is_below_chance = depth > 0 and tree.player[parent] == CHANCE

    for x in range(hands):
        mean = 0.0
        if owner == CHANCE:
            mean = value[depth, 0, x]
        elif owner != player or actions == 1:
            # The opponent's probabilities are in its reach, so its values add up.
            for k in range(actions):
                mean += value[depth, k, x]
        else:
            for k in range(actions):
                mean += stack.policy[depth, k, x] * value[depth, k, x]
            for k in range(actions):
                new = value[depth, k, x] - mean
                total = regret[first + k, x] + new
                total *= discount_positive if total >= 0 else discount_negative
                regret[first + k, x] = total
                if prediction > 0:
                    predicted[first + k, x] = total + new
        if is_below_chance:
            value[above, 0, tree.old_hand[board, x]] += mean
        elif depth > 0:
            value[above, k_above, x] = mean


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
