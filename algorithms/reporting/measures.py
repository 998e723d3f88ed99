"""What a report says about one policy: how good it is, where it loses, and how it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algorithms.exact.values import Loss
from algorithms.games import Game
from algorithms.learning.curve import Curve, from_csv
from algorithms.policies.sources import is_file
from algorithms.support import files
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError

if TYPE_CHECKING:
    from algorithms.learning.best_response import LowerBound

MAX_LOSSES = 500  # listed in words where there is no explorer
MAX_JSON_BYTES = 2**26  # of the file beside a model
MADE_BY = ("holds", "steps", "seconds", "finished")  # what a training run notes besides these maps
NOTED = ("config", "versions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """NashConv of a policy in chips per hand: exact, or at least that much.

    A lower bound has its 95% `interval`; what is not known of the players is left empty.
    """

    nash_conv: float
    interval: tuple[float, float] | None = None  # of a lower bound
    gains: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    best_values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLine:
    """One information set where a policy loses chips, in words."""

    player: int
    label: str
    reach: float
    played: str  # the likeliest action
    probability: float  # its probability
    best: str
    lost: float  # in chips per hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One policy of a report.

    `measure` is None where the policy was not measured. `table` is `(I, A)` where the game has a
    tree. `losses` are the largest ones in words, for pages
    without explorer. `notes` are maps of settings, by the heading that they are shown under.
    """

    name: str
    measure: Measure | None = None
    table: Float64Array | None = None
    losses: tuple[LossLine, ...] = ()
    curve: Curve = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def policy_names(sources: Sequence[str]) -> list[str]:
    """What a report calls policies: files without folders, or without those that all share."""
    names = [Path(source).name if is_file(source) else source for source in sources]
    if len(set(names)) == len(names):
        return names
    paths = {source: Path(source).absolute() for source in sources if is_file(source)}
    shared = os.path.commonpath([path.parent for path in paths.values()])
    return [
        str(paths[source].relative_to(shared)) if source in paths else source for source in sources
    ]


def entry(source: str, game: Game, table: Any, *, name: str | None = None) -> Entry:
    """A policy that is measured exactly; `source` is the file or name it was loaded from.

    `table` is as `Game` has it: `(I, A)`, or one per player in a native large game.
    """
    found = game.measure(table)
    return Entry(
        name=name or source,
        measure=Measure(
            nash_conv=found.nash_conv,
            gains=found.gains,
            values=found.values,
            best_values=found.best_values,
        ),
        table=None if game.native else table,
        losses=tuple(_loss_line(game, loss) for loss in found.losses[:MAX_LOSSES]),
        curve=curve_beside(source),
        notes=notes_beside(source),
    )


def bounded_entry(source: str, bound: LowerBound, *, name: str | None = None) -> Entry:
    """A policy of a game without an exact measure, with what trained best responses gain."""
    training = {
        "decisions per response": bound.decisions,
        "hands to measure it": bound.hands,
        **{f"response of player_{seat.seat}": seat.chosen.candidate for seat in bound.seats},
    }
    measure = Measure(
        nash_conv=bound.nash_conv_at_least, interval=bound.interval, gains=bound.gains
    )
    found = unmeasured_entry(source, name=name)
    return replace(found, measure=measure, notes={**found.notes, "lower bound": training})


def unmeasured_entry(source: str, *, name: str | None = None) -> Entry:
    """A policy of which only its curve and its settings are known."""
    curve, notes = curve_beside(source), notes_beside(source)
    return Entry(name=name or source, curve=curve, notes=notes)


def _loss_line(game: Game, loss: Loss) -> LossLine:
    return LossLine(
        player=loss.player,
        label=game.infoset_label(loss.infoset, loss.player),
        reach=loss.reach,
        played=game.action_label(loss.infoset, loss.played, loss.player),
        probability=loss.probability,
        best=game.action_label(loss.infoset, loss.best, loss.player),
        lost=loss.lost,
    )


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
    found = {"run": {name: noted[name] for name in MADE_BY if name in noted}}
    found |= {name: noted[name] for name in NOTED if isinstance(noted.get(name), dict)}
    return {name: values for name, values in found.items() if values}
