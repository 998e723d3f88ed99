"""A policy of a game: one row of probabilities per information set."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from algorithms.games import KUHN, Game, as_game, kuhn
from algorithms.nashconv import ROW_SUM_TOLERANCE, Measure
from algorithms.policies import json_files, openspiel_policies
from algorithms.policies.network import Network, Output, as_network, network_table, uniform_network
from algorithms.support import budget, files
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array
from algorithms.support.progress import Advance
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import Action, as_seed

if TYPE_CHECKING:
    from kuhn_bridge.sb3 import LowerBound


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Policy:
    """A joint policy of all players of a game: immutable and validated.

    A policy has a table, or in a game without a tree a network, or both. In a game with a tree a
    network is evaluated at once.

    Attributes:
        game: game of the policy.
        network: `Network` that plays a game without a tree, if there is one.
    """

    game: Game
    network: Network | None

    def __init__(
        self, game: Game | str, table: Any = None, *, network: Network | None = None
    ) -> None:
        loaded = as_game(game)
        if network is not None and loaded.fits_tree:
            table, network = network_table(network, loaded), None
        if table is None and network is None:
            raise PolicyError("a policy has a table or a network; got neither")
        vars(self).update(game=loaded, network=network)
        if table is not None:
            vars(self)["table"] = _validated(loaded, table)

    @cached_property
    def table(self) -> Any:
        """The probabilities of all actions at all information sets, read-only.

        In a game with a tree float64 `(I, A)`, rows and columns as in the tree; every row sums to
        1, and illegal actions have probability 0. In a native large game one float32 `(I_p, A)`
        per player; a network is evaluated at all information sets when this is first read.
        """
        self.game.require_exact()
        return network_table(self.network, self.game) if self.network else None

    def probabilities(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """Probabilities of actions `(n, A)` in a game without a tree; `legal` is bool `(n, A)`.

        Observations `(n, size)` are information state tensors, each followed by a one-hot of the
        seat.
        """
        if self.network is not None:
            return self.network.probabilities(observations[:, : self.network.input_size], legal)
        native = self.game.native
        if native is None:
            raise PolicyError(f"a policy of {self.game.name} is played by its table")
        tensors, seats = np.split(observations, [native.observation_size], axis=1)
        found = np.empty(legal.shape)
        for player in range(native.num_players):
            own = seats[:, player] > 0
            found[own] = self.table[player][native.find_infosets(player, tensors[own])]
        return found

    @classmethod
    def uniform(cls, game: Game | str) -> Policy:
        """The policy that plays every legal action with equal probability."""
        loaded = as_game(game)
        table = loaded.uniform_table() if loaded.is_exact else None
        return cls(loaded, table, network=None if loaded.fits_tree else uniform_network(loaded))

    @classmethod
    def random(cls, game: Game | str, seed: int) -> Policy:
        """A policy drawn uniformly from all policies; the same for the same seed."""
        loaded = as_game(game)
        return cls(loaded, (loaded.native or loaded.tree).random(as_seed(seed)))

    @classmethod
    def from_openspiel(cls, policy: Any, game: Any = None) -> Policy:
        """A policy of OpenSpiel, Python's or C++'s, or a function from a state to probabilities.

        Args:
            policy: an OpenSpiel policy for all players, or a function of a state that returns a map
                or a list of probabilities.
            game: a `Game`, a name or a `pyspiel.Game`; required if the policy has no `game`.
        """
        return cls(*openspiel_policies.read_policy(policy, game))

    @classmethod
    def from_network(
        cls, network: Callable[[Any], Any], game: Game | str, *, output: Output = "logits"
    ) -> Policy:
        """The policy of a function from observations, float32 `(I, size)`, to numbers `(I, A)`.

        A torch module is given a tensor. Illegal actions are masked out.
        """
        loaded = as_game(game)
        return cls(loaded, network=as_network(network, loaded, output=output))

    @classmethod
    def from_percentages(cls, percentages: Any) -> Policy:
        """A Kuhn policy from percentages as hand-written CFR programs print them.

        One list per player with one row per card, `[check, bet, fold, call]`; each pair sums to
        100. player_0's second pair is after check-bet; player_1's first pair is after a check, the
        second after a bet.
        """
        return cls(kuhn(), json_files.from_percentages(percentages))

    def to_openspiel(self) -> Any:
        """An `open_spiel.python.policy.Policy`; for `kuhn` it uses the IDs of `kuhn_poker`."""
        return openspiel_policies.to_openspiel_policy(self.game, self.table)

    def nash_conv(self) -> float:
        """Sum over players of (value of a best response - value of the policy), chips per hand."""
        return self.measure().nash_conv

    def measure(self) -> Measure:
        """NashConv with its details: gains, values, best responses, losses."""
        return self.game.measure(self.table)

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
        from kuhn_bridge.sb3 import lower_bound

        played = self.table if self.game.fits_tree else self.probabilities
        options: Any = {"seeds": seeds, "cpus": cpus, "address": address, "progress": progress}
        return lower_bound(self.game, played, decisions=decisions, hands=hands, **options)

    def greedy(self) -> Policy:
        """The policy that always plays the most probable action, the lowest ID in a tie."""
        network, table = self.network and self.network.greedy(), None
        if "table" in vars(self):
            rows = np.eye(self.game.num_actions, dtype=np.float32)
            pure = [rows[one.argmax(axis=1)] for one in self._tables()]
            table = pure[0] if self.game.fits_tree else pure
        return Policy(self.game, table, network=network)

    def to_document(self) -> dict[str, Any]:
        """The policy as the JSON object that `save` writes."""
        name, head = self.game.name, {"format": json_files.FORMAT}
        if name == KUHN:
            return head | {"version": 1, "policy": json_files.to_names(self.table)}
        players = json_files.to_players(self.game.tree, self.table)
        return head | {"version": 2, "game": name, "players": players}

    @classmethod
    def from_document(cls, document: Any, game: Game | str | None = None) -> Policy:
        """The policy of a JSON object that `to_document` returned, or of its text."""
        text = document if isinstance(document, str) else json.dumps(document)
        name, parsed = json_files.parse(text.encode())
        loaded = as_game(name if game is None else game)
        json_files.require_same_game(name, loaded)
        return cls(loaded, json_files.to_table(parsed, loaded))

    def save(self, path: str | Path) -> None:
        """Write a file that `load_policy` reads back exactly, whole or not at all.

        Games with a tree write `.json`, native large games `.npz`.
        """
        suffix = ".json" if self.game.fits_tree else ".npz"
        if Path(path).suffix != suffix:
            raise PolicyError(f"{path}: a policy of {self.game.name} is written as {suffix}")
        if self.game.fits_tree:
            files.write_text(path, json.dumps(self.to_document()) + "\n")
        else:
            named = {f"player_{player}": table for player, table in enumerate(self.table)}
            files.write_arrays(path, {**named, "game": np.array(self.game.name)})

    def __getitem__(self, key: str | tuple[int, str]) -> dict[Any, float]:
        """The legal actions and their probabilities at an information state, e.g. `policy["2pb"]`.

        Where players share an information state string the key is `(player, string)`.
        """
        player, name = key if isinstance(key, tuple) else (None, key)
        keys, owner, legal = self.game.tree.keys, self.game.tree.owner, self.game.tree.legal
        found = [i for i, known in enumerate(keys) if known == name and player in (None, owner[i])]
        if not found:
            some = ", ".join([*map(repr, keys[:12]), *(["..."] if len(keys) > 12 else [])])
            what = f"{short_repr(key)} is not an information state of {self.game.name}"
            raise PolicyError(f"{what}; they are {some}")
        if len(found) > 1:
            what = short_repr(name)
            raise PolicyError(f"players share {what}; give (player, {what})")
        row, kind = self.table[found[0]], Action if self.game.name == KUHN else int
        return {kind(a): float(row[a]) for a in np.flatnonzero(legal[found[0]]).tolist()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        same = map(np.array_equal, self._tables(), other._tables())
        return self.game.name == other.game.name and all(same)

    def __hash__(self) -> int:
        return hash((self.game.name, *(table.tobytes() for table in self._tables())))

    def __reduce__(self) -> tuple[Any, tuple[Game, Any]]:
        return partial(Policy, network=self.network), (self.game, vars(self).get("table"))

    def __repr__(self) -> str:
        if "table" not in vars(self):
            return f"<Policy of {self.game.name}, a network>"
        infosets = sum(map(len, self._tables()))
        return f"<Policy of {self.game.name}, {infosets:,} information sets>"

    def __str__(self) -> str:
        return json_files.kuhn_text(self.table) if self.game.name == KUHN else repr(self)

    def _tables(self) -> tuple[Any, ...]:
        """The tables: one, or one per player in a native large game."""
        return (self.table,) if self.game.fits_tree else self.table


def _validated(game: Game, table: Any) -> Any:
    """A read-only copy `(I, A)`; an error names the first row that is not a distribution.

    The tables of a native large game are not copied, and checked when it is measured.
    """
    if not game.fits_tree:
        game.require_exact()
        shapes = [(count, game.num_actions) for count in game.native.num_infosets]  # type: ignore[union-attr]
        if [np.shape(rows) for rows in table] != shapes:
            want = " and ".join(f"{rows:,} x {columns}" for rows, columns in shapes)
            raise PolicyError(f"a policy of {game.name} has tables of {want} numbers")
        return tuple(np.asarray(rows, np.float32) for rows in table)
    try:
        rows, tree = np.asarray(table, np.float64), game.tree
    except (TypeError, ValueError):
        raise PolicyError(f"a policy of {game.name} is a table of numbers") from None
    if rows.shape != tree.legal.shape:
        want = " x ".join(map(str, tree.legal.shape))
        raise PolicyError(f"a policy of {game.name} has {want} numbers; got shape {rows.shape}")
    with np.errstate(over="ignore"):
        valid = np.where(tree.legal, rows >= 0, rows == 0).all(axis=1)
        valid &= np.abs(rows.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE
    if not valid.all():
        infoset = int(valid.argmin())
        row, legal = rows[infoset].tolist(), np.flatnonzero(tree.legal[infoset]).tolist()
        raise PolicyError(
            f"player_{tree.owner[infoset]} at {short_repr(tree.keys[infoset])}: {short_repr(row)} "
            f"are not probabilities of the legal actions {short_repr(legal)}, which sum to 1"
        )
    copy = rows + 0.0  # -0.0 becomes 0.0
    copy.flags.writeable = False
    return copy
