"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from algorithms.support.errors import UsageError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no directory {target.parent}")
    try:
        # The suffix stays the last part of the name: some writers choose a format by it.
        handle, name = tempfile.mkstemp(
            prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent
        )
    except OSError as error:
        raise UsageError(f"{target}: cannot write there ({error.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def require_png(path: str | Path) -> None:
    """Refuse other names for a picture, before the work that it shows."""
    if Path(path).suffix.lower() != ".png":
        raise UsageError(f"{path}: a picture is written as .png; give a name that ends so")


def write_text(path: str | Path, text: str) -> None:
    """The whole file or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
