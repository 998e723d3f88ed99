"""OpenSpiel's games: sequential, or simultaneous and made turn-based by OpenSpiel."""

import random
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

import numpy as np

from algorithms.exact.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from algorithms.games.cache import find_tree, keep_tree
from algorithms.games.game import Game, Source
from algorithms.games.leduc import leduc_labels
from algorithms.games.native import NativeGame
from algorithms.support.arrays import Float32Array
from algorithms.support.errors import UsageError, first_line, unknown
from algorithms.support.files import silent_stderr
from algorithms.support.progress import Advance
from algorithms.support.progress import progress as progress_bar
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


def openspiel_game(
    game: Any,
    *,
    name: str = "",
    max_nodes: int = MAX_NODES,
    cached: bool = False,
) -> Game:
    """The `Game` of a `pyspiel.Game`; `name` is the string that loads it."""
    name, sequential = name or str(game).removesuffix("()"), _sequential(game)
    if sequential is not game:
        name = f"turn_based_simultaneous_game(game={name if ')' in name else f'{name}()'})"
        game = sequential
    _require_playable(name, game)

    def tree() -> Tree:
        kept = find_tree(game, name) if cached else None
        if kept is not None and kept.num_nodes <= max_nodes:
            return kept
        with progress_bar(f"walking {name.partition('(')[0]}") as bar:
            walked = openspiel_tree(game, name=name, max_nodes=max_nodes, progress=bar)
        if cached:
            keep_tree(game, walked)
        return walked

    def fits_tree() -> bool:
        return not _forgets(game) and estimated_nodes(game, enough=2 * max_nodes) <= max_nodes

    def observations(tree: Tree) -> Float32Array:
        return _observations(name, game, tree)

    words = leduc_labels(game)

    def infoset_label(tree: Tree, infoset: int) -> str:
        if words:
            return words.infoset(tree.keys[infoset])
        return f"player_{tree.owner[infoset]} at {' '.join(tree.keys[infoset].split())!r}"

    def action_label(tree: Tree, infoset: int, action: int) -> str:
        if words:
            return words.action(tree.keys[infoset], int(action))
        state = state_of(game, tree, infoset)
        return str(state.action_to_string(int(tree.owner[infoset]), int(action)))

    def chance_labels(tree: Tree, node: int) -> list[str]:
        history, children = tree.history(node), range(*tree.first_child[node : node + 2].tolist())
        outcomes = [int(tree.action[child]) for child in children]
        if words:
            return [words.chance(history, outcome) for outcome in outcomes]
        state = replay(game, history)
        return [str(state.action_to_string(CHANCE, outcome)) for outcome in outcomes]

    def native() -> NativeGame | None:
        # Here, so that other games do not wait for these modules.
        from algorithms.games.liars_dice import find_liars_dice
        from algorithms.games.phantom import find_phantom

        return find_phantom(game) or find_liars_dice(game)

    has_tensor = game.get_type().provides_information_state_tensor
    return Game(
        name,
        game.num_players(),
        game.num_distinct_actions(),
        Source(tree, fits_tree, observations, infoset_label, action_label, chance_labels, native),
        game.information_state_tensor_size() if has_tensor else 0,
        origin=game,
    )


def _forgets(game: Any) -> bool:
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
    game = _sequential(game)
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
    name, refused = name or str(game), _REFUSED_FACTOR * max_nodes
    _require_playable(name, game)
    try:
        if (nodes := estimated_nodes(game, enough=refused)) >= refused:
            raise _too_large(name, game, f"{_about(nodes)} nodes or more", nodes, max_nodes)
        walk = TreeBuilder(name, game.num_players(), game.num_distinct_actions())
        for count in _walked(game, walk):
            if count > max_nodes or count % _CHECK_EVERY == 0:
                _require_room(game, walk, max_nodes)
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
        while not state.is_terminal() and total < enough * probes:
            actions = state.legal_actions()
            width *= len(actions)
            total += width
            state.apply_action(rng.choice(actions))
        if total >= enough * probes:
            break
    return total / probes


def _sequential(game: Any) -> Any:
    """The game itself, or OpenSpiel's turn-based form of a simultaneous one."""
    if game.get_type().dynamics.name != "SIMULTANEOUS":
        return game
    import pyspiel

    return pyspiel.convert_to_turn_based(game)


def _require_playable(name: str, game: Any) -> None:
    kind = game.get_type()
    if kind.dynamics.name != "SEQUENTIAL":
        raise GameError(f"{name} is {kind.dynamics.name.lower()}; it has to be sequential")
    if kind.chance_mode.name == "SAMPLED_STOCHASTIC":
        raise GameError(f"{name} samples chance outcomes; they have to be explicit")
    if not kind.provides_information_state_string:
        raise GameError(f"{name} has no information state strings, which every game needs")


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
            walk.add(Visit(depth, player, action, edge, returns=state.returns()))
        elif player == CHANCE:
            walk.add(Visit(depth, player, action, edge))
            stack.append((state, depth + 1, state.chance_outcomes()[::-1]))
        else:
            legal = state.legal_actions()
            walk.add(Visit(depth, player, action, edge, state.information_state_string(), legal))
            stack.append((state, depth + 1, [(move, 1.0) for move in reversed(legal)]))
        yield len(walk)
        if not stack:
            return
        parent, depth, steps = stack[-1]
        action, edge = steps.pop()
        if steps:
            state = parent.child(action)
        else:
            stack.pop()
            parent.apply_action(action)
            state = parent


def _require_room(game: Any, walk: TreeBuilder, max_nodes: int) -> None:
    """Raise a `GameError` if there are too many nodes or they take too much memory."""
    per_node, per_row = _bytes_of(game)
    count, needed = len(walk), len(walk) * per_node + len(walk.infosets) * per_row + walk.key_bytes
    if count > max_nodes or needed > MAX_BYTES:
        nodes = max(estimated_nodes(game), count)
        size = f"{_about(nodes)} nodes in all, and the first {count:,} need {_gib(needed)}"
        raise _too_large(walk.name, game, size, nodes, max_nodes)


def _bytes_of(game: Any) -> tuple[int, int]:
    """Bytes per node and per information set, without its key, of a tree and a solver.

    Measured as resident memory; a test compares the two.
    """
    players, actions = game.num_players(), game.num_distinct_actions()
    return 120 + 24 * players, 400 + 33 * actions


def _too_large(name: str, game: Any, size: str, nodes: float, max_nodes: int) -> GameError:
    return GameError(
        f"{name} is too large for a tree: random hands suggest {size}; "
        f"it would need {_gib(nodes * _bytes_of(game)[0])} or more, "
        f"and {max_nodes:,} nodes and {_gib(MAX_BYTES)} are possible; "
        "training, matches and nashconv need no tree"
    )


def _gib(size: float) -> str:
    return f"{size / 2**30:.2g} GiB"


def _about(count: float) -> str:
    return f"{count:.0e}" if count < inf else "1e308 or more"


def state_of(game: Any, tree: Tree, infoset: int) -> Any:
    """A state of an information set: the first one in the tree."""
    return replay(game, tree.history(int(tree.members[tree.first_member[infoset]])))


def replay(game: Any, actions: Iterable[int]) -> Any:
    """The state after these actions, chance's included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state


def _observations(name: str, game: Any, tree: Tree) -> Float32Array:
    if not game.get_type().provides_information_state_tensor:
        raise GameError(
            f"{name} has no information state tensor, which networks need; tables do not"
        )
    tensors = [
        state_of(game, tree, infoset).information_state_tensor(player)
        for infoset, player in enumerate(tree.owner.tolist())
    ]
    return np.array(tensors, np.float32)
