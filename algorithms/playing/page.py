"""The files and data of Kuhn's browser page, with the opponents and the equilibria."""

import json
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from algorithms import kuhn_equilibria as exact
from algorithms.games import kuhn
from algorithms.nashconv import action_values
from algorithms.policies.json_files import to_names
from algorithms.policies.load import Source, is_file, open_source

# The equilibrium in the middle reaches every information set, so every mistake against it costs.
PERFECT_ALPHA = Fraction(1, 6)
PERFECT = f"nash:{PERFECT_ALPHA}"
OPPONENTS = {
    PERFECT: ("Perfect play", "It gives nothing away: in the long run nobody wins from it."),
    "uniform": ("Coin flips", "It decides every move by a coin toss, with every card."),
    "heuristic": ("Never bluffs", "It bets only with the King, and folds the Jack to a bet."),
    "always-bet": ("Always bets", "It bets and calls with every card."),
    "always-check": ("Always checks", "It checks with every card, and folds to every bet."),
}
_WEB = resources.files("kuhn_bridge.web")
PAGE = [
    file.name
    for file in _WEB.iterdir()
    if file.name.endswith((".html", ".css", ".svg", ".js")) and file.name != "check.js"
]
# The files of onnxruntime-web that the page needs: its loader and its compiled code.
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_PROJECTS = (Path(__file__).parents[2], Path())


def described(source: str) -> tuple[str, str]:
    """A name and a sentence for the person who plays against a policy of Kuhn."""
    kind, _, argument = source.partition(":")
    if is_file(source):
        return Path(source).name, ""
    names = {"nash": f"Perfect play (alpha {argument})", "random": f"Random habits {argument}"}
    return OPPONENTS.get(source) or (names.get(kind, source) if argument else source, "")


def assets(source: str | Source) -> dict[str, bytes]:
    """The files of the page for a game against `source`, by path."""
    files = {f"/{name}": (_WEB / name).read_bytes() for name in PAGE}
    runtime = runtime_files()
    files |= {f"/ort/{name}": path.read_bytes() for name, path in runtime.items()}
    opened = open_source(source)
    given = _opponent(opened)
    if Path(opened.name).suffix == ".onnx":
        files["/policy.onnx"] = Path(opened.name).read_bytes()
        given["onnx"] = "policy.onnx"
    others = [_opponent(open_source(name)) for name in OPPONENTS]
    costs = action_values(kuhn().tree, exact.nash(PERFECT_ALPHA)).costs
    document = {  # that the page reads when it starts
        "opponents": [given, *(one for one in others if one["policy"] != given["policy"])],
        "runtime": bool(runtime),
        "equilibrium": _bands(),
        "perfect": to_names(exact.nash(PERFECT_ALPHA)),
        "costs": to_names(kuhn().tree.table_of(costs)),
        "value": float(exact.VALUE),
        "uniform_nash_conv": float(exact.UNIFORM_NASH_CONV),
    }
    return files | {"/game.json": json.dumps(document).encode()}


def runtime_files() -> dict[str, Path]:
    """The files of onnxruntime-web by name; empty if npm has not installed it."""
    for project in _PROJECTS:
        home = project / "node_modules" / "onnxruntime-web" / "dist"
        if all((home / name).is_file() for name in RUNTIME):
            return {name: home / name for name in RUNTIME}
    return {}


def _opponent(source: Source) -> dict[str, Any]:
    name, about = described(source.name)
    policy = to_names(source.policy(kuhn()).table)
    return {"name": name, "about": about, "policy": policy, "onnx": None}


def _bands() -> dict[str, dict[str, list[float]]]:
    """The lowest and highest probability of each action over all equilibria; linear in alpha."""
    first, last = (to_names(exact.nash(alpha)) for alpha in (Fraction(0), exact.LARGEST_ALPHA))
    return {
        name: {action: sorted((share, last[name][action])) for action, share in row.items()}
        for name, row in first.items()
    }
