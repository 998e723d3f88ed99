"""Games by name. Here, and only here, is decided which class a game gets.

| class | games | a policy |
|---|---|---|
| `KuhnGame` | `kuhn` | one table, float64 `(I, A)` |
| `LeducGame`, `OpenSpielGame` | OpenSpiel's games whose tree fits into memory | one table |
| `EfgGame` | games in `.efg` files, Gambit's format | one table |
| `PhantomGame`, `LiarsDice`, `PokerEndgame` | measured without a tree | a table per player |
| `SampledGame` | all others | a network |
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from algorithms.games import openspiel
from algorithms.games.efg_game import is_efg, load_efg, same_file
from algorithms.games.game import ExactGame, Game, GameArguments, PyspielGame, SampledGame
from algorithms.games.kuhn import NAME as KUHN
from algorithms.games.kuhn import kuhn
from algorithms.games.leduc import LeducGame, is_leduc
from algorithms.games.openspiel import (
    MAX_NODES,
    Estimate,
    OpenSpielGame,
    TreeTooLargeError,
    identity,
    load_pyspiel,
)
from algorithms.games.short_names import is_short_name
from algorithms.games.tree_game import TreeGame
from algorithms.support.files import silent_stderr
from kuhn_bridge.errors import GameError, short_repr

if TYPE_CHECKING:
    from algorithms.large_games.large_game import LargeExactGame

__all__ = [
    "KUHN",
    "MAX_NODES",
    "ExactGame",
    "Game",
    "SampledGame",
    "TreeGame",
    "as_game",
    "kuhn",
    "large_game",
    "load_game",
    "same_game",
]

# The size of a tree is estimated by random hands. One that seems smaller than the limit by the
# first factor is built when it is first needed; one that seems larger by the second is not tried.
# Estimates are often several times too low (for liars_dice(numdice=2,dice_sides=3) four times) and
# sometimes a little too high (leduc_poker by 14%), so a tree between the two is built at once, to
# see whether it fits.
_SAFE_FACTOR = 20
_HOPELESS_FACTOR = 1.5


def load_game(
    name: str | Path | PyspielGame, *, max_nodes: int = MAX_NODES, cached: bool = True
) -> Game:
    """Load `kuhn`, an OpenSpiel game such as `kuhn_poker(players=3)`, or an `.efg` file.

    Args:
        name: name of the game, with its parameters; path of a file; a `Game` or a `pyspiel.Game`.
        max_nodes: largest number of nodes of a tree (10,000,000 by default).
        cached: whether large trees are cached on disk.
    """
    if isinstance(name, Path):
        name = str(name)
    if not isinstance(name, str):
        return as_game(name)
    if is_efg(name):
        return load_efg(name, max_nodes=max_nodes)
    return _load_by_name(name, max_nodes=max_nodes, cached=cached)


@lru_cache(maxsize=4)
def _load_by_name(name: str, *, max_nodes: int, cached: bool) -> Game:
    if name == KUHN:
        return kuhn()
    return openspiel_game(load_pyspiel(name), name=name, max_nodes=max_nodes, cached=cached)


def openspiel_game(
    game: PyspielGame, *, name: str = "", max_nodes: int = MAX_NODES, cached: bool = False
) -> Game:
    """The `Game` of a `pyspiel.Game`; `name` is the string that loads it."""
    name = name or str(game).removesuffix("()")
    turn_based = openspiel.sequential(game)
    if turn_based is not game:
        inner = name if ")" in name else f"{name}()"
        name = f"turn_based_simultaneous_game(game={inner})"
        game = turn_based
    _require_playable(game, name)
    if openspiel.has_millions_of_deals(game):
        without_tree = large_game(game, name)
        if without_tree is not None:
            return without_tree
    estimate = openspiel.estimate_tree(game, name, max_nodes=max_nodes)
    less = Estimate(estimate.nodes / _HOPELESS_FACTOR, estimate.bytes / _HOPELESS_FACTOR)
    if _fits(less, max_nodes) and not openspiel.lacks_perfect_recall(game):
        make = LeducGame if is_leduc(game) else OpenSpielGame
        tree_game = make(**_arguments(game, name), max_nodes=max_nodes, cached=cached)
        if _is_built_or_small(tree_game, estimate, max_nodes):
            return tree_game
    without_tree = large_game(game, name)
    if without_tree is not None:
        return without_tree
    arguments = _arguments(game, name)
    arguments["why_no_tree"] = str(openspiel.too_large(name, estimate, max_nodes))
    return SampledGame(**arguments)


def _require_playable(game: PyspielGame, name: str) -> None:
    """Raise a `GameError` for a game that none of the classes can play."""
    kind = game.get_type()
    if kind.dynamics.name != "SEQUENTIAL":
        raise GameError(f"{name} is {kind.dynamics.name.lower()}; it has to be sequential")
    if kind.chance_mode.name == "SAMPLED_STOCHASTIC":
        raise GameError(f"{name} samples chance outcomes; they have to be explicit")
    if not kind.provides_information_state_string:
        raise GameError(f"{name} has no information state strings, which every game needs")


def _is_built_or_small(game: OpenSpielGame, estimate: Estimate, max_nodes: int) -> bool:
    """Whether the tree fits: its estimate is far below the limit, or it has been built."""
    more = Estimate(_SAFE_FACTOR * estimate.nodes, _SAFE_FACTOR * estimate.bytes)
    if _fits(more, max_nodes):
        return True
    try:
        _ = game.tree
    except TreeTooLargeError:
        return False
    return True


def _fits(estimate: Estimate, max_nodes: int) -> bool:
    """Whether a tree of that size is allowed."""
    return estimate.nodes <= max_nodes and estimate.bytes <= openspiel.MAX_BYTES


def large_game(game: PyspielGame, name: str) -> LargeExactGame | None:
    """The game measured without a tree, or None if that is not known; also where a tree fits."""
    # Here, so that other games do not wait for these modules.
    from algorithms.large_games.liars_dice import find_liars_dice
    from algorithms.large_games.phantom.game import find_phantom_game
    from algorithms.large_games.poker import BettingTooLargeError, find_poker_endgame

    for find in (find_phantom_game, find_liars_dice, find_poker_endgame):
        try:
            with openspiel.game_code(name), silent_stderr():
                loaded = find(game, name)
        except BettingTooLargeError:
            if is_short_name(name):  # whoever uses one expects an exact measure
                raise
            loaded = None
        if loaded is not None:
            return loaded
    return None


def _arguments(game: PyspielGame, name: str) -> GameArguments:
    """What every game is made from, of a `pyspiel.Game`."""
    has_tensor = game.get_type().provides_information_state_tensor
    return GameArguments(
        name=name,
        num_players=game.num_players(),
        num_actions=game.num_distinct_actions(),
        observation_size=game.information_state_tensor_size() if has_tensor else 0,
        pyspiel_game=game,
    )


def as_game(game: Game | str | Path | PyspielGame) -> Game:
    """The `Game` of a `Game`, a name, the path of a file or a `pyspiel.Game`."""
    if isinstance(game, Game):
        return game
    if isinstance(game, str | Path):
        return load_game(game)
    if not hasattr(game, "get_type"):  # which every `pyspiel.Game` has
        raise GameError(f"{short_repr(game)} is not a game: want a name, a Game or a pyspiel.Game")
    return openspiel_game(game)


def same_game(one: str, other: str) -> bool:
    """Whether two names load the same game; defaults and the order of parameters do not matter."""
    if one == other or KUHN in (one, other):
        return one == other
    if is_efg(one) or is_efg(other):
        return is_efg(one) and is_efg(other) and same_file(one, other)
    return identity(load_pyspiel(one)) == identity(load_pyspiel(other))
