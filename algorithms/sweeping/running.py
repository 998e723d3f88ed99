"""A whole sweep: the trials to choose by, those that confirm the choice, and its progress."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from algorithms.support import ray_cluster as cluster
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance
from algorithms.sweeping.plan import TRIAL_FILE, Plan, Trial
from algorithms.sweeping.results import Report, read_report

if TYPE_CHECKING:
    from algorithms.sweeping.ray_tune import TrialEvent

RAY_FOLDER = "ray"  # Ray's storage in the sweep's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The machines that a sweep runs on."""

    address: str | None  # of a cluster; none: this machine
    cpus: int | None  # trials at a time; none: one per core
    retries: int  # of a trial that crashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A sweep that ended or was interrupted; the plan has the settings that were chosen."""

    plan: Plan
    ended: bool
    effort: str  # the time that the sweep took, in words


def run_sweep(
    plan: Plan, folder: Path, resources: Resources, show: Advance, *, resume: bool
) -> Outcome:
    """Run the trials of a plan that have not ended, with all results in `folder`."""
    if _is_over(plan, folder):
        return Outcome(plan=plan, ended=True, effort="no training run was left")
    began = time.perf_counter()
    storage = plan.storage or str((folder / RAY_FOLDER).resolve())
    with cluster.connected(resources.address, resources.cpus):
        with _made_folder(folder):
            cluster.require_storage(storage, name=_name(folder), fresh=not resume)
            if resources.address:
                cluster.require_nodes(storage)
        plan.write(folder)
        ready = time.perf_counter()
        plan, ended = _run_stages(plan, folder, storage, resources, Progress(show))
        seconds, cores = time.perf_counter() - ready, cluster.num_cores(resources.cpus)
    report = read_report(folder, plan)
    if ended and not (plan.storage or report.failures or report.missing):
        shutil.rmtree(storage)  # its checkpoints are no longer needed
    effort = _effort(report, seconds, cores, startup=ready - began)
    return Outcome(plan=plan, ended=ended, effort=effort)


def _run_stages(
    plan: Plan, folder: Path, storage: str, resources: Resources, progress: Progress
) -> tuple[Plan, bool]:
    """Run all trials; return the plan with the chosen settings, and whether all trials ended."""
    from algorithms.sweeping.ray_tune import Stage, run_stage

    def run(trials: Sequence[Trial], name: str) -> bool:
        stage = Stage(
            trials=trials,
            folder=folder,
            storage=storage,
            name=name,
            checkpoint_every=plan.checkpoint_every,
            retries=resources.retries,
            max_concurrent=resources.cpus,
        )
        return not progress.add_trials(trials, folder) or run_stage(stage, progress.handle)

    try:
        ended = run(plan.trials(), _name(folder))
        if ended and plan.confirm:
            plan = plan if plan.chosen else _with_choice(plan, folder)
            ended = run(plan.fresh_trials(), f"{_name(folder)}-confirm")
    except KeyboardInterrupt:
        ended = False
    return plan, ended


def _with_choice(plan: Plan, folder: Path) -> Plan:
    """The plan with the best settings so far as those to confirm."""
    best = read_report(folder, plan).chosen_by[: plan.confirm]
    plan = replace(plan, chosen=tuple(summary.setting for summary in best))
    plan.write(folder)
    return plan


class Progress:
    """The progress of a sweep in one line."""

    def __init__(self, show: Advance) -> None:
        self._show = show
        self._trials: dict[str, Trial] = {}
        self._steps: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._best: tuple[float, str] | None = None

    def add_trials(self, trials: Sequence[Trial], folder: Path) -> int:
        """Count these trials too; return how many of them have not ended."""
        for trial in trials:
            name, ended = str(trial.folder), _has_ended(trial, folder)
            self._trials[name] = trial
            self._states[name] = "ended" if ended else "waiting"
            self._steps[name] = trial.config.steps if ended else 0
        return sum(self._states[str(trial.folder)] != "ended" for trial in trials)

    def handle(self, event: TrialEvent) -> None:
        """Show an event."""
        trial = self._trials[event.folder]
        self._states[event.folder] = event.kind
        ended = event.kind == "ended"
        self._steps[event.folder] = trial.config.steps if ended else event.steps
        if event.nash_conv is not None:
            found = (event.nash_conv, trial.name)
            self._best = min(self._best, found) if self._best else found
        self._show(sum(self._steps.values()), self.note())

    def note(self) -> str:
        """The numbers of trials, and the best so far."""
        states = list(self._states.values())
        running = sum(state in {"started", "progressed"} for state in states)
        ended, failed = states.count("ended"), states.count("failed")
        best = f", best {self._best[0]:.4f} ({self._best[1]})" if self._best else ""
        return f"{running} running, {ended} done, {failed} failed{best}"


def _name(folder: Path) -> str:
    """The name of the sweep in Ray's storage."""
    return folder.resolve().name


def _has_ended(trial: Trial, folder: Path) -> bool:
    return (folder / trial.folder / TRIAL_FILE).exists()


def _is_over(plan: Plan, folder: Path) -> bool:
    chosen = bool(plan.chosen) or not plan.confirm
    return chosen and all(_has_ended(t, folder) for t in (*plan.trials(), *plan.fresh_trials()))


@contextmanager
def _made_folder(folder: Path) -> Iterator[None]:
    """The sweep's folder; removed again if it is new and the block raises an error."""
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot write there ({error.strerror})") from None
    try:
        yield
    except UsageError:
        if not existed:
            shutil.rmtree(folder)
        raise


def _effort(report: Report, seconds: float, cores: int, *, startup: float) -> str:
    """The time taken, and how many times the least possible: training on all cores, no overhead."""
    spent = sum(row.cpu_seconds or 0 for row in report.rows)
    ideal = spent / max(1, min(cores, len(report.rows)))
    return (
        f"{len(report.rows)} training runs on {cores} cores in {seconds:.1f} s: {spent:.1f} CPU "
        f"seconds, {seconds / max(ideal, 1e-9):.2f} times the ideal; Ray started in {startup:.1f} s"
    )
