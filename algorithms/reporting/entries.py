"""The data of one policy in a report: its measure, its learning curve, and how it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algorithms.exact.values import Measure
from algorithms.learning.curve import Curve, from_csv
from algorithms.policies.policy import Policy
from algorithms.policies.sources import is_file
from algorithms.support import budget, files
from algorithms.support.errors import UsageError

if TYPE_CHECKING:
    from algorithms.learning.best_response import LowerBound

MAX_JSON_BYTES = 2**26  # of the file beside a model
RUN = ("holds", "steps", "seconds", "finished")  # shown under one heading
MAPS = ("config", "versions")  # each shown under its own name


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One policy of a report.

    `measure` is exact, a lower bound, or None if the policy was not measured. `notes` are maps of
    settings, by the heading that they are shown under.
    """

    name: str
    policy: Policy
    measure: Measure | LowerBound | None = None
    curve: Curve = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def entry(
    source: str, policy: Policy, *, name: str | None = None, decisions: int | None = None
) -> Entry:
    """A policy with its measure, and with the curve and settings stored beside its file.

    Args:
        source: name or file of the policy.
        policy: policy that was loaded from it.
        name: name of the policy in the report; `source` by default.
        decisions: number of decisions that best responses learn from in a game without an exact
            measure; with 0 the policy is not measured there.
    """
    name, notes = name or source, notes_beside(source)
    measure: Measure | LowerBound | None = None
    if policy.game.is_exact:
        measure = policy.measure()
    elif decisions != 0:
        from algorithms.learning.best_response import bound_with_bar

        measure = bound_with_bar(name, policy, decisions=decisions or budget.DECISIONS)
        notes["lower bound"] = _responses(measure)
    return Entry(name=name, policy=policy, measure=measure, curve=curve_beside(source), notes=notes)


def _responses(bound: LowerBound) -> dict[str, Any]:
    """How the best responses were trained and measured."""
    return {
        "decisions per response": bound.decisions,
        "hands to measure it": bound.hands,
        **{f"response of player_{seat.seat}": seat.chosen.candidate for seat in bound.seats},
    }


def policy_names(sources: Sequence[str]) -> list[str]:
    """Names of policies in a report: files without folders, or without those that all share."""
    names = [Path(source).name if is_file(source) else source for source in sources]
    if len(set(names)) == len(names):
        return names
    paths = {source: Path(source).absolute() for source in sources if is_file(source)}
    shared = os.path.commonpath([path.parent for path in paths.values()])
    return [
        str(paths[source].relative_to(shared)) if source in paths else source for source in sources
    ]


def curve_beside(source: str) -> Curve:
    """The learning curve in the `.csv` beside a policy's file; empty if there is none."""
    try:
        return from_csv(Path(source).with_suffix(".csv")) if is_file(source) else ()
    except (OSError, UsageError):
        return ()


def notes_beside(source: str) -> dict[str, dict[str, Any]]:
    """Settings and versions in the `.json` beside a model; empty if there are none."""
    if not is_file(source):
        return {}
    try:
        text = files.read_bytes(Path(source).with_suffix(".json"), max_bytes=MAX_JSON_BYTES)
        noted = json.loads(text)
    except (OSError, ValueError, RecursionError):  # a UsageError is a ValueError
        return {}
    if not isinstance(noted, dict):
        return {}
    found = {"run": {name: noted[name] for name in RUN if name in noted}}
    found |= {name: noted[name] for name in MAPS if isinstance(noted.get(name), dict)}
    return {name: values for name, values in found.items() if values}
