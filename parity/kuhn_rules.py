"""The checks of Kuhn poker's rules: the core at every node against OpenSpiel's `kuhn_poker`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from algorithms.games.openspiel import load_pyspiel
from kuhn_bridge import bridge
from kuhn_bridge.bridge import BET, LETTERS, KuhnPoker, from_openspiel, letters_to_actions
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes
from parity import implementations
from parity.implementations import CORE, REFERENCE, Implementation, node_label
from parity.registry import CheckSettings, Group, Tally

RULES = Group("rules")
KUHN_POKER = pyspiel.load_game("kuhn_poker")
PYTHON_REFERENCE = implementations.from_openspiel(load_pyspiel("python_kuhn_poker"))

States: TypeAlias = Callable[[], Iterable[State]]
"""Gives all dealt states of the core."""


def lockstep(states: States = nodes) -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core, with `kuhn_poker`'s state after the same moves."""
    for state in states():
        theirs = KUHN_POKER.new_initial_state()
        for card in state.cards:
            theirs.apply_action(card)
        for letter in state.letters:
            theirs.apply_action(LETTERS.index(letter))
        yield node_label(state.cards, state.letters), state, theirs


def facing_bet(theirs: pyspiel.State) -> bool:
    """Whether OpenSpiel's player to act faces a bet: the last move was one."""
    moves = theirs.history()[2:]  # after the two cards
    return bool(moves) and moves[-1] == BET


@RULES.check("core", "every node of the core against kuhn_poker in C++")
def _check_core(tally: Tally, settings: CheckSettings, *, core: Implementation = CORE) -> None:
    implementations.compare(core, REFERENCE, tally)


@RULES.check("core-python", "every node of the core against python_kuhn_poker")
def _check_core_python(
    tally: Tally, settings: CheckSettings, *, core: Implementation = CORE
) -> None:
    implementations.compare(core, PYTHON_REFERENCE, tally)


@RULES.check("phases", "the phase of every node, derived from OpenSpiel's history")
def _check_phases(tally: Tally, settings: CheckSettings, *, states: States = nodes) -> None:
    for place, state, theirs in lockstep(states):
        if theirs.is_terminal():
            phase = "terminal"
        elif facing_bet(theirs):
            phase = f"p{theirs.current_player()}_response"
        else:
            phase = f"p{theirs.current_player()}_act"
        tally.same(place, "is in phase {}", state.phase.label, phase)


@RULES.check("information", "which nodes share an information state, pair by pair")
def _check_information(
    tally: Tally, settings: CheckSettings, *, core: Implementation = CORE
) -> None:
    for theirs in (REFERENCE, PYTHON_REFERENCE):
        implementations.compare_infosets(core, theirs, tally)


@RULES.check("bridge", "every action converted to OpenSpiel's and back, legal or not")
def _check_bridge(
    tally: Tally,
    settings: CheckSettings,
    *,
    to_openspiel: Callable[[Action, bool], int] = bridge.to_openspiel,
    from_openspiel: Callable[[int, bool], Action] = bridge.from_openspiel,
) -> None:
    """Our action and its image lead to the same node, and the image converts back."""
    for place, state, theirs in lockstep():
        if theirs.is_terminal():
            continue
        faces_bet = facing_bet(theirs)
        images = []
        for action in Action:
            legal = action in state.legal_actions
            try:
                image = to_openspiel(action, faces_bet)
            except BridgeError:
                tally.holds(place, f"{action.name} is illegal", not legal)
                continue
            images.append(image)
            after = state.act(action).letters if legal else "an error"
            their_moves = theirs.child(image).history()[2:]
            their_letters = "".join(LETTERS[move] for move in their_moves)
            tally.same(place, f"has {{}} after {action.name}", after, their_letters)
            back = from_openspiel(image, faces_bet)
            tally.same(place, "converts back to {}", back.name, action.name)
        tally.same(place, "allows {}", sorted(images), theirs.legal_actions())


@RULES.check("rulebook", "the rulebook in letters over all deals and histories")
def _check_rulebook(
    tally: Tally, settings: CheckSettings, *, make_book: Callable[[], Any] = KuhnPoker
) -> None:
    implementations.compare(implementations.from_rulebook(make_book()), REFERENCE, tally)


@RULES.check("observations", "every observation, decoded; none depends on the other card")
def _check_observations(tally: Tally, settings: CheckSettings, *, states: States = nodes) -> None:
    """An observation encodes own card, history and actor, and nothing else."""
    first_seen: dict[tuple[int, int, str], bytes] = {}  # by seat, own card and history
    infosets: dict[bytes, str] = {}
    for node, state, theirs in lockstep(states):
        if theirs.is_terminal():
            actor = None
            history = len(DECISIONS)  # the index of "any finished history"
        else:
            actor = theirs.current_player()
            history = DECISIONS.index(state.letters)
        for seat in PLAYERS:
            place = f"{node}, {AGENTS[seat]}"
            card = theirs.history()[seat]
            observation = state.observe(seat)
            of_card, of_history, of_actor = np.split(observation, [3, 8])
            tally.same(place, "observes {}", of_card.tolist(), _one_hot(card, 3))
            tally.same(place, "observes {}", of_history.tolist(), _one_hot(history, 5))
            tally.same(place, "observes {}", of_actor.tolist(), _one_hot(actor, 2))
            content = observation.tobytes()
            first = first_seen.setdefault((seat, card, state.letters), content)
            claim = "the observation is the same for each card of the other"
            tally.holds(place, claim, first == content)
            if actor == seat:
                name = theirs.information_state_string(seat)
                tally.same(place, "is in {}", infosets.setdefault(content, name), name)


def _one_hot(index: int | None, size: int) -> list[float]:
    return [float(place == index) for place in range(size)]


@RULES.check("masks", "every mask of both agents against OpenSpiel's legal actions")
def _check_masks(tally: Tally, settings: CheckSettings, *, states: States = nodes) -> None:
    """A mask allows what OpenSpiel allows, and nothing to an agent that is not to act."""
    for place, state, theirs in lockstep(states):
        legal: set[Action] = set()
        if not theirs.is_terminal():
            faces_bet = facing_bet(theirs)
            legal = {from_openspiel(action, faces_bet) for action in theirs.legal_actions()}
        for seat, agent in enumerate(AGENTS):
            to_act = theirs.current_player() == seat
            expected = [int(to_act and action in legal) for action in Action]
            tally.same(f"{place}, {agent}", "masks {}", state.mask(seat).tolist(), expected)


def states_of(game: pyspiel.Game) -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core, with the state of a game that has our action IDs."""
    for state in nodes():
        theirs = game.new_initial_state()
        for action in (*state.cards, *letters_to_actions(state.letters)):
            theirs.apply_action(action)
        yield node_label(state.cards, state.letters), state, theirs
