"""Native large games that are small, for the tests that compare them with OpenSpiel."""

from functools import cache

import numpy as np
import pyspiel
import pytest

from algorithms.cfr import VARIANTS
from algorithms.games import load_game
from algorithms.large_games import find_native
from parity.large_games import tree_of_states


def dark_hex(rows, cols, version):
    return f"dark_hex(gameversion={version},num_rows={rows},num_cols={cols})"


def dice(count, sides, rule=""):
    return f"liars_dice(numdice={count},dice_sides={sides}{rule and f',bidding_rule={rule}'})"


def slow(names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


HEX = [dark_hex(2, 2, version) for version in ("cdh", "adh")]
SMALL_HEX = [
    *HEX,
    *slow(dark_hex(*size, version) for size in ((2, 3), (3, 2)) for version in ("cdh", "adh")),
]
DICE = [dice(1, 3), dice(1, 4), dice(2, 2), dice(2, 2, "reset-quantity")]
SMALL_DICE = [*DICE, *slow([dice(1, 5), dice(1, 6), dice(2, 3), dice(1, 5, "reset-quantity")])]
ALTERNATING = [name for name, variant in VARIANTS.items() if variant.alternating]


@cache
def native(name):
    return find_native(pyspiel.load_game(name))


def pure(game, actions):
    """The tables that always play `actions`, one `(I_p,)` per player."""
    columns = np.arange(game.num_actions)
    return tuple((columns == chosen[:, None]).astype(np.float32) for chosen in actions)


POLICIES = {
    "uniform": lambda game: game.uniform(),
    "random": lambda game: game.random(3),
    # Most information sets have reach probability 0.
    "pure": lambda game: pure(game, game.measure(game.random(4)).best_responses),
}


@cache
def tree_of(name):
    """OpenSpiel's states, and each player's information sets as rows: one `(I_p,)` per player."""
    tree = tree_of_states(load_game(name))
    rows = [np.full(count, -1) for count in native(name).num_infosets]
    for row, (player, key) in enumerate(zip(tree.owner, tree.keys, strict=True)):
        rows[player][int(key)] = row
    return tree, rows


def on_tree(name, tables):
    """Tables as the tree's policy `(I, A)`, normalised in float64."""
    tree, rows = tree_of(name)
    policy = np.zeros(tree.legal.shape)
    for table, own in zip(tables, rows, strict=True):
        policy[own] = table / table.sum(axis=1, keepdims=True, dtype=np.float64)
    return policy
