"""Phantom tic-tac-toe and dark hex: against OpenSpiel's states, the tree, and a walk."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pyspiel
import pytest

from algorithms.exact.cfr import VARIANTS
from algorithms.exact.phantom.rules import hex_board, tic_tac_toe, with_public_stones
from algorithms.exact.phantom.sequences import histories, infosets_of
from algorithms.exact.phantom.solver import PhantomSolver
from algorithms.exact.phantom.values import Evaluator, node_of, normalise
from algorithms.exact.phantom.walk import find_tries, walk
from algorithms.games import load_game
from algorithms.games.phantom import Phantom, find_phantom
from kuhn_bridge.errors import BridgeError, HistoryError
from tests.native_games import (
    ALTERNATING,
    HEX,
    POLICIES,
    SMALL_HEX,
    dark_hex,
    in_float64,
    native,
)

PTTT = "phantom_ttt(obstype=reveal-nothing)"
LARGE = {
    PTTT: (3_683_314, 2_307_355),
    "phantom_ttt(gameversion=abrupt)": (14_482_810, 8_827_459),
    "dark_hex(gameversion=cdh,board_size=3,obstype=reveal-nothing)": (3_720_850, 2_352_067),
    "dark_hex(gameversion=adh,board_size=3,obstype=reveal-nothing)": (16_497_034, 10_828_243),
}


class States:
    """All states of OpenSpiel's game, keyed by own sequences.

    An action a of information set i is numbered i * A + a + 1; 0 is no action.
    """

    def __init__(self, name):
        self.game, self.infosets = native(name), ({}, {})
        for player, found in enumerate(self.infosets):
            count = self.game.num_infosets[player]
            actions, outcomes = histories(self.game.sequences[player], 0, count)
            for infoset, (cells, code) in enumerate(zip(actions.tolist(), outcomes, strict=True)):
                own = [(cell, bool(code >> i & 1)) for i, cell in enumerate(cells) if cell >= 0]
                found[tuple(own)] = infoset
        self.tensors = [self.game.observations(p, 0, self.game.num_infosets[p]) for p in (0, 1)]
        self.legal = [self.game.legal(p, 0, self.game.num_infosets[p]) for p in (0, 1)]
        self.before = [np.full(count, -1) for count in self.game.num_infosets]
        self.decisions, self.ends = [], []
        self.visit(pyspiel.load_game(name).new_initial_state(), ((), ()), (0, 0), frozenset())
        self.payoffs, *self.last = np.array(self.ends).T
        self.last = [last.astype(int) for last in self.last]

    def visit(self, state, own, last, held):
        if state.is_terminal():
            self.ends.append((state.returns()[0], *last))
            return
        player = state.current_player()
        infoset = self.infosets[player][own[player]]
        self.decisions.append((player, infoset, last))
        if self.before[player][infoset] < 0:
            self.before[player][infoset] = last[player]
            assert self.game.infoset_of(state, player) == infoset
        assert self.before[player][infoset] == last[player]
        assert (self.tensors[player][infoset] == state.information_state_tensor()).all()
        assert np.flatnonzero(self.legal[player][infoset]).tolist() == state.legal_actions()
        for action in state.legal_actions():
            longer, actions = list(own), list(last)
            longer[player] = (*own[player], (action, action not in held))
            actions[player] = infoset * self.game.num_actions + action + 1
            self.visit(state.child(action), tuple(longer), tuple(actions), held | {action})

    def reach(self, tables):
        """The owner's probability of each sequence, by number of its last action."""
        found = []
        for before, table in zip(self.before, tables, strict=True):
            reach = np.ones(1 + table.size)
            for infoset, row in enumerate(in_float64(table)):  # parents come first
                first = infoset * len(row) + 1
                reach[first : first + len(row)] = reach[before[infoset]] * row
            found.append(reach)
        return found

    def measure(self, tables):
        """Player 0's value and the values of best responses."""
        reach = self.reach(tables)
        value = self.payoffs @ (reach[0][self.last[0]] * reach[1][self.last[1]])
        best = []
        for player, sign in ((0, 1), (1, -1)):
            won = sign * self.payoffs * reach[1 - player][self.last[1 - player]]
            gain = np.bincount(self.last[player], won, len(reach[player]))
            for infoset in reversed(range(len(self.before[player]))):
                actions = (
                    infoset * self.game.num_actions
                    + 1
                    + np.flatnonzero(self.legal[player][infoset])
                )
                gain[self.before[player][infoset]] += gain[actions].max()
            best.append(gain[0])
        return value, best


@cache
def states(name):
    return States(name)


@pytest.mark.parametrize("name", SMALL_HEX)
def test_tensors_masks_and_histories_are_openspiels_in_every_state(name):
    met = {(player, infoset) for player, infoset, _ in states(name).decisions}
    counts = native(name).num_infosets
    assert met == {(p, i) for p, count in enumerate(counts) for i in range(count)}


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", SMALL_HEX)
def test_the_measure_is_that_of_openspiels_states(name, kind):
    tables = POLICIES[kind](native(name))
    measure, (value, best_values) = native(name).measure(tables), states(name).measure(tables)
    gains = best_values[0] - value, best_values[1] + value
    assert measure.values == pytest.approx((value, -value), abs=1e-12)
    assert measure.best_values == pytest.approx(best_values, abs=1e-12)
    assert measure.gains == pytest.approx(gains, abs=1e-12)
    assert measure.nash_conv == pytest.approx(sum(gains), abs=1e-12)
    assert measure.exploitability == pytest.approx(sum(gains) / 2, abs=1e-12)


def assert_is_openspiels(game, state):
    player = state.current_player()
    infoset = game.infoset_of(state, player)
    seen = game.observations(player, infoset, infoset + 1)
    assert (seen[0] == state.information_state_tensor()).all()
    legal = game.legal(player, infoset, infoset + 1)
    assert np.flatnonzero(legal[0]).tolist() == state.legal_actions()
    actions, outcomes = histories(game.sequences[player], infoset, infoset + 1)
    own = [step.action for step in state.full_history() if step.player == player]
    assert actions[0].tolist() == own + [-1] * (game.num_actions - len(own))
    assert infosets_of(game.sequences[player], actions, outcomes).tolist() == [infoset]


@pytest.mark.parametrize("name", LARGE)
def test_tensors_masks_and_histories_are_openspiels_in_random_play(name):
    game, generator = native(name), np.random.default_rng(0)
    for _ in range(100):
        state = pyspiel.load_game(name).new_initial_state()
        while not state.is_terminal():
            assert_is_openspiels(game, state)
            state.apply_action(generator.choice(state.legal_actions()))
    assert game.observation_size == len(state.information_state_tensor(0))
    assert game.observations(0, 0, 1).dtype == np.float32


@pytest.mark.parametrize(("name", "count"), LARGE.items())
def test_the_large_games_have_the_published_numbers_of_information_sets(name, count):
    assert native(name).num_infosets == count


def test_strings_of_classical_dark_hex_reveal_the_number_of_actions():
    """Hence the tree, which goes by strings, is another game."""
    name = dark_hex(2, 2, "cdh")
    assert native(name).num_infosets == (17, 53)
    assert np.bincount(load_game(name).tree.owner).tolist() == [33, 101]


# The walk over histories: what the products must agree with on boards beyond OpenSpiel's speed.


def random_tables(evaluator, seed=0):
    generator, tables = np.random.default_rng(seed), []
    for sequences in evaluator.sequences:
        size = sequences.num_infosets, sequences.cells
        tables.append(generator.standard_exponential(size, np.float32))
        normalise(sequences, tables[-1])
    return tables


def walked(evaluator, tables, opening=()):
    """The walk's values of tables from a position on."""
    tries = find_tries(evaluator.rules, opening)
    policies = []
    for player, sequences in enumerate(evaluator.sequences):
        infosets = infosets_of(sequences, tries.actions[player], tries.outcomes[player])
        policy = np.zeros((len(infosets), sequences.cells))
        policy[infosets >= 0] = in_float64(tables[player][infosets[infosets >= 0]])
        policies.append(policy)
    return walk(evaluator.rules, tries, tuple(policies))


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
    tables = random_tables(evaluator)
    expected, found = walked(evaluator, tables), evaluator.evaluate(tables)
    assert found.values == pytest.approx(expected.values, abs=1e-12)
    assert found.best_values == pytest.approx(expected.best_values, abs=1e-12)


def test_a_walk_counts_histories():
    """OpenSpiel's, on 2x2 cells."""
    for name, abrupt in ((HEX[0], False), (HEX[1], True)):
        expected = len(states(name).decisions) + len(states(name).ends)
        assert find_tries(hex_board(2, 2, abrupt=abrupt)).histories == expected


def test_an_opening_may_not_end_the_game():
    with pytest.raises(HistoryError, match=r"opening \[0, 1, 2\]: the game ends at 2"):
        find_tries(hex_board(2, 2), [0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("opening", [(4, 0, 8), (4, 4, 0, 0, 8)])
def test_phantom_tic_tac_toe_agrees_with_a_walk_after_an_opening(opening):
    """Both players' tables play the opening, so its position is reached with certainty."""
    game = native(PTTT)
    evaluator, tables = game.evaluator, game.random(0)
    state, last = pyspiel.load_game(PTTT).new_initial_state(), [0, 0]
    for cell in opening:
        player = state.current_player()
        tables[player][game.infoset_of(state, player)] = np.eye(9)[cell]
        state.apply_action(cell)
    for player in (0, 1):
        own = game.history_of(state, player)
        actions = np.array([[*(cell for cell, _ in own), *[-1] * (9 - len(own))]], np.int8)
        outcomes = 1 << len(own) | sum(success << i for i, (_, success) in enumerate(own))
        last[player] = infosets_of(game.sequences[player], actions, np.array([outcomes], np.int16))[
            0
        ]
    expected, found = walked(evaluator, tables, opening), evaluator.evaluate(tables)
    assert found.values == pytest.approx(expected.values, abs=1e-12)
    best = [evaluator.values[p][node_of(game.sequences[p], last[p])] for p in (0, 1)]
    assert best == pytest.approx(expected.best_values, abs=1e-12)


@pytest.mark.slow
def test_uniform_play_of_phantom_tic_tac_toe_has_the_published_exploitability():
    game = native(PTTT)
    assert game.measure(game.uniform()).exploitability == pytest.approx(0.788732, abs=5e-7)


@pytest.mark.parametrize("name", SMALL_HEX)
def test_reach_is_that_of_openspiels_states(name):
    game = native(name)
    tables = game.random(8)
    reach, expected = states(name).reach(tables), Counter()
    for player, infoset, last in states(name).decisions:
        expected[player, infoset] += reach[0][last[0]] * reach[1][last[1]]
    for loss in game.measure(tables).losses:
        assert loss.reach == pytest.approx(expected[loss.player, loss.infoset], abs=1e-12)


def discount(t, exponent):
    if np.isinf(exponent):
        return float(exponent > 0)
    return t**exponent / (t**exponent + 1)


def iterated(name, variant, regrets, iterations):
    """The average policy by the equations of the solver's docstring, on OpenSpiel's states."""
    game, found = native(name), states(name)
    regrets, predicted = [x.copy() for x in regrets], [x.copy() for x in regrets]
    average = [np.zeros_like(x) for x in regrets]

    def policy(player):
        weights = np.maximum(predicted[player], 0)
        sums = weights.sum(axis=1, keepdims=True)
        legal = found.legal[player]
        return np.where(
            sums > 0, weights / np.where(sums > 0, sums, 1), legal / legal.sum(1)[:, None]
        )

    for t, player in product(range(1, iterations + 1), (0, 1)):
        mine, both = policy(player), (policy(0), policy(1))
        reach = found.reach(both)
        won = (1 - 2 * player) * found.payoffs * reach[1 - player][found.last[1 - player]]
        gain = np.bincount(found.last[player], won, len(reach[player]))
        for infoset in reversed(range(game.num_infosets[player])):
            first, before = infoset * game.num_actions + 1, found.before[player][infoset]
            values = gain[first : first + game.num_actions]
            mean = mine[infoset] @ values
            gain[before] += mean
            news = np.where(found.legal[player][infoset], values - mean, 0)
            total = regrets[player][infoset] + news
            kept = np.where(total >= 0, discount(t, variant.alpha), discount(t, variant.beta))
            regrets[player][infoset] = total * kept
            predicted[player][infoset] = total * kept + variant.predictive * news
            average[player][infoset] += t**variant.gamma * reach[player][before] * mine[infoset]
    return [in_float64(table) for table in average]


@pytest.mark.parametrize("variant", ALTERNATING)
@pytest.mark.parametrize("name", HEX)
def test_a_solver_follows_its_equations(name, variant):
    """From random regrets: in the first iterations from 0, rounding would decide between ties."""
    game, generator = native(name), np.random.default_rng(1)
    regrets = [generator.random(legal.shape) * legal for legal in states(name).legal]
    solver = PhantomSolver(game.evaluator, VARIANTS[variant], dtype=np.float64)
    state = {key: np.zeros_like(array) for key, array in solver.get_state().items()}
    for player, key in product((0, 1), ("regret", "predicted")):
        state[f"{key}_{player}"] = regrets[player]
    solver.set_state(state)
    solver.run(4)
    expected = iterated(name, VARIANTS[variant], regrets, 4)
    for found, table in zip(solver.average_policy(), expected, strict=True):
        assert found == pytest.approx(table, abs=1e-6)  # tables are float32


def test_measures_between_iterations_change_nothing():
    game = native(HEX[1])
    one, other = game.make_solver(VARIANTS["cfr+"]), game.make_solver(VARIANTS["cfr+"])
    one.run(10)
    for _ in range(10):
        other.run(1)
        game.measure(other.average_policy())
    for a, b in zip(one.average_policy(), other.average_policy(), strict=True):
        assert (a == b).all()


def test_an_interrupted_solver_goes_on_where_it_was(monkeypatch):
    game = native(HEX[0])
    whole, solver = game.make_solver(VARIANTS["pcfr+"]), game.make_solver(VARIANTS["pcfr+"])
    whole.run(6)
    set_terminal_values, calls = Evaluator.set_terminal_values, []

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


# Names, labels, errors.


@pytest.mark.parametrize(
    ("name", "cells", "abrupt"),
    [
        ("phantom_ttt", 9, False),
        ("phantom_ttt()", 9, False),
        (PTTT, 9, False),
        ("phantom_ttt(gameversion=abrupt,obstype=reveal-nothing)", 9, True),
        ("dark_hex", 9, False),
        ("dark_hex(board_size=2)", 4, False),
        ("dark_hex(gameversion=adh,board_size=2,num_cols=4)", 8, True),
    ],
)
def test_a_phantom_game_is_recognised(name, cells, abrupt):
    game = native(name)
    assert isinstance(game, Phantom)
    assert (game.rules.cells, game.rules.abrupt, game.num_actions) == (cells, abrupt, cells)


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        "tic_tac_toe",
        "dark_hex_ir",
        "phantom_ttt_ir",
        "phantom_ttt(obstype=reveal-numturns)",
        "dark_hex(board_size=2,obstype=reveal-numturns)",
        "dark_hex(board_size=4)",
        "dark_hex(num_rows=2,num_cols=5)",
    ],
)
def test_other_games_and_larger_boards_are_not(name):
    assert find_phantom(pyspiel.load_game(name)) is None


@pytest.mark.parametrize("name", [*LARGE, dark_hex(2, 3, "cdh"), dark_hex(3, 2, "adh")])
def test_actions_are_named_as_openspiel_names_them(name):
    game, state = native(name), pyspiel.load_game(name).new_initial_state()
    for player in (0, 1):
        for action in range(game.num_actions):
            expected = state.action_to_string(player, action)
            assert game.action_label(player, 0, action) == expected


def test_information_sets_have_labels():
    game, state = native(PTTT), pyspiel.load_game(PTTT).new_initial_state()
    assert game.infoset_label(0, game.infoset_of(state, 0)) == "player_0: first action"
    for action in (4, 0, 0, 8, 4):
        state.apply_action(action)
    assert game.infoset_label(1, game.infoset_of(state, 1)) == (
        "player_1: took o(0,0), failed at o(1,1)"
    )
    state.apply_action(2)
    assert game.infoset_label(0, game.infoset_of(state, 0)) == (
        "player_0: took x(1,1), failed at x(0,0), took x(2,2)"
    )


def test_only_the_player_to_act_has_an_information_set():
    state = pyspiel.load_game(HEX[0]).new_initial_state()
    with pytest.raises(HistoryError, match="player 1 is not to act"):
        native(HEX[0]).infoset_of(state, 1)


@pytest.mark.parametrize(("rows", "cols"), [(2, 5), (0, 3), (4, 4)])
def test_boards_that_do_not_fit_are_refused(rows, cols):
    with pytest.raises(BridgeError, match=rf"a {rows}x{cols} board"):
        hex_board(rows, cols)


def test_public_stones_may_not_decide_the_game():
    for stones in ((0b11, 0b10), (0b111, 0)):
        with pytest.raises(BridgeError, match="stones"):
            with_public_stones(tic_tac_toe(), stones)
