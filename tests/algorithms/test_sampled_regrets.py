"""Regrets from sampled hands: their expectation, the critic, regret matching, the compiled twin."""

import numpy as np
import pytest

from algorithms import sampled_regrets as plain
from algorithms.compiled import sampled_regrets as compiled
from algorithms.compiled.nashconv import nash_conv, reach_probabilities
from algorithms.compiled.simulator import Simulator
from algorithms.games import load_game
from algorithms.tree import CHANCE
from tests.games import LEDUC

KUHN = load_game("kuhn").tree
KUHN3 = load_game("kuhn_poker(players=3)").tree


def random_choices(tree, seed):
    """A random policy by choice: `(C,)`."""
    return tree.random(seed)[tree.legal]


def all_hands(tree, behaviour):
    """Every hand of a game: its probability, decision nodes, choices and terminal node."""

    def walk(node, probability, nodes, choices):
        children = range(tree.first_child[node], tree.first_child[node + 1])
        if not children:
            yield probability, nodes, choices, node
        for place, child in enumerate(children):
            if tree.player[node] == CHANCE:
                chance = tree.chance_probability[child]
                yield from walk(child, probability * chance, nodes, choices)
            else:
                choice = tree.first_choice[tree.infoset[node]] + place
                played = probability * behaviour[choice]
                yield from walk(child, played, [*nodes, node], [*choices, choice])

    return walk(0, 1.0, [], [])


def decisions_of(tree, behaviour, nodes, choices, terminal):
    """One hand that is played from its beginning to its end."""
    length = len(nodes)
    returns = np.zeros((length, 1, tree.num_players), np.float32)
    returns[-1, 0] = tree.returns[:, terminal]
    return plain.Decisions(
        nodes=np.array(nodes, np.int32)[:, None],
        choices=np.array(choices, np.int32)[:, None],
        probabilities=behaviour[choices][:, None],
        ended=np.arange(length)[:, None] == length - 1,
        returns=returns,
    )


def at_the_beginning(tree, hands=1):
    """Storage for hands that are about to begin."""
    unfinished = plain.unseen_hands(hands, plain.longest_hand(tree))
    unfinished.lengths[:] = 0
    return unfinished


def expected_regrets(tree, policy):
    """Counterfactual regrets by a plain walk over the whole tree: `(C,)`."""
    regrets = np.zeros(tree.num_choices)

    def walk(node, reach_by_others):
        children = range(tree.first_child[node], tree.first_child[node + 1])
        if not children:
            return tree.returns[:, node]
        player = tree.player[node]
        if player == CHANCE:
            return sum(
                tree.chance_probability[child]
                * walk(child, reach_by_others * tree.chance_probability[child])
                for child in children
            )
        first = tree.first_choice[tree.infoset[node]]
        values = []
        for choice, child in enumerate(children, first):
            reach = reach_by_others.copy()
            reach[np.arange(tree.num_players) != player] *= policy[choice]
            values.append(walk(child, reach))
        values = np.array(values)  # (actions, P)
        probabilities = policy[first : first + len(values)]
        mean = probabilities @ values
        regrets[first : first + len(values)] += reach_by_others[player] * (
            values[:, player] - mean[player]
        )
        return mean

    walk(0, np.ones(tree.num_players))
    return regrets


@pytest.mark.parametrize("module", [plain, compiled])
@pytest.mark.parametrize("tree", [KUHN, KUHN3], ids=["kuhn", "three players"])
def test_the_expectation_of_regrets_is_counterfactual_whatever_the_critic_says(tree, module):
    policy = random_choices(tree, 1)
    behaviour = random_choices(tree, 2)
    critic = plain.new_critic(tree)
    critic.values[:] = np.random.default_rng(3).normal(size=critic.values.shape)
    sums = np.zeros(tree.num_choices)
    total = 0.0
    for probability, nodes, choices, terminal in all_hands(tree, behaviour):
        regrets = plain.new_regrets(tree)
        regrets.policy[:] = policy
        copied = plain.Critic(values=critic.values.copy(), visits=critic.visits.copy())
        hand = decisions_of(tree, behaviour, nodes, choices, terminal)
        module.add_hands(tree, regrets, hand, at_the_beginning(tree), copied)
        sums += probability * regrets.latest
        total += probability
    assert total == pytest.approx(1)
    assert sums == pytest.approx(expected_regrets(tree, policy), abs=1e-12)
    assert np.abs(sums).max() > 0.01


def test_a_critic_that_knows_the_values_leaves_no_noise():
    """Every hand that arrives at an information set then gives the same regrets there."""
    policy = KUHN.uniform()[KUHN.legal]
    critic = plain.new_critic(KUHN)
    values = np.zeros_like(critic.values)
    for node in range(KUHN.num_nodes - 1, -1, -1):
        children = np.arange(KUHN.first_child[node], KUHN.first_child[node + 1])
        if len(children) == 0:
            values[node] = KUHN.returns[:, node]
        elif KUHN.player[node] != CHANCE:
            values[node] = values[children].mean(axis=0)
    critic.values[:] = values
    critic.visits[:] = 10**9
    found = {}
    for _, nodes, choices, terminal in all_hands(KUHN, policy):
        regrets = plain.new_regrets(KUHN)
        hand = decisions_of(KUHN, policy, nodes, choices, terminal)
        plain.add_hands(KUHN, regrets, hand, at_the_beginning(KUHN), critic)
        first_node = nodes[0]
        first = KUHN.first_choice[KUHN.infoset[first_node]]
        rounded = np.round(regrets.latest[first : first + 2], 9)
        found.setdefault(first_node, []).append(tuple(rounded))
    assert len(found) == 6
    assert all(len(set(rows)) == 1 for rows in found.values())


def played(tree, steps, hands, *, simulator=None, seed=0):
    """Decisions of random play, by a simulator."""
    simulator = simulator or Simulator(tree, hands, seed=seed)
    behaviour = tree.random(seed)
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        infosets = simulator.infosets.copy()
        nodes = simulator.nodes
        sums = np.cumsum(behaviour[infosets], axis=1)
        actions = (sums <= random.random((hands, 1)) * sums[:, -1:]).sum(axis=1)
        places = (np.cumsum(tree.legal, axis=1) - 1)[infosets, actions]
        simulator.step(actions)
        rows.append(
            (
                nodes,
                (tree.first_choice[infosets] + places).astype(np.int32),
                behaviour[infosets, actions],
                simulator.ended.copy(),
                simulator.returns.copy(),
            )
        )
    return plain.Decisions(*(np.stack(column) for column in zip(*rows, strict=True)))


@pytest.mark.parametrize("name", ["kuhn", LEDUC, "kuhn_poker(players=3)"])
def test_the_compiled_twin_computes_the_same(name):
    tree = load_game(name).tree
    results = []
    for module in (plain, compiled):
        regrets = plain.new_regrets(tree)
        regrets.policy[:] = random_choices(tree, 5)
        critic = plain.new_critic(tree)
        unfinished = plain.unseen_hands(16, plain.longest_hand(tree))
        simulator = Simulator(tree, 16)
        for turn in range(4):
            decisions = played(tree, 9, 16, simulator=simulator, seed=turn)
            module.add_hands(tree, regrets, decisions, unfinished, critic)
            module.match_regrets(tree, turn % tree.num_players, regrets)
        results.append((*regrets, *critic, *unfinished))
    for ours, theirs in zip(*results, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-9)
    assert results[0][1].max() > 1


def test_hands_that_are_cut_give_the_same_as_hands_in_one_piece():
    decisions = played(KUHN, 30, 20)
    whole = plain.new_regrets(KUHN)
    critic = plain.new_critic(KUHN)
    compiled.add_hands(KUHN, whole, decisions, at_the_beginning(KUHN, 20), critic)
    pieces = plain.new_regrets(KUHN)
    unfinished = at_the_beginning(KUHN, 20)
    # One hand at a time, so that the critic learns in the same order.
    again = plain.new_critic(KUHN)
    for hand in range(20):
        one = plain.UnfinishedHands(*(array[hand : hand + 1] for array in unfinished))
        for start in range(0, 30, 7):
            part = plain.Decisions(
                *(array[start : start + 7, hand : hand + 1] for array in decisions)
            )
            compiled.add_hands(KUHN, pieces, part, one, again)
    assert pieces.latest == pytest.approx(whole.latest)
    assert again.values == pytest.approx(critic.values)


def test_nothing_is_learned_from_a_hand_whose_beginning_was_not_seen():
    decisions = played(KUHN, 1, 50)
    late = plain.Decisions(*(array[:1] for array in decisions))
    regrets = plain.new_regrets(KUHN)
    unfinished = plain.unseen_hands(50, plain.longest_hand(KUHN))
    compiled.add_hands(KUHN, regrets, late, unfinished, plain.new_critic(KUHN))
    assert not regrets.latest.any()
    assert (unfinished.lengths == np.where(late.ended[0], 0, plain.BEGUN_UNSEEN)).all()


@pytest.mark.parametrize("module", [plain, compiled])
def test_a_turn_adds_regrets_predicts_that_they_repeat_and_matches(module):
    regrets = plain.new_regrets(KUHN)
    regrets.sums[:2] = (1.0, 2.0)  # of J, to start
    regrets.latest[:4] = (3.0, -1.5, -2.0, -1.0)
    module.match_regrets(KUHN, 0, regrets)
    assert regrets.sums[:4].tolist() == [4.0, 0.5, 0.0, 0.0]
    assert regrets.policy[:4].tolist() == [1.0, 0.0, 0.5, 0.5]  # 7 and 0; none above 0
    assert not regrets.latest[:4].any()


def test_a_turn_leaves_the_other_player_alone():
    regrets = plain.new_regrets(KUHN)
    regrets.latest[:] = np.arange(KUHN.num_choices)
    compiled.match_regrets(KUHN, 1, regrets)
    of_player_0 = KUHN.choice_owner == 0
    assert (regrets.latest[of_player_0] == np.arange(KUHN.num_choices)[of_player_0]).all()
    assert not regrets.latest[~of_player_0].any()
    assert (regrets.policy[of_player_0] == 0.5).all()


def test_the_longest_hand():
    assert plain.longest_hand(KUHN) == 3
    assert plain.longest_hand(load_game(LEDUC).tree) == 8


def test_hands_that_do_not_fit_together_are_dropped():
    """As if the environment had been reset without a word: no memory beyond the arrays is used."""
    for module in (plain, compiled):
        unfinished = at_the_beginning(KUHN, 4)
        unfinished.lengths[:] = 3  # as many decisions as a hand of Kuhn poker can have
        regrets = plain.new_regrets(KUHN)
        module.add_hands(KUHN, regrets, played(KUHN, 1, 4), unfinished, plain.new_critic(KUHN))
        assert not regrets.latest.any()
        assert unfinished.lengths.max() <= 0


def test_what_is_learned_from_random_play_approaches_an_equilibrium():
    """The hands are played by policies that have nothing to do with the one that is learned."""
    regrets = plain.new_regrets(KUHN)
    critic = plain.new_critic(KUHN)
    unfinished = at_the_beginning(KUHN, 500)
    simulator = Simulator(KUHN, 500)
    total = np.zeros(KUHN.num_choices)
    for turn in range(400):
        decisions = played(KUHN, 8, 500, simulator=simulator, seed=turn)
        compiled.add_hands(KUHN, regrets, decisions, unfinished, critic)
        compiled.match_regrets(KUHN, turn % 2, regrets)
        reach = reach_probabilities(KUHN, KUHN.table_of(regrets.policy))[KUHN.choice_parent]
        total += reach * regrets.policy
    assert nash_conv(KUHN, KUHN.normalized(total)) < 0.05
