"""Live models of Stable-Baselines3 as policies."""

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayEnv, SelfPlayVecEnv
from tests.games import LEDUC


def model_of(game: str = "kuhn", **options: object) -> MaskablePPO:
    return MaskablePPO(
        "MlpPolicy", SelfPlayVecEnv(16, game), n_steps=4, batch_size=64, device="cpu", **options
    )


@pytest.mark.parametrize("game", ["kuhn", LEDUC])
def test_a_live_model_is_measured_as_its_file_would_be(game, tmp_path):
    model = model_of(game)
    model.learn(128, callback=SelfPlay())
    policy = kb.Policy.from_sb3(model)
    model.save(tmp_path / "model.zip")
    saved = kb.load_policy(tmp_path / "model.zip", game=game)
    assert np.abs(policy.table - saved.table).max() < 1e-6


def test_it_is_the_policy_that_the_model_plays():
    """The frequencies with which `predict` draws actions at one information set."""
    model = model_of()
    game = kb.load_game("kuhn")
    infoset = 3
    many = np.repeat(game.observations[infoset : infoset + 1], 4_000, axis=0)
    masks = np.repeat(game.tree.legal[infoset : infoset + 1], 4_000, axis=0)
    torch.manual_seed(0)
    actions, _ = model.predict(many, action_masks=masks)
    found = np.bincount(actions, minlength=3) / len(actions)
    assert found == pytest.approx(kb.Policy.from_sb3(model).table[infoset], abs=0.04)


def test_dropout_is_switched_off_and_on_again():
    model = model_of()
    model.policy.mlp_extractor.policy_net.append(nn.Dropout(0.5))
    model.policy.set_training_mode(True)
    assert kb.Policy.from_sb3(model) == kb.Policy.from_sb3(model)
    assert model.policy.training


def test_plain_ppo_is_measured_with_illegal_actions_masked_out():
    policy = kb.Policy.from_sb3(PPO("MlpPolicy", SelfPlayVecEnv(4), device="cpu"))
    assert 0 < policy.nash_conv() < 2
    assert not policy.table[~policy.game.tree.legal].any()


def test_normalised_observations_are_normalised():
    env = VecNormalize(SelfPlayVecEnv(16, opponents={1: kb.Policy.uniform("kuhn")}))
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=64, device="cpu")
    model.learn(512)
    seen = env.normalize_obs(kb.load_game("kuhn").observations)
    logits = model.policy.get_distribution(torch.as_tensor(seen)).distribution.logits
    right = kb.Policy.from_network(lambda inputs: logits.detach().numpy(), "kuhn").table
    first = kb.Policy.from_sb3(model, "kuhn").table
    assert first == pytest.approx(right, abs=1e-6)


def test_a_model_without_an_environment_needs_a_game(tmp_path):
    model = model_of()
    model.save(tmp_path / "model.zip")
    loaded = MaskablePPO.load(tmp_path / "model.zip", device="cpu")
    with pytest.raises(kb.PolicyError, match="give game="):
        kb.Policy.from_sb3(loaded)
    assert kb.Policy.from_sb3(loaded, "kuhn") == kb.Policy.from_sb3(model)
    with pytest.raises(kb.PolicyError, match="a model for another game"):
        kb.Policy.from_sb3(loaded, LEDUC)


def test_what_is_not_such_a_model_is_refused():
    for other in (3, DQN("MlpPolicy", SelfPlayEnv(guarded=False), device="cpu", buffer_size=10)):
        with pytest.raises(kb.PolicyError, match="want a MaskablePPO or PPO"):
            kb.Policy.from_sb3(other)
    with pytest.raises(kb.PolicyError, match="from_sb3"):
        kb.load_policy(model_of())
    with pytest.raises(kb.PolicyError, match="from_sb3"):
        kb.Policy.from_network(model_of().policy, "kuhn")
