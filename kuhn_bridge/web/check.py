"""Compare the page's engine with the core: all nodes of the core, and engine.js on them."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kuhn_bridge.encoding import Mask, Observation, encode_history, one_hot
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card, Phase
from kuhn_bridge.state import State, nodes


def vectors() -> dict[str, Any]:
    """All 58 nodes, chance nodes first, with both agents' observations and masks."""
    return {"nodes": [*_chance_nodes(), *map(_dealt_node, nodes())]}


def to_json() -> str:
    """`vectors()` as text, one node per line."""
    lines = ",\n".join(json.dumps(node) for node in vectors()["nodes"])
    return f'{{"nodes": [\n{lines}\n]}}\n'


def report(
    text: str | None = None, *, onnx: Path | None = None, runtime: Path | None = None
) -> dict[str, Any]:
    """The output of `check.js` under node: `nodes`, `compared` and `mismatches` of `engine.js`.

    Args:
        text: vectors to compare the engine with, by default `to_json()`.
        onnx: exported policy; the report then has `probabilities` of `policy.js`, 12 x 3.
        runtime: module of onnxruntime-web.
    """
    node = shutil.which("node")
    if node is None:
        raise BridgeError("node is not installed; engine.js runs in Node.js 20 or later")
    model = [str(path) for path in (onnx, runtime) if path]
    done = subprocess.run(  # noqa: S603  # our own script
        [node, str(Path(__file__).with_name("check.js")), "-", *model],
        input=text or to_json(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BridgeError(f"check.js failed under node: {done.stderr.strip()[-300:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


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
    return np.concatenate([one_hot(card, len(Card)), encode_history(BETTING[""]), nobody])


def _agent(observation: Observation, mask: Mask) -> dict[str, list[int]]:
    return {"observation": observation.astype(int).tolist(), "mask": mask.tolist()}
