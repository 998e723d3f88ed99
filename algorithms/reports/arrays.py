"""Arrays as JSON: base64 of their little-endian bytes, and their type."""

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)


def floats(values: npt.ArrayLike) -> dict[str, Any]:
    """float32: seven digits are more than the page shows."""
    return _encoded(np.asarray(values, "<f4"))


def integers(values: npt.ArrayLike) -> dict[str, Any]:
    """The smallest type that holds all values."""
    numbers = np.asarray(values, np.int64)
    low = int(numbers.min(initial=0))
    high = int(numbers.max(initial=0))
    fits = [kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max]
    return _encoded(numbers.astype(np.dtype(fits[0]).newbyteorder("<")))


def _encoded(array: npt.NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "data": base64.b64encode(array.tobytes()).decode()}
