"""Kuhn poker as a `Game`, from the native core."""

from collections.abc import Iterator, Sequence
from functools import cache, cached_property

import numpy as np

from algorithms.games.game import ClosedForm, Game
from algorithms.kuhn_equilibria import UNIFORM_NASH_CONV, VALUE
from algorithms.support.arrays import Float32Array
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from kuhn_bridge.bridge import INFORMATION_STATES, information_state, parse_information_state
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card
from kuhn_bridge.state import OBSERVATION_SIZE, State, encode

NAME = "kuhn"


class KuhnGame(Game):
    """Kuhn poker; rows of its tables are `INFORMATION_STATES`, columns our action IDs."""

    closed_form = ClosedForm(VALUE, UNIFORM_NASH_CONV)
    fits_tree = True

    @cached_property
    def tree(self) -> Tree:
        """The 58 nodes."""
        return kuhn_tree()

    def _observations(self) -> Float32Array:
        return np.stack([encode(*parse_information_state(name)) for name in INFORMATION_STATES])

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 with J after check-bet`."""
        card, letters = parse_information_state(INFORMATION_STATES[infoset])
        betting = BETTING[letters]
        before = f"after {'-'.join(betting.words)}" if betting.words else "to start"
        return f"{AGENTS[betting.actor or 0]} with {card.name} {before}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """`check`, `call`, `bet` or `fold`."""
        after = BETTING[INFORMATION_STATES[infoset][1:]].after
        return BETTING[after[Action(action)]].words[-1]

    def _chance_labels(self, history: Sequence[int], outcomes: Sequence[int]) -> list[str]:
        return [f"{AGENTS[len(history)]} gets {Card(card).name}" for card in outcomes]


@cache
def kuhn() -> Game:
    """Kuhn poker, which needs no OpenSpiel."""
    return KuhnGame(NAME, len(PLAYERS), len(Action), OBSERVATION_SIZE)


def kuhn_tree() -> Tree:
    """The 58 nodes; rows are `INFORMATION_STATES` and columns our action IDs."""
    rows = [(BETTING[name[1:]].actor or 0, name) for name in INFORMATION_STATES]
    return TreeBuilder(NAME, len(PLAYERS), len(Action), rows).build(_kuhn_visits())


def _kuhn_visits() -> Iterator[Visit]:
    """Two levels of chance nodes, as OpenSpiel deals, then the native core's 54 states."""
    yield Visit(0, CHANCE)
    for card0 in Card:
        yield Visit(1, CHANCE, card0, 1 / len(Card))
        for card1 in Card:
            if card1 != card0:
                yield from _hand_visits(State.new(card0, card1), 2, card1, 1 / (len(Card) - 1))


def _hand_visits(state: State, depth: int, action: int, edge: float = 1.0) -> Iterator[Visit]:
    if state.actor is None:
        yield Visit(depth, TERMINAL, action, edge, returns=state.returns)
        return
    key = information_state(state.cards[state.actor], state.letters)
    yield Visit(depth, state.actor, action, edge, key, state.legal_actions)
    for move in state.legal_actions:
        yield from _hand_visits(state.act(move), depth + 1, move)
