"""Training one response: stock `MaskablePPO` as a single agent against a frozen policy.

The policy plays all other seats inside the environment, so the problem is stationary: unlike in
self-play (`learner`) nothing has to be averaged, and learning rate and entropy bonus fall to 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from algorithms.exact.simulator import running_sums
from algorithms.exact.values import joint_policy
from algorithms.games import Game
from algorithms.learning.common_hands import state_returns, tree_returns
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.learning.learner import ILLEGAL
from algorithms.learning.states import StatePolicy
from algorithms.learning.training import unchecked_distributions
from algorithms.policies.network import masked_softmax, network_table
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    UInt64Array,
)

# Where a network begins: with what it learned by imitating the policy, or with random weights.
Start: TypeAlias = Literal["imitation", "scratch"]
STARTS: tuple[Start, ...] = ("imitation", "scratch")

MIN_UPDATES = 32  # in a short run


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSettings:
    """How a response is trained, apart from the number of decisions."""

    n_envs: int = 1024  # fewer in a short run, so that there are a few updates
    n_steps: int = 8
    batch_size: int = 1024
    n_epochs: int = 1
    learning_rate: float = 3e-3  # falls to 0
    clip_range: float = 0.2
    gae_lambda: float = 0.95
    ent_coef: float = 0.2  # keeps all actions in play until it is known what follows them
    ent_coef_end: float = 0.002  # falls geometrically
    width: int = 128  # units of each of two hidden layers
    imitated_share: float = 0.8  # of the policy, in a mixture with uniform play
    imitated_decisions: int = 100_000
    imitation_epochs: int = 3
    imitation_batch: int = 1024
    imitation_rate: float = 3e-3  # falls to 1%


# ---------------------------------------------------------------------------------------------
# The policy to respond to, on the tree or on states
# ---------------------------------------------------------------------------------------------


class Target(Protocol):
    """A policy of all seats, and how its hands are played."""

    @property
    def game(self) -> Game:
        """What is played."""

    def env(self, seat: int, *, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, with the policy in all others."""

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""

    def response(self, network: nn.Module, *, greedy: bool) -> Any:
        """What a network of logits plays, in the form that `returns` takes."""

    def returns(self, seat: int, response: Any, streams: UInt64Array) -> Float64Array:
        """What a seat wins in each hand with a response; None: with the policy. `(hands,)`."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeTarget:
    """A table `(I, A)`, whose hands are played on the game's tree."""

    game: Game
    table: Float64Array

    def env(self, seat: int, *, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, with the policy in all others."""
        others = _others(self.game, seat, self.table)
        return SelfPlayVecEnv(n_envs, self.game, seed=seed, on="tree", opponents=others)

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""
        simulator: Any = env.simulator
        return np.asarray(self.table[simulator.infosets])

    def response(self, network: nn.Module, *, greedy: bool) -> Float64Array:
        """What a network of logits plays: a table `(I, A)`."""
        table = network_table(network, self.game)
        return _greedy(table) if greedy else table

    def returns(
        self, seat: int, response: Float64Array | None, streams: UInt64Array
    ) -> Float64Array:
        """What a seat wins in each hand with a response; None: with the policy. `(hands,)`."""
        tables = [self.table] * self.game.num_players
        if response is not None:
            tables[seat] = response
        return tree_returns(self.game.tree, joint_policy(self.game.tree, tables), streams)[:, seat]


@dataclass(frozen=True, slots=True, eq=False)
class StateTarget:
    """A function of observations and masks, whose hands are played on OpenSpiel's states."""

    game: Game
    policy: StatePolicy

    def env(self, seat: int, *, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, with the policy in all others."""
        others = _others(self.game, seat, self.policy)
        return SelfPlayVecEnv(n_envs, self.game, seed=seed, on="states", opponents=others)

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """What the policy would do in the environment's hands now: `(n, A)`."""
        simulator: Any = env.simulator
        return np.asarray(self.policy(simulator.observations, simulator.masks), np.float64)

    def response(self, network: nn.Module, *, greedy: bool) -> StatePolicy:
        """What a network of logits plays: a function of observations and masks."""
        return partial(_network_probabilities, network, greedy)

    def returns(
        self, seat: int, response: StatePolicy | None, streams: UInt64Array
    ) -> Float64Array:
        """What a seat wins in each hand with a response; None: with the policy. `(hands,)`."""
        policies = [self.policy] * self.game.num_players
        if response is not None:
            policies[seat] = response
        return state_returns(self.game, policies, streams)[:, seat]


def _others(game: Game, seat: int, policy: Any) -> dict[int, Any]:
    return {other: policy for other in range(game.num_players) if other != seat}


def _network_probabilities(
    network: nn.Module, greedy: bool, observations: Float32Array, masks: BoolArray
) -> Float64Array:
    with torch.no_grad():
        logits = network(torch.as_tensor(observations)).double().numpy()
    probabilities = masked_softmax(logits, masks)
    return _greedy(probabilities) if greedy else probabilities


def _greedy(probabilities: Float64Array) -> Float64Array:
    """All weight on the most probable action of each row `(n, A)`."""
    return np.asarray(np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)])


def uniform_play(observations: Float32Array, masks: BoolArray) -> Float64Array:
    """Every legal action equally often, as a policy on states: `(n, A)`."""
    return np.asarray(masks / masks.sum(axis=1, keepdims=True))


# ---------------------------------------------------------------------------------------------
# Training
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run."""

    target: Target
    seat: int
    start: Start
    seed: int
    decisions: int
    settings: ResponseSettings = field(default_factory=ResponseSettings)

    @property
    def name(self) -> str:
        """Which run of its seat it is."""
        return f"{self.start}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network, observations `(n, size)` to logits `(n, A)`, and what it took."""

    network: nn.Module
    cpu_seconds: float


def train_response(run: Run, watch: Callable[[int], None] | None = None) -> Trained:
    """Train a response; `watch` is called with the number of decisions so far."""
    began, settings = time.process_time(), run.settings
    n_envs = min(settings.n_envs, max(64, run.decisions // (MIN_UPDATES * settings.n_steps)))
    hands = run.target.env(run.seat, n_envs=n_envs, seed=run.seed)
    imitated = min(settings.imitated_decisions, run.decisions)
    played = _play_mixture(run.target, hands, decisions=imitated, share=settings.imitated_share)
    model: Any = MaskablePPO(
        "MlpPolicy",
        _ScaledRewards(hands, played.spread),
        n_steps=settings.n_steps,
        batch_size=min(settings.batch_size, n_envs * settings.n_steps),
        n_epochs=settings.n_epochs,
        learning_rate=lambda remaining: settings.learning_rate * remaining,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        policy_kwargs={"net_arch": [settings.width] * 2, "activation_fn": nn.ReLU},
        seed=run.seed,
        device="cpu",
    )
    if run.start == "imitation":
        _imitate(model.policy, played, settings)
    with unchecked_distributions():
        model.learn(run.decisions, callback=_EntropySchedule(settings, watch))
    return Trained(actor_of(model.policy), time.process_time() - began)


class _ScaledRewards(VecEnvWrapper):
    """Rewards divided by their spread, so that the value loss fits games of any stakes."""

    def __init__(self, venv: SelfPlayVecEnv, spread: float) -> None:
        super().__init__(venv)
        self._spread = np.float32(spread)

    def reset(self) -> Any:
        """Deal all hands anew."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Play the actions."""
        observations, rewards, ended, infos = self.venv.step_wait()
        return observations, rewards / self._spread, ended, infos


class _EntropySchedule(BaseCallback):
    """Lowers the entropy bonus, and tells how far the run is."""

    model: Any

    def __init__(self, settings: ResponseSettings, watch: Callable[[int], None] | None) -> None:
        super().__init__()
        self._settings, self._watch = settings, watch

    def _on_rollout_start(self) -> None:
        done = self.model.num_timesteps / self.model._total_timesteps
        first, last = self._settings.ent_coef, self._settings.ent_coef_end
        self.model.ent_coef = first * (last / first) ** done
        if self._watch:
            self._watch(self.model.num_timesteps)

    def _on_step(self) -> bool:
        return True


# ---------------------------------------------------------------------------------------------
# Imitation
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Played:
    """Decisions of finished hands in which a seat mixes the policy with uniform play."""

    observations: torch.Tensor  # (n, size)
    masks: torch.Tensor  # (n, A)
    probabilities: torch.Tensor  # (n, A) of the mixture
    returns: torch.Tensor  # (n,) of the hand, divided by their spread
    spread: float  # the standard deviation of returns, in chips


def _play_mixture(
    target: Target, hands: SelfPlayVecEnv, *, decisions: int, share: float
) -> _Played:
    rng, steps = np.random.default_rng(0), -(-decisions // hands.num_envs)
    observations = hands.reset()
    history = []
    for _ in range(steps):
        masks = hands.action_masks()
        mixture = share * target.probabilities(hands)
        mixture += (1 - share) * uniform_play(observations, masks)
        hands.step_async(_sampled(mixture, rng))
        before, (observations, rewards, ended, _) = observations, hands.step_wait()
        history.append((before, masks, mixture, rewards, ended))
    seen, legal, mixtures, paid, ends = (np.stack(part) for part in zip(*history, strict=True))
    returns, finished = _hand_returns(paid, ends)
    spread = float(paid[ends].std()) or 1.0
    return _Played(
        torch.as_tensor(seen[finished]),
        torch.as_tensor(legal[finished]),
        torch.as_tensor(mixtures[finished], dtype=torch.float32),
        torch.as_tensor(returns[finished] / spread, dtype=torch.float32),
        spread,
    )


def _sampled(probabilities: Float64Array, rng: np.random.Generator) -> Int64Array:
    """An action drawn from each row `(n, A)`: `(n,)`."""
    sums = running_sums(probabilities)
    return np.asarray((sums <= rng.random((len(sums), 1))).sum(axis=1), np.int64)


def _hand_returns(rewards: Float32Array, ended: BoolArray) -> tuple[Float32Array, BoolArray]:
    """What the hand of each decision `(steps, n)` pays at its end, and whether it has ended."""
    returns, finished = np.zeros_like(rewards), np.zeros_like(ended)
    paid, known = np.zeros_like(rewards[0]), np.zeros_like(ended[0])
    for step in reversed(range(len(rewards))):
        paid, known = np.where(ended[step], rewards[step], paid), known | ended[step]
        returns[step], finished[step] = paid, known
    return returns, finished


def _imitate(policy: Any, played: _Played, settings: ResponseSettings) -> None:
    """Fit an SB3 policy's actor to the mixture, and its critic to the returns."""
    actor = actor_of(policy)
    critic_parts = (policy.vf_features_extractor, policy.mlp_extractor.value_net, policy.value_net)
    critic = nn.Sequential(*critic_parts)
    optimizer = torch.optim.Adam(policy.parameters())
    steps = -(-settings.imitation_epochs * len(played.returns) // settings.imitation_batch)
    for left in np.linspace(1, 0.01, steps):
        optimizer.param_groups[0]["lr"] = settings.imitation_rate * left
        batch = torch.randint(len(played.returns), (settings.imitation_batch,))
        observations = played.observations[batch]
        logits = actor(observations).masked_fill(~played.masks[batch], ILLEGAL)
        cross_entropy = -(played.probabilities[batch] * logits.log_softmax(1)).sum(1).mean()
        value_loss = nn.functional.mse_loss(critic(observations)[:, 0], played.returns[batch])
        optimizer.zero_grad()
        (cross_entropy + value_loss).backward()
        optimizer.step()
