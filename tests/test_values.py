"""Exact values, best responses and NashConv, against OpenSpiel and against themselves."""

from dataclasses import replace

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python.algorithms import exploitability

from algorithms.exact import values
from algorithms.exact.kuhn import nash
from algorithms.exact.tree import TERMINAL, Visit, compile_tree
from algorithms.exact.values import (
    ROW_SUM_TOLERANCE,
    evaluate_policy,
    expected_values,
    measuring,
    nash_conv,
    nash_convs,
    pure,
    seated,
)
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies.openspiel import to_python_tabular
from kuhn_bridge import Policy
from kuhn_bridge.errors import PolicyError
from tests.games import DICE, KUHN, KUHN3, LEDUC, game, tabular, tree
from tests.strategies import policies

TREE = kuhn_tree()


def test_uniform_play_in_kuhn():
    measure = evaluate_policy(TREE, Policy.uniform("kuhn").table)
    assert measure.nash_conv == pytest.approx(11 / 12, abs=1e-15)
    assert measure.gains == pytest.approx((3 / 8, 13 / 24))
    assert measure.values == pytest.approx((1 / 8, -1 / 8))
    assert measure.exploitability == measure.nash_conv / 2


@pytest.mark.parametrize("alpha", np.linspace(0, 1 / 3, 7))
def test_equilibria_leave_nothing_to_gain(alpha):
    measure = evaluate_policy(TREE, nash(alpha))
    assert measure.nash_conv == pytest.approx(0, abs=1e-15)
    assert measure.values[0] == pytest.approx(-1 / 18, abs=1e-15)


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
    theirs = exploitability.nash_conv(
        game(KUHN), to_python_tabular(policy.game, policy.table), return_only_nash_conv=False
    )
    assert ours.nash_conv == pytest.approx(theirs.nash_conv, abs=1e-12)
    assert ours.gains == pytest.approx(theirs.player_improvements, abs=1e-12)


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
def test_a_best_response_wins_what_it_promises(name):
    flat = tree(name)
    policy = flat.random(7)
    measure = evaluate_policy(flat, policy)
    answer = pure(flat, measure.best_responses)
    assert (answer[~flat.legal] == 0).all()
    for player in range(flat.num_players):
        sides = [answer if p == player else policy for p in range(flat.num_players)]
        won = expected_values(flat, seated(flat, sides))[player]
        assert won == pytest.approx(measure.best_values[player], abs=1e-12)


@given(policies(), policies())
def test_no_policy_beats_the_best_response(policy, other):
    measure = evaluate_policy(TREE, policy.table)
    for gain, best, value in zip(measure.gains, measure.best_values, measure.values, strict=True):
        assert best >= value - 1e-12  # gains themselves are never shown below 0
        assert gain == pytest.approx(best - value, abs=1e-12)
    for player in (0, 1):
        sides = [policy.table] * 2
        sides[player] = other.table
        won = expected_values(TREE, seated(TREE, sides))[player]
        assert won <= measure.best_values[player] + 1e-12


def test_among_equals_the_lowest_action_answers():
    """Where player_0 always bets, player_1 never sees a check: all its answers there are equal."""
    policy = TREE.uniform()
    for key in ("0", "1", "2"):
        policy[TREE.keys.index(key)] = 0, 1, 0
    responses = evaluate_policy(TREE, policy).best_responses
    assert [responses[TREE.keys.index(key)] for key in ("0p", "1p", "2p")] == [0, 0, 0]
    assert responses[TREE.keys.index("0b")] == 2  # J folds to a bet: no tie there


def test_exploitability_is_nash_conv_by_the_number_of_players():
    for name, players in ((KUHN, 2), (KUHN3, 3)):
        measure = evaluate_policy(tree(name), tree(name).uniform())
        assert measure.exploitability == measure.nash_conv / players
        assert measure.nash_conv == pytest.approx(sum(measure.gains))


def test_many_at_once():
    batch = np.stack([TREE.random(seed) for seed in range(20)])
    assert nash_convs(TREE, batch) == pytest.approx([nash_conv(TREE, p) for p in batch])


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
@pytest.mark.parametrize("count", [1, 7, 8, 9])
def test_a_batch_of_any_size_is_measured_one_by_one(name, count):
    flat = tree(name)
    batch = np.stack([flat.random(seed) for seed in range(count)])
    alone = [nash_conv(flat, policy) for policy in batch]
    assert nash_convs(flat, batch) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC])
def test_many_calls_on_one_tree(name):
    """Nothing of one policy is left in the scratch memory when the next is measured."""
    flat = tree(name)
    measure, sharp = measuring(flat), pure(flat, flat.legal.argmax(axis=1))
    for policy in (flat.random(0), sharp, flat.uniform(), sharp, np.asfortranarray(flat.random(1))):
        assert measure(policy) == nash_conv(flat, policy)
    with pytest.raises(PolicyError, match="not probabilities"):
        measure(flat.uniform() * 0.9)
    with pytest.raises(PolicyError, match="a joint policy of"):
        measure(flat.uniform()[1:])
    assert measure(sharp) == nash_conv(flat, sharp)


def test_results_are_frozen():
    measure = evaluate_policy(TREE, TREE.uniform())
    with pytest.raises(AttributeError):
        measure.nash_conv = 0
    before = measure.best_responses
    before[:] = -1
    assert (measure.best_responses >= 0).all()


@pytest.mark.parametrize("scale", [1e-9, 1e8, 1e12])
def test_stakes_of_any_size(scale):
    """What rounding may cost grows with the payoffs."""
    flat = tree(LEDUC)
    big = replace(flat, returns=flat.returns * scale, stakes=flat.stakes * scale)
    for seed in range(20):
        policy = flat.random(seed)
        answer = pure(flat, evaluate_policy(flat, policy).best_responses)
        for table in (policy, answer):
            found = nash_conv(big, table) / scale
            assert found == pytest.approx(nash_conv(flat, table), rel=1e-9)


@pytest.mark.parametrize("won", [1.0, 100.0])
def test_rows_that_sum_to_one_only_nearly(won):
    """A player that wins the same whatever happens seems to win more than its best response."""
    walk = [Visit(0, 0, key="only", legal=(0, 1))]
    walk += [Visit(1, TERMINAL, action, returns=(won,)) for action in (0, 1)]
    sure = compile_tree("sure", 1, 2, walk)
    assert nash_conv(sure, [[0.5, 0.5 + 9e-7]]) == 0


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("2pb", [0.5, 0, 0.4]),
        ("0", [0.5, 0.5, 0.1]),
        ("1p", [1.5, -0.5, 0]),
        ("0b", [np.nan, 0, 1]),
        ("0b", [0.5, 0.5, 0]),
    ],
)
def test_half_a_policy_is_refused(row, value):
    policy = TREE.uniform()
    policy[TREE.keys.index(row)] = value
    with pytest.raises(PolicyError, match=f"'{row}'.*not probabilities"):
        evaluate_policy(TREE, policy)
    for batch in ([policy], [TREE.uniform(), policy]):
        with pytest.raises(PolicyError, match=f"'{row}'"):
            nash_convs(TREE, batch)


def test_two_faults_of_one_row_do_not_make_a_policy():
    """The legal actions sum to too much, an illegal one is exactly that likely."""
    too_much = 3.5 - 1 - ROW_SUM_TOLERANCE
    assert 3.5 + too_much - 3.5 == too_much  # to the last bit
    policy = TREE.uniform()
    policy[TREE.keys.index("0")] = 1.75, 1.75, too_much
    with pytest.raises(PolicyError, match=r"'0'.*not probabilities"):
        nash_convs(TREE, [policy])


def test_other_numbers_are_measured_as_float64():
    for numbers in (TREE.uniform(), TREE.uniform().astype(np.float32), TREE.legal.tolist()):
        assert values._array(numbers).dtype == np.float64
    table = TREE.uniform()
    assert values._array(table) is table  # a copy would cost a call on Kuhn half its speed


def test_how_far_a_hand_spreads():
    """Who always checks wins or loses 1 equally often; who always bets and calls, 2."""
    check, bet = np.zeros(12, int), TREE.legal[:, 1].astype(int)
    assert values.spread(TREE, pure(TREE, check)) == pytest.approx(1)
    assert values.spread(TREE, pure(TREE, bet)) == pytest.approx(2)


def test_a_policy_of_another_shape_is_refused():
    with pytest.raises(PolicyError, match="a joint policy of kuhn is 12 x 3"):
        evaluate_policy(TREE, np.full((12, 2), 0.5))


def test_a_wrong_payoff_would_be_noticed():
    """The circulating mistake, 2 chips at check-check, undoes every equilibrium."""
    wrong = np.sign(TREE.returns[:, TREE.terminals]) * TREE.chance[TREE.terminals] * 2
    assert nash_conv(replace(TREE, stakes=wrong), nash(0.2)) > 0.01


def test_a_best_response_that_loses_would_be_noticed():
    """Player_0 bets, player_1 folds: 1 chip for player_0, and its best response must find it."""
    wrong = replace(TREE)
    wrong.sequence_form[0][:6, 2] = 1  # what player_0 could win is passed on to player_1's start
    bold = pure(TREE, [1 if legal[1] else 2 for legal in TREE.legal])
    assert evaluate_policy(TREE, bold).values == pytest.approx((1, -1))
    with pytest.raises(AssertionError):
        evaluate_policy(wrong, bold)


def test_a_batch_of_another_shape_is_refused():
    tree = kuhn_tree()
    longer = np.vstack([tree.uniform(), tree.uniform()[:1]])  # whose first rows would do
    for wrong, got in (
        (np.ones((2, 12, 2)), "12 x 2"),
        (longer[None], "13 x 3"),
        (tree.uniform(), "3"),
    ):
        with pytest.raises(PolicyError, match=rf"a joint policy of .* is 12 x 3; got {got}$"):
            nash_convs(tree, wrong)


def test_the_first_wrong_row_is_named_not_one_that_never_plays_an_action():
    tree = kuhn_tree()
    table = tree.uniform()
    table[0] = [1, 0, 0]
    table[5, 1] += 0.1
    with pytest.raises(PolicyError, match=repr(tree.keys[5])):
        evaluate_policy(tree, table)


def test_every_sequence_has_one_probability():
    tree = kuhn_tree()
    assert values.reach(tree, tree.uniform()).shape == (tree.num_slots + 1,)


@pytest.mark.parametrize("name", [KUHN, KUHN3, "tiny_hanabi"])
def test_many_are_measured_as_one_is_where_values_do_not_cancel_out(name):
    """In zero-sum games a wrong value of each player could go unnoticed: their sum is 0."""
    flat = tree(name)
    tables = np.stack([flat.random(seed) for seed in range(3)] + [flat.uniform()])
    assert nash_convs(flat, tables) == pytest.approx([nash_conv(flat, t) for t in tables])
    equilibria = np.stack([nash(alpha) for alpha in (0.0, 0.25)])
    assert nash_convs(kuhn_tree(), equilibria) == pytest.approx([0, 0], abs=1e-12)


def test_a_batch_where_the_last_information_set_leaves_no_choice():
    visits = [
        Visit(0, 0, key="first", legal=(0, 1)),
        Visit(1, TERMINAL, 0, returns=(1.0, -1.0)),
        Visit(1, 1, 1, key="second", legal=(0,)),
        Visit(2, TERMINAL, 0, returns=(-2.0, 2.0)),
    ]
    flat = compile_tree("forced", 2, 2, visits)
    batch = np.array([[[p, 1 - p], [1, 0]] for p in (0, 0.25, 1)])
    assert nash_convs(flat, batch) == pytest.approx([3, 2.25, 0])
    assert evaluate_policy(flat, batch[1]).values == pytest.approx((-1.25, 1.25))
    assert [measuring(flat)(policy) for policy in batch] == pytest.approx([3, 2.25, 0])


def test_somebody_alone():
    walk = [Visit(0, 0, key="only", legal=(0, 1))]
    walk += [Visit(1, TERMINAL, action, returns=(1.0 + 2 * action,)) for action in (0, 1)]
    flat = compile_tree("alone", 1, 2, walk)
    alone = evaluate_policy(flat, np.array([[0.25, 0.75]]))
    assert (alone.values, alone.gains) == ((2.5,), (0.5,))
    assert values.spread(flat, [[0.5, 0.5]]) == 1  # 1 or 3 chips, around a mean of 2


def test_the_last_of_five_players_decides():
    walk = [Visit(0, 4, key="only", legal=(0, 1))]
    walk += [Visit(1, TERMINAL, won, returns=(won, 0.0, 0.0, 0.0, 2.0 * won)) for won in (0, 1)]
    five = compile_tree("five", 5, 2, walk)
    measure = evaluate_policy(five, np.array([[0.25, 0.75]]))
    assert measure.values == (0.75, 0, 0, 0, 1.5)
    assert measure.gains == (0, 0, 0, 0, 0.5)
    assert nash_convs(five, [[[0.25, 0.75]]]) == pytest.approx([0.5])
