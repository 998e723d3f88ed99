"""A few numbers side by side, for compiled code: lanes.

Lanes are a tuple of floats. Numba knows a tuple's length when it compiles, so each function here
becomes a vector instruction or two, and what it returns stays in registers. (A small array would be
written to memory and read again at every step.) `table` is always `(N, width)`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.support.compiled import part

Lanes: TypeAlias = tuple[float, ...]
Index: TypeAlias = int | np.uint64  # unsigned is faster: it cannot count from the end


def zeros(width: int) -> Lanes:
    """`width` lanes, all 0."""
    return (0.0,) * width


@part
def row(table: Any, at: Index, like: Lanes) -> Lanes:
    """One row of a table that is as wide as `like`."""
    for i in range(len(like)):
        like = tuple_setitem(like, i, table[at, i])
    return like


@part
def put(table: Any, at: Index, lanes: Lanes) -> None:
    """Write one row of a table."""
    for i in range(len(lanes)):
        table[at, i] = lanes[i]


@part
def plus(a: Lanes, b: Lanes, scale: float) -> Lanes:
    """`a + b * scale`."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, a[i] + b[i] * scale)
    return a


@part
def times(a: Lanes, b: Lanes) -> Lanes:
    """`a * b`."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, a[i] * b[i])
    return a


@part
def inverse(a: Lanes) -> Lanes:
    """1 / a, infinite where a is 0."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, 1 / a[i])
    return a


@part
def larger(a: Lanes, b: Lanes) -> Lanes:
    """The larger of a and b."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, max(a[i], b[i]))
    return a
