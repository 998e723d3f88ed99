"""The files of a training run, and those that it may not replace.

A run named `leduc.zip` also writes `leduc.csv`, `leduc.png`, `leduc.json` and, while it lasts,
`leduc.ckpt`. Only the first name was given by the user: files of these names that another command
wrote are not replaced.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from algorithms.self_play.curve import COLUMNS
from algorithms.support.errors import UsageError

CHECKPOINT = ".ckpt"
MAX_BYTES = 2**28  # of a result that is read to see who wrote it


def require_own(out: Path, suffixes: Sequence[str]) -> None:
    """Raise an error if one of a run's files exists and no training run wrote it."""
    if _is_result(out.with_suffix(".json")):  # of an earlier run, which wrote the others too
        return
    for suffix in suffixes:
        path = out.with_suffix(suffix)
        if suffix in (out.suffix, CHECKPOINT) or not path.is_file():
            continue
        if suffix == ".csv" and _is_curve(path):
            continue
        if suffix == ".png" and _is_curve(out.with_suffix(".csv")):
            continue
        raise UsageError(
            f"{path} exists, and no training run wrote it, but one with --out {out} would replace "
            "it: choose another --out, or move the file"
        )


def require_no_checkpoint(path: Path) -> None:
    """Raise an error if an interrupted run could be resumed from this file."""
    if path.is_file():
        raise UsageError(
            f"{path} is the checkpoint of an interrupted run: --resume continues it; to start "
            "again, remove the file or choose another --out"
        )


def _is_result(path: Path) -> bool:
    """Whether a training run wrote this JSON file: it has the settings of the run."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return False
        document: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"config", "steps"} <= document.keys()


def _is_curve(path: Path) -> bool:
    """Whether a training run wrote this file, by the names of its first columns."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline(MAX_BYTES)
    except (OSError, ValueError):
        return False
    return first.startswith(",".join(COLUMNS[:2]))
