"""Write reports: load the policies, solve for the reference, put both into one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from algorithms.games import KUHN, Game
from algorithms.policies import load_policies, load_policy
from algorithms.policies.policy import Policy
from algorithms.policies.sources import Source, open_source
from algorithms.reporting.document import MAX_NODES, Json, Mode, game_document
from algorithms.reporting.measures import (
    Entry,
    bounded_entry,
    entry,
    policy_names,
    unmeasured_entry,
)
from algorithms.reporting.page import page_html
from algorithms.support import files
from algorithms.support.progress import progress

NO_REFERENCE = "none"
USUAL_REFERENCE = "cfr+:1000"
KUHN_REFERENCE = "nash:1/6"  # of Kuhn's equilibria the middle one: it comes everywhere


def usual_reference(game: Game) -> str:
    """What policies are shown beside: an equilibrium where one is known, or else CFR+.

    Nothing in large games, where it takes minutes.
    """
    if not game.fits_tree or game.tree.num_nodes > MAX_NODES:
        return NO_REFERENCE
    return KUHN_REFERENCE if game.name == KUHN else USUAL_REFERENCE


def report_document(  # noqa: PLR0913  # options by name
    given: Sequence[str | Source],
    game: Game | str | None = None,
    *,
    equilibrium: str | None = None,
    trust: bool = False,
    decisions: int | None = None,
    mode: Mode = "report",
) -> Json:
    """The document of the policies that `given` names.

    Args:
        given: forms of `sources.HELP`.
        game: whose policies they are; that of the first file, or `kuhn`, where it is not given.
        equilibrium: the policy shown beside them, `usual_reference` where it is not given, or
            `none`. If it is one of `given`, it is not shown twice.
        trust: lets a model's file run code.
        decisions: that trained best responses learn from where there is no exact measure; 0 leaves
            such policies without a measure.
        mode: whether the page opens as a report or at the table.
    """
    opened = [open_source(one, trust=trust) for one in given]
    policies = dict(zip([one.name for one in opened], load_policies(opened, game), strict=True))
    chosen = next(iter(policies.values())).game
    beside = equilibrium or usual_reference(chosen)
    reference = None if beside == NO_REFERENCE else policies.pop(beside, None)
    if beside != NO_REFERENCE and reference is None:
        reference = load_policy(beside, chosen, trust=trust)
    sources = [*policies, *([] if reference is None else [beside])]
    names = dict(zip(sources, policy_names(sources), strict=True))
    entries = [_entry(one, policies[one], names[one], decisions) for one in policies]
    last = None if reference is None else _entry(beside, reference, names[beside], decisions)
    return game_document(chosen, entries, last, mode=mode)


def _entry(source: str, policy: Policy, name: str, decisions: int | None) -> Entry:
    game = policy.game
    if game.is_exact:
        return entry(source, game, policy.table, name=name)
    if decisions == 0:
        return unmeasured_entry(source, name=name)
    from algorithms.learning.best_response import total_decisions

    options: dict[str, Any] = {} if decisions is None else {"decisions": decisions}
    with progress(f"responding to {name}", total_decisions(game, **options)) as bar:
        return bounded_entry(source, policy.lower_bound(progress=bar, **options), name=name)


def write_document(path: str | Path, document: Json) -> int:
    """Write a document as a self-contained page, and return its size in bytes."""
    content = page_html(document).encode()
    files.write_bytes(path, content)
    return len(content)
