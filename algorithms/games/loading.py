"""Games by name: `kuhn` from the native core, everything else from OpenSpiel."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from algorithms.exact.tree import Tree
from algorithms.games.kuhn import kuhn_tree
from algorithms.games.openspiel import MAX_NODES, openspiel_tree
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress

NATIVE = "kuhn"


def load_tree(name: str, *, max_nodes: int = MAX_NODES) -> Tree:
    """The tree of `kuhn` or of an OpenSpiel game, e.g. `leduc_poker` or `kuhn_poker(players=3)`."""
    if name == NATIVE:
        return kuhn_tree()
    try:
        import pyspiel

        import kuhn_bridge.openspiel  # noqa: F401  # registers python_kuhn_bridge
    except ImportError as error:
        raise UsageError(
            f"--game {name}: only {NATIVE!r} does without OpenSpiel, and that is not installed "
            f"({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    short = name.partition("(")[0]
    known = pyspiel.registered_names()
    if short not in known:
        raise unknown("game", name, [NATIVE, *known])
    try:
        with _quiet():
            game = pyspiel.load_game(name)
    except (pyspiel.SpielError, RuntimeError) as error:
        raise UsageError(f"--game {name}: OpenSpiel cannot load it: {error}") from None
    with progress(f"walking {short}") as bar:
        return openspiel_tree(game, max_nodes=max_nodes, progress=bar)


@contextmanager
def _quiet() -> Iterator[None]:
    """No standard error from C++: OpenSpiel prints there what it raises anyway."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
