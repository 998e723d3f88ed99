"""Native large games that are small, for the tests that compare them with OpenSpiel."""

from functools import cache

import numpy as np
import pyspiel
import pytest

from algorithms.exact.cfr import VARIANTS
from algorithms.games import load_game
from algorithms.games.liars_dice import find_liars_dice
from algorithms.games.phantom import find_phantom


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
# Games whose information sets are those of the tree: in abrupt hex they are own sequences too.
TREES = [dark_hex(2, 2, "adh"), *slow([dark_hex(2, 3, "adh")]), *SMALL_DICE]
ALTERNATING = [name for name, variant in VARIANTS.items() if variant.alternating]


@cache
def native(name):
    game = pyspiel.load_game(name)
    return find_phantom(game) or find_liars_dice(game)


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


def in_float64(table):
    return table / table.sum(axis=1, keepdims=True, dtype=np.float64)


@cache
def tree_rows(name):
    """Each player's information sets as rows of the tree: one `(I_p,)` per player."""
    game, tree = load_game(name), load_game(name).tree
    rows = [np.full(count, -1) for count in native(name).num_infosets]
    for row, player in enumerate(tree.owner.tolist()):
        infoset = native(name).infoset_of(game.state_of(row), player)
        rows[player][infoset] = row
    return rows


def on_tree(name, tables):
    """Tables as the tree's policy `(I, A)`, normalised in float64."""
    policy = np.zeros(load_game(name).tree.legal.shape)
    for table, rows in zip(tables, tree_rows(name), strict=True):
        policy[rows] = in_float64(table)
    return policy
