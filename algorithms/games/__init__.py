"""Games by name: `kuhn`, which is native, and OpenSpiel's.

A `Game` has a tree, observations and labels.
"""

from functools import lru_cache
from typing import Any

from algorithms import solvers
from algorithms.cfr import VARIANTS
from algorithms.games.game import Game
from algorithms.games.kuhn import NAME as KUHN
from algorithms.games.kuhn import kuhn
from algorithms.games.leduc import RANKS, LeducGame
from algorithms.games.openspiel import MAX_NODES, identity, load_pyspiel, sequential
from kuhn_bridge.errors import GameError

__all__ = ["KUHN", "MAX_NODES", "Game", "as_game", "kuhn", "load_game", "make_solver", "same_game"]

NATIVE_VARIANTS = [name for name, variant in VARIANTS.items() if variant.alternating]


@lru_cache(maxsize=4)
def load_game(name: str, *, max_nodes: int = MAX_NODES, cached: bool = True) -> Game:
    """Load `kuhn` or an OpenSpiel game, e.g. `leduc_poker` or `kuhn_poker(players=3)`.

    Args:
        name: name of the game, with its parameters.
        max_nodes: largest number of nodes of a tree (10,000,000 by default).
        cached: whether large trees are cached on disk.
    """
    if name == KUHN:
        return kuhn()
    return openspiel_game(load_pyspiel(name), name=name, max_nodes=max_nodes, cached=cached)


def openspiel_game(
    game: Any, *, name: str = "", max_nodes: int = MAX_NODES, cached: bool = False
) -> Game:
    """The `Game` of a `pyspiel.Game`; `name` is the string that loads it."""
    name, simultaneous = name or str(game).removesuffix("()"), game
    if (game := sequential(game)) is not simultaneous:
        name = f"turn_based_simultaneous_game(game={name if ')' in name else f'{name}()'})"
    kind, players = game.get_type(), game.num_players()
    if kind.dynamics.name != "SEQUENTIAL":
        raise GameError(f"{name} is {kind.dynamics.name.lower()}; it has to be sequential")
    if kind.chance_mode.name == "SAMPLED_STOCHASTIC":
        raise GameError(f"{name} samples chance outcomes; they have to be explicit")
    if not kind.provides_information_state_string:
        raise GameError(f"{name} has no information state strings, which every game needs")
    size = game.information_state_tensor_size() if kind.provides_information_state_tensor else 0
    in_words = kind.short_name == "leduc_poker" and players < len(RANKS)
    make = LeducGame if in_words else Game
    return make(name, players, game.num_distinct_actions(), size, game, max_nodes, cached)


def as_game(game: Any) -> Game:
    """The `Game` of a `Game`, a name or a `pyspiel.Game`."""
    if isinstance(game, Game):
        return game
    return load_game(game) if isinstance(game, str) else openspiel_game(game)


def make_solver(
    game: Game, variant: str = solvers.DEFAULT_VARIANT, **options: Any
) -> solvers.AnySolver:
    """The solver of a variant of CFR, on the game's tree or on its native form.

    `options` are those of `algorithms.solvers.make_solver`; only trees have them.
    """
    if game.native is None:
        return solvers.make_solver(game.tree, variant, **options)
    if variant not in NATIVE_VARIANTS or options:
        raise GameError(
            f"{game.name} is solved without a tree: by {', '.join(NATIVE_VARIANTS)}, without "
            f"options; got {', '.join([variant, *(f'{k}={v}' for k, v in options.items())])}"
        )
    return game.native.make_solver(VARIANTS[variant])


def same_game(one: str, other: str) -> bool:
    """Whether two names load the same game; defaults and the order of parameters do not matter."""
    if one == other or KUHN in (one, other):
        return one == other
    return identity(load_pyspiel(one)) == identity(load_pyspiel(other))
