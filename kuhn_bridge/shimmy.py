"""Shimmy's OpenSpiel wrapper, made to play whole hands.

`shimmy.OpenSpielCompatibilityV0` 2.0.1 goes wrong on games with chance nodes in four ways:

- its clock counts chance nodes against `max_game_length()`, which leaves them out: every hand of
  `kuhn_poker` is cut off after one action, with reward 0;
- the clock starts at 1, so the longest hands count as truncated as well as finished;
- when the first finished agent leaves, the last rewards are added to the others' once more;
- `reset` loads the game anew by its short name, and so forgets the parameters it was given.
"""

from __future__ import annotations

from typing import Any

import pyspiel
from shimmy import OpenSpielCompatibilityV0


class WholeHands(OpenSpielCompatibilityV0):
    """`OpenSpielCompatibilityV0` that ends a hand when OpenSpiel ends it."""

    def __init__(
        self,
        env: pyspiel.Game | None = None,
        game_name: str | None = None,
        render_mode: str | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(env, game_name, render_mode, config)
        self.config = config if config is not None else self._env.get_parameters()

    def _update_termination_truncation(self) -> None:
        self.game_length = 0  # an OpenSpiel game ends by itself: no clock is needed
        super()._update_termination_truncation()

    def _end_routine(self) -> bool:
        left = bool(super()._end_routine())
        if left:
            self._clear_rewards()
        return left
