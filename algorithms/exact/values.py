"""Exact values, best responses, NashConv and losses of a joint policy, for any number of players.

Let pi_p be the reach probability by player p's own actions, pi_-p that by chance and all others,
z terminal nodes, u returns, and s sequences (see `algorithms.exact.tree`). Then

    v_p     = sum over z of pi(z) u_p(z)                                 the policy's value
    q_p(s)  = sum over z after s with no decision of p between of pi_-p(z) u_p(z)
            + sum over p's next information sets I after s of best(I)    counterfactual value
    best(I) = max over actions a of q_p(I, a)                            best response
    gain_p  = q_p(empty sequence) - v_p;   NashConv = sum over p of gain_p
    loss(I) = pi_p(I) (best(I) - sum over a of policy(a | I) q_p(I, a))

With perfect recall no nodes but the terminal ones are needed. A player's losses sum to its gain
(the performance difference lemma, Kakade and Langford 2002): they show where chips are lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.exact.tree import Tree
from algorithms.support.arrays import Float64Array, Int32Array, UInt32Array
from algorithms.support.compiled import compiled, part
from algorithms.support.lanes import (
    Lanes,
    add_scaled,
    full,
    load,
    maximum,
    multiply,
    store,
    zeros,
)
from kuhn_bridge.errors import PolicyError

ROW_SUM_TOLERANCE = 1e-6  # allows for rows that were computed in float32
SLACK = 1e-4  # of the largest return: the error of such rows multiplied along a hand
NO_LOSS = 1e-12  # chips per hand: rounding
BATCH_LANES = 8  # policies of a batch that are evaluated side by side
_FLOAT64 = np.dtype(np.float64)


class Loss(NamedTuple):
    """The loss of a policy to a best response at one information set.

    Attributes:
        player: player who acts.
        infoset: number of the information set, for `Game.infoset_label`.
        reach: probability that a hand arrives there.
        played: most probable action of the policy.
        probability: probability of that action.
        best: action of the best response.
        lost: loss in chips per hand, averaged over all hands.
    """

    player: int
    infoset: int
    reach: float
    played: int
    probability: float
    best: int
    lost: float


@dataclass(frozen=True, eq=False)
class Measure:
    """Values of a policy and of best responses to it, in chips per hand.

    Best responses and losses are computed when they are first read.

    Attributes:
        values: value of the policy for each player.
        best_values: value of each player's best response to the other players.
        compute_best_responses: function that returns `best_responses`.
        compute_losses: function that returns `losses`.
    """

    values: tuple[float, ...]
    best_values: tuple[float, ...]
    compute_best_responses: Callable[[], Any] = field(repr=False)
    compute_losses: Callable[[], tuple[Loss, ...]] = field(repr=False)

    @property
    def gains(self) -> tuple[float, ...]:
        """How much more each player would win by best-responding to the others."""
        pairs = zip(self.best_values, self.values, strict=True)
        return tuple(max(best - value, 0.0) for best, value in pairs)

    @property
    def nash_conv(self) -> float:
        """The sum of all players' gains."""
        return sum(self.gains)

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.nash_conv / len(self.values)

    @cached_property
    def best_responses(self) -> Any:
        """The best response's action at each information set: int32 `(I,)`, the lowest ID in a tie.

        At each information set its owner responds to all other players.
        """
        return self.compute_best_responses()

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Where the policy loses chips to best responses, the largest loss first."""
        return self.compute_losses()


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> float:
    """Sum over players of (value of a best response - value of the policy `(I, A)`), in chips."""
    table = _as_float64(policy)
    if table.shape == tree.legal.shape:
        total = _nash_conv(*tree.sequence_form, table)
        if total >= 0:
            return total
    raise _policy_error(tree, table)


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Float64Array:
    """NashConv `(B,)` of a batch of joint policies `(B, I, A)`."""
    tables = _as_float64(policies)
    if tables.shape[1:] != tree.legal.shape:
        raise _shape_error(tree, tables.shape[1:])
    totals, rows = np.empty(len(tables)), tables.reshape(-1, tables.shape[-1])
    invalid = _nash_convs(zeros(BATCH_LANES), *tree.sequence_form, rows, totals)
    if invalid >= 0:
        raise _policy_error(tree, tables[invalid])
    return totals


def evaluate_policy(tree: Tree, policy: npt.ArrayLike) -> Measure:
    """Values, best responses, NashConv and losses of a joint policy `(I, A)`."""
    table, players = _as_float64(policy), tree.num_players
    counterfactual, values = _evaluated(tree, table)
    action_values = counterfactual[players:]
    return Measure(
        tuple(values.tolist()),
        tuple(counterfactual[:players].tolist()),
        partial(_best_responses, tree, action_values),
        partial(_losses, tree, table.copy(), action_values),
    )


def counterfactual_values(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """q_p(I, a) of every slot under a joint policy `(I, A)`, p being the owner: `(S,)`."""
    return _evaluated(tree, _as_float64(policy))[0][tree.num_players :]


def _evaluated(tree: Tree, table: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Counterfactual values `(P + S,)`, empty sequences first, and the players' values `(P,)`."""
    players = tree.num_players
    sequences = players + tree.num_slots
    results = np.empty((2 * sequences + players, 1))
    if table.shape != tree.legal.shape or _evaluate(*tree.sequence_form, table, results) < 0:
        raise _policy_error(tree, table)
    return results[sequences:-players, 0], results[-players:, 0]


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """Each player's expected return, in chips per hand, under a joint policy `(I, A)`."""
    return evaluate_policy(tree, policy).values


def reach_probabilities(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """The probability of each sequence by its owner's own actions, under `(I, A)`: `(S + 1,)`."""
    reach = np.ones(tree.num_slots + 1)
    _multiply_along_sequences(tree.slots, _as_float64(policy)[tree.legal], reach)
    return reach


@compiled
def _multiply_along_sequences(
    slots: Int32Array, probabilities: Float64Array, reach: Float64Array
) -> None:
    for slot in range(len(slots)):  # parents first
        reach[slot + 1] = reach[slots[slot, 2]] * probabilities[slot]


def returns_std(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of a player's return in a hand under `(I, A)`, over all players."""
    reach = reach_probabilities(tree, policy)[tree.terminal_sequence].prod(axis=0)
    probability, returns = (
        reach * tree.chance_reach[tree.terminals],
        tree.returns[:, tree.terminals],
    )
    means = (returns * probability).sum(axis=1, keepdims=True)
    return float(np.sqrt(((returns - means) ** 2 * probability).sum(axis=1).mean()))


def joint_policy(tree: Tree, policies: Sequence[npt.ArrayLike]) -> Float64Array:
    """The joint policy `(I, A)` in which player p plays `policies[p]`."""
    tables = np.stack([np.asarray(policy, np.float64) for policy in policies])
    return np.asarray(tables[tree.owner, np.arange(len(tree.keys))])


def pure_policy(tree: Tree, actions: npt.ArrayLike) -> Float64Array:
    """The joint policy `(I, A)` that always plays `actions` `(I,)`."""
    return np.asarray(np.arange(tree.legal.shape[1]) == np.reshape(actions, (-1, 1)), np.float64)


def _best_responses(tree: Tree, action_values: Float64Array) -> Int32Array:
    """The action of the highest value at each information set, from values `(S,)`: `(I,)`."""
    table = np.full(tree.legal.shape, -np.inf)
    table[tree.legal] = action_values
    return np.asarray(table.argmax(axis=1), np.int32)


def _losses(tree: Tree, table: Float64Array, action_values: Float64Array) -> tuple[Loss, ...]:
    """All losses above rounding, the largest first."""
    reach, infosets = reach_probabilities(tree, table), tree.slots[:, 0]
    best = np.maximum.reduceat(action_values, tree.first_slot[:-1])
    regrets = table[tree.legal] * (best[infosets] - action_values)
    lost = reach[tree.parent_sequence] * np.bincount(infosets, regrets)
    nodes = tree.members
    arrivals = tree.chance_reach[nodes] * reach[tree.sequence[:, nodes]].prod(axis=0)
    found = np.flatnonzero(lost > NO_LOSS)
    order = found[np.argsort(-lost[found], kind="stable")]
    columns = (
        tree.owner,
        np.arange(len(table)),
        np.bincount(tree.infoset[nodes], arrivals),
        table.argmax(axis=1),
        table.max(axis=1),
        _best_responses(tree, action_values),
        lost,
    )
    return tuple(map(Loss._make, zip(*(column[order].tolist() for column in columns), strict=True)))


def _as_float64(numbers: npt.ArrayLike) -> Float64Array:
    """The numbers as writable float64 in C order: one type to compile for."""
    if type(numbers) is np.ndarray and numbers.dtype is _FLOAT64 and numbers.flags.carray:
        return numbers
    return np.array(numbers, np.float64, order="C")


def _shape_error(tree: Tree, shape: tuple[int, ...]) -> PolicyError:
    want, got = (" x ".join(map(str, sizes)) for sizes in (tree.legal.shape, shape))
    return PolicyError(f"a joint policy of {tree.name} is {want}; got {got or 'a number'}")


def _policy_error(tree: Tree, table: Float64Array) -> PolicyError:
    """The error of a policy: its shape, or its first row that is not a distribution."""
    if table.shape != tree.legal.shape:
        return _shape_error(tree, table.shape)
    possible = np.where(tree.legal, table >= 0, table == 0).all(axis=1)
    first = int((possible & (np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE)).argmin())
    return PolicyError(
        f"{tree.keys[first]!r}: {table[first].tolist()} are not probabilities of its legal actions"
    )


# The kernels below work on `Tree.sequence_form`, whose sequences are numbered with the players'
# empty ones first, and evaluate as many policies at a time as there are lanes. `results` is
# `(2 (P + S) + P, lanes)`: reach probabilities and counterfactual values by sequence, then values
# by player.
_Results: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


@part
def _empty_results(indices: UInt32Array, payoffs: Float64Array, width: int) -> Float64Array:
    slots = len(indices) + 1 - len(payoffs)
    return np.empty((3 * payoffs.shape[1] + 2 * slots, width))


@part
def _split(players: int, results: Float64Array) -> _Results:
    sequences = (len(results) - players) // 2
    return results[:sequences], results[sequences:-players], results[-players:]


@compiled
def _nash_conv(indices: UInt32Array, payoffs: Float64Array, table: Float64Array) -> float:
    """NashConv of a policy `(I, A)`, or -1 if a row is not a distribution."""
    return _evaluate(indices, payoffs, table, _empty_results(indices, payoffs, 1))


@compiled
def _evaluate(
    indices: UInt32Array, payoffs: Float64Array, table: Float64Array, results: Float64Array
) -> float:
    """Fill in `results` for one policy; its NashConv, or -1 if a row is not a distribution."""
    if _sweep((0.0,), (indices, payoffs), table, (0, 1), results) >= 0:
        return -1.0
    return _gains_sum(payoffs, results, 0)


@compiled
def _nash_convs(
    zero: Lanes,
    indices: UInt32Array,
    payoffs: Float64Array,
    policies: Float64Array,
    totals: Float64Array,
) -> int:
    """NashConv of policies `(B * I, A)`; the first with a row that is no distribution, or -1."""
    width = len(zero)
    results = _empty_results(indices, payoffs, width)
    for first in range(0, len(totals), width):
        stop = min(first + width, len(totals))
        invalid = _sweep(zero, (indices, payoffs), policies, (first, stop), results)
        if invalid >= 0:
            return invalid
        for number in range(first, stop):
            totals[number] = _gains_sum(payoffs, results, number - first)
    return -1


@part
def _gains_sum(payoffs: Float64Array, results: Float64Array, lane: int) -> float:
    players = payoffs.shape[1]
    _, counterfactual, values = _split(players, results)
    total = 0.0
    for player in range(players):
        gain = counterfactual[player, lane] - values[player, lane]
        assert gain >= -SLACK * payoffs[-1, 0]  # noqa: S101  # a best response never loses
        total += max(gain, 0.0)
    return total


@part
def _sweep(
    zero: Lanes,
    sequence_form: tuple[UInt32Array, Float64Array],
    policies: Float64Array,
    span: tuple[int, int],
    results: Float64Array,
) -> int:
    """Fill in `results` for the policies of a span; the first that is invalid, or -1."""
    indices, payoffs = sequence_form
    first, stop = span
    reach, counterfactual, values = _split(payoffs.shape[1], results)
    slots = indices[: len(indices) + 1 - len(payoffs)]
    errors = _fill_reach(zero, slots, policies, span, reach)
    for number in range(first, stop):
        if errors[number - first] != 0:  # NaN too
            return number
    _add_terminals(zero, indices[len(slots) :], payoffs, reach, counterfactual)
    _fill_values(zero, slots, reach, counterfactual, values)
    _add_best_responses(zero, slots, counterfactual)
    return -1


@part
def _fill_reach(
    zero: Lanes,
    slots: UInt32Array,
    policies: Float64Array,
    span: tuple[int, int],
    reach: Float64Array,
) -> Lanes:
    """Fill in reach probabilities; the lanes returned are 0 where all rows are distributions."""
    first, stop = span
    one, slot, players = np.uint64(1), np.uint64(0), np.uint64(len(reach) - len(slots))
    infosets = np.uint64(slots[-1, 0]) + one
    errors = zero
    for player in range(players):
        store(reach, player, full(zero, 1.0))
    for infoset in range(infosets):
        legal, absolute = zero, zero
        for action in range(np.uint64(policies.shape[1])):
            p = zero
            for i in range(len(zero)):  # lanes past the last policy repeat it
                policy = np.uint64(min(first + i, stop - 1))
                p = tuple_setitem(p, i, policies[policy * infosets + infoset, action])
                absolute = tuple_setitem(absolute, i, absolute[i] + abs(p[i]))
            if slot < len(slots) and slots[slot, 0] == infoset and slots[slot, 3] == action:
                legal = add_scaled(legal, p, 1.0)
                parent = load(reach, np.uint64(slots[slot, 2]), zero)
                store(reach, players + slot, multiply(parent, p))
                slot += one
        errors = _add_errors(errors, legal, absolute)
    return errors


@part
def _add_errors(errors: Lanes, legal: Lanes, absolute: Lanes) -> Lanes:
    """Add the distance of a row's sum from 1, and its negative and illegal probabilities."""
    for i in range(len(errors)):
        error = max(abs(legal[i] - 1) - ROW_SUM_TOLERANCE, 0.0) + (absolute[i] - legal[i])
        errors = tuple_setitem(errors, i, errors[i] + error)
    return errors


@part
def _add_terminals(
    zero: Lanes,
    sequences: UInt32Array,
    payoffs: Float64Array,
    reach: Float64Array,
    counterfactual: Float64Array,
) -> None:
    """Add each terminal's counterfactual payoffs to the players' last sequences before it."""
    one, two, players = np.uint64(1), np.uint64(2), np.uint64(payoffs.shape[1])
    for sequence in range(np.uint64(len(counterfactual))):
        store(counterfactual, sequence, zero)
    for player in range(players):
        opponent = (player + one) % players
        for z in range(np.uint64(len(sequences))):
            payoff = full(zero, payoffs[z, player])
            if players > one:  # outside the loop over further opponents: half of the time
                payoff = multiply(payoff, load(reach, np.uint64(sequences[z, opponent]), zero))
            for offset in range(two, players):
                other = np.uint64(sequences[z, (player + offset) % players])
                payoff = multiply(payoff, load(reach, other, zero))
            last = np.uint64(sequences[z, player])
            store(counterfactual, last, add_scaled(load(counterfactual, last, zero), payoff, 1.0))


@part
def _fill_values(
    zero: Lanes,
    slots: UInt32Array,
    reach: Float64Array,
    counterfactual: Float64Array,
    values: Float64Array,
) -> None:
    """Fill in the players' values from the terminals' counterfactual payoffs."""
    players = np.uint64(len(values))
    for player in range(players):
        store(values, player, load(counterfactual, player, zero))
    for slot in range(np.uint64(len(slots))):
        owner, sequence = np.uint64(slots[slot, 1]), players + slot
        won = multiply(load(counterfactual, sequence, zero), load(reach, sequence, zero))
        store(values, owner, add_scaled(load(values, owner, zero), won, 1.0))


@part
def _add_best_responses(zero: Lanes, slots: UInt32Array, counterfactual: Float64Array) -> None:
    """Add the best action's value of each information set to its parent sequence, last first."""
    lowest, one, count = full(zero, -np.inf), np.uint64(1), np.uint64(len(slots))
    players = np.uint64(len(counterfactual)) - count
    best = lowest
    for back in range(count):
        slot = count - one - back
        best = maximum(best, load(counterfactual, players + slot, zero))
        if slot == 0 or slots[slot - one, 0] != slots[slot, 0]:
            parent = np.uint64(slots[slot, 2])
            value = add_scaled(load(counterfactual, parent, zero), best, 1.0)
            store(counterfactual, parent, value)
            best = lowest
