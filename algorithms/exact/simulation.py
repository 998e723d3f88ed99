"""Matches between policies: hands played out, next to their exact value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.exact.simulator import new_stream, play_out, rules_of
from algorithms.exact.tree import Tree
from algorithms.exact.values import expected_values, joint_policy
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance

CHUNK = 1 << 20  # hands between two reports of progress
MIN_HANDS = 30  # fewer do not give a usable standard error
MAX_HANDS = 10**12
MAX_ERRORS = 5.0  # a correct mean differs by more in one of two million matches


@dataclass(frozen=True, slots=True)
class Sample:
    """A policy's mean return in chips per hand, and its exact value where that is known."""

    hands: int
    mean: float
    standard_error: float
    exact: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean."""
        half = 1.959964 * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def errors_off(self) -> float:
        """How many standard errors lie between the mean and the exact value; 0 if unknown."""
        gap = 0.0 if self.exact is None else abs(self.mean - self.exact)
        if gap < 1e-9:
            return 0.0
        return gap / self.standard_error if self.standard_error else math.inf


def require_hands(hands: int, seed: int) -> None:
    """Reject impossible values before any work."""
    if not MIN_HANDS <= hands <= MAX_HANDS:
        raise UsageError(f"hands={hands}: want a number from {MIN_HANDS} to {MAX_HANDS:,}")
    if seed < 0:
        raise UsageError(f"seed={seed}: want a whole number from 0 up")


def simulate(
    tree: Tree,
    policies: Sequence[Float64Array],
    *,
    hands: int,
    seed: int = 0,
    progress: Advance | None = None,
) -> tuple[Sample, ...]:
    """The returns of `policies[0]` in each seat against `policies[1]` in all others, per seat."""
    stream, samples = new_stream(seed), []
    for seat in range(tree.num_players):
        policy = joint_policy(tree, [policies[p != seat] for p in range(tree.num_players)])
        rules = rules_of(tree, dict.fromkeys(range(tree.num_players), policy))
        count = np.zeros(tree.num_nodes, np.int64)
        for start in range(0, hands, CHUNK):
            count += play_out(rules, min(CHUNK, hands - start), stream)
            if progress:
                progress(seat * hands + start, "hands")
        won = tree.returns[seat]
        mean = float(count @ won) / hands
        variance = float(count @ (won - mean) ** 2) / max(hands - 1, 1)
        error = math.sqrt(variance / hands)
        samples.append(Sample(hands, mean, error, expected_values(tree, policy)[seat]))
    return tuple(samples)


def all_seats(samples: Sequence[Sample]) -> Sample:
    """The mean over all seats, with equal weights."""
    seats, exact = len(samples), [s.exact for s in samples if s.exact is not None]
    return Sample(
        sum(sample.hands for sample in samples),
        sum(sample.mean for sample in samples) / seats,
        math.hypot(*(sample.standard_error for sample in samples)) / seats,
        sum(exact) / seats if len(exact) == seats else None,
    )
