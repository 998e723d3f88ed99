"""What networks answer, as policies: logits over legal actions, and whose game it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Policy
from algorithms.games import LONGEST_NAME, Game, kuhn, load_game, same_game
from algorithms.policies.policy import GamePolicy
from kuhn_bridge.errors import KuhnError, PolicyError, shown


def masked(weights: Policy, legal: npt.NDArray[np.bool_]) -> Policy:
    """Weights `(N, A)` of legal actions as probabilities, whatever illegal ones have."""
    kept = np.where(legal, weights, 0)
    with np.errstate(invalid="ignore"):  # the caller rejects NaN
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def masked_softmax(logits: Policy, legal: npt.NDArray[np.bool_]) -> Policy:
    """The softmax of logits `(N, A)` over the legal actions."""
    kept = np.where(legal, logits, -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        return masked(np.exp(kept - kept.max(axis=1, keepdims=True)), legal)


def policy_in(path: str | Path, game: Game, table: Policy) -> GamePolicy:
    """The policy that a file was found to play."""
    if not np.isfinite(table).all():
        raise PolicyError(f"{path}: what the model answers are no probabilities")
    return GamePolicy(game, table)


def game_in(path: str | Path, name: Any, wanted: Game | None) -> Game:
    """The game that a file names; one that names none is of the game asked for, or of Kuhn."""
    if name is None:
        return wanted or kuhn()
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise PolicyError(f"{path}: {shown(name)} is not the name of a game")
    try:
        if wanted is None:
            return load_game(name)
        same = same_game(name, wanted.name)
    except KuhnError as error:
        raise PolicyError(f"{path}: its game: {error}") from None
    if not same:
        raise PolicyError(f"{path}: a model of {name}, not of {wanted.name}")
    return wanted
