"""Phantom tic-tac-toe and dark hex as OpenSpiel names and observes them.

An information set is the player's own sequence of cells, each taken or found to be the other
player's. (In classical dark hex OpenSpiel's *string* also has the number of all actions so far,
which reveals the other player's failures; its tensor does not.)
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from algorithms.cfr import Variant
from algorithms.compiled.jit import compiled
from algorithms.games.game import PyspielGame
from algorithms.large_games.large_game import LargeExactGame
from algorithms.large_games.phantom.evaluation import Evaluator, PhantomSolver
from algorithms.large_games.phantom.rules import MAX_CELLS, Rules, hex_board, tic_tac_toe
from algorithms.large_games.phantom.sequences import Sequences, histories, infosets_of
from algorithms.large_games.solver import Tables
from algorithms.nashconv import Measure
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int16Array,
    Int64Array,
)


def find_phantom_game(game: PyspielGame, name: str) -> "PhantomGame | None":
    """Phantom tic-tac-toe or dark hex; None for other games and boards of more than nine cells.

    A game that reveals the number of turns has other information sets, and is not one of these.
    """
    settings = game.get_parameters()
    if settings.get("obstype") != "reveal-nothing":
        return None
    short_name = game.get_type().short_name
    if short_name == "phantom_ttt":
        abrupt = settings["gameversion"] == "abrupt"
        return phantom_tic_tac_toe(abrupt=abrupt, name=name, pyspiel_game=game)
    if short_name == "dark_hex" and settings["num_rows"] * settings["num_cols"] <= MAX_CELLS:
        return dark_hex(
            settings["num_rows"],
            settings["num_cols"],
            abrupt=settings["gameversion"] == "adh",
            name=name,
            pyspiel_game=game,
        )
    return None


def phantom_tic_tac_toe(*, abrupt: bool, name: str, pyspiel_game: PyspielGame) -> "PhantomGame":
    """Phantom tic-tac-toe; in the abrupt game a failed action ends the turn."""
    # OpenSpiel's planes of nine cells: empty, o, x. Player 0 is x.
    empty, o, x = np.arange(3 * 9).reshape(3, 9)
    cells = [(row, col) for row in range(3) for col in range(3)]
    return PhantomGame(
        tic_tac_toe(abrupt=abrupt),
        views=np.array([[empty, x, o], [empty, o, x]]),
        view_size=3 * 9,
        labels=tuple(tuple(f"{mark}({row},{col})" for row, col in cells) for mark in "xo"),
        name=name,
        pyspiel_game=pyspiel_game,
    )


def dark_hex(
    rows: int, cols: int, *, abrupt: bool, name: str, pyspiel_game: PyspielGame
) -> "PhantomGame":
    """Dark hex; in the abrupt game a failed action ends the turn."""
    # A cell has nine states, and a player to act sees three of them; player 0 is black.
    white, empty, black = (9 * np.arange(rows * cols) + state for state in (3, 4, 5))
    labels = tuple(f"{chr(ord('a') + col)}{row + 1}" for row in range(rows) for col in range(cols))
    return PhantomGame(
        hex_board(rows, cols, abrupt=abrupt),
        views=np.array([[empty, black, white], [empty, white, black]]),
        view_size=9 * rows * cols,
        labels=(labels, labels),
        name=name,
        pyspiel_game=pyspiel_game,
    )


class PhantomGame(LargeExactGame):
    """Phantom tic-tac-toe or dark hex, on a board of C cells.

    Observation:

    | index | meaning |
    |---|---|
    | `views[player]` | 1 for each cell: untried, taken, or failed |
    | C * C from `view_size` | one-hot of the cell of each own action, in order |

    `views` `(2, 3, C)` are, by player, the index of a cell that is untried, own, or failed.
    """

    def __init__(  # noqa: PLR0913  # by name
        self,
        rules: Rules,
        *,
        views: Int64Array,
        view_size: int,
        labels: Sequence[Sequence[str]],
        name: str,
        pyspiel_game: PyspielGame,
    ) -> None:
        self.rules = rules
        self._views = views
        self._view_size = view_size
        self._labels = labels
        super().__init__(
            name=name,
            num_players=2,
            num_actions=rules.cells,
            observation_size=view_size + rules.cells**2,
            pyspiel_game=pyspiel_game,
        )

    @cached_property
    def evaluator(self) -> Evaluator:
        """The sequences of both players; on nine cells they take seconds to find."""
        return Evaluator(self.rules)

    @property
    def sequences(self) -> tuple[Sequences, Sequences]:
        """Each player's sequences."""
        return self.evaluator.sequences

    @property
    def num_infosets(self) -> tuple[int, ...]:
        """The number of information sets of each player."""
        return self.evaluator.num_infosets

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        return self.evaluator.random(seed)

    def _measure(self, tables: Tables) -> Measure:
        return self.evaluator.measure(tables)

    def _own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        return self.evaluator.own_reach(tables)

    def _make_solver(self, variant: Variant) -> PhantomSolver:
        return self.evaluator.make_solver(variant)

    def legal_at(self, player: int, infosets: Int64Array) -> BoolArray:
        """Which actions are legal at information sets `(n,)`: `(n, A)`."""
        sequences = self.sequences[player]
        position = np.searchsorted(sequences.starts, infosets, side="right") - 1
        blocks = sequences.decisions[position]
        tried = sequences.taken[blocks] | sequences.failed[blocks]
        return np.asarray(tried[:, np.newaxis] >> np.arange(self.num_actions) & 1 == 0)

    def tensors_at(self, player: int, infosets: Int64Array) -> Float32Array:
        """OpenSpiel's information state tensors of information sets `(n,)`: `(n, size)`."""
        seen = np.zeros((len(infosets), self.observation_size), np.float32)
        actions, outcomes = histories(self.sequences[player], infosets)
        _write_observations(actions, outcomes, self._views[player], self._view_size, seen)
        return seen

    def find_infosets(self, player: int, tensors: Float32Array) -> Int64Array:
        """The information sets that have these tensors, `(n, observation_size)`: `(n,)`."""
        cells = self.num_actions
        steps = np.arange(cells)
        # (n, step, cell): whether the player's action of that step named that cell.
        tried = tensors[:, self._view_size :].reshape(-1, cells, cells) > 0
        acted = tried.any(axis=2)  # (n, step)
        actions = np.where(acted, tried.argmax(axis=2), -1).astype(np.int8)
        taken = tensors[:, self._views[player, 1]] > 0  # (n, cell)
        took = np.take_along_axis(taken, np.maximum(actions, 0).astype(np.int64), axis=1)
        # Bit i of a code says whether action i took its cell; a 1 follows the last action.
        successes = ((took & acted) << steps).sum(axis=1)
        codes = successes | 1 << acted.sum(axis=1)
        return infosets_of(self.sequences[player], actions, codes.astype(np.int16))

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_0: took x(1,1), failed at x(0,0)`."""
        actions, outcomes = histories(self.sequences[player], np.array([infoset]))
        words = [
            f"{'took' if outcomes[0] >> i & 1 else 'failed at'} {self._labels[player][cell]}"
            for i, cell in enumerate(actions[0])
            if cell >= 0
        ]
        return f"player_{player}: {', '.join(words) or 'first action'}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action in OpenSpiel's words, e.g. `x(1,1)` or `b2`; it means the same everywhere."""
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
