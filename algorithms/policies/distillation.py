"""Distillation: fit a network to a policy, so that it loses as little as possible.

With sigma the policy, pi_p(I) the reach probability of information set I by its owner's own
actions, and f the network's policy (a softmax over the legal actions), the loss is

    L = sum over I of pi_p(I) * (- sum over a of sigma(I, a) log f(I, a))          cross-entropy

An opponent chooses where it goes, but nobody can make a player visit an information set that the
player's own actions avoid. So an error at I costs chips in proportion to pi_p(I), not to the
probability that an episode arrives there. Without these weights most of the network is spent on
information sets that never occur.

Half of the weight goes into sampling and half into the loss: I is drawn with probability in
proportion to sqrt(pi_p(I)) and its cross-entropy is multiplied by sqrt(pi_p(I)). The expectation is
L, and neither are a few information sets drawn all the time, nor do a few samples dominate a batch.

Some tensors contain chips or counts beside zeros and ones, 20,000 of them in poker endgames. With
such an input x, units are saturated from the start and a step of Adam, which has the same size for
every weight, changes sums x times as much. So what is fitted is a network v of inputs x / s, with s
the largest |x| that occurs, or 1 if that is smaller; w = v / s is the network of x.

Adam (Kingma and Ba 2015) takes steps that fall linearly to 0, so that the noise of sampling dies
out. The network is measured along the way and the best one is kept. (Hinton, Vinyals and Dean 2015
called the idea distillation; Rusu et al. 2016 did it with policies.)
"""

import copy
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from algorithms.games.game import Game, PolicyRows, Table
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, IntpArray
from algorithms.support.progress import Advance

LEARNING_RATE = 4e-3
MAX_BATCH_SIZE = 2_048
DRAWS_PER_INFOSET = 4
READ_AT_A_TIME = 2**16  # information sets of a large game
MAX_NUMBERS = 2**26  # of inputs that are kept in memory: 256 MiB
ILLEGAL = -1e9  # is added to the logits of illegal actions


class Batch(NamedTuple):
    """Information sets that were drawn, and what the network should play there."""

    inputs: torch.Tensor  # float32 (n, size)
    policy: torch.Tensor  # float32 (n, A)
    mask: torch.Tensor  # float32 (n, A): 0 where an action is legal, else ILLEGAL
    weights: torch.Tensor  # float32 (n,) of each information set's cross-entropy


class Dataset(Protocol):
    """The policy to which a network is fitted, as batches of information sets."""

    num_infosets: int
    input_scales: Float32Array  # (size,) by which the inputs of batches are divided

    def draw(self, random: np.random.Generator, size: int) -> Batch:
        """Information sets in proportion to the square root of their weights."""


def default_steps(infosets: int) -> int:
    """The number of optimizer's steps for a policy of that many information sets."""
    by_size = np.interp(np.sqrt(infosets), [4, 32, 100], [1_000, 8_000, 10_000])
    # Millions of information sets are each drawn a few times.
    by_draws = DRAWS_PER_INFOSET * infosets / MAX_BATCH_SIZE
    return round(max(by_size, by_draws))


def default_batch_size(infosets: int) -> int:
    """The number of information sets per step, for a policy of that many."""
    return int(np.clip(6 * np.sqrt(infosets), 64, MAX_BATCH_SIZE))


class Fit(NamedTuple):
    """How a fit went; the network holds the best weights that were measured."""

    steps: int
    curve: tuple[tuple[int, float], ...]  # steps, and the measure after them
    interrupted: bool = False

    @property
    def best(self) -> float | None:
        """The smallest measure, which is that of the network; None if nothing was measured."""
        return min((value for _, value in self.curve), default=None)


class StratifiedSampler:
    """Draws numbers 0 to n - 1 in proportion to weights `(n,)`, spread evenly over each batch.

    One number is drawn from each of `size` equal shares of the total weight, so a batch has every
    information set about as often as it should, which is less noise than independent draws.
    """

    def __init__(self, weights: Float64Array) -> None:
        self._cumulative = np.cumsum(weights)

    def draw(self, random: np.random.Generator, size: int) -> IntpArray:
        """Numbers `(size,)` in ascending order."""
        shares = (np.arange(size) + random.random(size)) / size
        numbers = np.searchsorted(self._cumulative, shares * self._cumulative[-1], side="right")
        return np.asarray(np.minimum(numbers, len(self._cumulative) - 1), np.intp)


class StoredDataset:
    """A policy with one row per information set, all of them in memory."""

    def __init__(self, rows: PolicyRows, weights: Float64Array) -> None:
        # Only information sets where something is decided, and where their owner goes, matter.
        used = np.flatnonzero((weights > 0) & (rows.legal.sum(axis=1) > 1))
        if len(used) == 0:
            used = np.flatnonzero(weights > 0)
        self.num_infosets = len(used)
        self.input_scales = largest_inputs(rows.inputs)
        roots = np.sqrt(weights[used])
        self._sampler = StratifiedSampler(roots)
        self._inputs = torch.from_numpy(rows.inputs[used] / self.input_scales)
        self._policy = torch.from_numpy(np.array(rows.probabilities[used], np.float32))
        self._mask = mask_of(rows.legal[used])
        self._weights = loss_weights(roots)

    def draw(self, random: np.random.Generator, size: int) -> Batch:
        """Information sets in proportion to the square root of their weights."""
        drawn = torch.from_numpy(self._sampler.draw(random, size))
        return Batch(
            inputs=self._inputs[drawn],
            policy=self._policy[drawn],
            mask=self._mask[drawn],
            weights=self._weights[drawn],
        )


class StreamedDataset:
    """A policy of a large game, whose rows are made when they are drawn, many batches at a time."""

    def __init__(self, game: Game, table: Table, weights: Float64Array) -> None:
        self._game = game
        self._table = table
        roots = np.sqrt(weights)
        largest = []  # of each part, (size,)
        for start in range(0, len(roots), READ_AT_A_TIME):
            infosets = np.arange(start, min(start + READ_AT_A_TIME, len(roots)))
            infosets = infosets[roots[infosets] > 0]
            rows = game.policy_rows(table, infosets)
            roots[infosets[rows.legal.sum(axis=1) == 1]] = 0
            largest.append(largest_inputs(rows.inputs))
        self.input_scales = np.max(largest, axis=0)
        self.num_infosets = int(np.count_nonzero(roots))
        self._sampler = StratifiedSampler(roots)
        self._weights = loss_weights(roots)
        self._drawn: list[Batch] = []

    def draw(self, random: np.random.Generator, size: int) -> Batch:
        """Information sets in proportion to the square root of their weights."""
        if not self._drawn or len(self._drawn[-1].inputs) != size:
            self._drawn = self._draw_batches(random, size)
        return self._drawn.pop()

    def _draw_batches(self, random: np.random.Generator, size: int) -> list[Batch]:
        """Batches of one large draw: of its shares in order, batch k of n has k, k + n, ..."""
        count = max(1, READ_AT_A_TIME // size)
        drawn = self._sampler.draw(random, count * size)
        rows = self._game.policy_rows(self._table, drawn)
        inputs = torch.from_numpy(rows.inputs / self.input_scales)
        policy = torch.from_numpy(np.asarray(rows.probabilities, np.float32))
        mask = mask_of(rows.legal)
        weights = self._weights[torch.from_numpy(drawn)]
        return [
            Batch(
                inputs=inputs[batch::count],
                policy=policy[batch::count],
                mask=mask[batch::count],
                weights=weights[batch::count],
            )
            for batch in range(count)
        ]


def largest_inputs(inputs: Float32Array) -> Float32Array:
    """The largest absolute value of each of the inputs `(n, size)`, at least 1: `(size,)`."""
    largest = inputs.max(axis=0, initial=1)
    smallest = inputs.min(axis=0, initial=-1)
    return np.asarray(np.maximum(largest, -smallest))


def mask_of(legal: BoolArray) -> torch.Tensor:
    """What is added to logits: 0 where an action is legal, else `ILLEGAL`; float32 `(n, A)`."""
    return torch.from_numpy(np.where(legal, np.float32(0), np.float32(ILLEGAL)))


def loss_weights(roots: Float64Array) -> torch.Tensor:
    """Square roots of weights, divided by the mean of a draw, so all games' steps are as long."""
    mean = float((roots * roots).sum() / roots.sum())
    return torch.from_numpy((roots / mean).astype(np.float32))


def make_dataset(game: Game, table: Table) -> Dataset:
    """The information sets of a table, in memory if they fit."""
    weights = game.own_reach(table)
    reached = np.flatnonzero(weights > 0)
    size = game.policy_rows(table, reached[:1]).inputs.shape[1]
    if len(reached) * size > MAX_NUMBERS:
        return StreamedDataset(game, table, weights)
    return StoredDataset(game.policy_rows(table, reached), weights[reached])


def fit(  # noqa: PLR0913  # options by name
    actor: nn.Module,
    dataset: Dataset,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    measure: Callable[[], float] | None = None,
    points: int = 25,
    progress: Advance | None = None,
) -> Fit:
    """Fit a network, float32 `(n, size)` -> logits `(n, A)`, to batches of a dataset, in place.

    Ctrl-C ends the fit early.

    Args:
        actor: network whose parameters are fitted, starting from what they are.
        dataset: information sets, and the policy to be played there.
        steps: number of optimizer's steps; by default `default_steps`.
        batch_size: number of information sets per step; by default `default_batch_size`.
        seed: random seed of the draws.
        measure: NashConv of the network as it is now; the best one that was measured is kept.
        points: number of measures; the last one is after the last step.
        progress: called with the number of steps so far and a note.
    """
    if steps is None:
        steps = default_steps(dataset.num_infosets)
    if batch_size is None:
        batch_size = default_batch_size(dataset.num_infosets)
    random = np.random.default_rng(seed)
    parameters = list(actor.parameters())
    device = parameters[0].device
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    measured_steps = {round(steps * (point + 1) / points) for point in range(points)}
    shown_every = max(1, steps // 100)
    curve: list[tuple[int, float]] = []
    best = _copied(actor)
    step = 0
    interrupted = False

    def measure_now() -> None:
        nonlocal best
        if measure is None:
            return
        value = measure()
        if not curve or value < min(known for _, known in curve):
            best = _copied(actor)
        curve.append((step, value))

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more threads mostly wait for each other in layers of this size
    try:
        for done in range(steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - done / steps)
            drawn = dataset.draw(random, batch_size)
            batch = Batch(*(tensor.to(device) for tensor in drawn))
            optimizer.zero_grad()
            loss = weighted_cross_entropy(actor(batch.inputs), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step = done + 1
            if step in measured_steps:
                measure_now()
            if progress and step % shown_every == 0:
                progress(step, f"NashConv {curve[-1][1]:.2e}" if curve else "")
    except KeyboardInterrupt:
        interrupted = True
        if not curve or curve[-1][0] < step:
            measure_now()
    finally:
        torch.set_num_threads(threads)
    if measure is not None:
        actor.load_state_dict(best)
    return Fit(steps=step, curve=tuple(curve), interrupted=interrupted)


def unscaled(network: nn.Sequential, scales: Float32Array) -> nn.Sequential:
    """The network of x that does what `network` does with x / `scales`, `(size,)`: a copy."""
    copied = copy.deepcopy(network)
    first_weights = next(copied.parameters())  # (units, size)
    with torch.no_grad():
        first_weights.div_(torch.from_numpy(scales).to(first_weights.device))
    return copied


def weighted_cross_entropy(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The mean over a batch of weight * cross-entropy over the legal actions."""
    log_probabilities = (logits + batch.mask).log_softmax(dim=1)
    cross_entropy = -(batch.policy * log_probabilities).sum(dim=1)
    return (batch.weights * cross_entropy).mean()


def _copied(module: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the module's weights."""
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}
