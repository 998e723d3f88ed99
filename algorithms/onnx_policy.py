"""Policies in ONNX files: `[N, 10]` in, with or without a `[N, 3]` mask; `[N, 3]` out.

Apart from `algorithms.model`, because onnxruntime alone starts in a third of the time of torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from algorithms.cli import first_line
from algorithms.rows import OBSERVATIONS, masked, masked_softmax
from kuhn_bridge.encoding import OBSERVATION_SIZE
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import LEGAL, Probabilities, TabularPolicy
from kuhn_bridge.rules import Action


def load_policy(path: str | Path) -> TabularPolicy:
    """The 12 rows that an ONNX model plays."""
    import onnxruntime

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
        feeds = {i.name: _feed(path, i) for i in session.get_inputs()}
        outputs = dict(
            zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True)
        )
    except PolicyError:
        raise
    except Exception as error:  # onnxruntime's errors have no common base
        raise PolicyError(f"{path}: onnxruntime cannot run it ({first_line(error)})") from None
    return TabularPolicy(_as_probabilities(path, outputs))


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
    if np.isnan(table).any():
        raise PolicyError(f"{path}: the model answers NaN")
    sums_to_one = (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4)
    return masked(table) if sums_to_one else masked_softmax(table)
