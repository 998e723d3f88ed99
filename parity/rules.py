"""The rules: every node of the core and its arrays against OpenSpiel's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyspiel

from kuhn_bridge import bridge
from kuhn_bridge.bridge import KuhnPoker, state_to_openspiel
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes
from parity.registry import Settings, check
from parity.sides import (
    Side,
    compare,
    compare_knowledge,
    core,
    hand,
    openspiel,
    reference,
    rulebook,
)
from parity.tally import Tally

GROUP = "rules"


def _python_game() -> Side:
    from open_spiel.python.games import kuhn_poker  # noqa: F401  # registers python_kuhn_poker

    return openspiel(pyspiel.load_game("python_kuhn_poker"))


def lockstep() -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core beside OpenSpiel's, which got there by OpenSpiel's moves."""
    game = pyspiel.load_game("kuhn_poker")
    for state in nodes():
        theirs = game.new_initial_state()
        for action in state_to_openspiel(state):
            theirs.apply_action(action)
        yield hand(state.cards, state.letters), state, theirs


def facing_bet(theirs: pyspiel.State) -> bool:
    """Whether OpenSpiel's player to act faces a bet: the last move was one."""
    return bool(theirs.history()[2:][-1:] == [bridge.BET])


@check("core", GROUP, "every node of the core against kuhn_poker in C++")
def check_core(tally: Tally, settings: Settings) -> None:
    """Players, legality, chance, ends and returns."""
    compare(core(), reference(), tally)


@check("core-python", GROUP, "every node of the core against python_kuhn_poker")
def check_core_python(tally: Tally, settings: Settings) -> None:
    """The same against OpenSpiel's other implementation."""
    compare(core(), _python_game(), tally)


@check("phases", GROUP, "the phase of every node, derived from OpenSpiel's history")
def check_phases(tally: Tally, settings: Settings) -> None:
    """A phase is who acts and whether a bet is faced."""
    for where, state, theirs in lockstep():
        word = "response" if facing_bet(theirs) else "act"
        right = "terminal" if theirs.is_terminal() else f"p{theirs.current_player()}_{word}"
        tally.same(where, "is in phase {}", state.phase.label, right)


@check("information", GROUP, "which nodes players cannot tell apart, pair by pair")
def check_information(tally: Tally, settings: Settings) -> None:
    """The information partition is the same on all three sides."""
    for theirs in (reference(), _python_game()):
        compare_knowledge(core(), theirs, tally)


@check("bridge", GROUP, "every action across the bridge and back, legal or not")
def check_bridge(tally: Tally, settings: Settings) -> None:
    """Our action and its image lead to the same node, and whole histories cross both ways."""
    for where, state, theirs in lockstep():
        words, letters = state.history, state.letters
        actions = bridge.letters_to_actions(letters)
        crossed_back = bridge.state_from_openspiel(theirs.history())
        tally.same(where, "is {}", str(crossed_back), str(state))
        tally.same(where, "spells words {}", bridge.words_to_letters(words), letters)
        tally.same(where, "spells IDs {}", bridge.actions_to_letters(actions), letters)
        tally.same(where, "says {}", bridge.letters_to_words(letters), words)
        if theirs.is_terminal():
            continue
        faces, crossed = facing_bet(theirs), []
        for action in Action:
            try:
                image = bridge.to_openspiel(action, faces)
            except BridgeError:
                tally.holds(where, f"{action.name} is illegal", action not in state.legal_actions)
                continue
            crossed.append(image)
            tally.same(where, "has {} after " + action.name, *_after(state, action, theirs, image))
            back = bridge.from_openspiel(image, faces)
            tally.same(where, "brings back {}", back.name, action.name)
        tally.same(where, "allows {}", sorted(crossed), theirs.legal_actions())


def _after(state: State, action: Action, theirs: pyspiel.State, image: int) -> tuple[str, str]:
    """The letters of both sides after an action and its image."""
    child = theirs.child(image)
    moved = state.act(action).letters if action in state.legal_actions else "an error"
    return moved, "".join(bridge.LETTERS[move] for move in child.history()[2:])


@check("rulebook", GROUP, "the rulebook in letters over all deals and histories")
def check_rulebook(tally: Tally, settings: Settings) -> None:
    """`KuhnPoker` pays, ends and passes the turn as OpenSpiel does."""
    compare(rulebook(KuhnPoker()), reference(), tally)


@check("observations", GROUP, "every observation, decoded back; none shows the other card")
def check_observations(tally: Tally, settings: Settings) -> None:
    """Own card, history and actor can be read back, and nothing else is there."""
    seen: dict[tuple[int, int, str], bytes] = {}
    known: dict[bytes, str] = {}
    for where, state, theirs in lockstep():
        for seat in PLAYERS:
            observation = state.observe(seat)
            spot = f"{where}, {AGENTS[seat]}"
            card = theirs.history()[seat]
            slot = len(DECISIONS) if theirs.is_terminal() else DECISIONS.index(state.letters)
            actor = theirs.current_player() if not theirs.is_terminal() else None
            for part, value, size in zip(
                np.split(observation, [3, 8]), (card, slot, actor), (3, 5, 2), strict=True
            ):
                right = [float(i == value) for i in range(size)]
                tally.same(spot, "shows {}", part.tolist(), right)
            bits = observation.tobytes()
            same = seen.setdefault((seat, card, state.letters), bits) == bits
            tally.holds(spot, "the observation is the same whatever the other card is", same)
            if actor == seat:
                name = theirs.information_state_string(seat)
                tally.same(spot, "stands for {}", known.setdefault(bits, name), name)


@check("masks", GROUP, "every mask of both agents, through the bridge")
def check_masks(tally: Tally, settings: Settings) -> None:
    """A mask allows what OpenSpiel allows, and nothing to those not to act."""
    for where, state, theirs in lockstep():
        legal = [] if theirs.is_terminal() else theirs.legal_actions()
        ours = {bridge.from_openspiel(action, facing_bet(theirs)) for action in legal}
        for seat in PLAYERS:
            acts = theirs.current_player() == seat
            right = [int(acts and action in ours) for action in Action]
            tally.same(f"{where}, {AGENTS[seat]}", "masks {}", state.mask(seat).tolist(), right)
