"""A game in a file of Gambit's `.efg` format."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from algorithms.games.efg_reader import ExtensiveGame, read_efg
from algorithms.games.openspiel import MAX_NODES
from algorithms.games.tree_game import TreeGame
from algorithms.support.arrays import Float32Array
from algorithms.tree import Tree
from kuhn_bridge.errors import GameError

SUFFIX = ".efg"
MAX_ONE_HOT = 5_000  # information sets; a network's inputs at all of them then take 100 MB


class EfgGame(TreeGame):
    """A game that was read from a file; its name is the path of the file.

    The file has no tensors: what a network sees is a one-hot of the information set.

    Attributes:
        title: title of the game in the file.
        players: names of the players in the file; elsewhere they are `player_0` and so on.
        content: what was read.
    """

    def __init__(self, content: ExtensiveGame, *, name: str) -> None:
        infosets = len(content.tree.keys)
        super().__init__(
            name=name,
            num_players=len(content.players),
            num_actions=content.tree.legal.shape[1],
            observation_size=infosets if infosets <= MAX_ONE_HOT else 0,
        )
        self.title = content.title
        self.players = content.players
        self.content = content

    def _build_tree(self) -> Tree:
        return self.content.tree

    def _observations(self) -> Float32Array:
        infosets = len(self.tree.keys)
        if not self.observation_size:
            raise GameError(
                f"{self.name} has {infosets:,} information sets; a one-hot of them, which networks "
                f"need, is limited to {MAX_ONE_HOT:,}; tables do not need it"
            )
        return np.eye(infosets, dtype=np.float32)

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 (Alice) at 'King'`, with the labels of the file."""
        self._require_infoset(infoset)
        owner = int(self.tree.owner[infoset])
        agent = self.agents[owner]
        alias = " ".join(self.players[owner].split())
        who = agent if alias in ("", agent) else f"{agent} ({alias})"
        key = " ".join(self.tree.keys[infoset].split())
        return f"{who} at {key!r}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """The action's label in the file, or its number if that is empty."""
        self._require_infoset(infoset, action)
        label = " ".join(self.content.actions[infoset][action].split())
        return label or f"action {action}"

    def _chance_labels(self, node: int, outcomes: Sequence[int]) -> list[str]:
        event = int(self.content.events[node])
        labels = self.content.chance_actions[event]
        return [labels[outcome] or f"outcome {outcome}" for outcome in outcomes]

    def _title_and_players(self) -> dict[str, str]:
        """The texts of the file."""
        names = ", ".join(self.players)
        return {"title": self.title, "players": f"{self.num_players} ({names})"}

    def save(self, path: str | Path) -> None:
        """Write the game with the title and the players' names of its file, to another file."""
        if Path(path).exists() and Path(path).samefile(self.name):
            raise GameError(
                f"{path}: the game was read from this file, whose comments and names of nodes "
                "would be lost; name another one"
            )
        self._write_efg(path, self.title, self.players)


def is_efg(name: str) -> bool:
    """Whether a game's name is the path of an `.efg` file."""
    return name.lower().endswith(SUFFIX)


def load_efg(path: str, *, max_nodes: int = MAX_NODES) -> EfgGame:
    """The game of a file; it is read again if it has changed."""
    try:
        status = Path(path).stat()
        return _load(path, max_nodes, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise GameError(f"{path}: {error.strerror or error}") from None


@lru_cache(maxsize=4)
def _load(path: str, max_nodes: int, modified: int, size: int) -> EfgGame:
    """The game of a file as it was when it was last modified."""
    del modified, size  # they distinguish entries of the cache
    return EfgGame(read_efg(path, max_nodes=max_nodes), name=path)


def same_file(one: str, other: str) -> bool:
    """Whether two paths lead to files with the same content.

    A policy that was trained elsewhere names a path that does not exist here. Then the names of the
    files are compared.
    """
    try:
        return Path(one).read_bytes() == Path(other).read_bytes()
    except OSError:
        return Path(one).name == Path(other).name
