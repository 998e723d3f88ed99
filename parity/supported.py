"""`python -m parity.supported`: what of OpenSpiel's games is measured, as a table.

Every registered game is loaded with its default parameters. The table stands in docs/games.md;
`--check docs/games.md` exits 1 if it is no longer true.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import ExactGame, Game, TreeGame, load_game
from algorithms.self_play.states import playable_pyspiel_game
from algorithms.support.command import EXIT_FAILED, EXIT_OK, Parser
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress
from kuhn_bridge.errors import BridgeError

OURS = "python_kuhn_bridge"  # registered by this project
TREE = "exact, on a tree"
WITHOUT_TREE = "exact, without a tree"
BOUND = "a lower bound of NashConv"
# Why a game is not measured, by a phrase of the error that says so.
NOT_MEASURED = {
    "has no information state tensor": "too large for a tree, and no tensors for a network",
    "has no information state strings": "no information state strings",
    "samples chance outcomes": "chance outcomes are sampled, not listed",
    "mean_field": "mean field games",
    "OpenSpiel cannot load it": "no defaults for all parameters: a file or another game is needed",
    "name its .efg file": "no defaults for all parameters: a file or another game is needed",
    "has forgotten its earlier actions": "imperfect recall",
    "action IDs": "legal actions outside of its action IDs",
}
OTHER = "other"
CLASSES = (TREE, WITHOUT_TREE, BOUND, *dict.fromkeys(NOT_MEASURED.values()), OTHER)
HEADER = "| measure | games | |\n|---|---|---|"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = printed, or the page has this table; 1 = the page has another one."""
    parser = Parser(prog="python -m parity.supported", description=__doc__)
    parser.add_argument("--check", type=Path, metavar="PAGE", help="compare a page with the table")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    names = registered_names()
    by_class: dict[str, list[str]] = {name: [] for name in CLASSES}
    with progress("loading games", len(names)) as show:
        for done, name in enumerate(names):
            show(done, name)
            by_class[class_of(name)].append(name)
    table = as_table(by_class)
    if args.check is None:
        print(table)
        return EXIT_OK
    if table in args.check.read_text(encoding="utf-8"):
        print(f"{args.check} has the table of {len(names)} games")
        return EXIT_OK
    print(f"{args.check} has another table than this one:\n\n{table}")
    return EXIT_FAILED


def registered_names() -> list[str]:
    """OpenSpiel's games, its Python games included, without ours."""
    try:
        import pyspiel
        from open_spiel.python import games  # noqa: F401  # registers OpenSpiel's Python games
    except ImportError as error:
        raise UsageError(f"this needs OpenSpiel ({error})") from None
    return [name for name in pyspiel.registered_names() if name != OURS]


def class_of(name: str) -> str:
    """How a game is measured, or why it is not."""
    try:
        return _measure_of(load_game(name))
    except BridgeError as error:
        for phrase, reason in NOT_MEASURED.items():
            if phrase in str(error):
                return reason
        return OTHER


def _measure_of(game: Game) -> str:
    if isinstance(game, TreeGame):
        _ = game.tree  # raises if it cannot be built
        return TREE
    if isinstance(game, ExactGame):
        return WITHOUT_TREE
    playable_pyspiel_game(game)  # raises if trained best responses cannot play it
    return BOUND


def as_table(by_class: dict[str, list[str]]) -> str:
    """The games by class, as Markdown."""
    rows = [HEADER]
    for name, games in by_class.items():
        if games:
            rows.append(f"| {name} | {len(games)} | {', '.join(f'`{game}`' for game in games)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
