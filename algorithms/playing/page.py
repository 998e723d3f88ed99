"""The files and data of Kuhn's browser page, with the opponents and the equilibria."""

import json
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from algorithms import kuhn_equilibria
from algorithms.compiled.nashconv import action_values
from algorithms.games import kuhn
from algorithms.policies.json_files import to_names
from algorithms.policies.load import Source, is_file, open_source


class Description(NamedTuple):
    """What the person who plays against a policy reads about it."""

    name: str
    about: str = ""  # a sentence


# The equilibrium in the middle reaches every information set, so every mistake against it costs.
PERFECT_ALPHA = Fraction(1, 6)
PERFECT = f"nash:{PERFECT_ALPHA}"
OPPONENTS = {
    PERFECT: Description(
        "Perfect play", "It gives nothing away: in the long run nobody wins from it."
    ),
    "uniform": Description("Coin flips", "It decides every move by a coin toss, with every card."),
    "heuristic": Description(
        "Never bluffs", "It bets only with the King, and folds the Jack to a bet."
    ),
    "always-bet": Description("Always bets", "It bets and calls with every card."),
    "always-check": Description(
        "Always checks", "It checks with every card, and folds to every bet."
    ),
}
_WEB = resources.files("kuhn_bridge.web")
_PAGE_SUFFIXES = (".html", ".css", ".svg", ".js")
_COMMAND_FILE = "check.js"  # of `kuhn_bridge.web.check`, not of the page
# The files of onnxruntime-web that the page needs: its loader and its compiled code.
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_PROJECTS = (Path(__file__).parents[2], Path())  # folders where npm may have installed it


def described(source: str) -> Description:
    """A name and a sentence for the person who plays against a policy of Kuhn."""
    if is_file(source):
        return Description(Path(source).name)
    if source in OPPONENTS:
        return OPPONENTS[source]
    kind, _, argument = source.partition(":")
    if kind == "nash" and argument:
        return Description(f"Perfect play (alpha {argument})")
    if kind == "random" and argument:
        return Description(f"Random habits {argument}")
    return Description(source)


def page_files() -> list[str]:
    """The names of the page's own files."""
    names = [file.name for file in _WEB.iterdir() if file.name.endswith(_PAGE_SUFFIXES)]
    return [name for name in names if name != _COMMAND_FILE]


def assets(source: str | Source) -> dict[str, bytes]:
    """The files of the page for a game against `source`, by path."""
    files = {f"/{name}": (_WEB / name).read_bytes() for name in page_files()}
    runtime = runtime_files()
    for name, path in runtime.items():
        files[f"/ort/{name}"] = path.read_bytes()
    opened = open_source(source)
    opponent = _opponent(opened)
    if Path(opened.name).suffix == ".onnx":
        files["/policy.onnx"] = Path(opened.name).read_bytes()
        opponent["onnx"] = "policy.onnx"
    others = [_opponent(open_source(name)) for name in OPPONENTS]
    others = [other for other in others if other["policy"] != opponent["policy"]]
    perfect = kuhn_equilibria.nash(PERFECT_ALPHA)
    tree = kuhn().tree
    costs = tree.table_of(action_values(tree, perfect).costs)
    document = {  # that the page reads when it starts
        "opponents": [opponent, *others],
        "runtime": bool(runtime),
        "equilibrium": _equilibrium_ranges(),
        "perfect": to_names(perfect),
        "costs": to_names(costs),
        "value": float(kuhn_equilibria.VALUE),
        "uniform_nash_conv": float(kuhn_equilibria.UNIFORM_NASH_CONV),
    }
    files["/game.json"] = json.dumps(document).encode()
    return files


def runtime_files() -> dict[str, Path]:
    """The files of onnxruntime-web by name; empty if npm has not installed it."""
    for project in _PROJECTS:
        folder = project / "node_modules" / "onnxruntime-web" / "dist"
        if all((folder / name).is_file() for name in RUNTIME):
            return {name: folder / name for name in RUNTIME}
    return {}


def _opponent(source: Source) -> dict[str, Any]:
    description = described(source.name)
    return {
        "name": description.name,
        "about": description.about,
        "policy": to_names(source.policy(kuhn()).table),
        "onnx": None,
    }


def _equilibrium_ranges() -> dict[str, dict[str, list[float]]]:
    """The lowest and highest probability of each action over all equilibria; linear in alpha."""
    first = to_names(kuhn_equilibria.nash(Fraction(0)))
    last = to_names(kuhn_equilibria.nash(kuhn_equilibria.LARGEST_ALPHA))
    return {
        name: {action: sorted((row[action], last[name][action])) for action in row}
        for name, row in first.items()
    }
