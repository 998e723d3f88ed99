"""Any finite sequential game as flat, read-only arrays.

A joint policy on a tree is float64 `(information sets, actions)`: one row an information set, one
column an action ID, illegal actions 0. A *slot* is one legal action of one information set; slots
are numbered row by row. A *sequence* is a player's last slot plus 1, or 0 before the first move:
with perfect recall it says all that the player has done.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int32Array,
    IntpArray,
    UInt32Array,
)
from kuhn_bridge.errors import GameError

SequenceForm: TypeAlias = tuple[UInt32Array, Float64Array]  # see `Tree.sequence_form`
CHANCE, TERMINAL = -1, -4  # as OpenSpiel numbers them


class Visit(NamedTuple):
    """One node met on a walk, depth first; `edge` is chance's probability of coming here."""

    depth: int
    player: int
    action: int = -1
    edge: float = 1.0
    key: str = ""
    legal: tuple[int, ...] = ()
    returns: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Tree:
    """A game of N nodes, I information sets with S slots in all, A actions, P players.

    Nodes are numbered breadth first, so parents come before children and the children of a node
    are neighbours: those of `n` are `first_child[n]` up to `first_child[n + 1]`.
    """

    name: str
    num_players: int
    first_child: Int32Array  # (N + 1,)
    player: Int8Array  # (N,) who acts: a player, CHANCE or TERMINAL
    infoset: Int32Array  # (N,) the row, -1 where no player acts
    action: Int32Array  # (N,) the action ID that leads here, -1 at the root
    edge: Float64Array  # (N,) chance's probability of that step, 1 after a player's action
    chance: Float64Array  # (N,) the product of `edge` from the root
    sequence: Int32Array  # (P, N) what each player has done before
    returns: Float64Array  # (P, N) 0 before the end
    terminals: Int32Array  # (Z,) nodes
    ends: Int32Array  # (P, Z) `sequence` at the terminals
    stakes: Float64Array  # (P, Z) `returns` times `chance` at the terminals
    keys: tuple[str, ...]  # (I,) names of the information sets, parents first
    owner: Int8Array  # (I,)
    legal: BoolArray  # (I, A)
    first_slot: Int32Array  # (I + 1,)
    slots: Int32Array  # (S, 4) row, owner, the owner's sequence before, action ID
    parent: Int32Array  # (I,) the owner's sequence before the information set
    members: Int32Array  # (decisions,) nodes by information set, depth first within one
    first_member: Int32Array  # (I + 1,)

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
    def sequence_form(self) -> SequenceForm:
        """All that matters with perfect recall, in two arrays: each costs a compiled call time.

        A *place* is a sequence, of which the players' empty ones come first here, then the slots.
        Numbers `(S + Z, max(4, P))`: the row, owner, place before and action of each slot, then the
        players' places at each terminal. Stakes `(Z + 1, P)`; in the last row the largest return.
        """
        count, players = self.num_slots, self.num_players
        numbers = np.zeros((count + len(self.terminals), max(4, players)), np.uint32)
        numbers[:count, :4] = self.slots
        numbers[count:, :players] = self.ends.T
        owners, before = np.arange(players), numbers[:count, 2]
        numbers[:count, 2] = np.where(before, before + players - 1, self.slots[:, 1])
        ends = numbers[count:, :players]
        numbers[count:, :players] = np.where(ends, ends + players - 1, owners)
        largest = np.full((1, players), np.abs(self.returns).max())
        return numbers, np.concatenate([self.stakes.T, largest])

    def depths(self) -> IntpArray:
        """How many steps each node is from the root: `(N,)`."""
        depth = np.zeros(self.num_nodes, np.intp)
        for parents, nodes in _levels(self.first_child):
            depth[nodes] = depth[parents] + 1
        return depth

    def history(self, node: int) -> list[int]:
        """The action IDs, chance's included, that lead to a node."""
        actions, kind = [], self.first_child.dtype.type  # another would convert the array
        while node:
            actions.append(int(self.action[node]))
            node = int(np.searchsorted(self.first_child, kind(node), side="right")) - 1
        return actions[::-1]

    def uniform(self) -> Float64Array:
        """Every legal action equally often: `(I, A)`."""
        return np.asarray(self.legal / self.legal.sum(axis=1, keepdims=True))

    def random(self, seed: int) -> Float64Array:
        """A policy drawn uniformly from all policies: `(I, A)`."""
        weights = np.random.default_rng(seed).exponential(size=self.legal.shape) * self.legal
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def policy_of(self, slots: npt.ArrayLike) -> Float64Array:
        """A new table `(I, A)` of values given slot by slot `(S,)`."""
        table = np.zeros(self.legal.shape)
        table[self.legal] = slots
        return table


class Walk:
    """The nodes of a game as they are met, depth first, column by column; then the tree of them.

    `rows` are information sets (player, key) to number first; the rest follow as they are met.
    """

    def __init__(
        self,
        name: str,
        num_players: int,
        num_actions: int,
        rows: Iterable[tuple[int, str]] = (),
    ) -> None:
        self.name, self.num_players, self.num_actions = name, num_players, num_actions
        self.rows = {row: number for number, row in enumerate(rows)}
        self.key_bytes = 0
        self._legal: dict[int, Sequence[int]] = {}
        self._depth, self._player, self._action, self._infoset = (array("i") for _ in range(4))
        self._edge, self._payoff = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._depth)

    def meet(self, depth: int, player: int, action: int, edge: float) -> None:
        """A node that `action` leads to, `edge` being chance's probability of coming here.

        `decide` or `end` follows, unless chance acts.
        """
        self._depth.append(depth)
        self._player.append(player)
        self._action.append(action)
        self._edge.append(edge)
        self._infoset.append(-1)

    def decide(self, player: int, key: str, legal: Sequence[int]) -> None:
        """Say what the player who acts at this node knows, and may do."""
        rows = len(self.rows)
        row = self._infoset[-1] = self.rows.setdefault((player, key), rows)
        if row == rows:
            self.key_bytes += sys.getsizeof(key)
        if self._legal.setdefault(row, legal) != legal:
            raise GameError(f"{self.name}: the legal actions of {key!r} are not always the same")

    def end(self, returns: Sequence[float]) -> None:
        """Say what the players win at this node."""
        self._payoff.extend(returns)

    def tree(self) -> Tree:
        """All of it, once every node was met."""
        levels = np.frombuffer(self._depth, np.int32)
        order = np.argsort(levels, kind="stable")  # depth first -> breadth first
        player = np.frombuffer(self._player, np.int32).astype(np.int8)
        players = player[order]
        infosets = np.frombuffer(self._infoset, np.int32)[order]
        edges = np.frombuffer(self._edge, np.float64)[order]
        legal = np.zeros((len(self.rows), self.num_actions), np.bool_)
        for number, actions in self._legal.items():
            legal[number, actions] = True
        first_child = _first_children(levels, order)
        first_slot = _starts(legal.sum(axis=1))
        terminals = np.flatnonzero(players == TERMINAL).astype(np.int32)
        payoffs = np.frombuffer(self._payoff, np.float64).reshape(-1, self.num_players)
        rank = np.cumsum(player == TERMINAL) - 1
        returns = np.zeros((self.num_players, len(order)))
        returns[:, terminals] = payoffs[rank[order[terminals]]].T
        decisions = np.flatnonzero(infosets >= 0)
        members = decisions[np.lexsort((order[decisions], infosets[decisions]))].astype(np.int32)
        first_member = _starts(np.bincount(infosets[decisions], minlength=len(self.rows)))
        sequence = _sequences(first_child, players, infosets, first_slot, self.num_players)
        owner = np.array([owner for owner, _ in self.rows], np.int8)
        parent = sequence[owner, members[first_member[:-1]]]
        chance = _chance_reach(first_child, edges)
        row, slot_action = np.nonzero(legal)
        tree = Tree(
            name=self.name,
            num_players=self.num_players,
            first_child=first_child,
            player=players,
            infoset=infosets,
            action=np.frombuffer(self._action, np.int32)[order],
            edge=edges,
            chance=chance,
            sequence=sequence,
            returns=returns,
            terminals=terminals,
            ends=sequence[:, terminals].copy(),
            stakes=np.ascontiguousarray(returns[:, terminals] * chance[terminals]),
            keys=tuple(key for _, key in self.rows),
            owner=owner,
            legal=legal,
            first_slot=first_slot,
            slots=np.column_stack([row, owner[row], parent[row], slot_action]).astype(np.int32),
            parent=parent,
            members=members,
            first_member=first_member,
        )
        _require_actions(tree)
        _require_perfect_recall(tree)
        return tree


def compile_tree(
    name: str,
    num_players: int,
    num_actions: int,
    visits: Iterable[Visit],
    *,
    rows: Iterable[tuple[int, str]] = (),
) -> Tree:
    """The tree of a walk that meets every node depth first."""
    walk = Walk(name, num_players, num_actions, rows)
    for visit in visits:
        walk.meet(visit.depth, visit.player, visit.action, visit.edge)
        if visit.player == TERMINAL:
            walk.end(visit.returns)
        elif visit.player >= 0:
            walk.decide(visit.player, visit.key, visit.legal)
    return walk.tree()


def ranges(starts: npt.NDArray[Any], stops: npt.NDArray[Any]) -> IntpArray:
    """All of `range(start, stop)`, one pair after another."""
    sizes = stops - starts
    return np.repeat(stops - np.cumsum(sizes), sizes) + np.arange(sizes.sum())


def unsigned(values: npt.ArrayLike) -> UInt32Array:
    """Numbers that spare compiled code a test for negative indices."""
    return np.ascontiguousarray(values, np.uint32)


def _starts(counts: npt.ArrayLike) -> Int32Array:
    """Where each group of `counts` begins, and at the end where all end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _first_children(levels: Int32Array, order: IntpArray) -> Int32Array:
    """`(N + 1,)` from the depths of a depth-first walk: a parent is the last node one level up."""
    borders = np.append(0, np.cumsum(np.bincount(levels)))
    counts = np.zeros(len(levels), np.intp)  # of children, breadth first
    for start, middle, stop in zip(borders[:-2], borders[1:-1], borders[2:], strict=True):
        parents = start + np.searchsorted(order[start:middle], order[middle:stop]) - 1
        counts[start:middle] = np.bincount(parents - start, minlength=middle - start)
    return _starts(counts) + np.int32(1)


def _levels(first_child: Int32Array) -> Iterator[tuple[IntpArray, IntpArray]]:
    """Level by level below the root: each node's parent, and the nodes."""
    parents = np.repeat(np.arange(len(first_child) - 1), np.diff(first_child))
    start, stop = 1, int(first_child[1])
    while start < stop:
        yield parents[start - 1 : stop - 1], np.arange(start, stop)
        start, stop = stop, int(first_child[stop])


def _chance_reach(first_child: Int32Array, edge: Float64Array) -> Float64Array:
    chance = np.ones(len(edge))
    for parents, nodes in _levels(first_child):
        chance[nodes] = chance[parents] * edge[nodes]
    return chance


def _sequences(
    first_child: Int32Array,
    player: Int8Array,
    infoset: Int32Array,
    first_slot: Int32Array,
    num_players: int,
) -> Int32Array:
    sequence = np.zeros((num_players, len(player)), np.int32)
    for parents, nodes in _levels(first_child):
        sequence[:, nodes] = sequence[:, parents]
        moved = player[parents] >= 0
        above, below = parents[moved], nodes[moved]
        slot = first_slot[infoset[above]] + below - first_child[above]
        sequence[player[above], below] = slot + 1
    return sequence


def _require_actions(tree: Tree) -> None:
    """Slots rely on it: the children of a decision are its legal actions, in ascending order."""
    decisions = np.flatnonzero(tree.infoset >= 0)
    if not len(decisions):
        raise GameError(f"{tree.name}: nobody has anything to decide")
    rows = tree.infoset[decisions]
    first, after = tree.first_child[decisions], tree.first_child[decisions + 1]
    start, stop = tree.first_slot[rows], tree.first_slot[rows + 1]
    wrong = rows[after - first != stop - start]
    if not len(wrong):
        children, slots = ranges(first, after), ranges(start, stop)
        wrong = tree.slots[slots[tree.action[children] != tree.slots[slots, 3]], 0]
    if len(wrong):
        raise GameError(
            f"{tree.name}: at {tree.keys[wrong[0]]!r} the children are not the legal actions in "
            "ascending order"
        )


def _require_perfect_recall(tree: Tree) -> None:
    rows = np.repeat(np.arange(len(tree.keys)), np.diff(tree.first_member))
    forgotten = tree.sequence[tree.owner[rows], tree.members] != tree.parent[rows]
    if forgotten.any():
        key = tree.keys[rows[forgotten.argmax()]]
        raise GameError(f"{tree.name}: at {key!r} the player has forgotten what it did before")
    if (tree.parent > tree.first_slot[:-1]).any():
        raise GameError(f"{tree.name}: an information set is numbered before the one it follows")
