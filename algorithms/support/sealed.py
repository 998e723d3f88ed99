"""Bytes under a seal: a file that was damaged or cut short is refused, never half believed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from algorithms.support.errors import UsageError
from algorithms.support.files import read_bytes, write_bytes

MAGIC = b"kuhn-bridge sealed 1\n"
MAX_BYTES = 2**30
_HEAD = len(MAGIC) + hashlib.sha256().digest_size


def write_sealed(path: str | Path, content: bytes) -> None:
    """Write a mark, the SHA-256 of `content`, then `content`: the whole file or nothing."""
    write_bytes(path, MAGIC + hashlib.sha256(content).digest() + content)


def read_sealed(path: str | Path, *, most: int = MAX_BYTES) -> bytes:
    """What `write_sealed` wrote there, to the last bit."""
    whole = read_bytes(path, most=most + _HEAD)
    seal, content = whole[len(MAGIC) : _HEAD], whole[_HEAD:]
    if not whole.startswith(MAGIC):
        raise UsageError(f"{path}: not a sealed file of this program")
    if hashlib.sha256(content).digest() != seal:
        raise UsageError(f"{path}: damaged: its content is not what was written")
    return content
