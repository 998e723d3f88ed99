"""Policies from functions: of states, or of what the players see, as networks are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from algorithms.games import Game, as_game
from algorithms.policies.answers import masked, masked_softmax
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import PolicyError


def from_network(
    game: Game | str,
    network: Callable[[Any], Any],
    *,
    output: Literal["logits", "probabilities"] = "logits",
) -> Policy:
    """The policy of a function from what players see, float32 `(I, size)`, to numbers `(I, A)`.

    The function may be a torch module, which is given a tensor. What it says of illegal actions is
    left out of the softmax (`logits`) or of the shares (`probabilities`).
    """
    loaded = as_game(game)
    shares = {"logits": masked_softmax, "probabilities": masked}.get(output)
    if shares is None:
        raise PolicyError(f"output {output!r}: a network gives 'logits' or 'probabilities'")
    answers = _asked(network, loaded.observations)
    legal = loaded.tree.legal
    if answers.shape != legal.shape:
        want = " x ".join(map(str, legal.shape))
        raise PolicyError(
            f"the network answers {answers.shape}; {loaded.name} wants {want} numbers"
        )
    return Policy(loaded, shares(answers, legal))


def _asked(network: Callable[[Any], Any], seen: npt.NDArray[np.float32]) -> Float64Array:
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    if torch is not None and isinstance(network, torch.nn.Module):
        with torch.no_grad():
            return np.asarray(network(torch.tensor(seen)).double().cpu().numpy())
    answers = network(seen.copy())
    if torch is not None and isinstance(answers, torch.Tensor):
        answers = answers.detach().cpu().numpy()
    return np.asarray(answers, np.float64)
