"""Python looks for garbage in everything it has, again and again while there is more and more.

Imports of torch and the like make half a million objects that stay: a fifth of the time of a short
command goes into that search unless it is made seldom.
"""

from __future__ import annotations

import gc

OBJECTS = 50_000  # new ones, before there is a search; Python's own number is 700


def collect_seldom() -> None:
    """For processes that import much; what is garbage is found later, and no less of it."""
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
