"""Compare the page's engine with the core: all nodes of the core, and engine.js on them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card, Phase
from kuhn_bridge.state import State, encode_history, nodes, one_hot


def to_json() -> str:
    """All 58 nodes, chance nodes first, one per line, with both agents' observations and masks."""
    undealt = [(), *((card,) for card in Card)]
    vectors = [_chance_node(dealt) for dealt in undealt] + [_dealt_node(state) for state in nodes()]
    lines = ",\n".join(json.dumps(vector) for vector in vectors)
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


def _chance_node(dealt: tuple[Card, ...]) -> dict[str, Any]:
    """A node where no card or only player_0's is dealt: nobody acts there."""
    start = encode_history(BETTING[""])
    nobody = np.zeros(len(AGENTS))
    observations = []
    for seat in PLAYERS:
        card = dealt[seat] if seat < len(dealt) else None
        observations.append(np.concatenate([one_hot(card, len(Card)), start, nobody]))
    nothing_legal = np.zeros(len(Action))
    return {
        "cards": [int(card) for card in dealt],
        "letters": "",
        "history": [],
        "phase": Phase.DEAL.label,
        "actor": None,
        "deals": [int(card) for card in Card if card not in dealt],
        "after": {},
        "returns": [0, 0],
        "agents": [_agent(observation, nothing_legal) for observation in observations],
    }


def _agent(observation: npt.NDArray[Any], mask: npt.NDArray[Any]) -> dict[str, list[int]]:
    return {"observation": observation.astype(int).tolist(), "mask": mask.astype(int).tolist()}
