"""Write reports: load the policies, solve for the reference, put both into one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from algorithms.games import KUHN, Game
from algorithms.policies import load_policies, load_policy
from algorithms.policies.sources import Source, open_source
from algorithms.reporting.document import MAX_NODES, Json, Mode, game_document
from algorithms.reporting.entries import entry, policy_names
from algorithms.reporting.page import page_html
from algorithms.support import files

NO_REFERENCE = "none"
USUAL_REFERENCE = "cfr+:1000"
KUHN_REFERENCE = "nash:1/6"  # the middle one of Kuhn's equilibria: it reaches every information set


def usual_reference(game: Game) -> str:
    """The default reference of a report: an equilibrium where one is known, or else CFR+.

    None in large games, where solving takes minutes.
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
        given: names or files of policies, as in `sources.HELP`.
        game: game of the policies; by default that of the first file, or `kuhn`.
        equilibrium: policy that is shown beside them, by default `usual_reference`; `none` shows
            no such policy. If it is one of `given`, it is not shown twice.
        trust: whether a model's file may run code.
        decisions: number of decisions that best responses learn from in a game without an exact
            measure; with 0 policies are not measured there.
        mode: whether the page opens as a report or at the table.
    """
    opened = [open_source(one, trust=trust) for one in given]
    policies = dict(zip([one.name for one in opened], load_policies(opened, game), strict=True))
    game = next(iter(policies.values())).game
    beside = equilibrium or usual_reference(game)
    if beside != NO_REFERENCE:
        found = policies.pop(beside, None)
        policies[beside] = load_policy(beside, game, trust=trust) if found is None else found
    entries = [
        entry(source, policy, name=name, decisions=decisions)
        for (source, policy), name in zip(policies.items(), policy_names([*policies]), strict=True)
    ]
    reference = None if beside == NO_REFERENCE else entries[-1]
    return game_document(game, entries, reference, mode=mode)


def write_document(path: str | Path, document: Json) -> int:
    """Write a document as a self-contained page, and return its size in bytes."""
    content = page_html(document).encode()
    files.write_bytes(path, content)
    return len(content)
