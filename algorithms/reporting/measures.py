"""What a report says about one policy: how good it is, where it loses, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from algorithms.games.native import NativeGame, Tables
from algorithms.learning.curve import Curve, from_csv
from algorithms.policies.policy import Policy
from algorithms.policies.sources import is_file
from algorithms.support import files
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError

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
    """One information set where a policy loses chips, in words: for games without an explorer."""

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

    `table` is `(I, A)` where the game has a tree; `losses` are those of a game that has none, the
    largest first. `notes` are maps of settings, by the heading that they are shown under.
    """

    name: str
    measure: Measure
    table: Float64Array | None = None
    losses: tuple[LossLine, ...] = ()
    curve: Curve = ()
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def native_entry(source: str, game: NativeGame, tables: Tables) -> Entry:
    """A policy of a native large game, measured exactly without a tree; its losses in words."""
    found = game.measure(tables)
    lines = (
        LossLine(
            player=loss.player,
            label=game.infoset_label(loss.player, loss.infoset),
            reach=loss.reach,
            played=game.action_label(loss.player, loss.infoset, loss.played),
            probability=loss.share,
            best=game.action_label(loss.player, loss.infoset, loss.best),
            lost=loss.lost,
        )
        for loss in found.losses(MAX_LOSSES)
    )
    return Entry(
        name=policy_name(source),
        measure=Measure(
            nash_conv=found.nash_conv,
            gains=found.gains,
            values=found.values,
            best_values=found.best_values,
        ),
        losses=tuple(lines),
        curve=curve_beside(source),
        notes=notes_beside(source),
    )


def policy_name(source: str) -> str:
    """What a report calls a policy: the name of its file without the folder, or its source."""
    return Path(source).name if is_file(source) else source


def entry(source: str, policy: Policy) -> Entry:
    """A policy with a table, measured exactly; `source` is the file or name it was loaded from."""
    found = policy.measure()
    return Entry(
        name=policy_name(source),
        measure=Measure(
            nash_conv=found.nash_conv,
            gains=found.gains,
            values=found.values,
            best_values=found.best_values,
        ),
        table=policy.table,
        curve=curve_beside(source),
        notes=notes_beside(source),
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
