"""Policies as files: JSON for games with a tree, `.npz` for native large games.

Version 1 of the JSON is Kuhn's: it maps the 12 information states to names of actions. Version 2 is
that of every other game: one map per player from the information state string to action IDs.
Numbers are written so that they read back exactly. A `.npz` file has the game's name and one table
per player.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.exact.native import Tables
from algorithms.exact.tree import Tree
from algorithms.games import KUHN, Game
from algorithms.policies.kuhn import to_names
from algorithms.support.arrays import Float64Array
from algorithms.support.files import read_arrays, write_arrays
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import Action

FORMAT, KUHN_VERSION, VERSION = "kuhn-bridge-policy", 1, 2
MAX_BYTES = 512 * 2**20  # of a JSON file
MAX_CONTAINERS = 4_000_000  # of the JSON: one map per information set


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


def parse(text: str | bytes) -> tuple[str, dict[str, Any]]:
    """The name of the game, and the JSON object, of a policy file; the game is not loaded."""
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
    version = document.get("version")
    if version not in (KUHN_VERSION, VERSION):
        raise PolicyError(
            f"policy version {short_repr(version)}; this reads {KUHN_VERSION} and {VERSION}"
        )
    game = KUHN if version == KUHN_VERSION else document.get("game")
    if not isinstance(game, str):
        raise PolicyError('not a policy: "game" must name its game')
    return game, document


def to_table(document: Mapping[str, Any], game: Game) -> Float64Array:
    """The probabilities `(I, A)` of a parsed policy of `game`; their sums are not checked."""
    tree, table = game.tree, np.zeros(game.tree.legal.shape)
    groups: list[tuple[str, list[int], Any]]
    if document["version"] == KUHN_VERSION:
        action_names = [action.name for action in Action]
        groups = [("", list(range(len(tree.keys))), document.get("policy"))]
    else:
        action_names = [str(action) for action in range(game.num_actions)]
        groups = [
            (f" of player_{player}", np.flatnonzero(tree.owner == player).tolist(), rows)
            for player, rows in enumerate(_players(document, game))
        ]
    for whose, infosets, rows in groups:
        keys = {tree.keys[infoset]: infoset for infoset in infosets}
        _require_keys(f"information states{whose}", rows, keys)
        for key, infoset in keys.items():
            legal = np.flatnonzero(tree.legal[infoset]).tolist()
            actions = {action_names[action]: action for action in legal}
            _require_keys(f"actions{whose} at {key!r}", rows[key], actions)
            for name, action in actions.items():
                where = f"{key!r}, action {name}"
                table[infoset, action] = _probability(rows[key][name], where)
    return table


def write_npz(path: str | Path, game: str, tables: Tables) -> None:
    """Write the tables of a game, whole or not at all."""
    named = {f"player_{player}": table for player, table in enumerate(tables)}
    write_arrays(path, {**named, "game": np.array(game)})


def read_npz(path: str | Path) -> tuple[str, Tables]:
    """The game's name and its tables; no code from the file runs."""
    arrays = read_arrays(path)
    try:
        names = [f"player_{player}" for player in range(len(arrays) - 1)]
        return str(arrays["game"]), tuple(np.asarray(arrays[name], np.float32) for name in names)
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyError(f"not a policy in .npz form ({error})") from None


def _players(document: Mapping[str, Any], game: Game) -> Sequence[Any]:
    players = document.get("players")
    if not isinstance(players, list) or len(players) != game.num_players:
        raise PolicyError(
            f'"players" must be a list of {game.num_players} maps, one per player of {game.name}'
        )
    return players


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
