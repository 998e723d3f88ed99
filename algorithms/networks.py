"""The policy class that training uses: what SB3 must find when it opens a saved model."""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy


class DistinctPolicy(MaskableActorCriticPolicy):
    """SB3's policy, which runs its networks once for each *distinct* observation of a batch.

    A small game shows a few observations again and again: 12 in Kuhn poker. Losses and gradients
    are SB3's own. Observations must be binary, and must determine their masks.
    """

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch."""
        which, values, distribution = self._distinct(obs, action_masks)
        if deterministic:
            actions = distribution.mode()[which]
        else:
            sums = distribution.distribution.probs.double().cumsum(1)
            draws = torch.rand(len(obs), 1, dtype=torch.float64)
            actions = ((sums / sums[:, -1:])[which] <= draws).sum(1)
        return actions, values[which], distribution.distribution.logits[which, actions]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities and entropies for a batch."""
        which, values, distribution = self._distinct(obs, action_masks)
        log_probs = distribution.distribution.logits[which, actions]
        return values[which], log_probs, distribution.entropy()[which]

    def _distinct(self, obs: torch.Tensor, masks: Any) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Which distinct row each observation is, `(N,)`, and their values and distribution."""
        bits = 2.0 ** torch.arange(obs.shape[1], dtype=torch.float64)
        numbers, which = torch.unique(obs.double() @ bits, return_inverse=True)
        distinct = ((numbers[:, None] / bits).floor() % 2).float()
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(distinct))
        distribution = self._get_action_dist_from_latent(latent_pi)
        if masks is not None:
            rows = torch.empty(len(distinct), self.action_space.n, dtype=torch.bool)
            rows[which] = torch.as_tensor(masks, dtype=torch.bool)
            distribution.apply_masking(rows)
        return which, self.value_net(latent_vf), distribution
