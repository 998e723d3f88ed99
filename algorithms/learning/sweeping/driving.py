"""A whole sweep: Ray, the trials to choose by, the trials that confirm, and how far along it is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from algorithms.learning.sweeping import cluster
from algorithms.learning.sweeping.plan import ABOUT, Plan, Trial
from algorithms.learning.sweeping.results import Report, read_report
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance

if TYPE_CHECKING:
    from algorithms.learning.sweeping.running import News

OWN_STORAGE = "ray"  # Ray's storage in the sweep's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a sweep runs on."""

    address: str | None  # of a cluster; none: this machine
    cpus: int | None  # how many trials at a time; none: as many as there are cores
    retries: int  # of a trial that broke off
    fresh: bool  # not to be the continuation of another


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a sweep went."""

    plan: Plan
    ended: bool  # rather than interrupted
    effort: str  # in words


def drive(plan: Plan, folder: Path, means: Means, show: Advance) -> Outcome:
    """Run what is left of a plan, and leave all results in `folder`."""
    if _is_over(plan, folder):
        return Outcome(plan=plan, ended=True, effort="nothing was left to run")
    began = time.perf_counter()
    storage = plan.storage or str((folder / OWN_STORAGE).resolve())
    with cluster.connected(means.address, means.cpus):
        with _unless_refused(folder):
            cluster.require_storage(storage, name=_name(folder), fresh=means.fresh)
            if means.address:
                cluster.require_nodes(storage)
        plan.write(folder)
        ready = time.perf_counter()
        plan, ended = _run(plan, folder, storage, means, Live(show))
        seconds, cores = time.perf_counter() - ready, cluster.cores(means.cpus)
    report = read_report(folder, plan)
    if ended and not (plan.storage or report.failures or report.missing):
        shutil.rmtree(storage)  # the checkpoints in it are of no more use
    effort = _effort(report, seconds, cores, start=ready - began)
    return Outcome(plan=plan, ended=ended, effort=effort)


def _run(plan: Plan, folder: Path, storage: str, means: Means, live: Live) -> tuple[Plan, bool]:
    """The trials of a plan: it, with the settings that were chosen, and whether all ended."""
    from algorithms.learning.sweeping.running import Stage, run_stage

    def run(trials: Sequence[Trial], name: str) -> bool:
        stage = Stage(
            trials=trials,
            folder=folder,
            storage=storage,
            name=name,
            checkpoint_every=plan.checkpoint_every,
            retries=means.retries,
            at_once=means.cpus,
        )
        return not live.expect(trials, folder) or run_stage(stage, live.hear)

    try:
        ended = run(plan.trials(), _name(folder))
        if ended and plan.confirm:
            plan = plan if plan.chosen else _with_choice(plan, folder)
            ended = run(plan.fresh_trials(), f"{_name(folder)}-confirm")
    except KeyboardInterrupt:
        ended = False
    return plan, ended


def _with_choice(plan: Plan, folder: Path) -> Plan:
    """The plan, with the best settings so far as those to confirm."""
    best = read_report(folder, plan).chosen_by[: plan.confirm]
    plan = replace(plan, chosen=tuple(summary.setting for summary in best))
    plan.write(folder)
    return plan


class Live:
    """How far along a sweep is, in one line."""

    def __init__(self, show: Advance) -> None:
        self._show = show
        self._trials: dict[str, Trial] = {}
        self._steps: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._best: tuple[float, str] | None = None

    def expect(self, trials: Sequence[Trial], folder: Path) -> int:
        """Count these trials too; how many of them have not ended."""
        for trial in trials:
            name, ended = str(trial.folder), _has_ended(trial, folder)
            self._trials[name] = trial
            self._states[name] = "ended" if ended else "waiting"
            self._steps[name] = trial.config.steps if ended else 0
        return sum(self._states[str(trial.folder)] != "ended" for trial in trials)

    def hear(self, news: News) -> None:
        """Show what happened."""
        trial = self._trials[news.folder]
        self._states[news.folder] = news.what
        self._steps[news.folder] = trial.config.steps if news.what == "ended" else news.steps
        if news.nash_conv is not None:
            found = (news.nash_conv, trial.name)
            self._best = min(self._best, found) if self._best else found
        self._show(sum(self._steps.values()), self.note())

    def note(self) -> str:
        """The counts, and the best trial so far."""
        states = list(self._states.values())
        running = sum(state in {"started", "moved"} for state in states)
        ended, failed = states.count("ended"), states.count("failed")
        best = f", best {self._best[0]:.4f} ({self._best[1]})" if self._best else ""
        return f"{running} running, {ended} done, {failed} failed{best}"


def _name(folder: Path) -> str:
    """What Ray calls the sweep in its storage."""
    return folder.resolve().name


def _has_ended(trial: Trial, folder: Path) -> bool:
    return (folder / trial.folder / ABOUT).exists()


def _is_over(plan: Plan, folder: Path) -> bool:
    chosen = bool(plan.chosen) or not plan.confirm
    return chosen and all(_has_ended(t, folder) for t in (*plan.trials(), *plan.fresh_trials()))


@contextmanager
def _unless_refused(folder: Path) -> Iterator[None]:
    """The folder, made if need be; if the block refuses to go on, it is as if it had not been."""
    had = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: cannot write there ({error.strerror})") from None
    try:
        yield
    except UsageError:
        if not had:
            shutil.rmtree(folder)
        raise


def _effort(report: Report, seconds: float, cores: int, *, start: float) -> str:
    """What it took, beside what it would have taken if nothing but training took time."""
    spent = sum(row.cpu_seconds or 0 for row in report.rows)
    ideal = spent / max(1, min(cores, len(report.rows)))
    return (
        f"{len(report.rows)} training runs on {cores} cores in {seconds:.1f} s: {spent:.1f} s of "
        f"processor time, {seconds / max(ideal, 1e-9):.2f} times the ideal; Ray took {start:.1f} s "
        "to start"
    )
