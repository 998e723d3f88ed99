"""OpenSpiel's games and policies, for the tests that hold ours against them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyspiel

import kuhn_bridge.openspiel  # noqa: F401  # registers python_kuhn_bridge
from algorithms.games.openspiel import openspiel_tree

KUHN, KUHN3 = "kuhn_poker", "kuhn_poker(players=3)"
LEDUC, DICE = "leduc_poker", "liars_dice(numdice=1,dice_sides=4)"


@cache
def game(name):
    return pyspiel.load_game(name)


@cache
def tree(name):
    return openspiel_tree(game(name))


def table(tree, policy):
    """A policy of OpenSpiel's, Python's or C++'s, as our `(I, A)`."""
    if hasattr(policy, "policy_for_key"):
        return np.stack([policy.policy_for_key(key) for key in tree.keys])
    rows = np.zeros(tree.legal.shape)
    for row, key in zip(rows, tree.keys, strict=True):
        for action, probability in policy.get_state_policy(key):
            row[action] = probability
    return rows


def tabular(tree, policy):
    """Our `(I, A)` as C++'s TabularPolicy."""
    return pyspiel.TabularPolicy(
        {
            key: [(int(a), float(row[a])) for a in np.flatnonzero(legal)]
            for key, row, legal in zip(tree.keys, policy, tree.legal, strict=True)
        }
    )
