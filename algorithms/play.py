"""`python -m algorithms.play [POLICY]`: play a small game in the browser or the terminal."""

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence

from algorithms.exact.values import action_values
from algorithms.games import KUHN, Game
from algorithms.playing import page, terminal, tree_terminal
from algorithms.playing.opponents import PERFECT, opponent
from algorithms.policies import sources
from algorithms.policies.sources import Source, open_source
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
from algorithms.support.server import Server

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
    given = [open_source(options.policy, trust=options.trust)] if options.policy else []
    game = sources.game_of(given, options.game)
    source = given[0] if given else open_source(usual_reference(game))
    _require_playable(game, source, terminal=options.terminal)
    if options.terminal:
        _play_in_terminal(game, source, options.seed)
        return EXIT_OK
    with _server(_files(game, source), options.port) as server:
        print(f"Play against {source.name}: {server.url} (Ctrl-C stops)", flush=True)
        if not options.no_open:
            # In a thread: a text browser would block the server that it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
    return EXIT_OK


def _require_playable(game: Game, source: Source, *, terminal: bool) -> None:
    """Refuse large games before anything is solved for them."""
    if not game.fits_tree:
        raise UsageError(
            f"{game.name} is too large to play here; evaluate plays policies against each other"
        )
    nodes = game.tree.num_nodes
    if nodes > MAX_NODES and not terminal:
        raise UsageError(
            f"{game.name} has {nodes:,} nodes, the page at most {MAX_NODES:,}; --terminal plays it"
        )
    if source.name == NO_REFERENCE:
        raise UsageError(f"{game.name} has {nodes:,} nodes; name the POLICY to play against")


def _files(game: Game, source: Source) -> dict[str, bytes]:
    """Kuhn's own page, or the report's page opened at the table, with an easy second opponent."""
    if game.name == KUHN:
        return page.assets(source)
    return page_assets(report_document([source, "uniform"], game, mode="play"))


def _play_in_terminal(game: Game, source: Source, seed: int | None) -> None:
    if game.name == KUHN:
        terminal.play(opponent(source), seed=seed)
        return
    judged_by = {source.name: source}
    if (reference := usual_reference(game)) != NO_REFERENCE:
        judged_by.setdefault(reference, open_source(reference))
    judges = [_judge(game, one) for one in judged_by.values()]
    tree_terminal.play(game, judges[0], *judges[1:], seed=seed)


def _judge(game: Game, source: Source) -> tree_terminal.Judge:
    table = source.policy(game).table
    return tree_terminal.Judge(
        policy_names([source.name])[0], table, action_values(game.tree, table)
    )


def _server(files: dict[str, bytes], port: int | None) -> Server:
    """A server on `port`; by default on the usual one, or on any free one if that is in use."""
    if port is not None:
        return Server(files, port=port)
    try:
        return Server(files, port=PORT)
    except UsageError:
        return Server(files)


if __name__ == "__main__":
    sys.exit(main())
