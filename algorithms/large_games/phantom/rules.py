"""The rules of phantom games as data: two players place stones on a board that neither sees.

A player to move names a cell that it has not tried before. If the cell is empty, the player takes
it and the turn passes to the other player. If the other player already holds the cell, the player
learns that, and either moves again (classical) or loses the turn (abrupt). The first to hold a
winning set of cells wins 1 chip; a full board without one is a draw. Sets of cells are bit masks.
"""

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
        sets, wins = np.arange(2**self.cells), self.wins[player]
        without = [(sets >> i & 1 == 1) & ~wins[sets & ~(1 << i)] for i in range(self.cells)]
        return np.asarray(wins & np.any(without, axis=0))


def tic_tac_toe(*, abrupt: bool = False) -> Rules:
    """Three in a row on 3x3 cells, for either player."""
    held = np.arange(2**9)
    wins = np.any([held & line == line for line in _LINES], axis=0)
    return Rules(9, np.stack([wins, wins]), abrupt)


def hex_board(rows: int, cols: int, *, abrupt: bool = False) -> Rules:
    """Player 0 connects the first row with the last, player 1 the first column with the last."""
    cells = [divmod(cell, cols) for cell in range(rows * cols)]
    adjacent = [
        sum(1 << i for i, (r, c) in enumerate(cells) if (r - row, c - col) in _NEIGHBOURS)
        for row, col in cells
    ]
    edges = [
        tuple(sum(1 << i for i, cell in enumerate(cells) if cell[axis] == end) for end in (0, last))
        for axis, last in enumerate((rows - 1, cols - 1))
    ]
    wins = [[_connects(held, ends, adjacent) for held in range(2 ** len(cells))] for ends in edges]
    return Rules(len(cells), np.array(wins), abrupt)


def _connects(held: int, edges: tuple[int, ...], adjacent: list[int]) -> bool:
    """Whether a set of cells connects one edge of the board with the other."""
    reached, near = 0, edges[0]
    while fresh := held & near & ~reached:
        reached |= fresh
        near = sum(1 << i for i, cells in enumerate(adjacent) if cells & fresh)
    return bool(reached & edges[1])
