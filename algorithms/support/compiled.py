"""Compile a function for speed: once a machine, not once a run, wherever a cache can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """`function` as machine code, made when first called and kept on disk."""
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # neither the package's directory nor the home can be written
        return cast(F, njit(function))
