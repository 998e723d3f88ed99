"""What a learner is: the part of self-play that decides how a policy changes.

`SelfPlay` (in `callback.py`) calls a learner, and a learner never calls it. There are two:
`TreeLearner` for games with a tree, and `NetworkLearner` for games without one. This module has
their protocol, the schedules of their settings, and the way in which they change PPO's gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import torch
from torch import nn

from algorithms.policies import Policy
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.settings import Kind, default

SCHEDULED = ("exploration", "kl", "kl_end", "ent_coef_end")
ILLEGAL = -1e8  # the logit of an illegal action, as in sb3_contrib

Given: TypeAlias = dict[str, float | None]  # the settings in SCHEDULED; None: the default
NetworkMeasure: TypeAlias = Callable[[nn.Module], float]  # in a game without a tree


class Learner(Protocol):
    """A learner of one model in one game.

    `SelfPlay` makes it at the start of the first `learn`, and then calls, in this order:

    | when | what |
    |---|---|
    | at the start of each `learn` | `start(total_steps)` |
    | before each rollout | `add_to_average()`, `measures()` if due, `before_rollout(progress)` |
    | around each rollout | `with exploring():` |
    | after each rollout | `after_rollout(buffer)`: advantages are known, PPO has not learned yet |
    | around PPO's `train` | `with changed_gradients():` |
    | at the end of each `learn` | `add_to_average()`, `measures()` |

    The state of a learner outlives a `learn`, so that the next one of the same model can go on.
    """

    return_scale: float  # returns are divided by it in the rollout buffer

    @property
    def last_policy(self) -> Policy:
        """The model's current policy."""

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far."""

    def measures(self) -> tuple[float, float]:
        """The figures of the learning curve: of the last policy and of the average."""

    def start(self, total_steps: int) -> None:
        """Prepare a `learn` whose schedules span this number of decisions."""

    def before_rollout(self, progress: float) -> float:
        """Prepare the next update at this fraction of the run; return PPO's entropy coefficient."""

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Look at a rollout before PPO learns from it."""

    def exploring(self) -> AbstractContextManager[None]:
        """Change how actions are drawn, inside the block."""

    def changed_gradients(self) -> AbstractContextManager[None]:
        """Change PPO's gradients inside the block."""

    def add_to_average(self) -> None:
        """Add the current policy to the average."""

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on, in types that `torch.load` takes for weights."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""


def scheduled_values(given: Given, kind: Kind) -> dict[str, float]:
    """The values of the settings in SCHEDULED."""
    values = {name: default(name, kind) if v is None else v for name, v in given.items()}
    return {name: value or 0.0 for name, value in values.items()}


def between(first: float, last: float, progress: float) -> float:
    """A geometric interpolation between both ends, linear if one of them is 0."""
    if first > 0 and last > 0:
        return float(first ** (1 - progress) * last**progress)
    return float(first + (last - first) * progress)


def change_gradient(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replace the gradient of a tensor by a function of it."""
    tensor.register_hook(change)  # type: ignore[no-untyped-call]


def is_learning(model: Any, logits: torch.Tensor) -> bool:
    """Whether PPO computes these logits for its gradient, from the buffer's latest batch."""
    return bool(logits.requires_grad and model.policy.training)
