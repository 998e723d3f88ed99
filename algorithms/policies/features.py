"""Features of Kuhn poker that models of version 0.1 were built on: read still, written no more."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kuhn_bridge.encoding import HISTORY_SLOTS
from kuhn_bridge.rules import Card


class CardTimesHistory(nn.Module):
    """One-hot card x history, `(N, 10)` -> `(N, 15)`; an SB3 features extractor without weights."""

    features_dim = len(Card) * HISTORY_SLOTS

    def __init__(self, observation_space: Any = None) -> None:
        super().__init__()

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Feature `5 * card + slot`; who is to act follows from the history."""
        card = observation[:, : len(Card), None]
        history = observation[:, None, len(Card) : len(Card) + HISTORY_SLOTS]
        return (card * history).flatten(1)
