"""Networks whose inputs are chips, prices or counts instead of zeros and ones.

OpenSpiel's tensors are passed to networks as they are. Most of them consist of zeros and ones, but
some contain amounts: in the river endgames of `universal_poker`, 20,000 chips. With such an input x
all units of the first layer are saturated from the start, the gradient of its weights is x times
as large as others, and a step of Adam, which has the same size for every weight, changes the sums
w x by x times as much. Within a few updates every policy is a pure one, the same for all hands.

The cure is to learn as if the network saw x / s, where s is the largest |x| that occurs, or 1 if it
is smaller. Since w x = (s w) (x / s), that means to learn v = s w instead of w:

    initial weights     w = v / s
    gradient            dL / dv = (dL / dw) / s      (for the norm at which gradients are clipped)
    step                w += (the optimizer's step of v) / s

The network itself stays a stock one, which takes OpenSpiel's tensor. Where all inputs are at most
1 nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from algorithms.support.arrays import Float32Array

# The effect of an input on the first layer is the norm of its weights times its scale. New networks
# have norms of at most sqrt(2), so an effect above this limit is that of an undivided large input.
MAX_EFFECT = 15.0


class ScaledInputs:
    """The first layers of an SB3 policy, learning as if inputs `(N, size)` were divided by scales.

    Args:
        policy: policy of a model; one with a features extractor of its own stays as it is.
        scales: the size of each input, `(size,)`, at least 1.
    """

    def __init__(self, policy: Any, scales: Float32Array) -> None:
        self._policy = policy
        self._scales = torch.as_tensor(scales, device=policy.device)
        self._weights: list[torch.Tensor] = []
        if bool((self._scales > 1).any()):
            self._weights = _first_weights(policy, len(scales))

    def divide_initial_weights(self) -> None:
        """Divide the weights of large inputs, unless that has been done, as in a trained model."""
        with torch.no_grad():
            for weight in self._weights:
                effects = weight.norm(dim=0) * self._scales  # (size,)
                weight.div_(torch.where(effects > MAX_EFFECT, self._scales, 1.0))

    @contextmanager
    def learning(self, optimizer: torch.optim.Optimizer | None = None) -> Iterator[None]:
        """Scale gradients and the steps of an optimizer, by default the policy's, in the block."""
        if not self._weights:
            yield
            return
        before: list[torch.Tensor] = []

        def remember(*_: Any) -> None:
            before[:] = [weight.detach().clone() for weight in self._weights]

        def shorten(*_: Any) -> None:
            with torch.no_grad():
                for weight, old in zip(self._weights, before, strict=True):
                    weight.copy_(old + (weight - old) / self._scales)

        if optimizer is None:
            optimizer = self._policy.optimizer
        with ExitStack() as hooks:
            for weight in self._weights:
                hooks.callback(_divide_gradient(weight, self._scales))
            hooks.callback(optimizer.register_step_pre_hook(remember).remove)
            hooks.callback(optimizer.register_step_post_hook(shorten).remove)
            yield


def _divide_gradient(weight: torch.Tensor, scales: torch.Tensor) -> Any:
    """Divide the gradient of a weight by scales; return the function that ends this."""
    hook: Any = weight.register_hook(  # type: ignore[no-untyped-call]
        lambda gradient: gradient / scales
    )
    return hook.remove


def _first_weights(policy: Any, size: int) -> list[torch.Tensor]:
    """The weights `(units, size)` of the layers that take the observation itself."""
    if not isinstance(policy.features_extractor, FlattenExtractor):
        return []
    networks = (policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net)
    weights = list[torch.Tensor]()
    for network in networks:
        first = next(iter(network.children()), None)
        if isinstance(first, nn.Linear) and first.in_features == size:
            weights.append(first.weight)
    return weights
