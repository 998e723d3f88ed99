"""Trees of OpenSpiel games in the user's cache directory: building one takes seconds.

A file is named by a hash of the game's string, OpenSpiel's version and `FORMAT`. A damaged file is
ignored and replaced. All files may be deleted at any time.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from algorithms.games.game import PyspielGame
from algorithms.support.errors import UsageError
from algorithms.support.files import read_arrays, write_arrays
from algorithms.tree import Tree

FORMAT = 4  # increase it whenever `Tree` changes
MIN_NODES = 10_000  # smaller trees are built quickly
MAX_BYTES = 2**28  # of one tree
MAX_TOTAL_BYTES = 2**30
_ARRAYS = [f.name for f in fields(Tree) if f.name not in {"name", "num_players", "keys"}]


def directory() -> Path:
    """The folder of the files, below `XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kuhn-bridge" / "trees"


def find_tree(game: PyspielGame, name: str) -> Tree | None:
    """The cached tree of a `pyspiel.Game`, called `name`, or None."""
    try:
        arrays = read_arrays(_path(game))
    except (OSError, UsageError):  # no file, or a damaged one
        return None
    num_players, keys = json.loads(arrays.pop("head").tobytes())
    return Tree(name=name, num_players=num_players, keys=tuple(keys), **arrays)


def keep_tree(game: PyspielGame, tree: Tree) -> None:
    """Cache a tree that takes long to build, if the directory can be written."""
    # Games in Python or from a file may change while their string stays the same.
    if tree.num_nodes < MIN_NODES or any(mark in str(game) for mark in ("python_", "filename=")):
        return
    head = json.dumps([tree.num_players, tree.keys]).encode()
    arrays = {"head": np.frombuffer(head, np.uint8)}
    arrays |= {name: getattr(tree, name) for name in _ARRAYS}
    if sum(array.nbytes for array in arrays.values()) <= MAX_BYTES:
        with suppress(OSError, UsageError):
            directory().mkdir(parents=True, exist_ok=True)
            write_arrays(_path(game), arrays)
            _remove_oldest()


def _path(game: PyspielGame) -> Path:
    identity = f"{FORMAT}\n{_openspiel_version()}\n{game}"
    return directory() / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.tree"


def _openspiel_version() -> str:
    """OpenSpiel's version; one built from source is not installed as a package and has none."""
    try:
        return version("open_spiel")
    except PackageNotFoundError:
        import pyspiel

        library = Path(pyspiel.__file__)
        return f"built from source at {library.stat().st_mtime_ns}"


def _remove_oldest() -> None:
    """Remove the oldest files until the rest is within `MAX_TOTAL_BYTES`; keep the newest."""
    files = sorted(directory().glob("*.tree"), key=lambda path: path.stat().st_mtime)
    total = sum(path.stat().st_size for path in files)
    for path in files[:-1]:
        if total > MAX_TOTAL_BYTES:
            total -= path.stat().st_size
            path.unlink(missing_ok=True)
