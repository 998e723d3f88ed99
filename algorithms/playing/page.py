"""The files and data of the browser page, with the opponents and the equilibria."""

import json
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from algorithms.exact.kuhn import (
    LARGEST_ALPHA,
    UNIFORM_NASH_CONV,
    VALUE,
    exact_nash,
    move_costs,
    nash,
)
from algorithms.playing.opponents import PERFECT_ALPHA, Opponent, opponent, usual
from algorithms.policies.formats import to_names
from algorithms.policies.sources import Source

PAGE = (
    "index.html",
    "common.css",
    "style.css",
    "favicon.svg",
    "app.js",
    "chart.js",
    "dom.js",
    "engine.js",
    "estimate.js",
    "memory.js",
    "mind.js",
    "model.js",
    "opponents.js",
    "policy.js",
    "score.js",
    "text.js",
    "values.js",
)
# The files of onnxruntime-web that the page needs: its loader and its compiled code.
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_PROJECTS = (Path(__file__).parents[2], Path())


def assets(source: str | Source) -> dict[str, bytes]:
    """The files of the page for a game against `source`, by path."""
    web = resources.files("kuhn_bridge.web")
    files = {f"/{name}": (web / name).read_bytes() for name in PAGE}
    runtime = runtime_files()
    files |= {f"/ort/{name}": path.read_bytes() for name, path in runtime.items()}
    given = _as_json(opponent(source))
    path = Path(source if isinstance(source, str) else source.name)
    if path.suffix == ".onnx":
        files["/policy.onnx"] = path.read_bytes()
        given["onnx"] = "policy.onnx"
    files["/game.json"] = json.dumps(_game_document(given, runtime=bool(runtime))).encode()
    return files


def _game_document(given: dict[str, Any], *, runtime: bool) -> dict[str, Any]:
    """The JSON object that the page reads when it starts.

    Args:
        given: first opponent, as JSON; the usual ones follow.
        runtime: whether onnxruntime-web is served.
    """
    others = [_as_json(one) for one in usual()]
    return {
        "opponents": [given, *(one for one in others if one["policy"] != given["policy"])],
        "runtime": runtime,
        "equilibrium": _bands(),
        "perfect": to_names(nash(PERFECT_ALPHA)),
        "costs": {
            name: {action.name: float(cost) for action, cost in row.items()}
            for name, row in move_costs(exact_nash(PERFECT_ALPHA)).items()
        },
        "value": float(VALUE),
        "uniform_nash_conv": float(UNIFORM_NASH_CONV),
    }


def runtime_files() -> dict[str, Path]:
    """The files of onnxruntime-web by name; empty if npm has not installed it."""
    for project in _PROJECTS:
        home = project / "node_modules" / "onnxruntime-web" / "dist"
        if all((home / name).is_file() for name in RUNTIME):
            return {name: home / name for name in RUNTIME}
    return {}


def _as_json(one: Opponent) -> dict[str, Any]:
    policy = to_names(one.policy.table)
    return {"name": one.name, "about": one.about, "policy": policy, "onnx": None}


def _bands() -> dict[str, dict[str, tuple[float, float]]]:
    """The lowest and highest probability of each action over all equilibria; linear in alpha."""
    first, last = (to_names(nash(alpha)) for alpha in (Fraction(0), LARGEST_ALPHA))
    return {
        name: {
            action: (min(share, last[name][action]), max(share, last[name][action]))
            for action, share in row.items()
        }
        for name, row in first.items()
    }
