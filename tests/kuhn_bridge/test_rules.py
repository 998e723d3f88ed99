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
    assert [(a.name, a.value) for a in Action] == [("CHECK_OR_CALL", 0), ("BET", 1), ("FOLD", 2)]
    assert [card.name for card in Card] == ["J", "Q", "K"]
    labels = ["deal", "p0_act", "p1_act", "p1_response", "p0_response", "terminal"]
    assert {phase.label: int(phase) for phase in Phase} == {n: i for i, n in enumerate(labels)}


def test_showdowns_go_to_the_higher_card_and_folds_to_the_bettor():
    for deal in DEALS:
        sign = 1 if deal[0] > deal[1] else -1
        for letters, stake in (("pp", 1), ("bb", 2), ("pbb", 2)):
            assert payoff(deal, BETTING[letters]) == (sign * stake, -sign * stake)
        assert payoff(deal, BETTING["bp"]) == (1, -1)
        assert payoff(deal, BETTING["pbp"]) == (-1, 1)


@pytest.mark.parametrize(
    ("convert", "given", "right"),
    [
        (as_card, [Card.K, 2, "K", np.int64(2), np.uint8(2)], Card.K),
        (as_action, [1, Action.BET, np.int8(1), np.int64(1), np.uint32(1)], Action.BET),
        (as_seat, [1, np.int64(1)], 1),
        (as_seed, [7, np.int64(7)], 7),
        (as_seed, [10**400], 10**400),
        (as_deal, [("K", 0), [Card.K, Card.J], np.array([2, 0])], (Card.K, Card.J)),
    ],
)
def test_values_may_be_given_in_several_ways(convert, given, right):
    for value in given:
        assert convert(value) == right
        assert type(convert(value)) is type(right)


LONG = [10**4000, "x" * 10**6, [[]] * 999]
WRONG = {
    as_card: [3, -1, "k", "A", "", None, True, 1.0, np.float32(1), [1], Action.BET],
    as_deal: [("K", "K"), ("K",), ("J", "Q", "K"), "KJ", None, 5, ("K", 7), {"K", "J"}, ()],
    as_action: [-1, 3, 1.5, 1.0, True, None, "1", np.float64(1), np.bool_(True), [0], Card.Q],
    as_seat: [2, -1, None, "player_0", True, 0.0],
    as_seed: [-1, 1.0, "7", None, True, float("nan"), [1]],
    betting: ["x", "bbb", "ppp", "ppb", "P", " ", None, ["p"]],
}
ERRORS = {
    as_card: (CardError, "is not a card; the cards are J, Q, K or 0, 1, 2"),
    as_deal: (CardError, "is not a deal|both players hold K|is not a card"),
    as_action: (ActionError, "the IDs are 0 = CHECK_OR_CALL, 1 = BET, 2 = FOLD"),
    as_seat: (SeatError, "the seats are 0 and 1"),
    as_seed: (BridgeError, "is not a seed: a whole number from 0 up"),
    betting: (HistoryError, "is not a history; the histories are '', 'p'"),
}


@pytest.mark.parametrize("convert", WRONG, ids=lambda convert: convert.__name__)
def test_wrong_values_are_refused_in_one_short_line(convert):
    kind, message = ERRORS[convert]
    for value in (*WRONG[convert], *(LONG if convert is not as_seed else LONG[1:])):
        with pytest.raises(kind, match=message) as error:
            convert(value)
        assert len(str(error.value)) < 250
        assert "\n" not in str(error.value)
