"""What came out of a sweep, from the files in its folder alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.learning.bands import Interval, draw_bands, interval, iqm
from algorithms.learning.curve import from_csv
from algorithms.learning.sweeping.plan import ABOUT, FAILURE, MODEL, Plan, Trial
from algorithms.support import command, files
from algorithms.support.errors import UsageError

CHOOSE, CONFIRM = "choose", "confirm"  # what a trial is for
DONE, FAILED, MISSING = "done", "failed", "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """One trial: what was asked, and what came out."""

    trial: Trial
    purpose: str
    state: str = MISSING
    nash_conv_last: float | None = None
    nash_conv_average: float | None = None
    nash_conv_saved: float | None = None
    steps: int | None = None
    cpu_seconds: float | None = None
    host: str | None = None
    node: str | None = None
    failed: str | None = None

    def flat(self) -> dict[str, Any]:
        """All of it in one map: settings, seed and results."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "trial"}
        asked = {**asdict(self.trial.config), "steps_asked": self.trial.config.steps}
        return {"setting": self.trial.setting, "folder": str(self.trial.folder), **asked, **own}


@dataclass(frozen=True, slots=True)
class Summary:
    """The saved policies' NashConv over the seeds of one setting."""

    setting: str
    n: int
    failed: int
    mean: float
    mean_interval: Interval
    iqm: float
    iqm_interval: Interval
    best: float
    worst: float


@dataclass(frozen=True, slots=True)
class Report:
    """A sweep's trials and what they amount to, the best setting first."""

    rows: list[Row]
    chosen_by: list[Summary]
    confirmed: list[Summary]

    @property
    def failures(self) -> list[Row]:
        """The trials that failed for good."""
        return [row for row in self.rows if row.state == FAILED]

    @property
    def missing(self) -> list[Row]:
        """The trials that have not ended."""
        return [row for row in self.rows if row.state == MISSING]


def read_report(folder: Path, plan: Plan) -> Report:
    """What the trials of a plan left in the folder."""
    rows = [read_row(folder, trial, CHOOSE) for trial in plan.trials()]
    rows += [read_row(folder, trial, CONFIRM) for trial in plan.fresh_trials()]
    first, second = ([r for r in rows if r.purpose == purpose] for purpose in (CHOOSE, CONFIRM))
    return Report(rows, summaries(first), summaries(second))


def read_row(folder: Path, trial: Trial, purpose: str) -> Row:
    """What one trial left in the folder."""
    own = folder / trial.folder
    state = ABOUT if (own / ABOUT).exists() else FAILURE
    try:
        about = json.loads((own / state).read_text(encoding="utf-8"))
        if "failed" in about:
            return Row(trial, purpose, FAILED, **about)
        result = json.loads((own / MODEL).with_suffix(".json").read_text(encoding="utf-8"))
        return Row(
            trial,
            purpose,
            DONE,
            nash_conv_last=result["nash_conv_last"],
            nash_conv_average=result["nash_conv_average"],
            nash_conv_saved=result["nash_conv"],
            steps=result["steps"],
            **about,
        )
    except FileNotFoundError:
        return Row(trial, purpose)
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{own}: these are not the files of a training run") from None


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """One for each setting that has results; those with failures last, then by IQM."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.trial.setting, []).append(row)
    made = [summary for name, group in groups.items() if (summary := _summary(name, group))]
    return sorted(made, key=lambda summary: (summary.failed > 0, summary.iqm))


def write_report(folder: Path, report: Report) -> None:
    """`sweep.csv`, `sweep.json` and `sweep.png`."""
    rows = [row.flat() for row in report.rows]
    files.write_text(folder / "sweep.csv", _csv(rows))
    files.write_text(folder / "sweep.json", json.dumps(to_json(report), indent=1) + "\n")
    groups = {name: curves for name, curves in _curves(folder, report).items() if curves}
    if groups:
        draw_bands(groups, folder / "sweep.png")


def to_json(report: Report) -> dict[str, Any]:
    """The report as one JSON object."""
    return {
        "trials": [row.flat() for row in report.rows],
        "settings": [_plain(summary) for summary in report.chosen_by],
        "confirmed": [_plain(summary) for summary in report.confirmed],
    }


def to_text(report: Report) -> str:
    """The report as tables for people."""
    parts = [_table(report.chosen_by)] if report.chosen_by else ["No training run has ended yet."]
    if report.confirmed:
        parts.append(_comparison(report))
    failures = [(row.trial.name, str(row.failed)) for row in report.failures]
    if failures:
        parts.append(command.table(("failed", "because"), failures, left=2))
    if report.missing:
        parts.append(f"{len(report.missing)} of {len(report.rows)} training runs have not ended")
    return "\n\n".join(parts)


def _summary(setting: str, rows: Sequence[Row]) -> Summary | None:
    values = [row.nash_conv_saved for row in rows if row.nash_conv_saved is not None]
    if not values:
        return None
    return Summary(
        setting=setting,
        n=len(values),
        failed=sum(row.state == FAILED for row in rows),
        mean=float(np.mean(values)),
        mean_interval=interval(values, np.mean),
        iqm=float(iqm(values)),
        iqm_interval=interval(values),
        best=min(values),
        worst=max(values),
    )


def _table(summaries: Sequence[Summary]) -> str:
    header = ("NashConv", "n", "mean", "95%", "IQM", "95%", "best", "worst")
    rows = [
        (
            summary.setting,
            _count(summary),
            f"{summary.mean:.5f}",
            _span(summary.mean_interval),
            f"{summary.iqm:.5f}",
            _span(summary.iqm_interval),
            f"{summary.best:.5f}",
            f"{summary.worst:.5f}",
        )
        for summary in summaries
    ]
    return command.table(header, rows)


def _comparison(report: Report) -> str:
    """The chosen settings: the figures they were chosen by, beside those of fresh seeds."""
    before = {summary.setting: summary for summary in report.chosen_by}
    header = ("chosen, then confirmed", "n", "IQM", "95%", "fresh n", "IQM", "95%")
    rows = []
    for fresh in report.confirmed:
        cells = [fresh.setting]
        for summary in (before[fresh.setting], fresh):
            cells += [_count(summary), f"{summary.iqm:.5f}", _span(summary.iqm_interval)]
        rows.append(cells)
    return command.table(header, rows)


def _count(summary: Summary) -> str:
    return f"{summary.n}" + (f" of {summary.n + summary.failed}" if summary.failed else "")


def _span(around: Interval) -> str:
    return f"{around.low:.5f}-{around.high:.5f}"


def _plain(summary: Summary) -> dict[str, Any]:
    spans = ("mean_interval", "iqm_interval")
    return {**asdict(summary), **{name: list(getattr(summary, name)) for name in spans}}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _curves(folder: Path, report: Report) -> dict[str, list[Any]]:
    """The curves of each setting, the best first; those of fresh seeds apart."""
    groups: dict[str, list[Any]] = {summary.setting: [] for summary in report.chosen_by}
    groups |= {f"{summary.setting}, fresh seeds": [] for summary in report.confirmed}
    for row in report.rows:
        if row.state == DONE:
            name = row.trial.setting + (", fresh seeds" if row.purpose == CONFIRM else "")
            curve = from_csv((folder / row.trial.folder / MODEL).with_suffix(".csv"))
            groups[name].append(curve)
    return groups
