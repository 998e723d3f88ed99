"""Shimmy's OpenSpiel wrapper with four errors corrected, so that it plays whole hands.

The errors of `shimmy.OpenSpielCompatibilityV0` 2.0.1 on games with chance nodes:

- its step counter includes chance nodes and is compared with `max_game_length()`, which does not:
  every hand of `kuhn_poker` is truncated after one action, with reward 0;
- the counter starts at 1, so the longest hands are truncated as well as terminated;
- when the first finished agent leaves, the last rewards are added to the others' a second time;
- `reset` loads the game again by its short name and so loses its parameters.
"""

from typing import Any

from shimmy import OpenSpielCompatibilityV0


class WholeHands(OpenSpielCompatibilityV0):
    """`OpenSpielCompatibilityV0` that ends a hand when OpenSpiel ends it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.config: dict[str, Any] = self.config or self._env.get_parameters()

    def _update_termination_truncation(self) -> None:
        self.game_length = 0  # OpenSpiel's games end without a step limit
        super()._update_termination_truncation()

    def _end_routine(self) -> bool:
        has_ended = bool(super()._end_routine())
        if has_ended:
            self._clear_rewards()
        return has_ended
