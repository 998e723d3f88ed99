"""Any finite sequential game with perfect recall as flat, read-only arrays.

A joint policy is float64 `(information sets, actions)`: one row per information set, one column
per action ID, illegal actions 0. A *slot* is one legal action at one information set; slots are
numbered by information set, then by action ID. A *sequence* is a player's own slots so far. With
perfect recall the last slot determines it, so sequence 0 is the empty one, and sequence `slot + 1`
ends in `slot` (the sequence form, von Stengel 1996).
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
from kuhn_bridge.errors import GameError

CHANCE, TERMINAL = -1, -4  # as OpenSpiel numbers them


class Visit(NamedTuple):
    """One node of a depth-first walk, in which a decision's children are its legal actions."""

    depth: int
    player: int
    action: int = -1  # that leads here
    probability: float = 1.0  # of the step that leads here, if it is chance's
    key: str = ""
    legal: Sequence[int] = ()
    returns: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class Tree:
    """A game of N nodes, Z of them terminal, I information sets, S slots, A actions, P players.

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
    sequence: arrays.Int32Array  # (P, N) each player's sequence
    returns: arrays.Float64Array  # (P, N) 0 where the game is not over
    terminals: arrays.Int32Array  # (Z,) nodes
    terminal_sequence: arrays.Int32Array  # (P, Z) `sequence` at the terminals
    terminal_payoff: arrays.Float64Array  # (P, Z) `returns` times `chance_reach` at the terminals
    keys: tuple[str, ...]  # (I,) information state strings; an owner's earlier sets come first
    owner: arrays.Int8Array  # (I,) the player who acts
    legal: arrays.BoolArray  # (I, A)
    first_slot: arrays.Int32Array  # (I + 1,)
    slots: arrays.Int32Array  # (S, 4) information set, owner, parent sequence, action ID
    parent_sequence: arrays.Int32Array  # (I,) the owner's sequence when it arrives
    members: arrays.Int32Array  # (decision nodes,) by information set, depth first within one
    first_member: arrays.Int32Array  # (I + 1,)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.player)

    @property
    def num_slots(self) -> int:
        """S."""
        return int(self.first_slot[-1])

    @cached_property
    def sequence_form(self) -> tuple[arrays.UInt32Array, arrays.Float64Array]:
        """The game in two arrays, because each array adds to the cost of a compiled call.

        Here sequence p < P is the empty one of player p, and sequence P + s ends in slot s.
        Indices `(S + Z, max(4, P))`: `slots`, then `terminal_sequence`. Payoffs `(Z + 1, P)`:
        `terminal_payoff`, and in the last row the largest absolute return.
        """
        count, players = self.num_slots, self.num_players
        indices = np.zeros((count + len(self.terminals), max(4, players)), np.uint32)
        indices[:count, :4] = self.slots
        parents, ends = self.slots[:, 2], self.terminal_sequence.T
        indices[:count, 2] = np.where(parents, parents + players - 1, self.slots[:, 1])
        indices[count:, :players] = np.where(ends, ends + players - 1, np.arange(players))
        largest = np.full((1, players), np.abs(self.returns).max())
        return indices, np.concatenate([self.terminal_payoff.T, largest])

    def depths(self) -> arrays.IntpArray:
        """How many steps each node is from the root: `(N,)`."""
        starts = [0]  # of the levels
        while starts[-1] < self.num_nodes:
            starts.append(int(self.first_child[starts[-1]]))
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def history(self, node: int) -> list[int]:
        """The action IDs, chance's included, that lead to a node."""
        actions, dtype = [], self.first_child.dtype.type  # another would convert the array
        while node:
            actions.append(int(self.action[node]))
            node = int(np.searchsorted(self.first_child, dtype(node), side="right")) - 1
        return actions[::-1]

    def uniform(self) -> arrays.Float64Array:
        """The policy that plays all legal actions with equal probability: `(I, A)`."""
        return np.asarray(self.legal / self.legal.sum(axis=1, keepdims=True))

    def random(self, seed: int) -> arrays.Float64Array:
        """A policy drawn uniformly from all policies: `(I, A)`."""
        weights = np.random.default_rng(seed).exponential(size=self.legal.shape) * self.legal
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def table_of(self, slot_values: npt.ArrayLike) -> arrays.Float64Array:
        """Values `(S,)` as a new table `(I, A)`, 0 where an action is illegal."""
        table = np.zeros(self.legal.shape)
        table[self.legal] = slot_values
        return table

    def normalized(
        self, slot_weights: arrays.Float64Array, above: float = 0.0
    ) -> arrays.Float64Array:
        """The policy `(I, A)` in proportion to weights `(S,)`; uniform if they sum to `above`."""
        table = self.table_of(slot_weights)
        sums = table.sum(axis=1, keepdims=True)
        return np.where(sums > above, table / np.where(sums > above, sums, 1), self.uniform())


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
        self.name, self.num_players, self.num_actions = name, num_players, num_actions
        self.infosets = {infoset: number for number, infoset in enumerate(infosets)}
        self.key_bytes = 0
        self._legal: dict[int, Sequence[int]] = {}
        self._last: dict[int, int] = {}  # the last node of each depth
        self._nodes = array("i")  # of each: depth, parent, player, action, information set
        self._probability, self._returns = array("d"), array("d")

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
        self._nodes.extend((depth, self._last.get(depth - 1, 0), player, action, infoset))
        self._last[depth] = len(self._probability)
        self._probability.append(probability)
        self._returns.extend(returns)

    def build(self, visits: Iterable[Visit] = ()) -> Tree:
        """The tree of the nodes that were added and of those that `visits` adds."""
        for visit in visits:
            self.add(visit)
        if not self._legal:
            raise GameError(f"{self.name}: no player has a decision")
        keys = tuple(key for _, key in self.infosets)
        legal = np.zeros((len(keys), self.num_actions), np.bool_)
        for number, actions in self._legal.items():
            if sorted(set(actions)) != list(actions):
                where = f"the legal actions at {keys[number]!r}"
                raise GameError(f"{self.name}: {where} are not in ascending order")
            legal[number, actions] = True
        nodes = np.frombuffer(self._nodes, np.int32).reshape(-1, 5).T
        order = np.argsort(nodes[0], kind="stable")  # breadth first
        depth, parent, actor, action, infoset = (column[order] for column in nodes)
        player, parents = actor.astype(np.int8), np.argsort(order)[parent[1:]]
        probability = np.frombuffer(self._probability, np.float64)[order]
        first_child = _starts(np.bincount(parents, minlength=len(order))) + np.int32(1)
        first_slot = _starts(legal.sum(axis=1))
        decisions = np.flatnonzero(infoset >= 0)
        members = decisions[np.lexsort((order[decisions], infoset[decisions]))].astype(np.int32)
        first_member = _starts(np.bincount(infoset[decisions], minlength=len(legal)))
        chance_reach = np.ones(len(order))
        sequence = np.zeros((self.num_players, len(order)), np.int32)
        for start, stop in pairwise(np.cumsum(np.bincount(depth)).tolist()):
            above, level = parents[start - 1 : stop - 1], np.arange(start, stop)
            chance_reach[level] = chance_reach[above] * probability[level]
            sequence[:, level] = sequence[:, above]
            decided = player[above] >= 0
            decision, child = above[decided], level[decided]
            slot = first_slot[infoset[decision]] + child - first_child[decision]
            sequence[player[decision], child] = slot + 1
        owner = np.array([owner for owner, _ in self.infosets], np.int8)
        before = sequence[owner, members[first_member[:-1]]]
        forgotten = sequence[owner[infoset[members]], members] != before[infoset[members]]
        if forgotten.any():
            key = keys[infoset[members[forgotten.argmax()]]]
            raise GameError(f"{self.name}: at {key!r} the player has forgotten its earlier actions")
        at, slot_action = np.nonzero(legal)
        terminals = np.flatnonzero(player == TERMINAL).astype(np.int32)
        returns = np.zeros((self.num_players, len(order)))
        # Collected depth first: the terminals in that order, then each one's column.
        collected = np.frombuffer(self._returns, np.float64).reshape(-1, self.num_players)
        returns[:, terminals[np.argsort(order[terminals])]] = collected.T
        return Tree(
            name=self.name,
            num_players=self.num_players,
            first_child=first_child,
            player=player,
            infoset=infoset,
            action=action,
            chance_probability=probability,
            chance_reach=chance_reach,
            sequence=sequence,
            returns=returns,
            terminals=terminals,
            terminal_sequence=sequence[:, terminals].copy(),
            terminal_payoff=np.ascontiguousarray(returns[:, terminals] * chance_reach[terminals]),
            keys=keys,
            owner=owner,
            legal=legal,
            first_slot=first_slot,
            slots=np.column_stack([at, owner[at], before[at], slot_action]).astype(np.int32),
            parent_sequence=before,
            members=members,
            first_member=first_member,
        )


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
