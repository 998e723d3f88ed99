"""Names of a module that are imported when they are first used (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]  # where kuhn_bridge and algorithms are installed


def lazy_names(
    owner: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `owner`; `modules` maps other modules to names of theirs."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        _require_own_package(homes[name].partition(".")[0], f"{owner}.{name}")
        return getattr(import_module(homes[name]), name)

    return load, lambda: sorted({*vars(sys.modules[owner]), *homes})


def _require_own_package(package: str, user: str) -> None:
    """Raise an error if `package` is not the one that is installed beside `kuhn_bridge`."""
    spec = find_spec(package)
    found = [*(spec.submodule_search_locations or [str(spec.origin)])] if spec else ["nothing"]
    if (HOME / package).resolve() not in (Path(place).resolve() for place in found):
        raise ImportError(
            f"{user} needs the package {package!r} of kuhn-bridge in {HOME}, but {found[0]} is "
            "found instead; rename that file or folder, or run from another folder"
        )
