"""States as a user plays them, then all 54 of them, then their properties."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given

from kuhn_bridge import Action, Card, Phase, State
from kuhn_bridge.errors import ActionError, CardError, IllegalActionError, SeatError
from kuhn_bridge.rules import BETTING
from kuhn_bridge.state import nodes
from tests.strategies import lines_of_play

ALL = list(nodes())


def test_a_hand():
    state = State.new("K", "J")
    assert state.phase is Phase.P0_ACT
    assert state.actor == 0
    assert state.legal_actions == (Action.CHECK_OR_CALL, Action.BET)
    state = state.act(Action.CHECK_OR_CALL).act(Action.BET)
    assert state.history == ("check", "bet")
    assert state.letters == "pb"
    assert not state.is_terminal
    assert state.returns == (0, 0)
    state = state.act(Action.CHECK_OR_CALL)
    assert state.is_terminal
    assert state.actor is None
    assert state.legal_actions == ()
    assert state.returns == (2, -2)
    assert repr(state) == "<State K vs J, [check, bet, call], terminal>"


def test_there_are_54_dealt_states():
    assert len(ALL) == len(set(ALL)) == 54
    assert sum(state.is_terminal for state in ALL) == 30


@pytest.mark.parametrize("state", ALL, ids=repr)
def test_arrays_decode_to_the_state(state):
    for seat in (0, 1):
        observation = state.observe(seat)
        mask = state.mask(seat)
        assert observation.dtype == np.float32
        assert mask.dtype == np.int8
        assert observation.shape == (10,)
        card = observation[:3]
        history = observation[3:8]
        actor = observation[8:]
        assert card.tolist() == [state.cards[seat] == c for c in Card]
        slots = ["", "p", "b", "pb"]
        expected = 4 if state.is_terminal else slots.index(state.letters)
        assert history.tolist() == [i == expected for i in range(5)]
        assert actor.tolist() == [state.actor == s for s in (0, 1)]
        legal = state.legal_actions if state.actor == seat else ()
        assert mask.tolist() == [a in legal for a in Action]


def test_arrays_are_copies():
    state = State.new("K", "J")
    state.observe(0)[:] = 7
    state.mask(0)[:] = 7
    assert state.observe(0).max() == 1
    assert state.mask(0).tolist() == [1, 1, 0]


def assert_says_where(state, error):
    message = str(error.value)
    assert state.phase.label in message
    assert f"[{', '.join(state.history)}]" in message
    assert "\n" not in message


@pytest.mark.parametrize("state", ALL, ids=repr)
def test_every_forbidden_action_is_refused_and_changes_nothing(state):
    before = pickle.dumps(state)
    for action in set(Action) - set(state.legal_actions):
        with pytest.raises(IllegalActionError) as error:
            state.act(action)
        assert action.name in str(error.value)
        assert_says_where(state, error)
    for junk in (-1, 3, 1.5, True, None, "BET", np.float64(0), np.bool_(False)):
        with pytest.raises(ActionError) as error:
            state.act(junk)
        assert repr(junk) in str(error.value)
        assert_says_where(state, error)
    assert pickle.dumps(state) == before


def test_copies_and_pickles_are_the_same_object():
    """Nothing is built again: there are 54 states."""
    for state in ALL:
        assert pickle.loads(pickle.dumps(state)) is state
        assert copy.copy(state) is state
        assert copy.deepcopy(state) is state


def test_a_state_that_is_built_is_equal_and_frozen():
    for state in ALL:
        built = State(state.cards, state.letters)
        assert built == state
        assert hash(built) == hash(state)
        assert built.returns == state.returns
        assert built.legal_actions == state.legal_actions
    with pytest.raises(AttributeError):
        ALL[0].letters = "p"


def test_an_error_names_the_player_to_act_and_what_it_may_do():
    dealt = State.new("Q", "K")
    for state, message in (
        (dealt, "player_0 may CHECK_OR_CALL or BET"),
        (dealt.act(0), "player_1 may CHECK_OR_CALL or BET"),
        (dealt.act(1), "player_1 may CHECK_OR_CALL or FOLD"),
        (dealt.act(0).act(1), "player_0 may CHECK_OR_CALL or FOLD"),
        (dealt.act(1).act(2), "the hand is over"),
    ):
        forbidden = next(action for action in Action if action not in state.legal_actions)
        with pytest.raises(IllegalActionError, match=f": {message}$"):
            state.act(forbidden)


def test_the_two_cards_may_be_given_differently():
    for card0, card1 in [("K", Card.J), (Card.K, "J"), (2, Card.J), (Card.K, 0), ("K", 0)]:
        assert State.new(card0, card1) is State.new(Card.K, Card.J)


def test_bad_deals_and_seats():
    for cards in [("K", "K"), (Card.K, Card.K), (Card.K, "K"), (3, 0), (True, 0), (None, 0)]:
        with pytest.raises(CardError):
            State.new(*cards)
    for method in (ALL[0].observe, ALL[0].mask):
        with pytest.raises(SeatError):
            method(2)


@given(lines_of_play())
def test_hands_are_zero_sum_and_end_within_three_moves(states):
    assert len(states) <= 4
    for before, after in itertools.pairwise(states):
        assert before.returns == (0, 0)
        assert after.letters.startswith(before.letters)
        assert after.cards == before.cards
    assert sum(states[-1].returns) == 0
    assert abs(states[-1].returns[0]) == BETTING[states[-1].letters].stake
