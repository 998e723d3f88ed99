"""The average of the policies of a training run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from algorithms.exact.tree import Tree
from algorithms.exact.values import reach_probabilities
from algorithms.support.arrays import Float64Array


class Average:
    """The average of a sequence of policies, of which the t-th counts t² times.

    In each row a policy counts as much as its player arrives there by its own choices: so the
    average plays like one of the policies drawn for the whole hand.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree, self._total, self.count = tree, np.zeros(tree.legal.shape), 0

    def add(self, table: Float64Array) -> None:
        """Count one more policy `(I, A)`."""
        self.count += 1
        own = reach_probabilities(self._tree, table)[self._tree.parent_sequence]
        self._total += self.count**2 * own[:, None] * table

    @property
    def mean(self) -> Float64Array:
        """The average policy, `(I, A)`; uniform where no policy ever arrives."""
        weight = self._total.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(weight > 0, self._total / weight, self._tree.uniform())

    def get_state(self) -> dict[str, Any]:
        """What `set_state` takes."""
        return {"total": torch.tensor(self._total), "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self._total, self.count = state["total"].numpy().copy(), state["count"]
