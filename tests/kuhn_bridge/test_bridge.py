"""The bridge: single actions, whole histories, and the rulebook in letters."""

import pyspiel
import pytest

from kuhn_bridge import Action, BridgeError, Card, KuhnPoker, State, from_openspiel, to_openspiel
from kuhn_bridge.bridge import (
    INFORMATION_STATES,
    information_state,
    letters_to_actions,
    parse_information_state,
)
from kuhn_bridge.state import nodes

CONTRACT = [
    (Action.CHECK_OR_CALL, False, 0),
    (Action.CHECK_OR_CALL, True, 1),
    (Action.BET, False, 1),
    (Action.FOLD, True, 0),
]


@pytest.mark.parametrize(("ours", "facing_bet", "theirs"), CONTRACT)
def test_single_actions_cross_both_ways(ours, facing_bet, theirs):
    assert to_openspiel(ours, facing_bet) == theirs
    assert from_openspiel(theirs, facing_bet) is ours


def test_illegal_actions_have_no_id():
    with pytest.raises(BridgeError, match="BET is illegal facing a bet"):
        to_openspiel(Action.BET, True)
    with pytest.raises(BridgeError, match="FOLD is illegal without a bet to face"):
        to_openspiel(Action.FOLD, False)


@pytest.mark.parametrize("action", [2, -1, None, True, 1.0, "Pass"])
def test_only_pass_and_bet_come_back(action):
    with pytest.raises(BridgeError, match="0 = Pass, 1 = Bet"):
        from_openspiel(action, False)


def test_letters_spell_actions():
    for state in nodes():
        replayed = State.new(*state.cards)
        for action in letters_to_actions(state.letters):
            replayed = replayed.act(action)
        assert replayed is state


def test_information_states_are_openspiels():
    solver = pyspiel.CFRSolver(pyspiel.load_game("kuhn_poker"))
    assert set(INFORMATION_STATES) == set(solver.tabular_average_policy().policy_table())
    for name in INFORMATION_STATES:
        assert information_state(*parse_information_state(name)) == name
    assert parse_information_state("2pb") == (Card.K, "pb")


def test_the_rulebook_agrees_with_the_core():
    game = KuhnPoker()
    for state in nodes():
        assert game.is_terminal(state.letters) == state.is_terminal
        if state.is_terminal:
            cards = [int(card) for card in state.cards]
            assert game.get_payoff(cards, state.letters) == state.returns[0]
            with pytest.raises(BridgeError, match="the hand is over"):
                game.get_current_player(state.letters)
        else:
            assert game.get_current_player(state.letters) == state.actor
            with pytest.raises(BridgeError, match="the hand is not over"):
                game.get_payoff(state.cards, state.letters)


@pytest.mark.parametrize(
    ("cards", "history"),
    [
        *(([2, 1], history) for history in ("x", "ppp", "bbb", "pbbp", None)),
        *((cards, "pp") for cards in ([1, 1], [0, 3], [-1, 0], [0], [0, 1, 2], "01", None)),
    ],
)
def test_the_rulebook_refuses_bad_cards_and_histories(cards, history):
    with pytest.raises(BridgeError):
        KuhnPoker().get_payoff(cards, history)
