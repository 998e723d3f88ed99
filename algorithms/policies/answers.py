"""What networks answer, as policies: logits over legal actions, and whose game it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.games import LONGEST_NAME, Game, kuhn, load_game, same_game
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr


def masked(weights: Float64Array, legal: npt.NDArray[np.bool_]) -> Float64Array:
    """Weights `(N, A)` of legal actions as probabilities, whatever illegal ones have."""
    kept = np.where(legal, weights, 0)
    with np.errstate(invalid="ignore"):  # the caller rejects NaN
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def masked_softmax(logits: Float64Array, legal: npt.NDArray[np.bool_]) -> Float64Array:
    """The softmax of logits `(N, A)` over the legal actions."""
    kept = np.where(legal, logits, -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        return masked(np.exp(kept - kept.max(axis=1, keepdims=True)), legal)


def policy_in(path: str | Path, game: Game, table: Float64Array) -> Policy:
    """The policy that a file was found to play."""
    if not np.isfinite(table).all():
        raise PolicyError(f"{path}: what the model answers are no probabilities")
    return Policy(game, table)


def game_in(path: str | Path, name: Any, wanted: Game | None) -> Game:
    """The game that a file names; one that names none is of the game asked for, or of Kuhn."""
    if name is None:
        return wanted or kuhn()
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise PolicyError(f"{path}: {short_repr(name)} is not the name of a game")
    try:
        if wanted is None:
            return load_game(name)
        same = same_game(name, wanted.name)
    except BridgeError as error:
        raise PolicyError(f"{path}: its game: {error}") from None
    if not same:
        raise PolicyError(f"{path}: a model of {name}, not of {wanted.name}")
    return wanted
