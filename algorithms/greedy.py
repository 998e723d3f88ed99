"""A policy without its doubts."""

from __future__ import annotations

import numpy as np

from kuhn_bridge.policy import TabularPolicy
from kuhn_bridge.rules import Action


def likeliest(policy: TabularPolicy) -> TabularPolicy:
    """Always the likeliest action, the lowest ID among equals."""
    return TabularPolicy(np.eye(len(Action))[policy.probabilities.argmax(axis=1)])
