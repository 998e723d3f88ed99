"""Games on a tree: a policy is one table, float64 `(I, A)`, a row per information set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from algorithms import solvers
from algorithms.cfr import Variant
from algorithms.compiled.nashconv import evaluate_policy, reach_probabilities
from algorithms.games.efg_writer import write_efg
from algorithms.games.game import (
    Actions,
    Backend,
    ExactGame,
    ExampleInputs,
    GameSize,
    PolicyRows,
    PyspielGame,
    Row,
    SeatPolicy,
    StatePolicy,
    Table,
    one_table,
)
from algorithms.nashconv import (
    ROW_SUM_TOLERANCE,
    InfosetValues,
    Measure,
    infoset_values,
    joint_policy,
)
from algorithms.support.arrays import Float32Array, Float64Array, IntpArray
from algorithms.support.errors import UsageError, whole_number
from algorithms.tree import Tree
from kuhn_bridge.errors import GameError, PolicyError, short_repr

LARGE_TREE = 100_000  # nodes
_ROUNDING = 1e-9  # difference between sums of returns that is rounding, per chip at stake


class TreeGame(ExactGame):
    """A game with a tree of N nodes, I information sets and A actions.

    Subclasses build the tree and put it into words.
    """

    backend: ClassVar[Backend] = "tree"
    measures_at_once: ClassVar[bool] = True
    policy_file: ClassVar[str | None] = ".json"
    usual_opponents: ClassVar[tuple[str, ...]] = ("uniform", "cfr+:100", "best-response")
    usual_reference: ClassVar[str | None] = "cfr+:1000"

    # The tree

    @cached_property
    def tree(self) -> Tree:
        """The game tree, which is built when it is first needed."""
        return self._build_tree()

    @abstractmethod
    def _build_tree(self) -> Tree:
        """The game tree; a `GameError` if it turns out to be too large."""

    @cached_property
    def observations(self) -> Float32Array:
        """The observation of each information set's owner: float32 `(I, observation_size)`.

        A `GameError` if two information sets of one player have the same observation.
        """
        observations = self._observations()
        owner = self.tree.owner
        distinct = 0
        for player in np.unique(owner):
            distinct += len(np.unique(observations[owner == player], axis=0))
        if distinct < len(observations):
            raise GameError(
                f"{self.name}: {len(observations):,} information sets, but only {distinct:,} "
                "distinct information state tensors: a network cannot distinguish them; a table can"
            )
        observations.flags.writeable = False
        return observations

    @abstractmethod
    def _observations(self) -> Float32Array:
        """A new array of `observations`, in which rows may be equal."""

    @cached_property
    def appends_seat(self) -> bool:
        """Whether two players share an observation, so that training appends the seat."""
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
    def plays_networks(self) -> bool:
        """Whether a network can distinguish the information sets."""
        try:
            return bool(self.observations.size)
        except GameError:
            return False

    def example_inputs(self, size: int | None = None) -> ExampleInputs:
        """The inputs of a network at all information sets."""
        return ExampleInputs(self.network_inputs(size), self.tree.legal, every=True)

    def example_observation(self, size: int) -> Float32Array:
        """The input at the first information set: float32 `(1, size)`."""
        return self.network_inputs(size)[:1]

    # Tables

    def uniform(self) -> Float64Array:
        """The table that plays every legal action equally often: `(I, A)`."""
        return self.tree.uniform()

    def random(self, seed: int) -> Float64Array:
        """A table drawn uniformly from all policies: `(I, A)`."""
        return self.tree.random(seed)

    def validated(self, table: object) -> Float64Array:
        """A read-only copy; an error names the first row that is not a distribution."""
        tree = self.tree
        try:
            rows = np.asarray(table, np.float64)
        except (TypeError, ValueError):
            raise PolicyError(f"a policy of {self.name} is a table of numbers") from None
        if rows.shape != tree.legal.shape:
            want = " x ".join(map(str, tree.legal.shape))
            raise PolicyError(f"a policy of {self.name} has {want} numbers; got shape {rows.shape}")
        with np.errstate(over="ignore"):
            valid = np.where(tree.legal, rows >= 0, rows == 0).all(axis=1)
            valid &= np.abs(rows.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE
        if not valid.all():
            raise self._invalid_row(rows, int(valid.argmin()))
        copy = rows + 0.0  # -0.0 becomes 0.0
        copy.flags.writeable = False
        return copy

    def _invalid_row(self, rows: Float64Array, infoset: int) -> PolicyError:
        tree = self.tree
        key = short_repr(tree.keys[infoset])
        row = short_repr(rows[infoset].tolist())
        legal = short_repr(np.flatnonzero(tree.legal[infoset]).tolist())
        return PolicyError(
            f"player_{tree.owner[infoset]} at {key}: {row} are not probabilities of the legal "
            f"actions {legal}, which sum to 1"
        )

    def measure(self, table: Table) -> Measure:
        """Exact values, gains, best responses and losses of a table `(I, A)`."""
        return replace(evaluate_policy(self.tree, one_table(table)), labels=self)

    def make_solver(
        self, variant: str | Variant = solvers.DEFAULT_VARIANT, **options: Any
    ) -> solvers.AnySolver:
        """The solver of a variant of CFR; `options` are those of `algorithms.solvers`."""
        return solvers.make_solver(self.tree, variant, **options)

    def table_of(self, policy: StatePolicy, input_size: int) -> Float64Array:
        """The probabilities of a function at all information sets: `(I, A)`."""
        return np.asarray(policy(self.network_inputs(input_size), self.tree.legal))

    def pure(self, actions: Actions) -> Float64Array:
        """The table that always plays these actions, one per information set `(I,)`."""
        rows: Float64Array = np.eye(self.num_actions)[np.asarray(actions)]
        return rows

    def seated(self, tables: Sequence[Table]) -> Float64Array:
        """The table `(I, A)` in which player p plays as in `tables[p]`."""
        return joint_policy(self.tree, [one_table(table) for table in tables])

    def seat_policy(self, table: Table) -> SeatPolicy:
        """The table itself: hands are played on the tree."""
        return one_table(table)

    def own_reach(self, table: Table) -> Float64Array:
        """Each information set's reach probability by its owner's own actions: `(I,)`."""
        return reach_probabilities(self.tree, one_table(table))[self.tree.parent_sequence]

    def policy_rows(self, table: Table, infosets: IntpArray) -> PolicyRows:
        """A table at information sets `(n,)`, and what a network sees there."""
        return PolicyRows(
            inputs=self.network_inputs()[infosets],
            probabilities=one_table(table)[infosets],
            legal=self.tree.legal[infosets],
        )

    def infoset_values(self, table: Table) -> InfosetValues:
        """What information sets are worth to their owners under a table `(I, A)`."""
        return infoset_values(self.tree, one_table(table))

    def measures_curve(self, points: int) -> bool:
        """Always: one measure takes less than a rollout."""
        return True

    @property
    def curve_points(self) -> int:
        """Fewer points of a learning curve on a large tree."""
        return 50 if self.tree.num_nodes >= LARGE_TREE else 200

    # Words

    @property
    def size_label(self) -> str:
        """The name, the number of nodes and of information sets."""
        tree = self.tree
        return f"{self.name}: {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets"

    @property
    def size(self) -> GameSize:
        """The size of the tree."""
        tree = self.tree
        returns = tree.returns[:, tree.terminals]
        rounding = _ROUNDING * max(1.0, float(np.abs(returns).max()))
        constant_sum = bool(np.ptp(returns.sum(axis=0)) <= rounding)
        return GameSize(nodes=tree.num_nodes, infosets=len(tree.keys), constant_sum=constant_sum)

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """An information set in words: by default its information state string."""
        self._require_infoset(infoset)
        key = " ".join(self.tree.keys[infoset].split())
        return f"player_{self.tree.owner[infoset]} at {key!r}"

    def infoset_key(self, infoset: int, player: int) -> str:
        """The information state string."""
        return self.tree.keys[infoset]

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node in words, e.g. `player_0 gets J`."""
        first, end = self.tree.first_child[node : node + 2].tolist()
        return self._chance_labels(node, self.tree.action[first:end].tolist())

    @abstractmethod
    def _chance_labels(self, node: int, outcomes: Sequence[int]) -> list[str]:
        """Chance's outcomes at a node, in words."""

    def _require_infoset(self, infoset: int, action: int | None = None) -> None:
        """Raise an error for a number that is no information set, or an action illegal there."""
        tree = self.tree
        infoset = whole_number("infoset", infoset, least=0, most=len(tree.keys) - 1)
        legal = np.flatnonzero(tree.legal[infoset]).tolist()
        if action is not None and action not in legal:
            place = f"information set {infoset} ({short_repr(tree.keys[infoset])})"
            raise UsageError(f"action {action} is not legal at {place}; legal are {legal}")

    @property
    def wrong_policy_file(self) -> str:
        """Why one table per player cannot be a policy of this game."""
        return f"{self.name} has a tree; its policies are .json"

    def first_rows(self, table: Table, most: int) -> Iterator[Row]:
        """The first rows of a table, at most that many."""
        tree = self.tree
        for infoset, row in enumerate(one_table(table)[:most]):
            actions = np.flatnonzero(tree.legal[infoset])
            yield Row(
                infoset=infoset,
                player=int(tree.owner[infoset]),
                actions=tuple(actions.tolist()),
                probabilities=tuple(row[actions].tolist()),
            )

    def words_for_other_losses(self, count: int) -> str:
        """All losses are known, so they can be counted."""
        return f"{count:,} more"

    # Files

    def save(self, path: str | Path) -> None:
        """Write the game as an `.efg` file, which Gambit and `load_game` read."""
        self._write_efg(path, self.name, self.agents)

    def _write_efg(self, path: str | Path, title: str, players: Sequence[str]) -> None:
        if Path(path).suffix != ".efg":
            raise GameError(f"{path}: a game is written as .efg; give a name that ends in .efg")
        write_efg(path, self.tree, self, players, title=title)

    # OpenSpiel

    def openspiel_game(self) -> PyspielGame:
        """The `pyspiel.Game` to which policies of this game are converted."""
        if self.pyspiel_game is None:
            raise GameError(f"{self.name} is not a game of OpenSpiel")
        return self.pyspiel_game

    def require_openspiel(self, theirs: PyspielGame) -> None:
        """Raise a `PolicyError` unless policies of a `pyspiel.Game` are policies of this game."""
        known = self.openspiel_game()
        same_name = theirs.get_type().short_name == known.get_type().short_name
        if not same_name or str(theirs.get_parameters()) != str(known.get_parameters()):
            raise PolicyError(f"a policy of {theirs}, not of {self.name}")

    def openspiel_history(self, infoset: int, theirs: PyspielGame) -> list[int]:
        """The actions in a `pyspiel.Game` that lead to a state of an information set."""
        del theirs
        return self.tree.history(int(self.tree.members[self.tree.first_member[infoset]]))

    def to_openspiel_ids(
        self, infoset: int, row: dict[int, float], theirs: PyspielGame
    ) -> dict[int, float]:
        """Probabilities at an information set by the action IDs of a `pyspiel.Game`."""
        del infoset, theirs
        return row

    def from_openspiel_ids(self, rows: list[dict[int, float]]) -> list[dict[int, float]]:
        """OpenSpiel's probabilities at all information sets by the action IDs of this game."""
        return rows

    @property
    def tree_is_quick(self) -> bool:
        """Whether the tree has been built, or takes no longer than a moment."""
        return True

    def _facts(self) -> dict[str, str]:
        """The size and an example; the tree is built only if that is quick."""
        about = self._title_and_players()
        about["actions"] = f"{self.num_actions} action IDs"
        if not self.tree_is_quick:
            about["tree"] = "built when it is first needed"
            return about
        tree = self.tree
        about["nodes"] = f"{tree.num_nodes:,}"
        counts = np.bincount(tree.owner, minlength=self.num_players).tolist()
        sets = " + ".join(f"{count:,}" for count in counts)
        about["information sets"] = f"{len(tree.keys):,} ({sets})"
        about["payoffs"] = self._payoffs_text()
        about["for example"] = self._example(tree.legal[0])
        return about

    def _payoffs_text(self) -> str:
        """Whether the players' returns sum to zero, or to another number, at every end."""
        if not self.size.constant_sum:
            return "not zero-sum"
        first_end = self.tree.terminals[0]
        total = float(self.tree.returns[:, first_end].sum())
        is_zero = abs(total) <= _ROUNDING * max(1.0, float(np.abs(self.tree.returns).max()))
        return "zero-sum" if is_zero else f"sum to {total:g}"

    def _title_and_players(self) -> dict[str, str]:
        """What a notebook shows first of the game."""
        return {"players": str(self.num_players)}

    def __repr__(self) -> str:
        size = self.size_label.replace(":", ",", 1) if "tree" in vars(self) else self.name
        return f"<Game {size}>"
