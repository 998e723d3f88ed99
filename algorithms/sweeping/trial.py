"""One training run of a sweep, on a worker of Ray.

Its checkpoints go to Ray, so another worker can continue if this one dies. Its results are the last
checkpoint, so they reach the sweep's folder through any storage that Ray uses.
"""

import json
import platform
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from ray import get_runtime_context, tune

from algorithms.learning.curve import Point
from algorithms.learning.saving import save_results
from algorithms.learning.settings import Settings
from algorithms.learning.training import Training, read_checkpoint
from algorithms.support import files
from algorithms.sweeping.plan import MODEL_FILE, TRIAL_FILE
from kuhn_bridge.errors import BridgeError

CHECKPOINT_FILE, SECONDS_FILE = "training.ckpt", "seconds.json"
REPORT_INTERVAL = 1.0  # seconds between reports without a checkpoint


def run_trial(config: dict[str, Any], finished: frozenset[str] = frozenset()) -> None:
    """A Tune trainable: train to the end, from Ray's checkpoint if there is one.

    Args:
        config: Tune's config; its `task` has the trial's `folder`, `config` and
            `checkpoint_every`.
        finished: folders of trials whose results have been copied.
    """
    task = config["task"]
    if task["folder"] in finished:
        return
    torch.set_num_threads(1)
    with TemporaryDirectory() as results, TemporaryDirectory() as checkpoints:
        folder = Path(results)
        try:
            seconds = _train(
                Settings(**task["config"]), task["checkpoint_every"], folder, Path(checkpoints)
            )
            about: dict[str, Any] = {"cpu_seconds": seconds}
        except BridgeError as error:  # it would fail in the same way again
            about = {"failed": str(error)}
        about |= {"host": platform.node(), "node": get_runtime_context().get_node_id()}
        files.write_text(folder / TRIAL_FILE, json.dumps(about))
        tune.report({"finished": True}, checkpoint=tune.Checkpoint.from_directory(folder))


def _train(config: Settings, every: int, results: Path, checkpoints: Path) -> float:
    """Train and save the results; return the CPU seconds on all workers."""
    reporter = _Reporter(checkpoints)
    training = Training(
        config,
        watch=reporter,
        checkpoint=checkpoints / CHECKPOINT_FILE if config.recipe == "self-play" else None,
        checkpoint_every=every,
    )
    reporter.seconds_before = _restore(training)
    training.run()
    save_results(training, results / MODEL_FILE, picture=False)
    return reporter.cpu_seconds()


class _Reporter:
    """Reports each new checkpoint to Ray, and otherwise the progress about once per second."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints
        self._reported_checkpoint, self._reported_at = 0, -REPORT_INTERVAL
        self._start = time.process_time()
        self.seconds_before = 0.0  # CPU seconds on other workers

    def cpu_seconds(self) -> float:
        """The CPU seconds of this training run on all workers."""
        return self.seconds_before + time.process_time() - self._start

    def __call__(self, point: Point) -> None:
        metrics = {"steps": point.steps, "nash_conv": min(point.last, point.average)}
        path = self._checkpoints / CHECKPOINT_FILE
        changed = path.stat().st_mtime_ns if path.exists() else 0
        if changed != self._reported_checkpoint:
            self._reported_checkpoint = changed
            files.write_text(self._checkpoints / SECONDS_FILE, json.dumps(self.cpu_seconds()))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(self._checkpoints))
        elif time.monotonic() - self._reported_at >= REPORT_INTERVAL:
            tune.report(metrics)
        else:
            return
        self._reported_at = time.monotonic()


def _restore(training: Training) -> float:
    """Continue from Ray's checkpoint, if it can be read; return the CPU seconds spent before."""
    checkpoint = tune.get_checkpoint()
    try:
        with checkpoint.as_directory() if checkpoint else nullcontext() as name:
            if name and (Path(name) / CHECKPOINT_FILE).exists():
                seconds = json.loads((Path(name) / SECONDS_FILE).read_text(encoding="utf-8"))
                training.set_state(read_checkpoint(Path(name) / CHECKPOINT_FILE))
                return float(seconds)
    except OSError:
        pass  # start again, with the same result
    return 0.0
