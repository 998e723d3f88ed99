"""Exact values, best responses and NashConv of a joint policy, for any number of players.

With perfect recall a player's best response needs no nodes but the last: every terminal node adds
its counterfactual return to the player's sequence there, and the player's information sets, last
first, pass their best slot on to the sequence before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.compiled import compiled
from algorithms.tree import Bools, Bytes, Floats, Ints, Policy, Tree
from kuhn_bridge.errors import PolicyError

TOLERANCE = 1e-6  # how far a row may sum from 1: a float32 network is welcome


@dataclass(frozen=True, slots=True, eq=False)
class NashConv:
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
    values, best, responses = _measured(tree, np.asarray(policy, np.float64)[None])
    value, ceiling = values[0].tolist(), best[0].tolist()
    gains = tuple([_gain(v, b) for v, b in zip(value, ceiling, strict=True)])
    responses = responses[0]
    responses.setflags(write=False)
    return NashConv(sum(gains), gains, tuple(value), tuple(ceiling), responses)


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Floats:
    """NashConv `(B,)` of many joint policies `(B, I, A)` in one sweep."""
    values, best, _ = _measured(tree, np.asarray(policies, np.float64))
    return np.asarray((best - values).sum(axis=1))


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


def _gain(value: float, best: float) -> float:
    gain = best - value
    if gain < -1e-9 * max(1.0, abs(value)):
        raise AssertionError(f"a best response of {best} is worse than the {value} it improves on")
    return max(gain, 0.0)


def _measured(tree: Tree, policies: Floats) -> tuple[Floats, Floats, Ints]:
    """Values and best-response values `(B, P)` and best responses `(B, I)`."""
    if policies.shape[1:] != tree.legal.shape:
        rows, columns = tree.legal.shape
        got = policies.shape[1:]
        raise PolicyError(f"a joint policy of {tree.name} is {rows} x {columns}; got shape {got}")
    values, best, responses, wrong = _sweep(
        (tree.first_slot, tree.owner, tree.parent, tree.legal),
        (tree.terminals, tree.chance, tree.sequence, tree.returns),
        np.ascontiguousarray(policies),
    )
    if wrong >= 0:
        index, row = divmod(wrong, len(tree.keys))
        shown = policies[index, row].tolist()
        raise PolicyError(f"{tree.keys[row]!r}: {shown} are not probabilities of its legal actions")
    return values, best, responses


@compiled
def _sweep(
    infosets: tuple[Ints, Bytes, Ints, Bools],
    nodes: tuple[Ints, Floats, Ints, Floats],
    policies: Floats,
) -> tuple[Floats, Floats, Ints, int]:
    """As `_measured`, and the first row (over the batch) that is no distribution, or -1."""
    first_slot, owner, parent, legal = infosets
    terminals, chance, sequence, returns = nodes
    batch, rows, actions = policies.shape
    players = len(returns)
    values, best = np.zeros((batch, players)), np.zeros((batch, players))
    responses = np.empty((batch, rows), np.int32)
    reach = np.ones(first_slot[rows] + 1)  # of each sequence, by its owner alone
    worth = np.empty(first_slot[rows] + 1)  # of each sequence, when its owner goes on best
    for b in range(batch):
        wrong = _reach(first_slot, parent, legal, policies[b], reach)
        if wrong >= 0:
            return values, best, responses, b * rows + wrong
        for player in range(players):
            worth[:] = 0
            for z in terminals:
                counterfactual = chance[z] * returns[player, z]
                for other in range(players):
                    if other != player:
                        counterfactual *= reach[sequence[other, z]]
                own = sequence[player, z]
                worth[own] += counterfactual
                values[b, player] += counterfactual * reach[own]
            for i in range(rows - 1, -1, -1):
                if owner[i] == player:
                    top, slot = -np.inf, first_slot[i]
                    for a in range(actions):
                        if legal[i, a]:
                            slot += 1
                            if worth[slot] > top:
                                top = worth[slot]
                                responses[b, i] = a
                    worth[parent[i]] += top
            best[b, player] = worth[0]
    return values, best, responses, -1


@compiled
def _reach(first_slot: Ints, parent: Ints, legal: Bools, policy: Floats, reach: Floats) -> int:
    """Fill in each sequence's probability; the first row that is no distribution, or -1."""
    for i in range(len(parent)):
        total, slot = 0.0, first_slot[i]
        for a in range(legal.shape[1]):
            p = policy[i, a]
            if not (p >= 0 if legal[i, a] else p == 0):
                return i
            if legal[i, a]:
                total += p
                slot += 1
                reach[slot] = reach[parent[i]] * p
        if not abs(total - 1) <= TOLERANCE:
            return i
    return -1
