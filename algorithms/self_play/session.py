"""What `SelfPlay()` changes in a stock `MaskablePPO`, and how the changes end with one `learn`.

A callback is not told when an exception, such as Ctrl-C, leaves `learn`: SB3 calls its
`on_training_end` only at the end of a complete run. What a callback changed would stay, and the
next `learn` would change it again. So nothing of the model is changed here but its class, and only
as long as `learn` runs:

- `rollout_buffer` and `ent_coef` are properties of the class `SelfPlayingPPO`. The model's own
  attributes of these names keep what the user put there.
- `collect_rollouts` and `train` are methods of that class. Inside them, in `with` blocks, the
  environment lets itself be stepped, actions are explored, and PPO's gradients are changed.
- An exception from any of the methods in which `learn` spends its time ends the session.
- An exception from the lines between them, or from another callback's `on_training_start`, leaves
  the class behind, but without effect: a session is live only while the very call of `learn` for
  which it was made is on the stack of some thread. Whatever asks the class later ends the session
  first.

Every session has a class of its own, derived from the model's, so that subclasses of `MaskablePPO`
work, too. SB3 saves a model's attributes and not its class, so that a model that is saved while it
learns is a stock one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, ClassVar

from sb3_contrib import MaskablePPO

from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.distinct_observations import evaluated_once_per_infoset
from algorithms.self_play.environments import steps_allowed
from algorithms.self_play.learner import Learner
from algorithms.support.errors import UsageError
from algorithms.tree import Tree


class Session:
    """One `learn` of a model by self-play.

    Attributes:
        model: model that learns.
        learner: learner that changes its gradients.
        buffer: rollout buffer that it plays into.
        tree: the game's tree if hands are played on it.
        ent_coef: weight of the entropy in PPO's loss.
        is_over: whether the session has ended.
    """

    def __init__(
        self,
        model: Any,
        learner: Learner,
        buffer: SeatRolloutBuffer,
        *,
        tree: Tree | None,
        on_error: Callable[[], None],
    ) -> None:
        """Begin; `on_error` is called when an exception ends the session."""
        if session_of(model) is not None:
            raise UsageError("two SelfPlay() callbacks in one learn: want one")
        self.model = model
        self.learner = learner
        self.buffer = buffer
        self.tree = tree
        self.ent_coef = float(model.ent_coef)
        self.is_over = False
        self._on_error = on_error
        self._learn_frame = _frame_of_learn(model)
        self._class_before = type(model)
        bases = (SelfPlayingPPO, self._class_before)
        model.__class__ = type(self._class_before.__name__, bases, {"_session": self})

    @property
    def is_live(self) -> bool:
        """Whether the `learn` of this session is running."""
        if self.is_over:
            return False
        if self._learn_frame is None:  # a loop of the user's own, which ends training by itself
            return True
        return any(
            frame is self._learn_frame
            for innermost in sys._current_frames().values()
            for frame in _callers(innermost)
        )

    def end(self) -> None:
        """Make the model an object of its own class again."""
        self.is_over = True
        self._learn_frame = None  # it would keep alive whatever `learn` had
        if getattr(type(self.model), "_session", None) is self:
            self.model.__class__ = self._class_before

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """End the session if an exception leaves the block."""
        try:
            yield
        except BaseException:
            if not self.is_over:
                self.end()
                self._on_error()
            raise


class SelfPlayingPPO(MaskablePPO):
    """The class of a model while a session is live."""

    _session: ClassVar[Session]

    @property
    def rollout_buffer(self) -> Any:
        """The session's buffer."""
        session = session_of(self)
        return self.__dict__["rollout_buffer"] if session is None else session.buffer

    @rollout_buffer.setter
    def rollout_buffer(self, buffer: Any) -> None:
        self.__dict__["rollout_buffer"] = buffer

    @property
    def ent_coef(self) -> float:
        """The session's weight of the entropy."""
        session = session_of(self)
        weight: float = self.__dict__["ent_coef"] if session is None else session.ent_coef
        return weight

    @ent_coef.setter
    def ent_coef(self, weight: float) -> None:
        self.__dict__["ent_coef"] = weight

    def collect_rollouts(self, env: Any, callback: Any, *args: Any, **kwargs: Any) -> bool:
        """Play a rollout in which every decision of every seat is a step."""
        session = session_of(self)
        if session is None:  # the class is the model's own again
            return bool(self.collect_rollouts(env, callback, *args, **kwargs))
        with session.ended_by_errors(), steps_allowed(env), session.learner.exploring():
            return bool(super().collect_rollouts(env, callback, *args, **kwargs))

    def train(self) -> None:
        """Learn from the rollout, with the learner's gradients."""
        session = session_of(self)
        if session is None:
            self.train()
            return
        with session.ended_by_errors(), session.learner.changed_gradients(), ExitStack() as faster:
            if session.tree is not None:
                faster.enter_context(evaluated_once_per_infoset(self, session.buffer, session.tree))
            super().train()

    def dump_logs(self, iteration: int = 0) -> None:
        """Write the log."""
        session = session_of(self)
        if session is None:
            self.dump_logs(iteration)
            return
        with session.ended_by_errors():
            super().dump_logs(iteration)


def session_of(model: Any) -> Session | None:
    """The live session of a model, if any; one that is no longer live is ended."""
    session: Session | None = getattr(type(model), "_session", None)
    if session is None:
        return None
    if session.model is model and session.is_live:
        return session
    if session.model is model:
        session.end()
    else:  # a copy, made while the original was learning
        model.__class__ = session._class_before
    return None


def _frame_of_learn(model: Any) -> FrameType | None:
    """The frame of the call of `learn` that is running for this model."""
    for frame in _callers(sys._getframe()):
        if frame.f_code.co_name == "learn" and frame.f_locals.get("self") is model:
            return frame
    return None


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """A frame, its caller, the caller's caller, and so on."""
    caller: FrameType | None = frame
    while caller is not None:
        yield caller
        caller = caller.f_back
