"""The results of a sweep, read from the files in its folder."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from algorithms.self_play.curve import Curve, Interval, draw_bands, from_csv, interval, iqm
from algorithms.support import command, files
from algorithms.support.errors import UsageError
from algorithms.sweeps.plan import FAILURE_FILE, MODEL_FILE, TRIAL_FILE, Plan, Trial

# Purposes of a trial.
TO_CHOOSE = "choose"
TO_CONFIRM = "confirm"
# States of a trial.
DONE = "done"
FAILED = "failed"
MISSING = "missing"
FIGURES = ("nash_conv_last", "nash_conv_average", "nash_conv_saved", "cpu_seconds")

Row: TypeAlias = dict[str, Any]
"""One trial: its setting, seed, purpose, state and results; a line of `sweep.csv`."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResults:
    """The trials of a sweep and summaries of its settings, the best first.

    Attributes:
        rows: all trials.
        chosen_by: summaries of the trials that settings are chosen by.
        confirmed: summaries of the chosen settings on new seeds.
    """

    rows: list[Row]
    chosen_by: list[Summary]
    confirmed: list[Summary]

    def in_state(self, state: str) -> list[Row]:
        """The trials that failed, for example."""
        return [row for row in self.rows if row["state"] == state]

    def done(self, setting: str) -> list[Row]:
        """The trials of a setting that have results."""
        return [row for row in self.in_state(DONE) if row["setting"] == setting]


# ---------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------


def read_results(folder: Path, plan: Plan) -> SweepResults:
    """The results of a plan's trials in a folder."""
    to_choose = [read_row(folder, trial, TO_CHOOSE) for trial in plan.trials()]
    to_confirm = [read_row(folder, trial, TO_CONFIRM) for trial in plan.fresh_trials()]
    return SweepResults(
        rows=[*to_choose, *to_confirm],
        chosen_by=summaries(to_choose),
        confirmed=summaries(to_confirm),
    )


def read_row(folder: Path, trial: Trial, purpose: str) -> Row:
    """One trial and its results in a folder; None for what is not known."""
    config = asdict(trial.config)
    row: Row = {
        "setting": trial.setting,
        "folder": trial.folder,
        **config,
        "steps_asked": config["steps"],
        "purpose": purpose,
        "state": MISSING,
        "steps": None,
        **dict.fromkeys(FIGURES),
        "host": None,
        "node": None,
        "failed": None,
    }
    results = folder / trial.folder
    try:
        row |= _read_json(results / (TRIAL_FILE if trial.has_ended(folder) else FAILURE_FILE))
        if row["failed"] is not None:
            row["state"] = FAILED
            return row
        run = _read_json((results / MODEL_FILE).with_suffix(".json"))
        row["state"] = DONE
        row["nash_conv_last"] = run["nash_conv_last"]
        row["nash_conv_average"] = run["nash_conv_average"]
        row["nash_conv_saved"] = run["nash_conv"]
        row["steps"] = run["steps"]
    except FileNotFoundError:
        row["state"] = MISSING
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{results}: these are not the files of a training run") from None
    return row


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """One for each setting that has results; those with failures last, then by IQM."""
    by_setting: dict[str, list[Row]] = {}
    for row in rows:
        by_setting.setdefault(row["setting"], []).append(row)
    with_results = []
    for setting, group in by_setting.items():
        if any(row["state"] == DONE for row in group):
            with_results.append(_summary(setting, group))
    return sorted(with_results, key=lambda summary: (summary.failed > 0, summary.iqm))


def _summary(setting: str, rows: Sequence[Row]) -> Summary:
    nash_convs = [row["nash_conv_saved"] for row in rows if row["state"] == DONE]
    return Summary(
        setting=setting,
        n=len(nash_convs),
        failed=sum(row["state"] == FAILED for row in rows),
        mean=float(np.mean(nash_convs)),
        mean_interval=interval(nash_convs, np.mean),
        iqm=float(iqm(nash_convs)),
        iqm_interval=interval(nash_convs),
        best=min(nash_convs),
        worst=max(nash_convs),
    )


def best_models(folder: Path, results: SweepResults) -> list[Path]:
    """The best run of each setting, the best setting first: a model, or the policy's `.json`."""
    paths = []
    for summary in results.chosen_by:
        best = min(results.done(summary.setting), key=lambda row: row["nash_conv_saved"])
        model = folder / best["folder"] / MODEL_FILE
        paths.append(model if model.exists() else model.with_suffix(".json"))
    return paths


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------


def write_results(folder: Path, results: SweepResults) -> None:
    """Write `sweep.csv`, `sweep.json` and `sweep.png`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(results.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(results.rows)
    files.write_text(folder / "sweep.csv", text.getvalue())
    files.write_text(folder / "sweep.json", json.dumps(to_json(results), indent=1) + "\n")
    curves = _curves(folder, results)
    if curves:
        draw_bands(curves, folder / "sweep.png")


def _curves(folder: Path, results: SweepResults) -> dict[str, list[Curve]]:
    """The curves of each setting, the best one first, and those on fresh seeds separately."""
    curves: dict[str, list[Curve]] = {}
    for summary in results.chosen_by:
        curves[summary.setting] = _curves_of(folder, results, summary.setting, TO_CHOOSE)
    for summary in results.confirmed:
        label = f"{summary.setting}, fresh seeds"
        curves[label] = _curves_of(folder, results, summary.setting, TO_CONFIRM)
    return curves


def _curves_of(folder: Path, results: SweepResults, setting: str, purpose: str) -> list[Curve]:
    curves: list[Curve] = []
    for row in results.done(setting):
        if row["purpose"] == purpose:
            model = folder / row["folder"] / MODEL_FILE
            curves.append(from_csv(model.with_suffix(".csv")))
    return curves


def to_json(results: SweepResults) -> dict[str, Any]:
    """The results as one JSON object."""
    return {
        "trials": results.rows,
        "settings": [asdict(summary) for summary in results.chosen_by],
        "confirmed": [asdict(summary) for summary in results.confirmed],
    }


# ---------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------


def to_text(results: SweepResults) -> str:
    """The results as tables."""
    parts = []
    if results.chosen_by:
        parts.append(_summary_table(results.chosen_by))
    else:
        parts.append("No training run has ended yet.")
    if results.confirmed:
        parts.append(_confirmation_table(results))
    failed = results.in_state(FAILED)
    if failed:
        rows = [(f"{row['setting']}, seed {row['seed']}", row["failed"]) for row in failed]
        parts.append(command.table(("failed", "because"), rows, left=2))
    missing = results.in_state(MISSING)
    if missing:
        parts.append(f"{len(missing)} of {len(results.rows)} training runs have not ended")
    return "\n\n".join(parts)


def _summary_table(summaries: Sequence[Summary]) -> str:
    header = ("NashConv", "n", "mean", "95%", "IQM", "95%", "best", "worst")
    rows = [
        (
            summary.setting,
            _number_of_seeds(summary),
            f"{summary.mean:.5f}",
            _interval_text(summary.mean_interval),
            f"{summary.iqm:.5f}",
            _interval_text(summary.iqm_interval),
            f"{summary.best:.5f}",
            f"{summary.worst:.5f}",
        )
        for summary in summaries
    ]
    return command.table(header, rows)


def _confirmation_table(results: SweepResults) -> str:
    """The chosen settings: on the seeds they were chosen by, and on fresh seeds."""
    chosen_by = {summary.setting: summary for summary in results.chosen_by}
    header = ("chosen, then confirmed", "n", "IQM", "95%", "fresh n", "IQM", "95%")
    rows = []
    for confirmed in results.confirmed:
        row = [confirmed.setting]
        for summary in (chosen_by[confirmed.setting], confirmed):
            row.append(_number_of_seeds(summary))
            row.append(f"{summary.iqm:.5f}")
            row.append(_interval_text(summary.iqm_interval))
        rows.append(row)
    return command.table(header, rows)


def _number_of_seeds(summary: Summary) -> str:
    if summary.failed:
        return f"{summary.n} of {summary.n + summary.failed}"
    return str(summary.n)


def _interval_text(interval: Interval) -> str:
    return f"{interval.low:.5f}-{interval.high:.5f}"
