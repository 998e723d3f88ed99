"""Kuhn poker from the native core."""

from __future__ import annotations

from collections.abc import Iterator

from algorithms.exact.tree import CHANCE, TERMINAL, Tree, Visit, compile_tree
from kuhn_bridge.bridge import INFORMATION_STATES, information_state
from kuhn_bridge.rules import BETTING, PLAYERS, Action, Card
from kuhn_bridge.state import State


def kuhn_tree() -> Tree:
    """Kuhn poker from the native core, 58 nodes.

    Rows are `INFORMATION_STATES` and columns our action IDs, so `TabularPolicy.probabilities` is
    a joint policy of this tree.
    """
    rows = [(BETTING[name[1:]].actor or 0, name) for name in INFORMATION_STATES]
    return compile_tree("kuhn", len(PLAYERS), len(Action), _kuhn_visits(), rows=rows)


def _kuhn_visits() -> Iterator[Visit]:
    """The native core's 54 dealt states below OpenSpiel's two levels of dealing."""
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
