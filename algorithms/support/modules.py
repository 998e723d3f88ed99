"""Modules of the user, which register games with OpenSpiel: `--import MODULE`.

Importing a module runs its code. A game that another process has to load again names the modules
that were imported here, so that the other process imports them first.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from algorithms.support.errors import UsageError, first_line

_imported: list[str] = []  # the modules so far, as `absolute` names them


def import_modules(modules: Iterable[str]) -> None:
    """Import modules, by name or by the path of a `.py` file; each only once."""
    for module in modules:
        wanted = absolute(module)
        if wanted not in _imported:
            _import(wanted)
            _imported.append(wanted)


def imported_modules() -> tuple[str, ...]:
    """What `import_modules` has imported in this process."""
    return tuple(_imported)


def absolute(module: str) -> str:
    """The module in a form that does not depend on the working directory, if it is a file."""
    return str(Path(module).resolve()) if _is_file(module) else module


def _import(module: str) -> None:
    name = module
    folder = Path.cwd()
    if _is_file(module):
        name = Path(module).stem
        folder = Path(module).parent
        if not Path(module).exists():
            raise UsageError(f"cannot import {module}: there is no such file")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # at the end, so that it shadows no other module
    try:
        loaded = import_module(name)
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        what = f"{type(error).__name__}: {first_line(error)}"
        raise UsageError(f"cannot import {module} ({what})") from error
    if _is_file(module) and Path(loaded.__file__ or "").resolve() != Path(module):
        raise UsageError(f"cannot import {module}: {name} is {loaded.__file__}; rename the file")


def _is_file(module: str) -> bool:
    return module.endswith(".py")
