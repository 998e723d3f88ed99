"""The usual recipe, a baseline that fails: one environment whose "agent" is the player to act.

Its fault is in one place: the reward of the last actor ends a trajectory in which the seats took
turns, so whatever comes before is credited to the *other* seat with the same sign. In a zero-sum
game that trains each seat to help its opponent.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv

from algorithms.games import Game, kuhn
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.settings import CURVE_POINTS, Settings
from algorithms.self_play.tree_learner import AveragePolicy
from algorithms.support.arrays import Float64Array
from kuhn_bridge.kuhn_v0 import env as kuhn_env
from kuhn_bridge.rules import Action
from kuhn_bridge.state import OBSERVATION_SIZE, Observation


class TurnsEnv(gymnasium.Env[Observation, np.int64]):
    """The PettingZoo face with both seats' turns in one trajectory."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Box(0, 1, (OBSERVATION_SIZE,), np.float32)
        self.action_space = spaces.Discrete(len(Action))
        self._env = kuhn_env()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal a new hand; the observation is player_0's."""
        super().reset(seed=seed)
        self._env.reset(seed=seed, options=options)
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """The actor's own reward with the next actor's observation: here the sign is lost."""
        actor = self._env.agent_selection
        self._env.step(int(action))
        reward, ended = self._env.rewards[actor], self._env.terminations[actor]
        return self._observation(), reward, ended, False, {}

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions of the player to act: bool `(3,)`."""
        return self._env.observe(self._env.agent_selection)["action_mask"].astype(bool)

    def _observation(self) -> Observation:
        return np.asarray(self._env.observe(self._env.agent_selection)["observation"], np.float32)


def usual_model(settings: Settings, **options: Any) -> MaskablePPO:
    """SB3's defaults on one environment."""
    for name in ("learning_rate", "clip_range", "ent_coef"):
        options[name] = getattr(settings, name)
    return MaskablePPO("MlpPolicy", DummyVecEnv([TurnsEnv] * settings.n_envs), **options)


class MeasuredPolicy:
    """A `Learner` that changes nothing: a stock model's policy, and the average of its policies."""

    return_scale = 1.0

    def __init__(self, model: Any, game: Game) -> None:
        self._model = model
        self._game = game
        self._average = AveragePolicy(game.tree)

    @property
    def last(self) -> Float64Array:
        """The model's policy, `(I, A)`."""
        table: Float64Array = network_table(actor_of(self._model.policy), self._game)
        return table

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`."""
        return self._average.table

    @property
    def last_policy(self) -> Policy:
        """The model's policy."""
        return Policy(self._game, self.last)

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far."""
        return Policy(self._game, self.average)

    def measures(self) -> tuple[float, float]:
        """NashConv of the last policy and of the average."""
        return self.last_policy.nash_conv(), self.average_policy.nash_conv()

    def add_to_average(self) -> None:
        """Add the model's policy to the average."""
        self._average.add(self.last)

    def start(self, total_steps: int) -> None:
        """Nothing to prepare."""

    def before_rollout(self, progress: float) -> float:
        """PPO's entropy coefficient, as it is."""
        return float(self._model.ent_coef)

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Nothing is learned here."""

    def exploring(self) -> AbstractContextManager[None]:
        """Draw actions as the policy does."""
        return nullcontext()

    def changed_gradients(self) -> AbstractContextManager[None]:
        """Change nothing."""
        return nullcontext()

    def get_state(self) -> dict[str, Any]:
        """Nothing is stored."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Nothing was stored."""


class MeasureOnly(SelfPlay):
    """Averages and measures Kuhn's policies between updates, and leaves PPO alone."""

    def _init_callback(self) -> None:
        if self._learner is None:
            self._learner = MeasuredPolicy(self.model, kuhn())
            self._curve_points = CURVE_POINTS

    def _on_training_start(self) -> None:
        self.recorder.start()

    def _on_rollout_start(self) -> None:
        self._average_and_record()

    def _on_rollout_end(self) -> None:
        pass
