"""The functions of `algorithms.nashconv`, compiled: same signatures, same numbers up to rounding.

The kernels work on `Tree.sequence_form`, in which every player has an empty sequence of its own:
sequence p < P is that of player p, and sequence P + c ends in choice c. One sweep over all choices
multiplies probabilities from the root down, one over all terminal nodes adds up payoffs, and one
over all choices from the last to the first takes the best actions.

A batch of policies is evaluated `BATCH_LANES` at a time, side by side in vector lanes
(`algorithms.compiled.lanes`). The first argument of the kernels, `zero`, is a tuple of that many
zeros: it carries the number of lanes, which is 1 for a single policy.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms import nashconv
from algorithms.compiled.jit import compiled, part
from algorithms.compiled.lanes import (
    Lanes,
    add_scaled,
    add_to,
    full,
    load,
    maximum,
    multiply,
    store,
    with_lane,
)
from algorithms.nashconv import ROW_SUM_TOLERANCE, ActionValues, Evaluation, Measure
from algorithms.support.arrays import Float64Array, UInt32Array
from algorithms.tree import ACTION, INFOSET, OWNER, PARENT, Tree
from kuhn_bridge.errors import BridgeError, GameError

BATCH_LANES = 8  # policies of a batch that are evaluated side by side
SLACK = 1e-4  # of the largest return: rows sum to 1 only nearly, and multiply along a hand
# What a kernel returns instead of NashConv, which is never negative.
INVALID_ROW = -1.0
LOSING_RESPONSE = -2.0
_FLOAT64 = np.dtype(np.float64)


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> float:
    """Sum over players of (value of a best response - value of the policy `(I, A)`), in chips."""
    table = _as_float64(policy)
    if table.shape == tree.legal.shape:
        total = _nash_conv(*tree.sequence_form, table)
        if total >= 0:
            return total
        raise _error(tree, table, total)
    raise nashconv.policy_error(tree, table)


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Float64Array:
    """NashConv `(B,)` of a batch of joint policies `(B, I, A)`."""
    tables = _as_float64(policies)
    if tables.shape[1:] != tree.legal.shape:
        raise nashconv.policy_error(tree, np.empty(tables.shape[1:]))
    rows = tables.reshape(-1, tables.shape[-1])  # (B * I, A)
    totals = np.empty(len(tables))
    invalid = _nash_convs((0.0,) * BATCH_LANES, *tree.sequence_form, rows, totals)
    if invalid >= 0:
        raise _error(tree, tables[invalid], totals[invalid])
    return totals


def evaluate_policy(tree: Tree, policy: npt.ArrayLike) -> Measure:
    """Values, best responses, NashConv and losses of a joint policy `(I, A)`."""
    table = _as_float64(policy)
    return nashconv.measure_from(tree, table, evaluation(tree, table))


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """Each player's expected return, in chips per hand, under a joint policy `(I, A)`."""
    return evaluate_policy(tree, policy).values


def action_values(tree: Tree, policy: npt.ArrayLike) -> ActionValues:
    """The values of all actions against a joint policy `(I, A)`, each player against the others."""
    return nashconv.action_values_from(tree, policy, evaluation(tree, policy))


def returns_std(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of a player's return in a hand under `(I, A)`, over all players."""
    return nashconv.returns_std_from(tree, reach_probabilities(tree, policy))


def evaluation(tree: Tree, policy: npt.ArrayLike) -> Evaluation:
    """Values, best responses' values, reach and counterfactual values of a policy `(I, A)`."""
    table = _as_float64(policy)
    if table.shape != tree.legal.shape:
        raise nashconv.policy_error(tree, table)
    players = tree.num_players
    sequences = players + tree.num_choices
    buffer = np.empty(2 * sequences + players)
    total = _evaluate(*tree.sequence_form, table, buffer)
    if not total >= 0:
        raise _error(tree, table, total)
    return Evaluation(
        values=buffer[2 * sequences :],
        best_values=buffer[sequences : sequences + players],
        # The last player's empty sequence stands for everybody's: all have probability 1.
        reach=buffer[players - 1 : sequences],
        choice_values=buffer[sequences + players : 2 * sequences],
    )


def reach_probabilities(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """The probability of each sequence by its owner's own actions, under `(I, A)`: `(C + 1,)`."""
    return _multiply_along_sequences(tree.choice_parent, _as_float64(policy)[tree.legal])


def _as_float64(numbers: npt.ArrayLike) -> Float64Array:
    """The numbers as writable float64 in C order: one type to compile for."""
    if type(numbers) is np.ndarray and numbers.dtype is _FLOAT64 and numbers.flags.carray:
        return numbers
    return np.array(numbers, np.float64, order="C")


def _error(tree: Tree, table: Float64Array, result: float) -> BridgeError:
    """The error that a kernel's result stands for."""
    if result == INVALID_ROW:
        return nashconv.policy_error(tree, table)
    return GameError(
        f"{tree.name}: a best response wins less than the policy that it responds to: the game's "
        "returns are not finite, or the tree was changed"
    )


@compiled
def _multiply_along_sequences(
    parents: npt.NDArray[np.int32], probabilities: Float64Array
) -> Float64Array:
    """Reach probabilities `(C + 1,)` from the choices' parent sequences and probabilities."""
    reach = np.ones(len(parents) + 1)
    for choice in range(len(parents)):  # parents come first
        reach[choice + 1] = reach[parents[choice]] * probabilities[choice]
    return reach


class _Results(NamedTuple):
    """What a sweep fills in, each with one column per lane."""

    reach: Float64Array  # (P + C, lanes) by sequence
    counterfactual: Float64Array  # (P + C, lanes) by sequence
    values: Float64Array  # (P, lanes) of the policy


@compiled
def _nash_conv(indices: UInt32Array, payoffs: Float64Array, table: Float64Array) -> float:
    """NashConv of a policy `(I, A)`, or `INVALID_ROW` or `LOSING_RESPONSE`."""
    buffer = _empty_buffer(indices, payoffs, 1)
    return _sweep((0.0,), indices, payoffs, table, 0, buffer)[0]


@compiled
def _evaluate(
    indices: UInt32Array, payoffs: Float64Array, table: Float64Array, buffer: Float64Array
) -> float:
    """What `_nash_conv` returns, and all results in a buffer `(2 (P + C) + P,)`."""
    column = buffer.reshape((len(buffer), 1))
    return _sweep((0.0,), indices, payoffs, table, 0, column)[0]


@compiled
def _nash_convs(
    zero: Lanes,
    indices: UInt32Array,
    payoffs: Float64Array,
    policies: Float64Array,
    totals: Float64Array,
) -> int:
    """Write what `_nash_conv` returns for each of the policies `(B * I, A)`.

    Returns the number of the first policy for which that is an error, or -1.
    """
    buffer = _empty_buffer(indices, payoffs, len(zero))
    for first in range(0, len(totals), len(zero)):
        totals_of_lanes = _sweep(zero, indices, payoffs, policies, first, buffer)
        for i in range(min(len(zero), len(totals) - first)):
            totals[first + i] = totals_of_lanes[i]
            if totals_of_lanes[i] < 0:
                return first + i
    return -1


@part
def _empty_buffer(indices: UInt32Array, payoffs: Float64Array, width: int) -> Float64Array:
    """Memory for `_Results`: one array is quicker to make than three."""
    players = payoffs.shape[1]
    choices = len(indices) + 1 - len(payoffs)
    return np.empty((3 * players + 2 * choices, width))


@part
def _split(buffer: Float64Array, players: int) -> _Results:
    """The three parts of a buffer of `_empty_buffer`."""
    sequences = (len(buffer) - players) // 2
    return _Results(buffer[:sequences], buffer[sequences:-players], buffer[-players:])


@part
def _sweep(  # noqa: PLR0913, PLR0917  # passing tuples of arrays takes a tenth longer
    zero: Lanes,
    indices: UInt32Array,
    payoffs: Float64Array,
    policies: Float64Array,
    first: int,
    buffer: Float64Array,
) -> Lanes:
    """What `_nash_conv` returns for policy `first` of `(B * I, A)` and for those after it."""
    players = payoffs.shape[1]
    choices = len(indices) + 1 - len(payoffs)
    largest_return = payoffs[-1, 0]
    errors = _fill_reach(zero, indices[:choices], policies, first, buffer[: players + choices])
    _fill_values(zero, indices, payoffs, buffer)
    results = _split(buffer, players)
    total = zero
    for i in range(len(zero)):
        if errors[i] != 0:  # or NaN
            total = with_lane(total, i, INVALID_ROW)
            continue
        nash_conv = 0.0
        for player in range(players):
            gain = results.counterfactual[player, i] - results.values[player, i]
            if not gain >= -SLACK * largest_return:
                nash_conv = np.nan
            nash_conv += max(gain, 0.0)
        total = with_lane(total, i, nash_conv if nash_conv >= 0 else LOSING_RESPONSE)
    return total


@part
def _fill_reach(
    zero: Lanes, choices: UInt32Array, policies: Float64Array, first: int, reach: Float64Array
) -> Lanes:
    """Fill in reach probabilities; the lanes returned are 0 where all rows are distributions.

    `choices` are the rows of `SequenceForm.indices` that are choices.
    """
    one = np.uint64(1)
    num_choices = np.uint64(len(choices))
    players = np.uint64(len(reach)) - num_choices
    infosets = np.uint64(choices[-1, INFOSET]) + one
    last_policy = np.uint64(len(policies)) // infosets - one
    for player in range(players):
        store(reach, player, full(zero, 1.0))
    errors = zero
    choice = np.uint64(0)
    for infoset in range(infosets):
        legal_sum = zero
        absolute_sum = zero  # over all actions, so it is larger if one is negative or illegal
        for action in range(np.uint64(policies.shape[1])):
            probability = zero
            for i in range(len(zero)):  # lanes past the last policy repeat it
                policy = min(np.uint64(first + i), last_policy)
                probability = with_lane(
                    probability, i, policies[policy * infosets + infoset, action]
                )
                absolute_sum = with_lane(absolute_sum, i, absolute_sum[i] + abs(probability[i]))
            if (
                choice < num_choices
                and choices[choice, INFOSET] == infoset
                and choices[choice, ACTION] == action
            ):
                legal_sum = add_scaled(legal_sum, probability)
                parent = load(reach, np.uint64(choices[choice, PARENT]), zero)
                store(reach, players + choice, multiply(parent, probability))
                choice += one
        for i in range(len(zero)):
            wrong_sum = max(abs(legal_sum[i] - 1) - ROW_SUM_TOLERANCE, 0.0)
            wrong_action = absolute_sum[i] - legal_sum[i]
            errors = with_lane(errors, i, errors[i] + (wrong_sum + wrong_action))
    return errors


@part
def _fill_values(
    zero: Lanes, indices: UInt32Array, payoffs: Float64Array, buffer: Float64Array
) -> None:
    """Fill in counterfactual values and the players' values, given reach probabilities."""
    results = _split(buffer, payoffs.shape[1])
    one = np.uint64(1)
    two = np.uint64(2)
    players = np.uint64(payoffs.shape[1])
    terminals = np.uint64(len(payoffs)) - one
    choices = np.uint64(len(indices)) - terminals
    ends = indices[choices:]  # (Z, P) the players' sequences at the terminal nodes
    reach = results.reach
    counterfactual = results.counterfactual
    for sequence in range(players + choices):
        store(counterfactual, sequence, zero)

    # The terminal nodes, by the player's last sequence.
    for player in range(players):
        opponent = (player + one) % players
        for z in range(terminals):
            payoff = full(zero, payoffs[z, player])
            if players > one:  # outside the loop over further opponents: half of the time
                payoff = multiply(payoff, load(reach, np.uint64(ends[z, opponent]), zero))
            for offset in range(two, players):
                other = np.uint64(ends[z, (player + offset) % players])
                payoff = multiply(payoff, load(reach, other, zero))
            add_to(counterfactual, np.uint64(ends[z, player]), payoff)

    # The policy's values, before best responses are added to the sequences.
    for player in range(players):
        store(results.values, player, load(counterfactual, player, zero))
    for sequence in range(players, players + choices):
        won = multiply(load(counterfactual, sequence, zero), load(reach, sequence, zero))
        owner = np.uint64(indices[sequence - players, OWNER])
        add_to(results.values, owner, won)

    # The best choice of each information set, from the last one to the first.
    best = full(zero, -np.inf)
    for back in range(choices):
        choice = choices - one - back
        best = maximum(best, load(counterfactual, players + choice, zero))
        is_first_of_infoset = (
            choice == 0 or indices[choice - one, INFOSET] != indices[choice, INFOSET]
        )
        if is_first_of_infoset:
            add_to(counterfactual, np.uint64(indices[choice, PARENT]), best)
            best = full(zero, -np.inf)
