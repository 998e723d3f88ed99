"""Networks run once per information set of a batch, with the losses and gradients of SB3."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms.games import load_game
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.distinct_observations import evaluated_once_per_infoset
from algorithms.self_play.environments import SelfPlayVecEnv
from tests.games import LEDUC

GAME = load_game(LEDUC)


def model_of(**policy_kwargs: Any) -> MaskablePPO:
    """A new model of Leduc poker."""
    return MaskablePPO(
        "MlpPolicy", SelfPlayVecEnv(2, GAME), device="cpu", policy_kwargs=policy_kwargs, seed=0
    )


def batch_of(size: int) -> SimpleNamespace:
    """Decisions at random nodes of the tree: what PPO evaluates, and the nodes."""
    rng = np.random.default_rng(0)
    nodes = rng.choice(np.flatnonzero(GAME.tree.player >= 0)[:300], size).astype(np.int32)
    infosets = GAME.tree.infoset[nodes]
    legal = GAME.tree.legal[infosets]
    return SimpleNamespace(
        batch=object(),
        batch_nodes=nodes,
        observations=torch.tensor(GAME.network_inputs()[infosets]),
        actions=torch.tensor((legal * rng.random(legal.shape)).argmax(axis=1)),
        action_masks=torch.tensor(legal).float(),
    )


def outputs_and_gradients(model: MaskablePPO, batch: SimpleNamespace) -> list[torch.Tensor]:
    """What PPO's loss is made of, and the gradients of a function of it."""
    model.policy.zero_grad()
    values, logs, entropy = model.policy.evaluate_actions(
        batch.observations, batch.actions, action_masks=batch.action_masks
    )
    (values.flatten() * 0.3 + logs * 0.5 + entropy * 0.1).mean().backward()
    gradients = [weights.grad.clone() for weights in model.policy.parameters()]
    return [values.detach(), logs.detach(), entropy.detach(), *gradients]


@pytest.mark.parametrize(
    "policy_kwargs",
    [{}, {"share_features_extractor": False}, {"net_arch": {"pi": [8], "vf": [16, 8]}}],
)
def test_losses_and_gradients_are_those_of_sb3(policy_kwargs: dict[str, Any]) -> None:
    model = model_of(**policy_kwargs)
    batch = batch_of(600)
    rows = []
    model.policy.mlp_extractor.policy_net[0].register_forward_hook(
        lambda module, inputs, output: rows.append(len(output))
    )
    stock = outputs_and_gradients(model, batch)
    with evaluated_once_per_infoset(model, batch, GAME.tree):
        ours = outputs_and_gradients(model, batch)
    assert rows[0] == 600
    assert rows[1] == len(np.unique(GAME.tree.infoset[batch.batch_nodes])) < 300
    for one, other in zip(stock, ours, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert "evaluate_actions" not in vars(model.policy)


def test_layers_that_are_drawn_run_for_every_decision() -> None:
    model = model_of()
    model.policy.mlp_extractor.policy_net.append(nn.Dropout(0.5))
    with evaluated_once_per_infoset(model, batch_of(600), GAME.tree):
        assert "evaluate_actions" not in vars(model.policy)


@pytest.mark.parametrize("batch_size", [64, 512])
def test_self_play_learns_the_same(batch_size: int) -> None:
    """A dropout of nothing lets the network run for every decision."""
    models = []
    for layers in ([], [nn.Dropout(0.0)]):
        model = MaskablePPO(
            "MlpPolicy",
            SelfPlayVecEnv(128, GAME),
            n_steps=4,
            batch_size=batch_size,
            n_epochs=2,
            seed=0,
            device="cpu",
        )
        model.policy.mlp_extractor.policy_net.extend(layers)
        models.append(model.learn(1024, callback=SelfPlay(points=0)))
    weights = [list(model.policy.parameters()) for model in models]
    for one, other in zip(*weights, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
