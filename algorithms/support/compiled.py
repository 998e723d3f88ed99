"""Compilation with numba, cached on disk where a cache can be written."""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

# Numba reads this when it is first imported. It lets the compiler make vector instructions of
# straight code (`algorithms.support.lanes`); results stay the same to the last bit.
os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

# The C wrapper is never called, and would take a third of the time to compile.
_OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """`function` as machine code, compiled at the first call and cached on disk; 1 / 0 is inf."""
    try:
        return cast(F, njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # neither the package's directory nor the home can be written
        return cast(F, njit(**_OPTIONS)(function))


def part(function: F) -> F:
    """A function that only compiled functions call, compiled together with them."""
    return cast(F, njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """A function copied into the compiled functions that call it: passing many arrays is slow."""
    return cast(F, njit(inline="always", **_OPTIONS)(function))
