"""Compilation with numba, cached on disk where a cache can be written; random bits.

SplitMix64 (Steele, Lea and Flood 2014) gives compiled code random bits in a nanosecond.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

# Numba reads this when it is first imported. It lets the compiler make vector instructions of
# straight code (`algorithms.compiled.lanes`); results stay the same to the last bit.
os.environ.setdefault("NUMBA_SLP_VECTORIZE", "1")

import numpy as np
import numpy.typing as npt
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

# The C wrapper is never called, and would take a third of the time to compile.
_OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """`function` as machine code, compiled at the first call and cached on disk; 1 / 0 is inf."""
    return _cached(function, _OPTIONS)


def without_references(function: F) -> F:
    """Machine code that does not count references to arrays, and so cannot make new ones.

    Counting takes longer than the work itself where arrays are in tuples that are passed around.
    """
    return _cached(function, {**_OPTIONS, "_nrt": False})


def _cached(function: F, options: Mapping[str, Any]) -> F:
    """Machine code with a cache on disk, or without one if there is no place for it."""
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's directory nor the home can be written
        return cast(F, njit(**options)(function))
    _replace_unreadable_caches(dispatcher)
    return cast(F, dispatcher)


def _replace_unreadable_caches(dispatcher: Any) -> None:
    """Let a cache that cannot be read count as empty.

    Its index names the classes of arguments. If another version of this project wrote it, and a
    class has been renamed since, numba itself would raise an AttributeError.
    """
    cache = dispatcher._cache
    load = cache.load_overload

    def load_or_flush(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:  # unpickling may raise anything
            cache.flush()
            return None

    cache.load_overload = load_or_flush


def part(function: F) -> F:
    """A function that only compiled functions call, compiled together with them."""
    return cast(F, njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """A function copied into the compiled functions that call it: passing many arrays is slow."""
    return cast(F, njit(inline="always", **_OPTIONS)(function))


STEP = np.uint64(0x9E3779B97F4A7C15)  # from one state of SplitMix64 to the next


@compiled
def mixed(state: np.uint64) -> np.uint64:
    """The 64 random bits of a state."""
    bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def draw(stream: npt.NDArray[np.uint64]) -> float:
    """A number in [0, 1) from the next 53 bits of a stream, whose state is `stream[0]`."""
    stream[0] += STEP
    return float(mixed(stream[0]) >> np.uint64(11)) * 2.0**-53
