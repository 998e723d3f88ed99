"""A training run: a recipe's model and callback, its state on disk, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from signal import SIGINT, signal
from threading import Event, current_thread, main_thread
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from algorithms.games import Game, load_game
from algorithms.learning.building import build
from algorithms.learning.callback import Measure, SelfPlay, diverged
from algorithms.learning.checkpoint import read_checkpoint, require_like, write_checkpoint
from algorithms.learning.curve import Point
from algorithms.learning.models import imitate, save_model, save_stock
from algorithms.learning.networks import RowPolicy
from algorithms.learning.recipes import Config
from algorithms.policies import load_policy
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError, first_line

__all__ = ["Training", "read_checkpoint"]


class Training:
    """One training run, from a configuration to a policy.

    Attributes:
        model: the `MaskablePPO`.
        stopped: whether Ctrl-C ended it.
    """

    def __init__(
        self,
        config: Config,
        *,
        tensorboard: Path | None = None,
        watch: Callable[[Point], None] | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 1_000_000,
    ) -> None:
        self.config, self.game = config, load_game(config.game)
        self.model: Any = build(config, tensorboard=tensorboard)
        if config.init:
            self._start_from(Path(config.init))
        self.callback = _callback(config, self.game, watch)
        self.callback.init_callback(self.model)
        self._keeper = _Keeper(self, checkpoint, checkpoint_every)

    @property
    def curve(self) -> list[Point]:
        """NashConv over steps."""
        return self.callback.curve

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`."""
        return self.callback.average.mean

    @property
    def last(self) -> Float64Array:
        """What the model plays now, `(I, A)`."""
        return self.callback.last

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self._keeper.stopped

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        left = self.config.steps - self.model.num_timesteps
        with _interrupt(self._keeper.stop):
            try:
                self.model.learn(
                    left,
                    callback=CallbackList([self._keeper, self.callback]),
                    log_interval=10 if self.model.tensorboard_log else None,
                    reset_num_timesteps=self.model._last_obs is None,
                )
            except _Stopped:
                self.callback.on_training_end()
            except ValueError:  # torch refuses logits that are no numbers
                if all(weight.isfinite().all() for weight in self.model.policy.parameters()):
                    raise
                raise diverged(self.model) from None

    def save_model(self, path: Path, table: Float64Array, *, holds: str) -> None:
        """A normal SB3 zip that plays `table`; `holds` says in it what that is."""
        policy, steps = self.model.policy, self.model.num_timesteps
        if isinstance(policy, RowPolicy):
            save_model(path, self.game, table, trained=policy, steps=steps, holds=holds)
        else:
            save_stock(path, self.game, table, model=self.model, holds=holds)

    def get_state(self) -> dict[str, Any]:
        """Everything the next update depends on, in types that load without running code."""
        model = self.model
        return {
            "config": asdict(self.config),
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "callback": self.callback.get_state(),
            "steps": model.num_timesteps,
            "updates": model._n_updates,
            "remaining": model._current_progress_remaining,
            "seen": torch.as_tensor(model._last_obs),
            "starts": torch.as_tensor(np.asarray(model._last_episode_starts)),
            "envs": model.env.env_method("get_state"),
            "torch": torch.get_rng_state(),
            "numpy": _numpy_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave; anything else is refused."""
        try:
            self._require_possible(state)
            self._restore(state)
        except UsageError:
            raise
        except Exception as error:  # what was edited can be wrong in any way
            raise UsageError(f"not a checkpoint of this run ({first_line(error)})") from None

    def _require_possible(self, state: dict[str, Any]) -> None:
        model, callback = self.model, self.callback.get_state()
        fresh = {
            "policy": dict(model.policy.state_dict()),
            "callback": {key: value for key, value in callback.items() if key != "curve"},
            "steps": 0,
            "updates": 0,
            "remaining": 1.0,
            "torch": torch.get_rng_state(),
            "numpy": _numpy_state(),
        }
        stored = {key: state[key] for key in fresh}
        curve = stored["callback"]["curve"]
        stored["callback"] = {k: v for k, v in stored["callback"].items() if k != "curve"}
        require_like(stored | {"policy": dict(stored["policy"])}, fresh)
        for point in curve:
            require_like(dict(enumerate(point)), dict(enumerate(Point(0, 0.0, 0.0, 0.0))))
        _require_optimizer(state["optimizer"], model.policy.optimizer)
        seen, space, length = state["seen"], model.observation_space, model.n_envs
        require_like(seen, torch.zeros((length, *space.shape)), "what is seen")
        require_like(state["starts"], torch.zeros(length, dtype=torch.bool), "what starts")
        if not all(map(space.contains, seen.numpy())):
            raise UsageError("the checkpoint shows what the game does not have")
        for stored, fresh in zip(state["envs"], model.env.env_method("get_state"), strict=True):
            require_like(_lasting(stored), _lasting(fresh), "a hand of the checkpoint")
            for name, kind in (("moves", int), ("chances", float)):
                if not all(type(one) is kind and one >= 0 for one in stored.get(name, ())):
                    raise UsageError(f"a hand of the checkpoint has impossible {name}")

    def _restore(self, state: dict[str, Any]) -> None:
        model = self.model
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimizer"])
        self.callback.set_state(state["callback"])
        self._keeper.kept = state["steps"]
        model.num_timesteps, model._n_updates = state["steps"], state["updates"]
        model._current_progress_remaining = state["remaining"]
        model._last_obs, model._last_episode_starts = (
            state["seen"].numpy(),
            state["starts"].numpy(),
        )
        for index, slot in enumerate(state["envs"]):
            model.env.env_method("set_state", slot, indices=index)
        torch.set_rng_state(state["torch"])
        key = np.array(state["numpy"]["state"]["key"], np.uint32)
        np.random.set_state({**state["numpy"], "state": {**state["numpy"]["state"], "key": key}})

    def _start_from(self, path: Path) -> None:
        """Begin with what a saved model plays."""
        table, policy = load_policy(path, game=self.game).table, self.model.policy
        if isinstance(policy, RowPolicy) and policy.tabular:
            policy.play(table)
        else:
            imitate(actor_of(policy), self.game, table)


def _require_optimizer(stored: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Refuse settings that are not the optimizer's, and momenta that are not of its weights."""
    fresh = optimizer.state_dict()["param_groups"]
    for group, own in zip(stored["param_groups"], fresh, strict=True):
        require_like(group["lr"], 1.0, "the optimizer's learning rate")
        if group != {**own, "lr": group["lr"]}:
            raise UsageError("the checkpoint has other settings of the optimizer")
    weights = [weight.detach() for group in optimizer.param_groups for weight in group["params"]]
    for number, kept in stored["state"].items():  # Adam's; plain steps keep nothing
        like = {"step": torch.tensor(0.0), "exp_avg": weights[number]}
        require_like(kept, like | {"exp_avg_sq": weights[number]}, "what the optimizer keeps")


def _lasting(hand: dict[str, Any]) -> dict[str, Any]:
    """What an environment keeps, without what is as long as a hand is: that is played again."""
    return {key: value for key, value in hand.items() if key not in {"moves", "chances"}}


def _numpy_state() -> dict[str, Any]:
    state = np.random.get_state(legacy=False)
    return {**state, "state": {**state["state"], "key": state["state"]["key"].tolist()}}


class _Keeper(BaseCallback):
    """Before each rollout: write a checkpoint when it is time, and stop when asked to."""

    model: Any

    def __init__(self, training: Training, path: Path | None, every: int) -> None:
        super().__init__()
        self._training, self._path, self._every = training, path, every
        self.stop, self.stopped, self.kept = Event(), False, -1

    def _on_rollout_start(self) -> None:
        self.stopped = self.stop.is_set()
        due = self.kept < 0 or self.model.num_timesteps - self.kept >= self._every
        if self._path and (due or self.stopped):
            write_checkpoint(self._path, self._training.get_state())
            self.kept = self.model.num_timesteps
        if self.stopped:
            raise _Stopped

    def _on_step(self) -> bool:
        return True


class _Stopped(Exception):  # noqa: N818  # no error: how a callback leaves `learn` between updates
    """Ctrl-C."""


def _callback(config: Config, game: Game, watch: Callable[[Point], None] | None) -> Measure:
    if config.recipe == "tutorial":
        return Measure(game, watch=watch)
    return _WholeRun(config, game, watch)


class _WholeRun(SelfPlay):
    """Self-play whose schedules go over the whole run, however often it is resumed."""

    def __init__(self, config: Config, game: Game, watch: Callable[[Point], None] | None) -> None:
        super().__init__(
            game,
            step=config.lr,
            entropy=(config.entropy, config.entropy_end),
            magnet=config.magnet,
            watch=watch,
        )
        self._steps = config.steps

    def progress(self) -> float:
        """How much of the run is done, from 0 to 1."""
        return min(1.0, float(self.model.num_timesteps / self._steps))


@contextmanager
def _interrupt(stop: Event) -> Iterator[None]:
    """Ctrl-C sets `stop`; pressed again, it interrupts as ever."""
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
