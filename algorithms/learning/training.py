"""What turns stock PPO into self-play: a callback, the average it keeps, its state on disk."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from signal import SIGINT, signal
from threading import Event, current_thread, main_thread
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from algorithms.exact.values import nash_convs
from algorithms.games.kuhn import kuhn_tree
from algorithms.learning.curve import Point
from algorithms.learning.recipes import Config, build
from algorithms.policies.rows import OBSERVATIONS
from algorithms.policies.sb3 import actor_of, network_probabilities
from algorithms.support.errors import UsageError
from algorithms.support.files import replacing
from kuhn_bridge.policy import LEGAL, Probabilities

POINTS = 200  # of a curve


@dataclass(slots=True)
class Average:
    """The mean of a sequence of policies, of which the t-th counts t² times."""

    total: Probabilities = field(default_factory=lambda: np.zeros(LEGAL.shape))
    weight: float = 0.0
    count: int = 0

    def add(self, table: Probabilities) -> None:
        """Count one more policy `(12, 3)`."""
        self.count += 1
        self.total = self.total + self.count**2 * table
        self.weight += self.count**2

    @property
    def mean(self) -> Probabilities:
        """The average policy, `(12, 3)`."""
        return self.total / self.weight


class Training(BaseCallback):
    """Between updates: seat the opponent, move the magnet, average, measure, keep, stop."""

    model: Any  # a MaskablePPO; SB3 types it as any algorithm

    def __init__(
        self,
        config: Config,
        *,
        tensorboard: Path | None = None,
        watch: Callable[[Point], None] = lambda point: None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 1_000_000,
    ) -> None:
        super().__init__()
        self.config, self.model = config, build(config, tensorboard=tensorboard)
        self.average, self.curve, self.stopped = Average(), list[Point](), False
        self._stop, self._watch = Event(), watch
        self._checkpoint, self._checkpoint_every, self._kept = checkpoint, checkpoint_every, -1
        self._done = 0
        self._tree, self._seconds, self._started = kuhn_tree(), 0.0, 0.0
        self._actor = actor_of(self.model.policy)
        self._magnet = copy.deepcopy(self._actor).requires_grad_(False)
        if config.magnet:
            self.model.policy.magnet = self._magnet_logits

    def run(self) -> None:
        """Train to the end, or until Ctrl-C."""
        left = self.config.steps - self.model.num_timesteps
        with _interrupt(self._stop):
            self.model.learn(
                left,
                callback=self,
                log_interval=10 if self.model.tensorboard_log else None,
                reset_num_timesteps=self.model._last_obs is None,
            )

    @property
    def last(self) -> Probabilities:
        """What the network plays now, `(12, 3)`."""
        return network_probabilities(self._actor)

    def save_model(self, path: Path, table: Probabilities, *, holds: str) -> None:
        """A normal SB3 zip whose network plays `table`; `holds` says in it what that is."""
        kept = copy.deepcopy(self.model.policy.state_dict())
        imitate(self._actor, table)
        self.model.holds = holds
        try:
            with replacing(path) as temporary:
                self.model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])
        finally:
            self.model.policy.load_state_dict(kept)

    def get_state(self) -> dict[str, Any]:
        """Everything the next update depends on, in types that load without running code."""
        model, numpy = self.model, np.random.get_state(legacy=False)
        return {
            "config": asdict(self.config),
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "magnet": self._magnet.state_dict(),
            "average": (self.average.total.tolist(), self.average.weight, self.average.count),
            "curve": [tuple(point) for point in self.curve],
            "seconds": self._elapsed(),
            "steps": model.num_timesteps,
            "updates": model._n_updates,
            "remaining": model._current_progress_remaining,
            "seen": torch.as_tensor(model._last_obs),
            "starts": torch.as_tensor(model._last_episode_starts),
            "envs": model.env.env_method("get_state"),
            "torch": torch.get_rng_state(),
            "numpy": {**numpy, "state": {**numpy["state"], "key": numpy["state"]["key"].tolist()}},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        model = self.model
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimizer"])
        self._magnet.load_state_dict(state["magnet"])
        total, weight, count = state["average"]
        self.average = Average(np.array(total), weight, count)
        self.curve = [Point(*point) for point in state["curve"]]
        self._seconds, self._kept = state["seconds"], state["steps"]
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

    def _on_training_start(self) -> None:
        self._started = time.perf_counter()

    def _on_rollout_start(self) -> None:
        table, self._done = self.last, self.model.num_timesteps
        if not np.isfinite(table).all():
            raise UsageError(f"the training diverged at step {self._done:,}: try a smaller --lr")
        self._keep()
        self.average.add(table)
        self._measure(table)
        if self.training_env.has_attr("set_opponent"):
            self.training_env.env_method("set_opponent", table)
        for slow, fast in zip(self._magnet.parameters(), self._actor.parameters(), strict=True):
            slow.lerp_(fast.detach(), self.config.magnet)

    def _on_step(self) -> bool:
        return not self.stopped

    def _on_training_end(self) -> None:
        if self.stopped:
            self.model.num_timesteps = self._done  # without the rollout that was broken off
        else:
            self.average.add(self.last)
        self._measure(self.last, final=True)

    def _keep(self) -> None:
        """Write a checkpoint when it is time, and always before stopping."""
        self.stopped = self._stop.is_set()
        due = self._kept < 0 or self.model.num_timesteps - self._kept >= self._checkpoint_every
        if self._checkpoint and (due or self.stopped):
            with replacing(self._checkpoint) as temporary:
                torch.save(self.get_state(), temporary)
            self._kept = self.model.num_timesteps

    def _measure(self, table: Probabilities, *, final: bool = False) -> None:
        """Add a point to the curve when it is time: more often where it is steep, at the start."""
        steps, done = self.model.num_timesteps, len(self.curve)
        if steps * POINTS**2 < done**2 * self.config.steps and not final:
            return
        if self.curve and self.curve[-1].steps == steps:
            return
        last, average = nash_convs(self._tree, np.stack([table, self.average.mean])).tolist()
        self.curve.append(Point(steps, self._elapsed(), last, average))
        self.logger.record("kuhn/nash_conv", last)
        self.logger.record("kuhn/nash_conv_average", average)
        self._watch(self.curve[-1])

    def _elapsed(self) -> float:
        return self._seconds + time.perf_counter() - self._started

    def _magnet_logits(self, observations: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._magnet(observations)
        return logits


def imitate(actor: nn.Module, table: Probabilities) -> None:
    """Fit a network's weights to play `table` `(12, 3)`, by itself never an illegal action.

    Twelve rows are little to learn: to about 1e-5 in half a second, by L-BFGS on the KL divergence.
    """
    seen = torch.as_tensor(OBSERVATIONS).double()
    wanted = torch.tensor(table).clamp(min=1e-9)
    weights = [weight for weight in actor.double().parameters() if weight.requires_grad]
    optimizer = torch.optim.LBFGS(
        weights,
        max_iter=100,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        divergence = nn.functional.kl_div(actor(seen).log_softmax(1), wanted, reduction="sum")
        divergence.backward()  # type: ignore[no-untyped-call]
        return divergence

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    actor.float()


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `Training` kept there, loaded without running anything."""
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is nothing to resume") from None
    except OSError:
        raise
    except Exception:  # a file of any other kind can fail anywhere
        state = {}
    if not isinstance(state, dict) or "config" not in state:
        raise UsageError(f"{path}: not a whole checkpoint of a training")
    return state


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
