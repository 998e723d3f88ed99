"""`python -m algorithms.play [POLICY]`: play a small game in the browser or the terminal."""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence

from algorithms.exact.action_values import action_values
from algorithms.games import KUHN, Game
from algorithms.playing import terminal, tree_terminal
from algorithms.playing.opponents import PERFECT, opponent
from algorithms.playing.page import assets
from algorithms.policies import sources
from algorithms.reporting.document import MAX_NODES
from algorithms.reporting.entries import policy_names
from algorithms.reporting.page import page_assets
from algorithms.reporting.writing import (
    NO_REFERENCE,
    USUAL_REFERENCE,
    report_document,
    usual_reference,
)
from algorithms.support.command import EXIT_OK, Parser, run
from algorithms.support.errors import UsageError
from algorithms.support.server import Asset, Server

PORT = 8417  # the browser keeps a page's totals by its address, so the port stays the same


def main(argv: Sequence[str] | None = None) -> int:
    """Play against a policy: on a page served to this machine, or in the terminal."""
    parser = Parser(prog="python -m algorithms.play", description=main.__doc__)
    add = parser.add_argument
    add(
        "policy",
        nargs="?",
        help=f"{sources.HELP} (default {PERFECT}, perfect play; other games: {USUAL_REFERENCE})",
    )
    add("--game", metavar="NAME", help=sources.GAME_HELP)
    add("--terminal", action="store_true", help="play here instead of in the browser")
    add("--seed", type=int, help="the seed of cards and bot moves, with --terminal")
    add("--port", type=int, help=f"the port to serve on ({PORT}, or any free one)")
    add("--no-open", action="store_true", help="do not open the browser")
    add("--trust", action="store_true", help="let a model's file run code")
    options = parser.parse_args(argv)
    return run(lambda: _run(options), parser.prog)


def _run(options: argparse.Namespace) -> int:
    if options.seed is not None and not options.terminal:
        raise UsageError("--seed requires --terminal: the page draws its own cards")
    given = [sources.open_source(options.policy, trust=options.trust)] if options.policy else []
    game = sources.game_of(given, options.game)
    source = options.policy or (PERFECT if game.name == KUHN else usual_reference(game))
    _require_playable(game, source, terminal=options.terminal)
    if options.terminal:
        _play_in_terminal(game, source, options)
        return EXIT_OK
    with _server(_assets(game, source, trust=options.trust), options.port) as server:
        print(f"Play against {source}: {server.url} (Ctrl-C stops)", flush=True)
        if not options.no_open:
            # In a thread: a text browser would block the server that it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
    return EXIT_OK


def _require_playable(game: Game, source: str, *, terminal: bool) -> None:
    """Refuse large games before anything is solved for them."""
    if not game.fits_tree:
        raise UsageError(f"{game.name} is too large to play at a table; evaluate plays matches")
    nodes = game.tree.num_nodes
    if nodes > MAX_NODES and not terminal:
        raise UsageError(
            f"{game.name} has {nodes:,} nodes, the page at most {MAX_NODES:,}; --terminal plays it"
        )
    if source == NO_REFERENCE:
        raise UsageError(f"{game.name} has {nodes:,} nodes; name the POLICY to play against")


def _assets(game: Game, source: str, *, trust: bool) -> dict[str, Asset]:
    """Kuhn's own page, or the report's page opened at the table."""
    if game.name == KUHN:
        return assets(source, trust=trust)
    return page_assets(report_document(_opponents(source), game, trust=trust, mode="play"))


def _opponents(source: str) -> list[str]:
    """The policy asked for, and one that is easy to beat."""
    return list(dict.fromkeys([source, "uniform"]))


def _play_in_terminal(game: Game, source: str, options: argparse.Namespace) -> None:
    if game.name == KUHN:
        terminal.play(opponent(source, trust=options.trust), seed=options.seed)
        return
    names = dict.fromkeys([source, usual_reference(game)])
    names.pop(NO_REFERENCE, None)
    judges = [_judge(game, name, trust=options.trust) for name in names]
    tree_terminal.play(game, judges[0], *judges[1:], seed=options.seed)


def _judge(game: Game, source: str, *, trust: bool) -> tree_terminal.Judge:
    table = sources.load_policy(source, game, trust=trust).table
    name = policy_names([source])[0]
    return tree_terminal.Judge(name, table, action_values(game.tree, table))


def _server(table: dict[str, Asset], port: int | None) -> Server:
    """On the port asked for; else on the usual one, or on any if somebody has taken that."""
    if port is not None:
        return Server(table, port=port)
    try:
        return Server(table, port=PORT)
    except UsageError:
        return Server(table)


if __name__ == "__main__":
    sys.exit(main())
