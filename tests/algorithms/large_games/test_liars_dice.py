"""Liar's Dice by its public states: ties, ranges, labels, and two dice of five sides."""

import numpy as np
import pyspiel
import pytest

from parity.large_games import infoset_of
from tests.large_games import dice, large, pure

LARGE = dice(2, 5)


def test_of_equally_good_actions_the_first_is_the_best_response():
    """Both players call the first bid, so after three bids an opponent never arrives."""
    game = large(dice(2, 2))
    call = pure(game, [np.full(count, game.num_actions - 1) for count in game.num_infosets])
    call[0][: len(game.rules.rolls)] = np.eye(game.num_actions)[0]  # there is nothing to call yet
    for player, best in enumerate(game.measure(call).best_responses):
        legal = game.legal(player, 0, len(best))
        late = game.tensors(player, 0, len(best))[:, -game.num_actions :].sum(axis=1) >= 3
        assert late.any()
        assert (best == legal.argmax(axis=1))[late].all()


def test_information_sets_and_actions_have_labels():
    game = large(dice(2, 3))
    state = pyspiel.load_game(dice(2, 3)).new_initial_state()
    for side in (2, 0, 1, 1):  # 1 3 and 2 2, dealt in any order
        state.apply_action(side)
    start = infoset_of(game, state)
    assert game.infoset_label(start, 0) == "player_0 with 1 3 to start"
    for bid in (5, 10, 11):
        state.apply_action(bid)
    last = infoset_of(game, state)
    assert game.infoset_label(last, 1) == "player_1 with 2 2 after 2-3, 4-2, 4-3"
    assert game.action_label(start, 5) == "bid 2-3"
    assert game.action_label(last, 12, 1) == "liar"


@pytest.mark.parametrize("rule", ["reset-face", "reset-quantity"])
def test_bids_are_named_as_openspiel_names_them(rule):
    name = dice(2, 3, rule)
    game = large(name)
    state = pyspiel.load_game(name).new_initial_state()
    for _ in range(4):
        state.apply_action(0)
    names = [state.action_to_string(action) for action in state.legal_actions()]
    labels = [game.action_label(0, action) for action in state.legal_actions()]
    assert labels == [f"bid {name}" for name in names]


def test_a_range_is_chance_times_own_actions():
    """The example of `algorithms.large_games.liars_dice`: one die with two sides, 2-2 to start."""
    game = large(dice(1, 2))
    two_twos = 3
    liar = 4
    tables = game.uniform()
    tables[0][:2] = [[0.8, 0, 0, 0.2, 0], [0.4, 0, 0, 0.6, 0]]
    assert np.array(game.reaches(tables, 0b0001)) == pytest.approx(
        np.array([[0.1, 0.3], [0.5, 0.5]]), abs=1e-7
    )
    # 1-1 holds whatever is dealt, so if it is called at once player 0 wins the other 0.6.
    tables[1][8:10] = np.eye(5)[liar]
    assert game.measure(tables).values[1] == pytest.approx(0.1 - 0.6, abs=1e-7)
    assert game.action_label(0, two_twos) == "bid 2-2"


@pytest.mark.slow
def test_two_dice_of_five_sides():
    game = large(LARGE)
    measure = game.measure(game.uniform())
    assert measure.exploitability == pytest.approx(0.890598, abs=5e-7)
    # Any equilibrium value lies between the best responses' values.
    assert -measure.best_values[1] < measure.best_values[0]
    tables = game.random(0)
    measure = game.measure(tables)
    lost = game.losses(tables)
    assert [one.sum() for one in lost] == pytest.approx(measure.gains, abs=1e-10)
    worst = measure.losses[:5]
    assert all(loss.lost == lost[loss.player][loss.infoset] for loss in worst)
    assert worst[0].lost == max(one.max() for one in lost)
    for player, best in enumerate(measure.best_responses):
        answer = np.zeros_like(tables[player])
        np.put_along_axis(answer, best[:, None].astype(np.intp), 1, axis=1)
        pair = (answer, tables[1]) if player == 0 else (tables[0], answer)
        answered = game.measure(pair)
        assert answered.values[player] == pytest.approx(measure.best_values[player], abs=1e-12)
        assert answered.best_values[player] == pytest.approx(measure.best_values[player], abs=1e-12)
