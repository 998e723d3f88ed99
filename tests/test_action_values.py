"""Action values against their definitions: by enumeration, in closed form, and as losses."""

from fractions import Fraction

import numpy as np
import pytest

from algorithms.exact.kuhn import nash
from algorithms.exact.values import action_values, evaluate_policy
from algorithms.games import kuhn, load_game
from tests.games import COSTS, GAMES, KUHN3


@pytest.mark.parametrize("name", GAMES)
def test_losses_reach_and_best_actions_are_those_of_best_responses(name):
    tree = load_game(name).tree
    policy = tree.random(4)
    found, measured = action_values(tree, policy), evaluate_policy(tree, policy)
    for player, gain in enumerate(measured.gains):
        assert found.losses[tree.owner == player].sum() == pytest.approx(gain, abs=1e-10)
    for loss in measured.losses:
        assert found.losses[loss.infoset] == pytest.approx(loss.lost, abs=1e-12)
        assert found.reach[loss.infoset] == pytest.approx(loss.reach, abs=1e-12)
    best = measured.best_responses[tree.slots[:, 0]] == tree.slots[:, 3]
    assert (found.costs[best] == 0).all()
    assert (found.costs >= 0).all()


@pytest.mark.parametrize("name", ["kuhn", KUHN3, "liars_dice(numdice=1,dice_sides=3)"])
def test_values_are_what_playing_so_wins(name):
    """Each action forced, with the owner's earlier moves; all terminals summed one by one."""
    tree = load_game(name).tree
    policy = tree.random(7)
    found = action_values(tree, policy)
    answers = evaluate_policy(tree, policy).best_responses
    parents = np.repeat(np.arange(tree.num_nodes), np.diff(tree.first_child))
    for slot, (infoset, owner, _, action) in enumerate(tree.slots.tolist()):
        forced = policy.copy()
        own = tree.owner == owner
        forced[own] = np.eye(policy.shape[1])[answers[own]]
        towards = slot + 1
        while towards:
            where, _, towards_before, move = tree.slots[towards - 1].tolist()
            forced[where] = np.eye(policy.shape[1])[move]
            towards = towards_before
        won = reached = 0.0
        members = set(tree.members[slice(*tree.first_member[infoset : infoset + 2])].tolist())
        for end in tree.terminals.tolist():
            node, probability, passed = end, 1.0, False
            while node:
                above = int(parents[node - 1])
                row = int(tree.infoset[above])
                step = tree.chance_probability[node] if row < 0 else forced[row, tree.action[node]]
                probability *= step
                passed |= above in members and tree.action[node] == action
                node = above
            if passed:
                won += probability * tree.returns[owner, end]
                reached += probability
        assert found.values[slot] == pytest.approx(won / reached, abs=1e-12), (name, slot)


def test_costs_against_an_equilibrium_of_kuhn_are_exact():
    tree = kuhn().tree
    found = action_values(tree, nash(Fraction(1, 6)))
    for slot, (infoset, _, _, action) in enumerate(tree.slots.tolist()):
        cost = COSTS.get((tree.keys[infoset], action), 0)
        assert found.costs[slot] == pytest.approx(float(cost), abs=1e-12)
        assert (found.costs[slot] == 0) == (cost == 0)


@pytest.mark.parametrize("name", ["kuhn", KUHN3, "leduc_poker"])
def test_beliefs_are_a_distribution_over_the_nodes_of_an_information_set(name):
    tree = load_game(name).tree
    found = action_values(tree, tree.random(2))
    nodes = np.flatnonzero(tree.infoset >= 0)
    sums = np.bincount(tree.infoset[nodes], found.beliefs)
    assert sums == pytest.approx(np.ones(len(tree.keys)))


def test_where_the_others_never_arrive_there_is_no_value():
    tree = kuhn().tree
    policy = tree.uniform()
    for key in ("0", "1", "2"):
        policy[tree.keys.index(key)] = 1, 0, 0  # player_0 never bets
    found = action_values(tree, policy)
    never = np.isin(np.array(tree.keys)[tree.slots[:, 0]], ["0b", "1b", "2b"])
    assert (np.isnan(found.values) == never).all()
    assert (np.isnan(found.costs) == never).all()
    assert not np.isnan(found.losses).any()
    assert found.reach[tree.keys.index("2b")] == 0


def test_costs_do_not_depend_on_how_seldom_the_others_arrive():
    tree = kuhn().tree
    policy = tree.uniform()
    for key in ("0", "1", "2"):
        policy[tree.keys.index(key)] = 1 - 1e-14, 1e-14, 0
    found = action_values(tree, policy)
    slots = slice(*tree.first_slot[tree.keys.index("2b") :][:2].tolist())
    assert found.costs[slots] == pytest.approx([0, 3])  # K calls; folding loses 1 instead of +2
