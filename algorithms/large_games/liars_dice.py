"""Liar's Dice between two players, measured exactly by its public states, without a game tree.

Bids are public and dice are private: a hand of `algorithms.public_tree` is a player's roll, as a
sorted multiset. The equations are there; here is the public tree.

**Public states.** Each bid is higher than the one before, so a sequence of bids is a set: a *code*
of B bits for B bids, bid k at bit B - 1 - k. The next bid of a code is one of the zeros below its
lowest one; player 0 is to act if the number of ones is even. Counting codes up from 0 visits public
states depth first, so a code is the number of its node. Of the codes 2i and 2i + 1 one belongs to
each player: i is its *index*, and information set i * n + x is index i with roll x of n.

**Payoffs.** A hand ends when a player calls "liar". The bid (quantity, face) holds if at least
`quantity` of all dice show the face or the highest side, which is wild. So the result depends on
each roll only through the number of its dice that match: its strength in the order of that face,
and the caller wins if both strengths together are below the quantity.

Example: one die with sides 1 and 2, and player 0 opens with 2-2 (both dice are 2) with probability
0.2 when it holds a 1 and 0.6 when it holds a 2. Its reach is (0.1, 0.3). The value of calling
"liar" for player 1 is +0.4 with a 1, since the bid fails, and 0.1 - 0.3 = -0.2 with a 2, since it
fails against 0.1 of player 0's rolls only. Player 1's reach is (0.5, 0.5): if it always calls, the
hands that begin this way add 0.5 * 0.4 - 0.5 * 0.2 = 0.1 to its value.
"""

from itertools import combinations_with_replacement
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from algorithms.games.game import PyspielGame
from algorithms.large_games.private_hands import PrivateHandsGame
from algorithms.public_tree import COUNT, PublicTree
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int64Array

MAX_TABLE_BYTES = 4 * 2**30  # of a policy; two dice of five sides take 1.2 GiB, of six 33 GiB


class LiarsDiceRules(NamedTuple):
    """The game: B bids, then action B, "liar"; n rolls."""

    dice: int  # per player
    quantity: Int64Array  # (B,)
    face: Int64Array  # (B,) 0 .. sides - 1
    rolls: Int64Array  # (n, dice) the dice of each roll, 1 .. sides, in ascending order
    chance: Float64Array  # (n,) the probability of each roll
    matches: Int64Array  # (sides, n) how many dice of a roll show the face or are wild


def liars_dice_rules(dice: int, sides: int, bidding_rule: str) -> LiarsDiceRules:
    """The rules for `dice` per player; bids are numbered by rank, as OpenSpiel numbers them."""
    bids = np.arange(2 * dice * sides)
    if bidding_rule == "reset-face":  # with two dice of six sides, 2-1 follows 1-6
        quantity = bids // sides + 1
        face = bids % sides
    else:  # "reset-quantity": 1-2 follows 4-1
        quantity = bids % (2 * dice) + 1
        face = bids // (2 * dice)
    rolls = list(combinations_with_replacement(range(1, sides + 1), dice))
    orders = [
        factorial(dice) // prod(factorial(roll.count(side)) for side in set(roll)) for roll in rolls
    ]
    dealt = np.array(rolls)
    faces = np.arange(1, sides + 1)[:, None, None]
    matches = np.count_nonzero((dealt == faces) | (dealt == sides), axis=2)
    return LiarsDiceRules(
        dice=dice,
        quantity=quantity,
        face=face,
        rolls=dealt,
        chance=np.array(orders) / sides**dice,
        matches=matches,
    )


def table_shape(rules: LiarsDiceRules) -> tuple[int, int]:
    """The information sets of each player, 2^(B - 1) * n, and the actions, B + 1."""
    return len(rules.chance) << (len(rules.quantity) - 1), len(rules.quantity) + 1


def public_codes(player: int, indices: Int64Array) -> Int64Array:
    """The codes of a player's public states `(m,)` given by their indices: `(m,)`."""
    return 2 * indices + ((np.bitwise_count(indices) + player) & 1)


def bids_made(rules: LiarsDiceRules, codes: Int64Array) -> BoolArray:
    """Which bids have been made in public states `(m,)`: `(m, B)`."""
    return (codes[:, None] >> np.arange(len(rules.quantity))[::-1]) & 1 > 0


def legal_actions(rules: LiarsDiceRules, codes: Int64Array) -> BoolArray:
    """Which actions are legal in public states `(m,)`: `(m, B + 1)`."""
    bids = len(rules.quantity)
    legal = np.arange(bids + 1) >= bids - _bids_left(rules, codes)[:, None]
    legal[:, bids] = codes > 0
    return legal


def _bids_left(rules: LiarsDiceRules, codes: Int64Array) -> Int64Array:
    """How many bids are left in public states `(m,)`, the zeros below the lowest one: `(m,)`."""
    zeros = np.bitwise_count((codes & -codes) - 1).astype(np.int64)
    return np.asarray(np.where(codes > 0, zeros, len(rules.quantity)))


def liars_dice_tree(rules: LiarsDiceRules) -> PublicTree:
    """The public tree: 2^B nodes, each with "liar" and then the bids from the highest down."""
    bids = len(rules.quantity)
    rolls = len(rules.chance)
    codes = np.arange(1 << bids)
    bids_left = _bids_left(rules, codes)
    depth = np.bitwise_count(codes).astype(np.int16)
    calls = (codes > 0).astype(np.int64)  # edges "liar" of each node
    first_edge = np.concatenate([[0], np.cumsum(bids_left + calls)])

    # By edge: its node and its place among the edges of the node.
    node = np.repeat(codes, bids_left + calls)
    place_at_node = np.arange(len(node)) - first_edge[node]
    bit = place_at_node - calls[node]  # of the bid in the next code; -1 for "liar"
    is_call = bit < 0
    last_bid = bids - 1 - bids_left
    caller = depth & 1
    rule = 2 * last_bid + caller  # by node
    next_code = node | (1 << np.maximum(bit, 0))
    target = np.where(is_call, -1 - rule[node], next_code)

    # The parent of a code lacks its lowest one.
    parent = codes & (codes - 1)
    parent_edge = first_edge[parent] + calls[parent] + bids_left
    parent_edge[0] = -1

    # Rules 2k and 2k + 1: player 0 and player 1 call bid k. The caller wins if the bid fails.
    caller_wins = np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])  # in player 0's chips
    return PublicTree(
        player=(depth & 1).astype(np.int8),
        depth=depth,
        level=np.stack([(depth + 1) // 2, depth // 2], axis=1),
        board=np.zeros(len(codes), np.int32),
        first_edge=first_edge.astype(np.int32),
        first_infoset=(codes >> 1) * rolls,
        parent_edge=parent_edge.astype(np.int32),
        action=np.where(is_call, bids, bids - 1 - bit).astype(np.int32),
        target=target.astype(np.int32),
        num_hands=np.array([rolls], np.int32),
        cards=np.zeros((1, rolls, 0), np.int32),  # rolls share nothing
        old_hand=np.arange(rolls, dtype=np.int32)[None],
        weight=np.stack([rules.chance, rules.chance]),
        rule=np.full(2 * bids, COUNT, np.int8),
        rule_order=np.repeat(rules.face, 2).astype(np.int32),
        rule_board=np.zeros(2 * bids, np.int32),
        rule_quantity=np.repeat(rules.quantity, 2).astype(np.int32),
        payoff=np.tile(caller_wins, (bids, 1)),
        strength=rules.matches.astype(np.int32),
        by_strength=np.argsort(rules.matches, axis=1, kind="stable").astype(np.int32),
    )


def find_liars_dice(game: PyspielGame, name: str) -> "LiarsDice | None":
    """Liar's Dice of two players, or None for other games and if its policies are too large."""
    if game.get_type().short_name != "liars_dice" or game.num_players() != 2:
        return None
    settings = game.get_parameters()
    dice = settings["numdice"]
    sides = settings["dice_sides"]
    # Bids alone, before anything is allocated: at least one roll and one action each.
    if 2 * dice * sides > MAX_TABLE_BYTES.bit_length():
        return None
    rules = liars_dice_rules(dice, sides, settings["bidding_rule"])
    infosets, actions = table_shape(rules)
    if 2 * 4 * infosets * actions > MAX_TABLE_BYTES:
        return None
    return LiarsDice(rules, name=name, pyspiel_game=game)


class LiarsDice(PrivateHandsGame):
    """Liar's Dice: B bids by rank, then "liar"; n rolls, as sorted multisets.

    Observation, for each player's `dice` of `sides`:

    | index | meaning |
    |---|---|
    | 0, 1 | one-hot of the player |
    | then dice * sides | one-hot of each of its own dice, in ascending order |
    | then B | 1 for each bid made |
    | last | 0 (1 once "liar" is called, when nobody is to act) |
    """

    def __init__(self, rules: LiarsDiceRules, *, name: str, pyspiel_game: PyspielGame) -> None:
        self.rules = rules
        dice_in = rules.rolls[:, :, None] == np.arange(1, len(rules.matches) + 1)
        self._dice_in = dice_in.reshape(len(rules.rolls), -1)  # (n, dice * sides)
        self._dice_end = 2 + self._dice_in.shape[1]
        _, num_actions = table_shape(rules)
        super().__init__(
            liars_dice_tree(rules),
            name=name,
            num_actions=num_actions,
            observation_size=self._dice_end + num_actions,
            pyspiel_game=pyspiel_game,
        )

    def legal_at(self, player: int, infosets: Int64Array) -> BoolArray:
        """Which actions are legal at information sets `(m,)`: `(m, A)`."""
        return legal_actions(self.rules, self._codes(player, infosets))

    def tensors_at(self, player: int, infosets: Int64Array) -> Float32Array:
        """OpenSpiel's information state tensors of information sets `(m,)`: `(m, size)`."""
        seen = np.zeros((len(infosets), self.observation_size), np.float32)
        seen[:, player] = 1
        seen[:, 2 : self._dice_end] = self._dice_in[infosets % len(self._dice_in)]
        seen[:, self._dice_end : -1] = bids_made(self.rules, self._codes(player, infosets))
        return seen

    def find_infosets(self, player: int, tensors: Float32Array) -> Int64Array:
        """The information sets that have these tensors, `(m, observation_size)`: `(m,)`."""
        del player  # the number of bids determines the player
        rolls = (tensors[:, 2 : self._dice_end] @ self._dice_in.T).argmax(axis=1)
        bits = 1 << np.arange(self.num_actions - 1)[::-1]
        codes = (tensors[:, self._dice_end : -1] > 0) @ bits
        return np.asarray((codes >> 1) * len(self._dice_in) + rolls)

    def hand_label(self, player: int, node: int, hand: int) -> str:
        """A roll, e.g. `2 5`."""
        del player, node
        return " ".join(map(str, self.rules.rolls[hand]))

    def public_label(self, node: int) -> str:
        """The bids so far, e.g. `after 1-3, 2-2`."""
        made = np.flatnonzero(bids_made(self.rules, np.array([node]))[0]).tolist()
        return f"after {', '.join(map(self._bid, made))}" if made else "to start"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action in words, e.g. `bid 2-5`, which is two fives, or `liar`."""
        return f"bid {self._bid(action)}" if action < self.num_actions - 1 else "liar"

    def _bid(self, bid: int) -> str:
        return f"{self.rules.quantity[bid]}-{self.rules.face[bid] + 1}"

    def _codes(self, player: int, infosets: Int64Array) -> Int64Array:
        return public_codes(player, infosets // len(self._dice_in))
