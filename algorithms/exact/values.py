"""Exact values, best responses and NashConv of a joint policy, for any number of players.

With perfect recall a player's best response needs no nodes but the last: every terminal node adds
its counterfactual return to the player's sequence there, and the player's information sets, last
first, pass their best slot on to the sequence before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.exact.tree import Floats, Ints, Policy, SequenceForm, Tree
from algorithms.support.compiled import compiled, part
from algorithms.support.lanes import Lanes, larger, plus, put, row, times, zeros
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import ROW_SUM_TOLERANCE

SLACK = 1e-4  # of the largest return: what such rows, multiplied along a hand, may cost
SIDE_BY_SIDE = 8  # policies of a batch that are measured together


class NashConv:
    """What the players could still gain, in chips per hand; one number per player."""

    __slots__ = ("_measures", "_tree")

    def __init__(self, tree: Tree, measures: Floats) -> None:
        self._tree, self._measures = tree, measures  # as `_sweep` writes them

    @property
    def total(self) -> float:
        """The sum of all players' gains."""
        return self._measures.item(0)

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.total / self._tree.num_players

    @property
    def gains(self) -> tuple[float, ...]:
        """How much more each player would win by best-responding to the others."""
        return self._figures(0)

    @property
    def values(self) -> tuple[float, ...]:
        """What each player wins."""
        return self._figures(1)

    @property
    def best_values(self) -> tuple[float, ...]:
        """What each player would win by best-responding to the others."""
        return self._figures(2)

    @property
    def best_responses(self) -> Ints:
        """The action with which the owner of each row answers the others: `(I,)`."""
        worth = np.full(self._tree.legal.shape, -np.inf)
        worth[self._tree.legal] = self._measures[1 + 3 * self._tree.num_players :]
        return np.asarray(worth.argmax(axis=1), np.int32)

    def _figures(self, kind: int) -> tuple[float, ...]:
        players = self._tree.num_players
        return tuple(self._measures[1 + kind * players :][:players].tolist())

    def __repr__(self) -> str:
        return f"<NashConv {self.total:g}, gains {self.gains}, values {self.values}>"


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> NashConv:
    """What all players together could still gain by best-responding to a joint policy `(I, A)`."""
    return measuring(tree)(policy)


def measuring(tree: Tree) -> Callable[[npt.ArrayLike], NashConv]:
    """`nash_conv` of one tree, for many calls: what does not change is looked up once."""
    game, shape = tree.sequence_form, tree.legal.shape
    size = 1 + 3 * tree.num_players + tree.num_slots

    def measure(policy: npt.ArrayLike) -> NashConv:
        table = _array(policy)
        if table.shape != shape:
            raise PolicyError(_misshapen(tree, table.shape))
        measures = np.empty(size)
        if _alone(game, table, measures) >= 0:
            raise PolicyError(_complaint(tree, table))
        return NashConv(tree, measures)

    return measure


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Floats:
    """NashConv `(B,)` of many joint policies `(B, I, A)` in one sweep."""
    tables = _array(policies)
    if tables.shape[1:] != tree.legal.shape:
        raise PolicyError(_misshapen(tree, tables.shape[1:]))
    totals = np.empty(len(tables))
    rows = tables.reshape(-1, tree.legal.shape[1])
    wrong = _together(zeros(SIDE_BY_SIDE), tree.sequence_form, rows, totals)
    if wrong >= 0:
        raise PolicyError(_complaint(tree, tables[wrong]))
    return totals


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """What each player wins on average, in chips per hand, under a joint policy `(I, A)`."""
    return nash_conv(tree, policy).values


def reach(tree: Tree, policy: npt.ArrayLike) -> Floats:
    """How likely each sequence is by its owner's choices alone, under `(I, A)`: `(S + 1,)`."""
    return _likely(tree.slots, _array(policy)[tree.legal])


@compiled
def _likely(slots: Ints, probabilities: Floats) -> Floats:
    """The sequences' probabilities from those of the slots, of which parents come first."""
    likely = np.ones(len(slots) + 1)
    for slot in range(len(slots)):
        likely[slot + 1] = likely[slots[slot, 2]] * probabilities[slot]
    return likely


def spread(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of what a player wins in a hand under a joint policy `(I, A)`."""
    likely = reach(tree, policy)[tree.ends].prod(axis=0) * tree.chance[tree.terminals]
    won = tree.returns[:, tree.terminals]
    means = (won * likely).sum(axis=1, keepdims=True)
    return float(np.sqrt(((won - means) ** 2 * likely).sum(axis=1).mean()))


def seated(tree: Tree, policies: Sequence[npt.ArrayLike]) -> Policy:
    """The joint policy `(I, A)` in which player p takes its rows from `policies[p]`."""
    tables = np.stack([np.asarray(policy, np.float64) for policy in policies])
    return np.asarray(tables[tree.owner, np.arange(len(tree.keys))])


def pure(tree: Tree, actions: npt.ArrayLike) -> Policy:
    """The joint policy `(I, A)` that always plays `actions` `(I,)`."""
    return np.asarray(np.arange(tree.legal.shape[1]) == np.reshape(actions, (-1, 1)), np.float64)


def _array(numbers: npt.ArrayLike) -> Floats:
    """As float64, writable and in C order: one type to compile for."""
    if type(numbers) is np.ndarray and numbers.dtype.char == "d" and numbers.flags.carray:
        return numbers
    return np.array(numbers, np.float64, order="C")


def _misshapen(tree: Tree, shape: tuple[int, ...]) -> str:
    want, got = (" x ".join(map(str, sizes)) for sizes in (tree.legal.shape, shape))
    return f"a joint policy of {tree.name} is {want}; got {got or 'a number'}"


def _complaint(tree: Tree, table: Floats) -> str:
    """The first row of a refused policy `(I, A)` that is no distribution."""
    possible = np.where(tree.legal, table >= 0, table == 0).all(axis=1)
    first = int((possible & (np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE)).argmin())
    return (
        f"{tree.keys[first]!r}: {table[first].tolist()} are not probabilities of its legal actions"
    )


@compiled
def _alone(game: SequenceForm, table: Floats, measures: Floats) -> int:
    """Measure one policy `(I, A)`; its first row that is no distribution, or -1.

    Writes NashConv, the players' gains, values and values of best responses, and what each slot is
    worth to its owner: `(1 + 3P + S,)`.
    """
    slots, ends, stakes, largest = game
    players, terminals = ends.shape
    likely = np.ones(len(slots) + 1)
    wrong = _likely_if_right(slots, table, likely)
    if wrong >= 0:
        return wrong
    measures[:] = 0
    values, worth = 1 + players, 1 + 2 * players  # where they begin, the latter with best values
    for player in range(players):
        value, following = 0.0, (player + 1) % players
        for z in range(np.uint64(terminals)):
            counterfactual = stakes[player, z]
            if players > 1:
                counterfactual *= likely[np.uint64(ends[following, z])]
            for step in range(2, players):
                counterfactual *= likely[np.uint64(ends[(player + step) % players, z])]
            own = np.uint64(ends[player, z])
            at = own + np.uint64(players - 1) if own > 0 else np.uint64(player)
            measures[np.uint64(worth) + at] += counterfactual
            value += counterfactual * likely[own]
        measures[values + player] = value
    top = -np.inf
    for slot in range(len(slots) - 1, -1, -1):
        top = max(top, measures[worth + players + slot])
        if slot == 0 or slots[slot - 1, 0] != slots[slot, 0]:
            own = slots[slot, 2]
            measures[worth + (players + own - 1 if own > 0 else slots[slot, 1])] += top
            top = -np.inf
    for player in range(players):
        gain = measures[worth + player] - measures[values + player]
        assert gain >= -SLACK * largest  # noqa: S101  # a best response never loses
        measures[1 + player] = max(gain, 0.0)
        measures[0] += max(gain, 0.0)
    return -1


@part
def _likely_if_right(slots: Ints, table: Floats, likely: Floats) -> int:
    """Fill in each sequence's probability; the first row that is no distribution, or -1."""
    rows, actions = np.uint64(table.shape[0]), np.uint64(table.shape[1])
    slot, one = np.uint64(0), np.uint64(1)
    for at in range(rows):
        legal, everything = 0.0, 0.0
        for action in range(actions):
            p = table[at, action]
            everything += abs(p)
            if slot < len(slots) and slots[slot, 0] == at and slots[slot, 3] == action:
                legal += p
                likely[slot + one] = likely[np.uint64(slots[slot, 2])] * p
                slot += one
        if not (abs(legal - 1) <= ROW_SUM_TOLERANCE and everything == legal):
            return at
    return -1


@compiled
def _together(zero: Lanes, game: SequenceForm, policies: Floats, totals: Floats) -> int:
    """NashConv of policies `(B * I, A)`, as many side by side as there are lanes.

    The first that is none, or -1.
    """
    slots, ends, _, largest = game
    players, width = len(ends), len(zero)
    reach = np.ones((len(slots) + 1, width))
    values = np.empty((players, width))
    worth = np.empty((players + len(slots), width))
    for first in range(0, len(totals), width):
        stop = min(first + width, len(totals))
        wrong = _sweep(zero, game, policies, (first, stop), (reach, values, worth))
        if wrong >= 0:
            return wrong
        for number in range(first, stop):
            total = 0.0
            for player in range(players):
                total += _gain(values, worth, player, number - first, largest)
            totals[number] = total
    return -1


@part
def _gain(values: Floats, worth: Floats, player: int, lane: int, largest: float) -> float:
    gain: float = worth[player, lane] - values[player, lane]
    assert gain >= -SLACK * largest  # noqa: S101  # a best response never loses
    return max(gain, 0.0)


# By lane: of each sequence the probability that its owner plays it; what the players win; what the
# players' empty sequences, then all slots, are worth to their owner who goes on best.
_Tables: TypeAlias = tuple[Floats, Floats, Floats]


@part
def _sweep(
    zero: Lanes, game: SequenceForm, policies: Floats, which: tuple[int, int], tables: _Tables
) -> int:
    """Fill in the tables for the policies from first to last; the first that is none, or -1."""
    slots, ends, stakes, _ = game
    reach, values, worth = tables
    first, stop = which
    wrong = _reach(zero, slots, policies, which, reach)
    for number in range(first, stop):
        if wrong[number - first] != 0:  # nor is NaN
            return number
    worth[:] = 0
    _end(zero, ends, stakes, reach, worth)
    _value(zero, slots, reach, worth, values)
    _respond(zero, slots, worth, len(ends))
    return -1


@part
def _reach(
    zero: Lanes, slots: Ints, policies: Floats, which: tuple[int, int], reach: Floats
) -> Lanes:
    """Fill in each sequence's probability; lanes are 0 where all rows are distributions."""
    first, stop = which
    rows = slots[-1, 0] + 1
    wrong = zero
    slot, one = np.uint64(0), np.uint64(1)
    for at in range(rows):
        legal, everything = zero, zero
        for action in range(np.uint64(policies.shape[1])):
            p = zero
            for i in range(len(zero)):  # lanes past the last policy repeat it
                policy = min(first + i, stop - 1)
                p = tuple_setitem(p, i, policies[np.uint64(policy * rows + at), action])
            everything = _plus_size(everything, p)
            if slot < len(slots) and slots[slot, 0] == at and slots[slot, 3] == action:
                legal = plus(legal, p, 1.0)
                before = row(reach, np.uint64(slots[slot, 2]), zero)
                slot += one
                put(reach, slot, times(before, p))
        wrong = _plus_fault(wrong, legal, everything)
    return wrong


@part
def _plus_size(a: Lanes, p: Lanes) -> Lanes:
    for i in range(len(a)):
        a = tuple_setitem(a, i, a[i] + abs(p[i]))
    return a


@part
def _plus_fault(wrong: Lanes, legal: Lanes, everything: Lanes) -> Lanes:
    """Add what a row sums too far from 1, and what is negative or illegal in it."""
    for i in range(len(wrong)):
        off = max(abs(legal[i] - 1) - ROW_SUM_TOLERANCE, 0.0) + (everything[i] - legal[i])
        wrong = tuple_setitem(wrong, i, wrong[i] + off)
    return wrong


@part
def _end(zero: Lanes, ends: Ints, stakes: Floats, reach: Floats, worth: Floats) -> None:
    """Add every terminal's counterfactual returns to the players' last slots."""
    players, terminals = ends.shape
    for z in range(terminals):
        for player in range(players):
            counterfactual = _all(zero, stakes[player, z])
            for other in range(players):
                if other != player:
                    before = row(reach, np.uint64(ends[other, z]), zero)
                    counterfactual = times(counterfactual, before)
            own = ends[player, z]
            at = np.uint64(players - 1 + own if own > 0 else player)
            put(worth, at, plus(row(worth, at, zero), counterfactual, 1.0))


@part
def _value(zero: Lanes, slots: Ints, reach: Floats, worth: Floats, values: Floats) -> None:
    """What each player wins, from what it wins right after its slots."""
    players, one = len(values), np.uint64(1)
    for player in range(players):
        put(values, player, row(worth, player, zero))
    for slot in range(np.uint64(len(slots))):
        owner = np.uint64(slots[slot, 1])
        won = row(worth, np.uint64(players) + slot, zero)
        won = times(won, row(reach, slot + one, zero))
        put(values, owner, plus(row(values, owner, zero), won, 1.0))


@part
def _respond(zero: Lanes, slots: Ints, worth: Floats, players: int) -> None:
    """Pass each row's best slot on to the sequence before it, the last row first."""
    lowest = _all(zero, -np.inf)
    top = lowest
    for slot in range(len(slots) - 1, -1, -1):
        top = larger(top, row(worth, np.uint64(players + slot), zero))
        if slot == 0 or slots[slot - 1, 0] != slots[slot, 0]:
            owner, before = slots[slot, 1], slots[slot, 2]
            above = np.uint64(players - 1 + before if before > 0 else owner)
            put(worth, above, plus(row(worth, above, zero), top, 1.0))
            top = lowest


@part
def _all(zero: Lanes, number: float) -> Lanes:
    for i in range(len(zero)):
        zero = tuple_setitem(zero, i, number)
    return zero
