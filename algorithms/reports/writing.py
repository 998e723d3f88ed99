"""Write reports: load the policies, solve for the reference, put both into one HTML file."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from algorithms.games import ExactGame, Game
from algorithms.policies import Policy, load_policies, load_policy
from algorithms.policies.load import Source, in_memory, is_file, open_source
from algorithms.reports.document import MAX_NODES, Json, Mode, ReportedPolicy, game_document
from algorithms.reports.html_page import page_html
from algorithms.self_play.curve import Curve, from_csv
from algorithms.support import budget, files
from algorithms.support.errors import UsageError

NO_REFERENCE = "none"
MAX_JSON_BYTES = 2**26  # of the file beside a model
RUN_NOTES = ("holds", "steps", "seconds", "finished")  # shown under one heading
OTHER_NOTES = ("config", "versions")  # objects, each shown under its own name


def default_reference(game: Game) -> str:
    """An equilibrium or CFR+; none in large games, which take minutes."""
    if game.usual_reference is None:
        return NO_REFERENCE
    nodes = game.size.nodes
    if nodes is None or nodes > MAX_NODES:
        return NO_REFERENCE
    return game.usual_reference


def report_document(  # noqa: PLR0913  # options by name
    given: Sequence[str | Source],
    game: Game | str | None = None,
    *,
    equilibrium: str | None = None,
    trust: bool = False,
    decisions: int = budget.DECISIONS,
    mode: Mode = "report",
) -> Json:
    """The document of some policies of one game.

    Args:
        given: names or files of policies, as commands take them.
        game: their game; by default that of the first file, or `kuhn`.
        equilibrium: the policy that is shown beside them; by default `default_reference`.
        trust: whether the file of a model may run code.
        decisions: what best responses learn from in a game without an exact measure; with 0
            policies are not measured there.
        mode: what the page opens with.
    """
    sources = [open_source(one, trust=trust) for one in given]
    loaded = load_policies(sources, game)
    policies = {source.name: policy for source, policy in zip(sources, loaded, strict=True)}
    game = loaded[0].game
    reference = equilibrium or default_reference(game)
    if reference != NO_REFERENCE:
        # The reference is the last one, also if it was given among the others.
        if reference in policies:
            policies[reference] = policies.pop(reference)
        else:
            policies[reference] = load_policy(reference, game, trust=trust)
    names = policy_names(list(policies))
    reported = [
        reported_policy(source, policy, name=name, decisions=decisions)
        for (source, policy), name in zip(policies.items(), names, strict=True)
    ]
    shown_reference = None if reference == NO_REFERENCE else reported[-1]
    return game_document(game, reported, shown_reference, mode=mode)


def require_html(path: str | Path) -> None:
    """Raise an error for a file that no browser would open as a page."""
    if Path(path).suffix != ".html":
        raise UsageError(f"{path}: want a file whose name ends in .html")


def write_report(path: str | Path, policies: Sequence[Policy]) -> None:
    """Write policies of one game as one HTML file: `Policy.report`."""
    require_html(path)
    game = policies[0].game
    for policy in policies:
        if not isinstance(policy, Policy):
            raise UsageError(f"a {type(policy).__name__} cannot be reported: want a Policy")
        if policy.game.name != game.name:
            raise UsageError(f"a policy of {policy.game.name} beside one of {game.name}")
    files.require_writable(Path(path))
    names = (
        ["the policy"] if len(policies) == 1 else [f"policy {i + 1}" for i in range(len(policies))]
    )
    sources = [in_memory(name, policy) for name, policy in zip(names, policies, strict=True)]
    write_document(path, report_document(sources, game))


def write_document(path: str | Path, document: Json) -> int:
    """Write a document as a self-contained page, and return its size in bytes."""
    content = page_html(document).encode()
    files.write_bytes(path, content)
    return len(content)


def reported_policy(
    source: str, policy: Policy, *, name: str = "", decisions: int = budget.DECISIONS
) -> ReportedPolicy:
    """A policy with its measure, and with the curve and settings stored beside its file."""
    name = name or source
    curve: Curve = ()
    notes: dict[str, dict[str, Any]] = {}
    if is_file(source):
        curve = curve_beside(source)
        notes = notes_beside(source)
    measure: Any = None
    if isinstance(policy.game, ExactGame):
        measure = policy.measure()
    elif decisions:
        from algorithms.lower_bound import bound_with_bar

        measure = bound_with_bar(name, policy, decisions=decisions)
        notes["lower bound"] = {
            "decisions per response": measure.decisions,
            "hands to measure it": measure.hands,
            **{f"response of player_{seat.seat}": seat.chosen.candidate for seat in measure.seats},
        }
    return ReportedPolicy(name=name, policy=policy, measure=measure, curve=curve, notes=notes)


def policy_names(sources: Sequence[str]) -> list[str]:
    """Names of policies in a report: files without folders, or without those that all share."""
    short_names = [Path(source).name if is_file(source) else source for source in sources]
    if len(set(short_names)) == len(short_names):
        return short_names
    paths = {source: Path(source).absolute() for source in sources if is_file(source)}
    shared = os.path.commonpath([path.parent for path in paths.values()])
    names = []
    for source in sources:
        names.append(str(paths[source].relative_to(shared)) if source in paths else source)
    return names


def curve_beside(source: str) -> Curve:
    """The learning curve in the `.csv` beside a policy's file; empty if there is none."""
    try:
        return from_csv(Path(source).with_suffix(".csv"))
    except (OSError, UsageError):
        return ()


def notes_beside(source: str) -> dict[str, dict[str, Any]]:
    """Settings and versions in the `.json` beside a model, by heading; empty if there are none."""
    path = Path(source).with_suffix(".json")
    try:
        stored = json.loads(files.read_bytes(path, max_bytes=MAX_JSON_BYTES))
    except (OSError, ValueError, RecursionError):  # a UsageError is a ValueError
        return {}
    if not isinstance(stored, dict):
        return {}
    notes = {"run": {name: stored[name] for name in RUN_NOTES if name in stored}}
    for name in OTHER_NOTES:
        if isinstance(stored.get(name), dict):
            notes[name] = stored[name]
    return {heading: values for heading, values in notes.items() if values}
