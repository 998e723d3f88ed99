"""Phantom tic-tac-toe and dark hex as native games: OpenSpiel's tensors, actions and states.

An information set is the player's own sequence of cells, each taken or found to be the other
player's. (In classical dark hex OpenSpiel's *string* also has the number of all actions so far,
which reveals the other player's failures; its tensor does not.) Sequences and their numbers are in
`algorithms.exact.phantom.sequences`, the evaluation in `algorithms.exact.phantom.values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from algorithms.exact.cfr import Variant
from algorithms.exact.native import Tables
from algorithms.exact.phantom.rules import MAX_CELLS, Rules, hex_board, tic_tac_toe
from algorithms.exact.phantom.sequences import histories, infosets_of
from algorithms.exact.phantom.solver import PhantomSolver
from algorithms.exact.phantom.values import Evaluator, normalise
from algorithms.exact.values import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Int8Array, Int16Array, Int64Array
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import HistoryError

TIC_TAC_TOE, DARK_HEX = "phantom_ttt", "dark_hex"


def find_phantom(game: Any) -> Phantom | None:
    """The native form of a `pyspiel.Game`, or `None` if it is another game.

    Also `None` if the number of turns is revealed or the board has more than nine cells.
    """
    short_name, settings = game.get_type().short_name, game.get_parameters()
    if short_name not in (TIC_TAC_TOE, DARK_HEX) or settings["obstype"] != "reveal-nothing":
        return None
    return _tic_tac_toe(settings) if short_name == TIC_TAC_TOE else _dark_hex(settings)


class Face(NamedTuple):
    """OpenSpiel's tensors and labels on a board of C cells."""

    views: Int64Array  # (2, 3, C): by player, the index of a cell that is untried, own, or failed
    view_size: int
    labels: tuple[tuple[str, ...], ...]  # (2, C): a player's actions


def _tic_tac_toe(settings: Mapping[str, Any]) -> Phantom:
    planes = np.arange(3 * 9).reshape(3, 9)  # empty, o, x; player 0 is x
    views = np.stack([planes[[0, 2, 1]], planes])
    labels = tuple(
        tuple(f"{mark}({row},{col})" for row in range(3) for col in range(3)) for mark in "xo"
    )
    rules = tic_tac_toe(abrupt=settings["gameversion"] == "abrupt")
    return Phantom(rules, Face(views, planes.size, labels))


def _dark_hex(settings: Mapping[str, Any]) -> Phantom | None:
    rows, cols = settings["num_rows"], settings["num_cols"]
    if rows * cols > MAX_CELLS:
        return None
    # A cell has nine states, and a player to act sees three of them; player 0 is black.
    white, empty, black = (9 * np.arange(rows * cols) + state for state in (3, 4, 5))
    views = np.array([[empty, black, white], [empty, white, black]])
    labels = tuple(f"{chr(ord('a') + col)}{row + 1}" for row in range(rows) for col in range(cols))
    rules = hex_board(rows, cols, abrupt=settings["gameversion"] == "adh")
    return Phantom(rules, Face(views, 9 * rows * cols, (labels, labels)))


class Phantom:
    """A phantom game as a `NativeGame`, on a board of C cells.

    Observation:

    | index | meaning |
    |---|---|
    | `face.views[player]` | 1 for each cell: untried, taken, or failed |
    | C * C from `face.view_size` | one-hot of the cell of each own action, in order |
    """

    def __init__(self, rules: Rules, face: Face) -> None:
        self.rules, self.face = rules, face
        self.evaluator = Evaluator(rules)
        self.sequences = self.evaluator.sequences
        self.num_players = 2
        self.num_actions = rules.cells
        self.observation_size = face.view_size + rules.cells**2
        self.num_infosets: tuple[int, ...] = tuple(x.num_infosets for x in self.sequences)

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
        _write_observations(actions, outcomes, self.face.views[player], self.face.view_size, seen)
        return seen

    def uniform(self) -> Tables:
        """The policy that plays every legal action equally often."""
        return self._policy(
            [np.zeros((count, self.num_actions), np.float32) for count in self.num_infosets]
        )

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator = np.random.default_rng(seed)
        return self._policy(
            [
                generator.standard_exponential((count, self.num_actions), np.float32)
                for count in self.num_infosets
            ]
        )

    def _policy(self, weights: list[Float32Array]) -> Tables:
        for sequences, table in zip(self.sequences, weights, strict=True):
            normalise(sequences, table)
        return tuple(weights)

    def measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and losses of a joint policy."""
        return self.evaluator.evaluate(tables)

    def make_solver(self, variant: Variant) -> PhantomSolver:
        """A solver of the CFR family; its updates and the measures share their arrays."""
        return PhantomSolver(self.evaluator, variant)

    def history_of(self, state: Any, player: int) -> list[tuple[int, bool]]:
        """The cells that a player tried in an OpenSpiel state, each with success or not."""
        held: set[int] = set()
        history = []
        for step in state.full_history():
            if step.player == player:
                history.append((step.action, step.action not in held))
            held.add(step.action)
        return history

    def infoset_of(self, state: Any, player: int) -> int:
        """The information set of the player to act in an OpenSpiel state."""
        if state.current_player() != player:
            raise HistoryError(f"player {player} is not to act in {str(state)!r}")
        history = self.history_of(state, player)
        actions = np.full((1, self.num_actions), -1, np.int8)
        actions[0, : len(history)] = [cell for cell, _ in history]
        outcomes = 1 << len(history) | sum(success << i for i, (_, success) in enumerate(history))
        return int(infosets_of(self.sequences[player], actions, np.array([outcomes], np.int16))[0])

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(n, observation_size)`: `(n,)`."""
        cells, steps = self.num_actions, np.arange(self.num_actions)
        tried = observations[:, self.face.view_size :].reshape(-1, cells, cells) > 0
        actions = np.where(tried.any(axis=2), tried.argmax(axis=2), -1).astype(np.int8)
        taken = observations[:, self.face.views[player, 1]] > 0
        success = np.take_along_axis(taken, np.maximum(actions, 0).astype(np.int64), axis=1)
        codes = ((success & (actions >= 0)) << steps).sum(axis=1) | 1 << (actions >= 0).sum(axis=1)
        return infosets_of(self.sequences[player], actions, codes.astype(np.int16))

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words, e.g. `player_0: took x(1,1), failed at x(0,0)`."""
        actions, outcomes = histories(self.sequences[player], infoset, infoset + 1)
        labels = self.face.labels[player]
        words = [
            f"{'took' if outcomes[0] >> i & 1 else 'failed at'} {labels[cell]}"
            for i, cell in enumerate(actions[0])
            if cell >= 0
        ]
        return f"player_{player}: {', '.join(words) or 'first action'}"

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in OpenSpiel's words, e.g. `x(1,1)` or `b2`."""
        del infoset  # an action means the same everywhere
        return self.face.labels[player][action]


@compiled
def _write_observations(
    actions: Int8Array,
    outcomes: Int16Array,
    views: Int64Array,
    view_size: int,
    seen: Float32Array,
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
