"""One hand at a time on the PettingZoo face of any game; the caller decides the moves of chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from algorithms.exact.simulator import running_sums
from algorithms.games import KUHN, Game
from algorithms.support.arrays import BoolArray, Float32Array
from kuhn_bridge.kuhn_v0 import env as kuhn_env

Draw: TypeAlias = Callable[[], float]

NOBODY = -1


class Face(Protocol):
    """One hand at a time, move by move."""

    def reset(self, dealt: Sequence[int], draw: Draw) -> None:
        """A new hand: chance's first moves are `dealt`, its later ones follow from draws."""

    def step(self, action: int) -> None:
        """The move of the player to act."""

    def actor(self) -> int:
        """Who is to act, or NOBODY at the end."""

    def observation(self) -> Float32Array:
        """What the player to act sees."""

    def mask(self) -> BoolArray:
        """What the player to act may do."""

    def returns(self) -> list[float]:
        """What each player has won by the end of the hand."""


def face_of(game: Game) -> Face:
    """`kuhn_v0` for Kuhn poker, Shimmy's wrapper with whole hands for OpenSpiel's games."""
    return _Kuhn() if game.name == KUHN else _OpenSpiel(game)


class _Kuhn:
    def __init__(self) -> None:
        self._env: Any = kuhn_env()

    def reset(self, dealt: Sequence[int], draw: Draw) -> None:
        self._env.reset(options={"cards": tuple(dealt)})

    def step(self, action: int) -> None:
        self._env.step(action)

    def actor(self) -> int:
        over = any(self._env.terminations.values())
        return NOBODY if over else self._env.possible_agents.index(self._env.agent_selection)

    def observation(self) -> Float32Array:
        return self._observe()["observation"]  # type: ignore[no-any-return]

    def mask(self) -> BoolArray:
        return self._observe()["action_mask"].astype(bool)  # type: ignore[no-any-return]

    def returns(self) -> list[float]:
        return [float(self._env.rewards[agent]) for agent in self._env.possible_agents]

    def _observe(self) -> Any:
        return self._env.observe(self._env.agent_selection)


class _OpenSpiel:
    def __init__(self, game: Game) -> None:
        from kuhn_bridge.shimmy import WholeHands

        outer = self

        class Dealt(WholeHands):
            """Whole hands whose chance moves are given."""

            def _execute_chance_node(self) -> None:
                while self.game_state.is_chance_node():
                    outer._chance(self.game_state)

        self._env: Any = Dealt(env=game.origin)
        self._dealt: Iterator[int] = iter(())
        self._draw: Draw = float

    def reset(self, dealt: Sequence[int], draw: Draw) -> None:
        self._dealt, self._draw = iter(dealt), draw
        self._env.reset()

    def step(self, action: int) -> None:
        self._env.step(action)

    def actor(self) -> int:
        over = any(self._env.terminations.values())
        return NOBODY if over else int(self._env.agent_name_id_mapping[self._env.agent_selection])

    def observation(self) -> Float32Array:
        # The wrapper itself shows the observation tensor wherever a game has one as well.
        return np.array(self._env.game_state.information_state_tensor(self.actor()), np.float32)

    def mask(self) -> BoolArray:
        mask = self._env.infos[self._env.agent_selection]["action_mask"]
        return np.asarray(mask, bool)

    def returns(self) -> list[float]:
        return list(self._env.game_state.returns())

    def _chance(self, state: Any) -> None:
        """Chance's next move: as dealt, then as drawn."""
        outcome = next(self._dealt, None)
        if outcome is None:
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            sums = running_sums([probabilities])[0]
            outcome = outcomes[int((sums <= self._draw()).sum())]
        state.apply_action(int(outcome))
