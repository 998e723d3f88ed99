"""The checks of the rules: every node of the core against OpenSpiel."""

from collections.abc import Iterator

import numpy as np
import pyspiel

from kuhn_bridge import bridge
from kuhn_bridge.bridge import BET, LETTERS, KuhnPoker, from_openspiel
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes
from parity.registry import Settings, Tally, check
from parity.sides import CORE, REFERENCE, Side, compare, compare_infosets, hand, openspiel, rulebook

GROUP = "rules"


def _python_game() -> Side:
    from open_spiel.python.games import kuhn_poker  # noqa: F401  # registers python_kuhn_poker

    return openspiel(pyspiel.load_game("python_kuhn_poker"))


def lockstep() -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core, with OpenSpiel's state after the same moves."""
    game = pyspiel.load_game("kuhn_poker")
    for state in nodes():
        theirs = game.new_initial_state()
        for action in (*state.cards, *map(LETTERS.index, state.letters)):
            theirs.apply_action(action)
        yield hand(state.cards, state.letters), state, theirs


def facing_bet(theirs: pyspiel.State) -> bool:
    """Whether OpenSpiel's player to act faces a bet: the last move was one."""
    return bool(theirs.history()[2:][-1:] == [BET])


@check("core", GROUP, "every node of the core against kuhn_poker in C++")
def _check_core(tally: Tally, settings: Settings) -> None:
    compare(CORE, REFERENCE, tally)


@check("core-python", GROUP, "every node of the core against python_kuhn_poker")
def _check_core_python(tally: Tally, settings: Settings) -> None:
    compare(CORE, _python_game(), tally)


@check("phases", GROUP, "the phase of every node, derived from OpenSpiel's history")
def _check_phases(tally: Tally, settings: Settings) -> None:
    for where, state, theirs in lockstep():
        word = "response" if facing_bet(theirs) else "act"
        right = "terminal" if theirs.is_terminal() else f"p{theirs.current_player()}_{word}"
        tally.same(where, "is in phase {}", state.phase.label, right)


@check("information", GROUP, "which nodes share an information state, pair by pair")
def _check_information(tally: Tally, settings: Settings) -> None:
    for theirs in (REFERENCE, _python_game()):
        compare_infosets(CORE, theirs, tally)


@check("bridge", GROUP, "every action converted to OpenSpiel's and back, legal or not")
def _check_bridge(tally: Tally, settings: Settings) -> None:
    """Our action and its image lead to the same node, and the image converts back."""
    for where, state, theirs in lockstep():
        if theirs.is_terminal():
            continue
        faces, images = facing_bet(theirs), []
        for action in Action:
            legal = action in state.legal_actions
            try:
                images.append(image := bridge.to_openspiel(action, faces))
            except BridgeError:
                tally.holds(where, f"{action.name} is illegal", not legal)
                continue
            after = state.act(action).letters if legal else "an error"
            right = "".join(LETTERS[move] for move in theirs.child(image).history()[2:])
            tally.same(where, f"has {{}} after {action.name}", after, right)
            back = bridge.from_openspiel(image, faces)
            tally.same(where, "converts back to {}", back.name, action.name)
        tally.same(where, "allows {}", sorted(images), theirs.legal_actions())


@check("rulebook", GROUP, "the rulebook in letters over all deals and histories")
def _check_rulebook(tally: Tally, settings: Settings) -> None:
    compare(rulebook(KuhnPoker()), REFERENCE, tally)


@check("observations", GROUP, "every observation, decoded; none depends on the other card")
def _check_observations(tally: Tally, settings: Settings) -> None:
    """An observation encodes own card, history and actor, and nothing else."""
    seen: dict[tuple[int, int, str], bytes] = {}
    infosets: dict[bytes, str] = {}
    for where, state, theirs in lockstep():
        for seat in PLAYERS:
            observation, spot = state.observe(seat), f"{where}, {AGENTS[seat]}"
            card, over = theirs.history()[seat], theirs.is_terminal()
            slot = len(DECISIONS) if over else DECISIONS.index(state.letters)
            actor = None if over else theirs.current_player()
            parts = np.split(observation, [3, 8])
            for part, value, size in zip(parts, (card, slot, actor), (3, 5, 2), strict=True):
                right = [float(i == value) for i in range(size)]
                tally.same(spot, "observes {}", part.tolist(), right)
            key = observation.tobytes()
            same = seen.setdefault((seat, card, state.letters), key) == key
            tally.holds(spot, "the observation is the same for each card of the other", same)
            if actor == seat:
                name = theirs.information_state_string(seat)
                tally.same(spot, "is in {}", infosets.setdefault(key, name), name)


@check("masks", GROUP, "every mask of both agents against OpenSpiel's legal actions")
def _check_masks(tally: Tally, settings: Settings) -> None:
    """A mask allows what OpenSpiel allows, and nothing to an agent that is not to act."""
    for where, state, theirs in lockstep():
        legal = [] if theirs.is_terminal() else theirs.legal_actions()
        ours = {from_openspiel(action, facing_bet(theirs)) for action in legal}
        for seat, agent in enumerate(AGENTS):
            acts = theirs.current_player() == seat
            right = [int(acts and action in ours) for action in Action]
            tally.same(f"{where}, {agent}", "masks {}", state.mask(seat).tolist(), right)
