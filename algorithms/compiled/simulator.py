"""Many hands of a game at once on its tree: a hand is one number, the node where it stands.

Chance, and seats that a fixed policy plays, move inside `step`. When a hand ends, the next one is
dealt. Everything is drawn from one stream of random bits, so equal seeds give equal hands.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.compiled.jit import compiled, draw
from algorithms.support import arrays
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.errors import IllegalActionError

# The golden ratio times 2^64: its multiples modulo 2^64 fill the range more evenly than any draws.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# What happens at a node: see `PlayableTree.state`.
_MOVES = 0
_WAITS = 1
_ENDED = 2
_HALF = np.uint64(32)  # bits
_LOW_HALF = np.uint64(0xFFFFFFFF)


class PlayableTree(NamedTuple):
    """A tree as compiled code plays it: N nodes, I information sets, A actions, P players."""

    state: arrays.UInt8Array  # (N,) _MOVES: chance or a fixed policy acts; _WAITS: for an action
    player: arrays.Int8Array  # (N,) who acts: a player, CHANCE or TERMINAL
    infoset: arrays.Int32Array  # (N,) -1 where no player acts
    first_child: arrays.Int32Array  # (N + 1,)
    child: arrays.Int16Array  # (I, A) which child an action leads to, -1 where illegal
    chance: arrays.Float64Array  # (N,) running sums of chance's probabilities among siblings
    policy: arrays.Float64Array  # (I, A) running sums of the fixed policies' probabilities
    returns: arrays.Float32Array  # (N, P)
    deals: arrays.Int32Array  # (D, 2) nodes after chance's first moves: a cell's own, and its alias
    own_share: arrays.UInt64Array  # (D,) how much of a cell is its own, times 2^32 (Vose 1991)
    first_acts: bool  # whether no opponent acts before the first action of a hand


class Hands(NamedTuple):
    """The state of n hands, which steps change in place."""

    node: arrays.Int32Array  # (n,)
    acted: arrays.Int8Array  # (n,) who acted in the last step
    reached: arrays.Int32Array  # (n,) the node that the last step led to: terminal, or `node`
    counters: arrays.UInt64Array  # (2,) state of the random stream, number of hands dealt


class Simulator:
    """n hands of a tree game, one decision each per step.

    The number of a hand determines its deal: over many hands each deal occurs as often as its
    probability says, with less noise than random deals. The seed determines the number of the first
    hand. Chance later in a hand is random.
    `opponents` are tables `(I, A)` that play some seats, but not all.
    """

    def __init__(
        self,
        tree: Tree,
        hands: int,
        *,
        seed: int = 0,
        opponents: Mapping[int, npt.ArrayLike] | None = None,
    ) -> None:
        self.tree = tree
        self._playable_tree = playable_tree(tree, opponents or {})
        self._hands = Hands(
            node=np.zeros(hands, np.int32),
            acted=np.zeros(hands, np.int8),
            reached=np.zeros(hands, np.int32),
            counters=np.zeros(2, np.uint64),
        )
        self.seed(seed)
        self.deal()

    @property
    def seats(self) -> arrays.Int8Array:
        """The player to act in each hand: `(n,)`."""
        return self._playable_tree.player[self._hands.node]

    @property
    def infosets(self) -> arrays.Int32Array:
        """The information set of each player to act: `(n,)`."""
        return self._playable_tree.infoset[self._hands.node]

    @property
    def nodes(self) -> arrays.Int32Array:
        """The node of each hand: `(n,)`."""
        return self._hands.node.copy()

    @property
    def acted(self) -> arrays.Int8Array:
        """The player who acted in the last step of each hand: `(n,)`."""
        return self._hands.acted

    @property
    def returns(self) -> arrays.Float32Array:
        """Every player's returns where a hand ended in the last step, else 0: `(n, P)`."""
        return self._playable_tree.returns[self._hands.reached]

    @property
    def ended(self) -> arrays.BoolArray:
        """Whether a hand ended in the last step: `(n,)`."""
        return np.equal(self._playable_tree.state[self._hands.reached], _ENDED)

    def seed(self, seed: int) -> None:
        """Restart the random stream."""
        self._hands.counters[0] = new_stream(seed)[0]
        self._first_hand = first_hand(seed)

    def deal(self) -> None:
        """Deal the first n hands."""
        self._hands.counters[1] = self._first_hand
        _deal(self._playable_tree, self._hands, everywhere=True)

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> None:
        """Play one action per hand `(n,)`; illegal ones raise an error and change nothing."""
        if np.shape(actions) != self._hands.node.shape:
            raise IllegalActionError(
                f"{len(self._hands.node):,} hands need as many actions; got {np.shape(actions)}"
            )
        hand = _first_illegal(self._playable_tree, self._hands.node, actions)
        if hand < len(actions):
            raise IllegalActionError(f"action {actions[hand]} is illegal in hand {hand}")
        _step(self._playable_tree, self._hands, actions)
        if not self._playable_tree.first_acts:
            _deal(self._playable_tree, self._hands, everywhere=False)

    def get_state(self) -> dict[str, Any]:
        """Everything that the next step depends on, except the opponents."""
        return {"node": self._hands.node.tolist(), "counters": self._hands.counters.tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self._hands.node[:] = state["node"]
        self._hands.counters[:] = np.array(state["counters"], np.uint64)


def new_stream(seed: int) -> arrays.UInt64Array:
    """The state `(1,)` of the random stream of a `Simulator` with that seed, for `draw`."""
    return np.random.default_rng(seed).integers(2**63, size=1, dtype=np.uint64)


def first_hand(seed: int) -> np.uint64:
    """The number of the first hand of a `Simulator` with that seed."""
    number: np.uint64 = np.random.default_rng(seed).integers(2**63, size=2, dtype=np.uint64)[1]
    return number


def playable_tree(tree: Tree, opponents: Mapping[int, npt.ArrayLike]) -> PlayableTree:
    """The arrays of a tree in which opponents' tables `(I, A)` play some seats."""
    policy = tree.uniform()
    for seat, table in opponents.items():
        is_played = tree.owner == seat
        policy[is_played] = np.asarray(table, np.float64)[is_played]
    moves_by_itself = (tree.player == CHANCE) | np.isin(tree.player, list(opponents))
    state = np.full(tree.num_nodes, _WAITS, np.uint8)
    state[moves_by_itself] = _MOVES
    state[tree.player == TERMINAL] = _ENDED
    # The nodes after chance's first moves, where no player has acted.
    deals = np.flatnonzero((tree.player != CHANCE) & ~tree.sequence.any(axis=0)).astype(np.int32)
    own_share, alias = _alias_table(tree.chance_reach[deals])
    # Which child an action leads to: how many legal actions come before it.
    child = np.cumsum(tree.legal, axis=1) - 1
    chance = np.zeros(tree.num_nodes)
    for node in np.flatnonzero(tree.player == CHANCE):
        children = slice(tree.first_child[node], tree.first_child[node + 1])
        chance[children] = running_sums(tree.chance_probability[None, children])[0]
    return PlayableTree(
        state=state,
        player=tree.player,
        infoset=tree.infoset,
        first_child=tree.first_child,
        child=np.where(tree.legal, child, -1).astype(np.int16),
        chance=chance,
        policy=running_sums(policy),
        returns=np.ascontiguousarray(tree.returns.T, np.float32),
        deals=np.column_stack([deals, deals[alias]]),
        own_share=np.rint(own_share * 2**32).astype(np.uint64),
        first_acts=bool((state[deals] == _WAITS).all()),
    )


def running_sums(probabilities: npt.ArrayLike) -> arrays.Float64Array:
    """Running sums of each row, `(R, A)`, ending in exactly 1 at the last action with weight."""
    sums = np.cumsum(np.asarray(probabilities, np.float64), axis=1)
    return np.asarray(sums / sums[:, -1:])


def _alias_table(
    probabilities: arrays.Float64Array,
) -> tuple[arrays.Float64Array, arrays.IntpArray]:
    """D cells of equal size: the share of each that is its own, and the index that has the rest.

    Then one draws from D outcomes by drawing a cell, and a number: below the share it is the cell's
    own outcome, above it the other one. Outcomes with less than a cell are filled up from those
    with more. For probabilities 3/4 and 1/4, cell 0 is all its own; cell 1 is half its own, and the
    rest belongs to outcome 0.
    """
    count = len(probabilities)
    share = probabilities * count / probabilities.sum()
    alias = np.arange(count)
    small = [index for index in range(count) if share[index] < 1]
    large = [index for index in range(count) if share[index] >= 1]
    while small and large:
        receiver = small.pop()
        giver = large[-1]
        alias[receiver] = giver
        share[giver] -= 1 - share[receiver]
        if share[giver] < 1:
            small.append(large.pop())
    share[small + large] = 1.0  # up to rounding
    return share, alias


@compiled
def _first_illegal(tree: PlayableTree, node: arrays.Int32Array, actions: npt.NDArray[Any]) -> int:
    """The first hand whose action is illegal, or the number of hands."""
    first = len(node)
    width = np.uint64(tree.child.shape[1])
    for i in range(len(node)):
        action = np.uint64(actions[i])  # a negative number becomes far larger than `width`
        known = min(action, width - np.uint64(1))
        infoset = np.uint64(tree.infoset[np.uint64(node[i])])
        legal = (action == known) & (tree.child[infoset, known] >= 0)
        first = min(first, i + legal * len(node))  # no branch
    return first


@compiled
def _advance(tree: PlayableTree, node: Any, stream: arrays.UInt64Array) -> Any:
    """The next node at which an action is given or the hand ends, after chance and opponents."""
    while tree.state[node] == _MOVES:
        number = draw(stream)
        next_node = tree.first_child[node]
        if tree.player[node] == CHANCE:
            while tree.chance[next_node] <= number:
                next_node += 1
        else:
            infoset = tree.infoset[node]
            action = 0
            while tree.policy[infoset, action] <= number:
                action += 1
            next_node += tree.child[infoset, action]
        node = next_node
    return node


@compiled
def deal_of(tree: PlayableTree, hand: np.uint64) -> int:
    """The node after the deal of a hand, given by its number."""
    place = ((hand * GOLDEN) >> _HALF) * np.uint64(len(tree.deals))
    cell = place >> _HALF
    return int(tree.deals[cell, np.uint64(place & _LOW_HALF >= tree.own_share[cell])])


@compiled
def _next_hand(tree: PlayableTree, counters: arrays.UInt64Array) -> Any:
    """The first node of the next hand in which an action is to be given."""
    while True:
        deal = deal_of(tree, counters[1])
        counters[1] += np.uint64(1)
        node = _advance(tree, deal, counters)
        if tree.state[node] != _ENDED:
            return node


@compiled
def _deal(tree: PlayableTree, hands: Hands, everywhere: bool) -> None:
    """Deal new hands, either everywhere or where a hand has ended."""
    for i in range(len(hands.node)):
        if everywhere or tree.state[hands.reached[i]] == _ENDED:
            hands.node[i] = _next_hand(tree, hands.counters)


@compiled
def _step(tree: PlayableTree, hands: Hands, actions: npt.NDArray[Any]) -> None:
    """Play legal actions, and deal new hands where no opponent would act first in them."""
    hand = hands.counters[1]  # the number of the next hand that is dealt
    deals_here = np.uint64(tree.first_acts)  # 1 or 0
    for i in range(len(actions)):
        here = np.uint64(hands.node[i])  # unsigned: no test whether it counts from the end
        child = tree.child[np.uint64(tree.infoset[here]), np.uint64(actions[i])]
        node = np.uint64(tree.first_child[here] + child)
        if tree.state[node] == _MOVES:
            node = np.uint64(_advance(tree, np.int64(node), hands.counters))
        hands.acted[i] = tree.player[here]
        hands.reached[i] = node
        # `if the hand ended: node = the next deal`, without a branch, because the processor would
        # guess it wrong too often. `ended` is 1 or 0, since only `_ENDED` has the bit 2. Then
        # `0 - ended` has all bits or none, and so `node ^ (node ^ deal)` is the deal or the node.
        ended = (np.uint64(tree.state[node]) >> np.uint64(1)) & deals_here
        deal = np.uint64(deal_of(tree, hand))
        hands.node[i] = node ^ ((node ^ deal) & (np.uint64(0) - ended))
        hand += ended
    hands.counters[1] = hand


@compiled
def play_out(tree: PlayableTree, hands: int, stream: arrays.UInt64Array) -> arrays.Int64Array:
    """The number of `hands` that end at each node if opponents play all seats: `(N,)`."""
    counts = np.zeros(len(tree.player), np.int64)
    for _ in range(hands):
        counts[_advance(tree, 0, stream)] += 1
    return counts


@compiled
def play_hands(tree: PlayableTree, streams: arrays.UInt64Array) -> arrays.Int64Array:
    """The terminal nodes of n hands in which opponents play all seats: `(n,)`.

    The k-th move of a hand takes the k-th number of its own random stream; `streams` `(n,)` has the
    first states. So two policies play the same hand until they choose different actions.
    """
    nodes = np.zeros(len(streams), np.int64)
    stream = np.zeros(1, np.uint64)
    for hand in range(len(streams)):
        stream[0] = streams[hand]
        nodes[hand] = _advance(tree, 0, stream)
    return nodes
