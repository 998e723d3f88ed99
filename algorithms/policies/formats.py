"""Policies as files: JSON for games with a tree, `.npz` for native large games.

Version 1 of the JSON is Kuhn's: it maps the 12 information states to names of actions. Version 2 is
that of every other game: one map per player from the information state string to action IDs.
Numbers are written so that they read back exactly. A `.npz` file has the game's name and one table
per player.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.exact.native import Tables
from algorithms.exact.tree import Tree
from algorithms.games import KUHN, Game, same_game
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
        tree.owner, tree.keys, table.tolist(), tree.legal, strict=True
    ):
        players[owner][key] = {str(a): row[a] for a in np.flatnonzero(legal).tolist()}
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
        known = f"this reads {KUHN_VERSION} and {VERSION}"
        raise PolicyError(f"policy version {short_repr(version)}; {known}")
    game = KUHN if version == KUHN_VERSION else document.get("game")
    if not isinstance(game, str):
        raise PolicyError('not a policy: "game" must name its game')
    return game, document


def require_same_game(name: str | None, game: Game) -> None:
    """Raise an error if the game that a file names is another one."""
    if name is not None and not same_game(name, game.name):
        raise PolicyError(f"a policy of {name}, not of {game.name}")


def to_table(document: dict[str, Any], game: Game) -> Float64Array:
    """The probabilities `(I, A)` of a parsed policy of `game`; their sums are not checked."""
    tree, table = game.tree, np.zeros(game.tree.legal.shape)
    players: Any
    if is_kuhn := document["version"] == KUHN_VERSION:
        names, players = [action.name for action in Action], [document.get("policy")]
    else:
        names, players = [str(a) for a in range(game.num_actions)], document.get("players")
        if not isinstance(players, list) or len(players) != game.num_players:
            want = f"a list of {game.num_players} maps, one per player of {game.name}"
            raise PolicyError(f'"players" must be {want}')
    for player, rows in enumerate(players):
        whose = "" if is_kuhn else f" of player_{player}"
        own = range(len(tree.keys)) if is_kuhn else np.flatnonzero(tree.owner == player).tolist()
        _require_keys(f"information states{whose}", rows, [tree.keys[infoset] for infoset in own])
        for infoset in own:
            key, legal = tree.keys[infoset], np.flatnonzero(tree.legal[infoset]).tolist()
            row = rows[key]
            _require_keys(f"actions{whose} at {key!r}", row, [names[action] for action in legal])
            for action in legal:
                value = row[names[action]]
                if type(value) not in (int, float) or not 0 <= value <= 1:  # NaN is refused too
                    where = f"{key!r}, action {names[action]}"
                    raise PolicyError(f"{where}: {short_repr(value)} is not a probability")
                table[infoset, action] = value
    return table


def _require_keys(what: str, given: Any, wanted: list[str]) -> None:
    """Refuse a map that lacks keys or has others."""
    if not isinstance(given, dict):
        raise PolicyError(f"the {what} must be a map; got {short_repr(given)}")
    if missing := [key for key in wanted if key not in given]:
        raise PolicyError(f"an incomplete policy: the {what} lack {_some(missing)}")
    if len(given) > len(wanted):
        extra = _some(sorted(given.keys() - wanted))
        raise PolicyError(f"the {what} include {extra}, which do not exist here")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(short_repr, names[:3]))}{more}"


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
