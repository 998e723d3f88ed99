"""Exact values, best responses, NashConv and losses, against OpenSpiel and by their definitions."""

from dataclasses import replace

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python.algorithms import exploitability

from algorithms.compiled.nashconv import (
    action_values,
    evaluate_policy,
    expected_values,
    nash_conv,
    nash_convs,
    reach_probabilities,
    returns_std,
)
from algorithms.games import load_game
from algorithms.games.kuhn import kuhn_tree
from algorithms.kuhn_equilibria import nash
from algorithms.nashconv import ROW_SUM_TOLERANCE, infoset_values, joint_policy, pure_policy
from algorithms.tree import TERMINAL, TreeBuilder, Visit
from kuhn_bridge.errors import GameError, PolicyError
from tests.games import COSTS, DICE, GAMES, KUHN, KUHN3, LEDUC, game, tabular, tree
from tests.strategies import policies

TREE = kuhn_tree()


def with_rows(policy, rows):
    """A copy of a policy of Kuhn with other rows, e.g. `{"2pb": (0, 0, 1)}`."""
    changed = policy.copy()
    for key, row in rows.items():
        changed[TREE.keys.index(key)] = row
    return changed


def one_decision(*returns):
    """A tree in which the last player chooses between the returns of two hands."""
    walk = [Visit(0, len(returns[0]) - 1, key="only", legal=(0, 1))]
    walk += [Visit(1, TERMINAL, action, returns=paid) for action, paid in enumerate(returns)]
    return TreeBuilder("one decision", len(returns[0]), 2).build(walk)


def test_uniform_play_in_kuhn():
    measure = evaluate_policy(TREE, TREE.uniform())
    assert measure.nash_conv == pytest.approx(11 / 12, abs=1e-15)
    assert measure.gains == pytest.approx((3 / 8, 13 / 24))
    assert measure.values == pytest.approx((1 / 8, -1 / 8))


@pytest.mark.parametrize("alpha", np.linspace(0, 1 / 3, 7))
def test_equilibria_leave_nothing_to_gain(alpha):
    measure = evaluate_policy(TREE, nash(alpha))
    assert (measure.nash_conv, measure.values[0]) == pytest.approx((0, -1 / 18), abs=1e-15)
    assert measure.losses == ()


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC, DICE])
@pytest.mark.parametrize("seed", range(3))
def test_nash_conv_is_openspiels(name, seed):
    flat = tree(name)
    policy = flat.random(seed)
    theirs = pyspiel.nash_conv(game(name), tabular(flat, policy))
    assert nash_conv(flat, policy) == pytest.approx(theirs, abs=1e-12)


@given(policies())
def test_every_number_is_that_of_openspiels_python(policy):
    ours = evaluate_policy(TREE, policy.table)
    openspiel_policy = policy.to_openspiel()
    theirs = exploitability.nash_conv(
        openspiel_policy.game, openspiel_policy, return_only_nash_conv=False
    )
    assert ours.nash_conv == pytest.approx(theirs.nash_conv, abs=1e-12)
    assert ours.gains == pytest.approx(theirs.player_improvements, abs=1e-12)


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
def test_a_best_response_wins_its_value(name):
    flat = tree(name)
    policy = flat.random(7)
    measure = evaluate_policy(flat, policy)
    response = pure_policy(flat, measure.best_responses)
    assert (response[~flat.legal] == 0).all()
    assert measure.exploitability == measure.nash_conv / flat.num_players
    for player in range(flat.num_players):
        policies = [response if p == player else policy for p in range(flat.num_players)]
        won = expected_values(flat, joint_policy(flat, policies))[player]
        assert won == pytest.approx(measure.best_values[player], abs=1e-12)


@given(policies(), policies())
def test_no_policy_beats_the_best_response(policy, other):
    measure = evaluate_policy(TREE, policy.table)
    for gain, best, value in zip(measure.gains, measure.best_values, measure.values, strict=True):
        assert best >= value - 1e-12  # gains themselves are never below 0
        assert gain == pytest.approx(best - value, abs=1e-12)
    for player in (0, 1):
        policies = [policy.table, policy.table]
        policies[player] = other.table
        won = expected_values(TREE, joint_policy(TREE, policies))[player]
        assert won <= measure.best_values[player] + 1e-12


def test_among_equally_good_actions_the_lowest_is_the_best_response():
    """Where player_0 always bets, player_1 never sees a check: all its actions there are equal."""
    bets = with_rows(TREE.uniform(), dict.fromkeys("012", (0, 1, 0)))
    responses = dict(zip(TREE.keys, evaluate_policy(TREE, bets).best_responses, strict=True))
    assert [responses[key] for key in ("0p", "1p", "2p", "0b")] == [0, 0, 0, 2]


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC, "tiny_hanabi"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20])
def test_a_batch_of_any_size_is_measured_as_single_policies_are(name, count):
    """In Hanabi values do not cancel out, as they do in zero-sum games."""
    flat = tree(name)
    batch = np.array([flat.random(seed) for seed in range(count)]).reshape(-1, *flat.legal.shape)
    alone = [nash_conv(flat, policy) for policy in batch]
    assert nash_convs(flat, batch) == pytest.approx(alone, abs=1e-12)
    assert alone == [evaluate_policy(flat, policy).nash_conv for policy in batch]


def test_a_measure_is_frozen_and_keeps_its_policy():
    policy = TREE.random(0)
    measure = evaluate_policy(TREE, policy)
    expected = evaluate_policy(TREE, policy).losses
    policy[:] = TREE.uniform()
    assert measure.losses == expected
    with pytest.raises(AttributeError):
        measure.values = 0


@pytest.mark.parametrize("scale", [1e-9, 1e8, 1e12])
def test_payoffs_of_any_size(scale):
    """The tolerance for rounding grows with the payoffs."""
    flat = tree(LEDUC)
    payoffs = {name: getattr(flat, name) * scale for name in ("returns", "terminal_payoff")}
    scaled = replace(flat, **payoffs)
    for seed in range(20):
        policy = flat.random(seed)
        response = pure_policy(flat, evaluate_policy(flat, policy).best_responses)
        for table in (policy, response):
            found = nash_conv(scaled, table) / scale
            assert found == pytest.approx(nash_conv(flat, table), rel=1e-9)


@pytest.mark.parametrize("won", [1.0, 100.0])
def test_rows_that_sum_to_one_only_nearly(won):
    """A player that wins the same in all hands seems to win more than its best response."""
    assert nash_conv(one_decision((won,), (won,)), [[0.5, 0.5 + 9e-7]]) == 0


@pytest.mark.parametrize(
    ("key", "row"),
    [
        ("2pb", [0.5, 0, 0.4]),
        ("0", [0.5, 0.5, 0.1]),
        ("1p", [1.5, -0.5, 0]),
        ("0b", [np.nan, 0, 1]),
        ("0b", [0.5, 0.5, 0]),
        # Two errors of one size: the legal actions sum to too much, an illegal one is that likely.
        ("0", [1.75, 1.75, 2.5 - ROW_SUM_TOLERANCE]),
    ],
)
def test_the_first_row_that_is_not_a_distribution_is_named(key, row):
    policy = with_rows(TREE.uniform(), {"0": (1, 0, 0), key: row})
    batches = [policy], [TREE.uniform()] * 8 + [policy]
    calls = [(evaluate_policy, policy), (nash_conv, policy), *((nash_convs, b) for b in batches)]
    for measure, table in calls:
        with pytest.raises(PolicyError, match=f"'{key}'.*not probabilities"):
            measure(TREE, table)


@pytest.mark.parametrize(
    ("table", "got"),
    [(np.ones((12, 2)), "12 x 2"), (np.ones((13, 3)), "13 x 3"), (0.5, "a number")],
)
def test_a_policy_of_another_shape_is_refused(table, got):
    for measure, policy in ((evaluate_policy, table), (nash_conv, table), (nash_convs, [table])):
        with pytest.raises(PolicyError, match=rf"a joint policy of kuhn is 12 x 3; got {got}$"):
            measure(TREE, policy)


def test_numbers_of_any_type_are_measured_as_float64():
    policy = TREE.random(0).astype(np.float32)
    for numbers in (policy, policy.tolist(), np.asfortranarray(policy), policy.astype(">f8")):
        assert nash_conv(TREE, numbers) == nash_conv(TREE, policy.astype(np.float64))


def test_the_standard_deviation_of_returns():
    """Who always checks wins or loses 1 equally often; who always bets and calls, 2."""
    check = np.zeros(12, int)
    bet = TREE.legal[:, 1].astype(int)
    assert returns_std(TREE, pure_policy(TREE, check)) == pytest.approx(1)
    assert returns_std(TREE, pure_policy(TREE, bet)) == pytest.approx(2)
    assert returns_std(one_decision((1.0,), (3.0,)), [[0.5, 0.5]]) == 1


def test_a_wrong_payoff_would_be_noticed():
    """The circulating mistake, 2 chips at check-check, undoes every equilibrium."""
    terminals = TREE.terminals
    wrong = np.sign(TREE.returns[:, terminals]) * TREE.chance_reach[terminals] * 2
    assert nash_conv(replace(TREE, terminal_payoff=wrong), nash(0.2)) > 0.01


def test_a_best_response_that_loses_would_be_noticed():
    """Player_0 bets, player_1 folds: 1 chip for player_0, and its best response must find it."""
    wrong = replace(TREE)
    wrong.sequence_form[0][:6, 2] = 1  # player_0's values are added to player_1's empty sequence
    bold = pure_policy(TREE, [1 if legal[1] else 2 for legal in TREE.legal])
    assert evaluate_policy(TREE, bold).values == pytest.approx((1, -1))
    for measure in (evaluate_policy, nash_conv):
        with pytest.raises(GameError, match="best response wins less than the policy"):
            measure(wrong, bold)


def test_the_last_information_set_may_have_one_action():
    visits = [
        Visit(0, 0, key="first", legal=(0, 1)),
        Visit(1, TERMINAL, 0, returns=(1.0, -1.0)),
        Visit(1, 1, 1, key="second", legal=(0,)),
        Visit(2, TERMINAL, 0, returns=(-2.0, 2.0)),
    ]
    flat = TreeBuilder("forced", 2, 2).build(visits)
    batch = np.array([[[p, 1 - p], [1, 0]] for p in (0, 0.25, 1)])
    assert nash_convs(flat, batch) == pytest.approx([3, 2.25, 0])
    assert [nash_conv(flat, policy) for policy in batch] == pytest.approx([3, 2.25, 0])
    assert evaluate_policy(flat, batch[1]).values == pytest.approx((-1.25, 1.25))


@pytest.mark.parametrize("others", [0, 1, 4])
def test_the_last_player_of_any_number_decides(others):
    flat = one_decision((*[0.0] * others, 1.0), (*[2.0] * others, 3.0))
    measure = evaluate_policy(flat, [[0.25, 0.75]])
    assert measure.values == (*[1.5] * others, 2.5)
    assert measure.gains == (*[0.0] * others, 0.5)
    assert nash_convs(flat, [[[0.25, 0.75]]]) == pytest.approx([0.5])


def test_one_mistake_is_found_with_its_cost():
    """K folds to a bet, against an opponent who always bets: 3 chips, one time in three."""
    policy = with_rows(nash(0), dict.fromkeys("012", (0, 1, 0)) | {"2b": (0, 0, 1)})
    worst = evaluate_policy(TREE, policy).losses[0]
    assert TREE.keys[worst.infoset] == "2b"
    assert (worst.player, worst.played, worst.probability, worst.best) == (1, 2, 1.0, 0)
    assert (worst.reach, worst.lost) == pytest.approx((1 / 3, 1))


def test_the_largest_loss_comes_first_and_avoiding_it_gains_as_much():
    flat = tree(LEDUC)
    policy = flat.random(1)
    losses = evaluate_policy(flat, policy).losses
    assert [loss.lost for loss in losses] == sorted((x.lost for x in losses), reverse=True)
    last = max(losses, key=lambda loss: loss.infoset)  # no later decision of its owner
    better = policy.copy()
    better[last.infoset] = np.eye(3)[last.best]
    gained = np.subtract(expected_values(flat, better), expected_values(flat, policy))
    assert gained[last.player] == pytest.approx(last.lost)


# Values and costs of actions.


@pytest.mark.parametrize("name", GAMES)
def test_losses_reach_and_best_actions_are_those_of_best_responses(name):
    flat = load_game(name).tree
    policy = flat.random(4)
    values = action_values(flat, policy)
    measured = evaluate_policy(flat, policy)
    for player, gain in enumerate(measured.gains):
        assert values.losses[flat.owner == player].sum() == pytest.approx(gain, abs=1e-10)
    assert sum(loss.lost for loss in measured.losses) == pytest.approx(
        measured.nash_conv, abs=1e-10
    )
    for loss in measured.losses:
        assert loss.player == flat.owner[loss.infoset]
        assert values.losses[loss.infoset] == pytest.approx(loss.lost, abs=1e-12)
        assert values.reach[loss.infoset] == pytest.approx(loss.reach, abs=1e-12)
    best = measured.best_responses[flat.choice_infoset] == flat.choice_action
    assert (values.costs[best] == 0).all()
    assert (values.costs >= 0).all()
    beliefs = np.bincount(flat.infoset[flat.infoset >= 0], values.beliefs)  # one distribution each
    assert beliefs == pytest.approx(np.ones(len(flat.keys)))


@pytest.mark.parametrize("name", ["kuhn", KUHN3, "liars_dice(numdice=1,dice_sides=3)"])
def test_values_are_what_playing_so_wins(name):
    """Each action forced, with the owner's earlier moves, and best responses after it."""
    flat = load_game(name).tree
    policy = flat.random(7)
    found = action_values(flat, policy)
    eye = np.eye(flat.legal.shape[1])
    best = eye[evaluate_policy(flat, policy).best_responses]
    for slot, owner in enumerate(flat.choice_owner.tolist()):
        forced = np.where(flat.owner[:, None] == owner, best, policy)
        sequence = slot + 1
        after = np.arange(flat.num_choices + 1) == slot + 1
        while sequence:
            choice = sequence - 1
            forced[flat.choice_infoset[choice]] = eye[flat.choice_action[choice]]
            sequence = flat.choice_parent[choice]
        for later, parent in enumerate(flat.choice_parent):
            after[later + 1] |= after[parent]
        reach = reach_probabilities(flat, forced)[flat.terminal_sequence].prod(axis=0)
        reach *= flat.chance_reach[flat.terminals] * after[flat.terminal_sequence[owner]]
        won = reach @ flat.returns[owner, flat.terminals] / reach.sum()
        assert found.values[slot] == pytest.approx(won, abs=1e-12), (name, slot)


def test_costs_against_an_equilibrium_of_kuhn_are_exact():
    values = action_values(TREE, nash(1 / 6))
    for slot, infoset in enumerate(TREE.choice_infoset):
        cost = COSTS.get((TREE.keys[infoset], int(TREE.choice_action[slot])), 0)
        assert values.costs[slot] == pytest.approx(float(cost), abs=1e-12)
        assert (values.costs[slot] == 0) == (cost == 0)


def test_where_the_others_never_arrive_there_is_no_value():
    policy = with_rows(TREE.uniform(), dict.fromkeys("012", (1, 0, 0)))  # player_0 never bets
    found = action_values(TREE, policy)
    never = np.isin(np.array(TREE.keys)[TREE.choice_infoset], ["0b", "1b", "2b"])
    assert (np.isnan(found.values) == never).all()
    assert (np.isnan(found.costs) == never).all()
    assert not np.isnan(found.losses).any()
    assert found.reach[TREE.keys.index("2b")] == 0


def test_costs_do_not_depend_on_how_seldom_the_others_arrive():
    policy = with_rows(TREE.uniform(), dict.fromkeys("012", (1 - 1e-14, 1e-14, 0)))
    values = action_values(TREE, policy)
    slots = slice(*TREE.first_choice[TREE.keys.index("2b") :][:2].tolist())
    assert values.costs[slots] == pytest.approx([0, 3])  # K calls; folding loses 1 instead of +2


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
def test_information_sets_are_worth_the_mean_over_their_nodes(name):
    played = tree(name)
    policy = played.random(7)
    reach = reach_probabilities(played, policy)
    # By node: the probability that a hand arrives, and all players' expected returns from there.
    arrival = played.chance_reach * reach[played.sequence].prod(axis=0)
    won = played.returns * arrival
    for node in range(played.num_nodes - 1, -1, -1):
        first, end = played.first_child[node : node + 2]
        won[:, node] += won[:, first:end].sum(axis=1)
    found = infoset_values(played, policy)
    for infoset, owner in enumerate(played.owner):
        nodes = np.flatnonzero(played.infoset == infoset)
        assert found.reach[infoset] == pytest.approx(arrival[nodes].sum())
        expected = won[owner, nodes].sum() / arrival[nodes].sum()
        assert found.values[infoset] == pytest.approx(expected, abs=1e-12)


def test_an_information_set_where_no_hand_arrives_is_worth_nothing():
    always_fold = pure_policy(TREE, TREE.legal.shape[1] - 1 - TREE.legal[:, ::-1].argmax(axis=1))
    found = infoset_values(TREE, always_fold)
    assert (found.values[found.reach == 0] == 0).all()
    assert (found.reach == 0).any()
