"""Files that are written whole or not at all, and read up to a size limit; checksums, arrays."""

import hashlib
import os
import secrets
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.support.errors import UsageError

MAX_CHECKSUMMED_BYTES = 2**30
MAX_ARRAYS_BYTES = 8 * 2**30
_MAGIC = b"kuhn-bridge checksum 1\n"
_HEADER_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_CHUNK = 2**20  # bytes read at a time


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path whose content becomes the file `path` if the block ends without an error.

    Symbolic links are followed, and an existing file keeps its permissions. A device, a pipe or a
    standard stream is written into, never replaced.
    """
    with _system_errors(path):
        target, special = _resolved(path)
        folder = Path(tempfile.gettempdir()) if special else target.parent
        # The suffix stays at the end of the name: some writers choose their format by it.
        temporary = folder / f".{target.stem}-{secrets.token_hex(4)}{target.suffix}"
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            if special:
                sys.stdout.flush()  # what was printed so far comes first
                stream = _STREAMS.get(str(target))
                with open(target if stream is None else os.dup(stream), "wb") as file:  # noqa: PTH123
                    file.write(temporary.read_bytes())
                return
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # the content is on disk before the name points to it
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def require_writable(path: str | Path) -> None:
    """Raise an error if the file could not be written, before the work that fills it starts."""
    with _system_errors(path):
        target, special = _resolved(path)
        if not special:
            tempfile.TemporaryFile(dir=target.parent).close()


def require_png(path: str | Path) -> None:
    """Raise an error if `path` does not end in `.png` or could not be written."""
    if Path(path).suffix.lower() != ".png":
        raise UsageError(f"{path}: a picture is written as .png; give a name that ends in .png")
    require_writable(path)


def write_text(path: str | Path, text: str) -> None:
    """Write the whole file or nothing."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write the whole file or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def read_bytes(path: str | Path, *, max_bytes: int) -> bytes:
    """The content of a file; an error, without reading on, if it has more than `max_bytes`."""
    content = bytearray()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            content += chunk
            if len(content) > max_bytes:
                raise UsageError(f"{path}: larger than {max_bytes:,} bytes")
    return bytes(content)


def write_checksummed(path: str | Path, content: bytes) -> None:
    """Write `content` behind its SHA-256: the whole file or nothing."""
    write_bytes(path, _MAGIC + hashlib.sha256(content).digest() + content)


def read_checksummed(path: str | Path) -> bytes:
    """The content that `write_checksummed` wrote; an error if the file is damaged or truncated."""
    whole = read_bytes(path, max_bytes=MAX_CHECKSUMMED_BYTES)
    content = whole[_HEADER_BYTES:]
    if whole[:_HEADER_BYTES] != _MAGIC + hashlib.sha256(content).digest():
        raise UsageError(f"{path}: damaged, or not a file that kuhn-bridge wrote")
    return content


def write_arrays(path: str | Path, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write an uncompressed `.npz` file, whose members have checksums: all of it or nothing."""
    members: dict[str, Any] = dict(arrays)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **members)


def read_arrays(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an uncompressed `.npz` file, read without running code from it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        size = sum(member.file_size for member in members)
        if stored and size <= min(MAX_ARRAYS_BYTES, Path(path).stat().st_size):
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise UsageError(f"{path}: damaged, or not arrays in .npz form ({error})") from None
    wrong = f"larger than {MAX_ARRAYS_BYTES:,} bytes, or than the file" if stored else "compressed"
    raise UsageError(f"{path}: its arrays are {wrong}; write them with numpy.savez")


def _resolved(path: str | Path) -> tuple[Path, bool]:
    """The path with symbolic links followed; whether it is a device, a pipe or a standard stream.

    An error if its directory does not exist.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a directory; give the name of a file")
    if str(target) in _STREAMS or (target.exists() and not target.is_file()):
        return target, True  # a standard stream may lead to a regular file
    real = Path(os.path.realpath(target))
    for parent in (target.parent, real.parent):
        if not parent.is_dir():
            raise UsageError(f"{target}: there is no directory {parent}")
    return real, False


@contextmanager
def _system_errors(path: str | Path) -> Iterator[None]:
    """Turn an `OSError` into one line about `path`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from error


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard file descriptor 2: compiled libraries do not write to `sys.stderr`."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with Path(os.devnull).open("w") as devnull:
            os.dup2(devnull.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
