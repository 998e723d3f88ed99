"""Training one response: stock `MaskablePPO` as a single agent against a frozen policy.

The policy plays all other seats inside the environment, so the problem is stationary: unlike in
self-play (`learner`) no average is needed. The learning rate and the entropy bonus fall to 0.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

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
from algorithms.learning.environments import Backend, SelfPlayVecEnv
from algorithms.learning.learner import ILLEGAL
from algorithms.learning.states import StatePolicy
from algorithms.learning.training import one_thread, unchecked_distributions
from algorithms.policies.network import as_network, network_table
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, UInt64Array

# How a network starts: after imitating the policy, or with random weights.
Start: TypeAlias = Literal["imitation", "scratch"]
STARTS: tuple[Start, ...] = ("imitation", "scratch")

N_ENVS, MIN_ENVS = 1024, 64  # fewer than N_ENVS in a short run, to reach MIN_UPDATES
MIN_UPDATES = 32
N_STEPS, BATCH_SIZE = 8, 1024
LEARNING_RATE = 3e-3  # falls to 0
ENT_COEF = 0.2  # keeps all actions in play until their values are known
ENT_COEF_END = 0.002  # falls geometrically
HIDDEN = (128, 128)
IMITATED_SHARE = 0.8  # share of the policy in a mixture with uniform play
IMITATED_DECISIONS = 100_000
IMITATION_EPOCHS = 3
IMITATION_RATE = 3e-3  # falls to 1%


# ---------------------------------------------------------------------------------------------
# The policy to respond to, on the tree or on states
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The policy of all seats that a response is trained against.

    Attributes:
        game: the game.
        policy: a table `(I, A)`, played on the game's tree, or a function of observations and
            masks, played on OpenSpiel's states.
    """

    game: Game
    policy: Float64Array | StatePolicy

    def env(self, seat: int, *, n_envs: int, seed: int) -> SelfPlayVecEnv:
        """The environment of one seat, with the policy in all others."""
        others = {other: self.policy for other in range(self.game.num_players) if other != seat}
        on: Backend = "states" if callable(self.policy) else "tree"
        return SelfPlayVecEnv(n_envs, self.game, seed=seed, on=on, opponents=others)

    def probabilities(self, env: SelfPlayVecEnv) -> Float64Array:
        """The policy's probabilities in the environment's current hands: `(n, A)`."""
        hands: Any = env.simulator
        if callable(self.policy):
            return np.asarray(self.policy(hands.observations, hands.masks), np.float64)
        return np.asarray(self.policy[hands.infosets])

    def response(self, network: nn.Module, *, greedy: bool) -> Float64Array | StatePolicy:
        """The policy of a network of logits, as a table or a function like `policy`."""
        player = as_network(network, self.game)
        player = player.greedy() if greedy else player
        return player.probabilities if callable(self.policy) else network_table(player, self.game)

    def returns(
        self, seat: int, response: Float64Array | StatePolicy | None, streams: UInt64Array
    ) -> Float64Array:
        """A seat's return in each hand with a response, or with the policy if None: `(hands,)`."""
        policies: list[Any] = [self.policy] * self.game.num_players
        if response is not None:
            policies[seat] = response
        if callable(self.policy):
            return state_returns(self.game, policies, streams)[:, seat]
        tree = self.game.tree
        return tree_returns(tree, joint_policy(tree, policies), streams)[:, seat]


# ---------------------------------------------------------------------------------------------
# Training
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One training run."""

    target: Target
    seat: int
    start: Start
    seed: int
    decisions: int

    @property
    def name(self) -> str:
        """The name of the run among those of its seat."""
        return f"{self.start}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network, observations `(n, size)` to logits `(n, A)`, and its CPU time."""

    network: nn.Module
    cpu_seconds: float


@one_thread()
def train_response(run: Run, watch: Callable[[int], None] = lambda decisions: None) -> Trained:
    """Train a response; `watch` is called with the number of decisions so far."""
    began = time.process_time()
    n_envs = min(N_ENVS, max(MIN_ENVS, run.decisions // (MIN_UPDATES * N_STEPS)))
    hands = run.target.env(run.seat, n_envs=n_envs, seed=run.seed)
    played = _play_mixture(run.target, hands, decisions=min(IMITATED_DECISIONS, run.decisions))
    model: Any = MaskablePPO(
        "MlpPolicy",
        _ScaledRewards(hands, played.spread),
        n_steps=N_STEPS,
        batch_size=min(BATCH_SIZE, n_envs * N_STEPS),
        n_epochs=1,
        learning_rate=lambda remaining: LEARNING_RATE * remaining,
        gamma=1.0,
        gae_lambda=0.95,
        clip_range=0.2,
        policy_kwargs={"net_arch": list(HIDDEN), "activation_fn": nn.ReLU},
        seed=run.seed,
        device="cpu",
    )
    if run.start == "imitation":
        _imitate(model.policy, played)
    with unchecked_distributions():
        model.learn(run.decisions, callback=_EntropySchedule(watch))
    return Trained(actor_of(model.policy), time.process_time() - began)


class _ScaledRewards(VecEnvWrapper):
    """Divides rewards by their spread, which makes the value loss independent of the stakes."""

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
    """Lowers the entropy bonus, and reports progress."""

    model: Any

    def __init__(self, watch: Callable[[int], None]) -> None:
        super().__init__()
        self._watch = watch

    def _on_rollout_start(self) -> None:
        done = self.model.num_timesteps / self.model._total_timesteps
        self.model.ent_coef = ENT_COEF * (ENT_COEF_END / ENT_COEF) ** done
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


def _play_mixture(target: Target, hands: SelfPlayVecEnv, *, decisions: int) -> _Played:
    rng, steps = np.random.default_rng(0), -(-decisions // hands.num_envs)
    observations = hands.reset()
    history = []
    for _ in range(steps):
        masks = hands.action_masks()
        uniform = masks / masks.sum(axis=1, keepdims=True)
        mixture = IMITATED_SHARE * target.probabilities(hands) + (1 - IMITATED_SHARE) * uniform
        drawn = running_sums(mixture) <= rng.random((len(mixture), 1))
        hands.step_async(drawn.sum(axis=1))
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


def _hand_returns(rewards: Float32Array, ended: BoolArray) -> tuple[Float32Array, BoolArray]:
    """The return of each decision's hand `(steps, n)`, and whether that hand has ended."""
    returns, finished = np.zeros_like(rewards), np.zeros_like(ended)
    paid, known = np.zeros_like(rewards[0]), np.zeros_like(ended[0])
    for step in reversed(range(len(rewards))):
        paid, known = np.where(ended[step], rewards[step], paid), known | ended[step]
        returns[step], finished[step] = paid, known
    return returns, finished


def _imitate(policy: Any, played: _Played) -> None:
    """Fit an SB3 policy's actor to the mixture, and its critic to the returns."""
    actor = actor_of(policy)
    critic_parts = (policy.vf_features_extractor, policy.mlp_extractor.value_net, policy.value_net)
    critic = nn.Sequential(*critic_parts)
    optimizer = torch.optim.Adam(policy.parameters())
    steps = -(-IMITATION_EPOCHS * len(played.returns) // BATCH_SIZE)
    for left in np.linspace(1, 0.01, steps):
        optimizer.param_groups[0]["lr"] = IMITATION_RATE * left
        batch = torch.randint(len(played.returns), (BATCH_SIZE,))
        observations = played.observations[batch]
        logits = actor(observations).masked_fill(~played.masks[batch], ILLEGAL)
        cross_entropy = -(played.probabilities[batch] * logits.log_softmax(1)).sum(1).mean()
        value_loss = nn.functional.mse_loss(critic(observations)[:, 0], played.returns[batch])
        optimizer.zero_grad()
        (cross_entropy + value_loss).backward()
        optimizer.step()
