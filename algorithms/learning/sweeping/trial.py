"""One training run of a sweep, on whatever machine Ray puts it.

Its checkpoints are given to Ray, so that another worker goes on where this one died; its results
are the last of them, so that they reach the sweep's folder through whatever storage Ray uses.
"""

from __future__ import annotations

import json
import platform
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from ray import get_runtime_context, tune

from algorithms.learning.checkpoint import read_checkpoint
from algorithms.learning.curve import Point
from algorithms.learning.settings import Settings
from algorithms.learning.saving import save_results
from algorithms.learning.sweeping.plan import ABOUT, MODEL
from algorithms.learning.training import Training
from algorithms.support import files
from kuhn_bridge.errors import BridgeError

KEPT, SPENT = "training.ckpt", "spent.json"
PATIENCE = 1.0  # seconds between reports that only say how far along it is


def run_trial(config: dict[str, Any], finished: frozenset[str] = frozenset()) -> None:
    """A Tune trainable: train to the end, from Ray's checkpoint if there is one.

    Args:
        config: Tune's; its `task` has the trial's `folder`, `config` and `checkpoint_every`.
        finished: the folders of trials whose results are safe already.
    """
    task = config["task"]
    if task["folder"] in finished:
        return
    torch.set_num_threads(1)
    with TemporaryDirectory() as results, TemporaryDirectory() as kept:
        folder = Path(results)
        try:
            about = _train(Settings(**task["config"]), task["checkpoint_every"], folder, Path(kept))
        except BridgeError as error:  # it would fail the same way again
            about = {"failed": str(error)}
        about |= {"host": platform.node(), "node": get_runtime_context().get_node_id()}
        files.write_text(folder / ABOUT, json.dumps(about))
        tune.report({"finished": True}, checkpoint=tune.Checkpoint.from_directory(folder))


def _train(config: Settings, every: int, folder: Path, kept: Path) -> dict[str, Any]:
    """Run, with checkpoints in `kept`, and leave the results in `folder`; what it took."""
    clock = Clock()
    training = Training(
        config,
        watch=_Reporter(kept, clock),
        checkpoint=kept / KEPT if config.recipe == "self-play" else None,
        checkpoint_every=every,
    )
    _restore(training, clock)
    training.run()
    save_results(training, folder / MODEL, picture=False)
    return {"cpu_seconds": clock.spent()}


class Clock:
    """The processor time that went into a training run, on all workers."""

    def __init__(self) -> None:
        self._before, self._started = 0.0, time.process_time()

    def spent(self) -> float:
        """In seconds."""
        return self._before + time.process_time() - self._started

    def add(self, seconds: float) -> None:
        """Count what other workers spent."""
        self._before += seconds


class _Reporter:
    """Tells Ray of a new checkpoint, and now and then how far along the training is."""

    def __init__(self, kept: Path, clock: Clock) -> None:
        self._kept, self._clock = kept, clock
        self._seen, self._told = 0, -PATIENCE

    def __call__(self, point: Point) -> None:
        news = {"steps": point.steps, "nash_conv": min(point.last, point.average)}
        path = self._kept / KEPT
        changed = path.stat().st_mtime_ns if path.exists() else 0
        if changed != self._seen:
            self._seen = changed
            files.write_text(self._kept / SPENT, json.dumps(self._clock.spent()))
            tune.report(news, checkpoint=tune.Checkpoint.from_directory(self._kept))
        elif time.monotonic() - self._told >= PATIENCE:
            tune.report(news)
        else:
            return
        self._told = time.monotonic()


def _restore(training: Training, clock: Clock) -> None:
    """Go on from Ray's checkpoint; where it is gone, from the start, to the same end."""
    checkpoint = tune.get_checkpoint()
    try:
        with checkpoint.as_directory() if checkpoint else nullcontext() as name:
            if name and (Path(name) / KEPT).exists():
                training.set_state(read_checkpoint(Path(name) / KEPT))
                clock.add(json.loads((Path(name) / SPENT).read_text(encoding="utf-8")))
    except OSError:
        return
