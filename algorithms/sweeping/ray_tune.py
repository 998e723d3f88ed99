"""Run trials with Ray Tune, and copy their results out of Ray's storage."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any, NamedTuple, TypeAlias

import ray
from pyarrow.fs import FileSystem
from ray import tune
from ray.util.queue import Queue

from algorithms.support import files
from algorithms.support.command import collect_seldom
from algorithms.sweeping.plan import FAILURE_FILE, TRIAL_FILE, Trial

CHECKPOINTS_KEPT = 2  # Ray's own state of a sweep may name the one before the last


class TrialEvent(NamedTuple):
    """An event of a trial: `started`, `progressed`, `retrying`, `failed` or `ended`."""

    folder: str
    kind: str
    steps: int = 0
    nash_conv: float | None = None
    checkpoint: str = ""  # its path in Ray's storage


EventHandler: TypeAlias = Callable[[TrialEvent], None]


class EventCallback(tune.Callback):
    """Passes Ray's events of trials on to a handler."""

    def __init__(self, handle: EventHandler) -> None:
        self._handle = handle

    def on_trial_start(self, *args: Any, trial: Any, **info: Any) -> None:
        """A worker has started it."""
        self._handle(_event("started", trial))

    def on_trial_result(self, *args: Any, trial: Any, **info: Any) -> None:
        """It reported progress."""
        self._handle(_event("progressed", trial))

    def on_trial_recover(self, *args: Any, trial: Any, **info: Any) -> None:
        """It crashed, and will continue from its last checkpoint."""
        self._handle(_event("retrying", trial))

    def on_trial_error(self, *args: Any, trial: Any, **info: Any) -> None:
        """It crashed too often."""
        self._handle(_event("failed", trial))

    def on_trial_complete(self, *args: Any, trial: Any, **info: Any) -> None:
        """Its last checkpoint contains the results."""
        self._handle(_event("ended", trial))


class Retries(tune.Callback):
    """Allows `retries` from now on; Ray would also count failures before a resumed sweep."""

    def __init__(self, retries: int) -> None:
        self._retries, self._known = retries, set[str]()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Ray is about to start, restart or give up trials."""
        for trial in trials:
            if trial.trial_id not in self._known:
                self._known.add(trial.trial_id)
                trial.max_failures = trial.run_metadata.num_failures + self._retries


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Trials to run, and how."""

    trials: Sequence[Trial]
    folder: Path  # for the results
    storage: str  # for Ray's checkpoints and its own state of the trials
    name: str  # of the stage in the storage
    checkpoint_every: int  # steps
    retries: int  # of a trial that crashes
    max_concurrent: int | None  # trials; none: one per core


def run_stage(stage: Stage, handle: EventHandler) -> bool:
    """Run the trials that have not ended, from Ray's last state; return whether all are over."""
    system, _ = FileSystem.from_uri(stage.storage)
    copied = (t.folder for t in stage.trials if (stage.folder / t.folder / TRIAL_FILE).exists())
    finished = frozenset(map(str, copied))

    def handle_and_copy(event: TrialEvent) -> None:
        if event.kind == "ended" and event.folder not in finished:
            copy_results(tune.Checkpoint(event.checkpoint, system), stage.folder / event.folder)
        handle(event)

    with _event_queue(handle_and_copy) as send:
        done = tune.run(
            tune.with_parameters(_run_trial, finished=finished),
            name=stage.name,
            config={"task": tune.grid_search(_tasks(stage))},
            storage_path=stage.storage,
            resources_per_trial={"cpu": 1},
            max_concurrent_trials=stage.max_concurrent,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=CHECKPOINTS_KEPT),
            resume="AUTO+ERRORED",
            reuse_actors=True,
            raise_on_failed_trial=False,
            trial_dirname_creator=lambda trial: str(trial.trial_id),
            callbacks=[EventCallback(send), Retries(stage.retries)],
            verbose=0,
        )
    over = [_finish(trial, stage.folder) for trial in done.trials]
    return all(over)


def _run_trial(config: dict[str, Any], finished: frozenset[str]) -> None:
    """`run_trial`, imported here because only workers need its libraries, which take seconds."""
    collect_seldom()
    from algorithms.sweeping.trial import run_trial

    run_trial(config, finished=finished)


def copy_results(checkpoint: tune.Checkpoint, target: Path) -> None:
    """Copy a trial's results out of Ray's storage, completely or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}-"
    for partial in target.parent.glob(
        f"{prefix}*"
    ):  # left by a sweep that was killed while it copied
        shutil.rmtree(partial, ignore_errors=True)
    temporary = Path(mkdtemp(prefix=prefix, dir=target.parent))
    try:
        checkpoint.to_directory(temporary)
        if (temporary / TRIAL_FILE).exists():
            shutil.rmtree(target, ignore_errors=True)
            temporary.chmod(0o755)
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _tasks(stage: Stage) -> list[dict[str, Any]]:
    """The `task` of each trial, as `run_trial` takes it."""
    every = stage.checkpoint_every
    return [
        {"folder": str(trial.folder), "config": asdict(trial.config), "checkpoint_every": every}
        for trial in stage.trials
    ]


def _finish(trial: Any, folder: Path) -> bool:
    """Copy missing results, and store failures; return whether the trial is over.

    Ray's status is not enough: after Ctrl-C it calls all trials terminated.
    """
    target: Path = folder / trial.config["task"]["folder"]
    if trial.status == "ERROR":
        target.mkdir(parents=True, exist_ok=True)
        files.write_text(target / FAILURE_FILE, json.dumps({"failed": _failure_text(trial)}))
        return True
    if trial.checkpoint and not (target / TRIAL_FILE).exists():
        copy_results(trial.checkpoint, target)
    return (target / TRIAL_FILE).exists()


def _failure_text(trial: Any) -> str:
    """Why a trial failed, in one line."""
    *_, last = str(trial.get_error() or "for an unknown reason").split("Failure # ")
    lines = [line.strip() for line in last.splitlines()[1:] if line.strip()] or [last]
    if lines[0].startswith("ray::"):  # a traceback, whose last line is the error
        reason = lines[-1]
    else:
        reason = "its worker died" if lines[0].startswith("The actor") else lines[0]
    return f"{reason} (attempts: {trial.run_metadata.num_failures})"


def _event(kind: str, trial: Any) -> TrialEvent:
    last, checkpoint = trial.last_result or {}, trial.checkpoint
    return TrialEvent(
        folder=trial.config["task"]["folder"],
        kind=kind,
        steps=last.get("steps", 0),
        nash_conv=last.get("nash_conv"),
        checkpoint=checkpoint.path if checkpoint else "",
    )


@contextmanager
def _event_queue(handle: EventHandler) -> Iterator[EventHandler]:
    """A function that passes events to `handle`, also from the head node through Ray's client."""
    if not ray.util.client.ray.is_connected():
        yield handle
        return
    queue: Any = Queue(actor_options={"num_cpus": 0})

    def listen() -> None:
        while (event := queue.get()) is not None:
            handle(event)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield queue.put
    finally:
        queue.put(None)
        listener.join()
