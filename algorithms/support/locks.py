"""A lock beside a file that a command writes, so that two commands do not write the same one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from algorithms.support.errors import UsageError

SUFFIX = ".lock"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path` inside the block; a `UsageError` if another process holds it.

    The operating system releases it when the process ends, however it ends, so the file of a killed
    process does not block the next one.
    """
    lock = path.with_name(f".{path.name}{SUFFIX}")
    descriptor = _acquired(lock)
    if descriptor is None:
        raise UsageError(
            f"{path}: another process is writing it; wait until it ends, or choose another --out"
        )
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _acquired(lock: Path) -> int | None:
    """A descriptor that holds the lock, or None if another process does."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(descriptor):
            os.close(descriptor)
            return None
        # The process that held it may have removed the file after it was opened here.
        if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
            return descriptor
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    """Whether the lock was free; it is held from now on."""
    try:
        import fcntl
    except ImportError:  # Windows, where an open file cannot be removed either
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
