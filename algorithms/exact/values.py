"""Exact values, best responses and NashConv of a joint policy, for any number of players.

With perfect recall a player's best response needs no nodes but the last: every terminal node adds
its counterfactual return to the player's sequence there, and the player's information sets, last
first, pass their best slot on to the sequence before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Floats, Ints, Policy, Tree
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import PolicyError

TOLERANCE = 1e-6  # how far a row may sum from 1: a float32 network is welcome
ROUNDING = 1e-9  # chips


class NashConv(NamedTuple):
    """What the players could still gain, in chips a hand; one number a player."""

    total: float
    gains: tuple[float, ...]
    values: tuple[float, ...]
    best_values: tuple[float, ...]
    best_responses: Ints  # (I,) the action with which the owner of each row answers the others

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.total / len(self.gains)


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> NashConv:
    """What all players together could still gain by best-responding to a joint policy `(I, A)`."""
    measures, responses = _measured(tree, np.asarray(policy, np.float64)[None])
    values, best, gains = map(tuple, measures[0].tolist())
    responses.setflags(write=False)
    return NashConv(sum(gains), gains, values, best, responses[0])


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Floats:
    """NashConv `(B,)` of many joint policies `(B, I, A)` in one sweep."""
    measures, _ = _measured(tree, policies)
    return np.asarray(measures[:, 2].sum(axis=1))


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """What each player wins on average, in chips a hand, under a joint policy `(I, A)`."""
    return nash_conv(tree, policy).values


def seated(tree: Tree, policies: Sequence[npt.ArrayLike]) -> Policy:
    """The joint policy `(I, A)` in which player p takes its rows from `policies[p]`."""
    tables = np.stack([np.asarray(policy, np.float64) for policy in policies])
    return np.asarray(tables[tree.owner, np.arange(len(tree.keys))])


def pure(tree: Tree, actions: npt.ArrayLike) -> Policy:
    """The joint policy `(I, A)` that always plays `actions` `(I,)`."""
    return np.asarray(np.arange(tree.legal.shape[1]) == np.reshape(actions, (-1, 1)), np.float64)


def _measured(tree: Tree, policies: npt.ArrayLike) -> tuple[Floats, Ints]:
    """Values, best-response values and gains `(B, 3, P)`; and best responses `(B, I)`."""
    tables = np.array(policies, np.float64, order="C")  # a copy is writable: one type to compile
    if tables.shape[1:] != tree.legal.shape:
        want, got = (" x ".join(map(str, shape)) for shape in (tree.legal.shape, tables.shape[1:]))
        raise PolicyError(f"a joint policy of {tree.name} is {want}; got {got or 'a number'}")
    measures, responses, wrong = _sweep(tree.slots, tree.ends, tree.stakes, tables)
    if wrong >= 0:
        index, row = divmod(wrong, len(tree.keys))
        shown = tables[index, row].tolist()
        raise PolicyError(f"{tree.keys[row]!r}: {shown} are not probabilities of its legal actions")
    return measures, responses


@compiled
def _sweep(slots: Ints, ends: Ints, stakes: Floats, policies: Floats) -> tuple[Floats, Ints, int]:
    """As `_measured`, and the first row (over the batch) that is no distribution, or -1."""
    batch, rows, _ = policies.shape
    players, terminals = ends.shape
    measures = np.empty((batch, 3, players))
    responses = np.empty((batch, rows), np.int32)
    reach = np.ones(len(slots) + 1)  # of each sequence, by its owner alone
    worth = np.empty(len(slots) + 1)  # of each sequence, when its owner goes on best
    for b in range(batch):
        wrong = _reach(slots, policies[b], reach)
        if wrong >= 0:
            return measures, responses, b * rows + wrong
        for player in range(players):
            worth[:] = 0
            value = 0.0
            for z in range(terminals):
                counterfactual = stakes[player, z]
                for other in range(players):
                    if other != player:
                        counterfactual *= reach[ends[other, z]]
                own = ends[player, z]
                worth[own] += counterfactual
                value += counterfactual * reach[own]
            _respond(slots, player, worth, responses[b])
            gain = worth[0] - value
            assert gain >= -ROUNDING * (1 + abs(value))  # noqa: S101  # a best response is never worse
            measures[b, 0, player] = value
            measures[b, 1, player] = worth[0]
            measures[b, 2, player] = max(gain, 0.0)
    return measures, responses, -1


@compiled
def _reach(slots: Ints, policy: Floats, reach: Floats) -> int:
    """Fill in each sequence's probability; the first row that is no distribution, or -1."""
    rows, actions = policy.shape
    slot = 0
    for row in range(rows):
        legal = 0.0
        while slot < len(slots) and slots[slot, 0] == row:
            p = policy[row, slots[slot, 3]]
            if not p >= 0:
                return row
            legal += p
            slot += 1
            reach[slot] = reach[slots[slot - 1, 2]] * p
        everything = 0.0
        for action in range(actions):
            everything += abs(policy[row, action])
        if not (abs(legal - 1) <= TOLERANCE and everything == legal):
            return row
    return -1


@compiled
def _respond(slots: Ints, player: int, worth: Floats, response: Ints) -> None:
    """Hand each row's best slot on to the sequence before it, the last row first."""
    top = -np.inf
    for slot in range(len(slots) - 1, -1, -1):
        row, owner, before, action = slots[slot]
        if owner != player:
            continue
        if worth[slot + 1] >= top:
            top = worth[slot + 1]
            response[row] = action
        if slot == 0 or slots[slot - 1, 0] != row:
            worth[before] += top
            top = -np.inf
