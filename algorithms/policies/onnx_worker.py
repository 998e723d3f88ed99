"""A process of its own that runs one ONNX file, bounded in time and memory.

Started by `algorithms.policies.onnx`; it needs numpy and onnxruntime alone. It says what the file
takes, is given that, and says what came out: lines of JSON, with arrays as raw bytes after them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def main() -> None:
    """`onnx_worker.py FILE SECONDS BYTES MOST`: processor time, memory, and size of the file."""
    path, (seconds, memory, most) = sys.argv[1], map(int, sys.argv[2:])
    _bound(seconds, memory)
    try:
        session = _session(path, most)
        _describe(session)
        _answer(session)
    except MemoryError:
        _say({"error": "it needs more memory than a policy may"})
    except OSError as error:
        _say({"error": error.strerror or str(error)})
    except Exception as error:  # onnxruntime's errors have no common base
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        _say({"error": f"onnxruntime cannot run it ({reason})"})


def _bound(seconds: int, memory: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows; there the parent's clock alone ends what does not end
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _session(path: str, most: int) -> Any:
    import onnxruntime

    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"the file is larger than {most:,} bytes")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])


def _describe(session: Any) -> None:
    """Say what goes in, and what game the file names."""
    inputs = [(given.name, given.type, given.shape) for given in session.get_inputs()]
    game = session.get_modelmeta().custom_metadata_map.get("game")
    _say({"inputs": inputs, "game": game})


def _answer(session: Any) -> None:
    """Run the feeds in batches; give back the table called `probabilities`, or the first one."""
    wanted = json.loads(sys.stdin.buffer.readline())
    rows, actions, batch = wanted["rows"], wanted["actions"], wanted["batch"]
    feeds = {name: _read(dtype, rows, width) for name, dtype, width in wanted["feeds"]}
    names = [output.name for output in session.get_outputs()]
    tables: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in names}
    for at in range(0, rows, batch):
        part = {name: feed[at : at + batch] for name, feed in feeds.items()}
        length = min(batch, rows - at)
        for name, output in zip(names, session.run(None, part), strict=True):
            if np.shape(output) == (length, actions):
                tables[name].append(np.asarray(output, np.float64))
    whole = {name: parts for name, parts in tables.items() if sum(map(len, parts)) == rows}
    if not whole:
        _say({"error": f"no output is [N, {actions}]; they are {', '.join(names)}"})
        return
    parts = whole.get("probabilities") or next(iter(whole.values()))
    _say({"rows": rows, "actions": actions}, np.concatenate(parts).tobytes())


def _read(dtype: str, rows: int, width: int) -> npt.NDArray[Any]:
    kind = np.dtype(dtype)
    content = sys.stdin.buffer.read(rows * width * kind.itemsize)
    return np.frombuffer(content, kind).reshape(rows, width)


def _say(message: dict[str, Any], array: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n" + array)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
