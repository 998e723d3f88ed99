"""Tables from networks: functions from observations to logits or probabilities."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from algorithms.games import Game
from algorithms.policies.answers import masked, masked_softmax
from algorithms.support.arrays import Float32Array, Float64Array
from kuhn_bridge.errors import PolicyError


def network_table(
    network: Callable[[Any], Any],
    game: Game,
    *,
    output: Literal["logits", "probabilities"] = "logits",
) -> Float64Array:
    """The table `(I, A)` of a function from observations, float32 `(I, size)`, to `(I, A)`.

    A torch module is given a tensor. Illegal actions are masked out.
    """
    normalise = {"logits": masked_softmax, "probabilities": masked}.get(output)
    if normalise is None:
        raise PolicyError(f"output {output!r}: a network gives 'logits' or 'probabilities'")
    numbers = _call(network, game.observations)
    legal = game.tree.legal
    if numbers.shape != legal.shape:
        want = " x ".join(map(str, legal.shape))
        raise PolicyError(f"the network gives {numbers.shape}; {game.name} needs {want} numbers")
    return normalise(numbers, legal)


def _call(network: Callable[[Any], Any], observations: Float32Array) -> Float64Array:
    torch = sys.modules.get("torch")  # a caller with a torch module has imported it
    if torch is not None and isinstance(network, torch.nn.Module):
        with torch.no_grad():
            return np.asarray(network(torch.tensor(observations)).double().cpu().numpy())
    numbers = network(observations.copy())
    if torch is not None and isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().cpu().numpy()
    return np.asarray(numbers, np.float64)
