"""The old name of `algorithms.learning.features`: models saved by version 0.1 ask for it."""

from algorithms.learning.features import CardTimesHistory

__all__ = ["CardTimesHistory"]
