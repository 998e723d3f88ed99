"""Native large games that are small, for the tests that compare them with OpenSpiel."""

from functools import cache

import numpy as np
import pyspiel
import pytest

from algorithms.cfr import VARIANTS
from algorithms.games import large_game, load_game
from parity.large_games import tree_of_states


def dark_hex(rows, cols, version):
    return f"dark_hex(gameversion={version},num_rows={rows},num_cols={cols})"


def dice(count, sides, rule=""):
    return f"liars_dice(numdice={count},dice_sides={sides}{rule and f',bidding_rule={rule}'})"


def poker(
    *, hole=2, suits=2, ranks=5, board="2c3d4c5d6c", to_come=0, bets="fcpa", limit=False, stack=6
):
    """A poker endgame of a small deck, with blinds of one chip."""
    cards = len(board) // 2
    rounds = 1 + to_come
    first = "1 1"
    raises = f"raiseSize={' 2' * rounds},maxRaises={' 2' * rounds}," if limit else ""
    shown = f",boardCards={board}" if board else ""
    return (
        f"universal_poker(betting={'limit' if limit else 'nolimit'},bettingAbstraction={bets},"
        f"numPlayers=2,numRounds={rounds},blind=1 1,firstPlayer={first},stack={stack} {stack},"
        f"{raises}numSuits={suits},numRanks={ranks},numHoleCards={hole},"
        f"numBoardCards={cards} {to_come}{shown})"
    )


def slow(names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


HEX = [dark_hex(2, 2, version) for version in ("cdh", "adh")]
SMALL_HEX = [
    *HEX,
    *slow(dark_hex(*size, version) for size in ((2, 3), (3, 2)) for version in ("cdh", "adh")),
]
DICE = [dice(1, 3), dice(1, 4), dice(2, 2), dice(2, 2, "reset-quantity")]
SMALL_DICE = [*DICE, *slow([dice(1, 5), dice(1, 6), dice(2, 3), dice(1, 5, "reset-quantity")])]
POKER = [
    poker(),  # two cards in a hand and a board of five
    poker(hole=1, suits=2, ranks=6, bets="fchpa"),
    poker(board="4d", ranks=3, limit=True),
    poker(hole=1, board="", to_come=1, ranks=3, stack=4),  # a card to come
    poker(board="2c3d4c5d", to_come=1, ranks=5, stack=3),
]
SMALL_POKER = [
    *POKER,
    *slow(
        [
            poker(ranks=6, bets="fchpa"),
            poker(hole=1, board="", bets="fullgame", ranks=4, stack=5),
            poker(board="4d", ranks=3, to_come=1, stack=4),
        ]
    ),
]
ALTERNATING = [name for name, variant in VARIANTS.items() if variant.alternating]


@cache
def large(name):
    return large_game(pyspiel.load_game(name), name)


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
    rows = [np.full(count, -1) for count in large(name).num_infosets]
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
