"""Compile a function for speed: once per machine, not per run, wherever a cache can be kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

# Numba reads this when it is first imported. It lets the compiler make vector instructions of
# straight code (`algorithms.support.lanes`); results stay the same to the last bit.
os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """`function` as machine code, made when first called and kept on disk."""
    return _machine_code(function)


def fused(function: F) -> F:
    """The same, but `a * b + c` may be rounded once instead of twice, and 1 / 0 is infinite."""
    return _machine_code(function, fastmath={"contract"}, error_model="numpy")


def _machine_code(function: F, **options: Any) -> F:
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's directory nor the home can be written
        return cast(F, njit(**options)(function))
