"""The old name of `algorithms.learning.recipes`: models saved by version 0.1 ask for it."""

from algorithms.learning.recipes import FallingRate

__all__ = ["FallingRate"]
