"""The native large games as OpenSpiel names and observes them; all are between two players.

Their evaluation and the numbers of their information sets are in `algorithms.exact.phantom` and in
`algorithms.exact.liars_dice`. In phantom games an information set is the player's own sequence of
cells, each taken or found to be the other player's. (In classical dark hex OpenSpiel's *string*
also has the number of all actions so far, which reveals the other player's failures; its tensor
does not.)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from algorithms.exact import liars_dice
from algorithms.exact.cfr import Variant
from algorithms.exact.native import NativeGame, Tables
from algorithms.exact.phantom.rules import MAX_CELLS, Rules, hex_board, tic_tac_toe
from algorithms.exact.phantom.sequences import histories, infosets_of
from algorithms.exact.phantom.values import Evaluator
from algorithms.exact.values import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Int8Array, Int16Array, Int64Array
from algorithms.support.compiled import compiled

MAX_TABLE_BYTES = 4 * 2**30  # of a policy; two dice of five sides take 1.2 GiB, of six 33 GiB
_BATCH = 2**16  # information sets whose rows are filled in at a time


def find_native(game: Any) -> NativeGame | None:
    """The native form of a `pyspiel.Game`, or `None` if it has none or is too large.

    A phantom game may not reveal the number of turns and has at most nine cells; a policy of Liar's
    Dice takes at most 4 GiB.
    """
    name, settings = game.get_type().short_name, game.get_parameters()
    if name == "liars_dice":
        return _liars_dice(settings["numdice"], settings["dice_sides"], settings["bidding_rule"])
    if settings.get("obstype") != "reveal-nothing":
        return None
    if name == "phantom_ttt":
        return _phantom_tic_tac_toe(abrupt=settings["gameversion"] == "abrupt")
    rows, cols = settings.get("num_rows", 0), settings.get("num_cols", 0)
    if name == "dark_hex" and rows * cols <= MAX_CELLS:
        return _dark_hex(rows, cols, abrupt=settings["gameversion"] == "adh")
    return None


def _phantom_tic_tac_toe(*, abrupt: bool) -> "Phantom":
    planes = np.arange(3 * 9).reshape(3, 9)  # empty, o, x; player 0 is x
    views = np.stack([planes[[0, 2, 1]], planes])
    labels = tuple(
        tuple(f"{mark}({row},{col})" for row in range(3) for col in range(3)) for mark in "xo"
    )
    return Phantom(tic_tac_toe(abrupt=abrupt), views, planes.size, labels)


def _dark_hex(rows: int, cols: int, *, abrupt: bool) -> "Phantom":
    # A cell has nine states, and a player to act sees three of them; player 0 is black.
    white, empty, black = (9 * np.arange(rows * cols) + state for state in (3, 4, 5))
    views = np.array([[empty, black, white], [empty, white, black]])
    labels = tuple(f"{chr(ord('a') + col)}{row + 1}" for row in range(rows) for col in range(cols))
    rules = hex_board(rows, cols, abrupt=abrupt)
    return Phantom(rules, views, 9 * rows * cols, (labels, labels))


def _liars_dice(dice: int, sides: int, bidding_rule: str) -> "LiarsDice | None":
    # Bids alone, before anything is allocated: at least one private state and one action each.
    if 2 * dice * sides > MAX_TABLE_BYTES.bit_length():
        return None
    found = LiarsDice(liars_dice.liars_dice_rules(dice, sides, bidding_rule))
    return found if 4 * sum(found.num_infosets) * found.num_actions <= MAX_TABLE_BYTES else None


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


class LiarsDice(NativeGame):
    """Liar's Dice: B bids by rank, then "liar"; n rolls, as sorted multisets.

    Observation, for each player's `dice` of `sides`:

    | index | meaning |
    |---|---|
    | 0, 1 | one-hot of the player |
    | then dice * sides | one-hot of each of its own dice, in ascending order |
    | then B | 1 for each bid made |
    | last | 0 (1 once "liar" is called, when nobody is to act) |
    """

    def __init__(self, rules: liars_dice.Rules) -> None:
        self.rules = rules
        infosets, self.num_actions = liars_dice.table_shape(rules)
        self.num_infosets = infosets, infosets
        dice_in = rules.rolls[:, :, None] == np.arange(1, len(rules.matches) + 1)
        self._dice_in = dice_in.reshape(len(rules.rolls), -1)  # (n, dice * sides)
        self._dice_end = 2 + self._dice_in.shape[1]
        self.observation_size = self._dice_end + self.num_actions

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(m, A)`."""
        return liars_dice.legal_actions(self.rules, self._codes(player, np.arange(start, stop)))

    def observations(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(m, observation_size)`."""
        infosets = np.arange(start, stop)
        seen = np.zeros((len(infosets), self.observation_size), np.float32)
        seen[:, player] = 1
        seen[:, 2 : self._dice_end] = self._dice_in[infosets % len(self._dice_in)]
        seen[:, self._dice_end : -1] = self._bids_made(player, infosets)
        return seen

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(m, observation_size)`: `(m,)`."""
        del player  # the number of bids determines the player
        rolls = (observations[:, 2 : self._dice_end] @ self._dice_in.T).argmax(axis=1)
        bits = 1 << np.arange(self.num_actions - 1)[::-1]
        codes = (observations[:, self._dice_end : -1] > 0) @ bits
        return np.asarray((codes >> 1) * len(self._dice_in) + rolls)

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator, shape = np.random.default_rng(seed), liars_dice.table_shape(self.rules)
        tables = np.empty(shape, np.float32), np.empty(shape, np.float32)
        for player, table in enumerate(tables):
            for start in range(0, len(table), _BATCH):
                legal = self.legal(player, start, min(start + _BATCH, len(table)))
                weights = np.zeros(legal.shape)
                weights[legal] = generator.exponential(size=np.count_nonzero(legal))
                table[start : start + _BATCH] = weights / weights.sum(axis=1, keepdims=True)
        return tables

    def measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and losses of a joint policy."""
        return liars_dice.evaluate(self.rules, tables)

    def make_solver(self, variant: Variant) -> liars_dice.LiarsDiceSolver:
        """A solver of the CFR family that alternates between the players."""
        return liars_dice.LiarsDiceSolver(self.rules, variant)

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words, e.g. `player_1 with 2 5 after 1-3, 2-2`."""
        made = np.flatnonzero(self._bids_made(player, np.array([infoset]))).tolist()
        after = f"after {', '.join(map(self._bid, made))}" if made else "to start"
        roll = " ".join(map(str, self.rules.rolls[infoset % len(self._dice_in)]))
        return f"player_{player} with {roll} {after}"

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in words, e.g. `bid 2-5`, which is two fives, or `liar`."""
        del player, infoset  # an action means the same everywhere
        return f"bid {self._bid(action)}" if action < self.num_actions - 1 else "liar"

    def _bid(self, bid: int) -> str:
        return f"{self.rules.quantity[bid]}-{self.rules.face[bid] + 1}"

    def _codes(self, player: int, infosets: Int64Array) -> Int64Array:
        return liars_dice.public_codes(player, infosets // len(self._dice_in))

    def _bids_made(self, player: int, infosets: Int64Array) -> BoolArray:
        return liars_dice.bids_made(self.rules, self._codes(player, infosets))
