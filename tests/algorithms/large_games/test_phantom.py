"""Phantom tic-tac-toe and dark hex: products against a walk over histories, solvers, labels."""

import numpy as np
import pyspiel
import pytest

from algorithms.cfr import VARIANTS
from algorithms.games import load_game
from algorithms.large_games.phantom.evaluation import Evaluator
from algorithms.large_games.phantom.rules import hex_board, tic_tac_toe
from parity.large_games import infoset_of
from parity.reference.phantom_walk import find_tries, policies_of, walk
from parity.reference.public_stones import with_public_stones
from tests.large_games import HEX, dark_hex, large, tree_of

PTTT = "phantom_ttt(obstype=reveal-nothing)"
LARGE = {
    PTTT: (3_683_314, 2_307_355),
    "phantom_ttt(gameversion=abrupt)": (14_482_810, 8_827_459),
    "dark_hex(gameversion=cdh,board_size=3,obstype=reveal-nothing)": (3_720_850, 2_352_067),
    "dark_hex(gameversion=adh,board_size=3,obstype=reveal-nothing)": (16_497_034, 10_828_243),
}


@pytest.mark.parametrize(("name", "count"), LARGE.items())
def test_the_large_games_have_the_published_numbers_of_information_sets(name, count):
    assert large(name).num_infosets == count


def test_strings_of_classical_dark_hex_reveal_the_number_of_actions():
    """Hence the tree, which goes by strings, is another game."""
    name = dark_hex(2, 2, "cdh")
    assert large(name).num_infosets == (17, 53)
    assert np.bincount(load_game(name).tree.owner).tolist() == [33, 101]


CENTRE_AND_CORNER = 1 << 4, 1 << 0
BOARDS = {
    "hex 1x1": lambda **x: hex_board(1, 1, **x),
    "hex 1x3": lambda **x: hex_board(1, 3, **x),
    "hex 3x1": lambda **x: hex_board(3, 1, **x),
    "hex 2x2": lambda **x: hex_board(2, 2, **x),
    "hex 2x3": lambda **x: hex_board(2, 3, **x),
    "hex 3x2": lambda **x: hex_board(3, 2, **x),
    "hex 3x3 after two public moves": lambda **x: with_public_stones(
        hex_board(3, 3, **x), CENTRE_AND_CORNER
    ),
    "tic-tac-toe after two public moves": lambda **x: with_public_stones(
        tic_tac_toe(**x), CENTRE_AND_CORNER
    ),
}


@pytest.mark.parametrize("abrupt", [False, True], ids=["classical", "abrupt"])
@pytest.mark.parametrize("board", BOARDS)
def test_the_products_agree_with_a_walk_over_all_histories(board, abrupt):
    evaluator = Evaluator(BOARDS[board](abrupt=abrupt))
    tables = evaluator.random(0)
    tries = find_tries(evaluator.rules)
    policies = policies_of(tries, evaluator.sequences, [table.__getitem__ for table in tables])
    expected = walk(evaluator.rules, tries, policies)
    measure_found = evaluator.measure(tables)
    assert measure_found.values == pytest.approx(expected.values, abs=1e-12)
    assert measure_found.best_values == pytest.approx(expected.best_values, abs=1e-12)


def test_a_walk_counts_openspiels_histories():
    for name, abrupt in zip(HEX, (False, True), strict=True):
        assert find_tries(hex_board(2, 2, abrupt=abrupt)).histories == tree_of(name)[0].num_nodes


def test_measures_between_iterations_change_nothing():
    game = large(HEX[1])
    one = game.make_solver(VARIANTS["cfr+"])
    other = game.make_solver(VARIANTS["cfr+"])
    one.run(10)
    for _ in range(10):
        other.run(1)
        game.measure(other.average_policy())
    for a, b in zip(one.average_policy(), other.average_policy(), strict=True):
        assert (a == b).all()


def test_an_interrupted_solver_goes_on_where_it_was(monkeypatch):
    game = large(HEX[0])
    whole = game.make_solver(VARIANTS["pcfr+"])
    solver = game.make_solver(VARIANTS["pcfr+"])
    whole.run(6)
    set_terminal_values = Evaluator.set_terminal_values
    calls = []

    def interrupted(evaluator, player):
        calls.append(player)
        set_terminal_values(evaluator, player)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "set_terminal_values", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solver.run(6)
    assert solver.iterations == 1  # and player 0's update of the second
    solver.run(5)
    assert solver.iterations == 6
    for a, b in zip(whole.average_policy(), solver.average_policy(), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("name", [*LARGE, dark_hex(2, 3, "cdh"), dark_hex(3, 2, "adh")])
def test_actions_are_named_as_openspiel_names_them(name):
    game = large(name)
    state = pyspiel.load_game(name).new_initial_state()
    for player in (0, 1):
        for action in range(game.num_actions):
            expected = state.action_to_string(player, action)
            assert game.action_label(0, action, player) == expected


def test_information_sets_have_labels():
    game = large(PTTT)
    state = pyspiel.load_game(PTTT).new_initial_state()
    labels = []
    for action in (4, 0, 0, 8, 4, 2):
        labels.append(game.infoset_label(infoset_of(game, state), state.current_player()))
        state.apply_action(action)
    assert labels[0] == "player_0: first action"
    assert labels[5] == "player_1: took o(0,0), failed at o(1,1)"
    label = game.infoset_label(infoset_of(game, state), 0)
    assert label == "player_0: took x(1,1), failed at x(0,0), took x(2,2)"
