"""A whole sweep: the trials to choose by, those that confirm the choice, and its progress."""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from algorithms.support import ray_cluster as cluster
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance
from algorithms.sweeps.plan import Plan, Trial
from algorithms.sweeps.results import DONE, SweepResults, read_results

RAY_FOLDER = "ray"  # Ray's storage in the sweep's folder


class TrialEvent(NamedTuple):
    """An event of a trial: `started`, `progressed`, `retrying`, `failed` or `ended`."""

    folder: str
    kind: str
    steps: int = 0
    nash_conv: float | None = None
    checkpoint: Any = None  # the last one of the trial, in Ray's storage


class _TrialProgress(NamedTuple):
    trial: Trial
    kind: str  # of the last event, or `waiting`
    steps: int


class Progress:
    """The progress of a sweep in one line."""

    def __init__(self, show: Advance) -> None:
        self._show = show
        self._best_nash_conv = math.inf
        self._best_trial = ""
        self._by_folder: dict[str, _TrialProgress] = {}

    def add_trials(self, trials: Sequence[Trial], folder: Path) -> None:
        """Count these trials too; some may have ended."""
        for trial in trials:
            kind = "ended" if trial.has_ended(folder) else "waiting"
            self._by_folder[trial.folder] = _TrialProgress(trial, kind, steps=0)

    def handle(self, event: TrialEvent) -> None:
        """Show the numbers of trials, and the best so far."""
        trial = self._by_folder[event.folder].trial
        self._by_folder[event.folder] = _TrialProgress(trial, event.kind, event.steps)
        if event.nash_conv is not None and event.nash_conv < self._best_nash_conv:
            self._best_nash_conv = event.nash_conv
            self._best_trial = f"{trial.setting}, seed {trial.config.seed}"
        kinds = [one.kind for one in self._by_folder.values()]
        running = kinds.count("started") + kinds.count("progressed")
        note = f"{running} running, {kinds.count('ended')} done, {kinds.count('failed')} failed"
        if self._best_trial:
            note += f", best {self._best_nash_conv:.4f} ({self._best_trial})"
        steps = 0
        for one in self._by_folder.values():
            steps += one.trial.config.steps if one.kind == "ended" else one.steps
        self._show(steps, note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a sweep ended."""

    plan: Plan  # with the chosen settings
    has_ended: bool  # or was interrupted
    effort: str  # the time in words


def run_sweep(  # noqa: PLR0913  # options by name
    plan: Plan,
    folder: Path,
    show: Advance,
    *,
    resume: bool,
    address: str | None,  # of a Ray cluster; None: this machine
    cpus: int | None,  # trials at a time; None: one per core
    retries: int,  # of a trial that crashes
) -> Outcome:
    """Run the trials of a plan that have not ended, with all results in `folder`."""
    if _is_complete(plan, folder):
        return Outcome(plan=plan, has_ended=True, effort="no training run was left")
    start = time.perf_counter()
    storage = plan.storage or str((folder / RAY_FOLDER).resolve())
    with cluster.connected(address, cpus):
        _require_usable(folder, storage, fresh=not resume, on_cluster=address is not None)
        plan.write(folder)
        from algorithms.sweeps.trials import run_stage  # imports Ray

        ready = time.perf_counter()
        run = partial(
            run_stage,
            folder,
            Progress(show),
            storage=storage,
            checkpoint_every=plan.checkpoint_every,
            retries=retries,
            max_concurrent=cpus,
        )
        plan, has_ended = _run_stages(plan, folder, run)
        seconds = time.perf_counter() - ready
        cores = cluster.num_cores(cpus)
    results = read_results(folder, plan)
    all_done = len(results.in_state(DONE)) == len(results.rows)
    if has_ended and all_done and not plan.storage:
        shutil.rmtree(storage)  # its checkpoints are no longer needed
    effort = _effort(results, seconds, cores, startup=ready - start)
    return Outcome(plan=plan, has_ended=has_ended, effort=effort)


def _is_complete(plan: Plan, folder: Path) -> bool:
    """Whether no trial is left, also none of settings that are still to be chosen."""
    if plan.confirm and not plan.chosen:
        return False
    return all(trial.has_ended(folder) for trial in (*plan.trials(), *plan.fresh_trials()))


def _require_usable(folder: Path, storage: str, *, fresh: bool, on_cluster: bool) -> None:
    """Make the folder; raise an error, and remove it, if the storage cannot be used."""
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        cluster.require_storage(storage, name=folder.resolve().name, fresh=fresh)
        if on_cluster:
            cluster.require_nodes(storage)
    except UsageError:
        if not existed:
            shutil.rmtree(folder)
        raise


def _run_stages(plan: Plan, folder: Path, run: Callable[..., bool]) -> tuple[Plan, bool]:
    """Run all trials; return the plan with the chosen settings, and whether all trials ended."""
    name = folder.resolve().name
    try:
        if not run(plan.trials(), name=name):
            return plan, False
        if not plan.confirm:
            return plan, True
        if not plan.chosen:
            best = read_results(folder, plan).chosen_by[: plan.confirm]
            plan = replace(plan, chosen=tuple(summary.setting for summary in best))
            plan.write(folder)
        return plan, run(plan.fresh_trials(), name=f"{name}-confirm")
    except KeyboardInterrupt:
        return plan, False


def _effort(results: SweepResults, seconds: float, cores: int, *, startup: float) -> str:
    """The time taken, and how many times the least possible: training on all cores, no overhead."""
    runs = len(results.rows)
    cpu_seconds = sum(row["cpu_seconds"] or 0 for row in results.rows)
    ideal = cpu_seconds / max(1, min(cores, runs))
    return (
        f"{runs} training runs on {cores} cores in {seconds:.1f} s: {cpu_seconds:.1f} CPU "
        f"seconds, {seconds / max(ideal, 1e-9):.2f} times the ideal; Ray started in {startup:.1f} s"
    )
