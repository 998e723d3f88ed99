"""Liar's Dice between two players, measured exactly by its public states, without a game tree.

Bids are public and dice are private. A *public state* is the sequence of bids so far; a *private
state* is a player's roll, as a sorted multiset. An information set is a pair of both, so whatever
belongs to one is an array (public states, private states), and one walk over the public states
with a vector over private states in hand replaces the walk over histories.

**Public states.** Each bid is higher than the one before, so a sequence is a set: a *code* of B
bits for B bids, bid k at bit B - 1 - k. The next bid of a code is one of the zeros below its lowest
one; player 0 is to act if the number of ones is even. Counting codes up from 0 visits public states
depth first. Of the codes 2i and 2i + 1 one belongs to each player: i is its *index*, and
information set i * n + x is index i with private state x of n.

**Reach probabilities.** The *range* of a player is, for each private state, its chance probability
times the probabilities of the player's own actions so far. (Divided by their sum, the two ranges
are the public belief state of Brown et al. 2020, "Combining Deep Reinforcement Learning and Search
for Imperfect-Information Games".)

**Counterfactual values.** A hand ends when a player calls "liar". The bid (quantity, face) holds if
at least `quantity` of all dice show the face or the highest side, which is wild. So the result
depends on each roll only through the number of its dice that match, and the value of the call for
every private state takes one histogram of the opponent's range instead of a matrix.

Example: one die with sides 1 and 2, and player 0 opens with 2-2 (both dice are 2) with probability
0.2 when it holds a 1 and 0.6 when it holds a 2. Its range is (0.1, 0.3). Calling liar is worth
+0.4 to player 1 with a 1, since the bid fails, and 0.1 - 0.3 = -0.2 with a 2, since it fails
against 0.1 of the range only. Player 1's range is (0.5, 0.5): if it always calls, it wins
0.5 * 0.4 - 0.5 * 0.2 = 0.1 in the hands that begin so, of all hands.

Best responses are computed in the same walk: at its own public states a player takes, for each
private state, the largest value of its actions; at the opponent's it adds the values up.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int64Array,
)
from algorithms.support.compiled import compiled, inlined
from kuhn_bridge.errors import PolicyError

Tables: TypeAlias = tuple[Float32Array, ...]  # one (information sets, actions) per player
RESET_FACE, RESET_QUANTITY = BIDDING_RULES = ("reset-face", "reset-quantity")
ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
_NO_LOSSES = np.empty(0), np.empty(0)


class Rules(NamedTuple):
    """The game as compiled code reads it: B bids, then action B, "liar"; n private states."""

    dice: int  # per player
    quantity: Int64Array  # (B,)
    face: Int64Array  # (B,) 0 .. sides - 1
    rolls: Int64Array  # (n, dice) the dice of each private state, 1 .. sides, in ascending order
    chance: Float64Array  # (n,) the probability of each private state
    matches: Int64Array  # (sides, n) how many dice of a private state show the face or are wild


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a joint policy and its best responses win per hand; one entry per player."""

    values: tuple[float, float]
    best_values: tuple[float, float]
    best_response: tuple[Int8Array, Int8Array]  # (information sets,) actions


def liars_dice_rules(dice: int, sides: int, bidding_rule: str = RESET_FACE) -> Rules:
    """The rules for `dice` per player; bids are numbered by rank, as OpenSpiel numbers them."""
    bids = np.arange(2 * dice * sides)
    if bidding_rule == RESET_FACE:  # with two dice of six sides, 2-1 follows 1-6
        quantity, face = bids // sides + 1, bids % sides
    else:  # 1-2 follows 4-1
        quantity, face = bids % (2 * dice) + 1, bids // (2 * dice)
    rolls = list(combinations_with_replacement(range(1, sides + 1), dice))
    orders = [
        factorial(dice) // prod(factorial(roll.count(side)) for side in set(roll)) for roll in rolls
    ]
    dealt = np.array(rolls)
    faces = np.arange(1, sides + 1)[:, None, None]
    matches = np.count_nonzero((dealt == faces) | (dealt == sides), axis=2)
    return Rules(dice, quantity, face, dealt, np.array(orders) / sides**dice, matches)


def num_infosets(rules: Rules) -> int:
    """The number of information sets of each player: 2^(B - 1) * n."""
    return len(rules.chance) << (len(rules.quantity) - 1)


def public_codes(player: int, indices: Int64Array) -> Int64Array:
    """The codes of a player's public states `(m,)` given by their indices: `(m,)`."""
    return 2 * indices + ((np.bitwise_count(indices) + player) & 1)


def bids_made(rules: Rules, codes: Int64Array) -> BoolArray:
    """Which bids have been made in public states `(m,)`: `(m, B)`."""
    return (codes[:, None] >> np.arange(len(rules.quantity))[::-1]) & 1 > 0


def legal_actions(rules: Rules, codes: Int64Array) -> BoolArray:
    """Which actions are legal in public states `(m,)`: `(m, B + 1)`."""
    bids = len(rules.quantity)
    left = np.where(codes > 0, np.bitwise_count((codes & -codes) - 1), bids)
    legal = np.arange(bids + 1) >= bids - left[:, None]
    legal[:, bids] = codes > 0
    return legal


def evaluate(rules: Rules, tables: Tables) -> Evaluation:
    """Exact values and best responses of a joint policy; rows are normalised in float64."""
    return _evaluate(rules, tables, _NO_LOSSES)


def losses(rules: Rules, tables: Tables) -> tuple[Float64Array, Float64Array]:
    """What each information set adds to its owner's gain: one `(information sets,)` per player.

    Value of the best action less that of the policy's mixture, both with best play afterwards,
    times the owner's reach probability; the same as `algorithms.exact.losses` computes on trees.
    """
    lost = np.zeros(num_infosets(rules)), np.zeros(num_infosets(rules))
    _evaluate(rules, tables, lost)
    return lost


def ranges(rules: Rules, tables: Tables, code: int) -> Float64Array:
    """Both players' ranges in a public state: `(2, n)`."""
    bids, n = len(rules.quantity), len(rules.chance)
    reach = np.stack([rules.chance, rules.chance])
    before = 0
    for depth, bid in enumerate(np.flatnonzero(bids_made(rules, np.array([code]))[0]).tolist()):
        first = (before >> 1) * n
        rows = tables[depth % 2][first : first + n].astype(np.float64)
        reach[depth % 2] *= rows[:, bid] / rows.sum(axis=1)
        before |= 1 << (bids - 1 - bid)
    return reach


def _evaluate(rules: Rules, tables: Tables, lost: tuple[Float64Array, Float64Array]) -> Evaluation:
    bids, shape = len(rules.quantity), (num_infosets(rules), len(rules.quantity) + 1)
    if [table.shape for table in tables] != [shape, shape]:
        raise PolicyError(
            f"a policy of this game is two tables of shape {shape}; "
            f"got {[table.shape for table in tables]}"
        )
    first, second = (np.ascontiguousarray(table, np.float32) for table in tables)
    best = tuple(np.full(shape[0], bids, np.int8) for _ in range(2))
    best_values = np.zeros(2)
    value, player, wrong = _walk(rules, (first, second), (best[0], best[1]), lost, best_values)
    if wrong >= 0:
        row = tables[player][wrong].tolist()
        raise PolicyError(
            f"player {player}, information set {wrong}: {row} are not probabilities of its legal "
            "actions"
        )
    return Evaluation(
        (value, -value), (float(best_values[0]), float(best_values[1])), (best[0], best[1])
    )


class _Stack(NamedTuple):
    """The public states from the first to the current one, by depth, as vectors over rolls.

    At depth d the mover's range is `reach[d]` and the other player's is `reach[d + 1]`. A bid turns
    `reach[d]` into `reach[d + 2]`, and the players change roles.
    """

    code: Int64Array  # (B + 1,)
    left: Int64Array  # (B + 1,) how many bids are left
    policy: Float64Array  # (B + 1, B + 1, n) by action: 0 is "liar", then the bids, highest first
    reach: Float64Array  # (B + 3, n)
    mover: Float64Array  # (B + 1, n) counterfactual value of the mover's best response
    other: Float64Array  # (B + 1, n) counterfactual value of the other player's best response
    action: Int64Array  # (B + 1, n) the mover's best action
    mixture: Float64Array  # (B + 1, n) value of the mover's policy with best play afterwards
    mass: Float64Array  # (2, dice + 1) the caller's and the bidder's range by matching dice
    result: Float64Array  # (2, dice + 1) what both win if the bid is called, by matching dice


@compiled
def _walk(
    rules: Rules,
    tables: tuple[Float32Array, Float32Array],
    best: tuple[Int8Array, Int8Array],
    lost: tuple[Float64Array, Float64Array],
    best_values: Float64Array,
) -> tuple[float, int, int]:
    """Visit all public states; return player 0's value, and a row that is wrong, or -1.

    Writes the best responses' values and actions, and the losses unless `lost` is empty.
    """
    bids = len(rules.quantity)
    stack = _new_stack(bids, rules.dice, rules.chance)
    value, top = 0.0, -1
    for code in range(1 << bids):
        depth = count_ones(code)
        for finished in range(top, depth - 1, -1):
            _leave(stack, finished, best[finished & 1], lost[finished & 1])
        wrong = _enter(stack, depth, code, tables[depth & 1])
        if wrong >= 0:
            return 0.0, depth & 1, wrong
        if code > 0:
            called = _call(stack, depth, rules)
            value += called if depth & 1 == 0 else -called
        top = depth
    for finished in range(top, -1, -1):
        _leave(stack, finished, best[finished & 1], lost[finished & 1])
    best_values[0] = (rules.chance * stack.mover[0]).sum()
    best_values[1] = (rules.chance * stack.other[0]).sum()
    return value, 0, -1


@inlined
def _new_stack(bids: int, dice: int, chance: Float64Array) -> _Stack:
    levels, n = bids + 1, len(chance)
    reach = np.zeros((levels + 2, n))
    reach[0] = reach[1] = chance
    mover = np.zeros((levels, n))
    mover[0] = -np.inf  # there is nothing to call before the first bid
    return _Stack(
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros((levels, levels, n)),
        reach,
        mover,
        np.zeros((levels, n)),
        np.zeros((levels, n), np.int64),
        np.zeros((levels, n)),
        np.zeros((2, dice + 1)),
        np.zeros((2, dice + 1)),
    )


@inlined
def count_ones(code: int) -> int:
    """The number of ones of a code: how many bids were made."""
    count = 0
    while code:
        code &= code - 1
        count += 1
    return count


@inlined
def count_zeros_below(code: int) -> int:
    """The number of zeros below the lowest one of a code > 0: how many bids are left."""
    count = 0
    while not (code >> count) & 1:
        count += 1
    return count


@inlined
def _enter(stack: _Stack, depth: int, code: int, table: Float32Array) -> int:
    """Put a public state on the stack; return an information set whose row is wrong, or -1."""
    bids, n = len(stack.code) - 1, stack.reach.shape[1]
    left = count_zeros_below(code) if code > 0 else bids
    stack.code[depth], stack.left[depth] = code, left
    if code > 0:
        for x in range(n):
            stack.reach[depth + 1, x] = (
                stack.reach[depth - 1, x] * stack.policy[depth - 1, left + 1, x]
            )
    if left == 0:  # half of all public states: only "liar" is legal
        for x in range(n):
            stack.policy[depth, 0, x] = 1.0
    else:
        first, last = bids - left, bids + (code > 0)
        for x in range(n):
            infoset: int = (code >> 1) * n + x
            row = table[infoset, first:last]
            total, least = 0.0, 0.0
            for i in range(len(row)):
                total += row[i]
                least = min(least, row[i])
            if least < 0 or not abs(total - 1) <= ROW_SUM_TOLERANCE:
                return infoset
            scale = 1 / total
            for i in range(len(row)):
                stack.policy[depth, left - i, x] = row[i] * scale
    return -1


@inlined
def _call(stack: _Stack, depth: int, rules: Rules) -> float:
    """Set both players' values of calling the last bid; return what the policy's call wins.

    With m matching dice the caller wins against the bidder's k where m + k < quantity:
    result(m) = sum of mass(k) where m + k < quantity - sum of mass(k) where m + k >= quantity.
    """
    bid = len(rules.quantity) - 1 - stack.left[depth]
    quantity, matches = rules.quantity[bid], rules.matches[rules.face[bid]]
    mass, result = stack.mass, stack.result
    calls = stack.policy[depth, 0]
    for m in range(rules.dice + 1):
        mass[0, m] = mass[1, m] = 0.0
    for x in range(len(matches)):
        m = matches[x]
        mass[0, m] += stack.reach[depth, x] * calls[x]
        mass[1, m] += stack.reach[depth + 1, x]
    won = 0.0
    for m in range(rules.dice + 1):
        caller, bidder = 0.0, 0.0
        for k in range(rules.dice + 1):
            sign = 1.0 if m + k < quantity else -1.0
            caller += sign * mass[1, k]
            bidder -= sign * mass[0, k]
        result[0, m], result[1, m] = caller, bidder
        won += mass[0, m] * caller
    for x in range(len(matches)):
        m = matches[x]
        stack.action[depth, x] = len(rules.quantity)
        stack.mover[depth, x] = result[0, m]
        stack.other[depth, x] = result[1, m]
        stack.mixture[depth, x] = calls[x] * result[0, m]
    return won


@inlined
def _leave(stack: _Stack, depth: int, best: Int8Array, lost: Float64Array) -> None:
    """Note the mover's best response and losses, and hand the values to the state before.

    Actions are met from the last to the first, so that of equal ones the first is the best.
    """
    n, left, before = stack.reach.shape[1], stack.left[depth], depth - 1
    first = (stack.code[depth] >> 1) * n
    if left > 0:
        for x in range(n):
            best[first + x] = stack.action[depth, x]
    if len(lost) > 0:
        for x in range(n):
            missed = stack.mover[depth, x] - stack.mixture[depth, x]
            lost[first + x] = stack.reach[depth, x] * missed
    if depth == 0:
        return
    bid = len(stack.code) - 2 - left
    for x in range(n):
        value = stack.other[depth, x]  # to the player who made the bid
        if value >= stack.mover[before, x]:
            stack.mover[before, x] = value
            stack.action[before, x] = bid
        stack.mixture[before, x] += stack.policy[before, left + 1, x] * value
        stack.other[before, x] += stack.mover[depth, x]
