"""The policy class of training: SB3's own numbers, from fewer rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from algorithms.learning.networks import DistinctPolicy, distinct
from algorithms.learning.selfplay import SelfPlayVecEnv
from algorithms.policies.rows import OBSERVATIONS
from kuhn_bridge.policy import LEGAL

ROWS = torch.as_tensor(np.random.default_rng(0).integers(0, 12, 300))
SEEN, MASKS = torch.as_tensor(OBSERVATIONS)[ROWS], torch.tensor(LEGAL)[ROWS]


def policy(kind: type) -> MaskableActorCriticPolicy:
    environment = SelfPlayVecEnv(1)
    torch.manual_seed(3)
    made = kind(environment.observation_space, environment.action_space, lambda _: 0.1)
    with torch.no_grad():
        made.action_net.weight.mul_(100)  # far from uniform
    return made


def test_losses_and_gradients_are_those_of_sb3() -> None:
    ours, theirs = policy(DistinctPolicy), policy(MaskableActorCriticPolicy)
    actions, _, _ = ours(SEEN, action_masks=MASKS)
    assert MASKS[torch.arange(len(ROWS)), actions].all()
    weights = torch.linspace(-1, 1, len(ROWS))
    for made in (ours, theirs):
        values, log_probs, entropy = made.evaluate_actions(SEEN, actions, MASKS)
        (weights @ (values[:, 0] + log_probs + entropy)).backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-4)


def test_actions_come_with_their_probabilities() -> None:
    made, rows = policy(DistinctPolicy), torch.full((20_000,), 4)
    torch.manual_seed(0)
    actions, values, log_probs = made(SEEN[:1].expand(20_000, -1), action_masks=MASKS[rows * 0])
    wanted = made.get_distribution(SEEN[:1], MASKS[:1]).distribution.probs[0]
    found = torch.bincount(actions, minlength=3) / len(rows)
    assert torch.allclose(found, wanted, atol=0.02)
    assert torch.allclose(log_probs.exp(), wanted[actions], atol=1e-6)
    assert torch.allclose(values, made.predict_values(SEEN[:1]), atol=1e-6)
    best, _, _ = made(SEEN, deterministic=True, action_masks=MASKS)
    assert (best == made.get_distribution(SEEN, MASKS).mode()).all()


def test_the_entropy_is_relative_to_the_magnet() -> None:
    made = policy(DistinctPolicy)
    logits = torch.randn(16, 3)
    made.magnet = lambda seen: logits[: len(seen)].log_softmax(1)
    seen, which = distinct(SEEN)
    _, _, entropy = made.evaluate_actions(SEEN, torch.zeros(len(ROWS), dtype=torch.long), None)
    chosen = made.get_distribution(seen).distribution.logits
    divergence = (chosen.exp() * (chosen - logits[: len(seen)].log_softmax(1))).sum(1)
    assert torch.allclose(entropy, -divergence[which], atol=1e-5)
    assert "magnet" not in "".join(made.state_dict())


@pytest.mark.parametrize("size", [1, 10, 53])
def test_distinct_rows_and_their_places(size: int) -> None:
    rows = torch.randint(0, 2, (200, size)).float()
    some, which = distinct(rows)
    assert (some[which] == rows).all()
    assert len(torch.unique(some, dim=0)) == len(some)
