"""The policy class that training uses: what SB3 must find when it opens a saved model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy


class DistinctPolicy(MaskableActorCriticPolicy):
    """SB3's policy, which runs its networks once for each *distinct* observation of a batch.

    A small game shows a few observations again and again: 12 in Kuhn poker. Losses and gradients
    are SB3's own. Observations must be binary, and must determine their masks.

    With a `magnet`, a function from observations to logits, the entropy that PPO rewards is
    relative to it: -KL(policy || magnet), up to a constant. It pulls the policy to the magnet,
    where plain entropy pulls it to uniform (magnetic mirror descent: Sokota et al. 2023).
    """

    magnet: Callable[[torch.Tensor], torch.Tensor] | None = None

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch."""
        seen, which = distinct(obs)
        values, distribution = self._evaluate(seen, _first(action_masks, which, len(seen)))
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
        seen, which = distinct(obs)
        values, distribution = self._evaluate(seen, _first(action_masks, which, len(seen)))
        entropy = distribution.entropy()
        if self.magnet is not None:
            entropy = entropy + (distribution.distribution.probs * self.magnet(seen)).sum(1)
        return values[which], distribution.distribution.logits[which, actions], entropy[which]

    def _evaluate(self, seen: torch.Tensor, masks: torch.Tensor | None) -> tuple[torch.Tensor, Any]:
        """Values `(R, 1)` and the distribution of `R` observations."""
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(seen))
        distribution = self._get_action_dist_from_latent(latent_pi)
        distribution.apply_masking(masks)
        return self.value_net(latent_vf), distribution


def distinct(observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct rows of a binary `(N, size)`, and which of them each row is, `(N,)`."""
    bits = 2.0 ** torch.arange(observations.shape[1], dtype=torch.float64)  # exact up to 53
    numbers, which = torch.unique(observations.double() @ bits, return_inverse=True)
    return ((numbers[:, None] / bits).floor() % 2).float(), which


def _first(masks: Any, which: torch.Tensor, count: int) -> torch.Tensor | None:
    """One mask for each distinct observation."""
    if masks is None:
        return None
    given = torch.as_tensor(masks, dtype=torch.bool).reshape(len(which), -1)
    rows = torch.empty(count, given.shape[1], dtype=torch.bool)
    rows[which] = given
    return rows
