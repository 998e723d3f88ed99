"""Poker endgames: known figures, hands and their strengths, words, bad input, and `handReaches`."""

import numpy as np
import pyspiel
import pytest

import kuhn_bridge as kb
from algorithms import public_tree as plain
from algorithms.cfr import VARIANTS
from algorithms.compiled import public_tree as compiled
from algorithms.compiled.nashconv import action_values
from algorithms.games import SampledGame, load_game
from algorithms.games.short_names import full_name
from algorithms.large_games.poker import Showdowns
from algorithms.self_play.states import StateSimulator
from kuhn_bridge.errors import GameError, PolicyError
from tests.large_games import POKER, dice, large, on_tree, poker, tree_of

RIVER = "river(board=7dJc3s9hQd,pot=2000)"
TURN = "turn(board=7dJc3s9h,pot=2000,bets=fc)"


def test_uniform_play_has_the_known_nash_conv():
    """By plain matrices over all pairs of hands, independent of this project."""
    game = load_game(RIVER)
    measure = game.measure(game.uniform())
    assert measure.nash_conv == pytest.approx(5704.628985, abs=5e-7)
    assert (game.num_infosets, game.pot) == ((9_729, 9_729), 2_000)


def test_a_player_without_decisions_loses_nothing():
    """The other one has put in all its chips, so only one player acts."""
    name = (
        "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=1,"
        "blind=2 1,firstPlayer=2 1,stack=2 2,numSuits=2,numRanks=5,numHoleCards=1,"
        "numBoardCards=1 0,boardCards=2c)"
    )
    game = large(name)
    assert game.num_infosets == (0, 9)
    tables = game.uniform()
    measure = game.measure(tables)
    losses = game.losses(tables)
    assert losses[1].sum() == pytest.approx(measure.nash_conv, rel=1e-12)
    assert measure.nash_conv > 0


def test_all_cards_can_be_in_play():
    """Five cards on the board, and two hands of two: nothing of the deck is left."""
    name = poker(hole=2, suits=3, ranks=3, board="2c2d2h3c3d")
    assert large(name).num_infosets[0] > 0


def test_reach_needs_probabilities():
    game = load_game(RIVER)
    tables = game.uniform()
    tables[1][7] = 0
    with pytest.raises(PolicyError, match="player 1, information set 7"):
        game.own_reaches(tables)


def test_a_short_name_is_openspiels_game():
    game = load_game(RIVER)
    settings = game.pyspiel_game.get_parameters()
    assert settings["boardCards"] == "7dJc3s9hQd"
    assert (settings["potSize"], settings["bettingAbstraction"]) == (2_000, "fcpa")
    whole = load_game(full_name(RIVER))
    assert whole.measure(whole.uniform()).values == game.measure(game.uniform()).values
    assert load_game("river(board=7dJc3s9hQd,blinds=700,stack=900)").pot == 1_400


def test_a_pot_of_blinds_goes_to_the_winner():
    """In OpenSpiel a `potSize` is forgotten after a check; blinds are not."""
    game = load_game("river(board=7dJc3s9hQd,blinds=1000,bets=fc)")
    values = set(np.abs(game.public_tree.payoff).flatten().tolist())
    assert values == {0, 1_000}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("river(board=7dJc3s)", "needs a board of 5 cards.* got 3, a flop"),
        ("flop(board=7dJc3s)", "a flop has too many boards to come; there are river"),
        ("turn(board=7dJc3s9hQd)", "needs a board of 4 cards.* got 5 cards"),
        ("river(board=7dJc3s9h7d)", "7d is twice"),
        ("river(board=7dJc3s9h1d)", "unknown card '1d'"),
        ("river(board=7dJc3s9hQ)", "unknown card 'Q'"),
        ("river(board=7dJc3s9hQd,pot=50000)", "a pot of 50000 leaves no chips to bet with"),
        ("river(board=7dJc3s9hQd,pot=40000)", "a pot of 40000 leaves no chips to bet with"),
        ("river(board=7dJc3s9hQd,blinds=20000)", "a pot of 40000 leaves no chips to bet with"),
        ("river(board=7dJc3s9hQd,pot=2001)", "pot must be even"),
        ("river(board=7dJc3s9hQd,pot=-2)", "pot must be a positive number of chips; got '-2'"),
        ("river(board=7dJc3s9hQd,blinds=5,pot=10)", "not both"),
        ("river(board=7dJc3s9hQd,players=3)", "no parameter 'players'.* two players"),
        ("river(board=7dJc3s9hQd,bets=all)", "bets must be one of fc, fcpa, fchpa, fullgame"),
        ("river(board=7dJc3s9hQd,bets=fullgame)", r"too large: .* 2e\+15 public states"),
        ("river(board=7dJc3s9hQd", "no closing bracket"),
        (full_name(RIVER).replace("Qd", "7d"), "7d is twice"),
        (full_name(RIVER).replace("potSize=2000", "potSize=50000"), "50000 is more than"),
        (full_name(RIVER).replace("potSize=2000", "potSize=2001"), "potSize must be even"),
        (full_name(RIVER).replace("potSize=2000", "potSize=40000"), "nobody has chips to bet with"),
        ("river(board=7dJc3s9hQd,handReaches=1 2 3)", "handReaches has 3 numbers; want 2,652"),
        (RIVER[:-1] + ",handReaches=" + "1 " * 2_651 + "x)", "from 0 up; got 'x'"),
        (RIVER[:-1] + ",handReaches=" + "1 " * 2_651 + "-1)", "from 0 up; got '-1'"),
        (RIVER[:-1] + ",handReaches=" + "0 " * 2_652 + ")", "no pair of hands"),
    ],
)
def test_bad_input_is_named_in_one_line(name, what):
    with pytest.raises(GameError, match=what) as error:
        load_game(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        ("numPlayers=2", "numPlayers=3"),
        ("7dJc3s9hQd", "7dJc3s"),
        ("bettingAbstraction=fcpa", "bettingAbstraction=fullgame"),
    ],
)
def test_other_games_of_openspiel_are_sampled(change):
    name = full_name(RIVER).replace(*change)
    if "numPlayers=3" in name:
        name = name.replace("blind=100 50", "blind=100 50 50").replace("=2000,", "=3000,")
        name = name.replace("stack=20000 20000", "stack=20000 20000 20000")
    assert isinstance(load_game(name), SampledGame)


def test_information_sets_have_labels_with_cards():
    game = load_game(RIVER)
    state = game.pyspiel_game.new_initial_state()
    names = game.card_names
    for card in ("2c", "2d", "9s", "Ah"):
        state.apply_action(names.index(card))
    for action in (1, 2):
        state.apply_action(action)
    infoset = game.infoset_of_state(state)
    assert game.infoset_label(infoset, 0) == "player_0 with 2♦2♣ after check, pot bet"
    labels = [game.action_label(infoset, action, 0) for action in state.legal_actions()]
    assert labels == ["fold", "call", "pot raise", "all-in"]


def test_hands_are_ordered_as_showdowns_order_them():
    """Also hands that share a card, which cannot meet: the flush with the higher kicker wins."""
    game = pyspiel.load_game(full_name(RIVER.replace("Qd", "Kd").replace("3s", "3d")))
    names = load_game(RIVER).card_names
    compare = Showdowns(game, [names.index(card) for card in ("7d", "Jc", "3d", "9h", "Kd")], 2)

    def hand(one, other):
        return tuple(sorted((names.index(one), names.index(other))))

    assert compare(hand("Ad", "4d"), hand("Ad", "2d")) == 1
    assert compare(hand("Ah", "2c"), hand("As", "2c")) == 0
    assert compare(hand("Ah", "2c"), hand("Ad", "2d")) == -1


def test_the_turn_is_one_public_chance_event():
    game = load_game(TURN)
    boards = game.public_tree.num_hands
    assert len(boards) == 49
    assert set(boards.tolist()) == {1_128, 1_081}
    label = game.infoset_label(game.num_infosets[1] - 1, 1)
    assert label.startswith("player_1 with ")
    assert "A♠ comes" in label
    measure = game.measure(game.uniform())
    assert sum(measure.values) == 0
    assert measure.nash_conv > 0


@pytest.mark.parametrize("name", [*POKER, dice(1, 3), dice(2, 2)])
def test_plain_and_compiled_code_agree(name):
    game = large(name)
    tables = game.random(3)
    rows = [table / table.sum(axis=1, keepdims=True, dtype=np.float64) for table in tables]
    found = plain.evaluation(game.public_tree, rows)
    measure = game.measure(tables)
    assert found.value == pytest.approx(measure.values[0], abs=1e-12)
    assert found.best_values == pytest.approx(measure.best_values, abs=1e-12)
    for one, other in zip(found.losses, game.losses(tables), strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    empty = np.empty(0)
    action_values = np.zeros_like(found.action_values)
    best = tuple(np.zeros(count, np.int16) for count in game.num_infosets)
    compiled.walk(game.public_tree, tables, best, (empty, empty), action_values)
    chosen = np.repeat(game.public_tree.player >= 0, np.diff(game.public_tree.first_edge))
    assert action_values[chosen] == pytest.approx(found.action_values[chosen], abs=1e-12)


@pytest.mark.parametrize("name", POKER)
def test_costs_of_actions_are_those_on_openspiels_tree(name):
    """Also where the opponent never arrives, and behind a public card."""
    game = large(name)
    random_play, random_response = game.random(3)
    first_legal = np.eye(game.num_actions, dtype=np.float32)[(random_response > 0).argmax(axis=1)]
    tables = (random_play, first_legal)
    costs = game.action_costs(tables)
    tree, rows = tree_of(name)
    expected = tree.table_of(action_values(tree, on_tree(name, tables)).costs)
    for player in range(2):
        infosets = np.arange(game.num_infosets[player])
        nodes, hands = game.nodes_and_hands(player, infosets)
        for infoset, node, hand in zip(infosets, nodes, hands, strict=True):
            edges = slice(*game.public_tree.first_edge[node : node + 2])
            theirs = expected[rows[player][infoset], game.actions_at(node)]
            assert costs[edges, hand] == pytest.approx(theirs, abs=1e-6, nan_ok=True)
    assert np.isnan(costs).any()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", [POKER[0], POKER[3], dice(1, 3)])
def test_plain_and_compiled_solvers_agree(name, variant):
    """In float64; over few iterations, since ties may be broken by rounding."""
    game = large(name)
    solver = plain.PlainSolver(game.public_tree, VARIANTS[variant])
    solver.run(2)
    vectors = tuple(np.zeros_like(solver.regret) for _ in range(3))
    if not VARIANTS[variant].predictive:
        vectors = (vectors[0], vectors[0], vectors[2])
    updates = np.zeros(1, np.int64)
    for t in (1, 2):
        weights = plain.iteration_weights(VARIANTS[variant].numbers, t)
        before = vectors[1].copy()
        for player in range(2):
            policy_from = vectors[1] if VARIANTS[variant].alternating else before
            compiled.iterate(game.public_tree, vectors, player, weights, updates, policy_from)
    # Where there is one action, the compiled solver keeps no average.
    edges = np.diff(game.public_tree.first_edge)
    chosen = np.repeat((edges > 1) & (game.public_tree.player >= 0), edges)
    assert vectors[2][chosen] == pytest.approx(solver.average[chosen], abs=1e-9)
    assert vectors[0][chosen] == pytest.approx(solver.regret[chosen], abs=1e-9)


@pytest.fixture(scope="module")
def weighted():
    """A game with `handReaches`."""
    random = np.random.default_rng(0)
    weights = random.random(2_652).round(4)
    weights[random.random(2_652) < 0.3] = 0
    reaches = " ".join(map(str, weights))
    return load_game(f"river(board=7dJc3s9hQd,bets=fc,handReaches={reaches})")


def test_deals_have_openspiels_probabilities(weighted):
    game = weighted
    numbers = {hand: i for i, hand in enumerate(game.boards[0].hands)}
    outcomes = game.pyspiel_game.new_initial_state().chance_outcomes()
    compared = 0
    for action, probability in outcomes[::977]:
        cards = [action // 52**power % 52 for power in (3, 2, 1, 0)]
        own = tuple(sorted(cards[:2]))
        other = tuple(sorted(cards[2:]))
        if own in numbers and other in numbers:
            weight = game.public_tree.weight
            ours = weight[0, numbers[own]] * weight[1, numbers[other]]
            assert ours == pytest.approx(probability, rel=1e-9, abs=1e-18)
            compared += probability > 0
        else:
            assert probability == 0
    assert compared > 100


def test_hands_are_played_without_listing_all_deals(weighted):
    game = weighted
    simulator = StateSimulator(game, 8)
    hands = game.find_infosets(0, simulator.observations[:, : game.observation_size])
    nodes, numbers = game.nodes_and_hands(0, hands)
    assert (nodes == 0).all()
    assert (game.public_tree.weight[0, numbers] > 0).all()


def test_what_users_do():
    policy = kb.solve(RIVER, "cfr+", until=20)
    measure = policy.measure()
    assert measure.nash_conv <= 20
    assert policy.game.share_of_pot(20) == "1% of the pot"
    name = policy.game.infoset_label(measure.losses[0].infoset, measure.losses[0].player)
    assert name.startswith("player_")
