"""What a game is: one class per kind of game, behind one protocol.

    Game                 names, sizes, words; every other question raises a clear error
      SampledGame        no exact measure: policies are networks, and NashConv has lower bounds
      ExactGame          policies are tables, and measured exactly
        TreeGame         on a tree: one table float64 (I, A)             (games/tree_game.py)
        LargeExactGame   without one: a float32 table (I_p, A) per player
                                                                 (large_games/large_game.py)

`load_game` chooses the class, once. Everywhere else a game is asked, and its class answers: a
question that its kind cannot answer raises a `GameError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    NotRequired,
    TypeAlias,
    TypedDict,
)

import numpy as np

from algorithms.cfr import Variant
from algorithms.kuhn_equilibria import Nearest
from algorithms.large_games.solver import Tables
from algorithms.nashconv import InfosetValues, Measure
from algorithms.solvers import DEFAULT_VARIANT, AnySolver
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    IntpArray,
)
from algorithms.support.modules import import_modules, imported_modules
from kuhn_bridge import notebook
from kuhn_bridge.errors import GameError

if TYPE_CHECKING:
    from algorithms.tree import Tree

PyspielGame: TypeAlias = Any  # a `pyspiel.Game`: OpenSpiel is optional, and has no types
PyspielState: TypeAlias = Any
Table: TypeAlias = Float64Array | Tables  # a joint policy
Actions: TypeAlias = (
    Int32Array | tuple[Int8Array | Int16Array, ...]
)  # one per information set: (I,), (I_p,)
Backend: TypeAlias = Literal["tree", "states"]  # what hands are played on
# Probabilities (n, A) from observations float32 (n, size) and legal actions bool (n, A).
StatePolicy: TypeAlias = Callable[[Float32Array, BoolArray], Float64Array]
SeatPolicy: TypeAlias = Float64Array | StatePolicy  # played on the tree, or on states

SHOWN_ACTIONS = 8  # of the example in a notebook
RANDOM_INPUTS = 1_000  # examples of a network's inputs, where they are not enumerated


class ClosedForm(NamedTuple):
    """Values of a game that are known without solving it."""

    value: Fraction  # player 0's, in equilibrium
    uniform_nash_conv: Fraction


class ExampleInputs(NamedTuple):
    """Inputs of a network, for comparing two programs that evaluate it."""

    observations: Float32Array  # (n, size)
    legal: BoolArray  # (n, A)
    every: bool  # whether they are those of all information sets, rather than random numbers


class Row(NamedTuple):
    """A policy at one information set."""

    infoset: int
    player: int
    actions: tuple[int, ...]  # the legal ones
    probabilities: tuple[float, ...]  # of the legal ones


class PolicyRows(NamedTuple):
    """A policy at n information sets, and what a network sees there."""

    inputs: Float32Array  # (n, size)
    probabilities: Float64Array | Float32Array  # (n, A)
    legal: BoolArray  # (n, A)


class GameSize(NamedTuple):
    """What is known about a game's size; None where nobody has counted."""

    nodes: int | None
    infosets: int | None
    constant_sum: bool  # whether the players' returns have the same sum at every end


class GameArguments(TypedDict):
    """What every game is made from."""

    name: str
    num_players: int
    num_actions: int
    observation_size: int
    pyspiel_game: NotRequired[PyspielGame]
    why_no_tree: NotRequired[str]


class Game(ABC):
    """A finite sequential game with perfect recall.

    Attributes:
        name: string that loads the game again.
        num_players: number of players.
        num_actions: number of action IDs, A.
        observation_size: size of an observation, without the one-hot of the seat.
        pyspiel_game: OpenSpiel's game; None where there is none.
        closed_form: values that are known without solving the game, if any.
    """

    closed_form: ClassVar[ClosedForm | None] = None
    backend: ClassVar[Backend] = "states"
    measures_at_once: ClassVar[bool] = False  # whether an exact measure takes at most seconds
    # What commands use where nothing is named.
    usual_opponents: ClassVar[tuple[str, ...]] = ("uniform",)
    usual_reference: ClassVar[str | None] = None

    def __init__(  # noqa: PLR0913  # by name
        self,
        *,
        name: str,
        num_players: int,
        num_actions: int,
        observation_size: int,
        pyspiel_game: PyspielGame | None = None,
        why_no_tree: str = "",
    ) -> None:
        self.name = name
        self.num_players = num_players
        self.num_actions = num_actions
        self.observation_size = observation_size
        self.pyspiel_game: PyspielGame = pyspiel_game
        self._why_no_tree = why_no_tree or f"{name} is too large for a tree"

    # Words

    @property
    def agents(self) -> tuple[str, ...]:
        """The players' names, `player_0` and so on."""
        return tuple(f"player_{player}" for player in range(self.num_players))

    @property
    @abstractmethod
    def size_label(self) -> str:
        """The name and the size, in words."""

    @property
    @abstractmethod
    def size(self) -> GameSize:
        """The size in numbers."""

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_0 with J after check-bet`.

        Without a tree, information sets are numbered per player.
        """
        self._raise_no_measure()

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in a word, e.g. `call`."""
        self._raise_no_measure()

    # The tree: only a `TreeGame` has it.

    @property
    def tree(self) -> Tree:
        """The game tree."""
        raise GameError(self._why_no_tree)

    @property
    def observations(self) -> Float32Array:
        """The observation of each information set's owner: float32 `(I, observation_size)`."""
        raise GameError(self._why_no_tree)

    def network_inputs(self, size: int | None = None) -> Float32Array:
        """The inputs of a network at each information set: float32 `(I, size)`.

        They are the observation, followed by a one-hot of the seat if `size` is larger by the
        number of players. The default is the size that training uses.
        """
        raise GameError(self._why_no_tree)

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node in words, e.g. `player_0 gets J`."""
        raise GameError(self._why_no_tree)

    def state_of(self, infoset: int) -> PyspielState:
        """An OpenSpiel state of an information set: the first one in the tree."""
        raise GameError(self._why_no_tree)

    # What an `ExactGame` computes.

    def require_exact(self) -> ExactGame:
        """The game itself; a `GameError` if it has no exact measure."""
        self._raise_no_measure()

    def uniform(self) -> Table:
        """The table that plays every legal action equally often."""
        self._raise_no_measure()

    def random(self, seed: int) -> Table:
        """A table drawn uniformly from all policies; the same for the same seed."""
        self._raise_no_measure()

    def validated(self, table: object) -> Table:
        """The table in this game's form; a `PolicyError` if it is not one of this game."""
        self._raise_no_measure()

    def measure(self, table: Table) -> Measure:
        """Exact values, gains, best responses and losses of a table."""
        self._raise_no_measure()

    def make_solver(self, variant: str | Variant = DEFAULT_VARIANT, **options: Any) -> AnySolver:
        """The solver of a variant of CFR; `options` are those of `algorithms.solvers`."""
        raise GameError(self._why_no_tree)

    def table_of(self, policy: StatePolicy, input_size: int) -> Table:
        """The table of a function of observations `(n, input_size)` and legal actions `(n, A)`."""
        self._raise_no_measure()

    def pure(self, actions: Actions) -> Table:
        """The table that always plays these actions, one per information set."""
        self._raise_no_measure()

    def seated(self, tables: Sequence[Table]) -> Table:
        """The table in which player p plays as in `tables[p]`."""
        self._raise_no_measure()

    def seat_policy(self, table: Table) -> SeatPolicy:
        """What plays a seat by a table, in the form that the game's hands are played with."""
        self._raise_no_measure()

    def own_reach(self, table: Table) -> Float64Array:
        """Each information set's reach probability by its owner's own actions: `(n,)`.

        Here information sets have one numbering for all players: that of the tree, or player 0's
        first and then player 1's.
        """
        self._raise_no_measure()

    def policy_rows(self, table: Table, infosets: IntpArray) -> PolicyRows:
        """A table at information sets `(n,)`, numbered as by `own_reach`, for a network to fit.

        A `GameError` if networks cannot tell information sets apart.
        """
        self._raise_no_measure()

    def infoset_values(self, table: Table) -> InfosetValues | None:
        """What information sets, numbered as by `own_reach`, are worth; None if not known."""
        del table
        return None

    # Actions and policies as users write them

    document_version: ClassVar[int] = 2  # of the JSON that holds a table
    policy_file: ClassVar[str | None] = None  # the suffix of the file that holds a table
    own_policies: ClassVar[tuple[str, ...]] = ()  # forms of names that only this game has
    rules_text: ClassVar[str] = ""  # for a person who plays in a terminal

    @property
    def pot(self) -> int | None:
        """The chips in the pot at the start of an endgame, which NashConv is compared with."""
        return None

    def share_of_pot(self, chips: float) -> str:
        """Chips in percent of the pot, e.g. `0.18% of the pot`; empty in games without one."""
        return "" if self.pot is None else f"{100 * chips / self.pot:.3g}% of the pot"

    @property
    def wrong_policy_file(self) -> str:
        """Why the table in a file cannot be one of this game."""
        return f"{self.name} is too large for a tree; want model.zip, policy.onnx"

    def action_id(self, action: int) -> int:
        """An action as `Policy[...]` names it: its ID, or an enum of the IDs."""
        return action

    def action_name(self, action: int) -> int | str:
        """An action as JSON names it."""
        return action

    def named_table(self, name: str) -> Table | None:
        """The table of a name that only this game has; None for any other name."""
        del name
        return None

    def table_text(self, table: Table) -> str | None:
        """A table as text, where it is small; else None."""
        del table
        return None

    def solution_text(self, table: Table) -> str | None:
        """A table as `solve` prints it, if the game has a form of its own; else None."""
        del table
        return None

    def nearest_equilibrium(self, table: Table) -> Nearest | None:
        """The equilibrium nearest to a table, where all equilibria are known; else None."""
        del table
        return None

    # Networks and training

    @property
    def appends_seat(self) -> bool:
        """Whether training appends a one-hot of the seat to observations."""
        return True

    @property
    def plays_networks(self) -> bool:
        """Whether a network can play this game, so that a trained policy is saved as a model."""
        return bool(self.observation_size)

    def example_inputs(self, size: int | None = None) -> ExampleInputs:
        """Inputs of a network of input `size`, random unless information sets are enumerated."""
        random = np.random.default_rng(0)
        size = size or self.observation_size + self.num_players
        observations = random.integers(0, 2, (RANDOM_INPUTS, size)).astype(np.float32)
        legal = random.random((RANDOM_INPUTS, self.num_actions)) < 0.5
        legal[:, 0] |= ~legal.any(axis=1)
        return ExampleInputs(observations, legal, every=False)

    def first_state(self, draws: Random) -> PyspielState:
        """The OpenSpiel state with which an episode begins: the initial one, or one after the deal.

        The deal is drawn here where OpenSpiel takes long to list all deals.
        """
        del draws
        return self.pyspiel_game.new_initial_state()

    def example_observation(self, size: int) -> Float32Array:
        """What a network of input `size` sees at one decision: float32 `(1, size)`."""
        if self.pyspiel_game is None or not self.observation_size:
            raise GameError(f"{self.name} has no information state tensor, which networks need")
        state = self.first_state(Random(0))
        while state.current_player() < 0:
            state.apply_action(state.legal_actions()[0])
        player = state.current_player()
        seats = np.eye(self.num_players, dtype=np.float32)
        tensor = np.array(state.information_state_tensor(player), np.float32)
        return np.hstack([tensor, seats[player]])[np.newaxis, :size]

    @property
    def curve_points(self) -> int:
        """How many points a learning curve has by default: few where a measure takes long."""
        return 200

    def measures_curve(self, points: int) -> bool:
        """Whether a learning curve of that many points has exact NashConv."""
        del points
        return False

    # How games are loaded, shown and stored

    def save(self, path: str | Path) -> None:
        """Write the game as an `.efg` file, which Gambit and `load_game` read."""
        raise GameError(f"{path}: {self._why_no_tree}")

    def _raise_no_measure(self) -> NoReturn:
        raise GameError(
            f"{self.name} is too large for a tree, and no other exact measure of it is known: "
            "there is no exact measure; Policy.lower_bound gives a lower bound of NashConv"
        )

    def __reduce__(self) -> tuple[Callable[[str, Sequence[str]], Game], tuple[str, Sequence[str]]]:
        return Game._load_again, (self.name, imported_modules())

    @staticmethod
    def _load_again(name: str, imports: Sequence[str]) -> Game:
        """The game of a name in a process that may not have imported what registers it."""
        from algorithms.games import load_game  # here, because that module imports this one

        import_modules(imports)
        return load_game(name)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return notebook.box(self.name, notebook.facts(self._facts()))

    def _facts(self) -> dict[str, str]:
        """What a notebook shows below the name: the size, as far as it is known."""
        about = {"players": str(self.num_players), "actions": f"{self.num_actions} action IDs"}
        size = self.size
        if size.infosets is not None:
            about["information sets"] = f"{size.infosets:,}"
        exact = isinstance(self, ExactGame)
        measure = "exact, without a tree" if exact else "a lower bound from trained best responses"
        about["NashConv"] = measure
        return about

    def _example(self, legal: BoolArray) -> str:
        """The first information set and its legal actions: bool `(A,)`."""
        actions = np.flatnonzero(legal).tolist()
        moves = [self.action_label(0, action) for action in actions[:SHOWN_ACTIONS]]
        if len(actions) > SHOWN_ACTIONS:
            moves.append(f"{len(actions) - SHOWN_ACTIONS} more")
        return f"{self.infoset_label(0)}: {', '.join(moves)}"

    def __repr__(self) -> str:
        return f"<Game {self.name}>"


class SampledGame(Game):
    """A game without an exact measure: policies are networks, and hands are sampled."""

    @property
    def size_label(self) -> str:
        """The name alone."""
        return self.name

    @property
    def size(self) -> GameSize:
        """Nothing has been counted."""
        return GameSize(nodes=None, infosets=None, constant_sum=True)


class ExactGame(Game):
    """A game whose policies are tables and are measured exactly."""

    def require_exact(self) -> ExactGame:
        """The game itself."""
        return self

    @abstractmethod
    def uniform(self) -> Table:
        """The table that plays every legal action equally often."""

    @abstractmethod
    def random(self, seed: int) -> Table:
        """A table drawn uniformly from all policies; the same for the same seed."""

    @abstractmethod
    def validated(self, table: object) -> Table:
        """The table in this game's form; a `PolicyError` if it is not one of this game."""

    @abstractmethod
    def measure(self, table: Table) -> Measure:
        """Exact values, gains, best responses and losses of a table."""

    @abstractmethod
    def make_solver(self, variant: str | Variant = DEFAULT_VARIANT, **options: Any) -> AnySolver:
        """The solver of a variant of CFR; `options` are those of `algorithms.solvers`."""

    @abstractmethod
    def table_of(self, policy: StatePolicy, input_size: int) -> Table:
        """The table of a function of observations `(n, input_size)` and legal actions `(n, A)`."""

    @abstractmethod
    def pure(self, actions: Actions) -> Table:
        """The table that always plays these actions, one per information set."""

    @abstractmethod
    def seated(self, tables: Sequence[Table]) -> Table:
        """The table in which player p plays as in `tables[p]`."""

    @abstractmethod
    def own_reach(self, table: Table) -> Float64Array:
        """Each information set's reach probability by its owner's own actions: `(n,)`."""

    @abstractmethod
    def policy_rows(self, table: Table, infosets: IntpArray) -> PolicyRows:
        """A table at information sets `(n,)`, numbered as by `own_reach`, for a network to fit."""

    @abstractmethod
    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words, e.g. `player_0 with J after check-bet`."""

    @abstractmethod
    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in a word, e.g. `call`."""

    @abstractmethod
    def infoset_key(self, infoset: int, player: int) -> str:
        """An information set as JSON names it."""

    @abstractmethod
    def first_rows(self, table: Table, most: int) -> Iterator[Row]:
        """The first rows of a table, at most that many."""

    @abstractmethod
    def words_for_other_losses(self, count: int) -> str:
        """How a report calls losses that it does not list, of which `count` are known."""


def per_player(table: Table) -> Tables:
    """The tables of a large game, one per player; a `TypeError` for a tree's table."""
    if isinstance(table, np.ndarray):
        raise TypeError("one table per player, not one table")
    return tuple(table)


def one_table(table: Table) -> Float64Array:
    """The table `(I, A)` of a game with a tree; a `TypeError` for one table per player."""
    if isinstance(table, tuple):
        raise TypeError("one table, not one per player")
    return table


def arrays_of(table: Table) -> Sequence[Float64Array | Float32Array]:
    """The arrays of a table: one, or one per player."""
    return table if isinstance(table, tuple) else (table,)
