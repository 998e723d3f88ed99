"""The rules of phantom games as data: two players place stones on a board that neither sees.

A player to move names a cell that it has not tried before. If the cell is empty, the player takes
it and the turn passes to the other player. If the other player already holds the cell, the player
learns that, and either moves again (classical) or loses the turn (abrupt). The first to hold a
winning set of cells wins 1 chip; a full board without one is a draw. Sets of cells are bit masks.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from algorithms.support.arrays import BoolArray

MAX_CELLS = 9  # ten cells have thirty times as many histories

_LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)  # of tic-tac-toe, row by row
_NEIGHBOURS = ((0, 1), (0, -1), (1, 0), (-1, 0), (-1, 1), (1, -1))  # of a cell in hex


class Rules(NamedTuple):
    """A board, the sets of cells that win on it, and whether a failed move ends the turn."""

    cells: int  # at most MAX_CELLS
    wins: BoolArray  # (2, 2**cells): whether a player wins by holding a set of cells
    abrupt: bool

    def just_won(self, player: int) -> BoolArray:
        """Whether sets win `(2**cells,)` but would not without one of their stones."""
        sets = np.arange(2**self.cells)
        wins = self.wins[player]
        could_be_last = np.zeros(len(sets), np.bool_)
        for cell in range(self.cells):
            has_cell = sets >> cell & 1 == 1
            without_cell = sets & ~(1 << cell)
            could_be_last |= has_cell & ~wins[without_cell]
        return np.asarray(wins & could_be_last)


def tic_tac_toe(*, abrupt: bool = False) -> Rules:
    """Three in a row on 3x3 cells, for either player."""
    held = np.arange(2**9)
    wins = np.any([held & line == line for line in _LINES], axis=0)
    return Rules(cells=9, wins=np.stack([wins, wins]), abrupt=abrupt)


def hex_board(rows: int, cols: int, *, abrupt: bool = False) -> Rules:
    """Player 0 connects the first row with the last, player 1 the first column with the last."""
    cells = [(row, col) for row in range(rows) for col in range(cols)]
    neighbours = []
    for row, col in cells:
        adjacent = [(row + down, col + right) for down, right in _NEIGHBOURS]
        neighbours.append(_set_of(cell in adjacent for cell in cells))
    first_row = _set_of(row == 0 for row, _ in cells)
    last_row = _set_of(row == rows - 1 for row, _ in cells)
    first_col = _set_of(col == 0 for _, col in cells)
    last_col = _set_of(col == cols - 1 for _, col in cells)
    sets = range(2 ** len(cells))
    wins = [
        [_connects(held, first_row, last_row, neighbours) for held in sets],
        [_connects(held, first_col, last_col, neighbours) for held in sets],
    ]
    return Rules(cells=len(cells), wins=np.array(wins), abrupt=abrupt)


def _set_of(members: Iterable[bool]) -> int:
    """The set of the cells for which this is true, as a bit mask."""
    return sum(1 << cell for cell, is_member in enumerate(members) if is_member)


def _connects(held: int, edge: int, other_edge: int, neighbours: Sequence[int]) -> bool:
    """Whether a set of cells connects one edge of the board with the other."""
    reached = 0
    newest = held & edge
    while newest:
        reached |= newest
        adjacent = 0
        for cell, around in enumerate(neighbours):
            if around & newest:
                adjacent |= 1 << cell
        newest = held & adjacent & ~reached
    return bool(reached & other_edge)
