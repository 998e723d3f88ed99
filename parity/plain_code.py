"""The plain code beside the equations, against its compiled twins: NashConv and the CFR family."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from algorithms import nashconv
from algorithms.cfr import VARIANTS, BaseSolver, PlainSolver
from algorithms.games import Game
from algorithms.nashconv import Evaluation
from algorithms.support.arrays import Float64Array
from algorithms.tree import Tree
from parity.openspiel_measures import FEW_NODES, ITERATES, random_policies, tolerance
from parity.registry import CheckSettings, Skipped, Tally

TIE = 1e-11  # a larger difference of policies comes from regrets that are 0 up to rounding

Evaluate: TypeAlias = Callable[[Tree, Float64Array], Evaluation]
MakeSolver: TypeAlias = Callable[..., Any]
"""Takes a tree, and `variant` and `mode` by name, like `algorithms.solvers.make_solver`."""


def compare_plain_code(
    tally: Tally, settings: CheckSettings, game: Game, *, evaluate: Evaluate, make: MakeSolver
) -> None:
    """Require the same evaluations of random policies, and the same first iterates of all variants.

    `evaluate` and `make` are the compiled ones. Plain code takes seconds on large trees.
    """
    if game.tree.num_nodes > FEW_NODES:
        raise Skipped(f"plain code is slow above {FEW_NODES:,} nodes")
    tally.ours = "the compiled code"
    tally.theirs = "the plain code"
    of_game = CheckSettings(quick=True, game=game)
    for place, policy in random_policies(of_game):
        ours = evaluate(game.tree, policy.table)
        theirs = nashconv.evaluation(game.tree, policy.table)
        for name in Evaluation._fields:
            our_numbers = getattr(ours, name)  # (n,)
            their_numbers = getattr(theirs, name)
            worst = int(np.abs(our_numbers - their_numbers).argmax())
            tally.close(
                f"{game.name}, {place}",
                f"has {name}[{worst}] = {{}}",
                float(our_numbers[worst]),
                float(their_numbers[worst]),
                tolerance(game),
            )
    iterations = 2 if settings.quick else 5
    compare_runs(
        tally,
        f"{game.name}, ",
        make_ours=partial(make, game.tree, mode="exact"),
        make_theirs=lambda variant: PlainSolver(game.tree, VARIANTS[variant]),
        iterations=iterations,
    )


def compare_runs(
    tally: Tally,
    place: str,
    *,
    make_ours: Callable[..., Any],
    make_theirs: Callable[..., Any],
    iterations: int,
) -> None:
    """Compare two solvers by iterate, in all variants.

    A variant's comparison ends where rounding breaks a tie differently in the two.
    """
    for variant in VARIANTS:
        ours = make_ours(variant=variant)
        theirs = make_theirs(variant=variant)
        for iteration in range(1, iterations + 1):
            ours.run(1)
            theirs.run(1)
            if compare_solvers(tally, f"{place}{variant}, iteration {iteration}", ours, theirs):
                break


def compare_solvers(tally: Tally, place: str, ours: BaseSolver, theirs: BaseSolver) -> bool:
    """Compare two solvers; true if their current policies, and so later iterates, differ."""
    tree = theirs.tree
    for player in range(tree.num_players):
        infosets = np.flatnonzero(tree.owner == player)
        for kind in ("average_policy", "regrets"):
            our_table = getattr(ours, kind)()[infosets]  # (n, A)
            their_table = getattr(theirs, kind)()[infosets]
            differences = np.abs(our_table - their_table)
            worst, action = np.unravel_index(differences.argmax(), differences.shape)
            tally.close(
                f"{place}, {tree.keys[infosets[worst]]!r}",
                f"has {kind} {{}} for action {action}",
                float(our_table[worst, action]),
                float(their_table[worst, action]),
                ITERATES,
            )
        difference = ours.current_policy()[infosets] - theirs.current_policy()[infosets]
        if np.abs(difference).max() > TIE:
            return True
    return False
