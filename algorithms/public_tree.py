"""Games of private hands and public actions: values, best responses and CFR on the public tree.

Each of two players holds a private *hand*; everything else is public. So all deals share one small
*public tree* of decisions, and a value per hand is a vector. An information set is a decision of
the public tree together with the hand of the player who acts there.

Let `w_p(h)` be the weight of hand h of player p, so that the deal (h, g) has probability
`w_0(h) w_1(g)` if the hands share no card, else 0. With sigma the policy, s a node of the public
tree and sa the node after action a:

    reach_p(s, h)    = w_p(h) * product of sigma(a | h) over p's own actions a on the way to s
    v_p(z, h)        = sum over g that share no card with h of payoff_p(z, h, g) reach_q(z, g)
                                                           at a terminal node z, with q the opponent
    best_p(s, h)     = max over a of best_p(sa, h)                        where p acts
                     = sum over a of best_p(sa, h)                        where q acts
    mixture(s, h)    = sum over a of sigma(a | h) best_p(sa, h)           where p acts
    loss(s, h)       = reach_p(s, h) (best_p(s, h) - mixture(s, h))
    value_p          = sum over terminal z and h of reach_p(z, h) v_p(z, h)
    best value_p     = sum over h of w_p(h) best_p(root, h)

and NashConv is the sum over players of (best value_p - value_p). The opponent's probabilities are
in `reach_q`, so values add up where the opponent acts.

A public chance event (the river card of a turn endgame) leads to one board per card. Hands of the
new board are the hands of the old one without the card: `old_hand` says which. Chance's probability
is the same for all deals that are left, so it is a factor of the payoffs behind it.

**Payoffs.** A terminal node pays by one of three rules, in which each hand has a *strength*:

    fold       one payoff, whatever the hands
    showdown   win, tie or lose, as strength(h) is above, equal to or below strength(g)
    count      win if strength(h) + strength(g) < quantity, else lose (a bid of Liar's Dice)

This module uses a matrix over all pairs of hands. The compiled twin is linear in the hands: with
hands sorted by strength, a running sum R of reach and a running sum R_c per card c give

    sum over g weaker than h, sharing no card, of reach(g) = R - R_c1 - R_c2      for h = {c1, c2}

(an equally strong hand is added later, so that h itself is not in the sums; in the sum over all
hands it is subtracted twice and added once).

Example: a deck of four cards, hands of one card in ascending order of strength, and an opponent
that arrives with reach (0.1, 0.2, 0.3, 0.4). The third hand beats the first two, of which neither
is its own card: R = 0.1 + 0.2, R_c = 0. The fourth is the only stronger one, so at a showdown for
2 chips it is worth 2 * 0.3 - 2 * 0.4 = -0.2. If hands had two cards, R would also contain weaker
hands with c1 or c2, which cannot be dealt together with h: R_c1 and R_c2 take them out.

**CFR.** In iteration t, with v_p(sa, h) the counterfactual value of playing a, sigma afterwards:

    regret(s, a, h)  <-  discount * (regret + v_p(sa, h) - sum over b of sigma(b | h) v_p(sb, h))
    average(s, a, h) <-  average + t^gamma * reach_p(s, h) * sigma(a | h)

and sigma is proportional to the positive part of the regrets (`algorithms.cfr.Variant` has the
exponents).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from algorithms.cfr import Variant, iteration_weights
from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    Int64Array,
)

CHANCE = -1  # as a node's player

# Rules by which a terminal node pays.
FOLD = 0
SHOWDOWN = 1
COUNT = 2

NO_ACTION = np.iinfo(np.int32).max  # larger than every action ID


class PublicTree(NamedTuple):
    """The public tree and the hands: what plain and compiled code reads.

    There are N nodes (decisions and public chance events) in depth-first order, E edges, B boards
    of up to n hands with H cards each, R payoff rules and O orders of strength. Information set
    `first_infoset[node] + hand` belongs to the player who acts at the node.
    """

    # Nodes
    player: Int8Array  # (N,) who acts, or CHANCE
    depth: Int16Array  # (N,) edges from the root
    level: Int16Array  # (N, 2) each player's own actions and public chance events since the root
    board: Int32Array  # (N,)
    first_edge: Int32Array  # (N + 1,)
    first_infoset: Int64Array  # (N,) -1 at chance
    parent_edge: Int32Array  # (N,) -1 at the root

    # Edges
    action: Int32Array  # (E,) the action ID, or the public card
    target: Int32Array  # (E,) the next node; or -1 - rule where the game ends

    # Boards
    num_hands: Int32Array  # (B,)
    cards: Int32Array  # (B, n, H)
    old_hand: Int32Array  # (B, n) the hand on the board before
    weight: Float64Array  # (2, n) of each player's hands on board 0

    # Payoff rules, in player 0's chips times chance's probability
    rule: Int8Array  # (R,) FOLD, SHOWDOWN or COUNT
    rule_order: Int32Array  # (R,)
    rule_board: Int32Array  # (R,)
    rule_quantity: Int32Array  # (R,) of COUNT
    payoff: Float64Array  # (R, 3) if player 0 wins, ties, loses; the first one if the rule is FOLD

    # Orders
    strength: Int32Array  # (O, n)
    by_strength: Int32Array  # (O, n) hands in ascending order of strength


class Evaluation(NamedTuple):
    """The module's equations for one joint policy."""

    value: float  # player 0's
    best_values: tuple[float, float]
    best_actions: tuple[Int16Array, ...]  # (I_p,) by player, the lowest ID in a tie
    losses: tuple[Float64Array, ...]  # (I_p,) by player
    action_values: Float64Array  # (E, n) best_p(sa, h) of the player who acts; 0 at chance


def num_infosets(tree: PublicTree) -> tuple[int, int]:
    """The number of information sets of each player."""
    hands = tree.num_hands[tree.board]  # (N,)
    return int(hands[tree.player == 0].sum()), int(hands[tree.player == 1].sum())


def compatible(tree: PublicTree, board: int) -> BoolArray:
    """Which pairs of hands of a board share no card: `(n_b, n_b)`."""
    cards = tree.cards[board, : tree.num_hands[board]]  # (n_b, H)
    shared = cards[:, None, :, None] == cards[None, :, None, :]
    return np.asarray(~shared.any(axis=(2, 3)))


def payoff_matrix(tree: PublicTree, rule: int) -> Float64Array:
    """Player 0's payoff by its own hand and the opponent's, 0 where they share a card: `(n, n)`."""
    board = int(tree.rule_board[rule])
    win, tie, lose = tree.payoff[rule]
    pairs = compatible(tree, board)
    if tree.rule[rule] == FOLD:
        return np.asarray(pairs * win)
    strength = tree.strength[tree.rule_order[rule], : len(pairs)]
    strength_0 = strength[:, None]  # by player 0's hand: (n, 1)
    strength_1 = strength[None, :]  # by player 1's hand: (1, n)
    if tree.rule[rule] == COUNT:
        bid_fails = strength_0 + strength_1 < tree.rule_quantity[rule]
        return np.asarray(pairs * np.where(bid_fails, win, lose))
    is_stronger = strength_0 > strength_1
    is_equal = strength_0 == strength_1
    return np.asarray(pairs * np.select([is_stronger, is_equal], [win, tie], lose))


def terminal_values(
    tree: PublicTree, rule: int, player: int, opponent_reach: Float64Array
) -> Float64Array:
    """A player's counterfactual value by hand where the game ends, from `(n,)`: `(n,)`."""
    matrix = payoff_matrix(tree, rule)  # of player 0, by player 0's hand and player 1's
    if player == 0:
        return np.asarray(matrix @ opponent_reach)
    return np.asarray(-matrix.T @ opponent_reach)


def evaluation(tree: PublicTree, tables: Sequence[Float64Array]) -> Evaluation:
    """Values, best responses and losses of a joint policy, one table `(I_p, A)` per player."""
    walk = _Walk(tree, tables)
    weights = weights_of_hands(tree)
    best = walk.visit(0, weights)
    best_values = float(weights[0] @ best[0]), float(weights[1] @ best[1])
    return Evaluation(walk.value, best_values, walk.best_actions, walk.losses, walk.action_values)


def weights_of_hands(tree: PublicTree) -> list[Float64Array]:
    """Both players' weights of the hands on board 0, their reach at the root: `(n_0,)` each."""
    count = tree.num_hands[0]
    return [tree.weight[0, :count], tree.weight[1, :count]]


class _Walk:
    """One walk over the public tree by the equations above, and what it has found so far."""

    def __init__(self, tree: PublicTree, tables: Sequence[Float64Array]) -> None:
        sizes = num_infosets(tree)
        self.tree = tree
        self.tables = tables
        self.value = 0.0  # player 0's
        self.best_actions = tuple(np.zeros(size, np.int16) for size in sizes)
        self.losses = tuple(np.zeros(size) for size in sizes)
        self.action_values = np.zeros((len(tree.action), tree.weight.shape[1]))

    def visit(self, node: int, reach: Sequence[Float64Array]) -> list[Float64Array]:
        """Both players' best values by hand, `(n,)` each, at a node reached with `reach`."""
        player = int(self.tree.player[node])
        if player == CHANCE:
            return self._visit_chance(node, reach)
        return self._visit_decision(node, player, reach)

    def _visit_chance(self, node: int, reach: Sequence[Float64Array]) -> list[Float64Array]:
        """The sum over public cards; a hand that contains the card is not on the next board."""
        count = self.tree.num_hands[self.tree.board[node]]
        totals = [np.zeros(count), np.zeros(count)]
        for edge in edges_of(self.tree, node):
            old = old_hands(self.tree, edge)
            after = self._follow(edge, [reach[0][old], reach[1][old]])
            totals[0][old] += after[0]
            totals[1][old] += after[1]
        return totals

    def _visit_decision(
        self, node: int, player: int, reach: Sequence[Float64Array]
    ) -> list[Float64Array]:
        """The maximum over actions for the player who acts, the sum over them for the other."""
        tree = self.tree
        edges = edges_of(tree, node)
        first = int(tree.first_infoset[node])
        count = int(tree.num_hands[tree.board[node]])
        infosets = slice(first, first + count)
        rows = self.tables[player][infosets]  # (n, A)

        values = np.empty((len(edges), count))  # best_p(sa, h), by action and hand
        mixture = np.zeros(count)
        opponents_value = np.zeros(count)
        for k, edge in enumerate(edges):
            probability = rows[:, tree.action[edge]]  # (n,)
            next_reach = list(reach)
            next_reach[player] = reach[player] * probability
            after = self._follow(edge, next_reach)
            values[k] = after[player]
            mixture += probability * after[player]
            opponents_value += after[1 - player]
            self.action_values[edge, :count] = after[player]

        # The best action of each hand is the one with the lowest ID of those with the best value.
        best = values.max(axis=0)  # (n,)
        actions = tree.action[edges.start : edges.stop]
        candidates = np.where(values == best, actions[:, None], NO_ACTION)  # (actions, n)
        self.best_actions[player][infosets] = candidates.min(axis=0)
        self.losses[player][infosets] = reach[player] * (best - mixture)

        result = [opponents_value, opponents_value]
        result[player] = best
        return result

    def _follow(self, edge: int, reach: Sequence[Float64Array]) -> list[Float64Array]:
        """Both players' best values by hand after an edge."""
        target = int(self.tree.target[edge])
        if target >= 0:
            return self.visit(target, reach)
        rule = -1 - target
        values = [
            terminal_values(self.tree, rule, 0, reach[1]),
            terminal_values(self.tree, rule, 1, reach[0]),
        ]
        self.value += float(reach[0] @ values[0])
        return values


def edges_of(tree: PublicTree, node: int) -> range:
    """The edges of a node: its actions, or its public cards."""
    return range(int(tree.first_edge[node]), int(tree.first_edge[node + 1]))


def old_hands(tree: PublicTree, edge: int) -> Int32Array:
    """For each hand of the board after a public card, the same hand on the board before: `(n,)`."""
    target = int(tree.target[edge])
    board = tree.board[target] if target >= 0 else tree.rule_board[-1 - target]
    return np.asarray(tree.old_hand[board, : tree.num_hands[board]])


class PlainSolver:
    """One run of a variant of CFR, by the module's equations.

    Regrets and averages are arrays by edge and hand, `(E, n)`.
    """

    def __init__(self, tree: PublicTree, variant: Variant) -> None:
        self.tree = tree
        self.variant = variant
        shape = len(tree.action), tree.weight.shape[1]
        self.regret = np.zeros(shape)
        self.predicted = np.zeros(shape)  # the regrets that the next policy is made from
        self.policy_from = self.predicted  # those that the current policies are made from
        self.average = np.zeros(shape)
        self.iterations = 0

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        for _ in range(iterations):
            self.iterations += 1
            for player in range(2):
                # Without alternation both players' policies are those before player 0's update.
                if self.variant.alternating or player == 0:
                    self.policy_from = self.predicted.copy()
                self._visit(0, weights_of_hands(self.tree), player)

    def policy(self, node: int, weights: Float64Array) -> Float64Array:
        """A policy in proportion to weights above 0, uniform where none is: `(actions, n_b)`."""
        edges = edges_of(self.tree, node)
        count = self.tree.num_hands[self.tree.board[node]]
        positive = np.maximum(weights[edges.start : edges.stop, :count], 0)
        totals = positive.sum(axis=0)  # (n_b,)
        uniform = np.full_like(positive, 1 / len(positive))
        return np.asarray(np.divide(positive, totals, out=uniform, where=totals > 0))

    def _visit(self, node: int, reach: Sequence[Float64Array], player: int) -> Float64Array:
        """Update a player's regrets from this node on; return its values by hand."""
        if self.tree.player[node] == CHANCE:
            return self._visit_chance(node, reach, player)
        return self._visit_decision(node, reach, player)

    def _visit_chance(self, node: int, reach: Sequence[Float64Array], player: int) -> Float64Array:
        total = np.zeros(self.tree.num_hands[self.tree.board[node]])
        for edge in edges_of(self.tree, node):
            old = old_hands(self.tree, edge)
            total[old] += self._follow(edge, [reach[0][old], reach[1][old]], player)
        return total

    def _visit_decision(
        self, node: int, reach: Sequence[Float64Array], player: int
    ) -> Float64Array:
        owner = int(self.tree.player[node])
        policy = self.policy(node, self.policy_from)  # (actions, n_b)
        values = np.empty_like(policy)  # v_p(sa, h)
        for k, edge in enumerate(edges_of(self.tree, node)):
            after = list(reach)
            after[owner] = reach[owner] * policy[k]
            values[k] = self._follow(edge, after, player)
        if owner != player:
            return np.asarray(values.sum(axis=0))
        mean = np.asarray((policy * values).sum(axis=0))  # (n_b,)
        self._update(node, reach[owner] * policy, values - mean)
        return mean

    def _update(self, node: int, played: Float64Array, new: Float64Array) -> None:
        """Add new regrets, and what was played, at a node: `(actions, n_b)` each."""
        edges = edges_of(self.tree, node)
        place = slice(edges.start, edges.stop), slice(0, new.shape[1])
        positive, negative, weight, prediction = iteration_weights(
            self.variant.numbers, self.iterations
        )
        total = self.regret[place] + new
        total *= np.where(total >= 0, positive, negative)
        self.regret[place] = total
        self.predicted[place] = total + new if prediction else total
        self.average[place] += weight * played

    def _follow(self, edge: int, reach: Sequence[Float64Array], player: int) -> Float64Array:
        """A player's values by hand after an edge."""
        target = int(self.tree.target[edge])
        if target >= 0:
            return self._visit(target, reach, player)
        return terminal_values(self.tree, -1 - target, player, reach[1 - player])


def infosets_of_nodes(tree: PublicTree, player: int) -> tuple[Int64Array, Int64Array]:
    """A player's nodes, and their first information sets, both in ascending order: `(N_p,)`."""
    nodes = np.flatnonzero(tree.player == player)
    order = np.argsort(tree.first_infoset[nodes], kind="stable")
    return nodes[order], tree.first_infoset[nodes][order]
