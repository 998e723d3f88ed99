"""A game: a name that loads it again, its tree, what is seen at each information set, and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Bytes, GameError, Tree
from kuhn_bridge.encoding import frozen

Sights: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """What is known of a game without solving it."""

    value: Fraction  # player 0's, in equilibrium
    uniform_nash_conv: Fraction


@dataclass(frozen=True, slots=True)
class Looks:
    """How a game shows itself: to networks, `sights` of `(I, size)`; to people, words.

    `where` names an information set and `word` an action there, both by row; `chance` names the
    outcomes of a chance node, in the order of its children.
    """

    sights: Callable[[], Sights]
    where: Callable[[int], str]
    word: Callable[[int, int], str]
    chance: Callable[[int], list[str]]


@dataclass(frozen=True, eq=False)
class Game:
    """A finite sequential game with perfect recall, small enough for a tree.

    Rows of everything are the tree's information sets, columns the game's own action IDs.
    """

    name: str
    tree: Tree
    looks: Looks
    closed_form: ClosedForm | None = None
    origin: Any = None  # the `pyspiel.Game` it was made from, if any

    @cached_property
    def observations(self) -> Sights:
        """What the owner of each information set sees: float32 `(I, size)`, no two rows alike."""
        seen = self.looks.sights()
        if (told := _told_apart(seen, self.tree.owner)) < len(seen):
            raise GameError(
                f"{self.name}: {len(seen):,} information sets, but only {told:,} different "
                "information state tensors: a network cannot tell them apart; tables can"
            )
        return frozen(seen)

    @property
    def num_players(self) -> int:
        """P."""
        return self.tree.num_players

    @property
    def agents(self) -> tuple[str, ...]:
        """The players' names, `player_0` and so on."""
        return tuple(f"player_{player}" for player in range(self.num_players))

    def where(self, row: int) -> str:
        """An information set in words, e.g. `player_0 with J after check-bet`."""
        return self.looks.where(row)

    def word(self, row: int, action: int) -> str:
        """An action there in a word, e.g. `call`."""
        return self.looks.word(row, action)

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node in words, e.g. `player_0 gets J`."""
        return self.looks.chance(node)

    def __repr__(self) -> str:
        tree = self.tree
        return f"<Game {self.name}, {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets>"


def _told_apart(seen: Sights, owner: Bytes) -> int:
    """How many rows differ within a player or, where all do, at all."""
    own = sum(len(np.unique(seen[owner == player], axis=0)) for player in np.unique(owner))
    return own if own < len(seen) else len(np.unique(seen, axis=0))
