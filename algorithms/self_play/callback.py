"""`SelfPlay()`, the callback that makes stock `MaskablePPO` learn by self-play.

One policy plays all seats. What happens in one `model.learn(n, callback=SelfPlay())`:

1. The environment, guarded until now, lets itself be stepped: every decision of every seat is a
   step (`environments.py`).
2. PPO plays a rollout into `SeatRolloutBuffer`, which computes advantages along each seat's own
   decisions (`advantages.py`).
3. PPO's own `train` runs. A learner changes its gradients, so that the policy approaches an
   equilibrium: `TreeLearner` in games with a tree (`tree_learner.py`), `NetworkLearner` in games
   without one (`network_learner.py`). Each of these modules opens with its equations; what the
   callback calls and when is written down in the protocol `Learner` (`learner.py`).
4. The policies are averaged and measured, which gives the learning curve (`curve.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from algorithms.games import as_game
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.curve import COLUMNS, Point, Recorder
from algorithms.self_play.environments import last_step_of, require_self_play, steps_allowed
from algorithms.self_play.learner import SCHEDULED, Learner, NetworkMeasure
from algorithms.self_play.network_learner import NetworkLearner
from algorithms.self_play.settings import CURVE_POINTS, default_points
from algorithms.self_play.tree_learner import TreeLearner
from algorithms.support.errors import UsageError


class SelfPlay(BaseCallback):
    """The callback that makes stock `MaskablePPO` learn by self-play.

        model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=8)
        model.learn(1_000_000, callback=SelfPlay())

    It installs `SeatRolloutBuffer`, changes PPO's gradients with hooks as in this module's
    equations, averages the policies, and measures them. PPO's code, loss and optimizer stay the
    same. Settings that are None have the defaults of `algorithms.train_ppo`.

    Args:
        step_size: step of an information set per update, in games with a tree.
        kl: weight of the KL divergence from the magnet at the start.
        kl_end: weight of the KL divergence from the magnet at the end.
        magnet_rate: rate at which the magnet follows the policy; 0 keeps it fixed.
        ent_coef_end: weight of the entropy at the end, in games without a tree.
        total_steps: number of steps that the schedules span; by default those of `learn`.
        points: number of points of the learning curve after the first one.
        measure: function that measures a network in a game without a tree; None: no figures there.
        measure_name: name of the figures of the learning curve.
        watch: function of each point of the learning curve, and in between of the latest figures.
    """

    model: Any  # a MaskablePPO; SB3 types it as any algorithm
    learner: Learner  # set when the callback gets its model

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        *,
        step_size: float | None = None,
        kl: float | None = None,
        kl_end: float | None = None,
        magnet_rate: float | None = None,
        ent_coef_end: float | None = None,
        total_steps: int | None = None,
        points: int | None = None,
        measure: NetworkMeasure | None = None,
        measure_name: str = COLUMNS[2],
        watch: Callable[[Point], None] | None = None,
    ) -> None:
        super().__init__()
        values = step_size, kl, kl_end, magnet_rate, ent_coef_end
        self._given = dict(zip(SCHEDULED, values, strict=True))
        self._total_steps, self._points, self._measure = total_steps, points, measure
        self.recorder = Recorder(watch, measure=measure_name)

    @property
    def curve(self) -> list[Point]:
        """NashConv over steps, of the last policy and of the average."""
        return self.recorder.points

    def _init_callback(self) -> None:
        if hasattr(self, "learner"):
            return
        env, model = self.training_env, self.model
        require_self_play(env)
        game, on_tree = as_game(env.get_attr("game")[0]), env.get_attr("on")[0] == "tree"
        kind = TreeLearner if on_tree else NetworkLearner
        self.learner = kind(model, game, self._given, self._measure)
        if self._points is None:
            self._points = default_points(game) if on_tree or self._measure else CURVE_POINTS
        options = {
            name: getattr(model, name) for name in ("device", "gamma", "gae_lambda", "n_envs")
        }
        options |= {"players": game.num_players, "scale": self.learner.return_scale}
        spaces = model.observation_space, model.action_space
        self._buffer = SeatRolloutBuffer(
            model.n_steps, *spaces, last_step=lambda: last_step_of(env), **options
        )

    def _on_training_start(self) -> None:
        self._changes = ExitStack()
        self._changes.enter_context(steps_allowed(self.training_env))
        self._replaced = self.model.rollout_buffer, self.model.ent_coef
        self.model.rollout_buffer = self._buffer
        self.learner.start(self._total_steps or self.model._total_timesteps)
        self._changes.enter_context(self.learner.changed_gradients())
        self.recorder.start()

    def _on_rollout_start(self) -> None:
        if not all(bool(w.isfinite().all()) for w in self.model.policy.parameters()):
            raise diverged(self.model)
        self._average_and_record()
        self.model.ent_coef = self.learner.before_rollout(self._progress())

    def _on_rollout_end(self) -> None:
        self.learner.after_rollout(self._buffer)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._average_and_record(final=True)
        self.model.rollout_buffer, self.model.ent_coef = self._replaced
        self._changes.close()

    def _progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1."""
        if self._total_steps:
            return min(1.0, float(self.model.num_timesteps) / self._total_steps)
        start, end = self.model._num_timesteps_at_start, self.model._total_timesteps
        return float((self.model.num_timesteps - start) / max(end - start, 1))

    def _average_and_record(self, *, final: bool = False) -> None:
        self.learner.add_to_average()
        steps, recorder = self.model.num_timesteps, self.recorder
        if recorder.is_due(steps, self._progress(), self._points or 0) or final:
            recorder.add(steps, self.learner.measures)
            self.logger.record(f"game/{recorder.measure}", recorder.points[-1].last)
            self.logger.record(f"game/{recorder.measure}_average", recorder.points[-1].average)
        else:
            recorder.show(steps)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates and figures depend on."""
        carried = {name: torch.as_tensor(values) for name, values in self._buffer.carried.items()}
        states = self.learner.get_state(), self.recorder.get_state()
        return {"learner": states[0], "curve": states[1], "carried": carried}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.learner.set_state(state["learner"])
        self.recorder.set_state(state["curve"])
        self._buffer.carried = {name: values.numpy() for name, values in state["carried"].items()}


def diverged(model: Any) -> UsageError:
    """The error of a run whose weights are no longer finite."""
    hint = "try a smaller step_size or learning_rate"
    return UsageError(f"the run diverged at step {model.num_timesteps:,}: {hint}")
