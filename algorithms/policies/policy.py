"""A policy of a game: one row of probabilities per information set, and its form on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Tree
from algorithms.exact.values import Measure, evaluate_policy
from algorithms.games import KUHN, Game, as_game, kuhn, same_game
from algorithms.support.arrays import Float64Array
from algorithms.support.files import read_bytes
from kuhn_bridge.encoding import frozen
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.policy import FORMAT, ROW_SUM_TOLERANCE, TabularPolicy, as_numbers
from kuhn_bridge.policy import VERSION as KUHN_VERSION
from kuhn_bridge.rules import as_seed

VERSION = 2
MAX_BYTES = 512 * 2**20  # of a file
MAX_CONTAINERS = 4_000_000  # of its JSON: one map per information set


class Policy:
    """What every player of a game does at each of its information sets: frozen and validated.

    `table` is float64 `(I, A)`, read-only, rows and columns as in the game's tree. Every row sums
    to 1 and illegal actions have probability 0. It can be used wherever an array is asked for.
    """

    __slots__ = ("game", "table")
    game: Game
    table: Float64Array

    def __init__(self, game: Game | str, table: npt.ArrayLike) -> None:
        loaded = as_game(game)
        object.__setattr__(self, "game", loaded)
        object.__setattr__(self, "table", _validated(loaded.tree, table))

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("a Policy is frozen; make a new one")

    __delattr__ = __setattr__

    @classmethod
    def uniform(cls, game: Game | str) -> Policy:
        """Every legal action equally often."""
        loaded = as_game(game)
        return cls(loaded, loaded.tree.uniform())

    @classmethod
    def random(cls, game: Game | str, seed: int) -> Policy:
        """A policy drawn uniformly from all policies."""
        loaded = as_game(game)
        return cls(loaded, loaded.tree.random(as_seed(seed)))

    @classmethod
    def from_kuhn(cls, policy: TabularPolicy) -> Policy:
        """The public Kuhn policy, without loss."""
        return cls(kuhn(), policy.probabilities)

    def to_kuhn(self) -> TabularPolicy:
        """Back to the public Kuhn policy, without loss."""
        if self.game.name != KUHN:
            raise PolicyError(f"a policy of {self.game.name} is not one of {KUHN}")
        return TabularPolicy(self.table)

    def nash_conv(self) -> float:
        """Sum over players of (value of a best response - value of the policy), chips per hand."""
        return self.measure().nash_conv

    def measure(self) -> Measure:
        """Values, gains and best responses, in chips per hand."""
        return evaluate_policy(self.game.tree, self.table)

    def likeliest(self) -> Policy:
        """Always the likeliest action, the lowest ID among equals."""
        return Policy(self.game, np.eye(self.table.shape[1])[self.table.argmax(axis=1)])

    @classmethod
    def from_players(cls, game: Game | str, players: Any) -> Policy:
        """From one map per player: `{information state: {"action ID": probability}}`."""
        loaded = as_game(game)
        tree = loaded.tree
        if not isinstance(players, list) or len(players) != tree.num_players:
            raise PolicyError(
                f'"players" must be a list of {tree.num_players} maps, '
                f"one per player of {loaded.name}"
            )
        table = np.zeros(tree.legal.shape)
        for player, rows in enumerate(players):
            own = np.flatnonzero(tree.owner == player)
            where = f"player_{player}"
            _require_keys(f"information states of {where}", rows, [tree.keys[row] for row in own])
            for row in own.tolist():
                key, actions = tree.keys[row], np.flatnonzero(tree.legal[row]).tolist()
                _require_keys(f"actions of {where} at {key!r}", rows[key], map(str, actions))
                table[row, actions] = [_number(rows[key][str(a)], where, key, a) for a in actions]
        return cls(loaded, table)

    def to_players(self) -> list[dict[str, dict[str, float]]]:
        """One map per player, from information state to action ID to probability."""
        tree = self.game.tree
        players: list[dict[str, dict[str, float]]] = [{} for _ in range(tree.num_players)]
        for owner, key, row, legal in zip(
            tree.owner.tolist(), tree.keys, self.table, tree.legal, strict=True
        ):
            players[owner][key] = {str(a): float(row[a]) for a in np.flatnonzero(legal).tolist()}
        return players

    @classmethod
    def from_json(cls, text: str | bytes, game: Game | str | None = None) -> Policy:
        """From what `to_json` writes; a `game` other than the one it names is refused."""
        data = _parsed(text)
        wanted = as_game(game) if game is not None else None
        if data.get("version") == KUHN_VERSION:
            require_game(KUHN, wanted)
            return cls.from_kuhn(TabularPolicy.from_json(json.dumps(data)))
        if data.get("version") != VERSION:
            known = f"{KUHN_VERSION} and {VERSION}"
            raise PolicyError(f"policy version {data.get('version')!r}; this reads {known}")
        name = data.get("game")
        if not isinstance(name, str):
            raise PolicyError('not a policy: "game" must name its game')
        require_game(name, wanted)
        return cls.from_players(wanted or name, data.get("players"))

    def to_json(self) -> str:
        """One JSON object on one line; floats are written so that they read back exactly."""
        if self.game.name == KUHN:
            return self.to_kuhn().to_json()
        head = {"format": FORMAT, "version": VERSION, "game": self.game.name}
        return json.dumps(head | {"players": self.to_players()})

    @classmethod
    def load(cls, path: str | Path, game: Game | str | None = None) -> Policy:
        """From a JSON file of any game."""
        try:
            text = read_bytes(path, max_bytes=MAX_BYTES)
        except OSError as error:
            raise PolicyError(f"{path}: {error.strerror or error}") from None
        try:
            return cls.from_json(text, game)
        except PolicyError as error:
            raise PolicyError(f"{path}: {error}") from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.table, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.game.name == other.game.name and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.game.name, self.table.tobytes()))

    def __reduce__(self) -> tuple[type[Policy], tuple[Game, Float64Array]]:
        return Policy, (self.game, self.table)

    def __repr__(self) -> str:
        return f"<Policy of {self.game.name}, {len(self.table):,} information sets>"


def _validated(tree: Tree, table: npt.ArrayLike) -> Float64Array:
    """A frozen copy `(I, A)`, or an error that names the first row that is no distribution."""
    rows = as_numbers(table)
    if rows is None:
        raise PolicyError(f"a policy of {tree.name} is a table of numbers")
    if rows.shape != tree.legal.shape:
        want = " x ".join(map(str, tree.legal.shape))
        raise PolicyError(f"a policy of {tree.name} has {want} numbers; got shape {rows.shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        sums = rows.sum(axis=1)
        fine = (rows >= 0).all(axis=1) & (np.abs(sums - 1) <= ROW_SUM_TOLERANCE)
        fine &= ~(rows * ~tree.legal).any(axis=1)
    if not fine.all():
        row = int(fine.argmin())
        where, legal = short_repr(tree.keys[row]), np.flatnonzero(tree.legal[row]).tolist()
        raise PolicyError(
            f"player_{tree.owner[row]} at {where}: {short_repr(rows[row].tolist())} are not "
            f"probabilities of the legal actions {short_repr(legal)}"
        )
    return frozen(rows + 0.0)  # -0.0 becomes 0.0


def _parsed(text: str | bytes) -> dict[str, Any]:
    raw = text.encode() if isinstance(text, str) else text
    if raw.count(b"{") + raw.count(b"[") > MAX_CONTAINERS:  # each takes memory of its own
        raise PolicyError(f"not a policy: more than {MAX_CONTAINERS:,} maps and lists")
    try:
        data = json.loads(text)
    except UnicodeDecodeError:
        raise PolicyError("not a policy: the file is not text") from None
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"not a policy: the JSON is broken ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise PolicyError(f'not a policy: want an object with "format": "{FORMAT}"')
    return data


def require_game(name: str, wanted: Game | None) -> None:
    """Refuse a policy of another game than the one asked for."""
    if wanted is not None and not same_game(name, wanted.name):
        raise PolicyError(f"a policy of {name}, not of {wanted.name}")


def _require_keys(what: str, given: Any, wanted: Any) -> None:
    """Refuse a map that lacks keys or has others."""
    names = list(wanted)
    if not isinstance(given, Mapping):
        raise PolicyError(f"the {what} must be a map; got {str(given)[:40]}")
    if missing := [name for name in names if name not in given]:
        raise PolicyError(f"an incomplete policy: the {what} lack {_some(missing)}")
    if len(given) > len(names):
        known = set(names)
        strange = [str(name) for name in given if name not in known]
        raise PolicyError(f"the {what} include {_some(strange)}, which do not exist here")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more}"


def _number(value: Any, where: str, key: str, action: int) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # so neither NaN nor what no float can hold
        raise PolicyError(
            f"{where} at {key!r}, action {action}: {str(value)[:20]} is no probability"
        )
    return float(value)
