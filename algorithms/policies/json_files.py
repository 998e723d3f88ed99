"""Policies in other forms: JSON, `.npz`, and for Kuhn percentages, names of actions and text.

Version 1 of the JSON is Kuhn's: it maps the 12 information states to names of actions. Version 2 is
that of every other game: one map per player from the information state string to action IDs.
Numbers are written so that they read back exactly. A `.npz` file of a native large game has the
game's name and one table per player.

Kuhn's table is float64 `(12, 3)`: rows as in `INFORMATION_STATES`, columns our action IDs.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.games import KUHN, Game, same_game
from algorithms.large_games.large_game import Tables
from algorithms.support.arrays import Float64Array
from algorithms.support.files import read_arrays
from algorithms.tree import Tree
from kuhn_bridge.bridge import INFORMATION_STATES, parse_information_state
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import AGENTS, BETTING, Action, Card

FORMAT = "kuhn-bridge-policy"
MAX_BYTES = 512 * 2**20  # of a JSON file
MAX_CONTAINERS = 4_000_000  # of the JSON: one map per information set
PERCENT_TOLERANCE = 0.02  # allows for two rounded numbers
_FRACTIONS = "; it sums to 1, so these seem to be fractions: multiply them by 100"

# A percentage row is [check, bet, fold, call]. Player, card and half of the row, with the
# information set and the actions of that pair.
_HALVES = ((Action.CHECK_OR_CALL, Action.BET), (Action.FOLD, Action.CHECK_OR_CALL))
_PAIRS = [
    ((player, card, half), INFORMATION_STATES.index(f"{card}{letters}"), _HALVES[half])
    for player, histories in enumerate((("", "pb"), ("p", "b")))
    for card in range(3)
    for half, letters in enumerate(histories)
]

# One row per card, J Q K, the same for both players: percent of check, bet; fold, call.
STYLES = {
    "random": ((50, 50, 50, 50),) * 3,
    "heuristic": ((100, 0, 100, 0), (100, 0, 0, 100), (0, 100, 0, 100)),  # never bluffs
    "always-bet": ((0, 100, 0, 100),) * 3,  # and calls
    "always-check": ((100, 0, 100, 0),) * 3,  # and folds
}


def to_players(tree: Tree, table: Float64Array) -> list[dict[str, dict[str, float]]]:
    """One map per player, from information state to action ID to probability."""
    players: list[dict[str, dict[str, float]]] = [{} for _ in range(tree.num_players)]
    for owner, key, row, legal in zip(tree.owner, tree.keys, table, tree.legal, strict=True):
        players[owner][key] = {str(a): float(row[a]) for a in np.flatnonzero(legal).tolist()}
    return players


def parse(text: bytes) -> tuple[str, dict[str, Any]]:
    """The name of the game, and the JSON object, of a policy file; the game is not loaded."""
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
    if (version := document.get("version")) not in (1, 2):
        raise PolicyError(f"policy version {short_repr(version)}; this reads 1 and 2")
    game = KUHN if version == 1 else document.get("game")
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
    if is_kuhn := document["version"] == 1:
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


def _require_keys(what: str, given: Any, expected: list[str]) -> None:
    """Refuse a map that lacks keys or has others."""
    if not isinstance(given, dict):
        raise PolicyError(f"the {what} must be a map; got {short_repr(given)}")
    if missing := [key for key in expected if key not in given]:
        raise PolicyError(f"an incomplete policy: the {what} lack {_some(missing)}")
    if len(given) > len(expected):
        extra = _some(sorted(given.keys() - expected))
        raise PolicyError(f"the {what} include {extra}, which do not exist here")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(short_repr, names[:3]))}{more}"


def read_npz(path: str | Path) -> tuple[str, Tables]:
    """The game's name and its tables; no code from the file runs."""
    arrays = read_arrays(path)
    try:
        names = [f"player_{player}" for player in range(len(arrays) - 1)]
        return str(arrays["game"]), tuple(np.asarray(arrays[name], np.float32) for name in names)
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyError(f"not a policy in .npz form ({error})") from None


def from_percentages(percentages: Any) -> Float64Array:
    """The table of percentages `(2, 3, 4)`, as `Policy.from_percentages` takes them."""
    try:
        numbers = np.asarray(percentages, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2, 3, 4):
        raise PolicyError("percentages are numbers: 2 players x 3 cards x 4")
    table = np.zeros((len(INFORMATION_STATES), len(Action)))
    for place, infoset, actions in _PAIRS:
        pair = numbers.reshape(2, 3, 2, 2)[place]
        total = pair.sum()
        if not (abs(total - 100) <= PERCENT_TOLERANCE and (pair >= 0).all()):  # NaN is refused too
            hint = _FRACTIONS if abs(total - 1) <= PERCENT_TOLERANCE else ""
            where = f"{AGENTS[place[0]]} {Card(place[1]).name}: the pair {pair.tolist()}"
            raise PolicyError(f"{where} does not sum to 100{hint}")
        table[infoset, actions] = pair / total
    return table


def to_percentages(table: Float64Array) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """`(player_0, player_1)`, each three rows `(check, bet, fold, call)` in percent.

    Rounded to 12 decimals, so that printed percentages are recovered exactly.
    """
    numbers = np.zeros((2, 3, 2, 2))
    for place, infoset, actions in _PAIRS:
        numbers[place] = (100 * table[infoset, actions]).round(12)
    return tuple(tuple(map(tuple, cards)) for cards in numbers.reshape(2, 3, 4).tolist())


def to_names(table: Float64Array) -> dict[str, dict[str, float]]:
    """`{"2pb": {"CHECK_OR_CALL": 1.0, "FOLD": 0.0}, ...}`: the legal actions of every row."""
    return {
        name: {action.name: float(row[action]) for action in BETTING[name[1:]].after}
        for name, row in zip(INFORMATION_STATES, table, strict=True)
    }


def kuhn_text(table: Float64Array) -> str:
    """A table as text, one line per information state."""
    lines = [f"{'state':<6}{'seat':<10}{'card':<6}{'after':<12}  check/call     bet    fold"]
    for name, row in zip(INFORMATION_STATES, table, strict=True):
        card, letters = parse_information_state(name)
        betting = BETTING[letters]
        cells = [f"{row[action]:.4f}" if action in betting.after else "-" for action in Action]
        lines.append(
            f"{name:<6}{AGENTS[betting.actor or 0]:<10}{card.name:<6}"
            f"{'-'.join(betting.words) or 'start':<12}{cells[0]:>12}{cells[1]:>8}{cells[2]:>8}"
        )
    return "\n".join(lines)
