"""The callback that makes stock PPO play against itself, and the one that only measures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from algorithms.exact.values import nash_convs
from algorithms.games import Game, as_game
from algorithms.learning.average import Average
from algorithms.learning.curve import Point
from algorithms.learning.networks import RowPolicy, played_by
from algorithms.learning.steering import RowsAtOnce, SampleBySample, Steering
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError

POINTS = 200  # of a curve
LARGE = 100_000  # nodes, from which on a curve has a quarter of them
LOWEST = 0.02  # what is left of the step at the end


def diverged(model: Any) -> UsageError:
    """What to say of a model whose weights are no numbers any more."""
    return UsageError(
        f"the training run diverged at step {model.num_timesteps:,}: try a smaller --lr"
    )


class Measure(BaseCallback):
    """Between updates: average the policies and measure NashConv exactly.

    Attributes:
        game: whose policies they are.
        average: of all policies so far.
        curve: NashConv over steps, of the last policy and of the average.
    """

    model: Any  # a MaskablePPO; SB3 types it as any algorithm
    game: Game  # this and what follows is there as soon as a model is
    average: Average

    def __init__(
        self, game: Game | str | None = None, *, watch: Callable[[Point], None] | None = None
    ) -> None:
        super().__init__()
        self._given, self.curve = game, list[Point]()
        self._watch = watch or (lambda point: None)
        self._seconds, self._started = 0.0, 0.0

    @property
    def last(self) -> Float64Array:
        """What the model plays now, `(I, A)`."""
        return played_by(actor_of(self.model.policy), self.game)

    def progress(self) -> float:
        """How much of this call of `learn` is done, from 0 to 1."""
        start, end = self.model._num_timesteps_at_start, self.model._total_timesteps
        return float((self.model.num_timesteps - start) / max(end - start, 1))

    def get_state(self) -> dict[str, Any]:
        """All that later figures depend on."""
        curve = [tuple(point) for point in self.curve]
        return {"average": self.average.get_state(), "curve": curve, "seconds": self._elapsed()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self.average.set_state(state["average"])
        self.curve = [Point(*point) for point in state["curve"]]
        self._seconds = state["seconds"]

    def _init_callback(self) -> None:
        if not hasattr(self, "game"):
            self.game = _game_of(self.training_env) if self._given is None else as_game(self._given)
            self.average = Average(self.game.tree)

    def _on_training_start(self) -> None:
        self._started = time.perf_counter()

    def _on_rollout_start(self) -> None:
        table = self.last
        if not np.isfinite(table).all():
            raise diverged(self.model)
        self.average.add(table)
        self._measure(table)
        self._seat(table)

    def _seat(self, table: Float64Array) -> None:
        """Nobody is seated by who only measures."""

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self.average.add(self.last)
        self._measure(self.last, final=True)

    def _measure(self, table: Float64Array, *, final: bool = False) -> None:
        """Add a point to the curve when it is time: more often where it is steep, at the start."""
        steps, done = self.model.num_timesteps, len(self.curve)
        points = POINTS if self.game.tree.num_nodes < LARGE else POINTS // 4
        if self.progress() * points**2 < done**2 and not final:
            return
        if self.curve and self.curve[-1].steps == steps:
            return
        both = np.stack([table, self.average.mean])
        last, average = nash_convs(self.game.tree, both).tolist()
        self.curve.append(Point(steps, self._elapsed(), last, average))
        self.logger.record("game/nash_conv", last)
        self.logger.record("game/nash_conv_average", average)
        self._watch(self.curve[-1])

    def _elapsed(self) -> float:
        running = time.perf_counter() - self._started if self._started else 0.0
        return self._seconds + running


class SelfPlay(Measure):
    """One policy in all seats: what makes PPO on a self-play environment approach equilibrium.

        model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"))
        model.learn(1_000_000, callback=SelfPlay())

    Before each rollout it seats the current policy as the others, moves the magnet, sets PPO's
    entropy bonus, averages and measures. It steers PPO's gradients (see `steering`) and leaves
    PPO's code, loss and optimizer alone.

    Args:
        game: the environment's; found by itself if left out.
        step: how far a row moves in an update, relative to what it can gain; falls to almost 0.
        entropy: pull towards the magnet at the start and at the end, in standard deviations of
            returns under uniform play.
        magnet: how far the magnet follows the policy in an update, falling with the step; 0: it
            stays where it begins.
        watch: told each point of the curve.
    """

    _steering: Steering
    _reins: RowsAtOnce | SampleBySample
    _entropy_before: float

    def __init__(
        self,
        game: Game | str | None = None,
        *,
        step: float = 1.0,
        entropy: tuple[float, float] = (0.2, 0.1),
        magnet: float = 0.01,
        watch: Callable[[Point], None] | None = None,
    ) -> None:
        super().__init__(game, watch=watch)
        self._step, self._entropy, self._rate = step, entropy, magnet

    @property
    def last(self) -> Float64Array:
        """What the model plays now, `(I, A)`."""
        policy = self.model.policy
        return policy.probabilities() if isinstance(policy, RowPolicy) else super().last

    def get_state(self) -> dict[str, Any]:
        """All that later updates depend on."""
        return super().get_state() | {"steering": self._steering.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        super().set_state(state)
        self._steering.set_state(state["steering"])

    def _init_callback(self) -> None:
        super()._init_callback()
        if not hasattr(self, "_steering"):
            unit = 1.0 if self.model.normalize_advantage else None
            self._steering = Steering(self.game, rate=self._rate, unit=unit)
            self._steering.follow(self.last, at_once=True)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._entropy_before = self.model.ent_coef
        policy, steering = self.model.policy, self._steering
        if isinstance(policy, RowPolicy):
            self._reins = RowsAtOnce(policy, steering, value_weight=self.model.vf_coef)
        else:
            self._reins = SampleBySample(policy, steering, self.game)

    def _seat(self, table: Float64Array) -> None:
        steering, done = self._steering, self.progress()
        first, last = self._entropy
        left = 1 - (1 - LOWEST) * done
        steering.step, steering.rate = self._step * left, self._rate * left
        steering.follow(table)
        steering.pull = first ** (1 - done) * last**done if last else first * (1 - done)
        self.model.ent_coef = steering.pull * steering.unit
        self.training_env.env_method("set_opponent", table)
        self._reins.begin()

    def _on_training_end(self) -> None:
        super()._on_training_end()
        self.model.ent_coef = self._entropy_before
        self._reins.remove()


def _game_of(env: Any) -> Game:
    """The game that a self-play environment plays."""
    if not (env.has_attr("game") and env.has_attr("set_opponent")):
        raise UsageError("SelfPlay needs a self-play environment: SelfPlayVecEnv or SelfPlayEnv")
    return as_game(env.get_attr("game")[0])
