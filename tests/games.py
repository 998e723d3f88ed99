"""OpenSpiel's games and policies, for the tests that hold ours against them."""

from fractions import Fraction
from functools import cache

import numpy as np
import pyspiel

import kuhn_bridge.openspiel  # noqa: F401  # registers python_kuhn_bridge
from algorithms.games import kuhn
from algorithms.games.openspiel import openspiel_tree
from algorithms.policies import Policy
from kuhn_bridge import Action
from tests.shared_strings import SHARED

LEGAL = kuhn().tree.legal
KUHN = "kuhn_poker"
KUHN3 = "kuhn_poker(players=3)"
LEDUC = "leduc_poker"
DICE = "liars_dice(numdice=1,dice_sides=4)"

# What moves cost against Kuhn's equilibrium of alpha = 1/6, in chips; all others cost nothing.
COSTS = {
    ("1", Action.BET): Fraction(1, 6),
    ("1p", Action.BET): Fraction(3, 8),
    ("2p", Action.CHECK_OR_CALL): Fraction(3, 11),
    ("0b", Action.CHECK_OR_CALL): Fraction(1),
    ("2b", Action.FOLD): Fraction(3),
    ("0pb", Action.CHECK_OR_CALL): Fraction(1),
    ("2pb", Action.FOLD): Fraction(3),
}

# Small games of every kind: 1 to 4 players, zero-sum or not, simultaneous, Python's and C++'s.
GAMES = (
    "kuhn",
    KUHN,
    KUHN3,
    "kuhn_poker(players=4)",
    LEDUC,
    "leduc_poker(suit_isomorphism=True)",
    "liars_dice(numdice=1,dice_sides=3)",
    "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
    "goofspiel(num_cards=3)",
    "goofspiel(imp_info=True,num_cards=3,players=3,points_order=descending)",
    "tiny_hanabi",
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=2,max_items=2,num_rounds=1,"
    "sheriff_penalty=1.0)",
    "dark_hex(board_size=2)",
    "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2)",
    "first_sealed_auction(max_value=4)",
    "matrix_rps",
    "matrix_pd",
    "matching_pennies_3p",
    "blotto(coins=4,fields=3)",
    "oshi_zumo(coins=3,horizon=3)",
    "coordinated_mp",
    "nim(pile_sizes=1;2;2)",
    "lewis_signaling",
    "trade_comm(num_items=2)",
    "misere(game=kuhn_poker())",
    "cached_tree(game=kuhn_poker())",
    "restricted_nash_response(game=kuhn_poker())",
    "turn_based_simultaneous_game(game=matrix_sh())",
    "universal_poker(numPlayers=2,numRounds=1,numSuits=1,numRanks=3,numHoleCards=1,blind=1 1)",
    "python_kuhn_poker",
    "python_kuhn_bridge",
    SHARED,
)


@cache
def game(name):
    return pyspiel.load_game(name)


@cache
def tree(name):
    return openspiel_tree(game(name))


def altered(game, **members):
    """A copy of one of our games, whose class has other members."""
    twin = object.__new__(type("Altered", (type(game),), members))
    computed = {"tree", "observations", "appends_seat"}
    vars(twin).update({name: value for name, value in vars(game).items() if name not in computed})
    return twin


def table(tree, policy):
    """A policy of OpenSpiel's, Python's or C++'s, as our `(I, A)`."""
    if hasattr(policy, "policy_for_key"):
        return np.stack([policy.policy_for_key(key) for key in tree.keys])
    rows = np.zeros(tree.legal.shape)
    for row, key in zip(rows, tree.keys, strict=True):
        for action, probability in policy.get_state_policy(key):
            row[action] = probability
    return rows


def apart(one, two):
    """The largest difference between two tables."""
    return np.abs(one - two).max()


def tabular(tree, policy):
    """Our `(I, A)` as C++'s TabularPolicy."""
    return pyspiel.TabularPolicy(
        {
            key: [(int(a), float(row[a])) for a in np.flatnonzero(legal)]
            for key, row, legal in zip(tree.keys, policy, tree.legal, strict=True)
        }
    )


def from_names(rows):
    """Kuhn's policy from `{"2pb": {"CHECK_OR_CALL": 1.0, "FOLD": 0.0}, ...}`."""
    return Policy.from_document({"format": "kuhn-bridge-policy", "version": 1, "policy": rows})
