"""`python -m algorithms.play [POLICY]`: play Kuhn poker in the browser or the terminal."""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence

from algorithms.playing import terminal
from algorithms.playing.opponents import PERFECT, opponent
from algorithms.playing.page import assets
from algorithms.policies.sources import HELP
from algorithms.support.command import EXIT_OK, Parser, run
from algorithms.support.errors import UsageError
from algorithms.support.server import Server

PORT = 8417  # the browser keeps a page's totals by its address, so the port stays the same


def main(argv: Sequence[str] | None = None) -> int:
    """Play Kuhn poker against a policy: on a page served to this machine, or in the terminal."""
    parser = Parser(prog="python -m algorithms.play", description=main.__doc__)
    add = parser.add_argument
    add("policy", nargs="?", default=PERFECT, help=f"{HELP} (default %(default)s, perfect play)")
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
    if options.terminal:
        terminal.play(opponent(options.policy, trust=options.trust), seed=options.seed)
        return EXIT_OK
    with _server(options) as server:
        print(f"Play against {options.policy}: {server.url} (Ctrl-C stops)", flush=True)
        if not options.no_open:
            # In a thread: a text browser would block the server that it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
    return EXIT_OK


def _server(options: argparse.Namespace) -> Server:
    """On the given port, or on the usual one, or on any free one if that is taken."""
    table = assets(options.policy, trust=options.trust)
    if options.port is not None:
        return Server(table, port=options.port)
    try:
        return Server(table, port=PORT)
    except UsageError:
        return Server(table)


if __name__ == "__main__":
    sys.exit(main())
