"""Old place of functions of `algorithms.policies.network`, until their callers use that."""

from algorithms.policies.network import masked, masked_softmax

__all__ = ["masked", "masked_softmax"]
