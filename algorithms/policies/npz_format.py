"""Policies of the native large games as `.npz` files: the game, and one table per player."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.games.native import Tables
from algorithms.support import files
from kuhn_bridge.errors import PolicyError

MAX_BYTES = 8 * 2**30  # of all arrays together
_GAME = "game"


def write_npz(path: str | Path, game: str, tables: Tables) -> None:
    """Write the tables of a game, whole or not at all."""
    arrays: dict[str, Any] = {f"player_{player}": table for player, table in enumerate(tables)}
    with files.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **(arrays | {_GAME: np.array(game)}))


def read_npz(path: str | Path) -> tuple[str, Tables]:
    """The game's name and its tables; nothing in the file is run."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise PolicyError(f"larger than {MAX_BYTES:,} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            count = len(arrays.files) - 1
            tables = tuple(np.asarray(arrays[f"player_{p}"], np.float32) for p in range(count))
            return str(arrays[_GAME]), tables
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, PolicyError):
            raise
        raise PolicyError(f"not a policy in .npz form ({error})") from None
