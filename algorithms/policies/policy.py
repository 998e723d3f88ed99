"""A policy of a game: one row of probabilities per information set, or a network.

`Policy` is what users see of both; which class an object has follows from what it was made of, as
with `pathlib.Path`:

    Policy
      TablePolicy        a table; in a game with a tree every policy is one
      NetworkPolicy      a network in a game without a tree; its table is evaluated when asked for
        UniformPolicy    uniform play there
      FunctionPolicy     a function of OpenSpiel's states in such a game
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from algorithms.games import ExactGame, Game, TreeGame, as_game, kuhn
from algorithms.games.game import PyspielGame, SeatPolicy, Table, arrays_of
from algorithms.games.kuhn_policies import from_percentages
from algorithms.nashconv import Measure
from algorithms.policies import json_files, npz_files, openspiel_policies
from algorithms.policies.network import WIDTH, Network, Output, as_network, uniform_network
from algorithms.support import budget
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array
from algorithms.support.files import require_writable
from algorithms.support.progress import Advance
from kuhn_bridge import notebook
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import as_seed

if TYPE_CHECKING:
    from algorithms.lower_bound import LowerBound
    from algorithms.policies.distilled_policy import DistilledPolicy
    from algorithms.self_play.matches import Match

_NETWORK_FILES = (".zip", ".onnx")
# Information sets that a notebook shows: all of a small policy, the first of a larger one.
ALL_ROWS = 16
FIRST_ROWS = 8
QUICK_INFOSETS = 50_000  # up to which NashConv takes a moment
_WRITERS = {".json": json_files.write, ".npz": npz_files.write}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Policy:
    """A joint policy of all players of a game: immutable and validated.

    A policy has a table, or in a game without a tree a network. In a game with a tree a network is
    evaluated at once.

    Attributes:
        game: game of the policy.
        network: `Network` that plays a game without a tree, if there is one.
    """

    game: Game
    network: Network | None

    def __new__(
        cls, game: Game | str, table: Any = None, *, network: Network | None = None
    ) -> Policy:
        """A policy of the class that fits."""
        loaded = as_game(game)
        if network is not None and loaded.backend == "tree":
            table = loaded.table_of(network.probabilities, network.input_size)
        elif network is not None:
            return NetworkPolicy._made(loaded, network=network)
        if table is None:
            raise PolicyError("a policy has a table or a network; got neither")
        if isinstance(table, Mapping):
            table = json_files.table_of_rows(table, loaded)
        made = TablePolicy._made(loaded)
        vars(made)["table"] = loaded.validated(table)
        return made

    @classmethod
    def _made(cls, game: Game, *, network: Network | None = None) -> Self:
        """A new object of exactly this class."""
        made = object.__new__(cls)
        vars(made).update(game=game, network=network)
        return made

    @cached_property
    def table(self) -> Any:
        """The probabilities of all actions at all information sets, read-only.

        In a game with a tree float64 `(I, A)`, rows and columns as in the tree; every row sums to
        1, and illegal actions have probability 0. In a large game that is measured exactly one
        float32 `(I_p, A)` per player; a network is evaluated at all information sets when this is
        first read.
        """
        raise NotImplementedError

    def probabilities(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """Probabilities of actions `(n, A)` in a game without a tree; `legal` is bool `(n, A)`.

        Observations `(n, size)` are information state tensors, each followed by a one-hot of the
        seat.
        """
        raise NotImplementedError

    @property
    def seat_policy(self) -> SeatPolicy:
        """What plays a seat: the table on a tree, or the function `probabilities` on states."""
        raise NotImplementedError

    # Construction

    @classmethod
    def uniform(cls, game: Game | str) -> Policy:
        """The policy that plays every legal action with equal probability."""
        loaded = as_game(game)
        if loaded.backend == "tree":
            return cls(loaded, loaded.uniform())
        return UniformPolicy._made(loaded, network=uniform_network(loaded))

    @classmethod
    def random(cls, game: Game | str, seed: int) -> Policy:
        """A policy drawn uniformly from all policies; the same for the same seed."""
        loaded = as_game(game)
        return cls(loaded, loaded.random(as_seed(seed)))

    @classmethod
    def from_openspiel(cls, policy: Any, game: Game | str | PyspielGame | None = None) -> Policy:
        """A policy of OpenSpiel, Python's or C++'s, or a function from a state to probabilities.

        In a game without a tree it is asked for states as they occur: it can play matches, and
        `lower_bound` trains best responses against it.

        Args:
            policy: an OpenSpiel policy for all players, or a function of a state that returns a map
                or a list of probabilities.
            game: a `Game`, a name or a `pyspiel.Game`; required if the policy has no `game`.
        """
        named = getattr(policy, "game", None) if game is None else game
        if named is not None:
            loaded = as_game(named)
            if not isinstance(loaded, TreeGame):
                return FunctionPolicy.of(loaded, openspiel_policies.StateFunction(policy, loaded))
        return cls(*openspiel_policies.read_policy(policy, game))

    @classmethod
    def from_network(
        cls, network: Callable[[Any], Any], game: Game | str, *, output: Output = "logits"
    ) -> Policy:
        """The policy of a function from observations, float32 `(I, size)`, to numbers `(I, A)`.

        A torch module is given a tensor on its device, and is evaluated without dropout. Illegal
        actions are masked out.
        """
        loaded = as_game(game)
        return cls(loaded, network=as_network(network, loaded, output=output))

    @classmethod
    def from_sb3(cls, model: Any, game: Game | str | None = None) -> Policy:
        """The policy that a live `MaskablePPO` or `PPO` plays now.

        In a game with a tree it is a table, so it stays as it is when the model learns on.

        Args:
            model: model of Stable-Baselines3.
            game: its game; by default that of its environment, or the one that its file names.
        """
        from algorithms.policies.sb3_models import network_of_model

        loaded, network = network_of_model(model, game)
        return cls(loaded, network=network)

    @classmethod
    def from_percentages(cls, percentages: npt.ArrayLike) -> Policy:
        """A Kuhn policy from percentages as hand-written CFR programs print them.

        One list per player with one row per card, `[check, bet, fold, call]`; each pair sums to
        100. player_0's second pair is after check-bet; player_1's first pair is after a check, the
        second after a bet.
        """
        return cls(kuhn(), from_percentages(percentages))

    @classmethod
    def from_document(cls, document: Any, game: Game | str | None = None) -> Policy:
        """The policy of a JSON object that `to_document` returned, or of its text."""
        text = document if isinstance(document, str) else json.dumps(document)
        parsed = json_files.parse(text.encode())
        loaded = as_game(parsed.game if game is None else game)
        json_files.require_same_game(parsed.game, loaded)
        return cls(loaded, json_files.to_table(parsed, loaded))

    def greedy(self) -> Policy:
        """The policy that always plays the most probable action, the lowest ID in a tie."""
        raise NotImplementedError

    # Measures

    def nash_conv(self) -> float:
        """Sum over players of (value of a best response - value of the policy), chips per hand."""
        return self.measure().nash_conv

    def measure(self) -> Measure:
        """NashConv with its details: gains, values, best responses, losses."""
        return self.game.measure(self.table)

    # Shortcuts: what they do is in higher layers, which are imported when a method is called.

    def lower_bound(  # noqa: PLR0913  # options by name
        self,
        *,
        decisions: int = budget.DECISIONS,
        hands: int | None = None,
        seeds: Sequence[int] = budget.SEEDS,
        cpus: int = 1,
        address: str | None = None,
        progress: Advance | None = None,
    ) -> LowerBound:
        """A lower bound of NashConv from trained best responses, with a 95% interval.

        It does not show that NashConv is small, and bounds do not rank policies.

        Args:
            decisions: number of decisions that each training run learns from (5,000,000 by
                default).
            hands: number of hands on which each player's response is measured (200,000 by default,
                and 2,000,000 in games with a tree).
            seeds: random seeds (only 0 by default); each one adds two training runs per player.
            cpus: number of training runs at a time; more than one run on Ray.
            address: address of a Ray cluster: `auto`, `host:port` or `ray://host:port`.
            progress: function that is called with the number of decisions of all training runs so
                far, and a note.
        """
        from algorithms.lower_bound import lower_bound

        return lower_bound(
            self.game,
            self.seat_policy,
            decisions=decisions,
            hands=hands,
            seeds=seeds,
            cpus=cpus,
            address=address,
            progress=progress,
        )

    def distil(
        self,
        *,
        width: int = WIDTH,
        steps: int | None = None,
        seed: int = 0,
        progress: Advance | None = None,
    ) -> DistilledPolicy:
        """A network with two hidden layers that plays this policy as well as it can.

        The result has NashConv before and after, and `save("model.zip")` or `save("model.onnx")`.
        Ctrl-C keeps the best network so far.

        Args:
            width: units of each hidden layer.
            steps: number of optimizer's steps; by default it follows from the number of information
                sets.
            seed: random seed; equal seeds give equal networks.
            progress: function that is called with the number of steps so far and a note.
        """
        from algorithms.policies.distilled_policy import distil

        return distil(self, width=width, steps=steps, seed=seed, progress=progress)

    def best_response(self, player: int) -> Policy:
        """The same policy with a best response in one seat, which wins the most there.

        In games that are measured exactly; elsewhere `lower_bound` trains responses.
        """
        from algorithms.self_play.matches import with_best_response

        return with_best_response(self, player)

    def versus(self, other: Policy, *, hands: int = budget.MATCH_HANDS, seed: int = 0) -> Match:
        """What this policy wins against another one, in chips per hand.

        Exact in games that are measured exactly; elsewhere an estimate from simulated hands.

        Args:
            other: policy of all other seats.
            hands: number of simulated hands in each seat (100,000 by default).
            seed: random seed of these hands.
        """
        from algorithms.self_play.matches import match

        return match(self, other, hands=hands, seed=seed)

    def report(self, path: str | Path, *others: Policy) -> None:
        """Write one HTML file about this policy and others: how good they are, where they lose.

        Args:
            path: the file, whose name ends in `.html`.
            others: policies of the same game that the file shows as well.
        """
        from algorithms.reports.writing import write_report

        write_report(path, [self, *others])

    def play(self, *, in_terminal: bool = False, open_browser: bool = True) -> None:
        """Open a table to play against this policy, and serve it until Ctrl-C.

        Args:
            in_terminal: whether to play here instead of in the browser.
            open_browser: whether to open the page in the browser.
        """
        from algorithms.play import play

        play(self, in_terminal=in_terminal, open_browser=open_browser)

    # Other forms

    def to_openspiel(self) -> Any:
        """An `open_spiel.python.policy.Policy`; for `kuhn` it uses the IDs of `kuhn_poker`."""
        return openspiel_policies.to_openspiel_policy(self.game, self.table)

    def to_document(self) -> dict[str, Any]:
        """The policy as the JSON object that `save` writes."""
        return json_files.document_of(self.game, self.table)

    def save(self, path: str | Path) -> None:
        """Write a file that `load_policy` reads back, whole or not at all.

        A table is written exactly: in games with a tree as `.json`, in large games that are
        measured exactly as `.npz`. A `.zip` for SB3 or an `.onnx` file has a network: the policy's
        own, or one of 2 x 128 that is fitted to it (`distil`).
        """
        if Path(path).suffix in _NETWORK_FILES:
            self._save_network(path)
            return
        suffix = self.game.policy_file
        if suffix is None:
            raise PolicyError(
                f"{path}: a policy of {self.game.name} is a network, and written as .zip or .onnx"
            )
        if Path(path).suffix != suffix:
            raise PolicyError(
                f"{path}: a policy of {self.game.name} is written as {suffix}, or as a network in "
                ".zip or .onnx"
            )
        _WRITERS[suffix](path, self.game, self.table)

    def _save_network(self, path: str | Path) -> None:
        """Write a `.zip` or an `.onnx` file of a network that is fitted to the policy."""
        require_writable(path)
        self.distil().save(path)

    def __getitem__(self, key: str | tuple[int, str]) -> dict[Any, float]:
        """The legal actions and their probabilities at an information state, e.g. `policy["2pb"]`.

        Where players share an information state string the key is `(player, string)`.
        """
        player, name = key if isinstance(key, tuple) else (None, key)
        tree = self.game.tree
        infosets = [
            infoset
            for infoset, known in enumerate(tree.keys)
            if known == name and player in (None, tree.owner[infoset])
        ]
        if not infosets:
            some = list(map(repr, tree.keys[:12]))
            if len(tree.keys) > 12:
                some.append("...")
            what = f"{short_repr(key)} is not an information state of {self.game.name}"
            raise PolicyError(f"{what}; they are {', '.join(some)}")
        if len(infosets) > 1:
            what = short_repr(name)
            raise PolicyError(f"players share {what}; give (player, {what})")
        row = self.table[infosets[0]]
        legal = np.flatnonzero(tree.legal[infosets[0]]).tolist()
        return {self.game.action_id(action): float(row[action]) for action in legal}

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """The policy in a notebook."""
        raise NotImplementedError


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TablePolicy(Policy):
    """A policy that is a table, in a game that is measured exactly."""

    def probabilities(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """The rows of these observations."""
        look_up = self.seat_policy
        if not callable(look_up):
            raise PolicyError(f"a policy of {self.game.name} is played by its table")
        return look_up(observations, legal)

    @property
    def seat_policy(self) -> SeatPolicy:
        """The table itself on a tree."""
        return self.game.seat_policy(self.table)

    def greedy(self) -> Policy:
        """The policy that always plays the most probable action, the lowest ID in a tie."""
        return Policy(self.game, _greedy(self.game, self.table))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        if self.game.name != other.game.name or not isinstance(other, TablePolicy | UniformPolicy):
            return False
        return all(map(np.array_equal, arrays_of(self.table), arrays_of(other.table)))

    def __hash__(self) -> int:
        if isinstance(self.table, tuple):  # of a large game, which may take GiB
            return hash(self.game.name)
        return hash((self.game.name, self.table.tobytes()))

    def __reduce__(self) -> tuple[type[Policy], tuple[Game, Table]]:
        return Policy, (self.game, self.table)

    def __repr__(self) -> str:
        infosets = sum(map(len, arrays_of(self.table)))
        return f"<Policy of {self.game.name}, {infosets:,} information sets>"

    def __str__(self) -> str:
        return self.game.table_text(self.table) or repr(self)

    def _repr_html_(self) -> str:
        """A bar per information set, of all or of the first, and NashConv where that is quick."""
        infosets = sum(map(len, arrays_of(self.table)))
        size = "1 information set" if infosets == 1 else f"{infosets:,} information sets"
        if infosets <= QUICK_INFOSETS and self.game.backend == "tree":
            size = f"NashConv {notebook.nash_conv_text(self.nash_conv())}, {size}"
        most = ALL_ROWS if infosets <= ALL_ROWS else FIRST_ROWS
        parts = [notebook.paragraph(size), notebook.strips(self._bars(most))]
        if infosets > most:
            parts.append(notebook.paragraph(f"and {infosets - most:,} more"))
        return notebook.box(f"Policy of {self.game.name}", *parts)

    def _bars(self, most: int) -> Iterator[tuple[str, list[notebook.Part]]]:
        """The labels of the first information sets, with their actions and probabilities."""
        game = self.game
        rows = game.first_rows(self.table, most) if isinstance(game, ExactGame) else ()
        for row in rows:
            parts = []
            for action, probability in zip(row.actions, row.probabilities, strict=True):
                label = game.action_label(row.infoset, action, row.player)
                parts.append(notebook.Part(label, probability, color=action))
            yield game.infoset_label(row.infoset, row.player), parts


@dataclass(frozen=True, init=False, eq=False, repr=False)
class NetworkPolicy(Policy):
    """A policy that is a network, in a game without a tree.

    Two of them are equal if they are the same network: comparing what networks play would take
    minutes, or never end.
    """

    network: Network

    @cached_property
    def table(self) -> Any:
        """The network's probabilities at all information sets, evaluated when first read."""
        return self.game.table_of(self.network.probabilities, self.network.input_size)

    def probabilities(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """The network's probabilities; it may see the tensor without the seat."""
        return self.network.probabilities(observations[:, : self.network.input_size], legal)

    @property
    def seat_policy(self) -> SeatPolicy:
        """The function `probabilities`."""
        return self.probabilities

    def _save_network(self, path: str | Path) -> None:
        """Write the network itself; one that no file of this form can hold is distilled first."""
        require_writable(path)
        module = self.network.module
        if module is not None and Path(path).suffix == ".onnx":
            from algorithms.policies.onnx_writer import export

            export(self.network, self.game, path)
            return
        if module is not None:
            from algorithms.policies.model_zip_writer import layers_of, make_model, write_model

            layers = layers_of(module)
            if layers is not None:
                write_model(make_model(self.game, actor=layers), path)
                return
        super()._save_network(path)

    def greedy(self) -> Policy:
        """The policy that always plays the most probable action, the lowest ID in a tie."""
        return Policy(self.game, network=self.network.greedy())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.game.name == other.game.name and self.network is other.network

    def __hash__(self) -> int:
        return hash((self.game.name, id(self.network)))

    def _repr_html_(self) -> str:
        """The name of the game and what plays it."""
        about = f"{type(self.network).__name__} with {self.network.input_size} inputs"
        return notebook.box(f"Policy of {self.game.name}", notebook.paragraph(about))

    def __reduce__(self) -> tuple[Callable[[Game], Policy], tuple[Game]]:
        return partial(Policy, network=self.network), (self.game,)

    def __repr__(self) -> str:
        return f"<Policy of {self.game.name}, a network>"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class UniformPolicy(NetworkPolicy):
    """Uniform play in a game without a tree: it plays as a network, and has a table if any has."""

    @cached_property
    def table(self) -> Any:
        """The table that plays every legal action equally often."""
        return self.game.uniform()

    def _repr_html_(self) -> str:
        """The name of the game and what plays it."""
        about = notebook.paragraph("uniform play: every legal action equally often")
        return notebook.box(f"Policy of {self.game.name}", about)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TablePolicy):
            return other == self
        if not isinstance(other, Policy):
            return NotImplemented
        return self.game.name == other.game.name and isinstance(other, UniformPolicy)

    def __hash__(self) -> int:
        return hash(self.game.name)  # as of the table, which may be equal

    def __reduce__(self) -> tuple[Callable[[Game], Policy], tuple[Game]]:
        return Policy.uniform, (self.game,)


def _greedy(game: Game, table: Table) -> Table:
    """The table of the most probable actions."""
    best = tuple(rows.argmax(axis=1) for rows in arrays_of(table))
    return game.pure(best if isinstance(table, tuple) else best[0])


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FunctionPolicy(Policy):
    """A policy that answers for one state at a time, in a game without a tree."""

    function: openspiel_policies.StateFunction

    @classmethod
    def of(cls, game: Game, function: openspiel_policies.StateFunction) -> Policy:
        """The policy of a function."""
        made = cls._made(game)
        vars(made)["function"] = function
        return made

    @cached_property
    def table(self) -> Any:
        """There is none."""
        raise PolicyError(
            f"a function of OpenSpiel's states is no table of {self.game.name}; lower_bound "
            "measures it by trained best responses"
        )

    def probabilities(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """An error: the function needs states."""
        return self.function(observations, legal)

    @property
    def seat_policy(self) -> SeatPolicy:
        """The function, which simulators call with states."""
        return self.function

    def greedy(self) -> Policy:
        """The policy that always plays the most probable action, the lowest ID in a tie."""
        function = self.function

        def best(state: Any) -> dict[int, float]:
            legal = np.zeros((1, self.game.num_actions), np.bool_)
            legal[0, state.legal_actions()] = True
            return {int(function.of_states([state], legal)[0].argmax()): 1.0}

        return FunctionPolicy.of(self.game, openspiel_policies.StateFunction(best, self.game))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return isinstance(other, FunctionPolicy) and self.function is other.function

    def __hash__(self) -> int:
        return hash((self.game.name, id(self.function)))

    def __reduce__(self) -> tuple[Callable[..., Policy], tuple[Any, ...]]:
        return FunctionPolicy.of, (self.game, self.function)

    def _repr_html_(self) -> str:
        """The name of the game and what plays it."""
        about = notebook.paragraph("a function of OpenSpiel's states")
        return notebook.box(f"Policy of {self.game.name}", about)

    def __repr__(self) -> str:
        return f"<Policy of {self.game.name}, a function of states>"
