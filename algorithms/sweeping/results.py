"""The results of a sweep, read from the files in its folder."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.learning.curve import Interval, draw_bands, from_csv, interval, iqm
from algorithms.support import command, files
from algorithms.support.errors import UsageError
from algorithms.sweeping.plan import FAILURE_FILE, MODEL_FILE, TRIAL_FILE, Plan, Trial

CHOOSE, CONFIRM = "choose", "confirm"  # purposes of a trial
DONE, FAILED, MISSING = "done", "failed", "missing"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial and its results."""

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

    def as_dict(self) -> dict[str, Any]:
        """Settings, seed and results in one map."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "trial"}
        given = {**asdict(self.trial.config), "steps_asked": self.trial.config.steps}
        return {"setting": self.trial.setting, "folder": str(self.trial.folder), **given, **own}


@dataclass(frozen=True, slots=True)
class Summary:
    """NashConv of the saved policies over the seeds of one setting."""

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
    """The trials of a sweep and summaries of its settings, the best first."""

    rows: list[TrialResult]
    chosen_by: list[Summary]
    confirmed: list[Summary]

    @property
    def failures(self) -> list[TrialResult]:
        """The trials that failed."""
        return [row for row in self.rows if row.state == FAILED]

    @property
    def missing(self) -> list[TrialResult]:
        """The trials that have not ended."""
        return [row for row in self.rows if row.state == MISSING]


def read_report(folder: Path, plan: Plan) -> Report:
    """The results of a plan's trials in a folder."""
    first = [read_result(folder, trial, CHOOSE) for trial in plan.trials()]
    second = [read_result(folder, trial, CONFIRM) for trial in plan.fresh_trials()]
    return Report([*first, *second], summaries(first), summaries(second))


def read_result(folder: Path, trial: Trial, purpose: str) -> TrialResult:
    """The results of one trial in a folder."""
    own = folder / trial.folder
    state = TRIAL_FILE if (own / TRIAL_FILE).exists() else FAILURE_FILE
    try:
        about = json.loads((own / state).read_text(encoding="utf-8"))
        if "failed" in about:
            return TrialResult(trial, purpose, FAILED, **about)
        result = json.loads((own / MODEL_FILE).with_suffix(".json").read_text(encoding="utf-8"))
        return TrialResult(
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
        return TrialResult(trial, purpose)
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{own}: these are not the files of a training run") from None


def summaries(rows: Iterable[TrialResult]) -> list[Summary]:
    """One for each setting that has results; those with failures last, then by IQM."""
    groups: dict[str, list[TrialResult]] = {}
    for row in rows:
        groups.setdefault(row.trial.setting, []).append(row)
    made = [summary for name, group in groups.items() if (summary := _summary(name, group))]
    return sorted(made, key=lambda summary: (summary.failed > 0, summary.iqm))


def _summary(setting: str, rows: Sequence[TrialResult]) -> Summary | None:
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


def write_report(folder: Path, report: Report) -> None:
    """Write `sweep.csv`, `sweep.json` and `sweep.png`."""
    rows = [row.as_dict() for row in report.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write_text(folder / "sweep.csv", text.getvalue())
    files.write_text(folder / "sweep.json", json.dumps(to_json(report), indent=1) + "\n")
    if groups := {name: curves for name, curves in _curves(folder, report).items() if curves}:
        draw_bands(groups, folder / "sweep.png")


def best_models(folder: Path, report: Report) -> list[Path]:
    """The best run of each setting, the best setting first: a model, or the policy's `.json`."""
    paths = []
    for summary in report.chosen_by:
        runs = {
            row.nash_conv_saved: row.trial.folder
            for row in report.rows
            if row.trial.setting == summary.setting and row.nash_conv_saved is not None
        }
        model = folder / runs[min(runs)] / MODEL_FILE
        paths.append(model if model.exists() else model.with_suffix(".json"))
    return paths


def to_json(report: Report) -> dict[str, Any]:
    """The report as one JSON object."""
    return {
        "trials": [row.as_dict() for row in report.rows],
        "settings": [asdict(summary) for summary in report.chosen_by],
        "confirmed": [asdict(summary) for summary in report.confirmed],
    }


def to_text(report: Report) -> str:
    """The report as tables."""
    parts = [_table(report.chosen_by)] if report.chosen_by else ["No training run has ended yet."]
    if report.confirmed:
        parts.append(_comparison(report))
    failures = [(row.trial.name, str(row.failed)) for row in report.failures]
    if failures:
        parts.append(command.table(("failed", "because"), failures, left=2))
    if report.missing:
        parts.append(f"{len(report.missing)} of {len(report.rows)} training runs have not ended")
    return "\n\n".join(parts)


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
    """The chosen settings: on the seeds they were chosen by, and on fresh seeds."""
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


def _curves(folder: Path, report: Report) -> dict[str, list[Any]]:
    """The curves of each setting, the best first; those of fresh seeds separately."""
    groups: dict[str, list[Any]] = {summary.setting: [] for summary in report.chosen_by}
    groups |= {f"{summary.setting}, fresh seeds": [] for summary in report.confirmed}
    for row in report.rows:
        if row.state == DONE:
            name = row.trial.setting + (", fresh seeds" if row.purpose == CONFIRM else "")
            curve = from_csv((folder / row.trial.folder / MODEL_FILE).with_suffix(".csv"))
            groups[name].append(curve)
    return groups
