"""Policies as JSON: version 1 for Kuhn, version 2 for every other game with a tree.

Version 1 maps the 12 information states to names of actions, version 2 has one map per player from
the information state string to action IDs. Numbers are written so that they read back exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from algorithms.exact.tree import Tree
from algorithms.games import KUHN, Game
from algorithms.policies.kuhn import to_names
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import Action

FORMAT, KUHN_VERSION, VERSION = "kuhn-bridge-policy", 1, 2
MAX_BYTES = 512 * 2**20  # of a file
MAX_CONTAINERS = 4_000_000  # of its JSON: one map per information set


def to_document(game: Game, table: Float64Array) -> dict[str, Any]:
    """The JSON object of a policy `(I, A)`."""
    if game.name == KUHN:
        return {"format": FORMAT, "version": KUHN_VERSION, "policy": to_names(table)}
    head = {"format": FORMAT, "version": VERSION, "game": game.name}
    return head | {"players": to_players(game.tree, table)}


def to_players(tree: Tree, table: Float64Array) -> list[dict[str, dict[str, float]]]:
    """One map per player, from information state to action ID to probability."""
    players: list[dict[str, dict[str, float]]] = [{} for _ in range(tree.num_players)]
    for owner, key, row, legal in zip(
        tree.owner.tolist(), tree.keys, table, tree.legal, strict=True
    ):
        players[owner][key] = {str(a): float(row[a]) for a in np.flatnonzero(legal).tolist()}
    return players


def parse(text: str | bytes) -> dict[str, Any]:
    """The JSON object of a policy file, whose game is not loaded yet."""
    raw = text.encode() if isinstance(text, str) else text
    if raw.count(b"{") + raw.count(b"[") > MAX_CONTAINERS:  # each takes memory of its own
        raise PolicyError(f"not a policy: more than {MAX_CONTAINERS:,} maps and lists")
    try:
        document = json.loads(text)
    except UnicodeDecodeError:
        raise PolicyError("not a policy: the file is not text") from None
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"not a policy: the JSON is broken ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PolicyError(f'not a policy: want an object with "format": "{FORMAT}"')
    if document.get("version") not in (KUHN_VERSION, VERSION):
        version = short_repr(document.get("version"))
        raise PolicyError(f"policy version {version}; this reads {KUHN_VERSION} and {VERSION}")
    if not isinstance(game_name(document), str):
        raise PolicyError('not a policy: "game" must name its game')
    return document


def game_name(document: Mapping[str, Any]) -> Any:
    """The name of the game of a parsed policy."""
    return KUHN if document["version"] == KUHN_VERSION else document.get("game")


def to_table(document: Mapping[str, Any], game: Game) -> Float64Array:
    """The probabilities `(I, A)` of a parsed policy of `game`; their sums are not checked."""
    tree, table = game.tree, np.zeros(game.tree.legal.shape)
    if document["version"] == KUHN_VERSION:
        names = {int(action): action.name for action in Action}
        reader = _Reader(tree, table, names.__getitem__)
        reader.read(range(len(tree.keys)), document.get("policy"), "")
        return table
    players = document.get("players")
    if not isinstance(players, list) or len(players) != tree.num_players:
        raise PolicyError(
            f'"players" must be a list of {tree.num_players} maps, one per player of {game.name}'
        )
    for player, rows in enumerate(players):
        infosets = np.flatnonzero(tree.owner == player).tolist()
        _Reader(tree, table, str).read(infosets, rows, f" of player_{player}")
    return table


class _Reader(NamedTuple):
    """Fills in a table from maps of maps whose inner keys are `action_key(action ID)`."""

    tree: Tree
    table: Float64Array
    action_key: Callable[[int], str]

    def read(self, infosets: Iterable[int], rows: Any, whose: str) -> None:
        """Fill in the rows of `infosets`; `whose` names the player in errors."""
        keys = {self.tree.keys[infoset]: infoset for infoset in infosets}
        _require_keys(f"information states{whose}", rows, keys)
        for key, infoset in keys.items():
            legal = np.flatnonzero(self.tree.legal[infoset]).tolist()
            actions = {self.action_key(action): action for action in legal}
            _require_keys(f"actions{whose} at {key!r}", rows[key], actions)
            for name, action in actions.items():
                where = f"{key!r}, action {name}"
                self.table[infoset, action] = _probability(rows[key][name], where)


def _require_keys(what: str, given: Any, wanted: Mapping[str, int]) -> None:
    """Refuse a map that lacks keys or has others."""
    if not isinstance(given, Mapping):
        raise PolicyError(f"the {what} must be a map; got {short_repr(given)}")
    if missing := [key for key in wanted if key not in given]:
        raise PolicyError(f"an incomplete policy: the {what} lack {_some(missing)}")
    if unknown := [key for key in given if key not in wanted]:
        raise PolicyError(f"the {what} include {_some(unknown)}, which do not exist here")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(short_repr, names[:3]))}{more}"


def _probability(value: Any, where: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # NaN is refused too
        raise PolicyError(f"{where}: {short_repr(value)} is not a probability")
    return float(value)
