"""The checks of the rules: every node of the core against OpenSpiel."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import pyspiel

from kuhn_bridge import bridge as own_bridge
from kuhn_bridge.bridge import KuhnPoker, state_to_openspiel
from kuhn_bridge.encoding import Mask, Observation
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DECISIONS, PLAYERS, Action, Phase
from kuhn_bridge.state import State, nodes
from parity.registry import Settings, Tally, check
from parity.sides import (
    CORE,
    Side,
    compare,
    compare_information_states,
    hand,
    openspiel,
    reference,
    rulebook,
)

GROUP = "rules"


def _python_game() -> Side:
    from open_spiel.python.games import kuhn_poker  # noqa: F401  # registers python_kuhn_poker

    return openspiel(pyspiel.load_game("python_kuhn_poker"))


def lockstep() -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core, with OpenSpiel's state after the same moves."""
    game = pyspiel.load_game("kuhn_poker")
    for state in nodes():
        theirs = game.new_initial_state()
        for action in state_to_openspiel(state):
            theirs.apply_action(action)
        yield hand(state.cards, state.letters), state, theirs


def facing_bet(theirs: pyspiel.State) -> bool:
    """Whether OpenSpiel's player to act faces a bet: the last move was one."""
    return bool(theirs.history()[2:][-1:] == [own_bridge.BET])


@check("core", GROUP, "every node of the core against kuhn_poker in C++")
def check_core(tally: Tally, settings: Settings, *, ours: Side = CORE) -> None:
    """Players, legal moves, chance, terminal nodes and returns."""
    compare(ours, reference(), tally)


@check("core-python", GROUP, "every node of the core against python_kuhn_poker")
def check_core_python(tally: Tally, settings: Settings, *, ours: Side = CORE) -> None:
    """The same against OpenSpiel's implementation in Python."""
    compare(ours, _python_game(), tally)


@check("phases", GROUP, "the phase of every node, derived from OpenSpiel's history")
def check_phases(
    tally: Tally, settings: Settings, *, phase: Callable[[State], Phase] = attrgetter("phase")
) -> None:
    """A phase says who acts and whether that player faces a bet."""
    for where, state, theirs in lockstep():
        word = "response" if facing_bet(theirs) else "act"
        right = "terminal" if theirs.is_terminal() else f"p{theirs.current_player()}_{word}"
        tally.same(where, "is in phase {}", phase(state).label, right)


@check("information", GROUP, "which nodes share an information state, pair by pair")
def check_information(tally: Tally, settings: Settings, *, ours: Side = CORE) -> None:
    """The core has the same information sets as both of OpenSpiel's implementations."""
    for theirs in (reference(), _python_game()):
        compare_information_states(ours, theirs, tally)


@check("bridge", GROUP, "every action converted to OpenSpiel's and back, legal or not")
def check_bridge(tally: Tally, settings: Settings, *, bridge: Any = own_bridge) -> None:
    """Our action and its image lead to the same node, and the image converts back."""
    for where, state, theirs in lockstep():
        if theirs.is_terminal():
            continue
        faces, images = facing_bet(theirs), []
        for action in Action:
            try:
                image = bridge.to_openspiel(action, faces)
            except BridgeError:
                tally.holds(where, f"{action.name} is illegal", action not in state.legal_actions)
                continue
            images.append(image)
            tally.same(where, "has {} after " + action.name, *_after(state, action, theirs, image))
            back = bridge.from_openspiel(image, faces)
            tally.same(where, "converts back to {}", back.name, action.name)
        tally.same(where, "allows {}", sorted(images), theirs.legal_actions())


def _after(state: State, action: Action, theirs: pyspiel.State, image: int) -> tuple[str, str]:
    """The letters of both sides after an action and its image."""
    child = theirs.child(image)
    moved = state.act(action).letters if action in state.legal_actions else "an error"
    return moved, "".join(own_bridge.LETTERS[move] for move in child.history()[2:])


@check("rulebook", GROUP, "the rulebook in letters over all deals and histories")
def check_rulebook(tally: Tally, settings: Settings, *, book: Any = None) -> None:
    """Payoffs, terminal histories and players to act of `KuhnPoker`."""
    compare(rulebook(book or KuhnPoker()), reference(), tally)


@check("observations", GROUP, "every observation, decoded; none depends on the other card")
def check_observations(
    tally: Tally,
    settings: Settings,
    *,
    observe: Callable[[State, int], Observation] = State.observe,
) -> None:
    """An observation encodes own card, history and actor, and nothing else."""
    seen: dict[tuple[int, int, str], bytes] = {}
    infosets: dict[bytes, str] = {}
    for where, state, theirs in lockstep():
        for seat in PLAYERS:
            observation = observe(state, seat)
            spot = f"{where}, {AGENTS[seat]}"
            card = theirs.history()[seat]
            slot = len(DECISIONS) if theirs.is_terminal() else DECISIONS.index(state.letters)
            actor = theirs.current_player() if not theirs.is_terminal() else None
            for part, value, size in zip(
                np.split(observation, [3, 8]), (card, slot, actor), (3, 5, 2), strict=True
            ):
                right = [float(i == value) for i in range(size)]
                tally.same(spot, "observes {}", part.tolist(), right)
            key = observation.tobytes()
            same = seen.setdefault((seat, card, state.letters), key) == key
            tally.holds(spot, "the observation is the same for each card of the other", same)
            if actor == seat:
                name = theirs.information_state_string(seat)
                tally.same(spot, "is in {}", infosets.setdefault(key, name), name)


@check("masks", GROUP, "every mask of both agents against OpenSpiel's legal actions")
def check_masks(
    tally: Tally, settings: Settings, *, mask: Callable[[State, int], Mask] = State.mask
) -> None:
    """A mask allows what OpenSpiel allows, and nothing to an agent that is not to act."""
    for where, state, theirs in lockstep():
        legal = [] if theirs.is_terminal() else theirs.legal_actions()
        ours = {own_bridge.from_openspiel(action, facing_bet(theirs)) for action in legal}
        for seat in PLAYERS:
            acts = theirs.current_player() == seat
            right = [int(acts and action in ours) for action in Action]
            tally.same(f"{where}, {AGENTS[seat]}", "masks {}", mask(state, seat).tolist(), right)
