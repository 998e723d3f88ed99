"""Tests of fitting networks to policies."""

import numpy as np
import pytest
import torch
from torch import nn

import kuhn_bridge as kb
from algorithms.compiled.nashconv import nash_conv, reach_probabilities
from algorithms.policies.distillation import StratifiedSampler, fit_network
from algorithms.policies.network import network_table

LIARS_DICE = "liars_dice(numdice=1,dice_sides=3)"


def make_actor(inputs, actions, width, seed=0):
    """An untrained network with two hidden layers."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, actions),
    )


def fit_to(policy, *, width, weights=None, seed=0, **options):
    """A network fitted to a policy, and its fit."""
    game, tree = policy.game, policy.game.tree
    inputs = game.network_inputs()
    if weights is None:
        weights = reach_probabilities(tree, policy.table)[tree.parent_sequence]
    actor = make_actor(inputs.shape[1], game.num_actions, width, seed)

    def measure():
        return nash_conv(tree, network_table(actor, game))

    options = {"measure": measure} | options
    fit = fit_network(actor, inputs, policy.table, tree.legal, weights, seed=seed, **options)
    return actor, fit


def test_a_small_network_holds_kuhns_equilibrium():
    policy = kb.solve("kuhn", "dcfr", iterations=1000)
    actor, fit = fit_to(policy, width=16)
    assert fit.best <= 1e-3
    assert fit.best == pytest.approx(nash_conv(policy.game.tree, network_table(actor, policy.game)))


def test_reach_probabilities_as_weights_keep_more_of_the_policy():
    policy = kb.solve(LIARS_DICE, "dcfr", iterations=300)
    _, weighted = fit_to(policy, width=8, steps=1500)
    _, unweighted = fit_to(policy, width=8, steps=1500, weights=np.ones(len(policy.table)))
    assert weighted.best < unweighted.best / 2


def test_equal_seeds_fit_equal_networks():
    policy = kb.solve("kuhn", "dcfr", iterations=100)
    tables = [
        network_table(fit_to(policy, width=8, steps=50, seed=seed)[0], policy.game)
        for seed in (3, 3, 4)
    ]
    assert (tables[0] == tables[1]).all()
    assert (tables[0] != tables[2]).any()


def test_the_best_network_is_kept_not_the_last():
    policy = kb.solve("kuhn", "dcfr", iterations=100)
    game = policy.game
    actor = make_actor(game.observation_size, game.num_actions, 8)
    seen = []

    def measure_rises():
        seen.append(actor[0].weight.detach().clone())
        return float(len(seen))

    reach = np.ones(len(policy.table))
    fit = fit_network(
        actor,
        game.observations,
        policy.table,
        game.tree.legal,
        reach,
        steps=100,
        measure=measure_rises,
    )
    assert fit.best == 1.0 < fit.curve[-1][1]
    assert torch.equal(actor[0].weight, seen[0])
    assert not torch.equal(actor[0].weight, seen[-1])


def test_ctrl_c_keeps_the_best_so_far():
    policy = kb.solve("kuhn", "dcfr", iterations=100)
    measured = []

    def interrupting(step, note):
        del note
        measured.append(step)
        if len(measured) == 3:
            raise KeyboardInterrupt

    _, fit = fit_to(policy, width=8, steps=100, progress=interrupting)
    assert fit.interrupted
    assert fit.steps == measured[-1] < 100
    assert fit.best == min(value for _, value in fit.curve)


def test_a_stratified_draw_has_everything_as_often_as_it_should():
    weights = np.array([0.5, 0.0, 0.25, 0.25])
    drawn = StratifiedSampler(weights).draw(np.random.default_rng(0), 8)
    assert np.bincount(drawn, minlength=4).tolist() == [4, 0, 2, 2]
