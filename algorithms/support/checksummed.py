"""Files with a checksum: a damaged or truncated file is an error."""

from __future__ import annotations

import hashlib
from pathlib import Path

from algorithms.support.errors import UsageError
from algorithms.support.files import read_bytes, write_bytes

MAGIC = b"kuhn-bridge checksum 1\n"
MAX_BYTES = 2**30
_HEADER = len(MAGIC) + hashlib.sha256().digest_size


def write_checksummed(path: str | Path, content: bytes) -> None:
    """Write a header, the SHA-256 of `content` and `content`: the whole file or nothing."""
    write_bytes(path, MAGIC + hashlib.sha256(content).digest() + content)


def read_checksummed(path: str | Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The content that `write_checksummed` wrote to this file."""
    whole = read_bytes(path, max_bytes=max_bytes + _HEADER)
    checksum, content = whole[len(MAGIC) : _HEADER], whole[_HEADER:]
    if not whole.startswith(MAGIC):
        raise UsageError(f"{path}: not a file that kuhn-bridge wrote")
    if hashlib.sha256(content).digest() != checksum:
        raise UsageError(f"{path}: damaged: its checksum does not match its content")
    return content
