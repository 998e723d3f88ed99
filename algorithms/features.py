"""The old name of `algorithms.policies.features`: models saved by version 0.1 ask for it."""

from algorithms.policies.features import CardTimesHistory

__all__ = ["CardTimesHistory"]
