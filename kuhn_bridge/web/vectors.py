"""Every node of a hand as the core sees it: what `engine.js` is held to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from kuhn_bridge.encoding import Mask, Observation, encode_card, encode_history, one_hot
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card, Phase
from kuhn_bridge.state import State, nodes


def vectors() -> dict[str, Any]:
    """All 58 nodes, chance nodes first, with what both agents see and may do."""
    return {"nodes": [*_chance_nodes(), *map(_dealt_node, nodes())]}


def to_json() -> str:
    """`vectors()` as text, one node a line."""
    lines = ",\n".join(json.dumps(node) for node in vectors()["nodes"])
    return f'{{"nodes": [\n{lines}\n]}}\n'


def _dealt_node(state: State) -> dict[str, Any]:
    return {
        "cards": [int(card) for card in state.cards],
        "letters": state.letters,
        "history": list(state.history),
        "phase": state.phase.label,
        "actor": state.actor,
        "deals": [],
        "after": {str(int(action)): state.act(action).letters for action in state.legal_actions},
        "returns": list(state.returns),
        "agents": [_agent(state.observe(seat), state.mask(seat)) for seat in PLAYERS],
    }


def _chance_nodes() -> Iterator[dict[str, Any]]:
    """The root and the three nodes where only player_0 holds a card: nobody acts there."""
    for dealt in ((), *((card,) for card in Card)):
        held = (*dealt, None, None)[:2]
        yield {
            "cards": [int(card) for card in dealt],
            "letters": "",
            "history": [],
            "phase": Phase.DEAL.label,
            "actor": None,
            "deals": [int(card) for card in Card if card not in dealt],
            "after": {},
            "returns": [0, 0],
            "agents": [_agent(_undealt(card), np.zeros(len(Action), np.int8)) for card in held],
        }


def _undealt(card: Card | None) -> Observation:
    """float32 `(10,)`: the card if there is one, no betting yet, nobody to act."""
    nobody = one_hot(None, len(AGENTS))
    return np.concatenate([encode_card(card), encode_history(BETTING[""]), nobody])


def _agent(observation: Observation, mask: Mask) -> dict[str, list[int]]:
    return {"observation": observation.astype(int).tolist(), "mask": mask.tolist()}
