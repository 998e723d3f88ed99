"""What every large exact game does: measures, losses, tables and solvers, beside the tree."""

import numpy as np
import pyspiel
import pytest

from algorithms.cfr import VARIANTS, iteration_weights
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import evaluate_policy, reach_probabilities
from algorithms.games import large_game as find_large_game
from algorithms.large_games import large_game
from algorithms.policies import Policy, load_policy
from kuhn_bridge.errors import BridgeError, GameError, PolicyError
from tests.large_games import (
    ALTERNATING,
    DICE,
    HEX,
    POKER,
    POLICIES,
    SMALL_DICE,
    SMALL_HEX,
    SMALL_POKER,
    dice,
    large,
    on_tree,
    pure,
    tree_of,
)

ONE_OF_EACH = [HEX[0], DICE[2], POKER[4]]
MAIN_VARIANTS = ["cfr+", "dcfr", "pcfr+"]


@pytest.fixture
def all_losses(monkeypatch):
    monkeypatch.setattr(large_game, "MAX_LOSSES", 10**6)


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", [*SMALL_HEX, *SMALL_DICE, *SMALL_POKER])
def test_the_measure_and_the_losses_are_those_of_openspiels_states(name, kind, all_losses):
    game = large(name)
    tree, rows = tree_of(name)
    tables = POLICIES[kind](game)
    measure = game.measure(tables)
    expected = evaluate_policy(tree, on_tree(name, tables))
    for number in ("values", "best_values", "gains", "nash_conv", "exploitability"):
        assert getattr(measure, number) == pytest.approx(getattr(expected, number), abs=1e-12)
    losses = {loss.infoset: loss for loss in expected.losses}
    others = [losses.pop(rows[loss.player][loss.infoset]) for loss in measure.losses]
    assert not losses
    for number in ("reach", "lost", "probability"):
        both = ([getattr(loss, number) for loss in found] for found in (measure.losses, others))
        np.testing.assert_allclose(*both, rtol=0, atol=1e-12)
    lost = [loss.lost for loss in measure.losses]
    assert lost == sorted(lost, reverse=True)
    for loss, other in zip(measure.losses, others, strict=True):
        assert loss.played == other.played
        assert loss.best == measure.best_responses[loss.player][loss.infoset]


@pytest.mark.parametrize("name", [*SMALL_HEX, *SMALL_DICE, *SMALL_POKER])
def test_best_responses_win_their_values_and_losses_sum_to_the_gains(name, all_losses):
    game = large(name)
    tables = game.random(6)
    measure = game.measure(tables)
    responses = pure(game, measure.best_responses)
    for player in (0, 1):
        pair = [responses[p] if p == player else tables[p] for p in (0, 1)]
        won = game.measure(pair).values[player]
        assert won == pytest.approx(measure.best_values[player], abs=1e-12)
        lost = sum(loss.lost for loss in measure.losses if loss.player == player)
        assert lost == pytest.approx(measure.gains[player], abs=1e-9)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_only_the_largest_losses_are_kept(name, monkeypatch):
    game = large(name)
    tables = game.random(5)
    every = game.measure(tables).losses
    for count in (7, 0):
        monkeypatch.setattr(large_game, "MAX_LOSSES", count)
        measure = game.measure(tables)
        game.measure(game.uniform())  # a phantom game's arrays hold another policy now
        assert measure.losses == every[:count]
        assert len(measure.losses) == count


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (1, 5), (4, 53), (17, 17)])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_batch_is_a_part_of_the_whole(name, start, stop):
    game = large(name)
    count = game.num_infosets[1]
    whole = game.tensors(1, 0, count), game.legal(1, 0, count)
    assert (game.tensors(1, start, stop) == whole[0][start:stop]).all()
    assert (game.legal(1, start, stop) == whole[1][start:stop]).all()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_some_information_sets_are_rows_of_the_whole(name):
    game = large(name)
    count = game.num_infosets[1]
    infosets = np.array([0, 3, 4, count - 1])
    whole = game.tensors(1, 0, count), game.legal(1, 0, count)
    assert (game.tensors_at(1, infosets) == whole[0][infosets]).all()
    assert (game.legal_at(1, infosets) == whole[1][infosets]).all()
    # The numbering of both players has player 1's after player 0's.
    tables = game.random(2)
    rows = game.policy_rows(tables, np.array([1, *(game.num_infosets[0] + infosets)]))
    assert (rows.probabilities[1:] == tables[1][infosets]).all()
    assert (rows.probabilities[0] == tables[0][1]).all()
    assert (rows.legal[1:] == whole[1][infosets]).all()
    seats = rows.inputs[:, game.observation_size :]
    assert seats.tolist() == [[1, 0], *([0, 1] for _ in infosets)]
    assert (rows.inputs[1:, : game.observation_size] == whole[0][infosets]).all()


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", [*HEX, *DICE, *POKER])
def test_own_reach_is_that_of_openspiels_states(name, kind):
    game = large(name)
    tree, rows = tree_of(name)
    tables = POLICIES[kind](game)
    reach = reach_probabilities(tree, on_tree(name, tables))[tree.parent_sequence]
    expected = np.concatenate([reach[row] for row in rows])
    np.testing.assert_allclose(game.own_reach(tables), expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_policy_goes_into_a_network_and_its_file(name, tmp_path):
    game = large(name)
    policy = Policy(game, game.make_solver("dcfr").average_policy())
    distilled = policy.distil(width=8, steps=300)
    assert distilled.nash_conv_after == pytest.approx(distilled.nash_conv_before, abs=0.05)
    assert distilled.nash_conv_after == min(value for _, value in distilled.curve)
    path = tmp_path / "model.zip"
    distilled.save(path)
    again = load_policy(path, game)
    assert again.nash_conv() == pytest.approx(distilled.nash_conv_after, abs=1e-6)
    # A network's own file, and a copy of it.
    for copy in (tmp_path / "copy.zip", tmp_path / "copy.onnx"):
        again.save(copy)
        tables = load_policy(copy, game).table
        assert all(
            np.abs(one - other).max() < 1e-6 for one, other in zip(tables, again.table, strict=True)
        )


@pytest.mark.parametrize("kind", ["uniform", "random"])
@pytest.mark.parametrize("name", [*HEX, *DICE, *POKER])
def test_tables_are_distributions_over_the_legal_actions(name, kind):
    game = large(name)
    for player, table in enumerate(POLICIES[kind](game)):
        legal = game.legal(player, 0, game.num_infosets[player])
        assert table.dtype == np.float32
        assert ((table > 0) == legal).all()
        assert table.sum(axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_random_policy_is_drawn_from_its_seed(name):
    game = large(name)
    one = game.random(1)
    same = game.random(1)
    other = game.random(2)
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert not any((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", ["sum", "negative", "nan", "illegal action", "nothing"])
@pytest.mark.parametrize("name", [HEX[0], DICE[0], POKER[0]])
def test_a_row_that_is_not_a_distribution_is_refused(name, kind):
    game = large(name)
    tables = game.uniform()
    legal = game.legal(0, 1, 2)[0]
    first, second, *_ = np.flatnonzero(legal)
    row = tables[0][1]
    if kind == "sum":
        row *= 0.9
    elif kind in ("negative", "nan"):
        row[:] = 0
        row[first], row[second] = (1.5, -0.5) if kind == "negative" else (np.nan, 1)
    else:
        row[:] = ~legal / (~legal).sum() if kind == "illegal action" else 0
    with pytest.raises(PolicyError, match=r"player 0, information set 1: .* not probabilities"):
        game.measure(tables)


def test_tables_of_another_game_are_refused():
    with pytest.raises(PolicyError, match=r"tables of shapes \[\(17, 4\), \(53, 4\)\]; got"):
        large(HEX[0]).measure(large(HEX[1]).uniform())
    with pytest.raises(PolicyError, match=r"tables of shapes \[\(96, 7\), \(96, 7\)\]; got"):
        large(DICE[0]).measure(large(DICE[1]).uniform())


@pytest.mark.parametrize("variant", MAIN_VARIANTS)
@pytest.mark.parametrize("name", [*SMALL_HEX, *DICE])
def test_a_solver_converges_in_float32(name, variant):
    game = large(name)
    solver = game.make_solver(VARIANTS[variant])
    solver.run(300)
    most = 0.002 if name in DICE else 0.005
    assert game.measure(solver.average_policy()).nash_conv < most


SOLVED = [
    (name, variant)
    for name in (*HEX, *DICE[:2], POKER[0])
    for variant in (ALTERNATING if name in HEX else VARIANTS)
]


@pytest.mark.parametrize(("name", "variant"), SOLVED)
def test_a_solver_averages_what_the_trees_solver_averages(name, variant):
    """Over a few iterations: later a tie may be broken by rounding, in either direction.

    Hex has ties in the first iterations too, unless they begin with random regrets.
    """
    game = large(name)
    tree, rows = tree_of(name)
    ours = game.make_solver(VARIANTS[variant])
    theirs = ExactSolver(tree, VARIANTS[variant])
    if name in HEX:
        regrets = np.random.default_rng(1).random(tree.num_choices)
        theirs._regret[:] = regrets
        state = ours.get_state()
        for player in (0, 1):
            state[f"regret_{player}"][:] = tree.table_of(regrets)[rows[player]]
            if "predicted_0" in state:
                state[f"predicted_{player}"][:] = state[f"regret_{player}"]
    for _ in range(4):
        ours.run(1)
        theirs.run(1)
        found = on_tree(name, ours.average_policy())
        assert found == pytest.approx(theirs.average_policy(), abs=1e-5)  # tables are float32
        last = on_tree(name, ours.current_policy())
        assert last == pytest.approx(theirs.current_policy(), abs=1e-4)


@pytest.mark.parametrize("variant", ALTERNATING)
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_resumed_solver_continues_bit_by_bit(name, variant):
    game = large(name)
    whole, half, resumed = (game.make_solver(VARIANTS[variant]) for _ in range(3))
    whole.run(20)
    half.run(8)
    state = {key: array.copy() for key, array in half.get_state().items()}
    half.run(5)  # changes the arrays of the state that was copied
    resumed.set_state(state)
    assert resumed.iterations == 8
    resumed.run(12)
    for a, b in zip(whole.average_policy(), resumed.average_policy(), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize(
    ("name", "variant", "options", "why"),
    [
        (POKER[0], "es-mccfr", {}, "pdcfr.*cfr-simultaneous; es-mccfr samples episodes of a tree"),
        (HEX[0], "cfr-simultaneous", {}, "needs both players' policies of an iteration at once"),
        (POKER[0], "cfr", {"mode": "exact"}, "solvers have no mode"),
    ],
)
def test_what_does_not_solve_a_large_game_says_why(name, variant, options, why):
    with pytest.raises(GameError, match=why):
        large(name).make_solver(variant, **options)


def test_other_discounts_are_another_variant():
    game = large(POKER[0])
    ours = game.make_solver("dcfr", discounts=(1, 1, 1))
    linear = game.make_solver("lcfr")
    for solver in (ours, linear):
        solver.run(5)
    assert (ours.average_policy()[0] == linear.average_policy()[0]).all()


def test_simultaneous_updates_resume_between_the_players():
    """Ctrl-C can come after one player's update."""
    game = large(POKER[0])
    whole, half, resumed = (game.make_solver("cfr-simultaneous") for _ in range(3))
    whole.run(9)
    half.run(4)
    half._update(0, iteration_weights(half.variant.numbers, 5))
    resumed.set_state({key: array.copy() for key, array in half.get_state().items()})
    resumed.run(5)
    for a, b in zip(whole.average_policy(), resumed.average_policy(), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_iterations_below_zero_are_refused(name):
    with pytest.raises(BridgeError, match="iterations must be 0 or more; got -1"):
        large(name).make_solver(VARIANTS["cfr+"]).run(-1)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_state_of_another_variant_is_refused(name):
    state = large(name).make_solver(VARIANTS["cfr+"]).get_state()
    with pytest.raises(BridgeError, match="not the state"):
        large(name).make_solver(VARIANTS["pcfr+"]).set_state(state)


@pytest.mark.parametrize(
    ("name", "cells", "abrupt"),
    [
        ("phantom_ttt", 9, False),
        ("phantom_ttt(gameversion=abrupt,obstype=reveal-nothing)", 9, True),
        ("dark_hex", 9, False),
        ("dark_hex(board_size=2)", 4, False),
        ("dark_hex(gameversion=adh,board_size=2,num_cols=4)", 8, True),
    ],
)
def test_a_phantom_game_is_recognised(name, cells, abrupt):
    game = large(name)
    assert (game.rules.cells, game.rules.abrupt, game.num_actions) == (cells, abrupt, cells)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("liars_dice", (1, 6, 24_576)),
        ("liars_dice(dice_sides=3,numdice=2)", (2, 3, 24_576)),
        ("liars_dice(dice_sides=1)", (1, 1, 4)),
        (dice(2, 5), (2, 5, 15_728_640)),
    ],
)
def test_liars_dice_is_recognised(name, found):
    game = large(name)
    assert (game.rules.dice, len(game.rules.matches), sum(game.num_infosets)) == found


@pytest.mark.parametrize(
    "name",
    [
        *("kuhn_poker", "leduc_poker", "tic_tac_toe"),
        *("dark_hex_ir", "phantom_ttt_ir", "liars_dice_ir"),
        "phantom_ttt(obstype=reveal-numturns)",
        "dark_hex(board_size=2,obstype=reveal-numturns)",
        *("dark_hex(board_size=4)", "dark_hex(num_rows=2,num_cols=5)"),
        *(dice(2, 6), dice(5, 6), dice(99, 99)),
    ],
)
def test_other_games_and_larger_ones_are_not(name):
    assert find_large_game(pyspiel.load_game(name), name) is None
