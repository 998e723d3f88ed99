"""`python -m parity.efg_files`: games in `.efg` files, compared with Gambit one by one.

With a FOLDER its files are read, for example those of Gambit's repository: a file is measured as
Gambit measures it, or it is refused for a reason that Gambit confirms. Without one, OpenSpiel's
games that fit a tree by default are saved as `.efg`, read back, and measured by Gambit too.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from algorithms.games import TreeGame, load_game
from algorithms.nashconv import evaluate_policy
from algorithms.support.arrays import Float64Array
from algorithms.support.command import EXIT_FAILED, EXIT_OK, Parser
from algorithms.support.errors import UsageError
from algorithms.tree import Tree
from kuhn_bridge.errors import BridgeError
from parity.gambit import GAMBIT, depth_first, file_in_gambit
from parity.registry import CheckSettings, run
from parity.supported import TREE, class_of, registered_names

EXACT = 1e-12
# Gambit's time grows with the square of the number of information sets: 295 thousand take hours.
LARGEST_FOR_GAMBIT = 100_000
AGREES = "agrees"
DIFFERS = "DIFFERS"
REFUSED = "refused"
UNREAD = "not read by Gambit"
TOO_LARGE = "too large for Gambit"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = everything agrees, 1 = a difference."""
    parser = Parser(prog="python -m parity.efg_files", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with .efg files")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    if find_spec("pygambit") is None:
        raise UsageError("this needs Gambit: pip install 'kuhn-bridge[gambit]'")
    outcomes = Counter[str]()
    if args.folder is None:
        for name in registered_names():
            if class_of(name) == TREE:
                outcomes[_compare_game(name)] += 1
    else:
        paths = sorted(args.folder.rglob("*.efg"))
        if not paths:
            raise UsageError(f"{args.folder}: no .efg files there")
        for path in paths:
            outcomes[_compare_file(path, str(path.relative_to(args.folder)))] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    return EXIT_FAILED if outcomes[DIFFERS] else EXIT_OK


def _compare_file(path: Path, name: str) -> str:
    """Read a file and compare it with Gambit; print a line unless they agree."""
    try:
        game = load_game(path)
    except BridgeError as error:
        reason = str(error).removeprefix(f"{path}, ").removeprefix(f"{path}: ")
        confirmed = _reason_in_gambit(path)
        print(f"{name}: {reason} (Gambit: {confirmed})")
        return REFUSED
    results = [run(check, CheckSettings(game=game)) for check in GAMBIT.checks.values()]
    for result in results:
        if result.cases:
            print(f"{name}: {DIFFERS}: {result.cases[0]}")
            return DIFFERS
    if results[0].status == "skipped":
        print(f"{name}: {results[0].note}")
        return UNREAD
    return AGREES


def _reason_in_gambit(path: Path) -> str:
    """What Gambit says about a game that is refused here."""
    try:
        game = file_in_gambit(path)
    except ValueError as error:
        return str(error)
    return "perfect recall" if game.is_perfect_recall else "no perfect recall"


def _compare_game(name: str) -> str:
    """Save a game, read it back, and compare both with Gambit; print a line."""
    game: Any = load_game(name)
    tree = game.tree
    with TemporaryDirectory() as folder:
        path = Path(folder) / "game.efg"
        game.save(path)
        saved = load_game(path)
        table = tree.random(0)
        before = evaluate_policy(tree, table).nash_conv
        after = evaluate_policy(saved.tree, as_read_back(tree, table)).nash_conv
        scale = max(1.0, float(np.abs(tree.returns).max()))
        theirs = TOO_LARGE
        if isinstance(saved, TreeGame) and len(tree.keys) <= LARGEST_FOR_GAMBIT:
            result = run(GAMBIT.checks["gambit-regrets"], CheckSettings(game=saved))
            theirs = DIFFERS if result.cases else AGREES
    size = f"{name}: {tree.num_nodes:,} nodes, NashConv of a random policy {before:.6g}"
    print(f"{size}, read back differs by {abs(before - after):.1e}, Gambit: {theirs}", flush=True)
    return theirs if abs(before - after) <= EXACT * scale else DIFFERS


def as_read_back(tree: Tree, table: Float64Array) -> Float64Array:
    """A policy `(I, A)` of a tree with the rows and columns of the saved tree.

    Its rows are the information sets in the order in which a depth-first walk arrives, and its
    columns number the legal actions of a row.
    """
    walked = tree.infoset[depth_first(tree)].tolist()
    order = [infoset for infoset in dict.fromkeys(walked) if infoset >= 0]
    rows = np.zeros((len(order), int(tree.legal.sum(axis=1).max())))
    for row, infoset in enumerate(order):
        legal = tree.legal[infoset]
        rows[row, : legal.sum()] = table[infoset, legal]
    return rows


if __name__ == "__main__":
    sys.exit(main())
