"""Named arrays in an `.npz` file: written whole or not at all, read without running code from it.

The members of the file are stored as they are and have checksums: the file is as large as its
arrays, and damage is noticed.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.support import files
from algorithms.support.errors import UsageError

MAX_BYTES = 8 * 2**30


def write_arrays(path: str | Path, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write the whole file or nothing."""
    members: dict[str, Any] = dict(arrays)
    with files.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **members)


def read_arrays(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays in a file of at most `MAX_BYTES`; a `UsageError` if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise UsageError(f"{path}: its arrays are compressed; write them with numpy.savez")
        size = sum(member.file_size for member in members)
        if size > min(MAX_BYTES, Path(path).stat().st_size):
            raise UsageError(f"{path}: larger than {MAX_BYTES:,} bytes, or than the file")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except UsageError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise UsageError(f"{path}: damaged, or not arrays in .npz form ({error})") from None


def set_arrays(
    arrays: Mapping[str, npt.NDArray[np.generic]], state: Mapping[str, npt.NDArray[np.generic]]
) -> None:
    """Copy what was read into arrays of the same names and shapes."""
    for name, array in arrays.items():
        if name not in state or np.shape(state[name]) != array.shape:
            raise UsageError(f"{name}: not the state of a solver of this game and variant")
    for name, array in arrays.items():
        array[...] = state[name]
