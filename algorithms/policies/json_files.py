"""Policies as JSON, which reads back exactly.

Version 1 is Kuhn's: it maps the 12 information states to names of actions. Version 2 is that of
every other game with a tree: one map per player from the information state string to action IDs.

    {"format": "kuhn-bridge-policy", "version": 1, "policy": {"0": {"CHECK_OR_CALL": 0.8, ...}}}
    {"format": "kuhn-bridge-policy", "version": 2, "game": "leduc_poker",
     "players": [{"...": {"1": 0.7, "2": 0.3}}, {"...": {"0": 0.1, "1": 0.9}}]}
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from algorithms.games import KUHN, Game, same_game
from algorithms.games.kuhn_policies import to_names
from algorithms.support.arrays import Float64Array
from algorithms.support.files import read_bytes, write_text
from algorithms.tree import Tree
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import Action

FORMAT = "kuhn-bridge-policy"
MAX_BYTES = 512 * 2**20  # of a JSON file
MAX_CONTAINERS = 4_000_000  # of the JSON: one map per information set


class Document(NamedTuple):
    """A JSON object in which format, version and game were found; its rows were not looked at."""

    game: str
    version: int
    content: Mapping[str, Any]


# Writing


def write(path: str | Path, game: Game, table: Float64Array) -> None:
    """Write a file, whole or not at all."""
    write_text(path, json.dumps(document_of(game, table)) + "\n")


def document_of(game: Game, table: Float64Array) -> dict[str, Any]:
    """The JSON object of a table `(I, A)`, in the version that the game's policies have."""
    tree = game.tree
    if game.document_version == 1:
        return {"format": FORMAT, "version": 1, "policy": to_names(table)}
    players = to_players(tree, table)
    return {"format": FORMAT, "version": 2, "game": game.name, "players": players}


def to_players(tree: Tree, table: Float64Array) -> list[dict[str, dict[str, float]]]:
    """One map per player, from information state to action ID to probability."""
    players: list[dict[str, dict[str, float]]] = [{} for _ in range(tree.num_players)]
    for owner, key, row, legal in zip(tree.owner, tree.keys, table, tree.legal, strict=True):
        actions = np.flatnonzero(legal).tolist()
        players[owner][key] = {str(action): float(row[action]) for action in actions}
    return players


# Reading


def read(path: str | Path) -> Document:
    """The JSON object of a file; the game is not loaded."""
    return parse(read_bytes(path, max_bytes=MAX_BYTES))


def parse(text: bytes) -> Document:
    """The JSON object of a policy's text; the game is not loaded."""
    if text.count(b"{") + text.count(b"[") > MAX_CONTAINERS:  # each takes memory of its own
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
    if version not in (1, 2):
        raise PolicyError(f"policy version {short_repr(version)}; this reads 1 and 2")
    game = KUHN if version == 1 else document.get("game")
    if not isinstance(game, str):
        raise PolicyError('not a policy: "game" must name its game')
    return Document(game=game, version=version, content=document)


def require_same_game(name: str | None, game: Game) -> None:
    """Raise an error if the game that a file names is another one."""
    if name is not None and not same_game(name, game.name):
        raise PolicyError(f"a policy of {name}, not of {game.name}")


def to_table(document: Document, game: Game) -> Float64Array:
    """The probabilities `(I, A)` of a document of `game`; their sums are not checked."""
    tree = game.tree
    table = np.zeros(tree.legal.shape)
    if document.version == 1:
        names = [action.name for action in Action]
        all_infosets = range(len(tree.keys))
        _fill(table, tree, document.content.get("policy"), all_infosets, names, whose="")
        return table
    names = [str(action) for action in range(game.num_actions)]
    players = document.content.get("players")
    if not isinstance(players, list) or len(players) != game.num_players:
        want = f"a list of {game.num_players} maps, one per player of {game.name}"
        raise PolicyError(f'"players" must be {want}')
    for player, rows in enumerate(players):
        infosets = np.flatnonzero(tree.owner == player).tolist()
        _fill(table, tree, rows, infosets, names, whose=f" of player_{player}")
    return table


def _fill(  # noqa: PLR0913  # one caller
    table: Float64Array,
    tree: Tree,
    rows: Any,
    infosets: Sequence[int],
    names: Sequence[str],
    *,
    whose: str,
) -> None:
    """Write the rows of these information sets; `names` are those of the actions."""
    keys = [tree.keys[infoset] for infoset in infosets]
    _require_keys(f"information states{whose}", rows, keys)
    for infoset, key in zip(infosets, keys, strict=True):
        legal = np.flatnonzero(tree.legal[infoset]).tolist()
        row = rows[key]
        _require_keys(f"actions{whose} at {key!r}", row, [names[action] for action in legal])
        for action in legal:
            value = row[names[action]]
            if type(value) not in (int, float) or not 0 <= value <= 1:  # NaN is refused too
                place = f"{key!r}, action {names[action]}"
                raise PolicyError(f"{place}: {short_repr(value)} is not a probability")
            table[infoset, action] = value


def table_of_rows(rows: Mapping[Any, Any], game: Game) -> Float64Array:
    """The table `(I, A)` of a map as `Policy[...]` gives its rows; sums are not checked.

    Keys are information state strings, or `(player, string)`; values map actions, as numbers or
    named as in a document, to probabilities. Actions that are left out have probability 0.
    """
    tree = game.tree
    table = np.zeros(tree.legal.shape)
    names = {game.action_name(action): action for action in range(game.num_actions)}
    unused = dict(rows)
    for infoset, (owner, key) in enumerate(zip(tree.owner.tolist(), tree.keys, strict=True)):
        row = rows.get((owner, key), rows.get(key))
        unused.pop((owner, key), None)
        unused.pop(key, None)
        if not isinstance(row, Mapping):
            want = "want a map from information state to a map from action to probability"
            raise PolicyError(f"a policy of {game.name} lacks {key!r} of player_{owner}: {want}")
        for action, probability in row.items():
            number: Any = names.get(action, action)
            if number not in range(game.num_actions):
                raise PolicyError(f"{key!r}: {short_repr(action)} is not an action of {game.name}")
            table[infoset, int(number)] = probability
    if unused:
        extra = _some([str(key) for key in unused])
        raise PolicyError(f"{extra} are not information states of {game.name}")
    return table


def _require_keys(what: str, given: object, expected: list[str]) -> None:
    """Refuse a map that lacks keys or has others."""
    if not isinstance(given, dict):
        raise PolicyError(f"the {what} must be a map; got {short_repr(given)}")
    missing = [key for key in expected if key not in given]
    if missing:
        raise PolicyError(f"an incomplete policy: the {what} lack {_some(missing)}")
    if len(given) > len(expected):
        extra = _some(sorted(given.keys() - expected))
        raise PolicyError(f"the {what} include {extra}, which do not exist here")


def _some(names: list[str]) -> str:
    """The first three names."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(short_repr, names[:3]))}{more}"
