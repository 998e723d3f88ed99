"""The checks of the rules fail on planted errors."""

from types import SimpleNamespace

import numpy as np
import pytest

from kuhn_bridge import Action, BridgeError, KuhnPoker, State, bridge
from kuhn_bridge.rules import BETTING, DEALS
from parity import rules
from parity.sides import CORE, deal_probabilities
from tests.planting import changed_side, failures


def core(**changes):
    return {"ours": changed_side(CORE, **changes)}


def dealing(probabilities):
    return {"ours": rules.Side(CORE.view, lambda: probabilities)}


def a_millionth_more():
    return {
        dealt: {card: share + 1e-6 for card, share in outcomes.items()}
        for dealt, outcomes in deal_probabilities().items()
    }


def with_bridge(**functions):
    return {"bridge": SimpleNamespace(**(vars(bridge) | functions))}


def always(value):
    return lambda *args: value


def refusing_bets(action, faces):
    if action is Action.BET:
        raise BridgeError("refused")
    return bridge.to_openspiel(action, faces)


def swapped(action, faces):
    """Call and fold change places."""
    return 1 - bridge.to_openspiel(action, faces) if faces else bridge.to_openspiel(action, faces)


class Tutorial(KuhnPoker):
    """It pays 2 for check-check, as a popular tutorial does."""

    def get_payoff(self, cards, history):
        return super().get_payoff(cards, history) * (2 if history == "pp" else 1)


def peeking(state, seat):
    observation = state.observe(seat)
    observation[state.cards[1 - seat]] = 1
    return observation


def blurred(state, seat):
    """Jack and queen have the same observation."""
    observation = state.observe(seat)
    observation[:2] = observation[:2].sum() / 2
    return observation


def everything_legal(state, seat):
    return np.ones(3, np.int8) if not state.letters and seat == 0 else state.mask(seat)


PLANTED = [
    (
        "core",
        core(returns=lambda deal, letters, view: [2 * chips for chips in view.returns]),
        "pp with K against Q: ours pays 2, OpenSpiel pays 1",
    ),
    (
        "core",
        core(returns=lambda deal, letters, view: (view.returns[0], view.returns[0])),
        "ours pays both together -2, OpenSpiel pays both together 0",
    ),
    (
        "core",
        core(legal=lambda deal, letters, view: view.legal | {"fold"}),
        "the deal with J against Q: ours allows bet or check or fold",
    ),
    ("core", core(actor=lambda deal, letters, view: 0), "p with J against Q: ours lets player_0"),
    (
        "core",
        dealing(deal_probabilities((*DEALS, DEALS[0]))),
        "dealing after []: ours deals J with probability 0.428571429",
    ),
    ("core", dealing(a_millionth_more()), "deals J with probability 0.333334333"),
    (
        "core-python",
        core(returns=lambda deal, letters, view: (9.0, -9.0)),
        "pp with J against Q: ours pays 9, OpenSpiel pays -1",
    ),
    (
        "phases",
        {"phase": lambda state: BETTING["p" if state.letters == "pb" else state.letters].phase},
        "pb with J against Q: ours is in phase p1_act",
    ),
    (
        "information",
        core(information_state=lambda deal, letters, view: f"{deal[view.actor] // 2}{letters}"),
        "ours has the same information state at both: True",
    ),
    (
        "information",
        core(information_state=lambda deal, letters, view: (deal, letters)),
        "ours has the same information state at both: False",
    ),
    ("bridge", with_bridge(from_openspiel=always(Action.FOLD)), "ours converts back to FOLD"),
    ("bridge", with_bridge(to_openspiel=refusing_bets), "BET is illegal does not hold"),
    ("bridge", with_bridge(to_openspiel=refusing_bets), "ours allows [0]"),
    ("bridge", with_bridge(to_openspiel=swapped), "has bp after CHECK_OR_CALL"),
    ("rulebook", {"book": Tutorial()}, "pp with K against Q: ours pays 2, OpenSpiel pays 1"),
    ("observations", {"observe": peeking}, "is the same for each card of the other does not hold"),
    ("observations", {"observe": blurred}, "ours observes [0.5, 0.5, 0.0]"),
    ("observations", {"observe": blurred}, "ours is in 0, OpenSpiel is in 1"),
    ("masks", {"mask": everything_legal}, "with J against Q, player_0: ours masks [1, 1, 1]"),
    (
        "masks",
        {"mask": lambda state, seat: state.mask(state.actor or 0)},
        "the deal with J against Q, player_1: ours masks [1, 1, 0]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject))


def test_a_state_that_raises_is_a_mismatch():
    def broken(deal, letters):
        raise ZeroDivisionError("oops")

    cases = failures("core", {"ours": rules.Side(broken)})
    assert cases[0].startswith("the deal with J against Q: ZeroDivisionError: oops, OpenSpiel")


def test_all_states_are_compared():
    assert len(list(rules.lockstep())) == 54
    assert {type(state) for _, state, _ in rules.lockstep()} == {State}
