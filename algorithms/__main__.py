"""`kuhn-bridge COMMAND`: all commands in one script, independent of the working directory."""

import sys
from collections.abc import Sequence
from importlib import import_module

from algorithms.support.command import EXIT_OK, SCRIPT, run, table
from algorithms.support.errors import unknown
from kuhn_bridge import __version__

# The module of each command and a line of help, so that listing them imports none of them.
COMMANDS = {
    "train-ppo": ("algorithms.train_ppo", "train MaskablePPO by self-play"),
    "nashconv": ("algorithms.nashconv", "exact exploitability, and where it comes from"),
    "solve": ("algorithms.solve", "solve a game with the CFR family"),
    "distil": ("algorithms.distil", "put a policy into a network, as a model or as ONNX"),
    "report": ("algorithms.report", "policies as one HTML file: to read, explore and play"),
    "evaluate": ("algorithms.evaluate", "the value of a policy against opponents"),
    "simulate": ("algorithms.simulate", "play hands between two policies"),
    "dominance": ("algorithms.dominance", "dominated actions, and the cost of playing them"),
    "sweep": ("algorithms.sweep", "training runs over seeds and settings"),
    "play": ("algorithms.play", "play against a policy yourself"),
    "export-onnx": ("algorithms.export_onnx", "write a trained model as ONNX"),
    "export-efg": ("algorithms.export_efg", "write a game for Gambit"),
    "training-games": ("algorithms.training_games", "training on a whole list of games"),
    "curves": ("algorithms.curves", "draw learning curves"),
    "rps": ("algorithms.rps", "regret matching on rock, paper, scissors"),
    "check": ("parity.check", "compare everything, or your own Kuhn poker, with OpenSpiel"),
    "supported": ("parity.supported", "which of OpenSpiel's games are measured, as a table"),
    "efg-files": ("parity.efg_files", "compare .efg files with Gambit, one by one"),
    "speed": ("parity.speed", "compare our speed with other libraries"),
    "benchmark": ("parity.benchmark", "exploitability and its cost in the large games"),
    "growth": ("parity.growth", "time and memory per node in games of all sizes"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; without one, list them."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else ""
    return run(lambda: _run(name, arguments[1:]), SCRIPT)


def _run(name: str, arguments: Sequence[str]) -> int:
    if name in {"-V", "--version"}:
        print(f"{SCRIPT} {__version__}")
        return EXIT_OK
    if name in {"", "-h", "--help"}:
        print(f"usage: {SCRIPT} COMMAND ...   ({SCRIPT} COMMAND --help for details)\n")
        rows = [(command, what) for command, (_, what) in COMMANDS.items()]
        print(table(("command", "what it does"), rows, left=2))
        return EXIT_OK
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    module, _ = COMMANDS[name]
    return int(import_module(module).main(arguments))
