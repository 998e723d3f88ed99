"""Play against a policy: on a page served to this machine, or in the terminal."""

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence

from algorithms.games import KUHN, Game, TreeGame
from algorithms.large_games.poker import PokerEndgame
from algorithms.playing import endgame_terminal, page, terminal
from algorithms.playing.page import Description
from algorithms.policies import Policy, load
from algorithms.policies.load import Source, open_source
from algorithms.reports import html_page, writing
from algorithms.reports.document import MAX_NODES
from algorithms.reports.hands import is_shown
from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.server import Server

PORT = 8417  # the browser keeps a page's totals by its address, so the port stays the same


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command until the person leaves; 0 = as it should end."""
    parser = command.Parser(prog="python -m algorithms.play", description=__doc__)
    defaults = f"default {page.PERFECT}, perfect play; other games: {TreeGame.usual_reference}"
    parser.add_argument("policy", nargs="?", help=f"{load.HELP} ({defaults})")
    parser.add_argument("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    parser.add_argument(
        "--terminal", action="store_true", help="play here instead of in the browser"
    )
    parser.add_argument("--seed", type=int, help="the seed of cards and bot moves, with --terminal")
    parser.add_argument(
        "--port",
        type=command.number(0, 65_535),
        help=f"the port to serve on ({PORT}, or any free one)",
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--trust", action="store_true", help="let a model's file run code")
    return parser.run(_run, argv)


def play(policy: Policy, *, in_terminal: bool = False, open_browser: bool = True) -> None:
    """Play against a policy until the person leaves: `Policy.play`."""
    opponent = load.in_memory("the policy", policy)
    _require_playable(policy.game, opponent, in_terminal=in_terminal)
    if in_terminal:
        _play_in_terminal(policy.game, opponent, seed=None)
    else:
        _serve(policy.game, opponent, port=None, open_browser=open_browser)


def _run(args: argparse.Namespace) -> int:
    if args.seed is not None and not args.terminal:
        raise UsageError("--seed requires --terminal: the page draws its own cards")
    game, opponent = _load(args)
    _require_playable(game, opponent, in_terminal=args.terminal)
    if args.terminal:
        _play_in_terminal(game, opponent, args.seed)
    else:
        _serve(game, opponent, args.port, open_browser=not args.no_open)
    return command.EXIT_OK


def _load(args: argparse.Namespace) -> tuple[Game, Source]:
    """The game and the opponent."""
    if args.policy:
        opponent = open_source(args.policy, trust=args.trust)
        return load.game_of([opponent], args.game), opponent
    game = load.game_of([], args.game)
    return game, open_source(writing.default_reference(game))


def _require_playable(game: Game, opponent: Source, *, in_terminal: bool) -> None:
    """Refuse large games before anything is solved for them."""
    if isinstance(game, PokerEndgame):
        if not in_terminal and not is_shown(game):
            reason = "the page shows rivers with fewer than a million actions of hands"
            raise UsageError(f"{reason}: add --terminal to play {game.name}")
        if opponent.name == writing.NO_REFERENCE:
            raise UsageError(f"{game.name}: name the POLICY to play against, e.g. cfr+:300")
        return
    if not isinstance(game, TreeGame):
        raise UsageError(f"{game.name} is too large to play; evaluate plays matches of policies")
    nodes = game.tree.num_nodes
    size = f"{game.name} has {nodes:,} nodes"
    if nodes > MAX_NODES and not in_terminal:
        raise UsageError(f"{size}, the page at most {MAX_NODES:,}; --terminal plays it")
    if opponent.name == writing.NO_REFERENCE:
        raise UsageError(f"{size}; name the POLICY to play against")


def _play_in_terminal(game: Game, opponent: Source, seed: int | None) -> None:
    """Play against `opponent`; the default reference gives the costs of moves too."""
    if isinstance(game, PokerEndgame):
        endgame_terminal.play(game, opponent.policy(game), opponent.name, seed=seed)
        return
    sources = [opponent]
    reference = writing.default_reference(game)
    if reference not in (writing.NO_REFERENCE, opponent.name):
        sources.append(open_source(reference))
    policies = {_description(game, source).name: source.policy(game) for source in sources}
    terminal.play(game, policies, about=_description(game, opponent).about, seed=seed)


def _description(game: Game, source: Source) -> Description:
    if game.name == KUHN:
        return page.described(source.name)
    [name] = writing.policy_names([source.name])
    return Description(name)


def _serve(game: Game, opponent: Source, port: int | None, *, open_browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    with _server(_files(game, opponent), port) as server:
        print(f"Play against {opponent.name}: {server.url} (Ctrl-C stops)", flush=True)
        if open_browser:
            # In a thread: a text browser would block the server that it waits for.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


def _files(game: Game, opponent: Source) -> dict[str, bytes]:
    """Kuhn's own page, or the report's page opened at the table, with an easy second opponent."""
    if game.name == KUHN:
        return page.assets(opponent)
    document = writing.report_document([opponent, "uniform"], game, mode="play")
    return html_page.page_assets(document)


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
