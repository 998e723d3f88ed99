"""Names of a module that are imported when they are first used (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

INSTALLED_IN = Path(__file__).resolve().parents[1]  # the folder of kuhn_bridge and algorithms


def lazy_names(
    owner: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `owner`; `modules` maps other modules to names of theirs."""
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        package = module_of[name].partition(".")[0]
        _require_own_package(package, f"{owner}.{name}")
        return getattr(import_module(module_of[name]), name)

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[owner]), *module_of})

    return load, list_names


def _require_own_package(package: str, user: str) -> None:
    """Raise an error if `package` is not the one that is installed beside `kuhn_bridge`."""
    spec = find_spec(package)
    if spec is None:
        locations = ["nothing"]
    elif spec.submodule_search_locations:
        locations = list(spec.submodule_search_locations)
    else:  # a module, not a package
        locations = [str(spec.origin)]
    if (INSTALLED_IN / package).resolve() not in [Path(one).resolve() for one in locations]:
        raise ImportError(
            f"{user} needs the package {package!r} of kuhn-bridge in {INSTALLED_IN}, but "
            f"{locations[0]} is found instead; rename that file or folder, or run from another "
            "folder"
        )
