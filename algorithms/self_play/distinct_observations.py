"""Running a stock policy's network once per information set of a batch.

Thousands of hands on a tree visit the same information sets many times, and a network gives equal
outputs for equal observations. So it runs once per information set of a batch, and its outputs are
copied to the decisions. Losses and gradients are the same, for less work: two thousand decisions in
Kuhn poker have 12 information sets, in Leduc poker a few hundred.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.tree import Tree

# Layers whose outputs depend on the rest of the batch, or are drawn.
_DEPENDENT = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)


@contextmanager
def evaluated_once_per_infoset(model: Any, buffer: SeatRolloutBuffer, tree: Tree) -> Iterator[None]:
    """Let the policy evaluate each information set of the buffer's latest batch once.

    Policies with an `evaluate_actions` of their own are left alone, and those with layers whose
    outputs are not a function of the observation.
    """
    policy = model.policy
    if not is_function_of_observation(policy):
        yield
        return
    latest = _Batch(None, torch.empty(0), torch.empty(0), torch.empty(0))

    def evaluate_actions(
        obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As `MaskableActorCriticPolicy.evaluate_actions`, for the latest batch."""
        nonlocal latest
        if latest.samples is not buffer.batch:
            latest = _Batch.of(buffer, tree, obs.device)
        latent_pi, latent_vf = _latents(policy, obs[latest.examples])
        buffer.evaluated_counts = latest.counts
        distribution = policy._get_action_dist_from_latent(latent_pi)
        if action_masks is not None:
            distribution.apply_masking(action_masks[latest.examples])
        log_probabilities = distribution.distribution.logits  # (R, A), normalised
        return (
            policy.value_net(latent_vf).index_select(0, latest.rows),
            log_probabilities[latest.rows, actions],
            distribution.entropy().index_select(0, latest.rows),
        )

    policy.evaluate_actions = evaluate_actions
    try:
        yield
    finally:
        del policy.evaluate_actions  # the method of the class is back
        buffer.evaluated_counts = None


class _Batch(NamedTuple):
    """A batch of b decisions at R distinct information sets."""

    samples: Any  # the batch as PPO has it
    rows: torch.Tensor  # (b,) the number of each decision's information set among the R
    examples: torch.Tensor  # (R,) a decision at each of them
    counts: torch.Tensor  # (R,) how many decisions are at each of them

    @classmethod
    def of(cls, buffer: SeatRolloutBuffer, tree: Tree, device: torch.device) -> _Batch:
        """The buffer's latest batch."""
        infosets = torch.from_numpy(tree.infoset[buffer.batch_nodes].astype(np.int64))
        _, rows, counts = torch.unique(infosets, return_inverse=True, return_counts=True)
        examples = torch.empty(len(counts), dtype=torch.long)
        examples[rows] = torch.arange(len(rows))
        buffer.evaluated_nodes = buffer.batch_nodes[examples.numpy()]
        return cls(buffer.batch, rows.to(device), examples.to(device), counts.to(device))


def is_function_of_observation(policy: Any) -> bool:
    """Whether a stock policy's outputs follow from one observation alone."""
    has_its_own = type(policy).evaluate_actions is not MaskableActorCriticPolicy.evaluate_actions
    return not has_its_own and not any(isinstance(layer, _DEPENDENT) for layer in policy.modules())


def _latents(policy: Any, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of the hidden layers for the actor and for the critic."""
    features = policy.extract_features(obs)
    if policy.share_features_extractor:
        latent_pi, latent_vf = policy.mlp_extractor(features)
        return latent_pi, latent_vf
    features_pi, features_vf = features
    return (
        policy.mlp_extractor.forward_actor(features_pi),
        policy.mlp_extractor.forward_critic(features_vf),
    )
