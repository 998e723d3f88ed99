"""Trials of a sweep on Ray Tune, and their results copied out of Ray's storage.

The checkpoints of a training run go to Ray, so another worker can continue if this one dies. Its
results are the last checkpoint, so they reach the sweep's folder through any storage that Ray uses.
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
        {"folder": t.folder, "config": asdict(t.config), "checkpoint_every": checkpoint_every}
        for t in trials
    ]

    def handle_and_copy(event: TrialEvent) -> None:
        if event.kind == "ended" and event.folder not in finished:
            copy_results(event.checkpoint, folder / event.folder)
        progress.handle(event)

    with _event_queue(handle_and_copy) as send:
        done = tune.run(
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
    return all([_finish(trial, folder) for trial in done.trials])  # noqa: C419  # finish every one


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
        folder = Path(results)
        try:
            settings, every = Settings(**task["config"]), task["checkpoint_every"]
            about: dict[str, Any] = _train(settings, every, folder, Path(checkpoints))
        except BridgeError as error:  # it would fail in the same way again
            about = {"failed": str(error)}
        about |= {"host": platform.node(), "node": ray.get_runtime_context().get_node_id()}
        files.write_text(folder / TRIAL_FILE, json.dumps(about))
        tune.report({"finished": True}, checkpoint=tune.Checkpoint.from_directory(folder))


def _train(settings: Settings, every: int, results: Path, checkpoints: Path) -> dict[str, Any]:
    """Train and save the results; return the CPU seconds on all workers."""
    from algorithms.self_play.saving import save_results  # these take seconds to import
    from algorithms.self_play.training_run import Training, read_checkpoint

    path = checkpoints / CHECKPOINT_FILE if settings.recipe == "self-play" else None
    watch = _Reporter(checkpoints)
    training = Training(settings, watch=watch, checkpoint=path, checkpoint_every=every)
    if checkpoint := tune.get_checkpoint():
        # If it cannot be read, or is of a finished run, the run starts again, with the same result.
        with suppress(OSError), checkpoint.as_directory() as name:
            if (Path(name) / CHECKPOINT_FILE).exists():
                training.set_state(read_checkpoint(Path(name) / CHECKPOINT_FILE))
    training.run()
    result = save_results(training, results / MODEL_FILE, picture=False)
    return {"cpu_seconds": result["cpu_seconds"] + result["measuring_cpu_seconds"]}


class _Reporter:
    """Reports each new checkpoint to Ray, and otherwise the progress about once per second."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints, self._reported, self._time = checkpoints, 0, -math.inf

    def __call__(self, point: Point) -> None:
        metrics = {"steps": point.steps, "nash_conv": min(point.last, point.average)}
        path = self._checkpoints / CHECKPOINT_FILE
        written = path.stat().st_mtime_ns if path.exists() else 0
        if (new := written != self._reported) or time.monotonic() - self._time >= REPORT_INTERVAL:
            checkpoint = tune.Checkpoint.from_directory(self._checkpoints) if new else None
            tune.report(metrics, checkpoint=checkpoint)
            self._reported, self._time = written, time.monotonic()


# ---------------------------------------------------------------------------------------------
# Events, and results
# ---------------------------------------------------------------------------------------------


class TrialCallback(tune.Callback):
    """Passes Ray's events of trials on, and allows each trial `retries` from now on.

    Ray itself would also count failures before a resumed sweep.
    """

    def __init__(self, send: EventHandler, retries: int) -> None:
        self._send, self._retries, self._known = send, retries, set[str]()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Ray is about to start, restart or give up trials."""
        for trial in trials:
            if trial.trial_id not in self._known:
                self._known.add(trial.trial_id)
                trial.max_failures = trial.run_metadata.num_failures + self._retries

    def _pass_on(self, kind: str, *, trial: Any, **info: Any) -> None:
        last, folder = trial.last_result or {}, trial.config["task"]["folder"]
        figures = last.get("steps", 0), last.get("nash_conv")
        self._send(TrialEvent(folder, kind, *figures, trial.checkpoint))

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
        while (event := queue.get()) is not None:
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
