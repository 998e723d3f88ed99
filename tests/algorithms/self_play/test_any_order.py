"""`SelfPlay` in any order of events: figures are true, and models are as the user made them.

A state machine makes models and callbacks, learns with any pair of them, interrupts, changes
environments, saves, loads and copies. After every `learn` the reported NashConv is compared with
one that is measured anew, and the model with what it was before. The same machine has to find
errors that are planted: those that the project had, and others like them.

That gradients are changed once is not seen in such figures. A second test therefore interrupts a
model, and compares what it learns afterwards with a model that was never interrupted, bit for bit.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import kuhn_bridge as kb
from algorithms.self_play import network_learner
from algorithms.self_play.callback import Memory, SelfPlay
from algorithms.self_play.curve import Recorder
from algorithms.self_play.environments import Guarded, SelfPlayEnv, SelfPlayVecEnv
from algorithms.self_play.network_learner import NetworkLearner
from algorithms.self_play.session import SelfPlayingPPO, Session
from algorithms.self_play.tree_learner import TreeLearner
from tests.games import LEDUC

# A few updates of a small network may well make a policy worse, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:this learn has made the policy worse")

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


def on_states(n_envs: int) -> VecEnv:
    return SelfPlayVecEnv(n_envs, LEDUC, on="states")


SMALL = {"net_arch": [8]}
OWN = {**SMALL, "features_extractor_class": ScaledExtractor, "share_features_extractor": False}
KINDS = [
    Kind("kuhn", SelfPlayVecEnv, SMALL),
    Kind("kuhn", monitored, SMALL),
    Kind("kuhn", SelfPlayVecEnv, OWN),
    Kind("kuhn_poker(players=3)", lambda n: SelfPlayVecEnv(n, "kuhn_poker(players=3)"), SMALL),
    Kind(LEDUC, on_states, SMALL),
    Kind(LEDUC, on_states, OWN),
]


FIRST = [KINDS[0], KINDS[1], KINDS[-1]]


class Made(NamedTuple):
    """A model, and what the user gave it."""

    model: MaskablePPO
    kind: Kind
    rollout_buffer: Any
    ent_coef: float


def made_of(model: MaskablePPO, kind: Kind) -> Made:
    return Made(model, kind, model.rollout_buffer, model.ent_coef)


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
    return made_of(model, kind)


def true_nash_conv(made: Made) -> float:
    """NashConv of what the model plays, measured anew."""

    def logits(observations: Any) -> Any:
        made.model.policy.set_training_mode(False)
        distribution = made.model.policy.get_distribution(torch.as_tensor(observations))
        return distribution.distribution.logits.detach().numpy()

    return kb.Policy.from_network(logits, made.kind.game).nash_conv()


def hooks_of(policy: Any) -> list[Any]:
    """Everything by which a policy can be made to learn otherwise."""
    optimizer = policy.optimizer
    found = [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    found += [weights._backward_hooks for weights in policy.parameters()]
    for module in policy.modules():
        found += [module._forward_hooks, module._forward_pre_hooks, module._backward_hooks]
    assert "evaluate_actions" not in vars(policy)
    return [hooks for hooks in found if hooks]


def explores(model: MaskablePPO) -> bool:
    """Whether a policy draws actions with other probabilities than its own."""
    policy: Any = model.policy
    env: Any = model.get_env()
    observations = torch.as_tensor(env.reset())
    masks = get_action_masks(env).reshape(env.num_envs, -1)
    with torch.no_grad():
        actions, _, played = policy(observations, action_masks=masks)
        _, own, _ = policy.evaluate_actions(observations, actions, masks)
    return not torch.allclose(played, own, atol=1e-6)


class Interrupt(BaseCallback):
    """Raises an error, or stops, at one moment of `learn`."""

    def __init__(self, moment: str, error: type[BaseException]) -> None:
        super().__init__()
        self.moment = moment
        self.error = error

    def reach(self, moment: str) -> None:
        if moment == self.moment:
            raise self.error

    def _on_training_start(self) -> None:
        self.reach("training start")

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self.model._num_timesteps_at_start + STEPS:
            self.reach("rollout start")

    def _on_step(self) -> bool:
        is_second = self.n_calls * self.training_env.num_envs > STEPS
        if is_second:
            self.reach("step")
        return not (is_second and self.moment == "stop")

    def _on_rollout_end(self) -> None:
        self.reach("rollout end")

    def _on_training_end(self) -> None:
        self.reach("training end")


@contextmanager
def interrupted_inside(
    model: MaskablePPO, moment: str, error: type[BaseException]
) -> Iterator[None]:
    """Interrupt PPO's `train` after its first gradient step, or the writing of the log."""
    optimizer: Any = model.policy.optimizer
    step = optimizer.step
    update_progress = model._update_current_progress_remaining

    def stop(*args: Any, **kwargs: Any) -> None:
        step(*args, **kwargs)
        raise error

    def stop_between(*args: Any) -> None:
        raise error

    if moment == "train":
        optimizer.step = stop
    if moment == "between":  # two methods that `SelfPlay` sees
        model._update_current_progress_remaining = stop_between  # type: ignore[method-assign]
    try:
        yield
    finally:
        optimizer.step = step
        model._update_current_progress_remaining = update_progress  # type: ignore[method-assign]
        del model._update_current_progress_remaining  # the method of the class is back


# At the first of these `SelfPlay` does not see the exception.
UNSEEN = ["training start", "between", "training end"]
# While PPO trains, most is changed: that moment comes up more often.
MOMENTS = [*UNSEEN, "rollout start", "step", "rollout end", "train", "train", "train"]


class Copy(BaseCallback):
    """Copies the model while it learns."""

    def __init__(self, *, by_pickle: bool) -> None:
        super().__init__()
        self.by_pickle = by_pickle
        self.copied: Any = None

    def _on_step(self) -> bool:
        if self.n_calls == 3:
            self.copied = copy_of(self.model, by_pickle=self.by_pickle)
        return True


def copy_of(thing: Any, *, by_pickle: bool) -> Any:
    return pickle.loads(pickle.dumps(thing)) if by_pickle else copy.deepcopy(thing)


class AnyOrder(RuleBasedStateMachine):
    """Models, callbacks, and everything that users do with them."""

    def __init__(self) -> None:
        super().__init__()
        self.models = [make(kind, 8) for kind in FIRST]
        self.callbacks = [SelfPlay()]

    @precondition(lambda self: len(self.models) < 5)
    @rule(kind=st.sampled_from(KINDS), n_envs=st.sampled_from([4, 8]))
    def add_model(self, kind: Kind, n_envs: int) -> None:
        self.models.append(make(kind, n_envs))

    @precondition(lambda self: len(self.callbacks) < 3)
    @rule()
    def add_callback(self) -> None:
        self.callbacks.append(SelfPlay())

    @rule(data=st.data(), by_pickle=st.booleans())
    def copy_callback(self, data: st.DataObject, by_pickle: bool) -> None:
        index = data.draw(st.integers(0, len(self.callbacks) - 1))
        callback = self.callbacks[index]
        copied = copy_of(callback, by_pickle=by_pickle)
        assert list(map(repr, copied.curve)) == list(map(repr, callback.curve))
        self.callbacks[index] = copied

    @rule(data=st.data(), by_pickle=st.booleans())
    def copy_model(self, data: st.DataObject, by_pickle: bool) -> None:
        index = data.draw(st.integers(0, len(self.models) - 1))
        made = self.models[index]
        copied = made_of(copy_of(made.model, by_pickle=by_pickle), made.kind)
        self.require_untouched(copied)
        self.models[index] = copied

    @rule(data=st.data(), by_pickle=st.booleans())
    def copy_model_while_it_learns(self, data: st.DataObject, by_pickle: bool) -> None:
        index = data.draw(st.integers(0, len(self.models) - 1))
        made = self.models[index]
        copying = Copy(by_pickle=by_pickle)
        made.model.learn(STEPS, callback=[SelfPlay(), copying])
        self.require_untouched(made)
        copied = made_of(copying.copied, made.kind)
        self.require_untouched(copied)
        self.models[index] = copied

    @rule(data=st.data())
    def set_env(self, data: st.DataObject) -> None:
        made = data.draw(st.sampled_from(self.models))
        made.model.set_env(made.kind.make_env(made.model.n_envs))

    @rule(data=st.data(), callback=st.integers(0, 2))
    def set_weights(self, data: st.DataObject, callback: int) -> None:
        """Other weights are learned from as in a new model."""
        made = data.draw(st.sampled_from(self.models))
        model = made.model
        with torch.no_grad():
            for weights in model.policy.parameters():
                weights.add_(0.01 * torch.randn_like(weights))
        learning = self.callbacks[callback % len(self.callbacks)]
        before = learning._memory
        model.learn(STEPS, callback=learning)
        assert learning._memory is not before
        self.require_true_figures(made, learning)

    @rule(data=st.data(), n_envs=st.sampled_from([4, 8]))
    def save_and_load(self, data: st.DataObject, n_envs: int) -> None:
        index = data.draw(st.integers(0, len(self.models) - 1))
        made = self.models[index]
        file = BytesIO()
        made.model.save(file)
        file.seek(0)
        env = made.kind.make_env(n_envs)
        loaded = MaskablePPO.load(file, env=env, device="cpu", n_steps=STEPS // n_envs)
        self.models[index] = made_of(loaded, made.kind)

    @rule(data=st.data(), rollouts=st.integers(1, 3), reset=st.booleans())
    def learn(self, data: st.DataObject, rollouts: int, reset: bool) -> None:
        made = data.draw(st.sampled_from(self.models))
        callback = data.draw(st.sampled_from(self.callbacks))
        made.model.learn(rollouts * STEPS, callback=callback, reset_num_timesteps=reset)
        self.require_true_figures(made, callback)
        self.require_untouched(made)

    @rule(data=st.data(), reset=st.booleans())
    def learn_until_stopped(self, data: st.DataObject, reset: bool) -> None:
        made = data.draw(st.sampled_from(self.models))
        callback = data.draw(st.sampled_from(self.callbacks))
        callbacks = [callback, Interrupt("stop", KeyboardInterrupt)]
        made.model.learn(3 * STEPS, callback=callbacks, reset_num_timesteps=reset)
        self.require_true_figures(made, callback)
        self.require_untouched(made)

    @rule(
        data=st.data(),
        reset=st.booleans(),
        moment=st.sampled_from(MOMENTS),
        error=st.sampled_from([KeyboardInterrupt, ZeroDivisionError]),
        first=st.booleans(),
    )
    def learn_until_interrupted(
        self,
        data: st.DataObject,
        reset: bool,
        moment: str,
        error: type[BaseException],
        first: bool,
    ) -> None:
        made = data.draw(st.sampled_from(self.models))
        callback = data.draw(st.sampled_from(self.callbacks))
        interrupt = Interrupt(moment, error)
        callbacks = [interrupt, callback] if first else [callback, interrupt]
        with interrupted_inside(made.model, moment, error), pytest.raises(error):
            made.model.learn(3 * STEPS, callback=callbacks, reset_num_timesteps=reset)
        if moment not in UNSEEN:
            self.require_true_figures(made, callback)
        self.require_untouched(made, moment)

    def require_true_figures(self, made: Made, callback: SelfPlay) -> None:
        truth = true_nash_conv(made)
        assert callback.curve[-1].steps == made.model.num_timesteps
        assert callback.curve[-1].last == pytest.approx(truth, abs=1e-6)
        assert callback.last_policy.nash_conv() == pytest.approx(truth, abs=1e-6)
        average = callback.average_policy.nash_conv()
        assert callback.curve[-1].average == pytest.approx(average, abs=1e-6)
        assert kb.Policy.from_sb3(made.model).nash_conv() == pytest.approx(truth, abs=1e-6)

    def require_untouched(self, made: Made, moment: str = "") -> None:
        model = made.model
        assert model.rollout_buffer is made.rollout_buffer
        assert model.ent_coef == made.ent_coef
        assert not hooks_of(model.policy)
        assert not explores(model)
        if moment in UNSEEN:  # the class may stay until the next `learn`
            with pytest.raises(kb.BridgeError, match="SelfPlay"):
                model.learn(STEPS, reset_num_timesteps=False)
        assert type(model) is MaskablePPO
        env = model.get_env()
        assert env is not None
        assert all(env.get_attr("guarded"))
        env.reset()
        with pytest.raises(kb.BridgeError, match="SelfPlay"):
            env.step(np.zeros(env.num_envs, np.int64))


@pytest.fixture(autouse=True)
def few_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate sizes of returns from few hands, to be quick."""
    monkeypatch.setattr(network_learner, "UNIFORM_HANDS", 100)


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
    init = SelfPlay._init_callback

    def once(self: SelfPlay) -> None:
        first = self._memory
        init(self)
        self._memory = first or self._memory

    monkeypatch.setattr(SelfPlay, "_init_callback", once)


def keep_the_learner_of_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner goes on although the model's weights have been changed."""
    monkeypatch.setattr(Memory, "has_same_weights", lambda memory: True)


def leaving_on_errors(change: Callable[..., Any]) -> Callable[..., Any]:
    """A context manager whose changes stay if an exception leaves the block."""
    entered = []  # a generator that nobody refers to would be closed, and undo its changes

    @contextmanager
    def leaving(*args: Any, **kwargs: Any) -> Iterator[None]:
        changing = change(*args, **kwargs)
        entered.append(changing)
        changing.__enter__()
        yield
        changing.__exit__(None, None, None)

    return leaving


def leave_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: an error leaves buffer and entropy weight behind."""
    monkeypatch.setattr(Session, "running", leaving_on_errors(Session.running))


def leave_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: the next `learn` does not end a session that was left behind."""
    monkeypatch.delattr(SelfPlayingPPO, "_setup_learn")


def leave_hooks_on_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: an error leaves the hooks behind."""
    changed = leaving_on_errors(TreeLearner.changed_gradients)
    monkeypatch.setattr(TreeLearner, "changed_gradients", changed)


def leave_hooks_on_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: an error leaves the hooks behind."""
    changed = leaving_on_errors(NetworkLearner.changed_gradients)
    monkeypatch.setattr(NetworkLearner, "changed_gradients", changed)


def leave_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error leaves a policy that explores."""
    monkeypatch.setattr(TreeLearner, "exploring", leaving_on_errors(TreeLearner.exploring))


def leave_steps_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: after an error the environment may be stepped without `SelfPlay`."""
    from algorithms.self_play import session

    monkeypatch.setattr(session, "steps_allowed", leaving_on_errors(session.steps_allowed))


def copy_the_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is made while the model learns may be stepped."""
    monkeypatch.setattr(Guarded, "__getstate__", lambda env: {**vars(env)})


def set_the_wrapper_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: the environment under a `Monitor` stays guarded."""
    from algorithms.self_play import session

    steps_allowed = session.steps_allowed

    @contextmanager
    def by_attribute(env: VecEnv) -> Iterator[None]:
        if isinstance(env, DummyVecEnv):
            for one in env.envs:
                one._steps_allowed = True  # of the wrapper
            yield
            return
        with steps_allowed(env):
            yield

    monkeypatch.setattr(session, "steps_allowed", by_attribute)


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
    keep_the_learner_of_other_weights,
    leave_the_session,
    leave_the_class,
    leave_hooks_on_a_tree,
    leave_exploration,
    leave_steps_allowed,
    copy_the_permission,
    set_the_wrapper_instead,
    measure_the_whole_policy,
    keep_the_curve,
]


FOUND = (
    *(AssertionError, AttributeError, ValueError, kb.BridgeError, BaseExceptionGroup),
    pytest.fail.Exception,
)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_machine_finds_errors_that_are_planted(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(FOUND):
        run(examples=200)


def weights_after_learning(interruptions: list[str], kind: Kind) -> list[torch.Tensor]:
    """The weights of a model after a `learn` that follows some that were interrupted."""
    model = make(kind, 8).model
    start = copy.deepcopy(model.get_parameters())
    for moment in interruptions:
        interrupt = Interrupt(moment, KeyboardInterrupt)
        with interrupted_inside(model, moment, KeyboardInterrupt), suppress(KeyboardInterrupt):
            model.learn(3 * STEPS, callback=[SelfPlay(), interrupt])
    model.set_parameters(start)
    model._current_progress_remaining = 1.0
    model.set_env(kind.make_env(8))
    model.set_random_seed(1)
    model.learn(3 * STEPS, callback=SelfPlay())
    return [weights.detach() for weights in model.policy.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_is_changed_once_after_any_interruptions(kind: Kind) -> None:
    uninterrupted = weights_after_learning([], kind)
    interrupted = weights_after_learning([*MOMENTS, "train", "train"], kind)
    assert all(map(torch.equal, uninterrupted, interrupted))


def test_hooks_that_stay_on_states_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state machine seldom interrupts `train` on states, so this error is planted by itself."""
    leave_hooks_on_states(monkeypatch)
    model = make(Kind(LEDUC, on_states, SMALL), 8).model
    interrupt = Interrupt("train", KeyboardInterrupt)
    with interrupted_inside(model, "train", KeyboardInterrupt), suppress(KeyboardInterrupt):
        model.learn(3 * STEPS, callback=[SelfPlay(), interrupt])
    assert hooks_of(model.policy)
