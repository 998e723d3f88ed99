"""A game: its name, its tree if it fits into memory, observations, and labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from algorithms.compiled.nashconv import evaluate_policy
from algorithms.games import openspiel
from algorithms.games.tree_cache import find_tree, keep_tree
from algorithms.large_games.large_game import NativeGame
from algorithms.nashconv import Measure
from algorithms.support.arrays import Float32Array
from algorithms.support.progress import progress
from algorithms.tree import Tree
from kuhn_bridge.errors import GameError


class ClosedForm(NamedTuple):
    """Values of a game that are known without solving it."""

    value: Fraction  # player 0's, in equilibrium
    uniform_nash_conv: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class Game:
    """A finite sequential game with perfect recall, by default one of OpenSpiel's.

    The tree is built when it is first needed. A *table* is a joint policy. In a game with a tree it
    is float64 `(I, A)`, with one row per information set and one column per action ID; in a native
    large game it is one float32 `(I_p, A)` per player.

    Attributes:
        name: string that loads the game again.
        observation_size: size of an observation, without the one-hot of the seat.
        origin: `pyspiel.Game` that the game was made from, if any.
        closed_form: values that are known without solving the game, if any.
    """

    name: str
    num_players: int
    num_actions: int
    observation_size: int
    origin: Any = None
    max_nodes: int = openspiel.MAX_NODES
    cached: bool = False
    closed_form: ClassVar[ClosedForm | None] = None

    @cached_property
    def tree(self) -> Tree:
        """The game tree; a `GameError` if the game is too large for one."""
        found = find_tree(self.origin, self.name) if self.cached else None
        if found and found.num_nodes <= self.max_nodes:
            return found
        with progress(f"walking {self.name.partition('(')[0]}") as bar:
            tree = openspiel.openspiel_tree(
                self.origin, name=self.name, max_nodes=self.max_nodes, progress=bar
            )
        if self.cached:
            keep_tree(self.origin, tree)
        return tree

    @property
    def fits_tree(self) -> bool:
        """Whether the game has a tree already, or fits into one by an estimate of its size."""
        return "tree" in vars(self) or self._seems_to_fit

    @cached_property
    def _seems_to_fit(self) -> bool:
        nodes = openspiel.estimated_nodes(self.origin, enough=2 * self.max_nodes)
        return nodes <= self.max_nodes and not openspiel.forgets(self.origin)

    @cached_property
    def native(self) -> NativeGame | None:
        """The native form of a large game, which is measured without a tree."""
        return None if self.fits_tree else self.find_native()

    def find_native(self) -> NativeGame | None:
        """The native form, also of a game that fits a tree; None if there is none."""
        # Here, so that other games do not wait for this module.
        from algorithms.large_games import find_native

        return find_native(self.origin)

    @property
    def is_exact(self) -> bool:
        """Whether policies are measured exactly: on the tree, or by a native form."""
        return self.fits_tree or self.native is not None

    def uniform_table(self) -> Any:
        """The table that plays every legal action equally often."""
        return (self.native or self.tree).uniform()

    def measure(self, table: Any) -> Measure:
        """Exact values, gains, best responses and losses of a table.

        For a native game, only the largest losses are kept.
        """
        return self.native.measure(table) if self.native else evaluate_policy(self.tree, table)

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
        observations, owner = self._observations(), self.tree.owner
        distinct = sum(len(np.unique(observations[owner == p], axis=0)) for p in np.unique(owner))
        if distinct < len(observations):
            raise GameError(
                f"{self.name}: {len(observations):,} information sets, but only {distinct:,} "
                "distinct information state tensors: a network cannot distinguish them; a table can"
            )
        observations.flags.writeable = False
        return observations

    def _observations(self) -> Float32Array:
        if not self.observation_size:
            wrong = f"{self.name} has no information state tensor"
            raise GameError(f"{wrong}, which networks need; tables do not")
        states = map(self.state_of, range(len(self.tree.keys)))
        return np.array([state.information_state_tensor() for state in states], np.float32)

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
        with_seat = self.appends_seat if size is None else size > self.observation_size
        if not with_seat:
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
        key = " ".join(self.tree.keys[infoset].split())
        return f"player_{self.tree.owner[infoset]} at {key!r}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in a word, e.g. `call`."""
        if self.native:
            return self.native.action_label(player, infoset, action)
        return str(self.state_of(infoset).action_to_string(int(action)))

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node in words, e.g. `player_0 gets J`."""
        children = slice(*self.tree.first_child[node : node + 2])
        return self._chance_labels(self.tree.history(node), self.tree.action[children].tolist())

    def _chance_labels(self, history: Sequence[int], outcomes: Sequence[int]) -> list[str]:
        state = openspiel.replay(self.origin, history)
        return [str(state.action_to_string(outcome)) for outcome in outcomes]

    def state_of(self, infoset: int) -> Any:
        """An OpenSpiel state of an information set: the first one in the tree."""
        node = int(self.tree.members[self.tree.first_member[infoset]])
        return openspiel.replay(self.origin, self.tree.history(node))

    def __reduce__(self) -> tuple[Callable[[str], "Game"], tuple[str]]:
        from algorithms.games import load_game  # here, because that module imports this one

        return load_game, (self.name,)

    def __repr__(self) -> str:
        size = self.size_label.replace(":", ",", 1) if "tree" in vars(self) else self.name
        return f"<Game {size}>"
