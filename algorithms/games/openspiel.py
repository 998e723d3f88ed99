"""OpenSpiel's games: sequential, or simultaneous and made turn-based by OpenSpiel."""

import random
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from algorithms.support.errors import UsageError, first_line, unknown
from algorithms.support.files import silent_stderr
from algorithms.support.progress import Advance
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder
from kuhn_bridge.errors import BridgeError, GameError, short_repr

MAX_NODES = 10_000_000
MAX_BYTES = 4 * 2**30  # that a tree and a solver may take, by the estimate of `_bytes_of`
LONGEST_NAME = 1_000  # characters; OpenSpiel's parser overflows the stack on deeply nested names
_REPORT_EVERY = 10_000
_CHECK_EVERY = 1_000
_PROBES = 200
# An estimate above this multiple of the limit is refused without a walk. The estimate is unbiased,
# so by Markov's inequality it is that much too high at most once in a thousand times.
_REFUSED_FACTOR = 1_000


def forgets(game: Any) -> bool:
    """Whether this is classical dark hex on more than four cells.

    Its strings show how many actions there were in all, but not how many at the player's earlier
    moves: they lack perfect recall. Its native form has information sets that do not.
    """
    settings = game.get_parameters()
    return (
        game.get_type().short_name == "dark_hex"
        and (settings["gameversion"], settings["obstype"]) == ("cdh", "reveal-nothing")
        and settings["num_rows"] * settings["num_cols"] > 4
    )


def identity(game: Any) -> tuple[str, str]:
    """Short name and parameters: equal for the same game, however its string is written."""
    game = sequential(game)
    return game.get_type().short_name, str(game.get_parameters())


def load_pyspiel(name: str) -> Any:
    """The `pyspiel.Game` of that name, ours and OpenSpiel's Python games included."""
    try:
        import pyspiel

        import kuhn_bridge.openspiel  # noqa: F401  # registers python_kuhn_bridge
    except ImportError as error:
        raise UsageError(
            f"{name}: every game but 'kuhn' needs OpenSpiel, which is not installed "
            f"({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    if len(name) > LONGEST_NAME:
        raise UsageError(f"{short_repr(name)} is not the name of a game")
    short = name.partition("(")[0]
    if short.startswith("python_") and short not in pyspiel.registered_names():
        from open_spiel.python import games  # noqa: F401  # registers OpenSpiel's Python games
    known = pyspiel.registered_names()
    if short not in known:
        raise unknown("game", name, ["kuhn", *known], kind=GameError)
    try:
        with silent_stderr():  # OpenSpiel prints there what it also raises
            return pyspiel.load_game(name)
    except Exception as error:  # not only SpielError: nfg_game raises an IndexError
        raise UsageError(f"{name}: OpenSpiel cannot load it ({first_line(error)})") from None


def openspiel_tree(
    game: Any, *, name: str = "", max_nodes: int = MAX_NODES, progress: Advance | None = None
) -> Tree:
    """The tree of a sequential `pyspiel.Game` with explicit chance; columns are its action IDs."""
    name, (per_node, per_infoset) = name or str(game), _bytes_of(game)
    try:
        nodes = estimated_nodes(game, enough=_REFUSED_FACTOR * max_nodes)
        if nodes >= _REFUSED_FACTOR * max_nodes:
            raise _too_large(name, nodes, nodes * per_node, max_nodes)
        walk = TreeBuilder(name, game.num_players(), game.num_distinct_actions())
        for count in _walked(game, walk):
            if count > max_nodes or count % _CHECK_EVERY == 0:
                needed = count * per_node + len(walk.infosets) * per_infoset + walk.key_bytes
                if count > max_nodes or needed > MAX_BYTES:
                    nodes = max(nodes, count)
                    raise _too_large(name, nodes, max(needed, nodes * per_node), max_nodes)
            if progress and count % _REPORT_EVERY == 0:
                progress(count, "nodes")
        return walk.build()
    except BridgeError:
        raise
    except Exception as error:  # a game's own code may fail in any way
        what = f"{type(error).__name__}: {first_line(error)}"
        raise GameError(f"{name}: the game fails when it is played ({what})") from error


def estimated_nodes(game: Any, *, probes: int = _PROBES, enough: float = inf) -> float:
    """An estimate of the number of nodes: the mean over random hands of products of branches.

    Unbiased, but often too low (Knuth 1975). Stops as soon as the estimate reaches `enough`.
    """
    rng, total = random.Random(0), 0.0
    for _ in range(probes):
        state, width = game.new_initial_state(), 1.0
        total += width
        while total < enough * probes and not state.is_terminal():
            actions = state.legal_actions()
            width *= len(actions)
            total += width
            state.apply_action(rng.choice(actions))
    return total / probes


def sequential(game: Any) -> Any:
    """The game itself, or OpenSpiel's turn-based form of a simultaneous one."""
    if game.get_type().dynamics.name != "SIMULTANEOUS":
        return game
    import pyspiel

    return pyspiel.convert_to_turn_based(game)


def _walked(game: Any, walk: TreeBuilder) -> Iterator[int]:
    """Add every node to the tree, depth first; yields the number of nodes so far.

    The stack has one state per node with children left, because states are large and siblings can
    be many. The last child is played on its parent's state, which saves a copy.
    """
    state, depth, action, edge = game.new_initial_state(), 0, -1, 1.0
    stack: list[tuple[Any, int, list[tuple[int, float]]]] = []
    while True:
        player = state.current_player()
        if player == TERMINAL:
            walk.add((depth, player, action, edge, "", (), state.returns()))
        elif player == CHANCE:
            walk.add((depth, player, action, edge, "", (), ()))
            stack.append((state, depth + 1, state.chance_outcomes()[::-1]))
        else:
            legal = state.legal_actions()
            key = state.information_state_string()
            walk.add((depth, player, action, edge, key, legal, ()))
            stack.append((state, depth + 1, [(move, 1.0) for move in reversed(legal)]))
        yield len(walk)
        if not stack:
            return
        state, depth, steps = stack[-1]
        action, edge = steps.pop()
        if steps:
            state = state.child(action)
        else:
            stack.pop()
            state.apply_action(action)


def _bytes_of(game: Any) -> tuple[int, int]:
    """Bytes per node and per information set, without its key, of a tree and a solver.

    Measured as resident memory; a test compares the two.
    """
    players, actions = game.num_players(), game.num_distinct_actions()
    return 120 + 24 * players, 400 + 33 * actions


def _too_large(name: str, nodes: float, needed: float, max_nodes: int) -> GameError:
    return GameError(
        f"{name} is too large for a tree: random hands suggest {nodes:.0e} nodes and "
        f"{needed / 2**30:.2g} GiB or more, and {max_nodes:,} nodes and "
        f"{MAX_BYTES / 2**30:.2g} GiB are possible; training, matches and nashconv need no tree"
    )


def replay(game: Any, actions: Iterable[int]) -> Any:
    """The state after these actions, chance's included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state
