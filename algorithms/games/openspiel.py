"""OpenSpiel's games: loading them, estimating their size, walking their trees.

They are sequential, or simultaneous and made turn-based by OpenSpiel.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import NamedTuple, Unpack

import numpy as np

from algorithms.games import short_names
from algorithms.games.game import GameArguments, PyspielGame, PyspielState
from algorithms.games.tree_cache import find_tree, keep_tree
from algorithms.games.tree_game import TreeGame
from algorithms.support.arrays import Float32Array
from algorithms.support.errors import UsageError, first_line, unknown
from algorithms.support.files import silent_stderr
from algorithms.support.progress import Advance, progress
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from kuhn_bridge.errors import BridgeError, GameError, short_repr

MAX_NODES = 10_000_000
MAX_BYTES = 4 * 2**30  # that a tree and a solver may take, by the estimate of `_bytes_of`
QUICK_NODES = 50_000  # estimated; such a tree is built within a second
LONGEST_NAME = 100_000  # characters: `handReaches` are thousands of numbers
DEEPEST_NAME = 50  # brackets; OpenSpiel's parser overflows the stack on deeply nested names
_REPORT_EVERY = 10_000
_CHECK_EVERY = 1_000
_PROBES = 200
# An estimate above this multiple of the limit is refused without a walk. The estimate is unbiased,
# so by Markov's inequality it is that much too high at most once in a thousand times.
_REFUSED_FACTOR = 1_000


class TreeTooLargeError(GameError):
    """The tree has more nodes, or takes more memory, than is allowed."""


class OpenSpielGame(TreeGame):
    """A game of OpenSpiel on its tree, in OpenSpiel's words."""

    def __init__(
        self, *, max_nodes: int = MAX_NODES, cached: bool = False, **facts: Unpack[GameArguments]
    ) -> None:
        super().__init__(**facts)
        self._max_nodes = max_nodes
        self._cached = cached

    def _build_tree(self) -> Tree:
        """The tree in the cache, or else a new one."""
        if self._cached:
            known = find_tree(self.pyspiel_game, self.name)
            if known is not None and known.num_nodes <= self._max_nodes:
                return known
        with progress(f"walking {self.name.partition('(')[0]}") as bar:
            tree = openspiel_tree(
                self.pyspiel_game, name=self.name, max_nodes=self._max_nodes, progress=bar
            )
        if self._cached:
            keep_tree(self.pyspiel_game, tree)
        return tree

    @property
    def tree_is_quick(self) -> bool:
        """Whether the tree has been built, or an estimate says that it is small."""
        return "tree" in vars(self) or estimated_nodes(self.pyspiel_game) <= QUICK_NODES

    def _observations(self) -> Float32Array:
        if not self.observation_size:
            raise GameError(
                f"{self.name} has no information state tensor, which networks need; tables do not"
            )
        infosets = range(len(self.tree.keys))
        tensors = [self.state_of(infoset).information_state_tensor() for infoset in infosets]
        return np.array(tensors, np.float32)

    def state_of(self, infoset: int) -> PyspielState:
        """An OpenSpiel state of an information set: the first one in the tree."""
        node = int(self.tree.members[self.tree.first_member[infoset]])
        return replay(self.pyspiel_game, self.tree.history(node))

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in a word, e.g. `Call`."""
        self._require_infoset(infoset, action)
        return str(self.state_of(infoset).action_to_string(int(action)))

    def _chance_labels(self, node: int, outcomes: Sequence[int]) -> list[str]:
        state = replay(self.pyspiel_game, self.tree.history(node))
        return [str(state.action_to_string(outcome)) for outcome in outcomes]


def lacks_perfect_recall(game: PyspielGame) -> bool:
    """Whether this is classical dark hex on more than four cells.

    Its strings show how many actions there were in all, but not how many at the player's earlier
    moves. Its information sets in `large_games` have perfect recall.
    """
    settings = game.get_parameters()
    return (
        game.get_type().short_name == "dark_hex"
        and (settings["gameversion"], settings["obstype"]) == ("cdh", "reveal-nothing")
        and settings["num_rows"] * settings["num_cols"] > 4
    )


def has_millions_of_deals(game: PyspielGame) -> bool:
    """Whether this is poker with a board, and the full deck: no tree fits."""
    settings = game.get_parameters()
    return bool(settings.get("boardCards")) and settings["numSuits"] * settings["numRanks"] == 52


def identity(game: PyspielGame) -> tuple[str, str]:
    """Short name and parameters: equal for the same game, however its string is written."""
    game = sequential(game)
    return game.get_type().short_name, str(game.get_parameters())


def load_pyspiel(name: str) -> PyspielGame:
    """The `pyspiel.Game` of that name, ours and OpenSpiel's Python games included."""
    try:
        import pyspiel

        import kuhn_bridge.openspiel  # noqa: F401  # registers python_kuhn_bridge
    except ImportError as error:
        raise UsageError(
            f"{name}: every game but 'kuhn' needs OpenSpiel, which is not installed "
            f"({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    if len(name) > LONGEST_NAME or name.count("(") > DEEPEST_NAME:
        raise UsageError(f"{short_repr(name)} is not the name of a game")
    full_name = short_names.full_name(name)
    short = full_name.partition("(")[0]
    if short not in pyspiel.registered_names():
        from open_spiel.python import games  # noqa: F401  # registers OpenSpiel's Python games
    known = pyspiel.registered_names()
    if short not in known:
        not_found = unknown("game", name, ["kuhn", *short_names.ENDGAMES, *known], kind=GameError)
        if short.startswith("python_"):
            raise GameError(f"{not_found} A game of your own is known once its module is imported")
        raise not_found
    try:
        with silent_stderr():  # OpenSpiel prints there what it also raises
            return pyspiel.load_game(full_name)
    except Exception as error:  # not only SpielError: nfg_game raises an IndexError
        if full_name == "efg_game":  # how OpenSpiel names a game of `pyspiel.load_efg_game`
            raise UsageError(
                "efg_game: a game that was made from a text has no name by which it can be loaded; "
                "pass the game itself, or name its .efg file"
            ) from None
        raise UsageError(f"{name}: OpenSpiel cannot load it ({first_line(error)})") from None


def openspiel_tree(
    game: PyspielGame,
    *,
    name: str = "",
    max_nodes: int = MAX_NODES,
    progress: Advance | None = None,
) -> Tree:
    """The tree of a sequential `pyspiel.Game` with explicit chance; columns are its action IDs."""
    name = name or str(game)
    estimate = estimate_tree(game, name, max_nodes=max_nodes)
    if estimate.nodes >= _REFUSED_FACTOR * max_nodes:
        raise too_large(name, estimate, max_nodes)
    walk = TreeBuilder(name, game.num_players(), game.num_distinct_actions())
    for visit in _visits(game, name):
        walk.add(visit)
        count = len(walk)
        if count > max_nodes or count % _CHECK_EVERY == 0:
            needed = bytes_needed(game, nodes=count, infosets=len(walk.infosets)) + walk.key_bytes
            if count > max_nodes or needed > MAX_BYTES:
                nodes = max(estimate.nodes, count)
                least = bytes_needed(game, nodes=nodes, infosets=0)
                raise too_large(name, Estimate(nodes, max(needed, least)), max_nodes)
        if progress and count % _REPORT_EVERY == 0:
            progress(count, "nodes")
    return walk.build()


class Estimate(NamedTuple):
    """How large a tree and a solver are expected to be; information sets are not counted."""

    nodes: float
    bytes: float


def estimate_tree(game: PyspielGame, name: str, *, max_nodes: int = MAX_NODES) -> Estimate:
    """The expected size of a game's tree, exact enough to compare it with `max_nodes`."""
    with game_code(name):
        nodes = estimated_nodes(game, enough=_REFUSED_FACTOR * max_nodes)
    return Estimate(nodes=nodes, bytes=bytes_needed(game, nodes=nodes, infosets=0))


def estimated_nodes(game: PyspielGame, *, probes: int = _PROBES, enough: float = inf) -> float:
    """An estimate of the number of nodes: the mean over random hands of products of branches.

    Unbiased, but often too low (Knuth 1975). Stops as soon as the estimate reaches `enough`.
    """
    rng = random.Random(0)
    total = 0.0
    for _ in range(probes):
        state = game.new_initial_state()
        width = 1.0
        total += width
        while total < enough * probes and not state.is_terminal():
            actions = state.legal_actions()
            width *= len(actions)
            total += width
            state.apply_action(rng.choice(actions))
    return total / probes


def sequential(game: PyspielGame) -> PyspielGame:
    """The game itself, or OpenSpiel's turn-based form of a simultaneous one."""
    if game.get_type().dynamics.name != "SIMULTANEOUS":
        return game
    import pyspiel

    return pyspiel.convert_to_turn_based(game)


def _visits(game: PyspielGame, name: str) -> Iterator[Visit]:
    """Every node of the tree, depth first.

    The stack has one state per node with children left, because states are large and siblings can
    be many. The last child is played on its parent's state, which saves a copy.
    """
    stack: list[tuple[PyspielState, int, list[tuple[int, float]]]] = []
    depth = 0
    action = -1
    edge = 1.0
    with game_code(name):
        state = game.new_initial_state()
        while True:
            player = state.current_player()
            if player == TERMINAL:
                yield Visit(depth, player, action, edge, returns=state.returns())
            elif player == CHANCE:
                yield Visit(depth, player, action, edge)
                stack.append((state, depth + 1, state.chance_outcomes()[::-1]))
            else:
                legal = state.legal_actions()
                key = state.information_state_string()
                yield Visit(depth, player, action, edge, key, legal)
                stack.append((state, depth + 1, [(move, 1.0) for move in reversed(legal)]))
            if not stack:
                return
            state, depth, steps = stack[-1]
            action, edge = steps.pop()
            if steps:
                state = state.child(action)
            else:
                stack.pop()
                state.apply_action(action)


def bytes_needed(game: PyspielGame, *, nodes: float, infosets: int) -> float:
    """Bytes of a tree and a solver, without the information state strings.

    Measured as resident memory; a test compares the two.
    """
    per_node: int = 120 + 24 * game.num_players()
    per_infoset: int = 400 + 33 * game.num_distinct_actions()
    return nodes * per_node + infosets * per_infoset


def too_large(name: str, size: Estimate, max_nodes: int) -> TreeTooLargeError:
    """The error for a game whose tree is not built."""
    return TreeTooLargeError(
        f"{name} is too large for a tree: random hands suggest {size.nodes:.0e} nodes and "
        f"{size.bytes / 2**30:.2g} GiB or more, and {max_nodes:,} nodes and "
        f"{MAX_BYTES / 2**30:.2g} GiB are possible; training, matches and nashconv need no tree"
    )


@contextmanager
def game_code(name: str) -> Iterator[None]:
    """Turn an error in the block, which runs the game's own code, into a `GameError`."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:  # a game's own code may fail in any way
        what = f"{type(error).__name__}: {first_line(error)}"
        raise GameError(f"{name}: the game fails when it is played ({what})") from error


def replay(game: PyspielGame, actions: Iterable[int]) -> PyspielState:
    """The state after these actions, chance's included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state
