"""Learning on states: the averages of weights, the pull towards the magnet, the size of returns."""

import copy

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

from algorithms.compiled.nashconv import returns_std
from algorithms.games import load_game
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.network_learner import sizes_under_uniform_play
from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training
from tests.games import LEDUC

RIVER = (
    "universal_poker(betting=nolimit,numPlayers=2,numRounds=4,blind=100 50,firstPlayer=2 1 1 1,"
    "numSuits=4,numRanks=4,numHoleCards=2,numBoardCards=0 3 1 1,stack=20000 20000,"
    "bettingAbstraction=fcpa,potSize=2000,boardCards=5d4c3s5h2d)"
)


def model_on_states(hands, **options):
    env = SelfPlayVecEnv(hands, LEDUC, on="states")
    return MaskablePPO("MlpPolicy", env, device="cpu", **options)


def weighted_mean(values, weights):
    return pytest.approx(np.dot(values, weights) / sum(weights), rel=1e-5)


def test_weights_are_averaged_with_growing_weight_and_the_magnet_is_younger():
    callback = SelfPlay()
    callback.init_callback(model_on_states(4))
    learner = callback.learner
    averages = []
    magnets = []
    values = (1.0, 5.0, -2.0)
    for value in values:
        with torch.no_grad():
            for parameter in learner.last.parameters():
                parameter.fill_(value)
        learner.add_to_average()
        averages.append(float(next(learner.average.parameters()).flatten()[0]))
        magnets.append(float(next(learner.magnet.parameters()).flatten()[0]))
    assert averages[0] == magnets[0] == pytest.approx(1.0)
    assert averages[2] == weighted_mean(values, [2, 6, 12])  # t (t + 1)
    assert magnets[2] == weighted_mean(values, [1, 10, 55])  # t (t + 1) ... (t + 8) / 9!


def test_the_kl_pull_is_the_gradient_of_the_divergence_from_the_magnet():
    """Without advantages and entropy, an update follows kl * mean KL(p || magnet) alone."""
    torch.manual_seed(0)
    callback = SelfPlay(kl=0.5, kl_end=0.5)
    model = model_on_states(16, n_steps=4, batch_size=64, n_epochs=1, vf_coef=0.0)
    callback.init_callback(model)
    learner = callback.learner
    with torch.no_grad():
        for parameter in learner.magnet.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    learner.start(total_steps=64)
    learner.before_rollout(0.0)
    simulator = model.get_env().simulator
    observations = torch.tensor(simulator.observations)
    masks = torch.tensor(simulator.masks)
    model.rollout_buffer.batch = type(
        "Batch", (), {"observations": observations, "action_masks": masks.float()}
    )
    with learner.changed_gradients():
        (learner.last(observations) * 0.0).sum().backward()
    found = [parameter.grad.clone() for parameter in learner.last.parameters()]
    actor = copy.deepcopy(learner.last)
    actor.zero_grad()

    def log_policy(network):
        return network(observations).masked_fill(~masks, -1e8).log_softmax(1)

    with torch.no_grad():
        log_magnet = log_policy(learner.magnet)
    ours = log_policy(actor)
    (0.5 * (ours.exp() * (ours - log_magnet)).sum(1).mean()).backward()
    for gradient, parameter in zip(found, actor.parameters(), strict=True):
        assert torch.allclose(gradient, parameter.grad, atol=1e-6)
        assert gradient.abs().max() > 1e-5


def test_returns_are_measured_in_their_root_mean_square_and_inputs_by_the_largest():
    game = load_game(LEDUC)
    sizes = sizes_under_uniform_play(game)
    expected = returns_std(game.tree, game.tree.uniform())
    assert sizes.returns == pytest.approx(expected, rel=0.05)
    assert (sizes.inputs == 1).all()
    assert sizes_under_uniform_play(load_game(RIVER)).inputs.max() == 20_000


def test_a_game_whose_tensor_has_amounts_of_chips_is_learned():
    """With inputs of 20,000 as they are, NashConv rises within the same run."""
    settings = configure(
        {"game": RIVER, "env": "states", "learner": "ppo", "steps": 100_000, "points": 1}
    )
    training = Training(settings)
    training.run()
    first, *_, end = training.recorder.points
    assert end.average < 0.6 * first.average
