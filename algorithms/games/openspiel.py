"""Any small OpenSpiel game."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from algorithms.exact.tree import CHANCE, TERMINAL, GameError, Tree, Visit, compile_tree
from algorithms.support.progress import Advance

MAX_NODES = 10_000_000  # about 2 GiB


_REPORT_EVERY = 10_000


def openspiel_tree(
    game: Any, *, max_nodes: int = MAX_NODES, progress: Advance | None = None
) -> Tree:
    """Any sequential `pyspiel.Game` with explicit chance; columns are its action IDs."""
    kind = game.get_type()
    name = str(game)
    if kind.dynamics.name != "SEQUENTIAL":
        hint = " (OpenSpiel's turn_based_simultaneous_game makes one)"
        raise GameError(
            f"{name} is {kind.dynamics.name.lower()}; a tree needs a sequential game"
            f"{hint if kind.dynamics.name == 'SIMULTANEOUS' else ''}"
        )
    if kind.chance_mode.name == "SAMPLED_STOCHASTIC":
        raise GameError(f"{name} samples its chance; a tree needs explicit chance outcomes")
    if not kind.provides_information_state_string:
        raise GameError(f"{name} names no information states; a tree needs them")
    visits = _counted(_openspiel_visits(game), name, max_nodes, progress)
    return compile_tree(name, game.num_players(), game.num_distinct_actions(), visits)


def _openspiel_visits(game: Any) -> Iterator[Visit]:
    # A waiting node is its parent and a move: states are large, and siblings can be many.
    stack: list[tuple[Any, int, int, float]] = [(None, 0, -1, 1.0)]
    while stack:
        parent, depth, action, edge = stack.pop()
        state = parent.child(action) if parent is not None else game.new_initial_state()
        player = state.current_player()
        if player == TERMINAL:
            yield Visit(depth, player, action, edge, returns=tuple(state.returns()))
            continue
        if player == CHANCE:
            yield Visit(depth, player, action, edge)
            steps = state.chance_outcomes()
        else:
            legal = tuple(state.legal_actions())
            yield Visit(depth, player, action, edge, state.information_state_string(), legal)
            steps = [(move, 1.0) for move in legal]
        stack.extend((state, depth + 1, move, p) for move, p in reversed(steps))


def _counted(
    visits: Iterable[Visit], name: str, max_nodes: int, progress: Advance | None
) -> Iterator[Visit]:
    for count, visit in enumerate(visits, start=1):
        if count > max_nodes:
            raise GameError(f"{name} has more than {max_nodes:,} nodes: too large for a tree")
        if progress and count % _REPORT_EVERY == 0:
            progress(count, "nodes")
        yield visit
