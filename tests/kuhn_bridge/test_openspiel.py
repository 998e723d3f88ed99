"""Our game in OpenSpiel: its states and observers, and OpenSpiel's algorithms on our game."""

import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import (
    best_response,
    cfr,
    exploitability,
    external_sampling_mccfr,
    fictitious_play,
    ismcts,
    mcts,
)
from open_spiel.python.observation import make_observation

import kuhn_bridge.openspiel
from algorithms.policies import Policy
from kuhn_bridge import Action, BridgeError, Card, State
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.openspiel import KuhnBridgeObserver
from kuhn_bridge.state import nodes


@pytest.fixture(scope="module")
def game():
    return pyspiel.load_game(kuhn_bridge.openspiel.SHORT_NAME)


def at(game, state):
    """Our OpenSpiel state at a dealt node of the core."""
    theirs = game.new_initial_state()
    for action in (*state.cards, *letters_to_actions(state.letters)):
        theirs.apply_action(action)
    return theirs


def test_a_hand(game):
    state = game.new_initial_state()
    assert state.is_chance_node()
    assert state.returns() == [0.0, 0.0]
    assert state.chance_outcomes() == [(0, 1 / 3), (1, 1 / 3), (2, 1 / 3)]
    state.apply_action(2)
    assert state.chance_outcomes() == [(0, 1 / 2), (1, 1 / 2)]
    state.apply_action(0)
    assert state.legal_actions() == [Action.CHECK_OR_CALL, Action.BET]
    state.apply_action(Action.BET)
    assert state.legal_actions() == [Action.CHECK_OR_CALL, Action.FOLD]
    assert state.action_to_string(Action.FOLD) == "FOLD"
    assert state.information_state_string(1) == "0b"
    state.apply_action(Action.FOLD)
    assert state.returns() == [1.0, -1.0]
    assert str(state) == "K J bet fold"


def test_observations_are_the_10_vector(game):
    assert game.observation_tensor_shape() == [10]
    for state in nodes():
        theirs = at(game, state)
        for seat in (0, 1):
            assert theirs.observation_tensor(seat) == state.observe(seat).tolist()


def test_observers_of_every_kind(game):
    state = at(game, State.new("K", "J").act(0).act(1))
    kinds = {
        (True, True, "SINGLE_PLAYER"): ("2pb", {"card": (3,), "betting": (3, 3)}),
        (False, True, "NONE"): ("[pb] player_0", {"history": (5,), "actor": (2,)}),
        (False, False, "SINGLE_PLAYER"): ("2", {"card": (3,)}),
        (True, True, "ALL_PLAYERS"): ("20pb", {"cards": (2, 3), "betting": (3, 3)}),
    }
    for (recall, public, private), (text, shapes) in kinds.items():
        kind = pyspiel.IIGObservationType(
            perfect_recall=recall,
            public_info=public,
            private_info=getattr(pyspiel.PrivateInfoType, private),
        )
        observation = make_observation(game, kind)
        observation.set_from(state, 0)
        assert observation.string_from(state, 0) == text
        assert {name: piece.shape for name, piece in observation.dict.items()} == shapes
        flat = np.concatenate([piece.ravel() for piece in observation.dict.values()])
        assert np.array_equal(observation.tensor, flat)
    with pytest.raises(ValueError, match="no parameters"):
        KuhnBridgeObserver(pyspiel.IIGObservationType(perfect_recall=True), {"x": 1})


def test_illegal_actions_raise_our_error_and_change_nothing(game):
    state = at(game, State.new("K", "J"))
    for action in (Action.FOLD, 3, -1):
        with pytest.raises((BridgeError, pyspiel.SpielError)):
            state.apply_action(action)
    assert state.history() == [2, 0]
    assert state.legal_actions() == [0, 1]


def test_the_same_card_is_not_dealt_twice(game):
    state = game.new_initial_state()
    state.apply_action(1)
    with pytest.raises(BridgeError, match="both players hold Q"):
        state.apply_action(1)
    assert state.is_chance_node()


def test_states_can_be_pickled(game):
    for state in nodes():
        theirs = at(game, state)
        other = pickle.loads(pickle.dumps(theirs))
        assert str(other) == str(theirs)
        assert other.history() == theirs.history()
        assert other.returns() == theirs.returns()


def test_openspiel_measures_uniform_play_on_our_game(game):
    uniform = openspiel_policy.UniformRandomPolicy(game)
    response = best_response.BestResponsePolicy(game, 1, uniform)
    assert response.value(game.new_initial_state()) == pytest.approx(5 / 12)
    assert exploitability.nash_conv(game, uniform) == pytest.approx(11 / 12, abs=1e-12)
    cpp = pyspiel.nash_conv(game, pyspiel.UniformRandomPolicy(game))
    assert cpp == pytest.approx(11 / 12, abs=1e-12)


@pytest.mark.parametrize("solver", [cfr.CFRSolver, cfr.CFRPlusSolver])
def test_openspiels_cfr_solves_it(game, solver):
    ours = solver(game)
    theirs = solver(pyspiel.load_game("kuhn_poker"))
    for _ in range(100):
        ours.evaluate_and_update_policy()
        theirs.evaluate_and_update_policy()
    mine = Policy.from_openspiel(ours.average_policy(), "kuhn")
    right = Policy.from_openspiel(theirs.average_policy(), "kuhn")
    np.testing.assert_allclose(mine.table, right.table, atol=1e-12)
    assert exploitability.nash_conv(game, ours.average_policy()) < 0.02


@pytest.mark.parametrize(
    ("solver", "iterations", "bound"),
    [
        (external_sampling_mccfr.ExternalSamplingSolver, 100, 0.4),
        (fictitious_play.XFPSolver, 20, 0.2),
    ],
)
def test_openspiels_mccfr_and_fictitious_play_run(game, solver, iterations, bound):
    np.random.seed(0)
    solver = solver(game)
    for _ in range(iterations):
        solver.iteration()
    assert exploitability.nash_conv(game, solver.average_policy()) < bound


def test_the_rl_environment_plays_whole_hands(game):
    env = rl_environment.Environment(game)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = env.reset()
        while not step.last():
            player = step.observations["current_player"]
            legal = step.observations["legal_actions"][player]
            step = env.step([rng.choice(legal)])
        assert sum(step.rewards) == 0
        assert step.rewards[0] != 0


@pytest.mark.parametrize("player", [0, 1])
def test_resampling_keeps_what_the_player_knows(game, player):
    for node in nodes():
        state = at(game, node)
        known = state.information_state_string(player)
        drawn = [state.resample_from_infostate(player, lambda x=x: x) for x in (0.0, 0.5, 0.99)]
        assert {other.information_state_string(player) for other in drawn} == {known}
        assert {other.cards[1 - player] for other in drawn} == set(Card) - {node.cards[player]}


def test_resampling_before_the_deal_is_done(game):
    state = game.new_initial_state()
    assert state.resample_from_infostate(0, lambda: 0.9).cards == ()
    state.apply_action(Card.Q)
    assert state.resample_from_infostate(0, lambda: 0.9).cards == (Card.Q,)
    assert state.resample_from_infostate(1, lambda: 0.9).cards == (Card.K,)


def test_openspiels_ismcts_plays_our_game(game):
    rng = np.random.RandomState(0)
    bot = ismcts.ISMCTSBot(game, mcts.RandomRolloutEvaluator(1, rng), 2.0, 200, random_state=rng)
    facing_a_bet = {
        card: at(game, State.new(Card.Q if card != Card.Q else Card.J, card).act(Action.BET))
        for card in Card
    }
    assert bot.step(facing_a_bet[Card.K]) == Action.CHECK_OR_CALL
    assert dict(bot.get_policy(facing_a_bet[Card.J]))[Action.FOLD] == 1
