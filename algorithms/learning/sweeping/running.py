"""The trials of a plan as Ray Tune runs them, and their results brought home."""

from __future__ import annotations

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

from algorithms.learning.sweeping.plan import ABOUT, FAILURE, Trial
from algorithms.support import files
from algorithms.support.garbage import collect_seldom

CHECKPOINTS_KEPT = 2  # the state that Ray keeps of a sweep may name the one before the last


class News(NamedTuple):
    """What happened to a trial: it `started`, `moved`, `stumbled`, `failed` or `ended`."""

    folder: str
    what: str
    steps: int = 0
    nash_conv: float | None = None
    checkpoint: str = ""  # where it is in Ray's storage


Tell: TypeAlias = Callable[[News], None]


class Messenger(tune.Callback):
    """Tells what Ray sees happen."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def on_trial_start(self, *args: Any, trial: Any, **info: Any) -> None:
        """A worker has it."""
        self._tell(_news("started", trial))

    def on_trial_result(self, *args: Any, trial: Any, **info: Any) -> None:
        """It reported."""
        self._tell(_news("moved", trial))

    def on_trial_recover(self, *args: Any, trial: Any, **info: Any) -> None:
        """It will go on from its last checkpoint."""
        self._tell(_news("stumbled", trial))

    def on_trial_error(self, *args: Any, trial: Any, **info: Any) -> None:
        """It was tried often enough."""
        self._tell(_news("failed", trial))

    def on_trial_complete(self, *args: Any, trial: Any, **info: Any) -> None:
        """Its last checkpoint holds the results."""
        self._tell(_news("ended", trial))


class Retries(tune.Callback):
    """How often a trial may break off from now on: Ray would count what broke off before, too."""

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
    folder: Path  # where results are brought
    storage: str  # where Ray keeps checkpoints and its own state of the trials,
    name: str  # under this name
    checkpoint_every: int  # steps
    retries: int  # of a trial that broke off
    at_once: int | None  # how many trials; none: as many as there are cores


def run_stage(stage: Stage, tell: Tell) -> bool:
    """Run what has not ended, from where Ray has it; whether nothing is left to run."""
    system, _ = FileSystem.from_uri(stage.storage)
    home = (t.folder for t in stage.trials if (stage.folder / t.folder / ABOUT).exists())
    finished = frozenset(map(str, home))

    def hear(news: News) -> None:
        if news.what == "ended" and news.folder not in finished:
            bring_home(tune.Checkpoint(news.checkpoint, system), stage.folder / news.folder)
        tell(news)

    with _messages(hear) as send:
        done = tune.run(
            tune.with_parameters(_run_trial, finished=finished),
            name=stage.name,
            config={"task": tune.grid_search(_tasks(stage))},
            storage_path=stage.storage,
            resources_per_trial={"cpu": 1},
            max_concurrent_trials=stage.at_once,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=CHECKPOINTS_KEPT),
            resume="AUTO+ERRORED",
            reuse_actors=True,
            raise_on_failed_trial=False,
            trial_dirname_creator=_number,
            callbacks=[Messenger(send), Retries(stage.retries)],
            verbose=0,
        )
    over = [_settle(trial, stage.folder) for trial in done.trials]
    return all(over)


def _run_trial(config: dict[str, Any], finished: frozenset[str]) -> None:
    """`run_trial`, whose libraries take seconds to import: only workers need them."""
    collect_seldom()
    from algorithms.learning.sweeping.trial import run_trial

    run_trial(config, finished=finished)


def bring_home(checkpoint: tune.Checkpoint, target: Path) -> None:
    """Copy a trial's results out of Ray's storage, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}-"
    for left in target.parent.glob(f"{prefix}*"):  # by a sweep that was killed while it copied
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(mkdtemp(prefix=prefix, dir=target.parent))
    try:
        checkpoint.to_directory(temporary)
        if (temporary / ABOUT).exists():
            shutil.rmtree(target, ignore_errors=True)
            temporary.chmod(0o755)
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _tasks(stage: Stage) -> list[dict[str, Any]]:
    """What `run_trial` takes."""
    return [
        {
            "folder": str(trial.folder),
            "config": asdict(trial.config),
            "checkpoint_every": stage.checkpoint_every,
        }
        for trial in stage.trials
    ]


def _settle(trial: Any, folder: Path) -> bool:
    """Bring home what could not come before, and note why a trial failed; whether it is over.

    Ray's word is not enough for that: Ctrl-C makes it call all trials terminated.
    """
    target = folder / trial.config["task"]["folder"]
    if trial.status == "ERROR":
        target.mkdir(parents=True, exist_ok=True)
        files.write_text(target / FAILURE, json.dumps({"failed": _reason(trial)}))
    elif trial.checkpoint and not (target / ABOUT).exists():
        bring_home(trial.checkpoint, target)
    return bool(trial.status == "ERROR") or (target / ABOUT).exists()


def _reason(trial: Any) -> str:
    """Why a trial failed for good, in one line."""
    *_, last = str(trial.get_error() or "no reason is known").split("Failure # ")
    lines = [line.strip() for line in last.splitlines()[1:] if line.strip()] or [last]
    if lines[0].startswith("ray::"):  # a traceback, whose last line says what it was
        reason = lines[-1]
    else:
        reason = "its worker died" if lines[0].startswith("The actor") else lines[0]
    return f"{reason} (attempts: {trial.run_metadata.num_failures})"


def _news(what: str, trial: Any) -> News:
    last, checkpoint = trial.last_result or {}, trial.checkpoint
    return News(
        folder=trial.config["task"]["folder"],
        what=what,
        steps=last.get("steps", 0),
        nash_conv=last.get("nash_conv"),
        checkpoint=checkpoint.path if checkpoint else "",
    )


def _number(trial: Any) -> str:
    """The name of a trial's folder in Ray's storage."""
    return str(trial.trial_id)


@contextmanager
def _messages(hear: Tell) -> Iterator[Tell]:
    """A way to tell `hear`, from here or, through Ray's client, from the head of a cluster."""
    if not ray.util.client.ray.is_connected():
        yield hear
        return
    queue: Any = Queue(actor_options={"num_cpus": 0})

    def listen() -> None:
        while (news := queue.get()) is not None:
            hear(news)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield queue.put
    finally:
        queue.put(None)
        listener.join()
