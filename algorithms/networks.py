"""The old name of `algorithms.learning.networks`: models saved by version 0.1 ask for it."""

from algorithms.learning.networks import DistinctPolicy

__all__ = ["DistinctPolicy"]
