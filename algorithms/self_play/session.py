"""What `SelfPlay()` changes in a stock `MaskablePPO`, and how the changes end.

A callback is not told when an exception, such as Ctrl-C, leaves `learn`: SB3 calls its
`on_training_end` only at the end of a complete run. What a callback had changed would stay, and the
next `learn` would change it again. So nothing of the model is changed here but its class:

- `learn` spends its time in `collect_rollouts`, `train` and `dump_logs`. The class
  `SelfPlayingPPO` has these methods, and everything that self-play changes is changed inside them,
  in `with` blocks: the environment lets itself be stepped, actions are explored, the model's
  `rollout_buffer` and `ent_coef` are those of the session, and PPO's gradients are changed. The
  model's own attributes of these two names keep what the user put there, also meanwhile.
- An exception that leaves one of these methods ends the session: the model gets its class back.
- An exception that leaves `learn` between two of them, or from another callback's
  `on_training_start`, is not seen. The class stays then, without an effect outside of its methods,
  until the next `learn`. Every `learn` begins with `_setup_learn`, where the class ends itself.

Every session has a class of its own, derived from the model's, so that subclasses of `MaskablePPO`
work, too. SB3 saves a model's attributes and not its class, so that a model that is saved while it
learns is a stock one; so is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from sb3_contrib import MaskablePPO
from torch.distributions import Distribution

from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.distinct_observations import evaluated_once_per_infoset
from algorithms.self_play.environments import steps_allowed
from algorithms.self_play.learner import Learner
from algorithms.support.errors import UsageError
from algorithms.tree import Tree


class Session:
    """One `learn` of a model by self-play, from `on_training_start` on.

    Attributes:
        model: model that learns.
        learner: learner that changes its gradients.
        buffer: rollout buffer that it plays into.
        tree: the game's tree if hands are played on it.
        ent_coef: weight of the entropy in PPO's loss.
        is_running: whether one of the methods of `SelfPlayingPPO` is running.
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
        if isinstance(model, SelfPlayingPPO):
            model.end_session()
            raise UsageError("two SelfPlay() callbacks in one learn: want one")
        self.model = model
        self.learner = learner
        self.buffer = buffer
        self.tree = tree
        self.ent_coef = float(model.ent_coef)
        self.is_running = False
        self._on_error = on_error
        own_class = type(model)
        attributes = {
            "_session": self,
            "_own_class": own_class,
            "__module__": own_class.__module__,
            "__doc__": own_class.__doc__,
        }
        model.__class__ = type(own_class.__name__, (SelfPlayingPPO, own_class), attributes)

    def end(self) -> None:
        """Make the model an object of its own class again."""
        if isinstance(self.model, SelfPlayingPPO):
            self.model.end_session()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the session have its effect inside the block; an exception ends it."""
        try:
            self.is_running = True
            with unvalidated_distributions():
                yield
        except BaseException:
            self.end()
            self._on_error()
            raise
        finally:
            self.is_running = False


@contextmanager
def unvalidated_distributions() -> Iterator[None]:
    """Let torch trust the parameters of distributions inside the block.

    Validation takes a tenth of the time. Weights that are not finite are found before a rollout.
    """
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


class SelfPlayingPPO(MaskablePPO):
    """The class of a model while it learns by self-play."""

    _session: ClassVar[Session]
    _own_class: ClassVar[type[MaskablePPO]]

    def end_session(self) -> None:
        """Become an object of the model's own class again."""
        self.__class__ = self._own_class

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are objects of the model's own class."""
        _, _, *state = super().__reduce_ex__(protocol)
        return object.__new__, (self._own_class,), *state

    @property
    def rollout_buffer(self) -> Any:
        """The session's buffer while it is running."""
        session = self._session
        return session.buffer if session.is_running else self.__dict__["rollout_buffer"]

    @rollout_buffer.setter
    def rollout_buffer(self, buffer: Any) -> None:
        self.__dict__["rollout_buffer"] = buffer

    @property
    def ent_coef(self) -> float:
        """The session's weight of the entropy while it is running."""
        session = self._session
        weight: float = session.ent_coef if session.is_running else self.__dict__["ent_coef"]
        return weight

    @ent_coef.setter
    def ent_coef(self, weight: float) -> None:
        self.__dict__["ent_coef"] = weight

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        """Begin another `learn`, which this session is no part of."""
        self.end_session()
        return self._setup_learn(*args, **kwargs)  # of the model's own class

    def collect_rollouts(
        self,
        env: Any,
        callback: Any,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play a rollout in which every decision of every seat is a step."""
        session = self._session
        with session.running(), steps_allowed(env), session.learner.exploring():
            if not use_masking:
                raise UsageError("use_masking=False: a policy has to know which actions are legal")
            # Not into `rollout_buffer`: that is the model's own, which `learn` has taken.
            return bool(super().collect_rollouts(env, callback, session.buffer, n_rollout_steps))

    def train(self) -> None:
        """Learn from the rollout, with the learner's gradients."""
        session = self._session
        with session.running(), session.learner.changed_gradients(), ExitStack() as faster:
            if session.tree is not None:
                faster.enter_context(evaluated_once_per_infoset(self, session.buffer, session.tree))
            super().train()

    def dump_logs(self, iteration: int = 0) -> None:
        """Write the log."""
        with self._session.running():
            super().dump_logs(iteration)
