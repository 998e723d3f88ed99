"""Policies of large games that are measured exactly, as `.npz`: the game's name and its tables.

game        the name
player_0    float32 (information sets, actions), and so on for every player
"""

from pathlib import Path

import numpy as np

from algorithms.games import Game
from algorithms.games.game import Table, per_player
from algorithms.large_games.solver import Tables
from algorithms.support.files import read_arrays, write_arrays
from kuhn_bridge.errors import PolicyError


def write(path: str | Path, game: Game, table: Table) -> None:
    """Write tables, one per player, whole or not at all."""
    arrays = {f"player_{player}": rows for player, rows in enumerate(per_player(table))}
    write_arrays(path, {**arrays, "game": np.array(game.name)})


def read(path: str | Path) -> tuple[str, Tables]:
    """The game's name and its tables; no code from the file runs."""
    arrays = read_arrays(path)
    try:
        game = str(arrays["game"])
        names = [f"player_{player}" for player in range(len(arrays) - 1)]
        return game, tuple(np.asarray(arrays[name], np.float32) for name in names)
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyError(f"not a policy in .npz form ({error})") from None
