"""`SelfPlay` in any order of events: figures are true, and models are as the user made them.

A state machine makes models and callbacks, learns with any pair of them, interrupts, changes
environments, saves, loads and copies. After every `learn` the reported NashConv is compared with
one that is measured anew, and the model with what it was before. The same machine has to find
errors that are planted: those that the project had.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import kuhn_bridge as kb
from algorithms.self_play import environments
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.curve import Recorder
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.self_play.session import Session
from tests.games import LEDUC

STEPS = 64  # decisions of one rollout, whatever the number of environments


class ScaledExtractor(FlattenExtractor):
    """A features extractor of the user's own."""

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(observations)


class Kind(NamedTuple):
    """A kind of model: its game, its environment and its policy."""

    game: str
    make_env: Callable[[int], VecEnv]
    policy_kwargs: dict[str, Any]


def monitored(n_envs: int) -> VecEnv:
    return DummyVecEnv([lambda: Monitor(SelfPlayEnv())] * n_envs)


SMALL = {"net_arch": [8]}
KINDS = [
    Kind("kuhn", SelfPlayVecEnv, SMALL),
    Kind("kuhn", monitored, SMALL),
    Kind("kuhn", SelfPlayVecEnv, {**SMALL, "features_extractor_class": ScaledExtractor}),
    Kind("kuhn_poker(players=3)", lambda n: SelfPlayVecEnv(n, "kuhn_poker(players=3)"), SMALL),
    Kind(LEDUC, lambda n: SelfPlayVecEnv(n, LEDUC, on="states"), SMALL),
]


class Made(NamedTuple):
    """A model, and what the user gave it."""

    model: MaskablePPO
    kind: Kind
    rollout_buffer: Any
    ent_coef: float


def make(kind: Kind, n_envs: int) -> Made:
    model = MaskablePPO(
        "MlpPolicy",
        kind.make_env(n_envs),
        n_steps=STEPS // n_envs,
        batch_size=32,
        n_epochs=1,
        learning_rate=0.01,
        seed=0,
        device="cpu",
        policy_kwargs=kind.policy_kwargs,
    )
    return Made(model, kind, model.rollout_buffer, model.ent_coef)


def true_nash_conv(made: Made) -> float:
    """NashConv of what the model plays, measured anew."""

    def logits(observations: Any) -> Any:
        made.model.policy.set_training_mode(False)
        distribution = made.model.policy.get_distribution(torch.as_tensor(observations))
        return distribution.distribution.logits.detach().numpy()

    return kb.Policy.from_network(logits, made.kind.game).nash_conv()


def nash_conv_on_states(network: Any) -> float:
    """The measure of networks that are played on Leduc's states."""
    return kb.Policy.from_network(network, LEDUC).nash_conv()


def make_callback() -> SelfPlay:
    return SelfPlay(measure=nash_conv_on_states)  # which games with a tree do not need


class Interrupt(BaseCallback):
    """Raises an error at one moment of `learn`."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment = moment

    def reach(self, moment: str) -> None:
        if moment == self.moment:
            raise KeyboardInterrupt

    def _on_training_start(self) -> None:
        self.reach("training start")

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self.model._num_timesteps_at_start + STEPS:
            self.reach("rollout start")

    def _on_step(self) -> bool:
        if self.n_calls * self.training_env.num_envs > STEPS:
            self.reach("step")
        return True

    def _on_rollout_end(self) -> None:
        self.reach("rollout end")


@contextmanager
def interrupted_in_train(model: MaskablePPO, moment: str) -> Iterator[None]:
    """Interrupt PPO's `train` after its first gradient step."""
    optimizer: Any = model.policy.optimizer
    step = optimizer.step

    def stop(*args: Any, **kwargs: Any) -> None:
        step(*args, **kwargs)
        raise KeyboardInterrupt

    if moment == "train":
        optimizer.step = stop
    try:
        yield
    finally:
        optimizer.step = step


MOMENTS = ["training start", "rollout start", "step", "rollout end", "train"]


class AnyOrder(RuleBasedStateMachine):
    """Models, callbacks, and everything that users do with them."""

    def __init__(self) -> None:
        super().__init__()
        self.models = [make(KINDS[0], 8)]
        self.callbacks = [make_callback()]

    @precondition(lambda self: len(self.models) < 4)
    @rule(kind=st.sampled_from(KINDS), n_envs=st.sampled_from([4, 8]))
    def add_model(self, kind: Kind, n_envs: int) -> None:
        self.models.append(make(kind, n_envs))

    @precondition(lambda self: len(self.callbacks) < 3)
    @rule()
    def add_callback(self) -> None:
        self.callbacks.append(make_callback())

    @rule(data=st.data(), by_pickle=st.booleans())
    def copy_callback(self, data: st.DataObject, by_pickle: bool) -> None:
        index = data.draw(st.integers(0, len(self.callbacks) - 1))
        callback = self.callbacks[index]
        copied = pickle.loads(pickle.dumps(callback)) if by_pickle else copy.deepcopy(callback)
        assert copied.curve == callback.curve
        self.callbacks[index] = copied

    @rule(data=st.data())
    def set_env(self, data: st.DataObject) -> None:
        made = data.draw(st.sampled_from(self.models))
        made.model.set_env(made.kind.make_env(made.model.n_envs))

    @rule(data=st.data(), n_envs=st.sampled_from([4, 8]))
    def save_and_load(self, data: st.DataObject, n_envs: int) -> None:
        index = data.draw(st.integers(0, len(self.models) - 1))
        made = self.models[index]
        file = BytesIO()
        made.model.save(file)
        file.seek(0)
        env = made.kind.make_env(n_envs)
        loaded = MaskablePPO.load(file, env=env, device="cpu", n_steps=STEPS // n_envs)
        self.models[index] = Made(loaded, made.kind, loaded.rollout_buffer, loaded.ent_coef)

    @rule(data=st.data(), rollouts=st.integers(1, 3), reset=st.booleans())
    def learn(self, data: st.DataObject, rollouts: int, reset: bool) -> None:
        made = data.draw(st.sampled_from(self.models))
        callback = data.draw(st.sampled_from(self.callbacks))
        made.model.learn(rollouts * STEPS, callback=callback, reset_num_timesteps=reset)
        self.require_true_figures(made, callback)
        self.require_untouched(made)

    @rule(
        data=st.data(),
        reset=st.booleans(),
        moment=st.sampled_from(MOMENTS),
        first=st.booleans(),
    )
    def learn_until_interrupted(
        self, data: st.DataObject, reset: bool, moment: str, first: bool
    ) -> None:
        made = data.draw(st.sampled_from(self.models))
        callback = data.draw(st.sampled_from(self.callbacks))
        interrupt = Interrupt(moment)
        callbacks = [interrupt, callback] if first else [callback, interrupt]
        with interrupted_in_train(made.model, moment), pytest.raises(KeyboardInterrupt):
            made.model.learn(3 * STEPS, callback=callbacks, reset_num_timesteps=reset)
        if moment != "training start":  # when nothing was learned
            self.require_true_figures(made, callback)
        self.require_untouched(made)

    def require_true_figures(self, made: Made, callback: SelfPlay) -> None:
        truth = true_nash_conv(made)
        assert callback.curve[-1].steps == made.model.num_timesteps
        assert callback.curve[-1].last == pytest.approx(truth, abs=1e-6)
        assert callback.last_policy.nash_conv() == pytest.approx(truth, abs=1e-6)
        average = callback.average_policy.nash_conv()
        assert callback.curve[-1].average == pytest.approx(average, abs=1e-6)
        assert kb.Policy.from_sb3(made.model).nash_conv() == pytest.approx(truth, abs=1e-6)

    def require_untouched(self, made: Made) -> None:
        model = made.model
        assert model.rollout_buffer is made.rollout_buffer
        assert model.ent_coef == made.ent_coef
        assert type(model) is MaskablePPO
        assert not model.policy.action_net._forward_hooks
        assert "evaluate_actions" not in vars(model.policy)
        env = model.get_env()
        assert env is not None
        assert all(env.get_attr("guarded"))
        env.reset()
        with pytest.raises(kb.BridgeError, match="SelfPlay"):
            env.step(np.zeros(env.num_envs, np.int64))


def run(examples: int) -> None:
    """Run the machine; its failures are not shrunk, which would take minutes."""
    run_state_machine_as_test(
        AnyOrder,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            print_blob=False,
        ),
    )


def test_figures_are_true_and_models_untouched_in_any_order() -> None:
    run(examples=40)


def keep_the_first_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A1: a callback keeps the learner of its first model."""
    start_anew = SelfPlay._start_anew

    def once(self: SelfPlay, *args: Any) -> None:
        if self._learner is None:
            start_anew(self, *args)

    monkeypatch.setattr(SelfPlay, "_start_anew", once)


def leave_hooks_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: an error leaves what was changed."""

    @contextmanager
    def nothing(self: Session) -> Iterator[None]:
        yield

    monkeypatch.setattr(Session, "ended_by_errors", nothing)
    monkeypatch.setattr(Session, "is_live", property(lambda self: not self.is_over))


def set_the_wrapper_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: the environment under a `Monitor` stays guarded."""

    @contextmanager
    def by_attribute(env: VecEnv) -> Iterator[None]:
        if isinstance(env, DummyVecEnv):
            for one in env.envs:
                one.guarded = False  # of the wrapper
            yield
            return
        with steps_allowed(env):
            yield

    steps_allowed = environments.steps_allowed
    monkeypatch.setattr("algorithms.self_play.session.steps_allowed", by_attribute)


def measure_the_whole_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A6: a live model is measured as a function of observations, which it is not."""

    def from_sb3(model: MaskablePPO) -> kb.Policy:
        env = model.get_env()
        assert env is not None
        return kb.Policy.from_network(model.policy, env.get_attr("game")[0])

    monkeypatch.setattr(kb.Policy, "from_sb3", from_sb3)


def keep_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10: a curve is not begun again when steps are counted from 0."""
    clear = Recorder.clear

    def clear_once(self: Recorder) -> None:
        if not hasattr(self, "points"):
            clear(self)

    monkeypatch.setattr(Recorder, "clear", clear_once)


PLANTED = [
    keep_the_first_learner,
    leave_hooks_behind,
    set_the_wrapper_instead,
    measure_the_whole_policy,
    keep_the_curve,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_machine_finds_errors_that_are_planted(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, kb.BridgeError, ValueError, BaseExceptionGroup)):
        run(examples=100)
