"""Trials of a sweep on Ray Tune, and their results copied out of Ray's storage.

The checkpoints of a training run go to Ray, so another worker can continue if this one dies. Its
results are the last checkpoint, so they reach the sweep's folder through any storage that Ray uses.

Tune places trials, restarts crashed ones from their checkpoints and resumes a sweep that was
stopped. Three things are done here instead:

- Retries are counted from the start of each run of the command. Tune stores the limit with a trial
  and counts all failures of a sweep, so `--resume --retries N` would mean nothing.
- A trial is over when its results are in the sweep's folder. Tune's own status calls all trials
  terminated after Ctrl-C.
- Progress is one line, as in every other command; Tune prints tables.
"""

import json
import math
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partialmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, TypeAlias

import ray
from ray import tune
from ray.util.queue import Queue

from algorithms.self_play.curve import Point
from algorithms.self_play.settings import Settings
from algorithms.support import files
from algorithms.support.command import collect_seldom
from algorithms.support.modules import import_modules, imported_modules
from algorithms.sweeps.plan import FAILURE_FILE, MODEL_FILE, TRIAL_FILE, Trial
from algorithms.sweeps.running import Progress, TrialEvent
from kuhn_bridge.errors import BridgeError

CHECKPOINTS_KEPT = 2  # Ray's own state of a sweep may name the one before the last
CHECKPOINT_FILE = "training.ckpt"
REPORT_INTERVAL = 1.0  # seconds between reports without a checkpoint
EventHandler: TypeAlias = Callable[[TrialEvent], None]


def run_stage(  # noqa: PLR0913  # options by name
    folder: Path,  # for the results
    progress: Progress,
    trials: Sequence[Trial],
    *,
    name: str,  # of the stage in the storage
    storage: str,  # for Ray's checkpoints and its own state of the trials
    checkpoint_every: int,  # steps
    retries: int,  # of a trial that crashes
    max_concurrent: int | None,  # trials; None: one per core
) -> bool:
    """Run the trials that have not ended, from Ray's last state; return whether all are over."""
    progress.add_trials(trials, folder)
    finished = frozenset(trial.folder for trial in trials if trial.has_ended(folder))
    if len(finished) == len(trials):
        return True
    tasks = [
        {
            "folder": trial.folder,
            "config": asdict(trial.config),
            "checkpoint_every": checkpoint_every,
            "imports": imported_modules(),
        }
        for trial in trials
    ]

    def copy_and_show(event: TrialEvent) -> None:
        if event.kind == "ended" and event.folder not in finished:
            copy_results(event.checkpoint, folder / event.folder)
        progress.handle(event)

    with _event_queue(copy_and_show) as send:
        analysis = tune.run(
            tune.with_parameters(run_trial, finished=finished),
            name=name,
            config={"task": tune.grid_search(tasks)},
            storage_path=storage,
            resources_per_trial={"cpu": 1},
            max_concurrent_trials=max_concurrent,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=CHECKPOINTS_KEPT),
            resume="AUTO+ERRORED",
            reuse_actors=True,
            raise_on_failed_trial=False,
            trial_dirname_creator=lambda trial: str(trial.trial_id),
            callbacks=[TrialCallback(send, retries)],
            verbose=0,
        )
    all_over = True
    for trial in analysis.trials:
        all_over &= _finish(trial, folder)
    return all_over


# ---------------------------------------------------------------------------------------------
# On a worker
# ---------------------------------------------------------------------------------------------


def run_trial(config: dict[str, Any], finished: frozenset[str]) -> None:
    """A Tune trainable: train to the end, from Ray's checkpoint if there is one.

    The `task` of Tune's config is one of `run_stage`; results of `finished` folders were copied.
    """
    task = config["task"]
    if task["folder"] in finished:
        return
    collect_seldom()
    import torch

    torch.set_num_threads(1)
    with TemporaryDirectory() as results, TemporaryDirectory() as checkpoints:
        about: dict[str, Any] = {
            "host": platform.node(),
            "node": ray.get_runtime_context().get_node_id(),
        }
        try:
            import_modules(task["imports"])
            about["cpu_seconds"] = _train(
                Settings(**task["config"]),
                task["checkpoint_every"],
                results=Path(results),
                checkpoints=Path(checkpoints),
            )
        except BridgeError as error:  # it would fail in the same way again
            about["failed"] = str(error)
        files.write_text(Path(results) / TRIAL_FILE, json.dumps(about))
        tune.report({"finished": True}, checkpoint=tune.Checkpoint.from_directory(results))


def _train(settings: Settings, checkpoint_every: int, *, results: Path, checkpoints: Path) -> float:
    """Train and save the results; return the CPU seconds on all workers."""
    from algorithms.self_play.saving import save_results  # these take seconds to import
    from algorithms.self_play.training_run import Training, read_checkpoint

    path = checkpoints / CHECKPOINT_FILE
    training = Training(
        settings,
        watch=_Reporter(checkpoints),
        checkpoint=path,
        checkpoint_every=checkpoint_every,
    )
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        # If it cannot be read, or is of a finished run, the run starts again, with the same result.
        with suppress(OSError), checkpoint.as_directory() as name:
            stored = Path(name) / CHECKPOINT_FILE
            if stored.exists():
                training.set_state(read_checkpoint(stored))
    training.run()
    saved = save_results(training, results / MODEL_FILE, picture=False)
    return float(saved["cpu_seconds"] + saved["measuring_cpu_seconds"])


class _Reporter:
    """Reports each new checkpoint to Ray, and otherwise the progress about once per second."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints
        self._reported_checkpoint = 0  # when the file was written, in nanoseconds
        self._reported_at = -math.inf  # seconds

    def __call__(self, point: Point) -> None:
        path = self._checkpoints / CHECKPOINT_FILE
        written = path.stat().st_mtime_ns if path.exists() else 0
        is_new = written != self._reported_checkpoint
        is_due = time.monotonic() - self._reported_at >= REPORT_INTERVAL
        if not is_new and not is_due:
            return
        checkpoint = tune.Checkpoint.from_directory(self._checkpoints) if is_new else None
        metrics = {"steps": point.steps, "nash_conv": min(point.last, point.average)}
        tune.report(metrics, checkpoint=checkpoint)
        self._reported_checkpoint = written
        self._reported_at = time.monotonic()


# ---------------------------------------------------------------------------------------------
# Events, and results
# ---------------------------------------------------------------------------------------------


class TrialCallback(tune.Callback):
    """Passes Ray's events of trials on, and allows each trial `retries` from now on."""

    def __init__(self, send: EventHandler, retries: int) -> None:
        self._send = send
        self._retries = retries
        self._known_trials = set[str]()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Ray is about to start, restart or give up trials."""
        for trial in trials:
            if trial.trial_id not in self._known_trials:
                self._known_trials.add(trial.trial_id)
                failures_before = trial.run_metadata.num_failures
                trial.max_failures = failures_before + self._retries

    def _pass_on(self, kind: str, *, trial: Any, **info: Any) -> None:
        last_result = trial.last_result or {}
        event = TrialEvent(
            folder=trial.config["task"]["folder"],
            kind=kind,
            steps=last_result.get("steps", 0),
            nash_conv=last_result.get("nash_conv"),
            checkpoint=trial.checkpoint,
        )
        self._send(event)

    on_trial_start = partialmethod(_pass_on, "started")
    on_trial_result = partialmethod(_pass_on, "progressed")
    on_trial_recover = partialmethod(_pass_on, "retrying")  # it crashed, and will continue
    on_trial_error = partialmethod(_pass_on, "failed")  # it crashed too often
    on_trial_complete = partialmethod(_pass_on, "ended")  # its last checkpoint has the results


@contextmanager
def _event_queue(handle: EventHandler) -> Iterator[EventHandler]:
    """A function that passes events to `handle`, also from the head node through Ray's client."""
    if not ray.util.client.ray.is_connected():
        yield handle
        return
    queue: Any = Queue(actor_options={"num_cpus": 0})

    def listen() -> None:
        for event in iter(queue.get, None):  # until None
            handle(event)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield queue.put
    finally:
        queue.put(None)
        listener.join()


def copy_results(checkpoint: tune.Checkpoint, target: Path) -> None:
    """Copy a trial's results out of Ray's storage, completely or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}-"
    for partial in target.parent.glob(f"{prefix}*"):  # left by a sweep that was killed
        shutil.rmtree(partial, ignore_errors=True)
    with TemporaryDirectory(prefix=prefix, dir=target.parent) as temporary:
        copied = Path(temporary, "results")
        checkpoint.to_directory(copied)
        if (copied / TRIAL_FILE).exists():
            shutil.rmtree(target, ignore_errors=True)
            copied.rename(target)


def _finish(trial: Any, folder: Path) -> bool:
    """Copy missing results, and store failures; return whether the trial is over."""
    target: Path = folder / trial.config["task"]["folder"]
    if trial.status == "ERROR":
        target.mkdir(parents=True, exist_ok=True)
        files.write_text(target / FAILURE_FILE, json.dumps({"failed": _failure_text(trial)}))
        return True
    if trial.checkpoint and not (target / TRIAL_FILE).exists():
        copy_results(trial.checkpoint, target)
    return (target / TRIAL_FILE).exists()


def _failure_text(trial: Any) -> str:
    """Why a trial failed, in one line.

    Ray gives a text for each failure: "Failure # 2 (occurred at ...)", then what happened.
    """
    texts = str(trial.get_error() or "for an unknown reason").split("Failure # ")
    lines = [line.strip() for line in texts[-1].splitlines()[1:] if line.strip()]
    if not lines:
        reason = texts[-1]
    elif lines[0].startswith("ray::"):  # a traceback, whose last line is the error
        reason = lines[-1]
    elif lines[0].startswith("The actor"):
        reason = "its worker died"
    else:
        reason = lines[0]
    return f"{reason} (attempts: {trial.run_metadata.num_failures})"
