"""SplitMix64 (Steele, Lea and Flood 2014): random bits that compiled code draws in a nanosecond."""

import numpy as np

from algorithms.support.arrays import UInt64Array
from algorithms.support.compiled import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)  # from one state to the next


@compiled
def mixed(state: np.uint64) -> np.uint64:
    """The 64 random bits of a state."""
    bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def draw(stream: UInt64Array) -> float:
    """A number in [0, 1) from the next 53 bits of a stream, whose state is `stream[0]`."""
    stream[0] += STEP
    return float(mixed(stream[0]) >> np.uint64(11)) * 2.0**-53
