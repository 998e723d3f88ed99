"""Shared by checks: random policies, OpenSpiel's measures of them, and the same table twice."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms.expected_game_score import policy_value

from algorithms.games import KUHN, Game
from algorithms.policies import Policy
from algorithms.policies.openspiel_policies import to_pyspiel_tabular
from algorithms.support.arrays import Float64Array
from algorithms.tree import Tree
from parity.registry import CheckSettings, Tally

KUHN_POKER = "kuhn_poker"
EXACT = 1e-12
EXACT_PER_CHIP = 1e-10  # times the largest return, in other games than Kuhn
ITERATES = 1e-9  # between policies of two solvers
FEW_NODES = 20_000  # OpenSpiel's Python takes seconds above that


def random_policies(settings: CheckSettings) -> Iterator[tuple[str, Policy]]:
    """The same policies every time: 300 of Kuhn, 5 of another game, fewer if large or quick."""
    game = settings.game
    if game.name == KUHN:
        few = 12
        many = 300
    else:
        few = 1
        many = 5
    is_large = game.tree.num_nodes > FEW_NODES
    for seed in range(few if settings.quick or is_large else many):
        yield f"random policy {seed}", Policy.random(game, seed)


def tolerance(game: Game) -> float:
    """How far numbers of chips per hand may differ."""
    if game.name == KUHN:
        return EXACT
    largest_return = float(np.abs(game.tree.returns).max())
    return EXACT_PER_CHIP * max(1.0, largest_return)


def openspiel_values(policy: Policy) -> list[float]:
    """Every player's value, as OpenSpiel computes it on its own states."""
    theirs = policy.to_openspiel()
    root = theirs.game.new_initial_state()
    policies = [theirs] * policy.game.num_players
    return [float(value) for value in policy_value(root, policies)]


def openspiel_nash_conv(policy: Policy) -> float:
    """NashConv in C++; of Kuhn on `kuhn_poker`."""
    game = policy.game.pyspiel_game or pyspiel.load_game(KUHN_POKER)
    return float(pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table)))


def compare_tables(tally: Tally, place: str, tree: Tree, ours: Float64Array, theirs: Any) -> None:
    """Require the same probabilities of a table `(I, A)` and of an OpenSpiel policy."""
    is_cpp = isinstance(theirs, pyspiel.Policy)
    # OpenSpiel's C++ policies do not list their information states.
    their_keys = tree.keys if is_cpp else theirs.state_lookup
    tally.same(place, "has the information states {}", set(tree.keys), set(their_keys))
    for infoset, key in enumerate(tree.keys):
        if is_cpp:
            probabilities = dict(theirs.get_state_policy(key))
        else:
            probabilities = theirs.policy_for_key(key)
        for action in np.flatnonzero(tree.legal[infoset]).tolist():
            tally.close(
                f"{place}, {key!r}",
                f"plays {action} with probability {{}}",
                ours[infoset, action],
                probabilities[action],
                ITERATES,
            )
