"""Tests of fitting networks to policies."""

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from algorithms.policies.distillation import (
    StoredDataset,
    StratifiedSampler,
    StreamedDataset,
    fit,
    make_dataset,
)
from algorithms.policies.distilled_policy import make_network
from algorithms.policies.network import network_table

LIARS_DICE = "liars_dice(numdice=1,dice_sides=3)"


@pytest.fixture(scope="module")
def equilibrium():
    return kb.solve("kuhn", "dcfr", iterations=1000)


def untrained(policy, width):
    torch.manual_seed(0)
    inputs = policy.game.network_inputs().shape[1]
    return make_network(inputs, [width, width], policy.game.num_actions)


def test_a_small_network_holds_kuhns_equilibrium(equilibrium):
    distilled = equilibrium.distil(width=16)
    assert distilled.nash_conv_after <= 1e-3
    assert distilled.nash_conv_before == equilibrium.nash_conv()
    assert distilled.nash_conv_after == distilled.policy.nash_conv()
    assert distilled.nash_conv_after == min(value for _, value in distilled.curve)
    lost = distilled.nash_conv_after - distilled.nash_conv_before
    uniform = kb.Policy.uniform("kuhn").nash_conv()
    assert distilled.share_lost == pytest.approx(lost / uniform)


def test_where_uniform_play_loses_nothing_there_is_no_share():
    distilled = kb.Policy.uniform("matrix_mp").distil(width=4, steps=20)
    assert distilled.nash_conv_uniform == 0
    assert distilled.share_lost is None
    assert distilled.lost == distilled.nash_conv_after


def test_reach_probabilities_as_weights_keep_more_of_the_policy():
    policy = kb.solve(LIARS_DICE, "dcfr", iterations=300)
    game = policy.game
    every = np.arange(len(policy.table))
    rows = game.policy_rows(policy.table, every)

    def loss_of_fit(weights):
        actor = untrained(policy, 8)
        fitted = fit(
            actor,
            StoredDataset(rows, weights),
            steps=1500,
            measure=lambda: game.measure(network_table(actor, game)).nash_conv,
        )
        return fitted.best

    weighted = loss_of_fit(game.own_reach(policy.table))
    unweighted = loss_of_fit(np.ones(len(policy.table)))
    assert weighted < unweighted / 2


def test_equal_seeds_fit_equal_networks(equilibrium):
    tables = [equilibrium.distil(width=8, steps=50, seed=seed).policy.table for seed in (3, 3, 4)]
    assert (tables[0] == tables[1]).all()
    assert (tables[0] != tables[2]).any()


def test_a_fit_leaves_torchs_random_numbers_alone(equilibrium):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    equilibrium.distil(width=8, steps=10).to_sb3()
    assert torch.rand(1) == expected


def test_the_best_network_is_kept_not_the_last(equilibrium):
    actor = untrained(equilibrium, 8)
    seen = []

    def measure_rises():
        seen.append(actor[0].weight.detach().clone())
        return float(len(seen))

    dataset = make_dataset(equilibrium.game, equilibrium.table)
    fitted = fit(actor, dataset, steps=100, measure=measure_rises)
    assert fitted.best == 1.0 < fitted.curve[-1][1]
    assert torch.equal(actor[0].weight, seen[0])
    assert not torch.equal(actor[0].weight, seen[-1])


def test_ctrl_c_keeps_the_best_so_far(equilibrium):
    measured = []

    def interrupting(step, note):
        del note
        measured.append(step)
        if len(measured) == 3:
            raise KeyboardInterrupt

    distilled = equilibrium.distil(width=8, steps=100, progress=interrupting)
    assert distilled.interrupted
    assert distilled.steps == measured[-1] < 100
    assert distilled.nash_conv_after == min(value for _, value in distilled.curve)


def test_a_stratified_draw_has_everything_as_often_as_it_should():
    weights = np.array([0.5, 0.0, 0.25, 0.25])
    drawn = StratifiedSampler(weights).draw(np.random.default_rng(0), 8)
    assert np.bincount(drawn, minlength=4).tolist() == [4, 0, 2, 2]


def test_rows_that_are_made_when_they_are_drawn_are_those_in_memory():
    game = kb.load_game(LIARS_DICE)
    policy = kb.solve(game, "dcfr", iterations=20)
    weights = game.own_reach(policy.table)
    streamed = StreamedDataset(game, policy.table, weights)
    stored = StoredDataset(game.policy_rows(policy.table, np.arange(len(weights))), weights)
    assert streamed.num_infosets == stored.num_infosets
    assert (streamed.input_scales == stored.input_scales).all()
    # The mean over many draws of inputs times weights, which both draw in their own order.
    means = []
    for dataset in (streamed, stored):
        random = np.random.default_rng(0)
        batches = [dataset.draw(random, 512) for _ in range(40)]
        weighted = [(b.inputs * b.weights[:, None]).mean(dim=0) for b in batches]
        means.append(torch.stack(weighted).mean(dim=0))
    assert torch.allclose(means[0], means[1], atol=0.02)


def test_a_model_opens_in_sb3_alone_and_plays_what_was_measured(equilibrium, tmp_path):
    distilled = equilibrium.distil(width=16)
    path = tmp_path / "model.zip"
    distilled.save(path)
    assert np.abs(kb.load_policy(path).table - distilled.policy.table).max() < 1e-6
    model = MaskablePPO.load(path, device="cpu")
    assert type(model.policy).__module__.startswith(("sb3_contrib", "stable_baselines3"))
    game = equilibrium.game
    inputs = torch.from_numpy(game.network_inputs().copy())
    with torch.no_grad():
        distribution = model.policy.get_distribution(inputs, game.tree.legal.copy())
    played = distribution.distribution.probs.numpy()
    assert np.abs(played - distilled.policy.table).max() < 1e-6


def test_the_models_critic_knows_what_information_sets_are_worth(equilibrium):
    distilled = equilibrium.distil(width=16)
    game = equilibrium.game
    inputs = torch.from_numpy(game.network_inputs().copy())
    model = distilled.to_sb3()
    with torch.no_grad():
        values = model.policy.predict_values(inputs).numpy()[:, 0]
    known = game.infoset_values(equilibrium.table)
    # The first bets with K win 1 or 2, those with J are called: far from 0, and known to 0.1.
    assert np.abs(known.values[known.reach > 0.01]).max() > 1
    assert np.abs(values - known.values)[known.reach > 0.01].max() < 0.1


def test_inputs_of_thousands_of_chips_are_fitted_like_zeros_and_ones():
    """Tensors of no-limit hold'em contain amounts beside zeros and ones, here up to 6,000 chips."""
    game = kb.load_game(
        "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,blind=2000 1000,firstPlayer=2 1,"
        "numSuits=1,numRanks=4,numHoleCards=1,numBoardCards=0 1,stack=6000 6000,"
        "bettingAbstraction=fcpa)"
    )
    assert game.observations.max() == 6000
    policy = kb.solve(game, "dcfr", iterations=300)
    distilled = policy.distil(width=32, steps=1000)
    # Unscaled inputs lose 1,200 chips, a fifth of a stack.
    assert distilled.lost < 5
    # The network itself takes the tensor as it is.
    assert kb.Policy.from_network(distilled.actor, game) == distilled.policy
