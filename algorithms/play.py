"""`python -m algorithms.play [POLICY]`: play Kuhn poker against a policy, in the browser."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import webbrowser
from collections.abc import Sequence
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from algorithms.exact.kuhn import LARGEST_ALPHA, UNIFORM_NASH_CONV, VALUE, nash
from algorithms.exact.values import nash_conv
from algorithms.games.kuhn import kuhn, kuhn_tree
from algorithms.policies import sources
from algorithms.support.command import HOLDS, Parser, run
from algorithms.support.server import Asset, Server
from kuhn_bridge import Action, TabularPolicy

DEFAULT = "nash:1/6"
PAGE = (
    "index.html",
    "style.css",
    "favicon.svg",
    "app.js",
    "engine.js",
    "mind.js",
    "policy.js",
    "score.js",
)
# What `npm ci` fetches of onnxruntime-web: its loader, and the code that the loader asks for.
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_PROJECTS = (Path(__file__).parents[1], Path())


def describe(source: str, policy: TabularPolicy, *, runtime: bool) -> dict[str, Any]:
    """What the page knows of its bot: the policy, how exploitable it is, and equilibrium's bands.

    Args:
        source: as the user named it; of a file only the name is told.
        policy: what it plays.
        runtime: whether onnxruntime-web is served too.
    """
    measured = nash_conv(kuhn_tree(), policy.probabilities)
    rows = policy.to_dict()
    return {
        "name": Path(source).name if _is_file(source) else source,
        "policy": rows,
        "onnx": "policy.onnx" if _is_onnx(source) else None,
        "runtime": runtime,
        "nash_conv": measured.total,
        "uniform_nash_conv": float(UNIFORM_NASH_CONV),
        "best_response_values": measured.best_values,
        "best_responses": {
            name: Action(int(action)).name
            for name, action in zip(rows, measured.best_responses, strict=True)
        },
        "equilibrium": _bands(),
        "equilibrium_value": float(VALUE),
    }


def runtime_files() -> dict[str, Path]:
    """onnxruntime-web by file name, where `make web` has fetched it; empty where it has not."""
    for project in _PROJECTS:
        home = project / "node_modules" / "onnxruntime-web" / "dist"
        if all((home / name).is_file() for name in RUNTIME):
            return {name: home / name for name in RUNTIME}
    return {}


def assets(source: str, *, trust: bool = False) -> dict[str, Asset]:
    """Everything the page may ask for, by path."""
    web = resources.files("kuhn_bridge.web")
    files = {f"/{name}": (web / name).read_bytes() for name in PAGE}
    runtime = runtime_files() if _is_onnx(source) else {}
    if _is_onnx(source):
        files["/policy.onnx"] = Path(source).read_bytes()
        files |= {f"/ort/{name}": path.read_bytes() for name, path in runtime.items()}
    bot = describe(
        source, sources.load(source, kuhn(), trust=trust).to_kuhn(), runtime=bool(runtime)
    )
    files["/bot.json"] = json.dumps(bot).encode()
    table = {path: Asset.named(path, body) for path, body in files.items()}
    return {"/": table["/index.html"], **table}


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the page to this machine, and open it."""
    parser = Parser(prog="python -m algorithms.play", description=main.__doc__)
    parser.add_argument(
        "policy", nargs="?", default=DEFAULT, help=f"{sources.HELP} (default %(default)s)"
    )
    parser.add_argument("--port", type=int, default=0, help="the port to serve on (any free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    options = parser.parse_args(argv)
    return run(lambda: _run(options), parser.prog)


def _run(options: argparse.Namespace) -> int:
    with Server(assets(options.policy, trust=options.trust), port=options.port) as server:
        print(f"Play against {options.policy}: {server.url} (Ctrl-C stops)", flush=True)
        if not options.no_open:
            # A browser in the terminal would keep us from serving what it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
    return HOLDS


def _bands() -> dict[str, dict[str, tuple[float, float]]]:
    """The least and most that any equilibrium plays each action; linear in alpha."""
    ends = [nash(alpha).to_dict() for alpha in (Fraction(0), LARGEST_ALPHA)]
    return {
        name: {
            action: (min(shares), max(shares))
            for action in row
            for shares in [[end[name][action] for end in ends]]
        }
        for name, row in ends[0].items()
    }


def _is_onnx(source: str) -> bool:
    return Path(source).suffix == ".onnx"


def _is_file(source: str) -> bool:
    return Path(source).suffix in sources.FILES


if __name__ == "__main__":
    sys.exit(main())
