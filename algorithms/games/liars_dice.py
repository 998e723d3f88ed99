"""Liar's Dice of two players as a native game: OpenSpiel's tensors, actions and information sets.

The evaluation and the numbering of information sets are in `algorithms.exact.liars_dice`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from algorithms.exact.cfr import Variant
from algorithms.exact.liars_dice import (
    Rules,
    bids_made,
    evaluate,
    legal_actions,
    liars_dice_rules,
    num_infosets,
    public_codes,
)
from algorithms.exact.liars_dice_cfr import LiarsDiceSolver
from algorithms.exact.native import Tables
from algorithms.exact.values import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Int64Array
from kuhn_bridge.errors import HistoryError

SHORT_NAME = "liars_dice"
MAX_TABLE_BYTES = 4 * 2**30  # of a policy; two dice of five sides take 1.2 GiB, of six 33 GiB
_BATCH = 2**16  # information sets whose rows are filled in at a time


def find_liars_dice(game: Any) -> LiarsDice | None:
    """The native form of a `pyspiel.Game`, or `None` if it is another game or too large.

    It is too large if a policy would take more than 4 GiB.
    """
    if game.get_type().short_name != SHORT_NAME:
        return None
    settings = game.get_parameters()
    dice, sides = settings["numdice"], settings["dice_sides"]
    # Bids alone, before anything is allocated: at least one private state and one action each.
    if 2 * dice * sides > MAX_TABLE_BYTES.bit_length():
        return None
    found = LiarsDice(liars_dice_rules(dice, sides, settings["bidding_rule"]))
    return found if 4 * sum(found.num_infosets) * found.num_actions <= MAX_TABLE_BYTES else None


class LiarsDice:
    """Liar's Dice as a `NativeGame`: B bids by rank, then "liar"; n rolls, as sorted multisets.

    Observation, for each player's `dice` of `sides`:

    | index | meaning |
    |---|---|
    | 0, 1 | one-hot of the player |
    | then dice * sides | one-hot of each of its own dice, in ascending order |
    | then B | 1 for each bid made |
    | last | 0 (1 once "liar" is called, when nobody is to act) |
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.num_players = 2
        self.num_actions = len(rules.quantity) + 1
        self.num_infosets: tuple[int, ...] = (num_infosets(rules),) * 2
        dice_in = rules.rolls[:, :, None] == np.arange(1, len(rules.matches) + 1)
        self._dice_in = dice_in.reshape(len(rules.rolls), -1)  # (n, dice * sides)
        self._roll_of = {tuple(roll): x for x, roll in enumerate(rules.rolls.tolist())}
        self.observation_size = 2 + self._dice_in.shape[1] + self.num_actions

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(m, A)`."""
        return legal_actions(self.rules, self._codes(player, np.arange(start, stop)))

    def observations(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(m, observation_size)`."""
        infosets = np.arange(start, stop)
        dice_end = 2 + self._dice_in.shape[1]
        seen = np.zeros((len(infosets), self.observation_size), np.float32)
        seen[:, player] = 1
        seen[:, 2:dice_end] = self._dice_in[infosets % len(self._dice_in)]
        seen[:, dice_end:-1] = bids_made(self.rules, self._codes(player, infosets))
        return seen

    def uniform(self) -> Tables:
        """The policy that plays every legal action equally often."""
        tables = self._empty_tables()
        for player, start, stop in self._batches():
            legal = self.legal(player, start, stop)
            tables[player][start:stop] = legal / legal.sum(axis=1, keepdims=True)
        return tables

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator = np.random.default_rng(seed)
        tables = self._empty_tables()
        for player, start, stop in self._batches():
            legal = self.legal(player, start, stop)
            weights = np.zeros(legal.shape)
            weights[legal] = generator.exponential(size=np.count_nonzero(legal))
            tables[player][start:stop] = weights / weights.sum(axis=1, keepdims=True)
        return tables

    def measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and losses of a joint policy."""
        return evaluate(self.rules, tables)

    def make_solver(self, variant: Variant) -> LiarsDiceSolver:
        """A solver of the CFR family that alternates between the players."""
        return LiarsDiceSolver(self.rules, variant)

    def infoset_of(self, state: Any, player: int) -> int:
        """The information set of the player to act in an OpenSpiel state."""
        if state.current_player() != player:
            raise HistoryError(f"player {player} is not to act in {str(state)!r}")
        history, dice, bids = state.history(), self.rules.dice, self.num_actions - 1
        roll = sorted(side + 1 for side in history[player * dice : (player + 1) * dice])
        code: int = sum(1 << (bids - 1 - bid) for bid in history[2 * dice :])
        return (code >> 1) * len(self._roll_of) + self._roll_of[tuple(roll)]

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(m, observation_size)`: `(m,)`."""
        del player  # the number of bids determines the player
        dice_end = 2 + self._dice_in.shape[1]
        rolls = (observations[:, 2:dice_end] @ self._dice_in.T).argmax(axis=1)
        bits = 1 << np.arange(self.num_actions - 1)[::-1]
        codes = (observations[:, dice_end:-1] > 0) @ bits
        return np.asarray((codes >> 1) * len(self._dice_in) + rolls)

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words, e.g. `player_1 with 2 5 after 1-3, 2-2`."""
        made = bids_made(self.rules, self._codes(player, np.array([infoset])))[0]
        bids = ", ".join(self._bid(bid) for bid in np.flatnonzero(made).tolist())
        roll = " ".join(map(str, self.rules.rolls[infoset % len(self._roll_of)]))
        return f"player_{player} with {roll} {f'after {bids}' if bids else 'to start'}"

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in words, e.g. `bid 2-5`, which is two fives, or `liar`."""
        del player, infoset  # an action means the same everywhere
        return f"bid {self._bid(action)}" if action < self.num_actions - 1 else "liar"

    def _bid(self, bid: int) -> str:
        return f"{self.rules.quantity[bid]}-{self.rules.face[bid] + 1}"

    def _codes(self, player: int, infosets: Int64Array) -> Int64Array:
        return public_codes(player, infosets // len(self._roll_of))

    def _empty_tables(self) -> Tables:
        return tuple(np.empty((count, self.num_actions), np.float32) for count in self.num_infosets)

    def _batches(self) -> Iterator[tuple[int, int, int]]:
        """(player, start, stop) of batches of information sets."""
        for player, count in enumerate(self.num_infosets):
            for start in range(0, count, _BATCH):
                yield player, start, min(start + _BATCH, count)
