"""Liar's Dice by its public states: against the tree and OpenSpiel's states."""

from functools import cache

import numpy as np
import pyspiel
import pytest

from algorithms.exact.cfr import CFR_SIMULTANEOUS, VARIANTS, Solver
from algorithms.exact.liars_dice import evaluate, liars_dice_rules, ranges
from algorithms.exact.liars_dice import losses as exact_losses
from algorithms.exact.liars_dice_cfr import LiarsDiceSolver
from algorithms.exact.values import evaluate_policy
from algorithms.games import load_game
from algorithms.games.liars_dice import find_liars_dice
from kuhn_bridge.errors import BridgeError, HistoryError, PolicyError


def name_of(dice, sides, rule=""):
    return f"liars_dice(numdice={dice},dice_sides={sides}{rule and f',bidding_rule={rule}'})"


LARGE = name_of(2, 5)
QUICK = [name_of(1, 3), name_of(1, 4), name_of(2, 2), name_of(2, 2, "reset-quantity")]
SLOW = [name_of(1, 5), name_of(1, 6), name_of(2, 3), name_of(1, 5, "reset-quantity")]
SMALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@cache
def native(name):
    return find_liars_dice(name)


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


@cache
def tree_rows(name):
    """Each player's information sets as rows of the tree: one `(I_p,)` per player."""
    game, tree = native(name), load_game(name).tree
    row_of = {pair: row for row, pair in enumerate(zip(tree.owner, tree.keys, strict=True))}
    rows = [np.full(count, -1) for count in game.num_infosets]
    for state in decisions(name):
        player = state.current_player()
        key = player, state.information_state_string()
        rows[player][game.infoset_of(state, player)] = row_of[key]
    return rows


def on_tree(name, tables):
    """Tables as the tree's policy `(I, A)`, normalised in float64."""
    policy = np.zeros(load_game(name).tree.legal.shape)
    for table, rows in zip(tables, tree_rows(name), strict=True):
        policy[rows] = table / table.sum(axis=1, keepdims=True, dtype=np.float64)
    return policy


def pure(game, actions):
    """The tables that always play `actions`, one `(I_p,)` per player."""
    columns = np.arange(game.num_actions)
    return tuple((columns == chosen[:, None]).astype(np.float32) for chosen in actions)


POLICIES = {
    "uniform": lambda game: game.uniform(),
    "random": lambda game: game.random(3),
    # Most information sets have reach probability 0.
    "pure": lambda game: pure(game, game.measure(game.random(4)).best_response),
}


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", SMALL)
def test_the_measure_is_the_trees(name, kind):
    game = native(name)
    tables = POLICIES[kind](game)
    expected = evaluate_policy(load_game(name).tree, on_tree(name, tables))
    measure = game.measure(tables)
    assert measure.values == pytest.approx(expected.values, abs=1e-12)
    assert measure.best_values == pytest.approx(expected.best_values, abs=1e-12)
    assert measure.gains == pytest.approx(expected.gains, abs=1e-12)
    assert measure.nash_conv == pytest.approx(expected.nash_conv, abs=1e-12)
    assert measure.exploitability == pytest.approx(expected.exploitability, abs=1e-12)


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", SMALL)
def test_the_losses_are_the_trees(name, kind):
    game, rows = native(name), tree_rows(name)
    tables = POLICIES[kind](game)
    expected = {
        loss.infoset: loss
        for loss in evaluate_policy(load_game(name).tree, on_tree(name, tables)).losses
    }
    measure = game.measure(tables)
    found = measure.losses(sum(game.num_infosets))
    assert {rows[loss.player][loss.infoset] for loss in found} == set(expected)
    assert [loss.lost for loss in found] == sorted((loss.lost for loss in found), reverse=True)
    for loss in found:
        other = expected[rows[loss.player][loss.infoset]]
        assert loss.reach == pytest.approx(other.reach, abs=1e-12)
        assert loss.lost == pytest.approx(other.lost, abs=1e-12)
        assert loss.probability == pytest.approx(other.probability, abs=1e-12)
        assert loss.played == other.played
        assert loss.best == measure.best_response[loss.player][loss.infoset]


@pytest.mark.parametrize("name", SMALL)
def test_only_the_largest_losses_are_returned(name):
    measure = native(name).measure(native(name).random(5))
    assert measure.losses(7) == measure.losses(1000)[:7]
    assert len(measure.losses(7)) == 7
    assert measure.losses(0) == ()


@pytest.mark.parametrize("name", SMALL)
def test_the_best_responses_are_the_trees(name):
    """Where two actions are equally good up to rounding, either is right: their values tell."""
    game, tree = native(name), load_game(name).tree
    tables = game.random(6)
    expected = evaluate_policy(tree, on_tree(name, tables))
    measure = game.measure(tables)
    agree = [
        np.mean(found == expected.best_responses[rows])
        for found, rows in zip(measure.best_response, tree_rows(name), strict=True)
    ]
    assert min(agree) > 0.98
    answers = pure(game, measure.best_response)
    for player in range(2):
        pair = tuple(answers[p] if p == player else tables[p] for p in range(2))
        assert evaluate_policy(tree, on_tree(name, pair)).values[player] == pytest.approx(
            measure.best_values[player], abs=1e-12
        )


def test_of_equally_good_actions_the_first_is_the_best_response():
    """Both players call the first bid, so after three bids an opponent never arrives."""
    game = native(name_of(2, 2))
    call = pure(game, [np.full(count, game.num_actions - 1) for count in game.num_infosets])
    call[0][: len(game.rules.rolls)] = np.eye(game.num_actions)[0]  # there is nothing to call yet
    measure = game.measure(call)
    dice_and_three_bids = 7
    for state in decisions(game.name):
        if state.move_number() < dice_and_three_bids:
            continue
        player = state.current_player()
        best = measure.best_response[player][game.infoset_of(state, player)]
        assert best == state.legal_actions()[0]


@pytest.mark.parametrize("name", SMALL)
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


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (1, 5), (4, 30), (17, 17)])
def test_a_batch_is_a_part_of_the_whole(start, stop):
    game = native(name_of(2, 2))
    for player in range(2):
        whole = game.observations(player, 0, 384), game.legal(player, 0, 384)
        assert (game.observations(player, start, stop) == whole[0][start:stop]).all()
        assert (game.legal(player, start, stop) == whole[1][start:stop]).all()


@pytest.mark.parametrize("kind", ["uniform", "random"])
@pytest.mark.parametrize("name", QUICK)
def test_tables_are_distributions_over_the_legal_actions(name, kind):
    game = native(name)
    for player, table in enumerate(POLICIES[kind](game)):
        legal = game.legal(player, 0, game.num_infosets[player])
        assert table.dtype == np.float32
        assert ((table > 0) == legal).all()
        assert table.sum(axis=1) == pytest.approx(1, abs=1e-6)


def test_a_random_policy_is_drawn_from_its_seed():
    game = native(name_of(2, 2))
    one, same, other = game.random(1), game.random(1), game.random(2)
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert not any((a == b).all() for a, b in zip(one, other, strict=True))


def test_information_sets_and_actions_have_labels():
    game = native(name_of(2, 3))
    state = pyspiel.load_game(name_of(2, 3)).new_initial_state()
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
    game = native(name_of(2, 3, rule))
    state = pyspiel.load_game(game.name).new_initial_state()
    for _ in range(4):
        state.apply_action(0)
    names = [state.action_to_string(action) for action in state.legal_actions()]
    labels = [game.action_label(0, 0, action) for action in state.legal_actions()]
    assert labels == [f"bid {name}" for name in names]


def test_only_the_player_to_act_has_an_information_set():
    state = pyspiel.load_game(name_of(1, 3)).new_initial_state()
    for move in (0, 1):
        with pytest.raises(HistoryError, match="player 0 is not to act"):
            native(name_of(1, 3)).infoset_of(state, 0)
        state.apply_action(move)
    with pytest.raises(HistoryError, match="player 1 is not to act"):
        native(name_of(1, 3)).infoset_of(state, 1)


def test_a_range_is_chance_times_own_actions():
    """The example of `algorithms.exact.liars_dice`: one die with two sides, 2-2 to start."""
    game = native(name_of(1, 2))
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
    for given in (name, pyspiel.load_game(name)):
        game = find_liars_dice(given)
        dice, sides = game.rules.dice, len(game.rules.matches)
        assert (dice, sides, sum(game.num_infosets)) == found
    assert find_liars_dice(name).name == name


@pytest.mark.parametrize(
    "name", ["kuhn", "leduc_poker", "liars_dice_ir", name_of(2, 6), name_of(5, 6), name_of(99, 99)]
)
def test_other_games_and_larger_ones_are_not(name):
    assert find_liars_dice(name) is None


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([0.5, 0.4, 0, 0, 0], "sum"),
        ([1.5, -0.5, 0, 0, 0], "negative"),
        ([np.nan, 1, 0, 0, 0], "nan"),
        ([0, 0, 0, 0, 1], "liar before any bid"),
        ([0, 0, 0, 0, 0], "nothing"),
    ],
)
def test_what_is_no_distribution_is_refused(row, what):
    game = native(name_of(1, 2))
    tables = game.uniform()
    tables[0][1] = row
    with pytest.raises(PolicyError, match=r"player 0, information set 1: .* not probabilities"):
        game.measure(tables)


def test_tables_of_another_game_are_refused():
    with pytest.raises(PolicyError, match=r"two tables of shape \(96, 7\); got"):
        evaluate(liars_dice_rules(1, 3), native(name_of(1, 2)).uniform())


ALTERNATING = [name for name, variant in VARIANTS.items() if variant.alternating]


@pytest.mark.parametrize("variant", ALTERNATING)
@pytest.mark.parametrize("name", [name_of(1, 3), name_of(1, 4)])
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


@pytest.mark.parametrize("variant", ["cfr+", "dcfr", "pcfr+"])
@pytest.mark.parametrize("name", QUICK)
def test_a_solver_converges_in_float32(name, variant):
    game = native(name)
    solver = LiarsDiceSolver(game.rules, VARIANTS[variant])
    solver.run(300)
    assert game.measure(solver.average_policy()).nash_conv < 0.002


@pytest.mark.parametrize("variant", ALTERNATING)
def test_a_solver_continues_from_its_state(variant):
    game = native(name_of(2, 2))
    whole, begun, resumed = (LiarsDiceSolver(game.rules, VARIANTS[variant]) for _ in range(3))
    whole.run(9)
    begun.run(4)
    resumed.set_state({name: array.copy() for name, array in begun.get_state().items()})
    resumed.run(5)
    assert resumed.iterations == 9
    for one, other in zip(whole.average_policy(), resumed.average_policy(), strict=True):
        assert (one == other).all()


def test_a_simultaneous_variant_is_refused():
    with pytest.raises(BridgeError, match="alternating variants only"):
        LiarsDiceSolver(liars_dice_rules(1, 2), CFR_SIMULTANEOUS)


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
    lost = exact_losses(game.rules, tables)
    assert [one.sum() for one in lost] == pytest.approx(measure.gains, abs=1e-10)
    worst = measure.losses(5)
    assert len(worst) == 5
    assert all(loss.lost == lost[loss.player][loss.infoset] for loss in worst)
    assert worst[0].lost == max(one.max() for one in lost)
    for player in range(2):
        answer = np.zeros_like(tables[player])
        np.put_along_axis(answer, measure.best_response[player][:, None].astype(np.intp), 1, axis=1)
        pair = (answer, tables[1]) if player == 0 else (tables[0], answer)
        answered = evaluate(game.rules, pair)
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
                dice, *bids = state.information_state_string().split()
                after = f" after {', '.join(bids)}" if bids else ""
                assert key == f"player_{player} with {' '.join(dice)}{after}"
                legal = legal[:3] if low and len(legal) > 3 else legal
            state.apply_action(int(generator.choice(legal)))
