"""Policies of the native large games as `.npz` files: the game, and one table per player."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from algorithms.exact.native import Tables
from algorithms.support.npz import read_arrays, write_arrays
from kuhn_bridge.errors import PolicyError

_GAME = "game"


def write_npz(path: str | Path, game: str, tables: Tables) -> None:
    """Write the tables of a game, whole or not at all."""
    named = {f"player_{player}": table for player, table in enumerate(tables)}
    write_arrays(path, {**named, _GAME: np.array(game)})


def read_npz(path: str | Path) -> tuple[str, Tables]:
    """The game's name and its tables; nothing in the file is run."""
    arrays = read_arrays(path)
    try:
        names = [f"player_{player}" for player in range(len(arrays) - 1)]
        return str(arrays[_GAME]), tuple(np.asarray(arrays[name], np.float32) for name in names)
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyError(f"not a policy in .npz form ({error})") from None
