"""A game: its name, its tree if it fits into memory, observations, and labels."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.exact.tree import Tree
from algorithms.exact.values import Measure, evaluate_policy
from algorithms.games.native import NativeGame
from algorithms.support.arrays import Float32Array
from kuhn_bridge.errors import GameError


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Values of a game that are known without solving it."""

    value: Fraction  # player 0's, in equilibrium
    uniform_nash_conv: Fraction


@dataclass(frozen=True, slots=True)
class Source:
    """The functions that a `Game` calls; those that need the tree take it as an argument."""

    tree: Callable[[], Tree]
    fits_tree: Callable[[], bool]
    observations: Callable[[Tree], Float32Array]  # (I, size)
    infoset_label: Callable[[Tree, int], str]
    action_label: Callable[[Tree, int, int], str]
    chance_labels: Callable[[Tree, int], list[str]]  # of a chance node's children
    native: Callable[[], NativeGame | None] = lambda: None


@dataclass(frozen=True, eq=False)
class Game:
    """A finite sequential game with perfect recall.

    The tree is built when it is first needed. A *table* is a joint policy. In a game with a tree it
    is float64 `(I, A)`, with one row per information set and one column per action ID; in a native
    large game it is one float32 `(I_p, A)` per player.

    Attributes:
        name: string that loads the game again.
        num_players: number of players.
        num_actions: number of action IDs A.
        source: functions that compute the tree, observations and labels.
        observation_size: size of an observation, without the one-hot of the seat.
        closed_form: values that are known without solving the game, if any.
        origin: `pyspiel.Game` that the game was made from, if any.
    """

    name: str
    num_players: int
    num_actions: int
    source: Source
    observation_size: int
    closed_form: ClosedForm | None = None
    origin: Any = None

    @cached_property
    def tree(self) -> Tree:
        """The game tree; a `GameError` if the game is too large for one."""
        return self.source.tree()

    @property
    def fits_tree(self) -> bool:
        """Whether the game has a tree already, or fits into one by an estimate of its size."""
        return "tree" in vars(self) or self._seems_to_fit

    @cached_property
    def _seems_to_fit(self) -> bool:
        return self.source.fits_tree()

    @cached_property
    def native(self) -> NativeGame | None:
        """The native form of a large game, which is measured without a tree."""
        return None if self.fits_tree else self.source.native()

    @property
    def is_exact(self) -> bool:
        """Whether policies are measured exactly: on the tree, or by a native form."""
        return self.fits_tree or self.native is not None

    def uniform_table(self) -> Any:
        """The table that plays every legal action equally often."""
        return self.native.uniform() if self.native else self.tree.uniform()

    def random_table(self, seed: int) -> Any:
        """A table drawn uniformly from all policies."""
        return self.native.random(seed) if self.native else self.tree.random(seed)

    def measure(self, table: Any) -> Measure:
        """Exact values, gains, best responses and losses of a table.

        For a native game, only the largest losses are kept.
        """
        if self.native is None:
            return evaluate_policy(self.tree, table)
        return self.native.measure(table)

    def require_exact(self) -> None:
        """Raise an error if there is no exact measure."""
        if not self.is_exact:
            raise GameError(
                f"{self.name} is too large for a tree and has no native form, so there is no exact "
                "measure; Policy.lower_bound gives a lower bound of NashConv"
            )

    @cached_property
    def observations(self) -> Float32Array:
        """The observation of each information set's owner: float32 `(I, observation_size)`.

        A `GameError` if two information sets of one player have the same observation.
        """
        observations, owner = self.source.observations(self.tree), self.tree.owner
        distinct = sum(len(np.unique(observations[owner == p], axis=0)) for p in np.unique(owner))
        if distinct < len(observations):
            raise GameError(
                f"{self.name}: {len(observations):,} information sets, but only {distinct:,} "
                "distinct information state tensors: a network cannot distinguish them; a table can"
            )
        observations.flags.writeable = False
        return observations

    @cached_property
    def appends_seat(self) -> bool:
        """Whether training appends a one-hot of the seat to observations.

        It does in games without a tree, and where two players share an observation.
        """
        if not self.fits_tree:
            return True
        return len(np.unique(self.observations, axis=0)) < len(self.observations)

    def network_inputs(self, size: int | None = None) -> Float32Array:
        """The inputs of a network at each information set: float32 `(I, size)`.

        They are the observation, followed by a one-hot of the seat if `size` is larger by the
        number of players. The default is the size that training uses.
        """
        with_seat = self.observation_size + self.num_players
        if size is None:
            size = with_seat if self.appends_seat else self.observation_size
        if size not in (self.observation_size, with_seat):
            raise GameError(
                f"a network of {self.name} has {self.observation_size} inputs, or {with_seat} "
                f"with a one-hot of the seat; got {size}"
            )
        if size == self.observation_size:
            return self.observations
        seats = np.eye(self.num_players, dtype=np.float32)[self.tree.owner]
        return np.hstack([self.observations, seats])

    @property
    def size_label(self) -> str:
        """The name and the size, in words."""
        if self.native:
            return f"{self.name}: {sum(self.native.num_infosets):,} information sets"
        tree = self.tree
        return f"{self.name}: {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets"

    @property
    def agents(self) -> tuple[str, ...]:
        """The players' names, `player_0` and so on."""
        return tuple(f"player_{player}" for player in range(self.num_players))

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_0 with J after check-bet`.

        In a native game information sets are numbered per player.
        """
        if self.native:
            return self.native.infoset_label(player, infoset)
        return self.source.infoset_label(self.tree, infoset)

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in a word, e.g. `call`."""
        if self.native:
            return self.native.action_label(player, infoset, action)
        return self.source.action_label(self.tree, infoset, action)

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node in words, e.g. `player_0 gets J`."""
        return self.source.chance_labels(self.tree, node)

    def __repr__(self) -> str:
        if "tree" not in vars(self):
            return f"<Game {self.name}>"
        tree = self.tree
        return f"<Game {self.name}, {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets>"
