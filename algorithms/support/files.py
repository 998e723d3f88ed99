"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from algorithms.support.errors import UsageError

if sys.platform != "win32":
    import fcntl

_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_PART = 2**20  # bytes read at a time
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path` when the block ends well.

    Symbolic links are followed. What is no regular file (a device, a pipe) cannot be replaced:
    the finished file is written into it. What killed runs left of the same file is removed.
    """
    target = _resolved(path)
    with _into(target) if _is_special(target) else _beside(target) as temporary:
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _FULL:
                raise
            kept = "; the file that was there is kept" if target.is_file() else ""
            raise UsageError(f"{target}: {error.strerror}{kept}") from None


def require_writable(path: str | Path) -> None:
    """Refuse a file that could not be written, before the work that fills it."""
    target = _resolved(path)
    if not _is_special(target):
        temporary, handle = _created(target)
        temporary.unlink()
        os.close(handle)


def require_png(path: str | Path) -> None:
    """Refuse other names for a picture, before the work that it shows."""
    if Path(path).suffix.lower() != ".png":
        raise UsageError(f"{path}: a picture is written as .png; give a name that ends so")
    require_writable(path)


def write_text(path: str | Path, text: str) -> None:
    """The whole file or nothing."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """The whole file or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def read_bytes(path: str | Path, *, most: int) -> bytes:
    """The content of a file of at most `most` bytes, whatever size it is said to have."""
    content = bytearray()
    with _named(path).open("rb") as file:
        while part := file.read(_PART):
            content += part
            if len(content) > most:
                raise UsageError(f"{path}: larger than {most:,} bytes")
    return bytes(content)


def _resolved(path: str | Path) -> Path:
    """Where the file really is: the end of all symbolic links, in a directory that exists."""
    target = _named(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a directory; give the name of a file")
    if _is_special(target):
        return target
    real = Path(os.path.realpath(target))
    for parent in (target.parent, real.parent):
        if not parent.is_dir():
            raise UsageError(f"{target}: there is no directory {parent}")
    if real.is_symlink():
        raise UsageError(f"{target}: the symbolic link leads to itself")
    return real


def _named(path: str | Path) -> Path:
    if "\0" in str(path):
        raise UsageError(f"{str(path)!r} is not the name of a file")
    return Path(path)


def _is_special(target: Path) -> bool:
    """Whether this is a device, a pipe or a standard stream, which is written into."""
    if str(target) in _STREAMS:
        return True
    return target.exists() and not stat.S_ISREG(target.stat().st_mode)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A new file in the same directory, renamed to `target` at the end."""
    _remove_leftovers(target)
    temporary, handle = _created(target)
    try:
        yield temporary
        os.fsync(handle)
        with _told(target):
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def _into(target: Path) -> Iterator[Path]:
    """A new file elsewhere, copied into the device, pipe or stream `target` at the end."""
    with _told(target):
        handle = _opened(target)
    try:
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / f"output{target.suffix}"
            temporary.touch()
            yield temporary
            left = memoryview(temporary.read_bytes())
        sys.stdout.flush()  # what was printed before comes before
        with _told(target):
            while left:
                left = left[os.write(handle, left) :]
    finally:
        os.close(handle)


def _opened(target: Path) -> int:
    """A handle that writes into a device, a pipe or a stream."""
    if str(target) in _STREAMS:
        return os.dup(_STREAMS[str(target)])
    # A pipe that nobody reads is an error now, not a wait that never ends.
    handle = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(handle, True)
    return handle


def _created(target: Path) -> tuple[Path, int]:
    """A new file beside `target` with its permissions, and the handle that keeps it locked."""
    # The suffix stays the last part of the name: some writers choose a format by it.
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    with _told(target):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if not _is_held(handle):
            os.close(handle)
            return _created(target)
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    return temporary, handle


def _remove_leftovers(target: Path) -> None:
    """Remove what runs that were killed left of `target`: files of ours that nobody locks."""
    ours = re.compile(rf"\.{re.escape(target.stem)}-[a-z0-9_]{{8}}{re.escape(target.suffix)}")
    for path in target.parent.iterdir():
        if ours.fullmatch(path.name):
            with suppress(OSError):
                _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(handle)
        path.unlink()
    finally:
        os.close(handle)


def _is_held(handle: int) -> bool:
    """Lock a new file; false if another run took it for a leftover before it was locked."""
    try:
        _lock(handle)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.fstat(handle).st_nlink > 0


def _lock(handle: int) -> None:
    """Hold a file until the handle is closed, by us or by our death; `OSError` if another does."""
    if sys.platform == "win32":
        raise OSError(errno.ENOSYS, "no such locks")
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """The system's refusal as one line about `target`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{target}: cannot write there ({error.strerror})") from None
