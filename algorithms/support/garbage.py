"""Less frequent garbage collection.

Importing torch and similar libraries creates half a million objects that stay alive. With Python's
default threshold a fifth of a short command's time is spent on searching them for garbage.
"""

from __future__ import annotations

import gc

OBJECTS = 50_000  # new objects before a collection; Python's default is 700


def collect_seldom() -> None:
    """Collect garbage less often, for processes that import large libraries."""
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
