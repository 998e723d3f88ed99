"""Vector lanes for compiled code: a few floats in a tuple, on which every function works at once.

Numba knows the length of a tuple at compile time, so each function here becomes a vector
instruction or two, and its result stays in registers. (A small array would be written to memory and
read again at every step.) One lane gives scalar code. A `table` is always `(N, lanes)`.
"""

from typing import Any, TypeAlias

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.compiled.jit import part

Lanes: TypeAlias = tuple[float, ...]
Index: TypeAlias = int | np.uint64  # unsigned is faster: it cannot count from the end


@part
def full(like: Lanes, value: float) -> Lanes:
    """As many lanes as `like` has, all `value`."""
    for i in range(len(like)):
        like = tuple_setitem(like, i, value)
    return like


@part
def load(table: Any, row: Index, like: Lanes) -> Lanes:
    """One row of a table that is as wide as `like`."""
    for i in range(len(like)):
        like = tuple_setitem(like, i, table[row, i])
    return like


@part
def store(table: Any, row: Index, lanes: Lanes) -> None:
    """Write one row of a table."""
    for i in range(len(lanes)):
        table[row, i] = lanes[i]


@part
def add_scaled(a: Lanes, b: Lanes, scale: float = 1.0) -> Lanes:
    """`a + b * scale`."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, a[i] + b[i] * scale)
    return a


@part
def add_to(table: Any, row: Index, lanes: Lanes, scale: float = 1.0) -> None:
    """Add `lanes * scale` to one row of a table."""
    for i in range(len(lanes)):
        table[row, i] += lanes[i] * scale


@part
def multiply(a: Lanes, b: Lanes) -> Lanes:
    """`a * b`."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, a[i] * b[i])
    return a


@part
def reciprocal(a: Lanes) -> Lanes:
    """`1 / a`, infinite where `a` is 0."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, 1 / a[i])
    return a


@part
def maximum(a: Lanes, b: Lanes) -> Lanes:
    """The larger of `a` and `b`."""
    for i in range(len(a)):
        a = tuple_setitem(a, i, max(a[i], b[i]))
    return a
