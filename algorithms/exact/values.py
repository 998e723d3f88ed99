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

from algorithms.exact.tree import SequenceForm, Tree
from algorithms.support.arrays import Float64Array, Int32Array, UInt32Array
from algorithms.support.compiled import compiled, part
from algorithms.support.lanes import Lanes, larger, plus, put, row, times, zeros
from kuhn_bridge.errors import PolicyError

ROW_SUM_TOLERANCE = 1e-6  # allows for rows that were computed in float32
SLACK = 1e-4  # of the largest return: what such rows, multiplied along a hand, may cost
SIDE_BY_SIDE = 8  # policies of a batch that are measured together
_FLOAT64 = np.dtype(np.float64)


class Measure:
    """What the players could still gain, in chips per hand; one number per player."""

    __slots__ = ("_measures", "_total", "_tree")

    def __init__(self, tree: Tree, total: float, measures: Float64Array) -> None:
        self._tree, self._total, self._measures = tree, total, measures  # as `_alone` writes them

    @property
    def nash_conv(self) -> float:
        """The sum of all players' gains."""
        return self._total

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.nash_conv / self._tree.num_players

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
    def best_responses(self) -> Int32Array:
        """The action with which the owner of each row answers the others: `(I,)`."""
        worth = np.full(self._tree.legal.shape, -np.inf)
        start = 3 * self._tree.num_players
        worth[self._tree.legal] = self._measures[start : start + len(self._tree.slots)]
        return np.asarray(worth.argmax(axis=1), np.int32)

    def _figures(self, kind: int) -> tuple[float, ...]:
        players = self._tree.num_players
        return tuple(self._measures[kind * players :][:players].tolist())

    def __repr__(self) -> str:
        return f"<NashConv {self.nash_conv:g}, gains {self.gains}, values {self.values}>"


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> float:
    """Sum over players of (value of a best response - value of the policy `(I, A)`), in chips."""
    return evaluate_policy(tree, policy).nash_conv


def evaluate_policy(tree: Tree, policy: npt.ArrayLike) -> Measure:
    """Values, best responses and NashConv of a joint policy `(I, A)`."""
    table, (numbers, stakes), measures = _array(policy), tree.sequence_form, np.empty(_room(tree))
    if table.shape == tree.legal.shape:
        total = _alone(numbers, stakes, table, measures)
        if total >= 0:
            return Measure(tree, total, measures)
    raise _refusal(tree, table)


def measuring(tree: Tree) -> Callable[[npt.ArrayLike], float]:
    """`nash_conv(tree, policy)`, for many calls: what does not change is made ready once."""
    numbers, stakes = tree.sequence_form
    shape, measures = tree.legal.shape, np.empty(_room(tree))

    def total(policy: npt.ArrayLike) -> float:
        table = _array(policy)
        if table.shape == shape and (found := _alone(numbers, stakes, table, measures)) >= 0:
            return found
        raise _refusal(tree, table)

    return total


def _room(tree: Tree) -> int:
    """How many numbers `_alone` writes."""
    return 4 * tree.num_players + 2 * len(tree.slots)


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Float64Array:
    """NashConv `(B,)` of many joint policies `(B, I, A)` in one sweep."""
    tables = _array(policies)
    if tables.shape[1:] != tree.legal.shape:
        raise PolicyError(_misshapen(tree, tables.shape[1:]))
    totals = np.empty(len(tables))
    rows = tables.reshape(-1, tree.legal.shape[1])
    wrong = _together(zeros(SIDE_BY_SIDE), tree.sequence_form, rows, totals)
    if wrong >= 0:
        raise _refusal(tree, tables[wrong])
    return totals


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """What each player wins on average, in chips per hand, under a joint policy `(I, A)`."""
    return evaluate_policy(tree, policy).values


def reach(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """How likely each sequence is by its owner's choices alone, under `(I, A)`: `(S + 1,)`."""
    likely = np.ones(tree.num_slots + 1)
    _multiply(tree.slots, _array(policy)[tree.legal], likely)
    return likely


@compiled
def _multiply(slots: Int32Array, probabilities: Float64Array, likely: Float64Array) -> None:
    """Fill in the sequences' probabilities from those of the slots, of which parents come first."""
    for slot in range(len(slots)):
        likely[slot + 1] = likely[slots[slot, 2]] * probabilities[slot]


def spread(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of what a player wins in a hand under a joint policy `(I, A)`."""
    likely = reach(tree, policy)[tree.ends].prod(axis=0) * tree.chance[tree.terminals]
    won = tree.returns[:, tree.terminals]
    means = (won * likely).sum(axis=1, keepdims=True)
    return float(np.sqrt(((won - means) ** 2 * likely).sum(axis=1).mean()))


def seated(tree: Tree, policies: Sequence[npt.ArrayLike]) -> Float64Array:
    """The joint policy `(I, A)` in which player p takes its rows from `policies[p]`."""
    tables = np.stack([np.asarray(policy, np.float64) for policy in policies])
    return np.asarray(tables[tree.owner, np.arange(len(tree.keys))])


def pure(tree: Tree, actions: npt.ArrayLike) -> Float64Array:
    """The joint policy `(I, A)` that always plays `actions` `(I,)`."""
    return np.asarray(np.arange(tree.legal.shape[1]) == np.reshape(actions, (-1, 1)), np.float64)


def _array(numbers: npt.ArrayLike) -> Float64Array:
    """As float64, writable and in C order: one type to compile for."""
    if type(numbers) is np.ndarray and numbers.dtype is _FLOAT64 and numbers.flags.carray:
        return numbers
    return np.array(numbers, np.float64, order="C")


def _misshapen(tree: Tree, shape: tuple[int, ...]) -> str:
    want, got = (" x ".join(map(str, sizes)) for sizes in (tree.legal.shape, shape))
    return f"a joint policy of {tree.name} is {want}; got {got or 'a number'}"


def _refusal(tree: Tree, table: Float64Array) -> PolicyError:
    """What is wrong with a policy: its shape, or its first row that is no distribution."""
    if table.shape != tree.legal.shape:
        return PolicyError(_misshapen(tree, table.shape))
    possible = np.where(tree.legal, table >= 0, table == 0).all(axis=1)
    first = int((possible & (np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE)).argmin())
    return PolicyError(
        f"{tree.keys[first]!r}: {table[first].tolist()} are not probabilities of its legal actions"
    )


@compiled
def _alone(
    numbers: UInt32Array, stakes: Float64Array, table: Float64Array, measures: Float64Array
) -> float:
    """NashConv of one policy `(I, A)`, or -1 if one of its rows is no distribution.

    Writes the players' gains, values and values of best responses; what each slot is worth to its
    owner; and how likely its owner is to come to each place: `(4P + 2S,)`.
    """
    terminals, players = np.uint64(len(stakes) - 1), np.uint64(stakes.shape[1])
    slots = np.uint64(len(numbers)) - terminals
    one, two = np.uint64(1), np.uint64(2)
    values, worth = players, two * players
    likely = worth + players + slots
    if not _likely_if_right(numbers, table, measures[likely:], players):
        return -1.0
    for at in range(likely):
        measures[at] = 0.0
    for player in range(players):
        following = (player + one) % players
        for z in range(terminals):
            counterfactual = stakes[z, player]
            if players > one:
                counterfactual *= measures[likely + np.uint64(numbers[slots + z, following])]
            for step in range(two, players):
                other = (player + step) % players
                counterfactual *= measures[likely + np.uint64(numbers[slots + z, other])]
            measures[worth + np.uint64(numbers[slots + z, player])] += counterfactual
        measures[values + player] = measures[worth + player]
    for slot in range(slots):
        won = measures[worth + players + slot] * measures[likely + players + slot]
        measures[values + np.uint64(numbers[slot, 1])] += won
    top = -np.inf
    for back in range(slots):
        last = slots - one - back
        top = max(top, measures[worth + players + last])
        if last == 0 or numbers[last - one, 0] != numbers[last, 0]:
            measures[worth + np.uint64(numbers[last, 2])] += top
            top = -np.inf
    total = 0.0
    for player in range(players):
        best, value = measures[worth + player], measures[values + player]
        measures[player] = _gain(best, value, stakes[terminals, 0])
        total += measures[player]
    return total


@part
def _likely_if_right(
    numbers: UInt32Array, table: Float64Array, likely: Float64Array, players: np.uint64
) -> bool:
    """Fill in how likely each place is; whether all rows are distributions."""
    rows, actions = np.uint64(table.shape[0]), np.uint64(table.shape[1])
    slot, one, slots = np.uint64(0), np.uint64(1), np.uint64(len(likely)) - players
    for player in range(players):
        likely[player] = 1.0
    for at in range(rows):
        legal, everything = 0.0, 0.0
        for action in range(actions):
            p = table[at, action]
            everything += abs(p)
            if slot < slots and numbers[slot, 0] == at and numbers[slot, 3] == action:
                legal += p
                likely[players + slot] = likely[np.uint64(numbers[slot, 2])] * p
                slot += one
        if not (abs(legal - 1) <= ROW_SUM_TOLERANCE and everything == legal):
            return False
    return True


@part
def _gain(best: float, value: float, largest: float) -> float:
    gain = best - value
    assert gain >= -SLACK * largest  # noqa: S101  # a best response never loses
    return max(gain, 0.0)


@compiled
def _together(zero: Lanes, game: SequenceForm, policies: Float64Array, totals: Float64Array) -> int:
    """NashConv of policies `(B * I, A)`, as many side by side as there are lanes.

    The first that is none, or -1.
    """
    numbers, stakes = game
    players, width = stakes.shape[1], len(zero)
    places = players + len(numbers) + 1 - len(stakes)
    reach, worth = np.ones((places, width)), np.empty((places, width))
    values = np.empty((players, width))
    for first in range(0, len(totals), width):
        stop = min(first + width, len(totals))
        wrong = _sweep(zero, game, policies, (first, stop), (reach, values, worth))
        if wrong >= 0:
            return wrong
        for number in range(first, stop):
            total, lane = 0.0, number - first
            for player in range(players):
                total += _gain(worth[player, lane], values[player, lane], stakes[-1, 0])
            totals[number] = total
    return -1


# By lane: of each place the probability that its owner comes there; what the players win; what the
# places are worth to their owner who goes on best.
_Tables: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


@part
def _sweep(
    zero: Lanes, game: SequenceForm, policies: Float64Array, which: tuple[int, int], tables: _Tables
) -> int:
    """Fill in the tables for the policies from first to last; the first that is none, or -1."""
    numbers, stakes = game
    reach, values, worth = tables
    first, stop = which
    slots = numbers[: len(numbers) + 1 - len(stakes)]
    wrong = _reach(zero, slots, policies, which, reach)
    for number in range(first, stop):
        if wrong[number - first] != 0:  # nor is NaN
            return number
    worth[:] = 0
    _end(zero, numbers[len(slots) :], stakes, reach, worth)
    _value(zero, slots, reach, worth, values)
    _respond(zero, slots, worth)
    return -1


@part
def _reach(
    zero: Lanes,
    slots: UInt32Array,
    policies: Float64Array,
    which: tuple[int, int],
    reach: Float64Array,
) -> Lanes:
    """Fill in each place's probability; lanes are 0 where all rows are distributions."""
    first, stop = which
    rows = np.int64(slots[-1, 0]) + 1
    wrong = zero
    slot, one, players = np.uint64(0), np.uint64(1), np.uint64(len(reach) - len(slots))
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
                put(reach, players + slot, times(before, p))
                slot += one
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
def _end(
    zero: Lanes, ends: UInt32Array, stakes: Float64Array, reach: Float64Array, worth: Float64Array
) -> None:
    """Add every terminal's counterfactual returns to the players' last places."""
    for z in range(np.uint64(len(ends))):
        for player in range(stakes.shape[1]):
            counterfactual = _all(zero, stakes[z, player])
            for other in range(stakes.shape[1]):
                if other != player:
                    before = row(reach, np.uint64(ends[z, other]), zero)
                    counterfactual = times(counterfactual, before)
            at = np.uint64(ends[z, player])
            put(worth, at, plus(row(worth, at, zero), counterfactual, 1.0))


@part
def _value(
    zero: Lanes, slots: UInt32Array, reach: Float64Array, worth: Float64Array, values: Float64Array
) -> None:
    """What each player wins, from what it wins right after its slots."""
    players = np.uint64(len(values))
    for player in range(players):
        put(values, player, row(worth, player, zero))
    for slot in range(np.uint64(len(slots))):
        owner, at = np.uint64(slots[slot, 1]), players + slot
        won = times(row(worth, at, zero), row(reach, at, zero))
        put(values, owner, plus(row(values, owner, zero), won, 1.0))


@part
def _respond(zero: Lanes, slots: UInt32Array, worth: Float64Array) -> None:
    """Pass each row's best slot on to the place before it, the last row first."""
    lowest, one, last = _all(zero, -np.inf), np.uint64(1), np.uint64(len(slots) - 1)
    players = np.uint64(len(worth) - len(slots))
    top = lowest
    for back in range(np.uint64(len(slots))):
        slot = last - back
        top = larger(top, row(worth, players + slot, zero))
        if slot == 0 or slots[slot - one, 0] != slots[slot, 0]:
            before = np.uint64(slots[slot, 2])
            put(worth, before, plus(row(worth, before, zero), top, 1.0))
            top = lowest


@part
def _all(zero: Lanes, number: float) -> Lanes:
    for i in range(len(zero)):
        zero = tuple_setitem(zero, i, number)
    return zero
