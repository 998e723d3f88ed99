"""Regrets from sampled hands, with a critic: how self-play learns a policy on a game's tree.

Hands are played with a behaviour policy b that explores; what is learned is the policy sigma. For
player p, a node h where somebody acts, h a the node after action a, and a hand that goes on from h
with the action c and is worth u_p(h c), as estimated from its rest:

    q_p(h, a)  =  V_p(h a) + [a = c] (u_p(h c) - V_p(h c)) / b(c|h)           estimate for an action
    u_p(h)     =  sum over a of sigma(a|h) q_p(h, a)                          estimate for the node
    V_p(h c)  +=  rate * (u_p(h c) - V_p(h c))                                critic

u_p of the end of a hand is p's return. The critic V is only a baseline: whatever it says, the
expectation of q_p(h, a) is p's value if a is played at h and sigma from then on, because V cancels
out. But the better it is, the less noise has q, so that rare actions learn too. It sees all cards,
as a critic may while a policy is trained; sigma sees what its owner sees.

An information set I of player p gets the regrets of the hands that arrive there, with weights that
make their expectation counterfactual (p plays to I, chance and the others play as they do):

    r(I, a)  =  sum over these hands of  w (q_p(h, a) - u_p(h))
    w        =  1 / (p's own b before h)  *  (the others' sigma before h / the others' b before h)

With these regrets in place of exact ones, the policy is that of predictive CFR+ (Farina, Kroer and
Sandholm 2021; see `algorithms.cfr`). Players take turns. When it is p's turn, r holds the regrets
of all hands since p's last turn:

    R(I, a)      = max(R(I, a) + r(I, a), 0)
    sigma(a|I)   ~ max(R(I, a) + r(I, a), 0)               uniform where no action has more than 0

One hand at a time is outcome sampling (Lanctot et al. 2009); baselines for it are those of Schmid
et al. 2019 (VR-MCCFR) and Davis et al. 2020; regret matching on advantages that a critic has
learned from self-play is ARMAC (Gruslys et al. 2020).

Example: in Kuhn poker player 0 holds Q, bets with b = 0.15, and is called by K. The hand is three
nodes long, and its two decisions have

    h = deal QK       V_0(h, check) = -0.4   V_0(h, bet) = -1.0   sigma = 1, 0      w = 1
    h = QK, bet       V_0(h, call)  = -2     V_0(h, fold) = 1     sigma = 1, 0      w = 0 / 0.15

Going back from the end, u = -2 at the second node, which equals V_0(h, call): no surprise. So
u_0(QK, bet) = -2, and betting there was worse than the critic thought: q_0(bet) = -1 - 1 / 0.15.
"""

from typing import NamedTuple, Protocol

import numpy as np

from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
)
from algorithms.tree import Tree

# The critic's rate falls to this value as 1 / visits does, then stays: policies change.
CRITIC_RATE = 0.02
# Behaviour policies that explore less than this are taken for 0.001: it bounds all weights.
LEAST_PROBABILITY = 1e-3
# The length of a hand whose first decisions were not seen: nothing is learned from it.
BEGUN_UNSEEN = -1


class Nodes(Protocol):
    """Where players decide: a `Tree`, or what stands for one."""

    @property
    def num_players(self) -> int:
        """The number of players."""

    @property
    def player(self) -> Int8Array:
        """Who acts at each node `(N,)`."""

    @property
    def infoset(self) -> Int32Array:
        """The information set of each node `(N,)`."""

    @property
    def first_child(self) -> Int32Array:
        """The critic's place for the first choice at each node; the others follow it."""

    @property
    def first_choice(self) -> Int32Array:
        """The first choice at each information set `(I + 1,)`."""

    @property
    def owner(self) -> Int8Array:
        """The player of each information set `(I,)`."""


class Decisions(NamedTuple):
    """T decisions in each of n hands, as they were played one after another."""

    nodes: Int32Array  # (T, n) where a player acted
    choices: Int32Array  # (T, n) which choice it made
    probabilities: Float64Array  # (T, n) of this choice in the behaviour policy
    ended: BoolArray  # (T, n) whether the hand ended after it
    returns: Float32Array  # (T, n, P) all players' returns if it ended


class Regrets(NamedTuple):
    """A policy and the regrets that determine it, all by choice: `(C,)`."""

    policy: Float64Array  # sigma
    sums: Float64Array  # R
    latest: Float64Array  # r, of the hands since the player's last turn


class UnfinishedHands(NamedTuple):
    """The decisions of n hands that are not over yet, at most D per hand."""

    nodes: Int32Array  # (n, D)
    choices: Int32Array  # (n, D)
    probabilities: Float64Array  # (n, D)
    lengths: Int64Array  # (n,) how many decisions are stored, or BEGUN_UNSEEN


class Critic(NamedTuple):
    """What every node is worth to each player, as far as it is known."""

    values: Float64Array  # (N, P)
    visits: Int64Array  # (N,)


def new_regrets(tree: Tree) -> Regrets:
    """No regrets, and uniform play."""
    return Regrets(
        policy=tree.uniform()[tree.legal],
        sums=np.zeros(tree.num_choices),
        latest=np.zeros(tree.num_choices),
    )


def unseen_hands(count: int, longest: int) -> UnfinishedHands:
    """Storage for hands of at most `longest` decisions, some of which may have been played."""
    shape = (count, longest)
    return UnfinishedHands(
        nodes=np.zeros(shape, np.int32),
        choices=np.zeros(shape, np.int32),
        probabilities=np.zeros(shape),
        lengths=np.full(count, BEGUN_UNSEEN, np.int64),
    )


def new_critic(tree: Tree) -> Critic:
    """A critic that has seen nothing and says 0."""
    return Critic(
        values=np.zeros((tree.num_nodes, tree.num_players)),
        visits=np.zeros(tree.num_nodes, np.int64),
    )


def longest_hand(tree: Tree) -> int:
    """The largest number of decisions between the root and an end."""
    decisions = np.zeros(tree.num_nodes, np.int64)  # before each node
    num_children = np.diff(tree.first_child)
    parent = np.repeat(np.arange(tree.num_nodes), num_children)  # of nodes 1 to N - 1
    depths = tree.depths()
    level_ends = np.cumsum(np.bincount(depths))
    for start, stop in zip(level_ends[:-1].tolist(), level_ends[1:].tolist(), strict=True):
        above = parent[start - 1 : stop - 1]
        decisions[start:stop] = decisions[above] + (tree.player[above] >= 0)
    return int(decisions.max())


def add_hands(
    tree: Nodes,
    regrets: Regrets,
    decisions: Decisions,
    unfinished: UnfinishedHands,
    critic: Critic,
) -> None:
    """Add the latest regrets of all hands that end in a rollout; let the critic learn from them.

    Hands that do not end are stored in `unfinished`. (This function and `match_regrets` have
    compiled twins in `algorithms.compiled.sampled_regrets`.)
    """
    steps, hands = decisions.nodes.shape
    for hand in range(hands):
        for step in range(steps):
            length = unfinished.lengths[hand]
            if length == unfinished.nodes.shape[1]:  # more decisions than a hand has: not one hand
                length = BEGUN_UNSEEN
                unfinished.lengths[hand] = length
            if length == BEGUN_UNSEEN:
                if decisions.ended[step, hand]:
                    unfinished.lengths[hand] = 0
                continue
            unfinished.nodes[hand, length] = decisions.nodes[step, hand]
            unfinished.choices[hand, length] = decisions.choices[step, hand]
            probability = max(decisions.probabilities[step, hand], LEAST_PROBABILITY)
            unfinished.probabilities[hand, length] = probability
            unfinished.lengths[hand] = length + 1
            if decisions.ended[step, hand]:
                returns = decisions.returns[step, hand].astype(np.float64)
                hand_so_far = _hand(unfinished, hand)
                _add_hand(tree, regrets, hand_so_far, returns, critic)
                unfinished.lengths[hand] = 0


class _Hand(NamedTuple):
    """The k decisions of one hand."""

    nodes: Int32Array  # (k,)
    choices: Int32Array  # (k,)
    probabilities: Float64Array  # (k,)


def _hand(unfinished: UnfinishedHands, hand: int) -> _Hand:
    length = int(unfinished.lengths[hand])
    return _Hand(
        nodes=unfinished.nodes[hand, :length],
        choices=unfinished.choices[hand, :length],
        probabilities=unfinished.probabilities[hand, :length],
    )


def _add_hand(
    tree: Nodes, regrets: Regrets, hand: _Hand, returns: Float64Array, critic: Critic
) -> None:
    """Add the regrets of one hand with these returns `(P,)`."""
    policy = regrets.policy
    nodes, choices, probabilities = hand
    length = len(nodes)

    # w of each decision, from the first to the last.
    weights = np.zeros(length)
    weight_of_player = np.ones(tree.num_players)
    for step in range(length):
        player = tree.player[nodes[step]]
        weights[step] = weight_of_player[player]
        for other in range(tree.num_players):
            if other == player:
                weight_of_player[other] /= probabilities[step]
            else:
                weight_of_player[other] *= policy[choices[step]] / probabilities[step]

    # q and u, from the last decision to the first.
    estimate = returns.copy()  # u of the node that the decision led to: (P,)
    for step in range(length - 1, -1, -1):
        node = nodes[step]
        infoset = tree.infoset[node]
        start = tree.first_choice[infoset]
        stop = tree.first_choice[infoset + 1]
        first_child = tree.first_child[node]
        chosen = choices[step] - start
        child = first_child + chosen
        player = tree.player[node]
        critic.visits[child] += 1
        rate = max(1.0 / critic.visits[child], CRITIC_RATE)
        for seat in range(tree.num_players):
            surprise = estimate[seat] - critic.values[child, seat]
            values = critic.values[first_child : first_child + stop - start, seat].copy()
            values[chosen] += surprise / probabilities[step]  # q of each action
            mean = float(policy[start:stop] @ values)  # u of the node
            if seat == player:
                regrets.latest[start:stop] += weights[step] * (values - mean)
            critic.values[child, seat] += rate * surprise
            estimate[seat] = mean


def match_regrets(tree: Nodes, player: int, regrets: Regrets) -> None:
    """Take one player's turn: add its latest regrets, predict that they repeat, and match."""
    for infoset in np.flatnonzero(tree.owner == player):
        choices = slice(tree.first_choice[infoset], tree.first_choice[infoset + 1])
        latest = regrets.latest[choices].copy()
        regrets.sums[choices] = np.maximum(regrets.sums[choices] + latest, 0)
        predicted = np.maximum(regrets.sums[choices] + latest, 0)
        total = predicted.sum()
        if total > 0:
            regrets.policy[choices] = predicted / total
        else:
            regrets.policy[choices] = 1 / len(predicted)
        regrets.latest[choices] = 0
