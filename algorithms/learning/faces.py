"""One hand at a time on the PettingZoo face of any game; the caller decides the moves of chance."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from algorithms.exact.simulator import running_sums
from algorithms.games import KUHN, Game
from algorithms.support.arrays import BoolArray, Float32Array
from kuhn_bridge.kuhn_v0 import env as kuhn_env

NOBODY = -1


class Face:
    """One hand, move by move: on `kuhn_v0`, or on Shimmy's wrapper of an OpenSpiel game."""

    def __init__(self, game: Game) -> None:
        self._is_kuhn = game.name == KUHN
        self._env: Any = kuhn_env() if self._is_kuhn else _shimmy_env(game, self._play_chance)
        self._dealt: Iterator[int] = iter(())
        self._draw: Callable[[], float] = float

    def reset(self, dealt: Sequence[int], draw: Callable[[], float]) -> None:
        """Start a hand: chance's first moves are `dealt`, later ones follow from `draw`."""
        self._dealt, self._draw = iter(dealt), draw
        self._env.reset(options={"cards": tuple(dealt)} if self._is_kuhn else None)

    def step(self, action: int) -> None:
        """Play the move of the player to act."""
        self._env.step(action)

    def actor(self) -> int:
        """The player to act, or NOBODY at the end."""
        over = any(self._env.terminations.values())
        return NOBODY if over else int(self._env.possible_agents.index(self._env.agent_selection))

    def observation(self) -> Float32Array:
        """The observation of the player to act: `(size,)`."""
        if self._is_kuhn:
            return np.asarray(self._observed()["observation"])
        # The wrapper itself returns the observation tensor if the game has one.
        return np.array(self._env.game_state.information_state_tensor(self.actor()), np.float32)

    def mask(self) -> BoolArray:
        """The legal actions of the player to act: `(A,)`."""
        shown = self._observed() if self._is_kuhn else self._env.infos[self._env.agent_selection]
        return np.asarray(shown["action_mask"], bool)

    def returns(self) -> list[float]:
        """Each player's return at the end of the hand."""
        if self._is_kuhn:
            return [float(self._env.rewards[agent]) for agent in self._env.possible_agents]
        return list(self._env.game_state.returns())

    def _observed(self) -> Any:
        return self._env.observe(self._env.agent_selection)

    def _play_chance(self, state: Any) -> None:
        """Apply chance's next move to an OpenSpiel state: first those dealt, then drawn ones."""
        outcome = next(self._dealt, None)
        if outcome is None:
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            sums = running_sums([probabilities])[0]
            outcome = outcomes[int((sums <= self._draw()).sum())]
        state.apply_action(int(outcome))


def _shimmy_env(game: Game, play_chance: Callable[[Any], None]) -> Any:
    from kuhn_bridge.shimmy import WholeHands

    class GivenChance(WholeHands):
        """Shimmy's wrapper with given chance moves."""

        def _execute_chance_node(self) -> None:
            while self.game_state.is_chance_node():
                play_chance(self.game_state)

    return GivenChance(env=game.origin)
