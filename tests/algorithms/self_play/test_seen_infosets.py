"""Information sets that are numbered as they come up, and how often play comes back to them."""

import numpy as np
import pytest

from algorithms.games import load_game
from algorithms.self_play.seen_infosets import UNSEEN, SeenInfosets, infosets_recur, recurrence
from tests.games import LEDUC

LEGAL = np.array([[True, False, True], [True, True, True]])


def observation(*numbers):
    return np.array([numbers], np.float32)


def test_numbers_follow_the_order_in_which_information_sets_are_seen():
    infosets = SeenInfosets(2, 3)
    both = np.array([[1, 0], [0, 1]], np.float32)
    assert infosets.number(both, LEGAL).tolist() == [0, 1]
    assert infosets.number(both[::-1], LEGAL[::-1]).tolist() == [1, 0]
    twice = np.array([[7, 7], [7, 7]], np.float32)
    assert infosets.number(twice, LEGAL[[0, 0]]).tolist() == [2, 2]
    assert infosets.find(np.vstack([both, observation(3, 4)])).tolist() == [0, 1, UNSEEN]
    assert np.array_equal(infosets.observations(), [[1, 0], [0, 1], [7, 7]])
    assert infosets.first_choice().tolist() == [0, 2, 5, 7]


def test_zero_and_minus_zero_are_the_same_number():
    infosets = SeenInfosets(2, 3)
    assert infosets.number(observation(0, 1), LEGAL[:1]).tolist() == [0]
    assert infosets.find(observation(-0.0, 1)).tolist() == [0]


def test_new_information_sets_are_played_uniformly():
    infosets = SeenInfosets(2, 3)
    infosets.number(np.array([[1, 0], [0, 1]], np.float32), LEGAL)
    assert infosets.running_sums == pytest.approx(np.array([[1 / 2, 1 / 2, 1], [1 / 3, 2 / 3, 1]]))


def test_thousands_keep_their_numbers_and_survive_a_checkpoint():
    infosets = SeenInfosets(1, 3)
    many = np.arange(5_000, dtype=np.float32)[:, np.newaxis]
    legal = np.ones((5_000, 3), np.bool_)
    legal[::2, 1] = False
    for start in range(0, 5_000, 100):
        part = slice(start, start + 100)
        assert infosets.number(many[part], legal[part]).tolist() == list(range(start, start + 100))
    infosets.owner[:] = np.arange(5_000) % 2
    copy = SeenInfosets(1, 3)
    copy.set_state(infosets.get_state())
    assert np.array_equal(copy.find(many)[:, np.newaxis], many)
    assert np.array_equal(copy.legal, legal)
    assert np.array_equal(copy.owner, infosets.owner)


@pytest.mark.parametrize(
    ("game", "recurs"),
    [
        (LEDUC, True),
        ("liars_dice(numdice=1,dice_sides=5)", True),
        ("river(board=7dJc3s9hQd,pot=2000)", False),
        ("phantom_ttt", False),
        ("dark_hex(num_rows=4,num_cols=3)", False),
    ],
)
def test_random_play_tells_whether_information_sets_recur(game, recurs):
    assert infosets_recur(load_game(game)) is recurs


def test_all_information_sets_of_a_small_game_are_seen():
    found = recurrence(load_game("kuhn_poker"))
    assert (found.seen, found.share_seen_once) == (12, 0)
