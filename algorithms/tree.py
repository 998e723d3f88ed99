"""Any finite sequential game with perfect recall as flat, read-only arrays.

A joint policy is float64 `(I, A)`: one row per information set, one column per action ID, illegal
actions 0. Three more words (those of the sequence form, von Stengel 1996):

- A *choice* is one legal action at one information set. Choices are numbered by information set,
  then by action ID.
- A *sequence* of a player is the list of its own choices so far. With perfect recall the last
  choice determines it. So sequence 0 is the empty one, and sequence `choice + 1` ends in `choice`.
- The *parent sequence* of an information set is its owner's sequence when it arrives there.

For example, a player that checks or bets, and may later have to answer a bet:

    information set     choices             sequences               parent sequence
                                            0: nothing chosen yet
    0: to start         0 check, 1 bet      1: check   2: bet       0
    1: after check-bet  2 call,  3 fold     3: check, call          1
                                            4: check, fold
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.support import arrays
from kuhn_bridge.errors import GameError, short_repr

# Who acts at a node where no player does, as OpenSpiel numbers it.
CHANCE = -1
TERMINAL = -4

# The columns of `SequenceForm.indices`, as far as its rows are choices.
INFOSET = 0
OWNER = 1
PARENT = 2
ACTION = 3


class Visit(NamedTuple):
    """One node of a depth-first walk, in which a decision's children are its legal actions."""

    depth: int
    player: int
    action: int = -1  # that leads here
    probability: float = 1.0  # of the step that leads here, if it is chance's
    key: str = ""
    legal: Sequence[int] = ()
    returns: Sequence[float] = ()


class SequenceForm(NamedTuple):
    """A tree in two arrays for `algorithms.compiled.nashconv`: each adds to the cost of a call.

    Here every player has an empty sequence of its own: sequence p < P is that of player p, and
    sequence P + c ends in choice c.
    """

    # (C + Z, max(4, P)): for each choice its information set, owner, parent sequence and action ID;
    # then for each terminal node the players' sequences.
    indices: arrays.UInt32Array
    # (Z + 1, P): for each terminal node `Tree.terminal_payoff`; in the last row the largest
    # absolute return.
    payoffs: arrays.Float64Array


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A game of N nodes, Z of them terminal, I information sets, C choices, A actions, P players.

    Nodes are numbered breadth first: parents come before children, and the children of node `n` are
    `first_child[n]` up to `first_child[n + 1]`.
    """

    name: str
    num_players: int
    first_child: arrays.Int32Array  # (N + 1,)
    player: arrays.Int8Array  # (N,) who acts: a player, CHANCE or TERMINAL
    infoset: arrays.Int32Array  # (N,) -1 where no player acts
    action: arrays.Int32Array  # (N,) the action ID that leads here, -1 at the root
    chance_probability: arrays.Float64Array  # (N,) of the step to here, 1 after a player's action
    chance_reach: arrays.Float64Array  # (N,) the product of `chance_probability` from the root
    sequence: arrays.Int32Array  # (P, N) each player's sequence: 0, or its last choice + 1
    returns: arrays.Float64Array  # (P, N) 0 where the game is not over
    terminals: arrays.Int32Array  # (Z,) nodes
    terminal_sequence: arrays.Int32Array  # (P, Z) `sequence` at the terminals
    terminal_payoff: arrays.Float64Array  # (P, Z) `returns` times `chance_reach` at the terminals
    keys: tuple[str, ...]  # (I,) information state strings; an owner's earlier sets come first
    owner: arrays.Int8Array  # (I,) the player who acts
    legal: arrays.BoolArray  # (I, A)
    first_choice: arrays.Int32Array  # (I + 1,) choices of `i`: `first_choice[i]` to `[i + 1]`
    choice_infoset: arrays.Int32Array  # (C,)
    choice_action: arrays.Int32Array  # (C,) action ID
    parent_sequence: arrays.Int32Array  # (I,) the owner's sequence when it arrives
    members: arrays.Int32Array  # (decision nodes,) nodes by information set, depth first within one
    first_member: arrays.Int32Array  # (I + 1,)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def num_nodes(self) -> int:
        """The number of nodes, N."""
        return len(self.player)

    @property
    def num_choices(self) -> int:
        """The number of choices, C; there are C + 1 sequences."""
        return len(self.choice_action)

    @cached_property
    def choice_owner(self) -> arrays.Int8Array:
        """The player who makes each choice: `(C,)`."""
        return self.owner[self.choice_infoset]

    @cached_property
    def choice_parent(self) -> arrays.Int32Array:
        """The owner's sequence before each choice: `(C,)`."""
        return self.parent_sequence[self.choice_infoset]

    @cached_property
    def sequence_form(self) -> SequenceForm:
        """The game in the two arrays that compiled code takes."""
        choices = self.num_choices
        players = self.num_players
        terminals = len(self.terminals)
        parent = self.choice_parent
        indices = np.zeros((choices + terminals, max(4, players)), np.uint32)
        indices[:choices, INFOSET] = self.choice_infoset
        indices[:choices, OWNER] = self.choice_owner
        indices[:choices, PARENT] = np.where(parent > 0, parent + players - 1, self.choice_owner)
        indices[:choices, ACTION] = self.choice_action
        ends = self.terminal_sequence.T  # (Z, P)
        indices[choices:, :players] = np.where(ends > 0, ends + players - 1, np.arange(players))
        largest_return = np.full((1, players), np.abs(self.returns).max())
        return SequenceForm(
            indices=indices, payoffs=np.concatenate([self.terminal_payoff.T, largest_return])
        )

    def depths(self) -> arrays.IntpArray:
        """How many steps each node is from the root: `(N,)`."""
        level_starts = [0]
        while level_starts[-1] < self.num_nodes:
            # The first child of a level's first node with children is the first node of the next.
            level_starts.append(int(self.first_child[level_starts[-1]]))
        level_sizes = np.diff(level_starts)
        return np.repeat(np.arange(len(level_sizes)), level_sizes)

    def __repr__(self) -> str:
        return f"<Tree of {self.num_nodes:,} nodes, {len(self.keys):,} information sets>"

    def history(self, node: int) -> list[int]:
        """The action IDs, chance's included, that lead to a node."""
        number = self.first_child.dtype.type  # a number of another type would convert the array
        actions = []
        while node > 0:
            actions.append(int(self.action[node]))
            # The parent is the last node whose children begin at `node` or before it.
            node = int(np.searchsorted(self.first_child, number(node), side="right")) - 1
        return actions[::-1]

    def node_after(self, history: Sequence[int]) -> int:
        """The node that these action IDs, chance's included, lead to."""
        node = 0
        for action in history:
            children = slice(self.first_child[node], self.first_child[node + 1])
            node = int(children.start + np.flatnonzero(self.action[children] == action)[0])
        return node

    def uniform(self) -> arrays.Float64Array:
        """The policy that plays all legal actions with equal probability: `(I, A)`."""
        return np.asarray(self.legal / self.legal.sum(axis=1, keepdims=True))

    def random(self, seed: int) -> arrays.Float64Array:
        """A policy drawn uniformly from all policies: `(I, A)`."""
        weights = np.random.default_rng(seed).exponential(size=self.legal.shape) * self.legal
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def table_of(self, choice_values: npt.ArrayLike) -> arrays.Float64Array:
        """Values of choices `(C,)` as a new table `(I, A)`, 0 where an action is illegal."""
        table = np.zeros(self.legal.shape)
        table[self.legal] = choice_values
        return table

    def normalized(
        self, choice_weights: arrays.Float64Array, above: float = 0.0
    ) -> arrays.Float64Array:
        """The policy `(I, A)` in proportion to weights of choices `(C,)`.

        It is uniform where the weights of an information set sum to `above` or less.
        """
        weights = self.table_of(choice_weights)
        sums = weights.sum(axis=1, keepdims=True)
        proportional = weights / np.where(sums > above, sums, 1)
        return np.where(sums > above, proportional, self.uniform())


class _Columns(NamedTuple):
    """The five integers that a `TreeBuilder` collects per node, as columns `(N,)`."""

    depth: arrays.Int32Array
    parent: arrays.Int32Array
    player: arrays.Int32Array
    action: arrays.Int32Array
    infoset: arrays.Int32Array


class TreeBuilder:
    """Collects the nodes of a game in depth-first order and builds its tree.

    `infosets` are information sets (player, key) to number first; others follow in order.
    """

    def __init__(
        self,
        name: str,
        num_players: int,
        num_actions: int,
        infosets: Iterable[tuple[int, str]] = (),
    ) -> None:
        self.name = name
        self.num_players = num_players
        self.num_actions = num_actions
        self.infosets = {infoset: number for number, infoset in enumerate(infosets)}
        self.key_bytes = 0
        self._legal: dict[int, Sequence[int]] = {}  # by information set
        self._last_at_depth: dict[int, int] = {}  # the last node of each depth
        self._nodes = array("i")  # the five `_Columns` of the first node, of the second, ...
        self._probability = array("d")
        self._returns = array("d")

    def __len__(self) -> int:
        return len(self._probability)

    def add(self, node: tuple[int, int, int, float, str, Sequence[int], Sequence[float]]) -> None:
        """Add the next node, a `Visit` or a plain tuple of its fields, which is quicker to make."""
        depth, player, action, probability, key, legal, returns = node
        infoset = -1
        if player >= 0:
            known = len(self.infosets)
            infoset = self.infosets.setdefault((player, key), known)
            if infoset == known:
                self.key_bytes += sys.getsizeof(key)
            if self._legal.setdefault(infoset, legal) != legal:
                raise GameError(
                    f"{self.name}: the legal actions at {key!r} are not always the same"
                )
        parent = self._last_at_depth.get(depth - 1, 0)
        self._nodes.extend((depth, parent, player, action, infoset))
        self._last_at_depth[depth] = len(self._probability)
        self._probability.append(probability)
        self._returns.extend(returns)

    def build(self, visits: Iterable[Visit] = ()) -> Tree:
        """The tree of the nodes that were added and of those that `visits` adds."""
        for visit in visits:
            self.add(visit)
        if not self._legal:
            raise GameError(f"{self.name}: no player has a decision")
        keys = tuple(key for _, key in self.infosets)
        owner = np.array([player for player, _ in self.infosets], np.int8)
        legal = self._legal_table(keys)

        # Nodes were collected depth first; `order` lists them breadth first. Within a level they
        # stay in order, so the children of one node are neighbours.
        collected = _Columns(*np.frombuffer(self._nodes, np.int32).reshape(-1, 5).T)
        order = np.argsort(collected.depth, kind="stable")
        new_number = np.argsort(order)
        nodes = _Columns(*(column[order] for column in collected))
        player = nodes.player.astype(np.int8)
        parents = new_number[nodes.parent[1:]]  # (N - 1,) of all nodes but the root
        num_children = np.bincount(parents, minlength=len(order))
        first_child = _starts(num_children) + np.int32(1)
        probability = np.frombuffer(self._probability, np.float64)[order]

        infoset_of_choice, action_of_choice = np.nonzero(legal)
        first_choice = _starts(legal.sum(axis=1))

        # Decision nodes by information set, and depth first within one.
        decisions = np.flatnonzero(nodes.infoset >= 0)
        by_infoset = np.lexsort((order[decisions], nodes.infoset[decisions]))
        members = decisions[by_infoset].astype(np.int32)
        first_member = _starts(np.bincount(nodes.infoset[decisions], minlength=len(legal)))

        # Chance's reach probabilities and the players' sequences, level by level from the root.
        chance_reach = np.ones(len(order))
        sequence = np.zeros((self.num_players, len(order)), np.int32)
        level_ends = np.cumsum(np.bincount(nodes.depth))
        for start, stop in pairwise(level_ends.tolist()):
            level = np.arange(start, stop)
            above = parents[start - 1 : stop - 1]
            chance_reach[level] = chance_reach[above] * probability[level]
            sequence[:, level] = sequence[:, above]
            decided = player[above] >= 0
            decision = above[decided]
            child = level[decided]
            place = child - first_child[decision]  # among the legal actions
            choice = first_choice[nodes.infoset[decision]] + place
            sequence[player[decision], child] = choice + 1

        parent_sequence = sequence[owner, members[first_member[:-1]]]
        infoset_of_member = nodes.infoset[members]
        own_sequence = sequence[owner[infoset_of_member], members]
        forgotten = own_sequence != parent_sequence[infoset_of_member]
        if forgotten.any():
            key = keys[infoset_of_member[forgotten.argmax()]]
            raise GameError(f"{self.name}: at {key!r} the player has forgotten its earlier actions")

        terminals = np.flatnonzero(player == TERMINAL).astype(np.int32)
        # Returns were collected at the terminals only, depth first.
        depth_first = terminals[np.argsort(order[terminals])]
        returns = np.zeros((self.num_players, len(order)))
        returns[:, depth_first] = (
            np.frombuffer(self._returns, np.float64).reshape(-1, self.num_players).T
        )
        terminal_payoff = returns[:, terminals] * chance_reach[terminals]
        return Tree(
            name=self.name,
            num_players=self.num_players,
            first_child=first_child,
            player=player,
            infoset=nodes.infoset,
            action=nodes.action,
            chance_probability=probability,
            chance_reach=chance_reach,
            sequence=sequence,
            returns=returns,
            terminals=terminals,
            terminal_sequence=sequence[:, terminals].copy(),
            terminal_payoff=np.ascontiguousarray(terminal_payoff),
            keys=keys,
            owner=owner,
            legal=legal,
            first_choice=first_choice,
            choice_infoset=infoset_of_choice.astype(np.int32),
            choice_action=action_of_choice.astype(np.int32),
            parent_sequence=parent_sequence,
            members=members,
            first_member=first_member,
        )

    def _legal_table(self, keys: Sequence[str]) -> arrays.BoolArray:
        """The legal actions of each information set: `(I, A)`."""
        legal = np.zeros((len(keys), self.num_actions), np.bool_)
        for infoset, actions in self._legal.items():
            if sorted(set(actions)) != list(actions):
                raise GameError(
                    f"{self.name}: the legal actions at {keys[infoset]!r} are not in ascending "
                    "order"
                )
            if min(actions) < 0 or max(actions) >= self.num_actions:
                key = short_repr(keys[infoset])
                raise GameError(
                    f"{self.name}: the legal actions at {key} are {list(actions)}, and it has "
                    f"{self.num_actions} action IDs"
                )
            legal[infoset, actions] = True
        return legal


def ranges(starts: npt.NDArray[Any], stops: npt.NDArray[Any]) -> arrays.IntpArray:
    """The concatenation of `range(start, stop)` for all pairs."""
    sizes = stops - starts
    return np.repeat(stops - np.cumsum(sizes), sizes) + np.arange(sizes.sum())


def unsigned(values: npt.ArrayLike) -> arrays.UInt32Array:
    """The values as uint32: compiled code tests signed indices for negative ones."""
    return np.ascontiguousarray(values, np.uint32)


def _starts(counts: npt.ArrayLike) -> arrays.Int32Array:
    """Where each group of `counts` begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
