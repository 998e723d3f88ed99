"""A training run: its model and callback, its checkpoints, and how it is stopped."""

import io
from collections.abc import Callable, Iterator, Sequence
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
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from torch import nn

from algorithms.games import ExactGame, Game, load_game
from algorithms.policies import Policy, load_policy
from algorithms.policies.load import open_source
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import as_network, network_table
from algorithms.self_play.callback import SelfPlay, diverged
from algorithms.self_play.curve import BOUND, COLUMNS, Point
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.self_play.learner import SCHEDULED
from algorithms.self_play.session import unvalidated_distributions
from algorithms.self_play.settings import Settings, default, is_bounded, is_measured
from algorithms.self_play.table_ppo import SeenActorPolicy, TableActorPolicy, TablePPO
from algorithms.self_play.tree_learner import TreeLearner
from algorithms.support.errors import UsageError, first_line
from algorithms.support.files import read_checksummed, write_checksummed
from kuhn_bridge.errors import short_repr

# With Adam's usual first beta of 0.9, momentum of earlier rollouts would make the policy rotate.
ADAM = {"betas": (0.5, 0.999), "eps": 1e-5}
BOUND_HANDS = 20_000  # hands that measure a response at a point of the curve
CPU = "cpu"


class Training(BaseCallback):
    """One training run; as a callback, it writes checkpoints between updates and stops the run.

    `watch` is called with each point of the learning curve, and in between with the latest figures.
    Without `checkpoint`, a file, no checkpoints are written; they are `checkpoint_every` decisions
    apart. The `learner` has the `last` and the `average` policy, the `recorder` the learning curve.
    """

    model: Any

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        settings: Settings,
        *,
        tensorboard: Path | None = None,
        watch: Callable[[Point], None] | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 1_000_000,
        callbacks: Sequence[BaseCallback] = (),
        device: str = CPU,
    ) -> None:
        super().__init__()
        require_device(device)
        if device != CPU and settings.kind != "states":
            raise UsageError(
                f"device={device!r}: it has no effect on regrets, which are learned on the CPU; "
                "learner=ppo trains a network on OpenSpiel's states"
            )
        self._callbacks = callbacks  # the user's, which are called after those of the run
        self.settings = settings
        self.game = load_game(settings.game)
        self.stopped = False
        self._stop = Event()  # set by Ctrl-C
        self._checkpoint = checkpoint
        self._checkpoint_every = checkpoint_every
        self._written_at: int | None = None  # the decisions at which a checkpoint was last written
        logs = str(tensorboard) if tensorboard else None
        self.model = _model(settings, self.game, tensorboard=logs, device=device)
        self.callback = _callback(settings, self.game, watch)
        if settings.init and settings.kind == "states":
            self._start_from_weights(Path(settings.init))
        self.callback.init_callback(self.model)
        self.learner = self.callback.learner
        self.recorder = self.callback.recorder
        if settings.init and isinstance(self.learner, TreeLearner):
            self.learner.start_from(load_policy(settings.init, game=self.game).table)

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        with _interrupt(self._stop), fast_torch():
            try:
                self.model.learn(
                    self.settings.steps - self.model.num_timesteps,
                    callback=CallbackList([self, self.callback, *self._callbacks]),
                    log_interval=10 if self.model.tensorboard_log else None,
                    reset_num_timesteps=self.model._last_obs is None,
                )
            except _Stopped:
                self.callback.on_training_end()
            except (ValueError, RuntimeError):  # torch refuses logits that are not finite
                if all(weight.isfinite().all() for weight in self.model.policy.parameters()):
                    raise
                raise diverged(self.model) from None

    def _on_rollout_start(self) -> None:
        self.stopped = self._stop.is_set()
        if self._checkpoint and (self.stopped or self._is_checkpoint_due()):
            write_checkpoint(self._checkpoint, self.get_state())
            self._written_at = self.model.num_timesteps
        if self.stopped:
            raise _Stopped

    def _is_checkpoint_due(self) -> bool:
        if self._written_at is None:
            return True
        decisions_since: int = self.model.num_timesteps - self._written_at
        return decisions_since >= self._checkpoint_every

    def _on_step(self) -> bool:
        return True

    def get_state(self) -> dict[str, Any]:
        """Everything that the next update depends on, in types that load without running code."""
        model = self.model
        return {
            "settings": asdict(self.settings),
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "callback": self.callback.get_state(),
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
        model = self.model
        try:
            model.policy.load_state_dict(state["policy"])
            model.policy.optimizer.load_state_dict(state["optimizer"])
            self.callback.set_state(state["callback"])
            model.num_timesteps = state["steps"]
            self._written_at = state["steps"]
            model._n_updates = state["updates"]
            model._current_progress_remaining = state["remaining"]
            model._last_obs = state["observations"].numpy()
            model._last_episode_starts = state["starts"].numpy()
            for index, env_state in enumerate(state["envs"]):
                model.env.env_method("set_state", env_state, indices=index)
            torch.set_rng_state(state["torch"])
            np.random.set_state(tuple(state["numpy"]))
        except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"not a checkpoint of this run ({first_line(error)})") from None

    def _start_from_weights(self, path: Path) -> None:
        """Start with the network of a saved model."""
        actor = actor_of(self.model.policy)
        module = open_source(str(path)).network(self.game).module
        if module is None:
            raise UsageError(f"init={path}: want a model.zip, which has weights to start from")
        weights = module.state_dict().values()
        try:  # layer by layer, since the layers may have other names
            actor.load_state_dict(dict(zip(actor.state_dict(), weights, strict=True)))
        except (ValueError, RuntimeError):
            want = ", ".join(str(tuple(weight.shape)) for weight in actor.parameters())
            other = f"init={path}: its network has other layers; want weights {want}"
            raise UsageError(other) from None


def _numpy_state() -> list[Any]:
    """The state of numpy's random numbers, in types that load without running code."""
    algorithm, keys, *position = np.random.get_state(legacy=True)
    return [algorithm, np.asarray(keys).tolist(), *position]


def require_device(device: str) -> None:
    """Raise an error for a device that does not exist."""
    if device == "auto":  # SB3's own word: a GPU if there is one
        return
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise UsageError(f"device={short_repr(device)}: {first_line(error)}") from None
    if kind == "cuda" and not torch.cuda.is_available():  # SB3 would quietly take the CPU
        raise UsageError(f"device={device!r}: torch finds no such device here")


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a training run's state under a checksum: the whole file or nothing."""
    file = io.BytesIO()
    torch.save(state, file)
    write_checksummed(path, file.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state that `write_checkpoint` wrote, bit for bit, loaded without running code."""
    try:
        content = read_checksummed(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is nothing to resume") from None
    except UsageError as error:
        raise UsageError(f"not a complete checkpoint of a training run: {error}") from None
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location=CPU, weights_only=True)
        _ = state["settings"], state["steps"]
    except Exception:  # the checksum matched, so it is another kind of file
        raise UsageError(f"{path}: not a checkpoint of a training run") from None
    return state


def _model(settings: Settings, game: Game, *, tensorboard: str | None, device: str) -> MaskablePPO:
    """The `MaskablePPO` of a run, untrained, with its environment."""
    common: dict[str, Any] = {
        "n_steps": settings.n_steps,
        "n_epochs": settings.epochs,
        "batch_size": settings.batch_size or None,
        "vf_coef": settings.vf_coef,
        "seed": settings.seed,
        "device": device,
        "tensorboard_log": tensorboard,
    }
    if settings.kind == "states":
        rate = settings.learning_rate
        return MaskablePPO(
            "MlpPolicy",
            SelfPlayVecEnv(settings.n_envs, game, on="states", seed=settings.seed),
            learning_rate=lambda left: rate * max(left, 0.01),  # falls to 1%
            clip_range=settings.clip_range,
            ent_coef=settings.ent_coef,
            normalize_advantage=False,
            gamma=1.0,
            gae_lambda=1.0,
            policy_kwargs={
                "net_arch": [settings.width, settings.width],
                "activation_fn": nn.ReLU,
                "optimizer_kwargs": ADAM,
            },
            **common,
        )
    if settings.env == "states":
        env = SelfPlayVecEnv(settings.n_envs, game, on="states", seed=settings.seed)
        return TablePPO(SeenActorPolicy, env, gamma=1.0, **common)
    return TablePPO(
        TableActorPolicy,
        _tree_env(settings, game),
        gamma=1.0,
        policy_kwargs={"game": game},
        **common,
    )


def _tree_env(settings: Settings, game: Game) -> VecEnv:
    """The environment of a run on a game's tree."""
    if settings.env == "tree":
        return SelfPlayVecEnv(settings.n_envs, game, seed=settings.seed, infoset_numbers=True)
    make = partial(SelfPlayEnv, game, infoset_numbers=True)
    seeds = range(settings.seed, settings.seed + settings.n_envs)
    return DummyVecEnv([partial(make, seed=seed) for seed in seeds])


def _callback(settings: Settings, game: Game, watch: Callable[[Point], None] | None) -> SelfPlay:
    bounded = is_bounded(settings, game)
    measured = bounded or is_measured(settings, game)
    schedules = {
        name: getattr(settings, name)
        for name in SCHEDULED
        if default(name, settings.kind) is not None  # it has an effect on this kind of run
    }
    return SelfPlay(
        **schedules,
        total_steps=settings.steps,
        points=settings.points if measured else None,
        measure=partial(_measure, game, settings.bound_decisions) if measured else None,
        measure_name=BOUND if bounded else COLUMNS[2],
        watch=watch,
    )


def _measure(game: Game, decisions: int, network: nn.Module) -> float:
    """NashConv, or a lower bound from trained best responses; the run's random state stays."""
    if isinstance(game, ExactGame):
        return game.measure(network_table(network, game)).nash_conv
    policy = Policy(game, network=as_network(network, game))
    before = np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        bound = policy.lower_bound(decisions=decisions, hands=BOUND_HANDS)
    np.random.set_state(before)
    return bound.nash_conv_at_least


class _Stopped(Exception):  # noqa: N818  # not an error: how a callback leaves `learn` between updates
    """The run was stopped by Ctrl-C."""


@contextmanager
def _interrupt(stop: Event) -> Iterator[None]:
    """Let Ctrl-C set `stop`; pressed again, it interrupts as usual."""
    if current_thread() is not main_thread():
        yield
        return

    def stop_between_updates(number: int, frame: Any) -> None:
        stop.set()
        signal(SIGINT, before)

    before = signal(SIGINT, stop_between_updates)
    try:
        yield
    finally:
        signal(SIGINT, before)


@contextmanager
def fast_torch() -> Iterator[None]:
    """Run torch on one thread, without validating distributions.

    With small networks, more threads mostly wait for each other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with unvalidated_distributions():
            yield
    finally:
        torch.set_num_threads(threads)
