"""Phantom tic-tac-toe and dark hex as OpenSpiel names and observes them.

An information set is the player's own sequence of cells, each taken or found to be the other
player's. (In classical dark hex OpenSpiel's *string* also has the number of all actions so far,
which reveals the other player's failures; its tensor does not.)
"""

from collections.abc import Sequence

import numpy as np

from algorithms.compiled.jit import compiled
from algorithms.large_games.large_game import NativeGame
from algorithms.large_games.phantom.evaluation import Evaluator
from algorithms.large_games.phantom.rules import Rules, hex_board, tic_tac_toe
from algorithms.large_games.phantom.sequences import histories, infosets_of
from algorithms.support.arrays import BoolArray, Float32Array, Int8Array, Int16Array, Int64Array


def phantom_tic_tac_toe(*, abrupt: bool) -> "Phantom":
    """Phantom tic-tac-toe; in the abrupt game a failed action ends the turn."""
    planes = np.arange(3 * 9).reshape(3, 9)  # empty, o, x; player 0 is x
    views = np.stack([planes[[0, 2, 1]], planes])
    labels = tuple(
        tuple(f"{mark}({row},{col})" for row in range(3) for col in range(3)) for mark in "xo"
    )
    return Phantom(tic_tac_toe(abrupt=abrupt), views, planes.size, labels)


def dark_hex(rows: int, cols: int, *, abrupt: bool) -> "Phantom":
    """Dark hex; in the abrupt game a failed action ends the turn."""
    # A cell has nine states, and a player to act sees three of them; player 0 is black.
    white, empty, black = (9 * np.arange(rows * cols) + state for state in (3, 4, 5))
    views = np.array([[empty, black, white], [empty, white, black]])
    labels = tuple(f"{chr(ord('a') + col)}{row + 1}" for row in range(rows) for col in range(cols))
    rules = hex_board(rows, cols, abrupt=abrupt)
    return Phantom(rules, views, 9 * rows * cols, (labels, labels))


class Phantom(Evaluator, NativeGame):
    """Phantom tic-tac-toe or dark hex, on a board of C cells.

    Observation:

    | index | meaning |
    |---|---|
    | `views[player]` | 1 for each cell: untried, taken, or failed |
    | C * C from `view_size` | one-hot of the cell of each own action, in order |

    `views` `(2, 3, C)` are, by player, the index of a cell that is untried, own, or failed.
    """

    def __init__(
        self, rules: Rules, views: Int64Array, view_size: int, labels: Sequence[Sequence[str]]
    ) -> None:
        super().__init__(rules)
        self._views, self._view_size, self._labels = views, view_size, labels
        self.observation_size = view_size + rules.cells**2

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(n, A)`."""
        sequences = self.sequences[player]
        found = np.searchsorted(sequences.starts, np.arange(start, stop), side="right") - 1
        blocks = sequences.decisions[found]
        tried = sequences.taken[blocks] | sequences.failed[blocks]
        return np.asarray(tried[:, np.newaxis] >> np.arange(self.num_actions) & 1 == 0)

    def observations(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(n, observation_size)`."""
        seen = np.zeros((stop - start, self.observation_size), np.float32)
        actions, outcomes = histories(self.sequences[player], start, stop)
        _write_observations(actions, outcomes, self._views[player], self._view_size, seen)
        return seen

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(n, observation_size)`: `(n,)`."""
        cells, steps = self.num_actions, np.arange(self.num_actions)
        tried = observations[:, self._view_size :].reshape(-1, cells, cells) > 0
        actions = np.where(tried.any(axis=2), tried.argmax(axis=2), -1).astype(np.int8)
        taken = observations[:, self._views[player, 1]] > 0
        success = np.take_along_axis(taken, np.maximum(actions, 0).astype(np.int64), axis=1)
        codes = ((success & (actions >= 0)) << steps).sum(axis=1) | 1 << (actions >= 0).sum(axis=1)
        return infosets_of(self.sequences[player], actions, codes.astype(np.int16))

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words, e.g. `player_0: took x(1,1), failed at x(0,0)`."""
        actions, outcomes = histories(self.sequences[player], infoset, infoset + 1)
        words = [
            f"{'took' if outcomes[0] >> i & 1 else 'failed at'} {self._labels[player][cell]}"
            for i, cell in enumerate(actions[0])
            if cell >= 0
        ]
        return f"player_{player}: {', '.join(words) or 'first action'}"

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in OpenSpiel's words, e.g. `x(1,1)` or `b2`."""
        del infoset  # an action means the same everywhere
        return self._labels[player][action]


@compiled
def _write_observations(
    actions: Int8Array, outcomes: Int16Array, views: Int64Array, view_size: int, seen: Float32Array
) -> None:
    """Fill in zeroed tensors `(n, size)` from histories `(n, C)`."""
    cells = actions.shape[1]
    for row in range(len(actions)):
        for cell in range(cells):
            seen[row, views[0, cell]] = 1.0
        for i in range(cells):
            cell = actions[row, i]
            if cell < 0:
                break
            seen[row, views[0, cell]] = 0.0
            seen[row, views[1 if outcomes[row] >> i & 1 else 2, cell]] = 1.0
            seen[row, view_size + i * cells + cell] = 1.0
