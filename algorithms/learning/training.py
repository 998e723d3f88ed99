"""A training run: its model and callback, its state on disk, and how it is stopped."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from signal import SIGINT, signal
from threading import Event, current_thread, main_thread
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn
from torch.distributions import Distribution

from algorithms.games import Game, load_game
from algorithms.learning.checkpoint import write_checkpoint
from algorithms.learning.curve import BOUND, COLUMNS, Point
from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.learning.learner import InfosetPolicy, SelfPlay, diverged
from algorithms.learning.models import imitate, save_model
from algorithms.learning.settings import Settings, is_bounded, is_measured
from algorithms.learning.usual_recipe import MeasureOnly, usual_model
from algorithms.policies import Policy, load_policy
from algorithms.policies.network import as_network, network_table
from algorithms.policies.sb3 import actor_of
from algorithms.policies.sources import open_source
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError, first_line

# Momentum from the last rollout would make the policy rotate.
ADAM = {"betas": (0.5, 0.999), "eps": 1e-5}
BOUND_HANDS = 20_000  # hands that measure a response at a point of the curve


class Training:
    """One training run, from settings to a policy.

    Args:
        settings: all settings of the run.
        tensorboard: folder for TensorBoard logs.
        watch: function that is called with each point of the learning curve, and in between with
            the latest figures.
        checkpoint: file for checkpoints; without it none are written.
        checkpoint_every: number of decisions between checkpoints.

    Attributes:
        model: the `MaskablePPO`.
        callback: the `SelfPlay` (or `MeasureOnly`, for the usual recipe).
    """

    def __init__(
        self,
        settings: Settings,
        *,
        tensorboard: Path | None = None,
        watch: Callable[[Point], None] | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 1_000_000,
    ) -> None:
        self.settings, self.game = settings, load_game(settings.game)
        log = str(tensorboard) if tensorboard else None
        self.callback: SelfPlay | MeasureOnly
        if settings.kind == "usual":
            self.model: Any = usual_model(settings, tensorboard=log)
            self.callback = MeasureOnly(watch)
        else:
            self.model = _model(settings, self.game, tensorboard=log)
            self.callback = _self_play(settings, self.game, watch)
        if settings.init:
            self._start_from(Path(settings.init))
        self.callback.init_callback(self.model)
        self._guard = _CheckpointCallback(self, checkpoint, checkpoint_every)

    @property
    def curve(self) -> list[Point]:
        """The measure over steps."""
        return self.callback.recorder.points

    @property
    def last(self) -> Float64Array | nn.Module:
        """The current policy: a table `(I, A)`, or a network where there are no tables."""
        return self.callback.learner.last

    @property
    def average(self) -> Float64Array | nn.Module:
        """The average policy: a table `(I, A)`, or a network where there are no tables."""
        return self.callback.learner.average

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self._guard.stopped

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        left = self.settings.steps - self.model.num_timesteps
        with _interrupt(self._guard.stop), unchecked_distributions():
            try:
                self.model.learn(
                    left,
                    callback=CallbackList([self._guard, self.callback]),
                    log_interval=10 if self.model.tensorboard_log else None,
                    reset_num_timesteps=self.model._last_obs is None,
                )
            except _Stopped:
                self.callback.on_training_end()
            except (ValueError, RuntimeError):  # torch refuses logits that are not finite
                if all(weight.isfinite().all() for weight in self.model.policy.parameters()):
                    raise
                raise diverged(self.model) from None

    def save_model(self, path: Path, *, holds: str) -> None:
        """Write an SB3 zip that plays the `last` or the `average` policy, as `holds` names it."""
        plays = self.average if holds == "average" else self.last
        save_model(path, self.game, plays, trained=self.model, holds=holds)

    def get_state(self) -> dict[str, Any]:
        """Everything that the next update depends on, in types that load without running code."""
        model, callback = self.model, self.callback
        return {
            "settings": asdict(self.settings),
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "callback": callback.get_state() if isinstance(callback, SelfPlay) else {},
            "steps": model.num_timesteps,
            "updates": model._n_updates,
            "remaining": model._current_progress_remaining,
            "observations": torch.as_tensor(model._last_obs),
            "starts": torch.as_tensor(np.asarray(model._last_episode_starts)),
            "envs": model.env.env_method("get_state"),
            "torch": torch.get_rng_state(),
            "numpy": _numpy_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        try:
            self._restore(state)
        except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"not a checkpoint of this run ({first_line(error)})") from None

    def _restore(self, state: dict[str, Any]) -> None:
        model = self.model
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimizer"])
        if isinstance(self.callback, SelfPlay):
            self.callback.set_state(state["callback"])
        self._guard.written = state["steps"]
        model.num_timesteps, model._n_updates = state["steps"], state["updates"]
        model._current_progress_remaining = state["remaining"]
        model._last_obs = state["observations"].numpy()
        model._last_episode_starts = state["starts"].numpy()
        for index, slot in enumerate(state["envs"]):
            model.env.env_method("set_state", slot, indices=index)
        torch.set_rng_state(state["torch"])
        key = np.array(state["numpy"]["state"]["key"], np.uint32)
        np.random.set_state({**state["numpy"], "state": {**state["numpy"]["state"], "key": key}})

    def _start_from(self, path: Path) -> None:
        """Start with the policy of a saved model."""
        policy = self.model.policy
        if self.settings.kind == "states":
            network = open_source(str(path)).network(self.game)
            _copy_weights(network.module, actor_of(policy), f"init={path}")
            return
        table = load_policy(path, game=self.game).table
        if isinstance(policy, InfosetPolicy) and policy.tabular:
            policy.set_table(table)
        else:
            imitate(actor_of(policy), self.game, table)


def _copy_weights(source: nn.Module, target: nn.Module, what: str) -> None:
    """Copy weights layer by layer between networks whose layers may have other names."""
    weights = source.state_dict().values()
    try:
        target.load_state_dict(dict(zip(target.state_dict(), weights, strict=True)))
    except (ValueError, RuntimeError):
        shapes = ", ".join(str(tuple(weight.shape)) for weight in target.parameters())
        raise UsageError(f"{what}: its network has other layers; want weights {shapes}") from None


def _model(settings: Settings, game: Game, *, tensorboard: str | None) -> MaskablePPO:
    """The stock `MaskablePPO` of a run, untrained, with its environment."""
    policy: Any = "MlpPolicy" if settings.kind == "states" else InfosetPolicy
    policy_kwargs: dict[str, Any] = {
        "net_arch": [settings.width] * 2,
        "activation_fn": nn.ReLU,
        "optimizer_kwargs": ADAM,
    }
    if settings.kind == "table":
        policy_kwargs = {"table": True, "net_arch": [], "optimizer_class": torch.optim.SGD}
    if settings.kind == "states":
        own: dict[str, Any] = {
            "learning_rate": partial(_linear, settings.learning_rate),
            "clip_range": settings.clip_range,
            "ent_coef": settings.ent_coef,
        }
    else:
        fitted = partial(_geometric, settings.learning_rate)
        own = {
            "learning_rate": 1.0 if settings.kind == "table" else fitted,
            "normalize_advantage": False,
            "max_grad_norm": math.inf,
        }
        policy_kwargs["game"] = game
    return MaskablePPO(
        policy,
        _environment(settings, game),
        n_steps=settings.n_steps,
        n_epochs=settings.epochs,
        batch_size=settings.batch_size or None,
        vf_coef=settings.vf_coef,
        gamma=1.0,
        gae_lambda=1.0,
        seed=settings.seed,
        device="cpu",
        tensorboard_log=tensorboard,
        policy_kwargs=policy_kwargs,
        **own,
    )


def _environment(settings: Settings, game: Game) -> Any:
    n_envs, seed = settings.n_envs, settings.seed
    if settings.env == "states":
        return SelfPlayVecEnv(n_envs, game, on="states", seed=seed)
    if settings.env == "tree":
        return SelfPlayVecEnv(n_envs, game, seed=seed, numbered=True)
    makers: list[Callable[[], Any]] = [
        partial(SelfPlayEnv, game, seed=seed + slot, numbered=True) for slot in range(n_envs)
    ]
    return DummyVecEnv(makers)


def _geometric(rate: float, remaining: float) -> float:
    """Adam's rate when `remaining`, 1 to 0, of the run is left: falls to 30%."""
    return float(rate * 0.3 ** (1 - remaining))


def _linear(rate: float, remaining: float) -> float:
    """Adam's rate when `remaining`, 1 to 0, of the run is left: falls to 1%."""
    return float(rate * max(remaining, 0.01))


def _self_play(settings: Settings, game: Game, watch: Callable[[Point], None] | None) -> SelfPlay:
    measure: Callable[[nn.Module], float] | None = None
    if is_measured(settings, game):
        measure = partial(_exact_nash_conv, game)
    elif is_bounded(settings, game):
        measure = partial(_nash_conv_at_least, game, settings.bound_decisions)
    return SelfPlay(
        step_size=settings.step_size,
        kl=settings.kl,
        kl_end=settings.kl_end,
        magnet_rate=settings.magnet_rate,
        ent_coef_end=settings.ent_coef_end,
        total_steps=settings.steps,
        points=settings.points if measure else None,
        measure=measure,
        measure_name=BOUND if is_bounded(settings, game) else COLUMNS[2],
        watch=watch,
    )


def _exact_nash_conv(game: Game, network: nn.Module) -> float:
    return game.measure(network_table(network, game)).nash_conv


def _nash_conv_at_least(game: Game, decisions: int, network: nn.Module) -> float:
    """A lower bound from trained best responses, without changing the run's random state."""
    policy, before = Policy(game, network=as_network(network, game)), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        bound = policy.lower_bound(decisions=decisions, hands=BOUND_HANDS)
    np.random.set_state(before)
    return bound.nash_conv_at_least


def _numpy_state() -> dict[str, Any]:
    state = np.random.get_state(legacy=False)
    return {**state, "state": {**state["state"], "key": state["state"]["key"].tolist()}}


class _CheckpointCallback(BaseCallback):
    """Writes a checkpoint before a rollout when it is due, and stops after Ctrl-C."""

    model: Any

    def __init__(self, training: Training, path: Path | None, every: int) -> None:
        super().__init__()
        self._training, self._path, self._every = training, path, every
        self.stop, self.stopped, self.written = Event(), False, -1

    def _on_rollout_start(self) -> None:
        self.stopped = self.stop.is_set()
        due = self.written < 0 or self.model.num_timesteps - self.written >= self._every
        if self._path and (due or self.stopped):
            write_checkpoint(self._path, self._training.get_state())
            self.written = self.model.num_timesteps
        if self.stopped:
            raise _Stopped

    def _on_step(self) -> bool:
        return True


class _Stopped(Exception):  # noqa: N818  # not an error: how a callback leaves `learn` between updates
    """Ctrl-C."""


@contextmanager
def _interrupt(stop: Event) -> Iterator[None]:
    """Let Ctrl-C set `stop`; pressed again, it interrupts as usual."""
    if current_thread() is not main_thread():
        yield
        return

    def first(number: int, frame: Any) -> None:
        stop.set()
        signal(SIGINT, before)

    before = signal(SIGINT, first)
    try:
        yield
    finally:
        signal(SIGINT, before)


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Switch off torch's validation of distributions, which takes a tenth of a run's time.

    Weights that are not finite are found before the next rollout.
    """
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: with small networks, more threads mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
