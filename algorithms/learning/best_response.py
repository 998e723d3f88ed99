"""Trained best responses: a lower bound of NashConv in games of any size.

NashConv sums, over seats i, what the best policy of that seat gains against the others:

    NashConv(p) = sum_i max_b [u_i(b, p_-i) - u_i(p)]

Where the maximum cannot be computed, any single b in its place gives a bound from below. Here b is
trained: p is frozen in the other seats, which makes the game a problem for a single agent, and stock
`MaskablePPO` learns it. How much of the maximum it finds is unknown, so

- a small bound does not show that NashConv is small, and
- bounds do not rank policies: a policy may have the smaller one because it is harder to learn against.

For each seat:

1. Train per seed two networks: one from scratch, and one that first imitates 0.8 p + 0.2 uniform play,
   so that it starts near u_i(p) even where p is hard to beat.
2. Candidates are each network greedy and sampled, and p itself, whose gain is 0 exactly. All of them
   play the same hands; the one that gains most is chosen.
3. The chosen one plays fresh hands, as many as was fixed before, once. Choosing and measuring on the
   same hands would overstate the gain, as a maximum of noisy figures does.

The estimate for the chosen response is unbiased: its 95% interval contains u_i(b, p_-i) - u_i(p) in 95%
of repetitions. Both sides of the difference are played with common random numbers (`common_hands`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from algorithms.exact.simulator import running_sums
from algorithms.exact.values import seated
from algorithms.games import Game
from algorithms.learning.common_hands import hand_streams, state_returns, tree_returns
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.learning.learner import ILLEGAL, network_table
from algorithms.learning.states import StatePolicy
from algorithms.learning.training import _unchecked_distributions
from algorithms.policies.answers import masked_softmax
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, UInt64Array
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance

DECISIONS = 2_000_000  # of each run
HANDS = 200_000  # to choose by, and again to report
LEAST_HANDS = 1_000  # fewer say too little about their own spread
QUANTILE = 1.959964  # of the normal distribution: 95% lie within so many standard errors
TARGET = "the policy itself"

Start: TypeAlias = Literal["imitation", "scratch"]
STARTS: tuple[Start, ...] = ("imitation", "scratch")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSettings:
    """How a response is trained; learning rate and entropy fall to 0."""

    n_envs: int = 1024
    n_steps: int = 8
    batch_size: int = 2048
    n_epochs: int = 4
    learning_rate: float = 1e-3
    clip_range: float = 0.2
    gae_lambda: float = 0.95
    ent_coef: float = 0.05
    ent_until: float = 0.8  # the share of the run after which the entropy bonus is 0
    width: int = 128
    imitated_share: float = 0.8
    imitated_decisions: int = 100_000
    imitation_steps: int = 300
    imitation_rate: float = 3e-3
    imitation_batch: int = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatBound:
    """What the chosen response of one seat gains on fresh hands, in chips per hand."""

    seat: int
    gain: float
    standard_error: float
    response: str  # which candidate was chosen
    hands: int
    runs: int
    decisions: int  # that each run learned from
    cpu_seconds: float  # of all runs

    @property
    def found(self) -> bool:
        """Whether a response was chosen rather than the policy itself."""
        return self.response != TARGET


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound of a policy's NashConv, from one chosen response per seat."""

    game: str
    seats: tuple[SeatBound, ...]

    @property
    def nash_conv_at_least(self) -> float:
        """The sum of the gains; not below 0, as NashConv is not."""
        return max(0.0, sum(seat.gain for seat in self.seats))

    @property
    def interval(self) -> tuple[float, float]:
        """95% of such intervals contain what the responses gain: their hands are independent."""
        total = sum(seat.gain for seat in self.seats)
        reach = QUANTILE * math.hypot(*(seat.standard_error for seat in self.seats))
        return max(0.0, total - reach), max(0.0, total + reach)

    @property
    def found(self) -> bool:
        """Whether any seat's response gains anything."""
        return any(seat.found for seat in self.seats)


def lower_bound(
    game: Game,
    policy: Float64Array | StatePolicy,
    *,
    decisions: int = DECISIONS,
    hands: int = HANDS,
    seeds: Sequence[int] = (0,),
    cpus: int = 1,
    address: str | None = None,
    settings: ResponseSettings | None = None,
    progress: Advance | None = None,
) -> LowerBound:
    """Train responses to a policy in every seat, and measure the best of each.

    Args:
        game: what is played.
        policy: what all seats play: a table `(I, A)`, then hands are played on the game's tree, or a
            function from observations `(n, size)` and masks `(n, A)` to probabilities `(n, A)`, then
            they are played on OpenSpiel's states.
        decisions: that each run learns from.
        hands: to choose a response by, and the same number again to measure it.
        seeds: of the runs; with more of them the best response is found more often.
        cpus: how many runs at a time; more than 1 run on Ray.
        address: of a Ray cluster.
        settings: of the training.
        progress: called with how many decisions were learned from in total (see `total_decisions`),
            and a word about it.
    """
    _require_possible(game, decisions=decisions, hands=hands, seeds=seeds, cpus=cpus)
    target = _target(game, policy)
    runs = [
        Run(seat=seat, start=start, seed=seed, decisions=decisions)
        for seat in range(game.num_players)
        for seed in seeds
        for start in STARTS
    ]
    trained = _train_all(
        target,
        runs,
        settings or ResponseSettings(),
        cpus=cpus,
        address=address,
        progress=progress,
    )
    bounds = []
    for seat in range(game.num_players):
        own = {run: trained[run] for run in runs if run.seat == seat}
        responses = {
            f"{run.name}, {manner}": target.response(result.network, greedy=manner == "greedy")
            for run, result in own.items()
            for manner in ("greedy", "sampled")
        }
        chosen = choose_and_measure(target, seat, responses, hands=hands, seed=min(seeds))
        cpu_seconds = sum(result.cpu_seconds for result in own.values())
        bounds.append(
            SeatBound(
                seat=seat,
                gain=chosen.gain,
                standard_error=chosen.standard_error,
                response=chosen.response,
                hands=hands,
                runs=len(own),
                decisions=decisions,
                cpu_seconds=cpu_seconds,
            )
        )
    return LowerBound(game.name, tuple(bounds))


def total_decisions(game: Game, *, decisions: int = DECISIONS, seeds: Sequence[int] = (0,)) -> int:
    """How many decisions all runs of `lower_bound` learn from."""
    return game.num_players * len(seeds) * len(STARTS) * decisions


def uniform_play(observations: Float32Array, masks: BoolArray) -> Float64Array:
    """Every legal action equally often, on states: `(n, A)`."""
    return np.asarray(masks / masks.sum(axis=1, keepdims=True))


def _require_possible(
    game: Game, *, decisions: int, hands: int, seeds: Sequence[int], cpus: int
) -> None:
    if decisions < 1:
        raise UsageError(f"decisions={decisions}: want at least 1")
    if hands < LEAST_HANDS:
        raise UsageError(f"hands={hands}: want at least {LEAST_HANDS:,}")
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)}: want different whole numbers from 0 up")
    if cpus < 1:
        raise UsageError(f"cpus={cpus}: want at least 1")


# ---------------------------------------------------------------------------------------------
# The policy to respond to, on the tree or on states
# ---------------------------------------------------------------------------------------------


class Target(Protocol):
    """A policy of all seats, and where its hands are played."""

    game: Game

    def env(self, seat: int, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, the policy in all others."""

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""

    def response(self, network: nn.Module, *, greedy: bool) -> Any:
        """What a network of logits plays, as `returns` takes it."""

    def returns(self, seat: int, response: Any, streams: UInt64Array) -> Float64Array:
        """What a seat wins in each hand with a response, or with the policy if None: `(hands,)`."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeTarget:
    """A table `(I, A)`, on the game's tree."""

    game: Game
    table: Float64Array

    def env(self, seat: int, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, the policy in all others."""
        others = {s: self.table for s in range(self.game.num_players) if s != seat}
        return SelfPlayVecEnv(n_envs, self.game, seed=seed, on="tree", opponents=others)

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""
        return np.asarray(self.table[env.simulator.infosets])

    def response(self, network: nn.Module, *, greedy: bool) -> Float64Array:
        """What a network of logits plays: a table `(I, A)`."""
        table = network_table(network, self.game)
        return np.eye(table.shape[1])[table.argmax(axis=1)] if greedy else table

    def returns(
        self, seat: int, response: Float64Array | None, streams: UInt64Array
    ) -> Float64Array:
        """What a seat wins in each hand with a response, or with the policy if None: `(hands,)`."""
        joint = [self.table] * self.game.num_players
        if response is not None:
            joint[seat] = response
        return tree_returns(self.game.tree, seated(self.game.tree, joint), streams)[:, seat]


@dataclass(frozen=True, slots=True, eq=False)
class StateTarget:
    """A function of observations and masks, on OpenSpiel's states."""

    game: Game
    policy: StatePolicy

    def env(self, seat: int, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, the policy in all others."""
        others = {s: self.policy for s in range(self.game.num_players) if s != seat}
        return SelfPlayVecEnv(n_envs, self.game, seed=seed, on="states", opponents=others)

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""
        simulator: Any = env.simulator
        return np.asarray(self.policy(simulator.observations, simulator.masks), np.float64)

    def response(self, network: nn.Module, *, greedy: bool) -> StatePolicy:
        """What a network of logits plays."""
        return partial(_network_probabilities, network, greedy)

    def returns(
        self, seat: int, response: StatePolicy | None, streams: UInt64Array
    ) -> Float64Array:
        """What a seat wins in each hand with a response, or with the policy if None: `(hands,)`."""
        joint = [self.policy] * self.game.num_players
        if response is not None:
            joint[seat] = response
        return state_returns(self.game, joint, streams)[:, seat]


def _target(game: Game, policy: Float64Array | StatePolicy) -> TreeTarget | StateTarget:
    return StateTarget(game, policy) if callable(policy) else TreeTarget(game, policy)


def _network_probabilities(
    network: nn.Module, greedy: bool, observations: Float32Array, masks: BoolArray
) -> Float64Array:
    with torch.no_grad():
        logits = network(torch.as_tensor(observations)).double().numpy()
    table = masked_softmax(logits, masks)
    return np.eye(table.shape[1])[table.argmax(axis=1)] if greedy else table


# ---------------------------------------------------------------------------------------------
# Choosing and measuring
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gain:
    """What a response gains over the policy itself, in chips per hand."""

    response: str
    gain: float
    standard_error: float


def choose_and_measure(
    target: Target, seat: int, responses: Mapping[str, Any], *, hands: int, seed: int
) -> Gain:
    """Choose the response that gains most on some hands, and measure it on as many fresh ones."""
    choosing, fresh = (np.random.SeedSequence((seed, seat, part)) for part in range(2))
    found = gains(target, seat, responses, hand_streams(choosing, hands))
    best = max(found, key=lambda candidate: candidate.gain, default=Gain(TARGET, 0.0, 0.0))
    if best.gain <= 0:
        return Gain(TARGET, 0.0, 0.0)
    chosen = {best.response: responses[best.response]}
    return gains(target, seat, chosen, hand_streams(fresh, hands))[0]


def gains(
    target: Target, seat: int, responses: Mapping[str, Any], streams: UInt64Array
) -> list[Gain]:
    """The gain of each response, on the hands of these random streams."""
    own, found = target.returns(seat, None, streams), []
    for name, response in responses.items():
        difference = target.returns(seat, response, streams) - own
        error = difference.std(ddof=1) / math.sqrt(len(streams))
        found.append(Gain(name, float(difference.mean()), float(error)))
    return found


# ---------------------------------------------------------------------------------------------
# Training
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run."""

    seat: int
    start: Start
    seed: int
    decisions: int

    @property
    def name(self) -> str:
        """Which run of its seat it is."""
        return f"{_STARTED[self.start]} (seed {self.seed})"


_STARTED = {"imitation": "started by imitation", "scratch": "from scratch"}


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network, `(n, size)` observations to `(n, A)` logits, and what it took."""

    network: nn.Module
    cpu_seconds: float


def train_response(
    target: Target, run: Run, settings: ResponseSettings, watch: Callable[[int], None] | None = None
) -> Trained:
    """Train MaskablePPO as a single agent in one seat; `watch` is told the decisions so far."""
    began = time.process_time()
    env = _ScaledRewards(target.env(run.seat, settings.n_envs, run.seed))
    model: Any = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        learning_rate=lambda remaining: settings.learning_rate * remaining,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.ent_coef,
        policy_kwargs={"net_arch": [settings.width] * 2, "activation_fn": nn.ReLU},
        seed=run.seed,
        device="cpu",
    )
    played = _play(target, env, settings)
    env.scale = played.spread
    if run.start == "imitation":
        _imitate(model.policy, played, settings)
    with _unchecked_distributions():
        model.learn(run.decisions, callback=_Schedule(settings, watch))
    return Trained(actor_of(model.policy), time.process_time() - began)


class _ScaledRewards(VecEnvWrapper):
    """Rewards in units of their own spread, so that the value loss fits games of any stakes."""

    scale = 1.0

    def reset(self) -> Any:
        """Deal all hands anew."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Play the actions."""
        observations, rewards, ended, infos = self.venv.step_wait()
        return observations, rewards / self.scale, ended, infos


class _Schedule(BaseCallback):
    """Lowers the entropy bonus, and reports how far the run is."""

    model: Any

    def __init__(self, settings: ResponseSettings, watch: Callable[[int], None] | None) -> None:
        super().__init__()
        self._settings, self._watch = settings, watch

    def _on_rollout_start(self) -> None:
        done = self.model.num_timesteps / self.model._total_timesteps
        left = max(0.0, 1 - done / self._settings.ent_until)
        self.model.ent_coef = self._settings.ent_coef * left
        if self._watch:
            self._watch(self.model.num_timesteps)

    def _on_step(self) -> bool:
        return True


# ---------------------------------------------------------------------------------------------
# Imitation
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Played:
    """Decisions of hands in which a seat plays a mixture of the policy and uniform play."""

    observations: torch.Tensor  # (n, size)
    masks: torch.Tensor  # (n, A)
    probabilities: torch.Tensor  # (n, A) of the mixture
    returns: torch.Tensor  # (n,) of the hand, in units of their spread
    spread: float  # the standard deviation of returns in chips


def _play(target: Target, env: Any, settings: ResponseSettings) -> Played:
    """Play until there are enough decisions of finished hands."""
    hands: SelfPlayVecEnv = env.venv
    rng, steps = np.random.default_rng(0), -(-settings.imitated_decisions // hands.num_envs)
    observations, masks, mixtures, rewards, ends = [], [], [], [], []
    seen = hands.reset()
    for _ in range(steps):
        legal = hands.action_masks()
        share = settings.imitated_share
        mixture = share * target.probabilities(hands) + (1 - share) * uniform_play(seen, legal)
        observations.append(seen)
        masks.append(legal)
        mixtures.append(mixture)
        hands.step_async(_sampled(mixture, rng))
        seen, reward, ended, _ = hands.step_wait()
        rewards.append(reward)
        ends.append(ended)
    returns, finished = _hand_returns(np.stack(rewards), np.stack(ends))
    spread = float(np.stack(rewards)[np.stack(ends)].std()) or 1.0
    return Played(
        torch.as_tensor(np.stack(observations)[finished]),
        torch.as_tensor(np.stack(masks)[finished]),
        torch.as_tensor(np.stack(mixtures)[finished], dtype=torch.float32),
        torch.as_tensor(returns[finished] / spread, dtype=torch.float32),
        spread,
    )


def _sampled(probabilities: Float64Array, rng: np.random.Generator) -> Any:
    """An action drawn from each row `(n, A)`: `(n,)`."""
    sums = running_sums(probabilities)
    return (sums <= rng.random((len(sums), 1))).sum(axis=1)


def _hand_returns(rewards: Float32Array, ended: BoolArray) -> tuple[Float32Array, BoolArray]:
    """What the hand of each decision `(steps, n)` pays in the end, and whether it has ended."""
    returns, finished = np.zeros_like(rewards), np.zeros_like(ended)
    later, known = np.zeros_like(rewards[0]), np.zeros_like(ended[0])
    for step in reversed(range(len(rewards))):
        later = np.where(ended[step], rewards[step], later)
        known = known | ended[step]
        returns[step], finished[step] = later, known
    return returns, finished


def _imitate(policy: Any, played: Played, settings: ResponseSettings) -> None:
    """Fit an SB3 policy to the mixture, and its values to the returns."""
    rates = settings.imitation_rate * np.linspace(1, 0.01, settings.imitation_steps)
    optimizer = torch.optim.Adam(policy.parameters(), lr=settings.imitation_rate)
    actor = actor_of(policy)
    critic = nn.Sequential(
        policy.vf_features_extractor, policy.mlp_extractor.value_net, policy.value_net
    )
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        some = torch.randint(len(played.returns), (settings.imitation_batch,))
        observations = played.observations[some]
        logits = actor(observations).masked_fill(~played.masks[some], ILLEGAL)
        loss = -(played.probabilities[some] * logits.log_softmax(1)).sum(1).mean()
        loss = loss + nn.functional.mse_loss(critic(observations)[:, 0], played.returns[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# ---------------------------------------------------------------------------------------------
# Many runs
# ---------------------------------------------------------------------------------------------


def _train_all(
    target: Target,
    runs: Sequence[Run],
    settings: ResponseSettings,
    *,
    cpus: int,
    address: str | None,
    progress: Advance | None,
) -> dict[Run, Trained]:
    """Every run, one after another or on Ray."""
    if cpus == 1 and address is None:
        return dict(zip(runs, _in_turn(target, runs, settings, progress), strict=True))
    return _on_ray(target, runs, settings, cpus=cpus, address=address, progress=progress)


def _in_turn(
    target: Target, runs: Sequence[Run], settings: ResponseSettings, progress: Advance | None
) -> Iterator[Trained]:
    for number, run in enumerate(runs):
        note, before = f"player_{run.seat}, {run.name}", number * run.decisions
        watch = None
        if progress:
            watch = lambda done: progress(before + min(done, run.decisions), note)
        yield train_response(target, run, settings, watch)


def _on_ray(
    target: Target,
    runs: Sequence[Run],
    settings: ResponseSettings,
    *,
    cpus: int,
    address: str | None,
    progress: Advance | None,
) -> dict[Run, Trained]:
    """As many runs at a time as there are cores; progress is by finished runs."""
    from algorithms.learning.sweeping.cluster import connected

    with connected(address, cpus):
        import ray

        shared = ray.put((target, settings))
        remote = ray.remote(num_cpus=1)(_remote)
        waiting = {remote.remote(shared, run): run for run in runs}
        trained: dict[Run, Trained] = {}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            run = waiting.pop(ready)
            trained[run] = ray.get(ready)
            if progress:
                done = sum(run.decisions for run in trained)
                progress(done, f"{len(trained)} of {len(runs)} runs")
    return trained


def _remote(shared: tuple[Target, ResponseSettings], run: Run) -> Trained:
    torch.set_num_threads(1)
    return train_response(shared[0], run, shared[1])
