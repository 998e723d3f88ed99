"""What the page shows of a river endgame: its public tree, and a policy by hands.

The document's `hands` has, with D decisions, E actions of all of them, n hands and, if hands are
two cards of the full deck, 169 cells of a grid of starting hands (pairs on the diagonal, suited
hands above it, aces first):

    nodes      one object per decision: `player`, `label`, `actions` (words), and `children`, the
               decisions that follow; where the game ends -1 - the index of a rule
    rules      how the game ends: `fold`, whether nobody shows a hand, and `payoff`, player 0's
               chips if it wins, ties and loses (the first one after a fold)
    board      the cards on the board
    pot        the chips in the pot at the start
    labels     (n,) the hands, e.g. `A♥9♠`
    cards      (n, H) their cards as numbers: hands that share one are not dealt together
    weight     (2, n) how likely each player is dealt each hand, up to a factor
    order      (n,) greater for hands that win a showdown, equal for those that tie
    strength   (n,) the share of the other hands that a hand beats; ties count half
    cell       (n,) the cell of each hand; null if there is no grid
    cells      (169,) the cells' names, e.g. `AKs`

and the `hands` of a policy have, with a share of 1 / 255 as the unit,

    probability   (E, n) of each action of each decision, by hand
    grid          (E, 169) its mean over the hands of a cell that arrive at the decision
    arriving      (D, 169) the share of a cell's hands that arrive there by the player's own
                  actions; a hand counts by its weight, of which the largest is 1
    losses        (D, n) chips per hand, float32
    cost          (E, n) what an action costs, if the player plays best afterwards and the opponent
                  plays the policy, in chips, float32; NaN where the opponent never arrives
"""

from typing import Any

import numpy as np

from algorithms.games import Game
from algorithms.games.game import per_player
from algorithms.large_games.poker import PokerEndgame
from algorithms.policies import Policy
from algorithms.public_tree import FOLD, edges_of
from algorithms.reports.arrays import floats, integers
from algorithms.support.arrays import Float64Array, Int64Array

MAX_NUMBERS = 1_000_000  # probabilities of a policy: the page takes about 7 bytes for each
RANKS = "AKQJT98765432"
NUM_CELLS = len(RANKS) ** 2
UNIT = 255


def hands_document(game: Game) -> dict[str, Any] | None:
    """The public tree and the hands of a river endgame; None for other games, and large ones."""
    if not isinstance(game, PokerEndgame) or not is_shown(game):
        return None
    tree = game.public_tree
    nodes = []
    for node in range(len(tree.player)):
        edges = edges_of(tree, node)
        actions = tree.action[edges.start : edges.stop].tolist()
        nodes.append(
            {
                "player": int(tree.player[node]),
                "label": game.public_label(node),
                "actions": [game.public_action_label(node, action) for action in actions],
                "children": tree.target[edges.start : edges.stop].tolist(),
            }
        )
    count = int(tree.num_hands[0])
    rules = [
        {"fold": bool(kind == FOLD), "payoff": payoff.tolist()}
        for kind, payoff in zip(tree.rule, tree.payoff, strict=True)
    ]
    return {
        "nodes": nodes,
        "rules": rules,
        "board": [game.card_label(card) for card in game.boards[0].cards],
        "pot": game.pot,
        "labels": [game.hand_label(0, 0, hand) for hand in range(count)],
        "cards": integers(tree.cards[0, :count].reshape(-1)),
        "weight": floats(tree.weight[:, :count].reshape(-1) / tree.weight.max()),
        "order": integers(game.boards[0].strength),
        "strength": floats(_beaten(game)),
        "cell": integers(_cells(game)) if _has_grid(game) else None,
        "cells": _cell_names() if _has_grid(game) else [],
    }


def hands_tables(game: Game, policy: Policy) -> dict[str, Any] | None:
    """What a policy does with each hand, where there is a `hands_document`."""
    if not isinstance(game, PokerEndgame) or not is_shown(game):
        return None
    tree = game.public_tree
    tables = per_player(policy.table)
    both = tables[0], tables[1]
    losses_by_player = game.losses(both)
    reach_by_player = game.own_reaches(tables)
    count = int(tree.num_hands[0])
    has_grid = _has_grid(game)
    cells = _cells(game) if has_grid else np.zeros(count, np.int64)
    cell_sizes = _sums_by_cell(cells, np.ones(count))

    probability = np.empty((len(tree.action), count))
    grid = np.zeros((len(tree.action), NUM_CELLS))
    arriving = np.zeros((len(tree.player), NUM_CELLS))
    losses = np.empty((len(tree.player), count))
    for node, player in enumerate(tree.player.tolist()):
        first = tree.first_infoset[node]
        infosets = slice(first, first + count)
        edges = edges_of(tree, node)

        # What each hand plays, (n, actions).
        actions = tree.action[edges.start : edges.stop]
        rows = tables[player][infosets][:, actions].astype(np.float64)
        rows /= rows.sum(axis=1, keepdims=True)
        probability[edges.start : edges.stop] = rows.T
        losses[node] = losses_by_player[player][infosets]

        # How often each hand arrives, (n,), and what those of each cell play on average, (169,).
        weight = tree.weight[player, :count] / tree.weight[player].max()
        arrives = reach_by_player[player][infosets] * weight
        arrives_in_cell = _sums_by_cell(cells, arrives)
        arriving[node] = arrives_in_cell / np.maximum(cell_sizes, 1)
        is_reached = arrives_in_cell > 0
        for k, edge in enumerate(edges):
            played = _sums_by_cell(cells, arrives * rows[:, k])
            grid[edge, is_reached] = played[is_reached] / arrives_in_cell[is_reached]
    return {
        "probability": _shares(probability),
        "grid": _shares(grid) if has_grid else None,
        "arriving": _shares(arriving) if has_grid else None,
        "losses": floats(losses),
        "cost": floats(game.action_costs(both)),
    }


def _sums_by_cell(cells: Int64Array, numbers: Float64Array) -> Float64Array:
    """The sums of the numbers of all hands of a cell, `(n,)` to `(169,)`."""
    return np.asarray(np.bincount(cells, numbers, minlength=NUM_CELLS))


def is_shown(game: PokerEndgame) -> bool:
    """Whether a page can show the game: there is one board, and few enough numbers."""
    numbers = len(game.public_tree.action) * len(game.boards[0].hands)
    return len(game.boards) == 1 and numbers <= MAX_NUMBERS


def _has_grid(game: PokerEndgame) -> bool:
    """Whether hands are two cards of the full deck."""
    return game.cards.hole == 2 and game.deck_size == 52


def _cells(game: PokerEndgame) -> Int64Array:
    """The cell of each hand: row and column of its ranks, aces first: `(n,)`.

    A♥K♥ is in row 0 and column 1, A♥K♠ in row 1 and column 0.
    """
    cards = game.public_tree.cards[0, : game.public_tree.num_hands[0]].astype(np.int64)
    places = len(RANKS) - 1 - cards // 4  # (n, 2) of the lower and the higher card
    suited = cards[:, 0] % 4 == cards[:, 1] % 4
    high = places.min(axis=1)
    low = places.max(axis=1)
    row = np.where(suited, high, low)
    column = np.where(suited, low, high)
    return np.asarray(len(RANKS) * row + column)


def _cell_names() -> list[str]:
    names = []
    for row in range(len(RANKS)):
        for column in range(len(RANKS)):
            high = RANKS[min(row, column)]
            low = RANKS[max(row, column)]
            suffix = "" if row == column else "s" if column > row else "o"
            names.append(high + low + suffix)
    return names


def _beaten(game: PokerEndgame) -> Float64Array:
    """The share of all hands that each hand beats; ties count half: `(n,)`."""
    strength = game.boards[0].strength
    ordered = np.sort(strength)
    below = np.searchsorted(ordered, strength, side="left")
    until = np.searchsorted(ordered, strength, side="right")
    return np.asarray((below + until) / (2 * len(strength)))


def _shares(values: Float64Array) -> dict[str, Any]:
    """Shares as numbers from 0 to `UNIT`."""
    return integers(np.rint(UNIT * values).astype(np.int64))
