"""The 12 rows of a policy as networks meet them: what is seen, and logits made probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kuhn_bridge.encoding import Observation, encode
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import LEGAL, Probabilities, TabularPolicy
from kuhn_bridge.rules import DECISIONS, Card

OBSERVATIONS: Observation = np.stack([encode(card, at) for at in DECISIONS for card in Card])


def masked(weights: Probabilities) -> Probabilities:
    """Weights `(12, 3)` of legal actions as probabilities, whatever illegal ones have."""
    legal = np.where(LEGAL, weights, 0)
    with np.errstate(invalid="ignore"):  # what is no number is refused by who asked for it
        return np.asarray(legal / legal.sum(axis=1, keepdims=True))


def masked_softmax(logits: Probabilities) -> Probabilities:
    """The softmax of logits `(12, 3)` over the legal actions."""
    legal = np.where(LEGAL, logits, -np.inf)
    with np.errstate(invalid="ignore"):
        return masked(np.exp(legal - legal.max(axis=1, keepdims=True)))


def policy_in(path: str | Path, table: Probabilities) -> TabularPolicy:
    """The policy that a file was found to play."""
    if not np.isfinite(table).all():
        raise PolicyError(f"{path}: what the model answers are no probabilities")
    return TabularPolicy(table)
