"""A whole sweep: the trials to choose by, those that confirm the choice, and its progress."""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from algorithms.support import ray_cluster as cluster
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance
from algorithms.sweeps.plan import Plan, Trial
from algorithms.sweeps.results import DONE, Report, read_report

RAY_FOLDER = "ray"  # Ray's storage in the sweep's folder


class TrialEvent(NamedTuple):
    """An event of a trial: `started`, `progressed`, `retrying`, `failed` or `ended`."""

    folder: str
    kind: str
    steps: int = 0
    nash_conv: float | None = None
    checkpoint: Any = None  # the last one of the trial, in Ray's storage


class Progress:
    """The progress of a sweep in one line."""

    def __init__(self, show: Advance) -> None:
        self._show, self._best = show, (math.inf, "")
        self._trials: dict[str, tuple[Trial, TrialEvent]] = {}  # by folder, with the last event

    def add_trials(self, trials: Sequence[Trial], folder: Path) -> None:
        """Count these trials too; some may have ended."""
        for trial in trials:
            kind = "ended" if trial.has_ended(folder) else "waiting"
            self._trials[trial.folder] = trial, TrialEvent(trial.folder, kind)

    def handle(self, event: TrialEvent) -> None:
        """Show the numbers of trials, and the best so far."""
        trial, _ = self._trials[event.folder]
        self._trials[event.folder] = trial, event
        if event.nash_conv is not None:
            name = f"{trial.setting}, seed {trial.config.seed}"
            self._best = min(self._best, (event.nash_conv, name))
        kinds = [event.kind for _, event in self._trials.values()]
        running, ended = kinds.count("started") + kinds.count("progressed"), kinds.count("ended")
        best = "" if self._best[0] == math.inf else ", best {:.4f} ({})".format(*self._best)
        note = f"{running} running, {ended} done, {kinds.count('failed')} failed{best}"
        steps = (t.config.steps if e.kind == "ended" else e.steps for t, e in self._trials.values())
        self._show(sum(steps), note)


def run_sweep(  # noqa: PLR0913  # options by name
    plan: Plan,
    folder: Path,
    show: Advance,
    *,
    resume: bool,
    address: str | None,  # of a Ray cluster; None: this machine
    cpus: int | None,  # trials at a time; None: one per core
    retries: int,  # of a trial that crashes
) -> tuple[Plan, bool, str]:
    """Run the trials of a plan that have not ended, with all results in `folder`.

    Returns the plan with the chosen settings, whether all trials ended, and the time in words.
    """
    trials = (*plan.trials(), *plan.fresh_trials())
    chosen = bool(plan.chosen) or not plan.confirm
    if chosen and all(trial.has_ended(folder) for trial in trials):
        return plan, True, "no training run was left"
    began, existed = time.perf_counter(), folder.exists()
    storage = plan.storage or str((folder / RAY_FOLDER).resolve())
    with cluster.connected(address, cpus):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            cluster.require_storage(storage, name=folder.resolve().name, fresh=not resume)
            if address:
                cluster.require_nodes(storage)
        except UsageError:
            if not existed:
                shutil.rmtree(folder)
            raise
        plan.write(folder)
        from algorithms.sweeps.ray_tune import run_stage  # imports Ray

        ready, every = time.perf_counter(), plan.checkpoint_every
        run = partial(run_stage, folder, Progress(show), storage=storage, checkpoint_every=every)
        run = partial(run, retries=retries, max_concurrent=cpus)
        plan, ended = _run_stages(plan, folder, run)
        seconds, cores = time.perf_counter() - ready, cluster.num_cores(cpus)
    report = read_report(folder, plan)
    if ended and not plan.storage and len(report.in_state(DONE)) == len(report.rows):
        shutil.rmtree(storage)  # its checkpoints are no longer needed
    return plan, ended, _effort(report, seconds, cores, startup=ready - began)


def _run_stages(plan: Plan, folder: Path, run: Callable[..., bool]) -> tuple[Plan, bool]:
    """Run all trials; return the plan with the chosen settings, and whether all trials ended."""
    try:
        name = folder.resolve().name
        ended = run(plan.trials(), name=name)
        if ended and plan.confirm:
            if not plan.chosen:
                best = read_report(folder, plan).chosen_by[: plan.confirm]
                plan = replace(plan, chosen=tuple(summary.setting for summary in best))
                plan.write(folder)
            ended = run(plan.fresh_trials(), name=f"{name}-confirm")
    except KeyboardInterrupt:
        ended = False
    return plan, ended


def _effort(report: Report, seconds: float, cores: int, *, startup: float) -> str:
    """The time taken, and how many times the least possible: training on all cores, no overhead."""
    spent = sum(row["cpu_seconds"] or 0 for row in report.rows)
    ideal = spent / max(1, min(cores, len(report.rows)))
    return (
        f"{len(report.rows)} training runs on {cores} cores in {seconds:.1f} s: {spent:.1f} CPU "
        f"seconds, {seconds / max(ideal, 1e-9):.2f} times the ideal; Ray started in {startup:.1f} s"
    )
