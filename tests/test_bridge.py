"""The bridge: single actions, whole histories, and the rulebook in letters."""

import itertools

import numpy as np
import pyspiel
import pytest
from hypothesis import given

from kuhn_bridge import Action, BridgeError, Card, KuhnPoker, State, from_openspiel, to_openspiel
from kuhn_bridge.bridge import (
    INFORMATION_STATES,
    actions_to_letters,
    information_state,
    letters_to_actions,
    letters_to_words,
    parse_information_state,
    state_from_openspiel,
    state_to_openspiel,
    words_to_letters,
)
from kuhn_bridge.rules import BETTING, DEALS, DECISIONS, ENDINGS
from kuhn_bridge.state import nodes
from parity.sides import compare, compare_knowledge, core, openspiel, reference, rulebook
from parity.tally import Tally
from tests.strategies import lines_of_play

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


@pytest.mark.parametrize(("action", "facing_bet"), [(Action.BET, True), (Action.FOLD, False)])
def test_what_is_illegal_does_not_cross(action, facing_bet):
    with pytest.raises(BridgeError, match=f"{action.name} is illegal"):
        to_openspiel(action, facing_bet)


@pytest.mark.parametrize("action", [2, -1, None, True, 1.0, "Pass"])
def test_only_pass_and_bet_come_back(action):
    with pytest.raises(BridgeError, match="0 = Pass, 1 = Bet"):
        from_openspiel(action, False)


def test_histories_cross_between_letters_words_and_ids():
    assert letters_to_words("pbb") == ("check", "bet", "call")
    assert letters_to_actions("bp") == (Action.BET, Action.FOLD)
    for letters in BETTING:
        assert words_to_letters(letters_to_words(letters)) == letters
        assert actions_to_letters(letters_to_actions(letters)) == letters


def test_states_cross_to_openspiel_histories_and_back():
    game = pyspiel.load_game("kuhn_poker")
    for state in nodes():
        history = state_to_openspiel(state)
        theirs = game.new_initial_state()
        for action in history:
            theirs.apply_action(action)
        assert theirs.history() == list(history)
        assert theirs.is_terminal() == state.is_terminal
        assert state_from_openspiel(theirs.history()) == state


@pytest.mark.parametrize(
    "history", [[], [0], [0, 0], [0, 3], [0, 1, 2], [0, 1, 0, 0, 0], [0, 1, 1, 1, 1]]
)
def test_what_is_no_openspiel_history(history):
    with pytest.raises(BridgeError):
        state_from_openspiel(history)


ENDLESS = [itertools.repeat(0), itertools.repeat("check"), itertools.count()]
NO_HISTORY = [5, None, 1.5, object(), "pb", b"pb", {0, 1}, {0: 1}, [[0], [1]], [np.ones(3)] * 2]


@pytest.mark.parametrize("reader", [words_to_letters, actions_to_letters, state_from_openspiel])
@pytest.mark.parametrize("history", ENDLESS + NO_HISTORY, ids=lambda value: str(value)[:20])
def test_what_is_no_list_of_moves_or_has_no_end_is_refused(reader, history):
    with pytest.raises(BridgeError) as error:
        reader(history)
    assert "\n" not in str(error.value)


def test_histories_may_be_iterators():
    assert words_to_letters(iter(["check", "bet"])) == "pb"
    assert actions_to_letters(iter([0, 1])) == "pb"
    assert state_from_openspiel(iter([2, 0, 1])) == State.new("K", "J").act(Action.BET)


def test_facing_a_bet_is_true_or_false():
    for cross in (to_openspiel, from_openspiel):
        with pytest.raises(BridgeError, match="facing_bet is true or false"):
            cross(0, np.ones(2))


def test_an_illegal_action_is_refused_with_its_circumstances():
    with pytest.raises(BridgeError, match="BET is illegal facing a bet"):
        to_openspiel(Action.BET, True)
    with pytest.raises(BridgeError, match="FOLD is illegal without a bet to face"):
        to_openspiel(Action.FOLD, False)


def test_words_that_break_a_line_are_shown_in_one():
    with pytest.raises(BridgeError, match=r"^\['a\\nb', bet\] is not a history"):
        words_to_letters(["a\nb", "bet"])


@pytest.mark.parametrize("words", [["call"], ["bet", "check"], ["bet", "bet"], ["fold"], ["x"]])
def test_what_is_no_history_in_words(words):
    with pytest.raises(BridgeError, match="is not a history"):
        words_to_letters(words)


def test_information_states_are_openspiels():
    solver = pyspiel.CFRSolver(pyspiel.load_game("kuhn_poker"))
    assert set(INFORMATION_STATES) == set(solver.tabular_average_policy().policy_table())
    for name in INFORMATION_STATES:
        assert information_state(*parse_information_state(name)) == name
    assert parse_information_state("2pb") == (Card.K, "pb")
    for name in ("2pp", "3", "", "0x", 2, None, ["2pb"], np.array(["2pb", "0"])):
        with pytest.raises(BridgeError, match="is not an information state; they are 0, 1, 2, 0p"):
            parse_information_state(name)


@given(lines_of_play())
def test_any_line_of_play_crosses_back(states):
    for state in states:
        assert state_from_openspiel(state_to_openspiel(state)) == state


def agree(check, ours, theirs):
    tally = Tally()
    check(ours, theirs, tally)
    assert tally.cases == []
    return tally


def test_all_58_nodes_agree_with_openspiel():
    tally = agree(compare, core(), reference())
    # 4 chance nodes x 3 cards, 54 x (actor, legality), 30 x both payoffs
    assert tally.compared == 4 * 3 + 54 * 2 + 30 * 2
    agree(compare_knowledge, core(), reference())


def test_all_58_nodes_agree_with_openspiels_python_game():
    import open_spiel.python.games

    assert open_spiel.python.games
    python = openspiel(pyspiel.load_game("python_kuhn_poker"))
    agree(compare, core(), python)
    agree(compare_knowledge, core(), python)


def test_the_rulebook_agrees_with_openspiel():
    agree(compare, rulebook(KuhnPoker()), reference())


def test_the_rulebook_as_a_user_calls_it():
    game = KuhnPoker()
    assert game.is_terminal("pp")
    assert not game.is_terminal("pb")
    assert game.get_current_player("pb") == 0
    assert game.get_payoff([2, 1], "pp") == 1
    assert game.get_payoff((0, 2), "bb") == -2


@pytest.mark.parametrize("history", ["", "x", "ppp", "bbb", "pbbp", None, 7])
def test_the_rulebook_refuses_bad_histories(history):
    with pytest.raises(BridgeError):
        KuhnPoker().get_payoff([2, 1], history)


@pytest.mark.parametrize("cards", [[1, 1], [0, 3], [-1, 0], [0], [0, 1, 2], "01", ["K", "J"], None])
def test_the_rulebook_refuses_bad_cards(cards):
    with pytest.raises(BridgeError):
        KuhnPoker().get_payoff(cards, "pp")


def test_nobody_acts_when_the_hand_is_over():
    for letters in ENDINGS:
        with pytest.raises(BridgeError, match="the hand is over"):
            KuhnPoker().get_current_player(letters)
    for letters in DECISIONS:
        with pytest.raises(BridgeError, match="not over"):
            KuhnPoker().get_payoff([2, 1], letters)


def test_a_payoff_of_two_for_check_check_is_seen():
    class Tutorial(KuhnPoker):
        def get_payoff(self, cards, history):
            return super().get_payoff(cards, history) * (2 if history == "pp" else 1)

    tally = Tally(ours="")
    compare(rulebook(Tutorial()), reference(), tally)
    assert tally.wrong == len(DEALS)
    assert "pp with K against Q: pays 2, OpenSpiel pays 1" in tally.cases


def test_state_histories_are_words():
    assert State.new("Q", "K").act(0).act(1).act(2).history == ("check", "bet", "fold")
