"""The class of games of private hands and public actions, such as Liar's Dice and poker endgames.

The equations are in `algorithms.public_tree`. A subclass makes the public tree, and
says what players see and how hands and public actions read in words.
"""

from abc import abstractmethod
from typing import Literal

import numpy as np

from algorithms.cfr import VARIANTS, Variant, Weights
from algorithms.compiled import public_tree as compiled_tree
from algorithms.games.game import PyspielGame
from algorithms.large_games.large_game import LargeExactGame, invalid_row, largest_losses
from algorithms.large_games.solver import LargeGameSolver, Tables
from algorithms.nashconv import Measure
from algorithms.public_tree import (
    CHANCE,
    PublicTree,
    compatible,
    infosets_of_nodes,
    num_infosets,
)
from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int16Array,
    Int32Array,
    Int64Array,
)

BATCH = 2**16  # information sets whose rows are filled in at a time
SMALL = 100_000  # information sets, of a game that is measured in milliseconds


class PrivateHandsGame(LargeExactGame):
    """A game of two players whose hands are private and whose actions are public.

    Information set `i` of a player is a node of the public tree and a hand: `node_and_hand`.
    """

    solved_by = tuple(VARIANTS)

    def __init__(
        self,
        tree: PublicTree,
        *,
        name: str,
        num_actions: int,
        observation_size: int,
        pyspiel_game: PyspielGame,
    ) -> None:
        super().__init__(
            name=name,
            num_players=2,
            num_actions=num_actions,
            observation_size=observation_size,
            pyspiel_game=pyspiel_game,
        )
        self.public_tree = tree
        self._num_infosets = num_infosets(tree)
        # By player: its nodes and their first information sets, both `(N_p,)`.
        self._nodes = tuple(infosets_of_nodes(tree, player) for player in range(2))

    @abstractmethod
    def hand_label(self, player: int, node: int, hand: int) -> str:
        """A hand at a node in words, e.g. `A♥9♠`."""

    @abstractmethod
    def public_label(self, node: int) -> str:
        """What has happened before a node in words, e.g. `after check, pot bet`."""

    @property
    def num_infosets(self) -> tuple[int, ...]:
        """The number of information sets of each player."""
        return self._num_infosets

    def nodes_and_hands(self, player: int, infosets: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The node of the public tree and the hand of each information set: `(m,)` each."""
        nodes, firsts = self._nodes[player]
        position = np.searchsorted(firsts, infosets, side="right") - 1
        return nodes[position], infosets - firsts[position]

    def node_and_hand(self, player: int, infoset: int) -> tuple[int, int]:
        """The node of the public tree and the hand of an information set."""
        nodes, hands = self.nodes_and_hands(player, np.array([infoset]))
        return int(nodes[0]), int(hands[0])

    def legal_at(self, player: int, infosets: Int64Array) -> BoolArray:
        """Which actions are legal at information sets `(m,)`: `(m, A)`."""
        nodes, _ = self.nodes_and_hands(player, infosets)
        distinct, position = np.unique(nodes, return_inverse=True)
        legal = np.zeros((len(distinct), self.num_actions), np.bool_)
        for row, node in zip(legal, distinct, strict=True):
            row[self.actions_at(int(node))] = True
        return legal[position]

    def actions_at(self, node: int) -> Int32Array:
        """The legal actions at a node, or the public cards that can come."""
        tree = self.public_tree
        return tree.action[tree.first_edge[node] : tree.first_edge[node + 1]]

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator = np.random.default_rng(seed)
        tables = []
        for player, count in enumerate(self.num_infosets):
            table = np.empty((count, self.num_actions), np.float32)
            for start in range(0, count, BATCH):
                legal = self.legal(player, start, min(start + BATCH, count))
                weights = np.zeros(legal.shape)
                weights[legal] = generator.exponential(size=np.count_nonzero(legal))
                table[start : start + BATCH] = weights / weights.sum(axis=1, keepdims=True)
            tables.append(table)
        return tuple(tables)

    def _measure(self, tables: Tables) -> Measure:
        empty = np.empty(0)
        walk, best = self._walk(tables, (empty, empty))

        def reach(player: int, infoset: int) -> float:
            node, hand = self.node_and_hand(player, infoset)
            return self.reach_of(tables, node, hand)

        return Measure(
            (walk.value, -walk.value),
            (walk.best_value_0, walk.best_value_1),
            lambda: best,
            lambda: largest_losses(tables, best, self.losses(tables), reach),
        )

    def losses(self, tables: Tables) -> tuple[Float64Array, Float64Array]:
        """The loss at each information set of each player, `(I_p,)`."""
        lost = np.empty(self.num_infosets[0]), np.empty(self.num_infosets[1])
        self._walk(tables, lost)
        return lost

    def action_costs(self, tables: Tables) -> Float64Array:
        """What each action wins less than the best one, by hand: `(E, n)`.

        In chips, of the hands that arrive, if the player plays best afterwards and the opponent
        plays its policy. NaN where the opponent never arrives, and at public chance events.
        """
        tree = self.public_tree
        values = np.zeros((len(tree.action), tree.weight.shape[1]))
        empty = np.empty(0)
        self._walk(tables, (empty, empty), values)
        costs = np.full_like(values, np.nan)
        apart = {board: compatible(tree, board) for board in np.unique(tree.board).tolist()}
        for node, player in enumerate(tree.player.tolist()):
            if player == CHANCE:
                continue
            edges = slice(tree.first_edge[node], tree.first_edge[node + 1])
            board = int(tree.board[node])
            hands = int(tree.num_hands[board])
            # Values contain the probability that the opponent and chance arrive, (n_b,).
            opponent_arrives = apart[board] @ self.reaches(tables, node)[1 - player]
            arrives = opponent_arrives * self.chance_probability(node)
            of_actions = values[edges, :hands]  # (actions, n_b)
            missed = of_actions.max(axis=0) - of_actions
            never = np.full_like(missed, np.nan)
            costs[edges, :hands] = np.divide(missed, arrives, out=never, where=arrives > 0)
        return costs

    def _walk(
        self,
        tables: Tables,
        losses: tuple[Float64Array, Float64Array],
        action_values: Float64Array | None = None,
    ) -> tuple[compiled_tree.Walk, tuple[Int16Array, Int16Array]]:
        """One compiled walk; a `PolicyError` for a row that is not a distribution."""
        counts = self.num_infosets
        best = np.zeros(counts[0], np.int16), np.zeros(counts[1], np.int16)
        if action_values is None:
            action_values = np.empty((0, self.public_tree.weight.shape[1]))
        walk = compiled_tree.walk(
            self.public_tree, (tables[0], tables[1]), best, losses, action_values
        )
        if walk.invalid_infoset >= 0:
            player = int(self.public_tree.player[walk.invalid_node])
            raise invalid_row(tables, player, walk.invalid_infoset)
        return walk, best

    def own_reaches(self, tables: Tables) -> tuple[Float64Array, ...]:
        """Each information set's reach probability by its owner's own actions: `(I_p,)` each."""
        return self._own_reach(tables)

    def _own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        """Each information set's reach probability by its owner's own actions: `(I_p,)` each."""
        reach = np.empty(self.num_infosets[0]), np.empty(self.num_infosets[1])
        player, invalid = compiled_tree.write_own_reach(
            self.public_tree, (tables[0], tables[1]), reach
        )
        if invalid >= 0:
            raise invalid_row(tables, player, invalid)
        return reach

    @property
    def curve_points(self) -> int:
        """Many points where a measure takes milliseconds."""
        return 50 if sum(self.num_infosets) <= SMALL else super().curve_points

    def reaches(self, tables: Tables, node: int) -> tuple[Float64Array, Float64Array]:
        """Both players' reach probabilities by hand at a node: `(n_b,)` each.

        They contain the hands' weights. Chance's probability of public cards is left out.
        """
        tree = self.public_tree
        path = []  # edges from the node to the root
        at = node
        while tree.parent_edge[at] >= 0:
            path.append(int(tree.parent_edge[at]))
            at = self._node_of_edge(path[-1])
        count = tree.num_hands[0]
        reach = [tree.weight[0, :count].copy(), tree.weight[1, :count].copy()]
        for edge in reversed(path):
            origin = self._node_of_edge(edge)
            player = int(tree.player[origin])
            if player == CHANCE:
                board = tree.board[tree.target[edge]]
                old = tree.old_hand[board, : tree.num_hands[board]]
                reach = [reach[0][old], reach[1][old]]
            else:
                first = int(tree.first_infoset[origin])
                rows = tables[player][first : first + len(reach[player])].astype(np.float64)
                legal = rows[:, self.actions_at(origin)]
                reach[player] *= rows[:, tree.action[edge]] / legal.sum(axis=1)
        return reach[0], reach[1]

    def reach_of(self, tables: Tables, node: int, hand: int) -> float:
        """The probability that an episode arrives at a node and its player holds a hand."""
        tree = self.public_tree
        player = int(tree.player[node])
        both = self.reaches(tables, node)
        board = int(tree.board[node])
        cards = tree.cards[board, : tree.num_hands[board]]  # (n_b, H)
        shared = (cards[:, :, None] == cards[hand][None, None, :]).any(axis=(1, 2))
        others = float(both[1 - player][~shared].sum())
        return float(both[player][hand]) * others * self.chance_probability(node)

    def chance_probability(self, node: int) -> float:
        """The probability of the public cards before a node, given the hands."""
        del node
        return 1.0

    def _node_of_edge(self, edge: int) -> int:
        """The node at which an edge begins."""
        return int(np.searchsorted(self.public_tree.first_edge, edge, side="right")) - 1

    def _make_solver(self, variant: Variant) -> "PrivateHandsSolver":
        return PrivateHandsSolver(self.public_tree, variant, self._shapes)

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_1 with A♥9♠ after check, pot bet`."""
        node, hand = self.node_and_hand(player, infoset)
        hand_label = self.hand_label(player, node, hand)
        return f"player_{player} with {hand_label} {self.public_label(node)}"


class PrivateHandsSolver(LargeGameSolver):
    """A solver whose regrets and averages are arrays `(edges of the public tree, hands)`.

    If players do not alternate, `before` keeps the regrets from before player 0's update: both
    policies of the iteration follow from them.
    """

    def __init__(self, tree: PublicTree, variant: Variant, shapes: list[tuple[int, int]]) -> None:
        size = len(tree.action), tree.weight.shape[1]
        super().__init__(variant, {"": size})
        if not variant.alternating:
            self._state["before"] = np.zeros(size, np.float32)
        self.public_tree = tree
        self._shapes = shapes

    def _update(self, player: int, weights: Weights) -> None:
        vectors = self._arrays("")
        policy_from = vectors[1]  # predicted regrets
        if not self.variant.alternating:
            if player == 0:
                self._state["before"][...] = policy_from
            policy_from = self._state["before"]
        compiled_tree.iterate(
            self.public_tree, vectors, player, weights, self._updates, policy_from
        )

    def _policy_of(self, kind: Literal["average", "predicted"]) -> Tables:
        """New tables in proportion to the averages, or to the predicted regrets above 0."""
        tables = np.zeros(self._shapes[0], np.float32), np.zeros(self._shapes[1], np.float32)
        compiled_tree.write_policy(self.public_tree, self._weights(kind, ""), tables)
        return tables
