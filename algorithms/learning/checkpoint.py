"""The state of a training run on disk: under a seal, and believed only where it can be true."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import torch

from algorithms.support.errors import UsageError
from algorithms.support.sealed import read_sealed, write_sealed


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Keep `state`: the whole file or nothing."""
    file = io.BytesIO()
    torch.save(state, file)
    write_sealed(path, file.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `write_checkpoint` kept there, to the last bit, loaded without running anything."""
    try:
        content = read_sealed(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is nothing to resume") from None
    except UsageError as error:
        raise UsageError(f"not a whole checkpoint of a training run: {error}") from None
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    except Exception:  # whatever was sealed, it was not a checkpoint
        state = {}
    if not isinstance(state, dict) or "config" not in state or not _is_count(state.get("steps")):
        raise UsageError(f"{path}: not a whole checkpoint of a training run")
    return state


def require_like(stored: Any, fresh: Any, where: str = "the checkpoint") -> None:
    """Refuse what cannot be a later state of `fresh`: other keys, types or shapes, no numbers."""
    if isinstance(fresh, dict):
        fits = isinstance(stored, dict) and set(stored) == set(fresh)
        if fits:
            for key, value in fresh.items():
                require_like(stored[key], value, f"{where}: {key}")
    elif isinstance(fresh, torch.Tensor):
        fits = (
            isinstance(stored, torch.Tensor)
            and (stored.dtype, stored.shape) == (fresh.dtype, fresh.shape)
            and bool(stored.isfinite().all())
        )
    elif isinstance(fresh, list):
        fits = (
            isinstance(stored, list) and len(stored) == len(fresh) and all(map(_is_count, stored))
        )
    elif isinstance(fresh, float):
        fits = isinstance(stored, (int, float)) and math.isfinite(stored)
    elif isinstance(fresh, int):
        fits = _is_count(stored)
    else:
        fits = bool(stored == fresh)
    if not fits:
        raise UsageError(f"{where} is not what a training run keeps")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
