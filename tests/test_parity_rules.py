"""The checks of the rules fail on planted errors."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from kuhn_bridge import Action, BridgeError, KuhnPoker, bridge
from kuhn_bridge.rules import BETTING
from kuhn_bridge.state import nodes
from parity.registry import CHECKS, run
from parity.sides import CORE, Side
from tests.planting import QUICK, failures


def core(**changes):
    """The core with other views: `returns=lambda deal, letters, view: ...`."""

    def view(deal, letters):
        right = CORE.view(deal, letters)
        new = {name: change(deal, letters, right) for name, change in changes.items()}
        return replace(right, **new)

    return {"CORE": replace(CORE, view=view)}


def dealing(jack):
    """The core with another probability that the first card is a jack."""
    right = CORE.chance()
    return {"CORE": Side(CORE.view, lambda: {**right, (): {**right[()], 0: jack}})}


def with_bridge(**functions):
    return {"bridge": SimpleNamespace(**(vars(bridge) | functions))}


def states(**changes):
    """All states of the core with other attributes: `phase=lambda state: ...`."""

    def changed(state):
        own = {name: getattr(state, name) for name in dir(state) if not name.startswith("_")}
        return SimpleNamespace(**own | {name: new(state) for name, new in changes.items()})

    return {"nodes": lambda: map(changed, nodes())}


def observing(observe):
    return states(observe=lambda state: partial(observe, state))


def masking(mask):
    return states(mask=lambda state: partial(mask, state))


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
    ("core", dealing(3 / 7), "dealing after []: ours deals J with probability 0.428571429"),
    ("core", dealing(1 / 3 + 1e-6), "deals J with probability 0.333334333"),
    (
        "core-python",
        core(returns=lambda deal, letters, view: (9.0, -9.0)),
        "pp with J against Q: ours pays 9, OpenSpiel pays -1",
    ),
    (
        "phases",
        states(phase=lambda state: BETTING[state.letters.replace("pb", "p")].phase),
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
    ("rulebook", {"KuhnPoker": Tutorial}, "pp with K against Q: ours pays 2, OpenSpiel pays 1"),
    ("observations", observing(peeking), "is the same for each card of the other does not hold"),
    ("observations", observing(blurred), "ours observes [0.5, 0.5, 0.0]"),
    ("observations", observing(blurred), "ours is in 0, OpenSpiel is in 1"),
    ("masks", masking(everything_legal), "with J against Q, player_0: ours masks [1, 1, 1]"),
    (
        "masks",
        masking(lambda state, seat: state.mask(state.actor or 0)),
        "the deal with J against Q, player_1: ours masks [1, 1, 0]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject))


def test_a_state_that_raises_is_a_mismatch():
    def broken(deal, letters):
        raise ZeroDivisionError("oops")

    cases = failures("core", {"CORE": Side(broken)})
    assert cases[0].startswith("the deal with J against Q: ZeroDivisionError: oops, OpenSpiel")


def test_all_states_are_compared():
    assert run(CHECKS["phases"], QUICK).compared == 54
