"""Names of a module that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]  # where kuhn_bridge and algorithms are installed


def load_attribute(owner: str, modules: Mapping[str, str], name: str) -> Any:
    """The attribute `name` of module `owner`, imported from `modules[name]`."""
    if name not in modules:
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    package = modules[name].partition(".")[0]
    spec = find_spec(package)
    found = [*(spec.submodule_search_locations or [str(spec.origin)])] if spec else ["nothing"]
    if (HOME / package).resolve() not in (Path(place).resolve() for place in found):
        raise ImportError(
            f"{owner}.{name} needs the package {package!r} of kuhn-bridge in {HOME}, but "
            f"{found[0]} is found instead; rename that file or folder, or run from another folder"
        )
    return getattr(import_module(modules[name]), name)
