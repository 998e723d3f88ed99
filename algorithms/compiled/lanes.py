"""Vector lanes for compiled code: a few floats in a tuple, on which every function works at once.

Numba knows the length of a tuple at compile time, so each function here becomes a vector
instruction or two, and its result stays in registers. (A small array would be written to memory and
read again at every step.) One lane gives scalar code. A `table` is always `(N, lanes)`.
"""

from typing import TypeAlias

import numpy as np

# The tuple with another number in one lane. Numba has no public function for that, and this is the
# only place that takes its private one.
from numba.cpython.unsafe.tuple import tuple_setitem as with_lane

from algorithms.compiled.jit import part
from algorithms.support.arrays import Float64Array

__all__ = [
    "Index",
    "Lanes",
    "add_scaled",
    "add_to",
    "full",
    "load",
    "maximum",
    "multiply",
    "reciprocal",
    "store",
    "with_lane",
]

Lanes: TypeAlias = tuple[float, ...]
Index: TypeAlias = int | np.uint64  # unsigned is faster: it cannot count from the end


@part
def full(like: Lanes, value: float) -> Lanes:
    """As many lanes as `like` has, all `value`."""
    for i in range(len(like)):
        like = with_lane(like, i, value)
    return like


@part
def load(table: Float64Array, row: Index, like: Lanes) -> Lanes:
    """One row of a table that is as wide as `like`."""
    for i in range(len(like)):
        like = with_lane(like, i, table[row, i])
    return like


@part
def store(table: Float64Array, row: Index, lanes: Lanes) -> None:
    """Write one row of a table."""
    for i in range(len(lanes)):
        table[row, i] = lanes[i]


@part
def add_scaled(a: Lanes, b: Lanes, scale: float = 1.0) -> Lanes:
    """`a + b * scale`."""
    for i in range(len(a)):
        a = with_lane(a, i, a[i] + b[i] * scale)
    return a


@part
def add_to(table: Float64Array, row: Index, lanes: Lanes, scale: float = 1.0) -> None:
    """Add `lanes * scale` to one row of a table."""
    for i in range(len(lanes)):
        table[row, i] += lanes[i] * scale


@part
def multiply(a: Lanes, b: Lanes) -> Lanes:
    """`a * b`."""
    for i in range(len(a)):
        a = with_lane(a, i, a[i] * b[i])
    return a


@part
def reciprocal(a: Lanes) -> Lanes:
    """`1 / a`, infinite where `a` is 0."""
    for i in range(len(a)):
        a = with_lane(a, i, 1 / a[i])
    return a


@part
def maximum(a: Lanes, b: Lanes) -> Lanes:
    """The larger of `a` and `b`."""
    for i in range(len(a)):
        a = with_lane(a, i, max(a[i], b[i]))
    return a
