"""What commands say when a user asks for the impossible, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kuhn_bridge.errors import BridgeError


class UsageError(BridgeError):
    """What the user asked for cannot be done."""


def first_line(error: Exception) -> str:
    """What another library's error says, in one line."""
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def unknown(what: str, given: str, known: Iterable[str]) -> UsageError:
    """An error that names the nearest thing that exists."""
    names = list(known)
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), lower, n=1, cutoff=0.4)
    some = [*names[:12], "..."] if len(names) > 12 else names
    hint = f"did you mean {lower[close[0]]!r}?" if close else f"there are {', '.join(some)}"
    return UsageError(f"unknown {what} {given!r}: {hint}")
