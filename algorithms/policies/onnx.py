"""Policies in ONNX files: `[N, size]` in, with or without a `[N, A]` mask; `[N, A]` out.

A graph can loop without end or unroll to any size, so it is run in a process of its own, bounded
in time and memory; that also keeps torch out of it, which takes ten times as long to start.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.games import Game
from algorithms.policies import onnx_worker
from algorithms.policies.answers import game_in, masked, masked_softmax, policy_in
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import PolicyError, short_repr

MAX_BYTES = 256 * 2**20  # of the file
CPU_SECONDS, CLOCK_SECONDS = 20, 60
MEMORY = 4 * 2**30
BATCH = 4_096  # information sets run at a time
LONGEST_LINE = 2**16

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(bool)": "bool",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
}


def load_policy(path: str | Path, *, game: Game | None = None) -> Policy:
    """What an ONNX model plays, at every information set of its game."""
    if find_spec("onnxruntime") is None:
        raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")
    path = Path(path)
    with _worker(path) as worker:
        about = _line(path, worker)
        loaded = game_in(path, about["game"], game)
        try:
            answer = _asked(path, worker, about["inputs"], loaded)
        except BrokenPipeError:
            raise _ended(path, worker) from None
    return policy_in(path, loaded, _as_probabilities(answer, loaded))


@contextmanager
def _worker(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process that runs the file, for as long as it may."""
    limits = map(str, (CPU_SECONDS, MEMORY, MAX_BYTES))
    command = [sys.executable, "-P", onnx_worker.__file__, str(path), *limits]
    with subprocess.Popen(  # noqa: S603  # our own worker
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        clock = Timer(CLOCK_SECONDS, process.kill)
        clock.start()
        try:
            yield process
        finally:
            clock.cancel()
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr]  # it is a pipe


def _asked(path: Path, worker: Any, inputs: list[Any], game: Game) -> Float64Array:
    """The output `(I, A)` for every information set of the game."""
    feeds = {name: _feed(path, name, kind, shape, game) for name, kind, shape in inputs}
    rows, actions = game.tree.legal.shape
    single = any(shape[0] == 1 for _, _, shape in inputs)
    wanted = {
        "rows": rows,
        "actions": actions,
        "batch": 1 if single else BATCH,
        "feeds": [(name, str(feed.dtype), feed.shape[1]) for name, feed in feeds.items()],
    }
    if not any(_is_observation(name, shape, game) for name, _, shape in inputs):
        raise PolicyError(f"{path}: no input is an observation, [N, {game.observations.shape[1]}]")
    worker.stdin.write(json.dumps(wanted).encode() + b"\n")
    for feed in feeds.values():
        worker.stdin.write(feed.tobytes())
    worker.stdin.flush()
    _line(path, worker)
    content = worker.stdout.read(rows * actions * 8)
    if len(content) < rows * actions * 8:
        raise _ended(path, worker)
    return np.frombuffer(content, np.float64).reshape(rows, actions)


def _feed(path: Path, name: str, kind: str, shape: list[Any], game: Game) -> npt.NDArray[Any]:
    """What goes into one input of an ONNX model: observations or masks, by its width."""
    size, actions = game.observations.shape[1], game.tree.legal.shape[1]
    dtype = _DTYPES.get(kind)
    if len(shape) != 2 or shape[1] not in (size, actions) or dtype is None:
        raise PolicyError(
            f"{path}: input {short_repr(name)} is {kind} {short_repr(shape)}; an observation is "
            f"[N, {size}], an action mask [N, {actions}]"
        )
    table = game.observations if _is_observation(name, shape, game) else game.tree.legal
    return np.asarray(table.astype(dtype))


def _is_observation(name: str, shape: list[Any], game: Game) -> bool:
    """By its width; by its name in a game with as many actions as numbers to see."""
    size, actions = game.observations.shape[1], game.tree.legal.shape[1]
    return bool(shape[-1] == size and (size != actions or "mask" not in name.lower()))


def _line(path: Path, worker: Any) -> dict[str, Any]:
    """The next thing that the worker says; what it could not do is an error of the file."""
    text = worker.stdout.readline(LONGEST_LINE)
    if not text.endswith(b"\n"):
        raise _ended(path, worker)
    said: dict[str, Any] = json.loads(text)
    if "error" in said:
        raise PolicyError(f"{path}: {said['error']}")
    return said


def _ended(path: Path, worker: Any) -> PolicyError:
    """What to say of a worker that was ended by its bounds, or by the file's own doing."""
    worker.kill()
    return PolicyError(
        f"{path}: stopped: it takes more than {CPU_SECONDS} s or {MEMORY / 2**30:g} GiB to run"
    )


def _as_probabilities(table: Float64Array, game: Game) -> Float64Array:
    """The answer as it is if its rows are probabilities, else its softmax."""
    sums_to_one = (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4)
    legal = game.tree.legal
    return masked(table, legal) if sums_to_one else masked_softmax(table, legal)
