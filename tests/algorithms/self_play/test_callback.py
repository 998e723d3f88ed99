"""`SelfPlay()` says what it cannot do, and what has no effect."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv
from tests.games import LEDUC


def model_of(env: Any = None, **options: Any) -> MaskablePPO:
    return MaskablePPO(
        "MlpPolicy",
        env or SelfPlayVecEnv(16),
        n_steps=4,
        batch_size=64,
        seed=0,
        device="cpu",
        **options,
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kl": -1}, "kl=-1: want a number from 0 up"),
        ({"kl": "x"}, "kl='x': want a number"),
        ({"kl": float("nan")}, "kl=nan"),
        ({"points": -1}, "points=-1"),
        ({"points": True}, "points=True"),
        ({"total_steps": 0}, "steps=0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(kb.BridgeError, match=reason):
        SelfPlay(**settings)


def test_settings_without_effect_are_refused() -> None:
    with pytest.raises(kb.BridgeError, match=r"ent_coef_end=0\.1: it has no effect"):
        model_of().learn(64, callback=SelfPlay(ent_coef_end=0.1))


def test_an_entropy_weight_without_effect_is_a_warning_once() -> None:
    model = model_of(ent_coef=0.01)
    callback = SelfPlay()
    with pytest.warns(UserWarning, match=r"ent_coef=0\.01 has no effect"):
        model.learn(64, callback=callback)
    model.learn(64, callback=callback)  # another warning would be an error here
    assert model.ent_coef == 0.01


def test_two_in_a_list_are_refused_and_leave_nothing_behind() -> None:
    model = model_of()
    buffer = model.rollout_buffer
    with pytest.raises(kb.BridgeError, match=r"two SelfPlay\(\) callbacks in one learn"):
        model.learn(64, callback=[SelfPlay(), SelfPlay()])
    assert model.rollout_buffer is buffer
    assert type(model) is MaskablePPO


@pytest.mark.parametrize("algorithm", [PPO, A2C, DQN])
def test_other_algorithms_are_answered_with_maskable_ppo(algorithm: Any) -> None:
    model = algorithm("MlpPolicy", SelfPlayVecEnv(4), device="cpu")
    with pytest.raises(kb.BridgeError, match=f"{algorithm.__name__}: use sb3_contrib.MaskablePPO"):
        model.learn(64, callback=SelfPlay())


@pytest.mark.parametrize("wrap", [VecNormalize, lambda env: VecFrameStack(env, 2)])
@pytest.mark.parametrize("on", ["tree", "states"])
def test_wrappers_that_change_observations_are_refused_by_name(wrap: Any, on: str) -> None:
    env = wrap(SelfPlayVecEnv(16, LEDUC, on=on))
    with pytest.raises(kb.BridgeError, match=f"{type(env).__name__} changes observations"):
        model_of(env).learn(64, callback=SelfPlay())


def test_without_a_model_there_are_no_policies() -> None:
    for name in ("last_policy", "average_policy", "learner"):
        with pytest.raises(kb.BridgeError, match="no model yet"):
            getattr(SelfPlay(), name)


class SaveWhileLearning(BaseCallback):
    """Saves the model in the middle of `learn`, as SB3's CheckpointCallback does."""

    def __init__(self, path: Any) -> None:
        super().__init__()
        self.path = path

    def _on_step(self) -> bool:
        self.model.save(self.path)
        return True


def test_a_model_saved_while_it_learns_is_a_stock_one(tmp_path: Any) -> None:
    path = tmp_path / "model.zip"
    model = model_of()
    model.learn(128, callback=[SelfPlay(), SaveWhileLearning(path)])
    loaded = MaskablePPO.load(path, env=SelfPlayVecEnv(16), device="cpu")
    assert type(loaded) is MaskablePPO
    assert loaded.ent_coef == 0
    callback = SelfPlay()
    loaded.learn(64, callback=callback)
    assert callback.curve[-1].last == pytest.approx(kb.Policy.from_sb3(loaded).nash_conv())


def test_settings_of_a_subclass_and_its_methods_stay() -> None:
    class Counting(MaskablePPO):
        """A user's own subclass."""

        trained = 0

        def train(self) -> None:
            self.trained += 1
            super().train()

    model = Counting("MlpPolicy", SelfPlayVecEnv(16), n_steps=4, batch_size=64, device="cpu")
    model.learn(256, callback=SelfPlay())
    assert type(model) is Counting
    assert model.trained == 4


def test_a_new_callback_goes_on_with_what_the_model_has_learned() -> None:
    model = model_of()
    first = SelfPlay()
    model.learn(128, callback=first)
    second = SelfPlay()
    model.learn(128, callback=second)
    assert second.learner is first.learner
    assert second.curve[0].steps == 0
    assert second.curve[0].last == pytest.approx(first.curve[-1].last)
    other = SelfPlay(exploration=0.5)  # another setting: it starts anew
    model.learn(128, callback=other)
    assert other.learner is not first.learner
    learned = other.learner
    model.set_parameters(model_of().get_parameters())  # and so it does from other weights
    model.learn(128, callback=other)
    assert other.learner is not learned


def test_a_model_is_forgotten_when_nobody_uses_it() -> None:
    model = model_of()
    model.learn(64, callback=SelfPlay())
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_a_good_policy_that_becomes_much_worse_is_a_warning() -> None:
    expert = kb.solve("kuhn", until=1e-3).distil(width=32).to_sb3()
    expert.set_env(SelfPlayVecEnv(1))
    with pytest.warns(UserWarning, match="made the policy worse: NashConv 0.0"):
        expert.learn(2_048, callback=SelfPlay(exploration=1.0))


def test_the_average_policy_is_what_the_curve_says() -> None:
    callback = SelfPlay()
    model_of(SelfPlayVecEnv(16, LEDUC)).learn(256, callback=callback)
    assert callback.average_policy.nash_conv() == pytest.approx(callback.curve[-1].average)
    assert np.isfinite(callback.curve[-1].average)
