"""The results of a sweep, read from the files in its folder."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from algorithms.self_play.curve import Curve, Interval, draw_bands, from_csv, interval, iqm
from algorithms.support import command, files
from algorithms.support.errors import UsageError
from algorithms.sweeps.plan import FAILURE_FILE, MODEL_FILE, TRIAL_FILE, Plan, Trial

CHOOSE, CONFIRM = "choose", "confirm"  # purposes of a trial
DONE, FAILED, MISSING = "done", "failed", "missing"
FIGURES = ("nash_conv_last", "nash_conv_average", "nash_conv_saved", "cpu_seconds")
Row: TypeAlias = dict[str, Any]  # settings, seed and results of a trial


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

    rows: list[Row]
    chosen_by: list[Summary]
    confirmed: list[Summary]

    def in_state(self, state: str) -> list[Row]:
        """The trials that failed, for example."""
        return [row for row in self.rows if row["state"] == state]


def read_report(folder: Path, plan: Plan) -> Report:
    """The results of a plan's trials in a folder."""
    first = [read_row(folder, trial, CHOOSE) for trial in plan.trials()]
    second = [read_row(folder, trial, CONFIRM) for trial in plan.fresh_trials()]
    return Report([*first, *second], summaries(first), summaries(second))


def read_row(folder: Path, trial: Trial, purpose: str) -> Row:
    """One trial and its results in a folder; None for what is not known."""
    row: Row = {"setting": trial.setting, "folder": trial.folder, **asdict(trial.config)}
    row |= {"steps_asked": row["steps"], "purpose": purpose, "state": MISSING, "steps": None}
    row |= dict.fromkeys((*FIGURES, "host", "node", "failed"))
    own = folder / trial.folder
    try:
        about = own / (TRIAL_FILE if trial.has_ended(folder) else FAILURE_FILE)
        row |= json.loads(about.read_text(encoding="utf-8"))
        if row["failed"] is not None:
            return row | {"state": FAILED}
        result = json.loads((own / MODEL_FILE).with_suffix(".json").read_text(encoding="utf-8"))
        figures = {name: result[name] for name in ("nash_conv_last", "nash_conv_average", "steps")}
        return row | figures | {"state": DONE, "nash_conv_saved": result["nash_conv"]}
    except FileNotFoundError:
        return row
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{own}: these are not the files of a training run") from None


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """One for each setting that has results; those with failures last, then by IQM."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["setting"], []).append(row)
    made = []
    for setting, group in groups.items():
        values = [row["nash_conv_saved"] for row in group if row["state"] == DONE]
        if values:
            means = float(np.mean(values)), interval(values, np.mean)
            iqms = float(iqm(values)), interval(values)
            failed = sum(row["state"] == FAILED for row in group)
            ends = min(values), max(values)
            made.append(Summary(setting, len(values), failed, *means, *iqms, *ends))
    return sorted(made, key=lambda summary: (summary.failed > 0, summary.iqm))


def write_report(folder: Path, report: Report) -> None:
    """Write `sweep.csv`, `sweep.json` and `sweep.png`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(report.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(report.rows)
    files.write_text(folder / "sweep.csv", text.getvalue())
    files.write_text(folder / "sweep.json", json.dumps(to_json(report), indent=1) + "\n")
    groups: dict[str, list[Curve]] = {}  # the best setting first, and fresh seeds separately
    parts = ((report.chosen_by, CHOOSE, ""), (report.confirmed, CONFIRM, ", fresh seeds"))
    for found, purpose, suffix in parts:
        for summary in found:
            rows = [row for row in _done(report, summary.setting) if row["purpose"] == purpose]
            paths = [(folder / row["folder"] / MODEL_FILE).with_suffix(".csv") for row in rows]
            groups[summary.setting + suffix] = [from_csv(path) for path in paths]
    if groups:
        draw_bands(groups, folder / "sweep.png")


def best_models(folder: Path, report: Report) -> list[Path]:
    """The best run of each setting, the best setting first: a model, or the policy's `.json`."""
    paths = []
    for summary in report.chosen_by:
        best = min(_done(report, summary.setting), key=lambda row: row["nash_conv_saved"])
        model = folder / best["folder"] / MODEL_FILE
        paths.append(model if model.exists() else model.with_suffix(".json"))
    return paths


def _done(report: Report, setting: str) -> list[Row]:
    return [row for row in report.in_state(DONE) if row["setting"] == setting]


def to_json(report: Report) -> dict[str, Any]:
    """The report as one JSON object."""
    return {
        "trials": report.rows,
        "settings": [asdict(summary) for summary in report.chosen_by],
        "confirmed": [asdict(summary) for summary in report.confirmed],
    }


def to_text(report: Report) -> str:
    """The report as tables."""
    parts = [_table(report.chosen_by)] if report.chosen_by else ["No training run has ended yet."]
    if report.confirmed:
        parts.append(_comparison(report))
    if failures := report.in_state(FAILED):
        rows = [(f"{row['setting']}, seed {row['seed']}", row["failed"]) for row in failures]
        parts.append(command.table(("failed", "because"), rows, left=2))
    if missing := report.in_state(MISSING):
        parts.append(f"{len(missing)} of {len(report.rows)} training runs have not ended")
    return "\n\n".join(parts)


def _table(summaries: Sequence[Summary]) -> str:
    header = ("NashConv", "n", "mean", "95%", "IQM", "95%", "best", "worst")
    rows = []
    for s in summaries:
        figures = (*_span(s.mean, s.mean_interval), *_span(s.iqm, s.iqm_interval))
        rows.append([s.setting, _count(s), *figures, f"{s.best:.5f}", f"{s.worst:.5f}"])
    return command.table(header, rows)


def _comparison(report: Report) -> str:
    """The chosen settings: on the seeds they were chosen by, and on fresh seeds."""
    before = {summary.setting: summary for summary in report.chosen_by}
    header = ("chosen, then confirmed", "n", "IQM", "95%", "fresh n", "IQM", "95%")
    rows = []
    for fresh in report.confirmed:
        pair = (before[fresh.setting], fresh)
        cells = ([_count(s), *_span(s.iqm, s.iqm_interval)] for s in pair)
        rows.append([fresh.setting, *chain.from_iterable(cells)])
    return command.table(header, rows)


def _count(summary: Summary) -> str:
    return f"{summary.n}" + (f" of {summary.n + summary.failed}" if summary.failed else "")


def _span(value: float, around: Interval) -> tuple[str, str]:
    return f"{value:.5f}", f"{around.low:.5f}-{around.high:.5f}"
