"""Trees of OpenSpiel games on disk, since a walk takes seconds: in the user's cache directory.

A file is named by the game's string, OpenSpiel's version and the version of this format, and is
written whole and under a checksum: a damaged one is as good as none. Everything here may be deleted
at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.exact.tree import Tree
from algorithms.support.errors import UsageError
from algorithms.support.sealed import read_sealed, write_sealed

FORMAT = 1  # to be counted up whenever `Tree` changes
LEAST_NODES = 10_000  # a smaller game is walked in no time
MOST_BYTES = 2**28  # of one tree
MOST_BYTES_IN_ALL = 2**30
_ALIGNMENT = 16  # bytes; compiled code wants numbers at their places


def directory() -> Path:
    """Where trees are kept: below `XDG_CACHE_HOME`, or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kuhn-bridge" / "trees"


def find_tree(game: Any, name: str) -> Tree | None:
    """The tree of a `pyspiel.Game`, if it was kept; it is to be called `name`."""
    if not _is_fixed(game):
        return None
    with suppress(OSError, UsageError, ValueError, TypeError):  # none, damaged, or of another make
        return unpack(read_sealed(_path(game), most=MOST_BYTES), name)
    return None


def keep_tree(game: Any, tree: Tree) -> None:
    """Keep a tree that took a while to walk, if that is possible."""
    if tree.num_nodes < LEAST_NODES or not _is_fixed(game):
        return
    content = pack(tree)
    if len(content) <= MOST_BYTES:
        with suppress(OSError, UsageError):  # a disk that is full, or not ours
            directory().mkdir(parents=True, exist_ok=True)
            write_sealed(_path(game), content)
            _remove_the_oldest()


def pack(tree: Tree) -> bytes:
    """A tree as bytes: a line of JSON, then its arrays one after another."""
    arrays = {name: getattr(tree, name) for name in _ARRAYS}
    head = {
        "num_players": tree.num_players,
        "keys": tree.keys,
        "arrays": [(name, array.dtype.str, array.shape) for name, array in arrays.items()],
    }
    parts = [json.dumps(head).encode() + b"\n", *(array.tobytes() for array in arrays.values())]
    return b"".join(part + bytes(-len(part) % _ALIGNMENT) for part in parts)


def unpack(content: bytes, name: str) -> Tree:
    """The tree of what `pack` made."""
    head = json.loads(content[: content.index(b"\n")])
    place = content.index(b"\n") + 1
    arrays = {}
    for field, kind, shape in head["arrays"]:
        place += -place % _ALIGNMENT
        count = int(np.prod(shape))
        arrays[field] = np.frombuffer(content, kind, count, place).reshape(shape)
        place += arrays[field].nbytes
    return Tree(name=name, num_players=head["num_players"], keys=tuple(head["keys"]), **arrays)


_ARRAYS = [f.name for f in fields(Tree) if f.name not in {"name", "num_players", "keys"}]


def _is_fixed(game: Any) -> bool:
    """Whether a game is what its string says: not if it is in Python, or read from a file."""
    return not any(mark in str(game) for mark in ("python_", "filename="))


def _path(game: Any) -> Path:
    identity = f"{FORMAT}\n{version('open_spiel')}\n{game}"
    return directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.tree"


def _remove_the_oldest() -> None:
    """As many as it takes to keep within bounds; the newest stays."""
    files = sorted(directory().glob("*.tree"), key=lambda path: path.stat().st_mtime, reverse=True)
    room = MOST_BYTES_IN_ALL
    for number, path in enumerate(files):
        room -= path.stat().st_size
        if number and room < 0:
            path.unlink(missing_ok=True)
