"""Matches in games without a tree: on OpenSpiel's states, next to exact values where there are."""

import json
import math
import pickle

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms import evaluate, simulate
from algorithms.games import load_game
from algorithms.self_play import matches
from algorithms.self_play.matches import Sample, exit_code, play_match
from kuhn_bridge import Policy, load_policy
from tests.models import Spaces, save_model

LARGE_EXACT = "dark_hex(num_rows=2,num_cols=4)"  # the smallest board that is too large for a tree
UNMEASURED = "dark_hex(num_rows=2,num_cols=4,obstype=reveal-numturns)"


@pytest.fixture(scope="module")
def random_policies():
    return Policy.random(LARGE_EXACT, 1), Policy.random(LARGE_EXACT, 2)


def model_of(path, game):
    """The path of an untrained model."""
    loaded = load_game(game)
    size = loaded.observation_size + loaded.num_players
    save_model(path, spaces=Spaces(size, loaded.num_actions), game=game)
    return str(path)


@pytest.mark.parametrize(
    "game",
    [load_game(LARGE_EXACT), load_game("liars_dice(numdice=2,dice_sides=3)", max_nodes=5)],
)
def test_information_sets_are_found_by_their_observations(game):
    for player, count in enumerate(game.num_infosets):
        observations = game.tensors(player, 0, count)
        np.testing.assert_array_equal(game.find_infosets(player, observations), np.arange(count))


def test_tables_win_what_is_exact(random_policies):
    one, other = random_policies
    *seats, together = play_match(one, other, hands=4_000)
    tables = ((one.table[0], other.table[1]), (other.table[0], one.table[1]))
    exact = [one.game.measure(table).values[seat] for seat, table in enumerate(tables)]
    assert [sample.exact for sample in seats] == exact
    assert max(sample.errors_off for sample in seats) < 4
    assert together.exact == pytest.approx(sum(exact) / 2)
    assert together.mean == pytest.approx(sum(sample.mean for sample in seats) / 2)
    assert together.hands == 8_000


def test_too_many_hands_for_memory_are_one_line(capsys):
    arguments = ["uniform", "uniform", "--game", UNMEASURED, "--hands", str(10**12)]
    assert simulate.main(arguments) == 2
    error = capsys.readouterr().err
    assert "1,000,000,000,000 hands" in error
    assert "at most 100,000,000 per seat" in error
    assert error.count("\n") == 1


def test_both_seats_play_the_same_hands(random_policies):
    first, second, together = play_match(random_policies[0], random_policies[0], hands=500)
    assert together.mean == together.standard_error == 0
    assert first.mean == -second.mean != 0


def test_similar_policies_are_compared_more_precisely_than_on_different_hands(random_policies):
    one, other = random_policies
    mixed = [0.9 * a + 0.1 * b for a, b in zip(one.table, other.table, strict=True)]
    *seats, together = play_match(one, Policy(LARGE_EXACT, mixed), hands=2_000)
    different = math.hypot(*(sample.standard_error for sample in seats)) / 2
    assert 0 < together.standard_error < 0.8 * different
    assert together.errors_off < 4


@pytest.mark.parametrize(("off", "code"), [(4.9, 0), (5.1, 1)])
def test_the_mean_of_a_seat_may_be_five_standard_errors_off(off, code):
    right = Sample(30, 1.0, 0.1, 1.0)
    other = Sample(30, 1.0, 0.1, 1.0 + off * 0.1)
    assert exit_code([(right, right, right), (right, other, right)]) == code


@pytest.mark.parametrize("game", [LARGE_EXACT, UNMEASURED])
def test_a_model_meets_uniform_play(game, tmp_path, capsys):
    path = model_of(tmp_path / "model.zip", game)
    exact = game == LARGE_EXACT
    assert evaluate.main([path, "--against", "uniform", "--hands", "1000", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)["against"]["uniform"]["both"]
    assert (both["exact"] is not None) == exact
    assert simulate.main([path, "uniform", "--hands", "1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["both seats"] == both
    assert evaluate.main([path, "--hands", "100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["uniform", *["best-response"] * exact]
    assert ("exact" in lines[1]) == exact
    assert simulate.main([path, "uniform", "--hands", "100"]) == 0
    assert ("exact" in capsys.readouterr().out) == exact


def test_a_network_is_pickled_without_its_table(tmp_path):
    import cloudpickle  # as Ray does

    policy = load_policy(model_of(tmp_path / "model.zip", UNMEASURED))
    again = pickle.loads(cloudpickle.dumps(policy))
    size = policy.network.input_size
    actions = policy.network.num_actions
    inputs = np.ones((3, size), np.float32)
    legal = np.ones((3, actions), np.bool_)
    np.testing.assert_array_equal(
        again.probabilities(inputs, legal), policy.probabilities(inputs, legal)
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["cfr+:9"], "cfr+:9: {game} is too large for a table; its policies are uniform, model"),
        (["random:9"], "random:9: {game} is too large for a table"),
        (["uniform", "--against", "best-response"], "there is no exact measure"),
    ],
)
def test_what_a_game_without_exact_measure_lacks(argv, words, refused):
    assert words.format(game=UNMEASURED) in refused(evaluate.main, [*argv, "--game", UNMEASURED])


def test_a_match_is_exact_on_a_tree():
    solved = kb.solve("leduc_poker", iterations=100)
    uniform = kb.Policy.uniform("leduc_poker")
    played = solved.versus(uniform)
    assert played.is_exact
    assert sum(played) == pytest.approx(2 * played.mean)
    assert played.interval == (played.mean, played.mean)
    # player_0's value with the solved policy against player_1's with uniform play, by OpenSpiel
    assert played[0] == pytest.approx(openspiel_value(solved, uniform), abs=1e-9)
    assert solved.versus(solved).mean == pytest.approx(0, abs=1e-12)


def openspiel_value(first, second):
    from open_spiel.python.algorithms import expected_game_score

    state = first.game.pyspiel_game.new_initial_state()
    policies = [first.to_openspiel(), second.to_openspiel()]
    return expected_game_score.policy_value(state, policies)[0]


def test_a_match_is_an_estimate_in_a_game_without_an_exact_measure():
    uniform = kb.Policy.uniform("dark_hex(num_rows=4,num_cols=3)")
    played = uniform.versus(uniform, hands=200)
    assert not played.is_exact
    assert len(played) == 2
    assert played.interval[0] <= played.mean <= played.interval[1]


def test_more_hands_than_fit_in_memory_are_refused_before_any_is_played(monkeypatch):
    monkeypatch.setattr(matches, "hand_streams", None)
    uniform = kb.Policy.uniform("dark_hex(num_rows=4,num_cols=3)")
    with pytest.raises(kb.BridgeError, match="has at most 100,000,000 per seat"):
        uniform.versus(uniform, hands=10**8 + 1)


@pytest.mark.parametrize("game", ["leduc_poker", "kuhn_poker(players=3)"])
def test_a_best_response_wins_what_the_measure_says(game):
    policy = kb.Policy.random(game, 1)
    measure = policy.measure()
    for player in range(policy.game.num_players):
        response = policy.best_response(player)
        assert response.measure().values[player] == pytest.approx(measure.best_values[player])
        others = policy.game.tree.owner != player
        assert (response.table[others] == policy.table[others]).all()


def test_what_cannot_play_each_other_is_refused():
    kuhn = kb.Policy.uniform("kuhn")
    with pytest.raises(kb.BridgeError, match="a policy of leduc_poker cannot play kuhn"):
        kuhn.versus(kb.Policy.uniform("leduc_poker"))
    with pytest.raises(kb.BridgeError, match="want a Policy"):
        kuhn.versus("uniform")
    with pytest.raises(kb.BridgeError, match="player=2: want a seat from 0 to 1"):
        kuhn.best_response(2)
    large = kb.Policy.uniform("dark_hex(num_rows=4,num_cols=3)")
    with pytest.raises(kb.BridgeError, match="no exact measure"):
        large.best_response(0)


HEX = "dark_hex(num_rows=4,num_cols=3)"


def first_legal(state):
    return {state.legal_actions()[0]: 1.0}


def test_a_function_of_states_plays_and_is_measured_without_a_tree():
    policy = kb.Policy.from_openspiel(first_legal, HEX)
    played = policy.versus(kb.Policy.uniform(HEX), hands=300)
    assert policy.greedy().versus(kb.Policy.uniform(HEX), hands=300) == played  # it is greedy
    bound = policy.lower_bound(decisions=20_000, hands=1_000)
    assert bound.nash_conv_at_least > 1  # a policy that is so easily answered loses most games
    with pytest.raises(kb.PolicyError, match="lower_bound"):
        policy.nash_conv()


def test_a_function_of_states_plays_as_a_network_that_does_the_same():
    network = kb.Policy.from_network(lambda seen: np.zeros((len(seen), 12)), HEX)
    uniform = kb.Policy.from_openspiel(
        lambda state: {a: 1 / len(state.legal_actions()) for a in state.legal_actions()}, HEX
    )
    first = network.versus(kb.Policy.uniform(HEX), hands=100)
    assert uniform.versus(kb.Policy.uniform(HEX), hands=100) == first


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda state: {0: 0.5}, "not probabilities"),
        (lambda state: {99: 1.0}, "not action IDs"),
        (lambda state: 1 / 0, "no answer for player_0"),
        (3, "neither an OpenSpiel policy nor a function"),
    ],
)
def test_wrong_answers_for_states_are_named(function, reason):
    with pytest.raises(kb.PolicyError, match=reason):
        kb.Policy.from_openspiel(function, HEX).versus(kb.Policy.uniform(HEX), hands=30)
