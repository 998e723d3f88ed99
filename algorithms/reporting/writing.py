"""Write reports: load the policies, solve for the reference, put both into one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from algorithms.games import KUHN, Game
from algorithms.policies import load_policies, load_policy
from algorithms.reporting.document import Json, Mode, exact_document
from algorithms.reporting.measures import entry
from algorithms.reporting.page import page_html
from algorithms.support import files

NO_REFERENCE = "none"
USUAL_REFERENCE = "cfr+:1000"
KUHN_REFERENCE = "nash:1/6"  # of Kuhn's equilibria the middle one: it comes everywhere


def usual_reference(game: Game) -> str:
    """What policies are shown beside: an equilibrium where one is known, or else CFR+.

    Nothing in large games, where it takes minutes.
    """
    if game.native:
        return NO_REFERENCE
    return KUHN_REFERENCE if game.name == KUHN else USUAL_REFERENCE


def report_document(
    given: Sequence[str],
    game: Game | str | None = None,
    *,
    equilibrium: str | None = None,
    trust: bool = False,
    mode: Mode = "report",
) -> Json:
    """The document of the policies that `given` names.

    Args:
        given: forms of `sources.HELP`.
        game: whose policies they are; that of the first file, or `kuhn`, where it is not given.
        equilibrium: the policy shown beside them, `usual_reference` where it is not given, or
            `none`. If it is one of `given`, it is not shown twice.
        trust: lets a model's file run code.
        mode: whether the page opens as a report or at the table.
    """
    policies = dict(zip(given, load_policies(given, game, trust=trust), strict=True))
    chosen = next(iter(policies.values())).game
    beside = equilibrium or usual_reference(chosen)
    reference = None if beside == NO_REFERENCE else policies.pop(beside, None)
    if beside != NO_REFERENCE and reference is None:
        reference = load_policy(beside, chosen, trust=trust)
    entries = [entry(source, chosen, policy.table) for source, policy in policies.items()]
    last = None if reference is None else entry(beside, chosen, reference.table)
    return exact_document(chosen, entries, last, mode=mode)


def write_report(
    path: str | Path,
    given: Sequence[str],
    game: Game | str | None = None,
    *,
    equilibrium: str | None = None,
    trust: bool = False,
) -> int:
    """Write the report of the policies that `given` names, and return its size in bytes."""
    document = report_document(given, game, equilibrium=equilibrium, trust=trust)
    return write_document(path, document)


def write_document(path: str | Path, document: Json) -> int:
    """Write a document as a self-contained page, and return its size in bytes."""
    content = page_html(document).encode()
    files.write_bytes(path, content)
    return len(content)
