"""The usual recipe, for comparison: one environment, and whoever is to act is "the agent".

Its fault is in one place: the reward of the last actor ends a trajectory in which the seats took
turns, so whatever comes before is credited to the *other* seat with the same sign. In a zero-sum
game that trains each seat to help its opponent.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kuhn_bridge.encoding import OBSERVATION_SIZE, Observation
from kuhn_bridge.kuhn_v0 import env as kuhn_env
from kuhn_bridge.rules import Action


class TurnsEnv(gymnasium.Env[Observation, np.int64]):
    """The PettingZoo face with both seats' turns in one trajectory."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Box(0, 1, (OBSERVATION_SIZE,), np.float32)
        self.action_space = spaces.Discrete(len(Action))
        self._env = kuhn_env()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new hand, seen by player_0."""
        super().reset(seed=seed)
        self._env.reset(seed=seed, options=options)
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """The actor's own reward, but the next actor's view: here the sign is lost."""
        actor = self._env.agent_selection
        self._env.step(int(action))
        return self._seen(), self._env.rewards[actor], self._env.terminations[actor], False, {}

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """What the seat to act may do: bool `(3,)`."""
        return self._env.observe(self._env.agent_selection)["action_mask"].astype(bool)

    def _seen(self) -> Observation:
        return np.asarray(self._env.observe(self._env.agent_selection)["observation"], np.float32)
