"""Errors for a user's mistakes: one line that names what would be right."""

import difflib
import operator
from collections.abc import Iterable
from typing import Any

from kuhn_bridge.errors import BridgeError, short_repr

MAX_CHARS = 300  # of another library's error
MAX_SEED = 2**64 - 1


class UsageError(BridgeError):
    """The user asked for something that cannot be done."""


def first_line(error: BaseException) -> str:
    """The first line of another library's error, or the name of its class if it has no text."""
    return (str(error) or type(error).__name__).strip().splitlines()[0][:MAX_CHARS]


def whole_number(name: str, value: Any, *, least: int, most: int) -> int:
    """The value of an argument as an int; an error if it is no whole number in this range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        raise UsageError(
            f"{name}={short_repr(value)}: want a whole number from {least:,} to {most:,}"
        )
    return number


def unknown(
    what: str, given: str, known: Iterable[str], *, kind: type[BridgeError] = UsageError
) -> BridgeError:
    """An error that suggests the known name closest to `given`, or lists some of them."""
    names = list(known)
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), lower, n=1, cutoff=0.4)
    some = [*names[:12], "..."] if len(names) > 12 else names
    hint = f"did you mean {lower[close[0]]!r}?" if close else f"there are {', '.join(some)}"
    return kind(f"unknown {what} {short_repr(given)}: {hint}")
