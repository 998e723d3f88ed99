"""Learning from large inputs as if they were divided by their size."""

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3.common.policies import ActorCriticPolicy

from algorithms.self_play.input_scales import ScaledInputs

SIZE = 4
SCALES = np.array([1.0, 1.0, 50.0, 20_000.0], np.float32)


def new_policy(**options):
    torch.manual_seed(0)
    box = gymnasium.spaces.Box(-np.inf, np.inf, (SIZE,), np.float32)
    actions = gymnasium.spaces.Discrete(3)
    adam = {"betas": (0.5, 0.999), "eps": 1e-5}
    return ActorCriticPolicy(box, actions, lambda left: 1e-2, optimizer_kwargs=adam, **options)


def outputs(policy, observations):
    """The logits and values of observations."""
    features = policy.extract_features(observations)
    latent_actor, latent_critic = policy.mlp_extractor(features)
    return policy.action_net(latent_actor), policy.value_net(latent_critic)


def learn(policy, observations, steps):
    """A few steps of Adam towards fixed outputs, with clipped gradients."""
    for _ in range(steps):
        logits, values = outputs(policy, observations)
        loss = (logits - 1).pow(2).mean() + (values - 2).pow(2).mean()
        policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.1)
        policy.optimizer.step()


def test_a_network_learns_from_large_inputs_what_another_learns_from_divided_ones():
    divided = torch.rand(32, SIZE)
    large = divided * torch.tensor(SCALES)
    ordinary = new_policy()
    policy = new_policy()
    scaled = ScaledInputs(policy, SCALES)
    scaled.divide_initial_weights()
    for ours, theirs in zip(outputs(policy, large), outputs(ordinary, divided), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    learn(ordinary, divided, steps=20)
    with scaled.learning():
        learn(policy, large, steps=20)
    for ours, theirs in zip(outputs(policy, large), outputs(ordinary, divided), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-3)
        assert (theirs - 1.5).abs().mean() < 1


def test_weights_are_divided_once_and_hooks_end_with_the_block():
    policy = new_policy()
    scaled = ScaledInputs(policy, SCALES)
    scaled.divide_initial_weights()
    before = [weight.detach().clone() for weight in policy.parameters()]
    ScaledInputs(policy, SCALES).divide_initial_weights()
    for weight, old in zip(policy.parameters(), before, strict=True):
        assert torch.equal(weight, old)
    with scaled.learning():
        pass
    learn(policy, torch.rand(8, SIZE), steps=1)
    first = policy.mlp_extractor.policy_net[0].weight
    step = (first - before[0]).abs().max(dim=0).values
    assert step.min() > 1e-3  # Adam's own, not one that is divided by scales


@pytest.mark.parametrize("scales", [np.ones(SIZE, np.float32), SCALES])
def test_a_network_without_large_inputs_or_with_other_features_stays_as_it_is(scales):
    options = {} if (scales == 1).all() else {"features_extractor_class": own_features}
    policy = new_policy(**options)
    before = [weight.detach().clone() for weight in policy.parameters()]
    ScaledInputs(policy, scales).divide_initial_weights()
    for weight, old in zip(policy.parameters(), before, strict=True):
        assert torch.equal(weight, old)


def own_features(space):
    """A features extractor that is not SB3's flattening."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Halves(BaseFeaturesExtractor):
        def forward(self, observations):
            return observations / 2

    return Halves(space, SIZE)
