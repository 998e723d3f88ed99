"""The state of a training run on disk, under a checksum."""

import io
from pathlib import Path
from typing import Any

import torch

from algorithms.support.errors import UsageError
from algorithms.support.files import read_checksummed, write_checksummed


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state`: the whole file or nothing."""
    file = io.BytesIO()
    torch.save(state, file)
    write_checksummed(path, file.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state that `write_checkpoint` wrote, bit for bit, loaded without running code."""
    try:
        content = read_checksummed(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is nothing to resume") from None
    except UsageError as error:
        raise UsageError(f"not a complete checkpoint of a training run: {error}") from None
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
        _ = state["settings"], state["steps"]
    except Exception:  # the checksum matched, so it is another kind of file
        raise UsageError(f"{path}: not a checkpoint of a training run") from None
    return state
