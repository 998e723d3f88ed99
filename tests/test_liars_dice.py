"""Liar's Dice by its public states: against the tree and OpenSpiel's states."""

from functools import cache

import numpy as np
import pyspiel
import pytest

from algorithms.exact.cfr import VARIANTS, Solver
from algorithms.exact.liars_dice import losses, ranges
from algorithms.exact.liars_dice_cfr import LiarsDiceSolver
from algorithms.exact.values import evaluate_policy
from algorithms.games import load_game
from algorithms.games.liars_dice import find_liars_dice
from kuhn_bridge.errors import HistoryError
from tests.native_games import ALTERNATING, SMALL_DICE, dice, native, on_tree, pure, tree_rows

LARGE = dice(2, 5)


@cache
def decisions(name):
    """An OpenSpiel state for every information set: both players hold the same dice."""
    game = native(name)
    found = []
    for roll in game.rules.rolls - 1:
        state = pyspiel.load_game(name).new_initial_state()
        for side in [*roll, *roll]:
            state.apply_action(side)
        found.append(state)
    for state in found:  # grows
        found += [state.child(a) for a in state.legal_actions() if a < game.num_actions - 1]
    return found


@pytest.mark.parametrize("name", SMALL_DICE)
def test_the_best_responses_are_the_trees(name):
    """Where two actions are equally good up to rounding, either is right."""
    game, tree = native(name), load_game(name).tree
    tables = game.random(6)
    expected = evaluate_policy(tree, on_tree(name, tables))
    measure = game.measure(tables)
    agree = [
        np.mean(found == expected.best_responses[rows])
        for found, rows in zip(measure.best_responses, tree_rows(name), strict=True)
    ]
    assert min(agree) > 0.98


def test_of_equally_good_actions_the_first_is_the_best_response():
    """Both players call the first bid, so after three bids an opponent never arrives."""
    name = dice(2, 2)
    game = native(name)
    call = pure(game, [np.full(count, game.num_actions - 1) for count in game.num_infosets])
    call[0][: len(game.rules.rolls)] = np.eye(game.num_actions)[0]  # there is nothing to call yet
    measure = game.measure(call)
    dice_and_three_bids = 7
    for state in decisions(name):
        if state.move_number() < dice_and_three_bids:
            continue
        player = state.current_player()
        best = measure.best_responses[player][game.infoset_of(state, player)]
        assert best == state.legal_actions()[0]


@pytest.mark.parametrize("name", SMALL_DICE)
def test_observations_and_legal_actions_are_openspiels_at_every_information_set(name):
    game = native(name)
    seen = [game.observations(p, 0, game.num_infosets[p]) for p in range(2)]
    legal = [game.legal(p, 0, game.num_infosets[p]) for p in range(2)]
    met = [np.zeros(count, int) for count in game.num_infosets]
    for state in decisions(name):
        player = state.current_player()
        infoset = game.infoset_of(state, player)
        assert (seen[player][infoset] == state.information_state_tensor()).all()
        assert (np.flatnonzero(legal[player][infoset]) == state.legal_actions()).all()
        met[player][infoset] += 1
    assert all((count == 1).all() for count in met)  # every number is one information set
    assert seen[0].dtype == np.float32
    assert game.observation_size == seen[0].shape[1] == len(state.information_state_tensor())
    assert game.num_actions == legal[0].shape[1] == pyspiel.load_game(name).num_distinct_actions()


def test_information_sets_and_actions_have_labels():
    game = native(dice(2, 3))
    state = pyspiel.load_game(dice(2, 3)).new_initial_state()
    for side in (2, 0, 1, 1):  # 1 3 and 2 2, dealt in any order
        state.apply_action(side)
    start = game.infoset_of(state, 0)
    assert game.infoset_label(0, start) == "player_0 with 1 3 to start"
    for bid in (5, 10, 11):
        state.apply_action(bid)
    last = game.infoset_of(state, 1)
    assert game.infoset_label(1, last) == "player_1 with 2 2 after 2-3, 4-2, 4-3"
    assert game.action_label(0, start, 5) == "bid 2-3"
    assert game.action_label(1, last, 12) == "liar"


@pytest.mark.parametrize("rule", ["reset-face", "reset-quantity"])
def test_bids_are_named_as_openspiel_names_them(rule):
    name = dice(2, 3, rule)
    game, state = native(name), pyspiel.load_game(name).new_initial_state()
    for _ in range(4):
        state.apply_action(0)
    names = [state.action_to_string(action) for action in state.legal_actions()]
    labels = [game.action_label(0, 0, action) for action in state.legal_actions()]
    assert labels == [f"bid {name}" for name in names]


def test_only_the_player_to_act_has_an_information_set():
    state = pyspiel.load_game(dice(1, 3)).new_initial_state()
    for move in (0, 1):
        with pytest.raises(HistoryError, match="player 0 is not to act"):
            native(dice(1, 3)).infoset_of(state, 0)
        state.apply_action(move)
    with pytest.raises(HistoryError, match="player 1 is not to act"):
        native(dice(1, 3)).infoset_of(state, 1)


def test_a_range_is_chance_times_own_actions():
    """The example of `algorithms.exact.liars_dice`: one die with two sides, 2-2 to start."""
    game = native(dice(1, 2))
    two_twos, liar = 3, 4
    tables = game.uniform()
    tables[0][:2] = [[0.8, 0, 0, 0.2, 0], [0.4, 0, 0, 0.6, 0]]
    assert ranges(game.rules, tables, 0b0001) == pytest.approx(
        np.array([[0.1, 0.3], [0.5, 0.5]]), abs=1e-7
    )
    # 1-1 holds whatever is dealt, so if it is called at once player 0 wins the other 0.6.
    tables[1][8:10] = np.eye(5)[liar]
    assert game.measure(tables).values[1] == pytest.approx(0.1 - 0.6, abs=1e-7)
    assert game.action_label(0, 0, two_twos) == "bid 2-2"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("liars_dice", (1, 6, 24_576)),
        ("liars_dice()", (1, 6, 24_576)),
        ("liars_dice(dice_sides=3,numdice=2)", (2, 3, 24_576)),
        ("liars_dice(dice_sides=1)", (1, 1, 4)),
        (LARGE, (2, 5, 15_728_640)),
    ],
)
def test_the_game_is_recognised(name, found):
    game = native(name)
    sides = len(game.rules.matches)
    assert (game.rules.dice, sides, sum(game.num_infosets)) == found


@pytest.mark.parametrize(
    "name", ["kuhn_poker", "leduc_poker", "liars_dice_ir", dice(2, 6), dice(5, 6), dice(99, 99)]
)
def test_other_games_and_larger_ones_are_not(name):
    assert find_liars_dice(pyspiel.load_game(name)) is None


@pytest.mark.parametrize("variant", ALTERNATING)
@pytest.mark.parametrize("name", [dice(1, 3), dice(1, 4)])
def test_a_solver_averages_what_the_trees_solver_averages(name, variant):
    """Over a few iterations: later a tie may be broken by rounding, in either direction."""
    game, tree = native(name), load_game(name).tree
    ours = LiarsDiceSolver(game.rules, VARIANTS[variant], dtype=np.float64)
    theirs = Solver(tree, VARIANTS[variant])
    for _ in range(8):
        ours.run(1)
        theirs.run(1)
        found = on_tree(name, ours.average_policy())
        assert found == pytest.approx(theirs.average_policy(), abs=1e-6)  # tables are float32
    assert ours.iterations == 8


@pytest.mark.slow
def test_two_dice_of_five_sides():
    game = native(LARGE)
    tables = game.uniform()
    measure = game.measure(tables)
    assert measure.exploitability == pytest.approx(0.890598, abs=5e-7)
    # Any equilibrium value lies between the best responses' values.
    assert -measure.best_values[1] < measure.best_values[0]
    del tables
    tables = game.random(0)
    measure = game.measure(tables)
    lost = losses(game.rules, tables)
    assert [one.sum() for one in lost] == pytest.approx(measure.gains, abs=1e-10)
    worst = measure.losses[:5]
    assert all(loss.lost == lost[loss.player][loss.infoset] for loss in worst)
    assert worst[0].lost == max(one.max() for one in lost)
    for player in range(2):
        answer = np.zeros_like(tables[player])
        np.put_along_axis(
            answer, measure.best_responses[player][:, None].astype(np.intp), 1, axis=1
        )
        pair = (answer, tables[1]) if player == 0 else (tables[0], answer)
        answered = game.measure(pair)
        assert answered.values[player] == pytest.approx(measure.best_values[player], abs=1e-12)
        assert answered.best_values[player] == pytest.approx(measure.best_values[player], abs=1e-12)


@pytest.mark.slow
def test_two_dice_of_five_sides_along_random_play():
    game, generator = native(LARGE), np.random.default_rng(0)
    source = pyspiel.load_game(LARGE)
    for _ in range(300):
        state = source.new_initial_state()
        low = generator.random() < 0.5  # half of the hands are long: small steps
        while not state.is_terminal():
            legal = state.legal_actions()
            if not state.is_chance_node():
                player = state.current_player()
                infoset = game.infoset_of(state, player)
                seen = game.observations(player, infoset, infoset + 1)[0]
                assert (seen == state.information_state_tensor()).all()
                assert (np.flatnonzero(game.legal(player, infoset, infoset + 1)) == legal).all()
                key = game.infoset_label(player, infoset).removesuffix(" to start")
                rolled, *bids = state.information_state_string().split()
                after = f" after {', '.join(bids)}" if bids else ""
                assert key == f"player_{player} with {' '.join(rolled)}{after}"
                legal = legal[:3] if low and len(legal) > 3 else legal
            state.apply_action(int(generator.choice(legal)))
