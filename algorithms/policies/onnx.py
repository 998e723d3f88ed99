"""Policies in ONNX files: `[N, 10]` in, with or without a `[N, 3]` mask; `[N, 3]` out.

Apart from `algorithms.model`, because onnxruntime alone starts in a third of the time of torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from algorithms.games import KUHN, Game
from algorithms.policies.policy import GamePolicy, require_game
from algorithms.policies.rows import OBSERVATIONS, masked, masked_softmax, policy_in
from algorithms.support.errors import first_line
from kuhn_bridge.encoding import OBSERVATION_SIZE
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import LEGAL, Probabilities
from kuhn_bridge.rules import Action


def load_policy(path: str | Path, *, game: Game | None = None) -> GamePolicy:
    """The policy that an ONNX model plays."""
    import onnxruntime

    require_game(KUHN, game)
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
        outputs = _run(path, session)
    except PolicyError:
        raise
    except Exception as error:  # onnxruntime's errors have no common base
        raise PolicyError(f"{path}: onnxruntime cannot run it ({first_line(error)})") from None
    return GamePolicy.from_kuhn(policy_in(path, _as_probabilities(path, outputs)))


def _run(path: Path, session: Any) -> dict[str, Any]:
    """Every output by name, for the 12 rows at once or, where the batch is fixed at 1, in turn."""
    inputs = session.get_inputs()
    feeds = {given.name: _feed(path, given) for given in inputs}
    if not any(feed.shape[1] == OBSERVATION_SIZE for feed in feeds.values()):
        raise PolicyError(f"{path}: no input is an observation, [N, {OBSERVATION_SIZE}]")
    size = 1 if any(given.shape[0] == 1 for given in inputs) else len(LEGAL)
    parts = [
        session.run(None, {name: feed[at : at + size] for name, feed in feeds.items()})
        for at in range(0, len(LEGAL), size)
    ]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def _feed(path: Path, given: Any) -> Any:
    """What goes into one input of an ONNX model: observations or masks, by its width."""
    tables = {OBSERVATION_SIZE: OBSERVATIONS, len(Action): LEGAL}
    width = given.shape[-1] if len(given.shape) == 2 else None
    dtype = _ONNX_TYPES.get(given.type)
    if width not in tables or dtype is None:
        raise PolicyError(
            f"{path}: input {given.name!r} is {given.type} {given.shape}; an observation is "
            f"[N, {OBSERVATION_SIZE}], an action mask [N, {len(Action)}]"
        )
    return tables[width].astype(dtype)


_ONNX_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(bool)": np.bool_,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


def _as_probabilities(path: Path, outputs: dict[str, Any]) -> Probabilities:
    """The output called `probabilities`, or else the first of its shape, whatever it holds."""
    tables = {
        name: np.asarray(output, np.float64)
        for name, output in outputs.items()
        if np.shape(output) == LEGAL.shape
    }
    if not tables:
        raise PolicyError(f"{path}: no output is [N, {len(Action)}]; they are {', '.join(outputs)}")
    table = tables.get("probabilities", next(iter(tables.values())))
    sums_to_one = (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4)
    return masked(table) if sums_to_one else masked_softmax(table)
