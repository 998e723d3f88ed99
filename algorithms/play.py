"""Play against a policy: on a page served to this machine, or in the terminal."""

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence

from algorithms.games import KUHN, Game
from algorithms.playing import page, terminal
from algorithms.policies import load
from algorithms.policies.load import Source, open_source
from algorithms.reports import writing
from algorithms.reports.document import MAX_NODES
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.server import Server

PORT = 8417  # the browser keeps a page's totals by its address, so the port stays the same


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = command.Parser(prog="python -m algorithms.play", description=__doc__)
    add = parser.add_argument
    defaults = f"default {page.PERFECT}, perfect play; other games: {writing.USUAL_REFERENCE}"
    add("policy", nargs="?", help=f"{load.HELP} ({defaults})")
    add("--game", metavar="NAME", help=load.GAME_HELP)
    add("--terminal", action="store_true", help="play here instead of in the browser")
    add("--seed", type=int, help="the seed of cards and bot moves, with --terminal")
    port = f"the port to serve on ({PORT}, or any free one)"
    add("--port", type=command.number(0, 65_535), help=port)
    add("--no-open", action="store_true", help="do not open the browser")
    add("--trust", action="store_true", help="let a model's file run code")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    if args.seed is not None and not args.terminal:
        raise UsageError("--seed requires --terminal: the page draws its own cards")
    given = [open_source(args.policy, trust=args.trust)] if args.policy else []
    game = load.game_of(given, args.game)
    source = given[0] if given else open_source(writing.usual_reference(game))
    _require_playable(game, source, in_terminal=args.terminal)
    if args.terminal:
        _play_in_terminal(game, source, args.seed)
        return command.EXIT_OK
    with _server(_files(game, source), args.port) as server:
        print(f"Play against {source.name}: {server.url} (Ctrl-C stops)", flush=True)
        if not args.no_open:
            # In a thread: a text browser would block the server that it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
    return command.EXIT_OK


def _require_playable(game: Game, source: Source, *, in_terminal: bool) -> None:
    """Refuse large games before anything is solved for them."""
    if not game.fits_tree:
        raise UsageError(f"{game.name} is too large to play; evaluate plays matches of policies")
    nodes = game.tree.num_nodes
    size = f"{game.name} has {nodes:,} nodes"
    if nodes > MAX_NODES and not in_terminal:
        raise UsageError(f"{size}, the page at most {MAX_NODES:,}; --terminal plays it")
    if source.name == writing.NO_REFERENCE:
        raise UsageError(f"{size}; name the POLICY to play against")


def _play_in_terminal(game: Game, source: Source, seed: int | None) -> None:
    """Play against `source`; the usual reference gives the costs of moves too."""
    opened = {source.name: source}
    if (reference := writing.usual_reference(game)) != writing.NO_REFERENCE:
        opened.setdefault(reference, open_source(reference))
    descriptions = {
        name: page.described(name) if game.name == KUHN else (writing.policy_names([name])[0], "")
        for name in opened
    }
    policies = {descriptions[name][0]: one.policy(game) for name, one in opened.items()}
    terminal.play(game, policies, about=descriptions[source.name][1], seed=seed)


def _files(game: Game, source: Source) -> dict[str, bytes]:
    """Kuhn's own page, or the report's page opened at the table, with an easy second opponent."""
    if game.name == KUHN:
        return page.assets(source)
    return writing.page_assets(writing.report_document([source, "uniform"], game, mode="play"))


def _server(files: dict[str, bytes], port: int | None) -> Server:
    """A server on `port`; by default on the usual one, or on any free one if that is in use."""
    try:
        return Server(files, port=PORT if port is None else port)
    except UsageError:
        if port is not None:
            raise
        return Server(files)


if __name__ == "__main__":
    sys.exit(main())
