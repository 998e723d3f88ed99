"""`SelfPlay()`, the callback that makes stock `MaskablePPO` learn by self-play.

One policy plays all seats. What happens in one `model.learn(n, callback=SelfPlay())`:

1. A session begins. The model gets a class of its own until `learn` returns or raises, and nothing
   else of it is changed (`session.py`).
2. The environment, guarded otherwise, lets itself be stepped: every decision of every seat is a
   step (`environments.py`). PPO plays a rollout into `SeatRolloutBuffer`, which computes advantages
   along each seat's own decisions (`advantages.py`).
3. PPO's own `train` runs. A learner changes its gradients, so that the policy approaches an
   equilibrium: `TreeLearner` in games with a tree (`tree_learner.py`), `NetworkLearner` in games
   without one (`network_learner.py`). Each of these modules opens with its equations; what the
   callback calls and when is written down in the protocol `Learner` (`learner.py`).
4. The policies are averaged and measured, which gives the learning curve (`curve.py`).

What outlives a `learn`, so that the next one can go on, also with a new `SelfPlay()`, is the
learner's memory (regrets, averages, critics). It belongs to one model, its policy, its game and the
settings: with another of these, or if somebody has changed the weights, learning starts anew. The
curve belongs to the callback, and goes on while steps are counted on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from algorithms.games import Game, TreeGame, as_game
from algorithms.policies import Policy
from algorithms.policies.network import network_table
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.curve import COLUMNS, LearningCurve, Point, Recorder
from algorithms.self_play.environments import last_step_of, observations_of, require_self_play
from algorithms.self_play.infoset_learner import InfosetLearner
from algorithms.self_play.learner import SCHEDULED, Learner, NetworkMeasure
from algorithms.self_play.network_learner import NetworkLearner
from algorithms.self_play.session import Session
from algorithms.self_play.settings import (
    CURVE_POINTS,
    Kind,
    default_points,
    require_effect,
    require_possible,
)
from algorithms.self_play.table_ppo import SeenActorPolicy, TableActorPolicy
from algorithms.self_play.tree_learner import TreeLearner
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import short_repr

QUICK = 1.0  # seconds: a `measure` that takes no longer is also called after an interruption


MUCH_WORSE = 1.5  # times the NashConv at the start, of which a user is warned


class Subject(NamedTuple):
    """What a learner of a model learns: if any of it is another one, learning starts anew."""

    policy: Any
    game: str
    backend: str
    settings: tuple[Any, ...]

    def is_same(self, other: Subject) -> bool:
        """Whether both are the same policy in the same game, with equal settings."""
        return self.policy is other.policy and self[1:] == other[1:]


@dataclass(frozen=True, eq=False)
class Memory:
    """What was learned about a model: its learner, which goes on in the next `learn`.

    Attributes:
        subject: what the learner learns.
        learner: learner; it refers to the model weakly.
        weights: the policy's weights when it last learned. If they are others later, the user has
            changed them, and learning starts anew.
    """

    subject: Subject
    learner: Learner
    weights: list[torch.Tensor]

    def remember_weights(self) -> None:
        """Store the weights as they are now."""
        self.weights[:] = weights_of(self.subject.policy)

    def has_same_weights(self) -> bool:
        """Whether nobody else has changed the weights since they were stored."""
        now = weights_of(self.subject.policy)
        return len(now) == len(self.weights) and all(map(torch.equal, now, self.weights))


def weights_of(policy: Any) -> list[torch.Tensor]:
    """A copy of the weights of a policy."""
    return [weights.detach().clone() for weights in policy.parameters()]


# By model, so that a new `SelfPlay()` goes on where an earlier one of the same model has ended: as
# an optimizer's state does, a learner's belongs to the model. It cannot be an attribute of the
# model, which SB3 would save. A model that is no longer used is forgotten.
MEMORIES: WeakKeyDictionary[Any, Memory] = WeakKeyDictionary()


class SelfPlay(BaseCallback):
    """The callback that makes stock `MaskablePPO` learn by self-play.

        model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=8)
        model.learn(1_000_000, callback=SelfPlay())

    PPO's code, loss and optimizer stay the same; this module says what is added. Settings that are
    None have the defaults of `algorithms.train_ppo`. One callback can be used again, for the same
    model or for another one, and after an interruption; so can a new one, which goes on with what
    the model has learned. A copy of a callback has its settings and its curve, and no model.

    Args:
        exploration: share of decisions that are drawn at random, in games with a tree.
        kl: weight of the KL divergence from the magnet at the start, in games without a tree.
        kl_end: weight of the KL divergence from the magnet at the end, in games without a tree.
        ent_coef_end: weight of the entropy at the end, in games without a tree; by default it stays
            the model's `ent_coef`.
        total_steps: number of steps that the schedules span; by default those of `learn`.
        points: number of points of the learning curve after the first one.
        measure: function that measures a network if hands are played on states; by default
            NashConv in games that fit a tree, and no figures in other games.
        measure_name: name of the figures of the learning curve.
        watch: function of each point of the learning curve, and in between of the latest figures.
    """

    model: Any  # a MaskablePPO; SB3 types it as any algorithm

    def __init__(  # noqa: PLR0913  # keyword options
        self,
        *,
        exploration: float | None = None,
        kl: float | None = None,
        kl_end: float | None = None,
        ent_coef_end: float | None = None,
        total_steps: int | None = None,
        points: int | None = None,
        measure: NetworkMeasure | None = None,
        measure_name: str = COLUMNS[2],
        watch: Callable[[Point], None] | None = None,
    ) -> None:
        super().__init__()
        given = {
            "exploration": exploration,
            "kl": kl,
            "kl_end": kl_end,
            "ent_coef_end": ent_coef_end,
        }
        for name, value in {**given, "points": points}.items():
            if value is not None:
                require_possible(name, value)
        if total_steps is not None:
            require_possible("steps", total_steps, called="total_steps")
        for name, function in {"measure": measure, "watch": watch}.items():
            if function is not None and not callable(function):
                raise UsageError(f"{name}={short_repr(function)}: want a function")
        self._given = {name: given[name] for name in SCHEDULED}
        self._total_steps = total_steps
        self._points = points
        self._measure = measure
        self.recorder = Recorder(watch, measure=measure_name)
        self._memory: Memory | None = None
        self._session: Session | None = None
        self._curve_points = 0  # how many points the curve of this game has by default
        self._averaged_at: int | None = None  # the steps at which a policy was last averaged
        self._carried: dict[str, Any] = {}  # the decisions with which the next buffer begins

    @property
    def curve(self) -> LearningCurve:
        """NashConv over steps, of the last policy and of the average."""
        return LearningCurve(self.recorder.points)

    @property
    def learner(self) -> Learner:
        """The learner of the latest model."""
        if self._memory is None:
            raise UsageError("this SelfPlay() has no model yet: call model.learn with it first")
        return self._memory.learner

    @property
    def last_policy(self) -> Policy:
        """The model's policy, as it is now."""
        return self.learner.last_policy

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far, which is usually the better one."""
        return self.learner.average_policy

    def _init_callback(self) -> None:
        """Prepare for the model that SB3 has set, at the start of each `learn`."""
        model = self.model
        if not isinstance(model, MaskablePPO):
            raise UsageError(
                f"SelfPlay() with {type(model).__name__}: use sb3_contrib.MaskablePPO, which "
                "knows which actions are legal"
            )
        env = self.training_env
        require_self_play(env)
        game = as_game(env.get_attr("game")[0])
        backend = env.get_attr("on")[0]
        settings = (*self._given.values(), self._measure)
        subject = Subject(model.policy, game.name, backend, settings)
        known = MEMORIES.get(model)
        if known is None or not (known.subject.is_same(subject) and known.has_same_weights()):
            known = self._new_memory(subject, game)
            MEMORIES[model] = known
        if self._memory is not known:
            self._memory = known
            self._averaged_at = None
            self._carried = {}
            self.recorder.clear()
        has_figures = isinstance(game, TreeGame) or self._measure is not None
        self._curve_points = default_points(game) if has_figures else CURVE_POINTS

    def _new_memory(self, subject: Subject, game: Game) -> Memory:
        """The memory of another model, policy or game."""
        on_tree = subject.backend == "tree"
        kind = _kind_of(subject)
        for name, value in self._given.items():
            if value is not None:
                require_effect(name, value, kind)
        if on_tree and self.model.ent_coef:
            warnings.warn(
                f"ent_coef={self.model.ent_coef} has no effect: in a game with a tree "
                "SelfPlay() sets the weight of the entropy by itself",
                stacklevel=2,
            )
        measure = self._measure
        if measure is None and isinstance(game, TreeGame):
            measure = partial(_nash_conv, game)
        made = _learner_of(subject)(proxy(self.model), game, self._given, measure)
        return Memory(subject, made, weights_of(subject.policy))

    def _on_training_start(self) -> None:
        model = self.model
        total = self._total_steps or model._total_timesteps - model._num_timesteps_at_start
        if self.curve and model.num_timesteps < self.curve[-1].steps:  # steps are counted from 0
            self.recorder.clear()
        self.recorder.start(first_point=0 if self._total_steps else len(self.curve))
        self._start_point = max(0, len(self.curve) - 1)  # of the curve, where this `learn` starts
        self.learner.start(total)
        # An error or a reset of the user's may have moved the environment since SB3 last looked.
        model._last_obs = observations_of(self.training_env)
        self._buffer = self._new_buffer()
        self._observations_are_known = False
        env = self.training_env
        on_tree = env.get_attr("on")[0] == "tree"
        self._session = Session(
            model,
            self.learner,
            self._buffer,
            tree=as_game(env.get_attr("game")[0]).tree if on_tree else None,
            on_error=self._record_after_an_error,
        )

    def _new_buffer(self) -> SeatRolloutBuffer:
        """A rollout buffer for this model and its environment as they are now."""
        model = self.model
        env = self.training_env
        buffer = SeatRolloutBuffer(
            model.n_steps,
            model.observation_space,
            model.action_space,
            device=model.device,
            gamma=model.gamma,
            gae_lambda=model.gae_lambda,
            n_envs=env.num_envs,
            players=as_game(env.get_attr("game")[0]).num_players,
            last_step=lambda: last_step_of(env),
            scale=self.learner.return_scale,
        )
        buffer.carried = self._carried
        self._carried = {}
        return buffer

    def _on_rollout_start(self) -> None:
        if not _is_finite(self.model):
            raise diverged(self.model)
        self._remember_weights()
        self._average_and_record()
        ent_coef = self.learner.before_rollout(self._progress())
        if self._session is not None:
            self._session.ent_coef = ent_coef

    def _on_rollout_end(self) -> None:
        if not self._observations_are_known:
            self._require_known_observations()
            self._observations_are_known = True
        self.learner.after_rollout(self._buffer)

    def _require_known_observations(self) -> None:
        """Raise an error if the policy sees something else than the game's own observations."""
        rollout = self._buffer.rollout
        if self._session is None or self._session.tree is None:
            return
        size = rollout.observations.shape[-1]
        if size == 1:  # numbers of information sets
            return
        game = as_game(self.training_env.get_attr("game")[0])
        infosets = self._session.tree.infoset[rollout.nodes]  # (T, n)
        if not np.array_equal(rollout.observations, game.network_inputs(size)[infosets]):
            raise UsageError(
                "the policy sees an observation that no decision of this game has: a wrapper of "
                "the environment changes observations, so what is learned would not be a policy of "
                "the game"
            )

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if self._session is not None:
            self._session.end()
            self._session = None
        self._remember_weights()
        self._average_and_record(final=True)
        if not self._total_steps:  # a part of a longer run is not judged
            self._warn_if_worse()

    def _warn_if_worse(self) -> None:
        """Warn if the policy that `learn` began with was much better than the result."""
        start = self.curve[self._start_point].last
        end = min(self.curve[-1].last, self.curve[-1].average)
        if end > MUCH_WORSE * start:
            warnings.warn(
                f"this learn has made the policy worse: NashConv {start:.3g} at its start, "
                f"{end:.3g} now. A good policy is given up when the regrets of sampled hands say "
                "so, and these are noisy: more steps help, or more decisions per update (n_envs)",
                stacklevel=2,
            )

    def _record_after_an_error(self) -> None:
        """Measure the policy that an interrupted `learn` leaves behind, if that is quick."""
        self._session = None
        self._remember_weights()
        is_quick = self._measure is None or self.recorder.latest_measurement <= QUICK
        if is_quick and _is_finite(self.model):
            with suppress(Exception):  # what interrupted `learn` is raised again
                self._average_and_record(final=True)

    def _remember_weights(self) -> None:
        """Note that the weights of now are what was learned."""
        if self._memory is not None:
            self._memory.remember_weights()

    def _progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1."""
        if self._total_steps:
            return min(1.0, float(self.model.num_timesteps) / self._total_steps)
        start = self.model._num_timesteps_at_start
        end = self.model._total_timesteps
        return float((self.model.num_timesteps - start) / max(end - start, 1))

    def _average_and_record(self, *, final: bool = False) -> None:
        steps = self.model.num_timesteps
        if self._averaged_at != steps:
            self.learner.add_to_average()
            self._averaged_at = steps
        recorder = self.recorder
        points = self._curve_points if self._points is None else self._points
        if final or recorder.is_due(steps, self._progress(), points):
            recorder.add(steps, self.learner.measures)
            latest = recorder.points[-1]
            self.logger.record(f"game/{recorder.measure}", latest.last)
            self.logger.record(f"game/{recorder.measure}_average", latest.average)
        else:
            recorder.show(steps)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates and figures depend on."""
        carried = {name: torch.as_tensor(values) for name, values in self._buffer.carried.items()}
        return {
            "learner": self.learner.get_state(),
            "curve": self.recorder.get_state(),
            "carried": carried,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`, in the next `learn`."""
        self.learner.set_state(state["learner"])
        self.recorder.set_state(state["curve"])
        self._carried = {name: values.numpy() for name, values in state["carried"].items()}
        self._remember_weights()  # the run's, which have been loaded before

    def __getstate__(self) -> dict[str, Any]:
        """The settings and the curve, for copies and pickles."""
        return {
            "settings": {
                **self._given,
                "total_steps": self._total_steps,
                "points": self._points,
                "measure": self._measure,
                "measure_name": self.recorder.measure,
                "watch": self.recorder.watch,
            },
            "curve": self.recorder.get_state(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["settings"])  # type: ignore[misc]
        self.recorder.set_state(state["curve"])


def _kind_of(subject: Subject) -> Kind:
    """The kind of training, which determines the settings that have an effect."""
    if _learner_of(subject) is NetworkLearner:
        return "states"
    plays_a_table = isinstance(subject.policy, TableActorPolicy | SeenActorPolicy)
    return "table" if plays_a_table else "network"


def _learner_of(subject: Subject) -> type[TreeLearner | InfosetLearner | NetworkLearner]:
    """The class of the learner."""
    if subject.backend == "tree":
        return TreeLearner
    if isinstance(subject.policy, SeenActorPolicy):
        return InfosetLearner
    return NetworkLearner


def _nash_conv(game: TreeGame, network: nn.Module) -> float:
    """NashConv of a network in a game with a tree."""
    return Policy(game, network_table(network, game)).nash_conv()


def _is_finite(model: Any) -> bool:
    """Whether all weights of the model are finite."""
    return all(bool(weights.isfinite().all()) for weights in model.policy.parameters())


def diverged(model: Any) -> UsageError:
    """The error of a run whose weights are no longer finite."""
    hint = "try a smaller learning_rate"
    return UsageError(f"the run diverged at step {model.num_timesteps:,}: {hint}")
