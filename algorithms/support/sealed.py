"""Old names of `algorithms.support.checksummed`, until their callers use the new ones."""

from __future__ import annotations

from pathlib import Path

from algorithms.support.checksummed import MAX_BYTES, read_checksummed, write_checksummed

write_sealed = write_checksummed


def read_sealed(path: str | Path, *, most: int = MAX_BYTES) -> bytes:
    """`read_checksummed`."""
    return read_checksummed(path, max_bytes=most)
