"""Large games that are measured exactly without a tree: what each of them has to provide.

A policy is one table of float32 probabilities `(I_p, A)` per player p, with I_p information sets.
Information sets are numbered per player, actions as in OpenSpiel.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from algorithms.cfr import VARIANTS, Variant
from algorithms.games.game import (
    Actions,
    ExactGame,
    GameSize,
    PolicyRows,
    Row,
    StatePolicy,
    Table,
    per_player,
)
from algorithms.large_games.solver import LargeGameSolver, Tables
from algorithms.mccfr import SAMPLING
from algorithms.nashconv import NO_LOSS, Loss, Measure
from algorithms.solvers import DEFAULT_VARIANT
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int16Array,
    Int64Array,
    IntpArray,
)
from kuhn_bridge.errors import GameError, PolicyError

ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
MAX_LOSSES = 1_000
BATCH = 2**16  # information sets whose observations are made at a time

# Both players' updates take turns: where policies are large, one at a time fits in memory.
SOLVED_BY = tuple(name for name, variant in VARIANTS.items() if variant.alternating)


class LargeExactGame(ExactGame):
    """A large game of two players, whose information sets are numbered per player.

    A subclass says how many there are, what is legal and observed there, measures tables and makes
    solvers. `find_...(pyspiel_game, name)` in its module returns it for the games that it knows,
    and `algorithms.games.large_game` calls that function.
    """

    policy_file: ClassVar[str | None] = ".npz"
    usual_opponents: ClassVar[tuple[str, ...]] = ("uniform", "best-response")  # within seconds
    solved_by: ClassVar[tuple[str, ...]] = SOLVED_BY  # names of variants

    @property
    @abstractmethod
    def num_infosets(self) -> tuple[int, ...]:
        """The number of information sets of each player."""

    @abstractmethod
    def legal_at(self, player: int, infosets: Int64Array) -> BoolArray:
        """Which actions are legal at information sets `(n,)`: `(n, A)`."""

    @abstractmethod
    def tensors_at(self, player: int, infosets: Int64Array) -> Float32Array:
        """OpenSpiel's information state tensors at information sets `(n,)`: `(n, size)`."""

    @abstractmethod
    def find_infosets(self, player: int, tensors: Float32Array) -> Int64Array:
        """The information sets that have these tensors, `(n, observation_size)`: `(n,)`."""

    @abstractmethod
    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""

    @abstractmethod
    def _own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        """Each information set's reach probability by its owner's own actions: `(I_p,)` each."""

    @abstractmethod
    def _measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and the largest losses of a joint policy."""

    @abstractmethod
    def _make_solver(self, variant: Variant) -> LargeGameSolver:
        """A solver that alternates between the players."""

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(n, A)`."""
        return self.legal_at(player, np.arange(start, stop))

    def tensors(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(n, observation_size)`."""
        return self.tensors_at(player, np.arange(start, stop))

    def uniform(self) -> Tables:
        """The policy that plays every legal action equally often: a solver's before it starts."""
        return self._make_solver(VARIANTS["cfr"]).average_policy()

    def measure(self, table: Table) -> Measure:
        """Exact values, best responses and the largest losses of one table per player."""
        return self._measure(require_tables(per_player(table), self._shapes))

    def make_solver(
        self,
        variant: str | Variant = DEFAULT_VARIANT,
        *,
        discounts: Sequence[float] | None = None,
        **options: Any,
    ) -> LargeGameSolver:
        """The solver of one of the variants `solved_by`.

        `discounts` are alpha, beta and gamma instead of the variant's own; there are no other
        options here.
        """
        if options:
            raise GameError(
                f"{self.name} is solved without a tree, where solvers have no "
                f"{' and no '.join(options)}"
            )
        if isinstance(variant, str):
            if variant not in self.solved_by:
                raise GameError(
                    f"{self.name} is solved without a tree, by {', '.join(self.solved_by)}; "
                    f"{variant} {_why_not(variant)}"
                )
            variant = VARIANTS[variant]
        if discounts:
            alpha, beta, gamma = discounts
            variant = replace(variant, alpha=alpha, beta=beta, gamma=gamma)
        return self._make_solver(variant)

    def validated(self, table: object) -> Tables:
        """The tables as float32, not copied; their rows are checked when they are measured."""
        tables = table if isinstance(table, Sequence) else ()
        if [np.shape(rows) for rows in tables] != self._shapes:
            want = " and ".join(f"{rows:,} x {columns}" for rows, columns in self._shapes)
            raise PolicyError(f"a policy of {self.name} has tables of {want} numbers")
        return tuple(np.asarray(rows, np.float32) for rows in tables)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """The shapes of the tables."""
        return [(count, self.num_actions) for count in self.num_infosets]

    def table_of(self, policy: StatePolicy, input_size: int) -> Tables:
        """The probabilities of a function at all information sets, in batches."""
        tables = []
        for player, count in enumerate(self.num_infosets):
            seat = np.eye(self.num_players, dtype=np.float32)[[player]]
            table = np.empty((count, self.num_actions), np.float32)
            for start in range(0, count, BATCH):
                stop = min(start + BATCH, count)
                tensors = self.tensors(player, start, stop)
                inputs = np.hstack([tensors, seat.repeat(len(tensors), axis=0)])
                legal = self.legal(player, start, stop)
                table[start:stop] = policy(inputs[:, :input_size], legal)
            tables.append(table)
        return tuple(tables)

    def pure(self, actions: Actions) -> Tables:
        """The tables that always play these actions, one array `(I_p,)` per player."""
        rows = np.eye(self.num_actions, dtype=np.float32)
        return tuple(rows[chosen] for chosen in actions)

    def seated(self, tables: Sequence[Table]) -> Tables:
        """The tables in which player p plays as in `tables[p]`."""
        return tuple(per_player(table)[player] for player, table in enumerate(tables))

    def seat_policy(self, table: Table) -> StatePolicy:
        """The function that looks observations up in tables; each is followed by a one-hot."""
        tables = per_player(table)

        def probabilities(observations: Float32Array, legal: BoolArray) -> Float64Array:
            tensors, seats = np.split(observations, [self.observation_size], axis=1)
            probabilities = np.empty(legal.shape)
            for player in range(self.num_players):
                is_player = seats[:, player] > 0
                probabilities[is_player] = tables[player][
                    self.find_infosets(player, tensors[is_player])
                ]
            return probabilities

        return probabilities

    def own_reach(self, table: Table) -> Float64Array:
        """Each information set's reach probability by its owner's own actions: `(I_0 + I_1,)`."""
        return np.concatenate(self._own_reach(require_tables(per_player(table), self._shapes)))

    def policy_rows(self, table: Table, infosets: IntpArray) -> PolicyRows:
        """Tables at information sets `(n,)`, player 0's before player 1's, in ascending order."""
        seats = np.eye(self.num_players, dtype=np.float32)
        inputs = np.empty((len(infosets), self.observation_size + self.num_players), np.float32)
        probabilities = np.empty((len(infosets), self.num_actions), np.float32)
        legal = np.empty((len(infosets), self.num_actions), np.bool_)
        first = 0  # information set of the player, in the numbering of both
        for player, rows in enumerate(per_player(table)):
            begin, end = np.searchsorted(infosets, [first, first + len(rows)])
            infosets_of_player = infosets[begin:end] - first
            if len(infosets_of_player):
                inputs[begin:end] = np.hstack(
                    [
                        self.tensors_at(player, infosets_of_player),
                        seats[[player]].repeat(len(infosets_of_player), axis=0),
                    ]
                )
                probabilities[begin:end] = rows[infosets_of_player]
                legal[begin:end] = self.legal_at(player, infosets_of_player)
            first += len(rows)
        return PolicyRows(inputs=inputs, probabilities=probabilities, legal=legal)

    def measures_curve(self, points: int) -> bool:
        """If any points are wanted: each takes seconds to minutes."""
        return points > 0

    @property
    def curve_points(self) -> int:
        """Few points of a learning curve."""
        return 5

    @property
    def size_label(self) -> str:
        """The name and the number of information sets."""
        return f"{self.name}: {sum(self.num_infosets):,} information sets"

    @property
    def size(self) -> GameSize:
        """The number of information sets; nodes are not counted."""
        return GameSize(nodes=None, infosets=sum(self.num_infosets), constant_sum=True)

    def infoset_key(self, infoset: int, player: int) -> str:
        """An information set in words."""
        return self.infoset_label(infoset, player)

    @property
    def wrong_policy_file(self) -> str:
        """Why a tree's table cannot be a policy of this game."""
        return f"{self.name} is too large for a tree; want model.zip, policy.onnx, policy.npz"

    def first_rows(self, table: Table, most: int) -> Iterator[Row]:
        """The first rows of each player's table."""
        each = most // self.num_players
        for player, rows in enumerate(per_player(table)):
            legal = self.legal(player, 0, min(each, len(rows)))
            for infoset, allowed in enumerate(legal):
                actions = np.flatnonzero(allowed)
                yield Row(
                    infoset=infoset,
                    player=player,
                    actions=tuple(actions.tolist()),
                    probabilities=tuple(rows[infoset, actions].tolist()),
                )

    def _facts(self) -> dict[str, str]:
        """The size, and player_0's first information set as an example."""
        return super()._facts() | {"for example": self._example(self.legal(0, 0, 1)[0])}

    def words_for_other_losses(self, count: int) -> str:
        """Only the largest losses are known."""
        return "others"


def _why_not(variant: str) -> str:
    """Why a variant does not solve a large game."""
    if variant in SAMPLING:
        return "samples episodes of a tree"
    return "needs both players' policies of an iteration at once"


def require_tables(tables: Sequence[npt.ArrayLike], shapes: Sequence[tuple[int, int]]) -> Tables:
    """The tables as contiguous float32; a `PolicyError` if they have other shapes."""
    got = [np.shape(table) for table in tables]
    if got != list(shapes):
        raise PolicyError(f"a policy of this game is tables of shapes {[*shapes]}; got {got}")
    return tuple(np.ascontiguousarray(table, np.float32) for table in tables)


def invalid_row(tables: Tables, player: int, infoset: int) -> PolicyError:
    """The error for a row that is not a distribution over the legal actions."""
    return PolicyError(
        f"player {player}, information set {infoset}: {tables[player][infoset].tolist()} are not "
        "probabilities of its legal actions"
    )


def largest_losses(
    tables: Tables,
    best_responses: Sequence[Int8Array | Int16Array],
    lost: Sequence[Float64Array],
    reach: Callable[[int, int], float],
) -> tuple[Loss, ...]:
    """The `MAX_LOSSES` largest of the losses `lost`, one `(I_p,)` per player, the largest first.

    `reach(player, infoset)` is the probability that a hand arrives at an information set.
    """
    largest: list[tuple[float, int, int]] = []
    for player, amounts in enumerate(lost):
        infosets = np.flatnonzero(amounts > NO_LOSS)
        if len(infosets) > MAX_LOSSES:
            infosets = infosets[np.argpartition(-amounts[infosets], MAX_LOSSES)[:MAX_LOSSES]]
        largest += [(-float(amounts[infoset]), player, int(infoset)) for infoset in infosets]
    losses = []
    for negative, player, infoset in sorted(largest)[:MAX_LOSSES]:
        row = tables[player][infoset].astype(np.float64)
        played = int(row.argmax())
        loss = Loss(
            player=player,
            infoset=infoset,
            reach=reach(player, infoset),
            played=played,
            probability=float(row[played] / row.sum()),
            best=int(best_responses[player][infoset]),
            lost=-negative,
        )
        losses.append(loss)
    return tuple(losses)
