"""Hands played out between policies, beside their exact value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.exact.tree import TERMINAL, Tree
from algorithms.exact.values import expected_values, joint_policy
from algorithms.support.arrays import Float64Array, IntpArray
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance

CHUNK = 1 << 16
LEAST_HANDS = 30  # fewer say too little about their own spread
MOST_HANDS = 10**12
CERTAIN = 5.0  # standard errors: a right mean is further off once in two million runs


@dataclass(frozen=True, slots=True)
class Sample:
    """What one policy won, in chips a hand, and what it should have won."""

    hands: int
    mean: float
    standard_error: float
    exact: float

    @property
    def interval(self) -> tuple[float, float]:
        """95% of such intervals contain the exact value."""
        reach = 1.959964 * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def off(self) -> float:
        """How many standard errors lie between the mean and the exact value."""
        gap = abs(self.mean - self.exact)
        if gap < 1e-9:
            return 0.0
        return gap / self.standard_error if self.standard_error else math.inf


def require_hands(hands: int, seed: int) -> None:
    """Refuse impossible matches before any work."""
    if not LEAST_HANDS <= hands <= MOST_HANDS:
        raise UsageError(f"--hands {hands}: want a number from {LEAST_HANDS} to {MOST_HANDS:,}")
    if seed < 0:
        raise UsageError(f"--seed {seed}: want a whole number from 0 up")


def simulate(
    tree: Tree,
    policies: Sequence[Float64Array],
    *,
    hands: int,
    seed: int = 0,
    progress: Advance | None = None,
) -> tuple[Sample, ...]:
    """What `policies[0]` wins in each seat against `policies[1]` in all others, per seat."""
    random = np.random.default_rng(seed)
    samples = []
    for seat in range(tree.num_players):
        policy = joint_policy(tree, [policies[p != seat] for p in range(tree.num_players)])
        count = np.zeros(tree.num_nodes, np.int64)
        for start in range(0, hands, CHUNK):
            ends = play(tree, policy, min(CHUNK, hands - start), random)
            count += np.bincount(ends, minlength=tree.num_nodes)
            if progress:
                progress(seat * hands + start, "hands")
        won = tree.returns[seat]
        mean = float(count @ won) / hands
        variance = float(count @ (won - mean) ** 2) / max(hands - 1, 1)
        error = math.sqrt(variance / hands)
        samples.append(Sample(hands, mean, error, expected_values(tree, policy)[seat]))
    return tuple(samples)


def all_seats(samples: Sequence[Sample]) -> Sample:
    """The seats together, equally often."""
    seats = len(samples)
    return Sample(
        sum(sample.hands for sample in samples),
        sum(sample.mean for sample in samples) / seats,
        math.hypot(*(sample.standard_error for sample in samples)) / seats,
        sum(sample.exact for sample in samples) / seats,
    )


def play(tree: Tree, policy: Float64Array, hands: int, random: np.random.Generator) -> IntpArray:
    """The terminal nodes `(hands,)` that a joint policy `(I, A)` plays to, all hands at once."""
    thresholds = _thresholds(tree, policy)
    nodes = np.zeros(hands, np.intp)
    going = np.arange(hands)
    while len(going):
        at = nodes[going]
        draw = random.random((len(going), 1))
        nodes[going] = tree.first_child[at] + (draw >= thresholds[at]).sum(axis=1)
        going = going[tree.player[nodes[going]] != TERMINAL]
    return nodes


def _thresholds(tree: Tree, policy: Float64Array) -> Float64Array:
    """Where a draw passes from one child to the next: `(N, most children)`, never past the last."""
    sizes = np.diff(tree.first_child)
    parents = np.repeat(np.arange(tree.num_nodes), sizes)  # of the nodes from 1 on
    rank = np.arange(1, tree.num_nodes) - tree.first_child[parents]
    rows, share = tree.infoset[parents], tree.chance_probability[1:].copy()
    chosen = rows >= 0
    share[chosen] = policy[rows[chosen], tree.action[1:][chosen]]
    shares = np.zeros((tree.num_nodes, sizes.max()))
    shares[parents, rank] = share
    last = np.arange(sizes.max()) >= sizes[:, None] - 1
    return np.where(last, np.inf, np.cumsum(shares, axis=1))
