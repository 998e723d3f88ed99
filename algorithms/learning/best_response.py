"""Trained best responses: a lower bound of NashConv in games of any size.

NashConv is the sum, over seats i, of the gain of that seat's best policy against the others:

    NashConv(p) = sum_i max_b [u_i(b, p_-i) - u_i(p)]

Where the maximum cannot be computed, any single b in its place gives a lower bound. Here b is
trained: p is frozen in the other seats, which leaves a single-agent problem for stock
`MaskablePPO` (`response_training`). How much of the maximum it finds is unknown, so

- a small bound does not show that NashConv is small, and
- bounds do not rank policies: the smaller one may belong to the policy that is harder to learn
  against.

For each seat:

1. Two networks are trained per seed: one from scratch, and one that first imitates 0.8 p + 0.2
   uniform play, to begin near u_i(p) even if p is hard to beat.
2. Candidates are each network greedy and sampled, and p itself, whose gain is 0 exactly. All play
   the same hands, a quarter as many as in step 3, and the one that gains most is chosen.
3. The chosen one is measured once, on a fixed number of fresh hands. Choosing and measuring on the
   same hands would overstate the gain: the largest of several noisy figures is too large on
   average.

The estimate is therefore unbiased for the chosen response, and its 95% interval contains
u_i(b, p_-i) - u_i(p) in 95% of repetitions. Both terms are estimated with common random numbers.
This is valid because each term alone is the mean of independent hands, and reduces the variance of
the difference because a response often agrees with p (`common_hands`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from algorithms.games import Game
from algorithms.learning.common_hands import hand_streams
from algorithms.learning.response_training import (
    STARTS,
    Run,
    Target,
    Trained,
    train_response,
)
from algorithms.learning.states import StatePolicy
from algorithms.learning.training import one_thread
from algorithms.support import budget
from algorithms.support.arrays import Float64Array, UInt64Array
from algorithms.support.progress import Advance

QUANTILE = 1.959964  # standard deviations around the mean that hold 95% of a normal distribution
ITSELF = "the policy itself"  # the candidate that gains nothing


@dataclass(frozen=True, slots=True)
class Gain:
    """What a candidate gains over the policy itself, in chips per hand."""

    candidate: str
    gain: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the gain."""
        reach = QUANTILE * self.standard_error
        return self.gain - reach, self.gain + reach


NO_GAIN = Gain(ITSELF, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SeatBound:
    """The gain of one seat's chosen response on fresh hands, and the runs that found it.

    Attributes:
        seat: number of the seat.
        chosen: name and gain of the chosen response.
        runs: number of training runs.
        cpu_seconds: CPU time of all training runs.
    """

    seat: int
    chosen: Gain
    runs: int
    cpu_seconds: float

    @property
    def found(self) -> bool:
        """Whether a response was chosen rather than the policy itself."""
        return self.chosen.candidate != ITSELF


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound of a policy's NashConv, in chips per hand.

    Attributes:
        game: name of the game.
        seats: chosen response of each seat, with its gain and standard error.
        hands: number of hands on which each seat's response was measured.
        decisions: number of decisions that each training run learned from.
    """

    game: str
    seats: tuple[SeatBound, ...]
    hands: int
    decisions: int

    @property
    def gains(self) -> tuple[float, ...]:
        """The gain of each seat's response; by chance it may be slightly below 0."""
        return tuple(seat.chosen.gain for seat in self.seats)

    @property
    def standard_error(self) -> float:
        """The standard error of the sum of the gains; seats are measured on different hands."""
        return math.hypot(*(seat.chosen.standard_error for seat in self.seats))

    @property
    def nash_conv_at_least(self) -> float:
        """The sum of the gains, or 0 if it is negative: NashConv is never negative."""
        return max(0.0, sum(self.gains))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the sum of the gains, cut off at 0."""
        reach = QUANTILE * self.standard_error
        return max(0.0, sum(self.gains) - reach), max(0.0, sum(self.gains) + reach)

    def share_of(self, gains: Sequence[float]) -> float | None:
        """The share of all players' exact gains that was found, if there is anything to gain."""
        return self.nash_conv_at_least / sum(gains) if sum(gains) > 0 else None

    @property
    def found(self) -> bool:
        """Whether a response was chosen rather than the policy itself, in any seat."""
        return any(seat.found for seat in self.seats)


def lower_bound(  # noqa: PLR0913  # options by name
    game: Game,
    policy: Float64Array | StatePolicy,
    *,
    decisions: int = budget.DECISIONS,
    hands: int | None = None,
    seeds: Sequence[int] = budget.SEEDS,
    cpus: int = 1,
    address: str | None = None,
    progress: Advance | None = None,
) -> LowerBound:
    """Train responses to a policy in every seat, and measure the best one of each.

    Args:
        game: the game.
        policy: joint policy of all seats. A table `(I, A)` is played on the game's tree; a function
            from observations `(n, size)` and masks `(n, A)` to probabilities `(n, A)` is played on
            OpenSpiel's states.
        decisions: number of decisions that each training run learns from.
        hands: number of hands on which each seat's response is measured. It is chosen on a quarter
            as many other hands.
        seeds: random seeds; each one adds two training runs per seat.
        cpus: number of training runs at a time; more than one run on Ray.
        address: address of a Ray cluster.
        progress: function that is called with the number of decisions of all runs so far, out of
            `total_decisions`, and a note.
    """
    if hands is None:
        hands = budget.HANDS if callable(policy) else budget.TREE_HANDS
    budget.require_budget(decisions=decisions, hands=hands, seeds=seeds, cpus=cpus)
    target, show = Target(game, policy), progress or (lambda done, note: None)
    runs = [
        Run(target, seat, start, seed, decisions)
        for seat in range(game.num_players)
        for seed in seeds
        for start in STARTS
    ]
    if cpus == 1 and address is None:
        trained = _train_in_turn(runs, show)
    else:
        trained = _train_on_ray(runs, show, cpus=cpus, address=address)
    seats = (
        _measured([(run, trained[run]) for run in runs if run.seat == seat], hands=hands)
        for seat in range(game.num_players)
    )
    return LowerBound(game.name, tuple(seats), hands, decisions)


def total_decisions(
    game: Game, *, decisions: int = budget.DECISIONS, seeds: Sequence[int] = budget.SEEDS
) -> int:
    """The number of decisions that all runs of `lower_bound` learn from."""
    return game.num_players * len(seeds) * len(STARTS) * decisions


# ---------------------------------------------------------------------------------------------
# Choosing and measuring
# ---------------------------------------------------------------------------------------------


@one_thread()
def _measured(trained: Sequence[tuple[Run, Trained]], *, hands: int) -> SeatBound:
    """The best response of one seat's runs."""
    run = trained[0][0]
    responses = {
        f"{run.name}, {manner}": run.target.response(result.network, greedy=manner == "greedy")
        for run, result in trained
        for manner in ("greedy", "sampled")
    }
    chosen = choose_and_measure(run.target, run.seat, responses, hands=hands, seed=run.seed)
    cpu_seconds = sum(result.cpu_seconds for _, result in trained)
    return SeatBound(run.seat, chosen, len(trained), cpu_seconds)


def choose_and_measure(
    target: Target, seat: int, responses: Mapping[str, Any], *, hands: int, seed: int
) -> Gain:
    """Choose the response that gains most, on a quarter as many hands; measure it on fresh ones."""
    choosing = hand_streams((seed, seat, 0), hands // 4)
    fresh = hand_streams((seed, seat, 1), hands)
    best = max(response_gains(target, seat, responses, choosing), key=lambda found: found.gain)
    if best.gain <= 0:
        return NO_GAIN
    chosen = {best.candidate: responses[best.candidate]}
    return response_gains(target, seat, chosen, fresh)[0]


def response_gains(
    target: Target, seat: int, responses: Mapping[str, Any], streams: UInt64Array
) -> list[Gain]:
    """The gain of each response over the policy itself, on the hands of these random streams."""
    own, found = target.returns(seat, None, streams), []
    for name, response in responses.items():
        difference = target.returns(seat, response, streams) - own
        error = difference.std(ddof=1) / math.sqrt(len(difference))
        found.append(Gain(name, float(difference.mean()), float(error)))
    return found


# ---------------------------------------------------------------------------------------------
# Many runs
# ---------------------------------------------------------------------------------------------


def _train_in_turn(runs: Sequence[Run], progress: Advance) -> dict[Run, Trained]:
    def watch(done: int) -> None:
        before = sum(other.decisions for other in trained)
        progress(before + min(done, run.decisions), f"player_{run.seat}, {run.name}")

    trained: dict[Run, Trained] = {}
    for run in runs:
        trained[run] = train_response(run, watch)
    return trained


def _train_on_ray(
    runs: Sequence[Run], progress: Advance, *, cpus: int, address: str | None
) -> dict[Run, Trained]:
    """Train on one core per run; progress is reported when a run ends."""
    from algorithms.support.ray_cluster import connected

    trained: dict[Run, Trained] = {}
    with connected(address, cpus):
        import ray

        train = ray.remote(num_cpus=1)(train_response)
        waiting = {train.remote(run): run for run in runs}
        while waiting:
            (ready,), _ = ray.wait(list(waiting))
            trained[waiting.pop(ready)] = ray.get(ready)
            progress(sum(run.decisions for run in trained), f"{len(trained)} of {len(runs)} runs")
    return trained
