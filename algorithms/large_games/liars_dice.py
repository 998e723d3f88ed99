"""Liar's Dice between two players, measured exactly by its public states, without a game tree.

Bids are public and dice are private. A *public state* is the sequence of bids so far; a *private
state* is a player's roll, as a sorted multiset. An information set is a pair of both, so values
per information set are an array (public states, private states), and the walk over histories
becomes a walk over public states with vectors over private states.

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
0.2 when it holds a 1 and 0.6 when it holds a 2. Its range is (0.1, 0.3). The value of calling
"liar" for player 1 is +0.4 with a 1, since the bid fails, and 0.1 - 0.3 = -0.2 with a 2, since it
fails against 0.1 of the range only. Player 1's range is (0.5, 0.5): if it always calls, the hands
that begin this way add 0.5 * 0.4 - 0.5 * 0.2 = 0.1 to its value.

Best responses are computed in the same walk: at its own public states a player takes, for each
private state, the largest value of its actions; at the opponent's it adds the values up.

**CFR.** One iteration is one walk per player. With r(x) the mover's range and v(a, x) the
counterfactual value of action a with private state x, both under the current policy p:

    regret(a, x)  <-  discount * (regret(a, x) + v(a, x) - sum over b of p(b, x) v(b, x))
    average(a, x) <-  average(a, x) + t^gamma * r(x) * p(a, x)

and p is proportional to the positive part of the regrets (`Variant` has the exponents). Only legal
actions are stored. A public state with k bids left has k + 1 of them, "liar" and then the bids from
the highest to the lowest, each a vector over the n private states. The code c > 0 has k zeros below
its lowest one, and those numbers sum to m - ones(m) over the codes 1 .. m: the first vector of c is
(B + 1) + 2 (c - 1) - ones(c - 1). (The first public state has an unused vector for "liar".)
"""

from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from algorithms.cfr import Variant, Weights
from algorithms.compiled.jit import compiled, inlined
from algorithms.games.game import PyspielGame
from algorithms.large_games import large_game
from algorithms.large_games.large_game import LargeExactGame
from algorithms.large_games.solver import LargeGameSolver, Tables
from algorithms.nashconv import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array

MAX_TABLE_BYTES = 4 * 2**30  # of a policy; two dice of five sides take 1.2 GiB, of six 33 GiB
_BATCH = 2**16  # information sets whose rows are filled in at a time


class Rules(NamedTuple):
    """The game as compiled code reads it: B bids, then action B, "liar"; n private states."""

    dice: int  # per player
    quantity: Int64Array  # (B,)
    face: Int64Array  # (B,) 0 .. sides - 1
    rolls: Int64Array  # (n, dice) the dice of each private state, 1 .. sides, in ascending order
    chance: Float64Array  # (n,) the probability of each private state
    matches: Int64Array  # (sides, n) how many dice of a private state show the face or are wild


def liars_dice_rules(dice: int, sides: int, bidding_rule: str) -> Rules:
    """The rules for `dice` per player; bids are numbered by rank, as OpenSpiel numbers them."""
    bids = np.arange(2 * dice * sides)
    if bidding_rule == "reset-face":  # with two dice of six sides, 2-1 follows 1-6
        quantity, face = bids // sides + 1, bids % sides
    else:  # "reset-quantity": 1-2 follows 4-1
        quantity, face = bids % (2 * dice) + 1, bids // (2 * dice)
    rolls = list(combinations_with_replacement(range(1, sides + 1), dice))
    orders = [
        factorial(dice) // prod(factorial(roll.count(side)) for side in set(roll)) for roll in rolls
    ]
    dealt = np.array(rolls)
    faces = np.arange(1, sides + 1)[:, None, None]
    matches = np.count_nonzero((dealt == faces) | (dealt == sides), axis=2)
    return Rules(dice, quantity, face, dealt, np.array(orders) / sides**dice, matches)


def table_shape(rules: Rules) -> tuple[int, int]:
    """The information sets of each player, 2^(B - 1) * n, and the actions, B + 1."""
    return len(rules.chance) << (len(rules.quantity) - 1), len(rules.quantity) + 1


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


def evaluate(rules: Rules, tables: Tables) -> Measure:
    """Values, best responses and losses of a joint policy; rows are normalised in float64."""
    (value, *best_values), best, _, (player, invalid) = _walk(rules, tables, False)
    if invalid >= 0:
        raise large_game.invalid_row(tables, player, invalid)

    def reach(player: int, infoset: int) -> float:
        index, roll = divmod(infoset, len(rules.chance))
        both = ranges(rules, tables, int(public_codes(player, np.array([index]))[0]))
        return float(both[player, roll] * both[1 - player].sum())

    return Measure(
        (value, -value),
        tuple(best_values),
        lambda: best,
        lambda: large_game.largest_losses(tables, best, losses(rules, tables), reach),
    )


def losses(rules: Rules, tables: Tables) -> tuple[Float64Array, ...]:
    """The loss at each information set of each player, `(I_p,)`: for tables that are valid."""
    _, _, lost, _ = _walk(rules, tables, True)
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


def own_reach(rules: Rules, tables: Tables) -> tuple[Float64Array, ...]:
    """Each information set's reach probability by its owner's own actions: `(I_p,)` each.

    It is that at the player's state before, times the probability of the bid made there: of a code
    the lowest one is the other player's last bid, and the next one the player's own.
    """
    bids = len(rules.quantity)
    n = len(rules.chance)
    indices = np.arange(1 << (bids - 1))
    found = []
    for player, table in enumerate(tables):
        by_state = table.reshape(len(indices), n, bids + 1)
        reach = np.ones((len(indices), n))
        codes = public_codes(player, indices)
        depths = np.bitwise_count(codes)
        for depth in range(player + 2, bids + 1, 2):
            later = codes[depths == depth]
            without_last = later & (later - 1)
            before = without_last & (without_last - 1)
            bid = bids - 1 - np.bitwise_count((without_last ^ before) - 1).astype(np.int64)
            # (states, n): of each private state.
            probability = by_state[before >> 1, :, bid]
            reach[later >> 1] = reach[before >> 1] * probability
        found.append(reach.reshape(-1))
    return tuple(found)


class _Stack(NamedTuple):
    """The public states from the first to the current one, by depth, as vectors over rolls.

    At depth d the mover's range is `reach[d]` and the other player's is `reach[d + 1]`. A bid turns
    `reach[d]` into `reach[d + 2]`, and the players change roles.
    """

    code: Int64Array  # (B + 1,)
    left: Int64Array  # (B + 1,) how many bids are left
    policy: Float64Array  # (B + 1, B + 1, n) by action: 0 is "liar", then the bids, highest first
    reach: Float64Array  # (B + 3, n)
    mass: Float64Array  # (dice + 1,) a player's range by matching dice
    result: Float64Array  # (dice + 1,) the value of a call by the other player's matching dice


class _Values(NamedTuple):
    """Counterfactual values by depth: `(B + 1, n)` each."""

    mover: Float64Array  # of the mover's best response
    other: Float64Array  # of the other player's best response
    mixture: Float64Array  # of the mover's policy, with its best response afterwards
    action: Int64Array  # the mover's best action


@compiled
def _walk(
    rules: Rules, tables: Tables, with_losses: bool
) -> tuple[tuple[float, ...], tuple[Int8Array, ...], tuple[Float64Array, ...], tuple[int, int]]:
    """Visit all public states, unless an information set is invalid.

    Returns player 0's value and those of the best responses; the actions of these, "liar" where no
    bid is left, and the losses, empty unless `with_losses`, by player `(I_p,)`; and the player and
    the number of the invalid information set, or -1.
    """
    bids, n = len(rules.quantity), len(rules.chance)
    size, lossy = n << (bids - 1), n << (bids - 1) if with_losses else 0
    best, lost = (
        (np.full(size, bids, np.int8), np.full(size, bids, np.int8)),
        (np.empty(lossy), np.empty(lossy)),
    )
    stack = _new_stack(rules)
    mover, other, mixture = np.zeros((3, bids + 1, n))
    mover[0] = -np.inf  # there is nothing to call before the first bid
    values = _Values(mover, other, mixture, np.zeros((bids + 1, n), np.int64))
    value = 0.0
    for code in range(1 << bids):
        depth = _enter(stack, code)
        invalid = _read_policy(stack, depth, tables[depth & 1])
        if invalid >= 0:
            return (0.0, 0.0, 0.0), best, lost, (depth & 1, invalid)
        if code > 0:
            called = _call(stack, values, depth, rules)
            value += called if depth & 1 == 0 else -called
        for finished in range(depth, _next_depth(code, bids) - 1, -1):
            _leave(stack, values, finished, best[finished & 1], lost[finished & 1])
    best_values = (rules.chance * mover[0]).sum(), (rules.chance * other[0]).sum()
    return (value, best_values[0], best_values[1]), best, lost, (0, -1)


@inlined
def _new_stack(rules: Rules) -> _Stack:
    """A stack before the first public state; both ranges are chance's probabilities."""
    levels, n = len(rules.quantity) + 1, len(rules.chance)
    code, left = np.zeros((2, levels), np.int64)
    mass, result = np.zeros((2, rules.dice + 1))
    reach = np.zeros((levels + 2, n))
    reach[0] = reach[1] = rules.chance
    return _Stack(code, left, np.zeros((levels, levels, n)), reach, mass, result)


@inlined
def _count_ones(code: int) -> int:
    """The number of ones of a code: how many bids were made."""
    count = 0
    while code:
        code &= code - 1
        count += 1
    return count


@inlined
def _next_depth(code: int, bids: int) -> int:
    """How many bids were made in the next public state; 0 after the last one."""
    return _count_ones((code + 1) & ((1 << bids) - 1))


@inlined
def _bids_left(code: int, bids: int) -> int:
    """The number of zeros below the lowest one of a code: how many bids are left."""
    left = 0
    while left < bids and not (code >> left) & 1:
        left += 1
    return left


@inlined
def _enter(stack: _Stack, code: int) -> int:
    """Put a public state on the stack, and the range of the last bidder; return the depth."""
    depth, left = _count_ones(code), _bids_left(code, len(stack.code) - 1)
    if depth > 0:
        for x in range(stack.reach.shape[1]):
            stack.reach[depth + 1, x] = (
                stack.reach[depth - 1, x] * stack.policy[depth - 1, left + 1, x]
            )
    stack.code[depth], stack.left[depth] = code, left
    return depth


@inlined
def _read_policy(stack: _Stack, depth: int, table: Float32Array) -> int:
    """Put the policy of a public state on the stack; return an invalid information set, or -1."""
    bids, n = len(stack.code) - 1, stack.reach.shape[1]
    code, left = stack.code[depth], stack.left[depth]
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
            if least < 0 or not abs(total - 1) <= large_game.ROW_SUM_TOLERANCE:
                return infoset
            scale = 1 / total
            for i in range(len(row)):
                stack.policy[depth, left - i, x] = row[i] * scale
    return -1


@inlined
def _write_call(stack: _Stack, depth: int, rules: Rules, calls: bool, values: Float64Array) -> None:
    """Write the values of "liar" `(n,)`, for the caller (`calls`) or for the bidder.

    A caller with m matching dice wins against the bidder's k where m + k < quantity:
    result(m) = sum of mass(k) where m + k < quantity - sum of mass(k) where m + k >= quantity.
    """
    bid, mass = len(rules.quantity) - 1 - stack.left[depth], stack.mass
    quantity, matches = rules.quantity[bid], rules.matches[rules.face[bid]]
    for m in range(len(mass)):
        mass[m] = 0.0
    for x in range(len(matches)):
        if calls:
            mass[matches[x]] += stack.reach[depth + 1, x]
        else:
            mass[matches[x]] += stack.reach[depth, x] * stack.policy[depth, 0, x]
    for m in range(len(mass)):
        value = 0.0
        for k in range(len(mass)):
            value += mass[k] if (m + k < quantity) == calls else -mass[k]
        stack.result[m] = value
    for x in range(len(matches)):
        values[x] = stack.result[matches[x]]


@inlined
def _call(stack: _Stack, values: _Values, depth: int, rules: Rules) -> float:
    """Set both players' values of calling the last bid; return the value of the policy's call."""
    _write_call(stack, depth, rules, False, values.other[depth])
    _write_call(stack, depth, rules, True, values.mover[depth])
    won = 0.0
    for x in range(len(rules.chance)):
        values.action[depth, x] = len(rules.quantity)
        values.mixture[depth, x] = stack.policy[depth, 0, x] * values.mover[depth, x]
        won += stack.reach[depth, x] * values.mixture[depth, x]
    return won


@inlined
def _leave(stack: _Stack, values: _Values, depth: int, best: Int8Array, lost: Float64Array) -> None:
    """Write the mover's best response and losses, and add the values to the state before.

    Actions are met from the last to the first, so that of equal ones the first is the best.
    """
    n, left, before = stack.reach.shape[1], stack.left[depth], depth - 1
    first = (stack.code[depth] >> 1) * n
    if left > 0:
        for x in range(n):
            best[first + x] = values.action[depth, x]
    if len(lost) > 0:
        for x in range(n):
            missed = values.mover[depth, x] - values.mixture[depth, x]
            lost[first + x] = stack.reach[depth, x] * missed
    if depth == 0:
        return
    bid = len(stack.code) - 2 - left
    for x in range(n):
        value = values.other[depth, x]  # to the player who made the bid
        if value >= values.mover[before, x]:
            values.mover[before, x] = value
            values.action[before, x] = bid
        values.mixture[before, x] += stack.policy[before, left + 1, x] * value
        values.other[before, x] += values.mover[depth, x]


_Vectors: TypeAlias = tuple[Float32Array, Float32Array, Float32Array]


class LiarsDiceSolver(LargeGameSolver):
    """A solver of Liar's Dice; two dice of five sides take 240 MiB, 50% more if predictive."""

    def __init__(self, rules: Rules, variant: Variant) -> None:
        bids = len(rules.quantity)
        shape = _first_vector(1 << bids, bids), len(rules.chance)
        super().__init__(variant, {"": shape})
        self.rules = rules

    def _update(self, player: int, weights: Weights) -> None:
        _iterate(self.rules, self._arrays(""), player, weights, self._updates)

    def _policy_of(self, kind: Literal["average", "predicted"]) -> Tables:
        """New tables in proportion to the averages, or to the predicted regrets above 0."""
        shape = table_shape(self.rules)
        tables = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        _write_policy(self._weights(kind, ""), tables)
        return tables


@compiled
def _first_vector(code: int, bids: int) -> int:
    """Where the vectors of a public state begin."""
    return bids - 1 + 2 * code - _count_ones(code - 1) if code > 0 else 0


@compiled
def _iterate(
    rules: Rules, vectors: _Vectors, player: int, weights: Weights, updates: Int64Array
) -> None:
    """Update one player's regrets, predicted regrets and average `(V, n)` in one walk."""
    bids, n = len(rules.quantity), len(rules.chance)
    stack = _new_stack(rules)
    value = np.zeros((bids + 1, bids + 1, n))  # by depth and action, of the updated player
    for code in range(1 << bids):
        depth = _enter(stack, code)
        first, left = _first_vector(code, bids), stack.left[depth]
        _match(vectors[1], first, left, depth == 0, stack.policy[depth])
        if depth & 1 == player:
            for j in range(left + 1):
                for x in range(n):
                    weighted = weights[2] * stack.reach[depth, x]
                    vectors[2][first + j, x] += weighted * stack.policy[depth, j, x]
        if code > 0:
            _write_call(stack, depth, rules, depth & 1 == player, value[depth, 0])
        for finished in range(depth, _next_depth(code, bids) - 1, -1):
            _update_regrets(stack, value, finished, vectors, (player, weights))
    updates[0] += 1


@inlined
def _match(weights: Float32Array, first: int, left: int, least: int, policy: Float64Array) -> None:
    """Make a policy `(left + 1, n)` proportional to positive weights, uniform where none is > 0.

    The actions are `least` to `left`.
    """
    uniform = 1.0 / (left + 1 - least)
    for x in range(policy.shape[1]):
        total = 0.0
        for j in range(least, left + 1):
            total += max(weights[first + j, x], 0.0)
        for j in range(least, left + 1):
            policy[j, x] = max(weights[first + j, x], 0.0) / total if total > 0 else uniform


@inlined
def _update_regrets(
    stack: _Stack, value: Float64Array, depth: int, vectors: _Vectors, update: tuple[int, Weights]
) -> None:
    """Update the player's regrets if it is the mover, and add its value to the state before."""
    n, left = stack.reach.shape[1], stack.left[depth]
    regret, predicted, _ = vectors
    player, (discount_positive, discount_negative, _, prediction) = update
    first = _first_vector(stack.code[depth], len(stack.code) - 1)
    least, predictive = 0 if depth > 0 else 1, prediction > 0
    for x in range(n):
        mean = 0.0
        if depth & 1 != player:
            for j in range(least, left + 1):  # the opponent's probabilities are in its range
                mean += value[depth, j, x]
        else:
            for j in range(least, left + 1):
                mean += stack.policy[depth, j, x] * value[depth, j, x]
            for j in range(least, left + 1):
                new = value[depth, j, x] - mean
                total = regret[first + j, x] + new
                total *= discount_positive if total >= 0 else discount_negative
                regret[first + j, x] = total
                if predictive:
                    predicted[first + j, x] = total + new
        if depth > 0:
            value[depth - 1, left + 1, x] = mean


@compiled
def _write_policy(average: Float32Array, tables: tuple[Float32Array, Float32Array]) -> None:
    """Write the normalised average into one table `(information sets, B + 1)` per player."""
    bids, n = tables[0].shape[1] - 1, average.shape[1]
    policy = np.zeros((bids + 1, n))
    for code in range(1 << bids):
        left, least = _bids_left(code, bids), 0 if code > 0 else 1
        _match(average, _first_vector(code, bids), left, least, policy)
        for x in range(n):
            for j in range(least, left + 1):
                tables[_count_ones(code) & 1][(code >> 1) * n + x, bids - j] = policy[j, x]


def find_liars_dice(game: PyspielGame, name: str) -> "LiarsDice | None":
    """Liar's Dice of two players, or None for other games and if its policies are too large."""
    if game.get_type().short_name != "liars_dice" or game.num_players() != 2:
        return None
    settings = game.get_parameters()
    dice = settings["numdice"]
    sides = settings["dice_sides"]
    # Bids alone, before anything is allocated: at least one private state and one action each.
    if 2 * dice * sides > MAX_TABLE_BYTES.bit_length():
        return None
    found = LiarsDice(
        liars_dice_rules(dice, sides, settings["bidding_rule"]), name=name, pyspiel_game=game
    )
    size = 4 * sum(found.num_infosets) * found.num_actions
    return found if size <= MAX_TABLE_BYTES else None


class LiarsDice(LargeExactGame):
    """Liar's Dice: B bids by rank, then "liar"; n rolls, as sorted multisets.

    Observation, for each player's `dice` of `sides`:

    | index | meaning |
    |---|---|
    | 0, 1 | one-hot of the player |
    | then dice * sides | one-hot of each of its own dice, in ascending order |
    | then B | 1 for each bid made |
    | last | 0 (1 once "liar" is called, when nobody is to act) |
    """

    def __init__(self, rules: Rules, *, name: str, pyspiel_game: PyspielGame) -> None:
        self.rules = rules
        self._infosets, num_actions = table_shape(rules)
        dice_in = rules.rolls[:, :, None] == np.arange(1, len(rules.matches) + 1)
        self._dice_in = dice_in.reshape(len(rules.rolls), -1)  # (n, dice * sides)
        self._dice_end = 2 + self._dice_in.shape[1]
        super().__init__(
            name=name,
            num_players=2,
            num_actions=num_actions,
            observation_size=self._dice_end + num_actions,
            pyspiel_game=pyspiel_game,
        )

    @property
    def num_infosets(self) -> tuple[int, ...]:
        """Both players have equally many."""
        return self._infosets, self._infosets

    def legal_at(self, player: int, infosets: Int64Array) -> BoolArray:
        """Which actions are legal at information sets `(m,)`: `(m, A)`."""
        return legal_actions(self.rules, self._codes(player, infosets))

    def tensors_at(self, player: int, infosets: Int64Array) -> Float32Array:
        """OpenSpiel's information state tensors of information sets `(m,)`: `(m, size)`."""
        seen = np.zeros((len(infosets), self.observation_size), np.float32)
        seen[:, player] = 1
        seen[:, 2 : self._dice_end] = self._dice_in[infosets % len(self._dice_in)]
        seen[:, self._dice_end : -1] = self._bids_made(player, infosets)
        return seen

    def find_infosets(self, player: int, tensors: Float32Array) -> Int64Array:
        """The information sets that have these tensors, `(m, observation_size)`: `(m,)`."""
        del player  # the number of bids determines the player
        rolls = (tensors[:, 2 : self._dice_end] @ self._dice_in.T).argmax(axis=1)
        bits = 1 << np.arange(self.num_actions - 1)[::-1]
        codes = (tensors[:, self._dice_end : -1] > 0) @ bits
        return np.asarray((codes >> 1) * len(self._dice_in) + rolls)

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator, shape = np.random.default_rng(seed), table_shape(self.rules)
        tables = np.empty(shape, np.float32), np.empty(shape, np.float32)
        for player, table in enumerate(tables):
            for start in range(0, len(table), _BATCH):
                legal = self.legal(player, start, min(start + _BATCH, len(table)))
                weights = np.zeros(legal.shape)
                weights[legal] = generator.exponential(size=np.count_nonzero(legal))
                table[start : start + _BATCH] = weights / weights.sum(axis=1, keepdims=True)
        return tables

    def _measure(self, tables: Tables) -> Measure:
        return evaluate(self.rules, tables)

    def _own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        return own_reach(self.rules, tables)

    def _make_solver(self, variant: Variant) -> LiarsDiceSolver:
        return LiarsDiceSolver(self.rules, variant)

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_1 with 2 5 after 1-3, 2-2`."""
        made = np.flatnonzero(self._bids_made(player, np.array([infoset]))).tolist()
        after = f"after {', '.join(map(self._bid, made))}" if made else "to start"
        roll = " ".join(map(str, self.rules.rolls[infoset % len(self._dice_in)]))
        return f"player_{player} with {roll} {after}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action in words, e.g. `bid 2-5`, which is two fives, or `liar`."""
        return f"bid {self._bid(action)}" if action < self.num_actions - 1 else "liar"

    def _bid(self, bid: int) -> str:
        return f"{self.rules.quantity[bid]}-{self.rules.face[bid] + 1}"

    def _codes(self, player: int, infosets: Int64Array) -> Int64Array:
        return public_codes(player, infosets // len(self._dice_in))

    def _bids_made(self, player: int, infosets: Int64Array) -> BoolArray:
        return bids_made(self.rules, self._codes(player, infosets))
