"""Everything the browser page is served: its files, the opponents, and what perfect play does."""

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
    "palette.css",
    "style.css",
    "favicon.svg",
    "app.js",
    "chart.js",
    "dom.js",
    "engine.js",
    "memory.js",
    "mind.js",
    "model.js",
    "opponents.js",
    "policy.js",
    "score.js",
    "text.js",
    "values.js",
)
# What `npm ci` fetches of onnxruntime-web: its loader, and the code that the loader asks for.
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_PROJECTS = (Path(__file__).parents[2], Path())


def assets(source: str, *, trust: bool = False) -> dict[str, Asset]:
    """Everything the page may ask for, by path."""
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
    """What the page knows before the first hand.

    Args:
        given: the opponent to begin with, as JSON; the usual ones follow it.
        runtime: whether onnxruntime-web is served too.
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
    """onnxruntime-web by file name, where npm has fetched it; empty where it has not."""
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
    """The least and most that any equilibrium plays each action; linear in alpha."""
    ends = [to_names(nash(alpha)) for alpha in (Fraction(0), LARGEST_ALPHA)]
    return {
        name: {
            action: (min(shares), max(shares))
            for action in row
            for shares in [[end[name][action] for end in ends]]
        }
        for name, row in ends[0].items()
    }
