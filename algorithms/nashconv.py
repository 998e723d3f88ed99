"""Exact values, best responses, NashConv and losses of a joint policy, for any number of players.

Let pi_p be the reach probability by player p's own actions, pi_-p that by chance and all others,
z terminal nodes, u returns, and s sequences (see `algorithms.tree`). Then

    v_p     = sum over z of pi(z) u_p(z)                                 the policy's value
    q_p(s)  = sum over z after s with no decision of p between of pi_-p(z) u_p(z)
            + sum over p's next information sets I after s of best(I)    counterfactual value
    best(I) = max over actions a of q_p(I, a)                            best response
    gain_p  = q_p(empty sequence) - v_p;   NashConv = sum over p of gain_p
    loss(I) = pi_p(I) (best(I) - sum over a of policy(a | I) q_p(I, a))

With perfect recall no nodes but the terminal ones are needed. A player's losses sum to its gain
(the performance difference lemma, Kakade and Langford 2002): they show where chips are lost.

Counterfactual values count hands that do not arrive. In chips at an information set, with h its
nodes and pi_-p(I) the sum of pi_-p(h):

    value(I, a) = q_p(I, a) / pi_-p(I);   cost(I, a) = max over b of value(I, b) - value(I, a)
    reach(I)    = pi_p(I) pi_-p(I);       belief(h)  = pi_-p(h) / pi_-p(I)
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe.tuple import tuple_setitem

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
)
from algorithms.support.arrays import Float64Array, Int32Array, UInt32Array
from algorithms.tree import Tree
from kuhn_bridge.errors import PolicyError

ROW_SUM_TOLERANCE = 1e-6  # allows for rows that were computed in float32
SLACK = 1e-4  # of the largest return: the error of such rows multiplied along a hand
NO_LOSS = 1e-12  # chips per hand: rounding
NO_COST = 1e-12  # of the largest return: actions whose values differ by less are equally good
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
        raise _policy_error(tree, np.empty(tables.shape[1:]))
    totals, rows = np.empty(len(tables)), tables.reshape(-1, tables.shape[-1])
    invalid = _nash_convs((0.0,) * BATCH_LANES, *tree.sequence_form, rows, totals)
    if invalid >= 0:
        raise _policy_error(tree, tables[invalid])
    return totals


def evaluate_policy(tree: Tree, policy: npt.ArrayLike) -> Measure:
    """Values, best responses, NashConv and losses of a joint policy `(I, A)`."""
    table = _as_float64(policy)
    best_values, action_values, values = _evaluated(tree, table)
    return Measure(
        tuple(values.tolist()),
        tuple(best_values.tolist()),
        partial(_best_responses, tree, action_values),
        partial(_losses, tree, table.copy(), action_values),
    )


def _evaluated(tree: Tree, table: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Best responses' values `(P,)`, counterfactual values `(S,)`, the policy's values `(P,)`."""
    players, slots = tree.num_players, tree.num_slots
    results = np.empty((3 * players + 2 * slots, 1))
    if table.shape != tree.legal.shape or _evaluate(*tree.sequence_form, table, results) < 0:
        raise _policy_error(tree, table)
    found = results[players + slots :, 0]
    return found[:players], found[players:-players], found[-players:]


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """Each player's expected return, in chips per hand, under a joint policy `(I, A)`."""
    return evaluate_policy(tree, policy).values


def reach_probabilities(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """The probability of each sequence by its owner's own actions, under `(I, A)`: `(S + 1,)`."""
    return _multiplied_along_sequences(tree.slots, _as_float64(policy)[tree.legal])


@compiled
def _multiplied_along_sequences(slots: Int32Array, probabilities: Float64Array) -> Float64Array:
    reach = np.ones(len(slots) + 1)
    for slot in range(len(slots)):  # parents first
        reach[slot + 1] = reach[slots[slot, 2]] * probabilities[slot]
    return reach


def returns_std(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of a player's return in a hand under `(I, A)`, over all players."""
    reach = reach_probabilities(tree, policy)[tree.terminal_sequence].prod(axis=0)
    probability = reach * tree.chance_reach[tree.terminals]
    returns = tree.returns[:, tree.terminals]
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


@dataclass(frozen=True, slots=True, eq=False)
class ActionValues:
    """Where chips are won and lost under one joint policy, by the module's equations.

    Quotients are NaN where the other players and chance never arrive.
    """

    values: Float64Array  # (S,)
    costs: Float64Array  # (S,) exactly 0 for every best action
    reach: Float64Array  # (I,)
    losses: Float64Array  # (I,)
    beliefs: Float64Array  # (decision nodes,) in the order of the nodes


def action_values(tree: Tree, policy: npt.ArrayLike) -> ActionValues:
    """The values of all actions against a joint policy `(I, A)`, each player against the others."""
    table = _as_float64(policy)
    own, counterfactual = reach_probabilities(tree, table), _evaluated(tree, table)[1]
    best = np.maximum.reduceat(counterfactual, tree.first_slot[:-1])
    nodes = np.flatnonzero(tree.infoset >= 0)
    reach = own[tree.sequence[:, nodes]]  # (P, D)
    reach[tree.player[nodes], np.arange(len(nodes))] = 1.0
    others_by_node = reach.prod(axis=0) * tree.chance_reach[nodes]
    others = np.bincount(tree.infoset[nodes], others_by_node, len(tree.keys))
    infosets = tree.slots[:, 0]
    regrets = best[infosets] - counterfactual
    regrets[regrets <= NO_COST * np.abs(tree.returns).max() * others[infosets]] = 0.0
    expected = np.bincount(infosets, table[tree.legal] * regrets, len(tree.keys))
    with np.errstate(invalid="ignore", divide="ignore"):
        return ActionValues(
            values=counterfactual / others[infosets],
            costs=regrets / others[infosets],
            reach=others * own[tree.parent_sequence],
            losses=own[tree.parent_sequence] * expected,
            beliefs=others_by_node / others[tree.infoset[nodes]],
        )


def _as_float64(numbers: npt.ArrayLike) -> Float64Array:
    """The numbers as writable float64 in C order: one type to compile for."""
    if type(numbers) is np.ndarray and numbers.dtype is _FLOAT64 and numbers.flags.carray:
        return numbers
    return np.array(numbers, np.float64, order="C")


def _policy_error(tree: Tree, table: Float64Array) -> PolicyError:
    """The error of a policy: its shape, or its first row that is not a distribution."""
    if table.shape != tree.legal.shape:
        want, got = (" x ".join(map(str, sizes)) for sizes in (tree.legal.shape, table.shape))
        return PolicyError(f"a joint policy of {tree.name} is {want}; got {got or 'a number'}")
    possible = np.where(tree.legal, table >= 0, table == 0).all(axis=1)
    first = int((possible & (np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE)).argmin())
    return PolicyError(
        f"{tree.keys[first]!r}: {table[first].tolist()} are not probabilities of its legal actions"
    )


# The kernels below work on `Tree.sequence_form`, whose sequences are numbered with the players'
# empty ones first, and evaluate as many policies at a time as there are lanes. `results` is
# `(2 (P + S) + P, lanes)`: reach probabilities and counterfactual values by sequence, then values
# by player.


@compiled
def _nash_conv(indices: UInt32Array, payoffs: Float64Array, table: Float64Array) -> float:
    """NashConv of a policy `(I, A)`, or -1 if a row is not a distribution."""
    return _sweep((0.0,), (indices, payoffs), table, 0, _empty_results(indices, payoffs, 1))[0]


@compiled
def _evaluate(
    indices: UInt32Array, payoffs: Float64Array, table: Float64Array, results: Float64Array
) -> float:
    """NashConv of a policy as `_nash_conv` gives it, and its `results`."""
    return _sweep((0.0,), (indices, payoffs), table, 0, results)[0]


@compiled
def _nash_convs(
    zero: Lanes,
    indices: UInt32Array,
    payoffs: Float64Array,
    policies: Float64Array,
    totals: Float64Array,
) -> int:
    """NashConv of policies `(B * I, A)`; the first with a row that is no distribution, or -1."""
    results = _empty_results(indices, payoffs, len(zero))
    for first in range(0, len(totals), len(zero)):
        found = _sweep(zero, (indices, payoffs), policies, first, results)
        for i in range(min(len(zero), len(totals) - first)):
            if found[i] < 0:
                return first + i
            totals[first + i] = found[i]
    return -1


@part
def _empty_results(indices: UInt32Array, payoffs: Float64Array, width: int) -> Float64Array:
    slots = len(indices) + 1 - len(payoffs)
    return np.empty((3 * payoffs.shape[1] + 2 * slots, width))


@part
def _sweep(
    zero: Lanes,
    sequence_form: tuple[UInt32Array, Float64Array],
    policies: Float64Array,
    first: int,
    results: Float64Array,
) -> Lanes:
    """NashConv of policies `(B * I, A)`, `first` and those after it; -1 where one is invalid."""
    indices, payoffs = sequence_form
    players = payoffs.shape[1]
    sequences = (len(results) - players) // 2
    reach, counterfactual = results[:sequences], results[sequences:-players]
    values, slots = results[-players:], indices[: sequences - players]
    errors = _fill_reach(zero, slots, policies, first, reach)
    _fill_values(zero, indices, payoffs, results)
    total = zero
    for i in range(len(zero)):
        if errors[i] == 0:  # nor NaN
            for player in range(players):
                gain = counterfactual[player, i] - values[player, i]
                assert gain >= -SLACK * payoffs[-1, 0]  # noqa: S101  # a best response never loses
                total = tuple_setitem(total, i, total[i] + max(gain, 0.0))
        else:
            total = tuple_setitem(total, i, -1.0)
    return total


@part
def _fill_reach(
    zero: Lanes, slots: UInt32Array, policies: Float64Array, first: int, reach: Float64Array
) -> Lanes:
    """Fill in reach probabilities; the lanes returned are 0 where all rows are distributions."""
    one, slot, players = np.uint64(1), np.uint64(0), np.uint64(len(reach) - len(slots))
    infosets = np.uint64(slots[-1, 0]) + one
    last = np.uint64(len(policies)) // infosets - one
    errors = zero
    for player in range(players):
        store(reach, player, full(zero, 1.0))
    for infoset in range(infosets):
        legal, absolute = zero, zero
        for action in range(np.uint64(policies.shape[1])):
            p = zero
            for i in range(len(zero)):  # lanes past the last policy repeat it
                policy = min(np.uint64(first + i), last)
                p = tuple_setitem(p, i, policies[policy * infosets + infoset, action])
                absolute = tuple_setitem(absolute, i, absolute[i] + abs(p[i]))
            if slot < len(slots) and slots[slot, 0] == infoset and slots[slot, 3] == action:
                legal = add_scaled(legal, p)
                parent = load(reach, np.uint64(slots[slot, 2]), zero)
                store(reach, players + slot, multiply(parent, p))
                slot += one
        for i in range(len(zero)):  # the sum's distance from 1, negative and illegal probabilities
            error = max(abs(legal[i] - 1) - ROW_SUM_TOLERANCE, 0.0) + (absolute[i] - legal[i])
            errors = tuple_setitem(errors, i, errors[i] + error)
    return errors


@part
def _fill_values(
    zero: Lanes, indices: UInt32Array, payoffs: Float64Array, results: Float64Array
) -> None:
    """Fill in counterfactual values and the players' values, from the terminals upwards."""
    one, two, players = np.uint64(1), np.uint64(2), np.uint64(payoffs.shape[1])
    slots = np.uint64(len(indices) + 1 - len(payoffs))
    ends, sequences = indices[slots:], players + slots
    reach, counterfactual = results[:sequences], results[sequences : sequences + sequences]
    values = results[sequences + sequences :]
    for sequence in range(sequences):
        store(counterfactual, sequence, zero)
    for player in range(players):
        opponent = (player + one) % players
        for z in range(np.uint64(len(payoffs)) - one):
            payoff = full(zero, payoffs[z, player])
            if players > one:  # outside the loop over further opponents: half of the time
                payoff = multiply(payoff, load(reach, np.uint64(ends[z, opponent]), zero))
            for offset in range(two, players):
                other = np.uint64(ends[z, (player + offset) % players])
                payoff = multiply(payoff, load(reach, other, zero))
            add_to(counterfactual, np.uint64(ends[z, player]), payoff)
    for player in range(players):
        store(values, player, load(counterfactual, player, zero))
    for slot in range(slots):
        played = load(reach, players + slot, zero)
        won = multiply(load(counterfactual, players + slot, zero), played)
        add_to(values, np.uint64(indices[slot, 1]), won)
    best = full(zero, -np.inf)
    for back in range(slots):  # the best action of each information set, the last ones first
        at = slots - one - back
        best = maximum(best, load(counterfactual, players + at, zero))
        if at == 0 or indices[at - one, 0] != indices[at, 0]:
            add_to(counterfactual, np.uint64(indices[at, 2]), best)
            best = full(zero, -np.inf)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `nashconv`, which is in `algorithms.reports.nashconv_command`."""
    from algorithms.reports.nashconv_command import main as command

    return command(argv)


if __name__ == "__main__":
    sys.exit(main())
