"""The betting table against the contract, row by row."""

import numpy as np
import pytest

from kuhn_bridge import Action, Card, Phase
from kuhn_bridge.errors import ActionError, BridgeError, CardError, HistoryError, SeatError
from kuhn_bridge.rules import (
    BETTING,
    DEALS,
    as_action,
    as_card,
    as_deal,
    as_seat,
    as_seed,
    betting,
    payoff,
)

# history, phase, actor, mask as in the contract; then what K against J pays player_0.
CONTRACT = [
    ("", [], "p0_act", 0, [1, 1, 0], 0),
    ("p", ["check"], "p1_act", 1, [1, 1, 0], 0),
    ("b", ["bet"], "p1_response", 1, [1, 0, 1], 0),
    ("pb", ["check", "bet"], "p0_response", 0, [1, 0, 1], 0),
    ("pp", ["check", "check"], "terminal", None, [0, 0, 0], 1),
    ("bp", ["bet", "fold"], "terminal", None, [0, 0, 0], 1),
    ("bb", ["bet", "call"], "terminal", None, [0, 0, 0], 2),
    ("pbp", ["check", "bet", "fold"], "terminal", None, [0, 0, 0], -1),
    ("pbb", ["check", "bet", "call"], "terminal", None, [0, 0, 0], 2),
]


@pytest.mark.parametrize(("letters", "words", "label", "actor", "mask", "chips"), CONTRACT)
def test_each_row_reads_as_the_contract_does(letters, words, label, actor, mask, chips):
    row = BETTING[letters]
    assert list(row.words) == words
    assert row.phase.label == label
    assert row.actor == actor
    assert [int(action in row.after) for action in Action] == mask
    assert payoff((Card.K, Card.J), row) == (chips, -chips)


def test_the_table_is_the_contract_and_nothing_else():
    assert list(BETTING) == [row[0] for row in CONTRACT]
    won = {letters: row.winner for letters, row in BETTING.items() if row.winner is not None}
    assert won == {"bp": 0, "pbp": 1}


def test_ids_are_fixed():
    assert {action.name: action.value for action in Action} == {
        "CHECK_OR_CALL": 0,
        "BET": 1,
        "FOLD": 2,
    }
    assert [card.name for card in Card] == ["J", "Q", "K"]
    assert [int(phase) for phase in Phase] == list(range(6))
    assert [phase.label for phase in Phase] == [
        "deal",
        "p0_act",
        "p1_act",
        "p1_response",
        "p0_response",
        "terminal",
    ]


def test_showdowns_go_to_the_higher_card_and_folds_to_the_bettor():
    for deal in DEALS:
        sign = 1 if deal[0] > deal[1] else -1
        for letters, stake in (("pp", 1), ("bb", 2), ("pbb", 2)):
            assert payoff(deal, BETTING[letters]) == (sign * stake, -sign * stake)
        assert payoff(deal, BETTING["bp"]) == (1, -1)
        assert payoff(deal, BETTING["pbp"]) == (-1, 1)


@pytest.mark.parametrize("value", [Card.K, 2, "K", np.int64(2), np.uint8(2)])
def test_a_card_may_be_given_in_several_ways(value):
    assert as_card(value) is Card.K


@pytest.mark.parametrize("value", [3, -1, "k", "A", "", None, True, 1.0, np.float32(1), [1]])
def test_not_a_card(value):
    with pytest.raises(CardError, match="the cards are J, Q, K or 0, 1, 2"):
        as_card(value)


@pytest.mark.parametrize(
    "value", [("K", "K"), ("K",), ("J", "Q", "K"), "KJ", None, 5, ("K", 7), {"K", "J"}, ()]
)
def test_not_a_deal(value):
    with pytest.raises(CardError):
        as_deal(value)


@pytest.mark.parametrize("value", [1, Action.BET, np.int8(1), np.int64(1), np.uint32(1)])
def test_an_action_id_may_be_any_integer_type(value):
    assert as_action(value) is Action.BET


@pytest.mark.parametrize(
    "value",
    [-1, 3, 1.5, 1.0, True, None, "BET", "1", np.float64(1), np.bool_(True), [0], 10**30, Card.Q],
)
def test_not_an_action_id(value):
    with pytest.raises(ActionError, match="the IDs are 0 = CHECK_OR_CALL, 1 = BET, 2 = FOLD"):
        as_action(value)


@pytest.mark.parametrize("value", [2, -1, None, "player_0", True, 0.0])
def test_not_a_seat(value):
    with pytest.raises(SeatError, match="the seats are 0 and 1"):
        as_seat(value)


@pytest.mark.parametrize("value", [0, 7, np.int64(7), 10**400])
def test_a_seed_is_a_whole_number_from_0_up(value):
    assert as_seed(value) == value


@pytest.mark.parametrize("value", [-1, 1.0, "7", None, True, float("nan"), [1]])
def test_not_a_seed(value):
    with pytest.raises(BridgeError, match="is not a seed: a whole number from 0 up"):
        as_seed(value)


@pytest.mark.parametrize("value", [10**4000, "x" * 10**6, [[]] * 999], ids=type)
def test_long_values_are_shortened_in_errors(value):
    for refuse in (as_card, as_deal, as_action, as_seat, betting):
        with pytest.raises(BridgeError) as error:
            refuse(value)
        assert len(str(error.value)) < 250


@pytest.mark.parametrize("letters", ["x", "bbb", "ppp", "ppb", "P", " ", None, ["p"]])
def test_not_a_history(letters):
    with pytest.raises(HistoryError, match="is not a history"):
        betting(letters)
