"""What the browser page is served: its files, the opponents, and the equilibria."""

from __future__ import annotations

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
from algorithms.playing.opponents import PERFECT, PERFECT_ALPHA, Opponent, opponent, usual
from algorithms.policies.kuhn import to_names
from algorithms.support.server import Asset

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


def assets(source: str, *, trust: bool = False) -> dict[str, Asset]:
    """Everything that is served, by path."""
    web = resources.files("kuhn_bridge.web")
    files = {f"/{name}": (web / name).read_bytes() for name in PAGE}
    runtime = runtime_files()
    files |= {f"/ort/{name}": path.read_bytes() for name, path in runtime.items()}
    given = _as_json(opponent(source, trust=trust))
    if Path(source).suffix == ".onnx":
        files["/policy.onnx"] = Path(source).read_bytes()
        given["onnx"] = "policy.onnx"
    files["/game.json"] = json.dumps(briefing(given, runtime=bool(runtime))).encode()
    served = {path: Asset.named(path, body) for path, body in files.items()}
    return {"/": served["/index.html"], **served}


def briefing(given: dict[str, Any], *, runtime: bool) -> dict[str, Any]:
    """The document that the page starts with.

    Args:
        given: the first opponent, as JSON; the usual ones follow.
        runtime: whether onnxruntime-web is served.
    """
    others = [_as_json(one) for one in usual()]
    return {
        "opponents": [given, *(one for one in others if one["policy"] != given["policy"])],
        "runtime": runtime,
        "equilibrium": _bands(),
        "perfect": to_names(opponent(PERFECT).policy.table),
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
    return {
        "name": one.name,
        "about": one.about,
        "policy": to_names(one.policy.table),
        "onnx": None,
    }


def _bands() -> dict[str, dict[str, tuple[float, float]]]:
    """The lowest and highest probability of each action over all equilibria; linear in alpha."""
    ends = [to_names(nash(alpha)) for alpha in (Fraction(0), LARGEST_ALPHA)]
    return {
        name: {
            action: (min(shares), max(shares))
            for action in row
            for shares in [[end[name][action] for end in ends]]
        }
        for name, row in ends[0].items()
    }
