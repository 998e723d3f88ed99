"""The JSON and the tensors of an SB3 zip, read without running code from it and within limits.

Sizes are checked in the zip's directory before anything is unpacked. The tensors are then read by
`torch.load(weights_only=True)`. That alone would not bound memory: it calls `bytearray(10**11)` if
the file says so. So the pickle may only name what a state dict consists of.
"""

from __future__ import annotations

import io
import json
import pickletools
import shutil
import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import torch

from algorithms.support.errors import first_line
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import BridgeError, PolicyError

MAX_BYTES = 256 * 2**20  # of the file, of what is unpacked from a zip, and of the tensors
MAX_DIRECTORY_BYTES = 2**18  # about 5,000 members; `zipfile` needs quadratic time for long entries
MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_CONTAINERS = 100_000  # maps and lists: each needs memory of its own
MAX_PICKLE_BYTES = 2**20
MAX_OPCODES = 10_000  # of the pickle; a tensor takes about 35

Tensors: TypeAlias = dict[str, torch.Tensor]

_NAMES = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
}


class NotOnlyTensorsError(PolicyError):
    """The state dict contains something else than tensors of real numbers."""


def read_zip(path: Path) -> tuple[dict[str, Any], Tensors]:
    """SB3's description of a model, and the parameters of its policy as float32."""
    content = read_bytes(path, max_bytes=MAX_BYTES)
    try:
        members = unpacked(content, ("data", "policy.pth"))
        return _json(members["data"]), _state_dict(members["policy.pth"])
    except BridgeError:
        raise
    except Exception as error:  # a broken file can fail anywhere
        raise PolicyError(f"not a complete SB3 model ({first_line(error)})") from None


def unpacked(content: bytes, names: tuple[str, ...] = ()) -> dict[str, bytes]:
    """These members of a zip, or all of them; an error if they have more than `MAX_BYTES`."""
    with zipfile.ZipFile(_LimitedReads(content)) as archive:
        members = [archive.getinfo(name) for name in names or archive.namelist()]
        if sum(member.file_size for member in members) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES:,} bytes")
        found = {}
        for member in members:
            # Other methods can unpack a few bytes to gigabytes at once.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("it is compressed by a method that SB3 does not use")
            with archive.open(member) as packed:  # reads no more than the size that was checked
                shutil.copyfileobj(packed, plain := io.BytesIO(), 2**16)
            found[member.filename] = plain.getvalue()
    return found


class _LimitedReads(io.BytesIO):
    """A file that refuses long reads: here the only one is that of a zip's directory."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ValueError(f"its directory has more than {MAX_DIRECTORY_BYTES:,} bytes")
        return super().read(size)


def _json(text: bytes) -> dict[str, Any]:
    """A JSON object, of which the size is checked before it is parsed."""
    if len(text) > MAX_JSON_BYTES or text.count(b"{") + text.count(b"[") > MAX_JSON_CONTAINERS:
        raise ValueError(
            f"data has more than {MAX_JSON_BYTES:,} bytes or {MAX_JSON_CONTAINERS:,} maps and lists"
        )
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("data is not a map")
    return data


def _state_dict(content: bytes) -> Tensors:
    """The tensors in a file that `torch.save` wrote, as float32."""
    records = unpacked(content)
    for name, record in records.items():
        if name.lower().endswith("data.pkl"):  # torch ignores the case of names
            _require_only_tensors(record)
    # Written anew, so that torch sees the records that were checked, whatever else the file has.
    with zipfile.ZipFile(checked := io.BytesIO(), "w") as archive:
        for name, record in records.items():
            archive.writestr(name, record)
    checked.seek(0)
    tensors = torch.load(checked, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(
        isinstance(key, str) and isinstance(tensor, torch.Tensor) for key, tensor in tensors.items()
    ):
        raise ValueError("policy.pth is not a map from names to tensors")
    # A tensor can be larger than its storage: `expand` repeats elements.
    if 4 * sum(tensor.numel() for tensor in tensors.values()) > MAX_BYTES:
        raise ValueError(f"its tensors have more than {MAX_BYTES:,} bytes")
    return {key: tensor.float() for key, tensor in tensors.items()}


def _require_only_tensors(pickled: bytes) -> None:
    """Raise an error if a pickle names anything but dictionaries and tensors, or is too long."""
    if len(pickled) > MAX_PICKLE_BYTES:
        raise ValueError(f"data.pkl has more than {MAX_PICKLE_BYTES:,} bytes")
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
        if count > MAX_OPCODES:
            raise ValueError(f"data.pkl has more than {MAX_OPCODES:,} opcodes")
        # torch itself refuses the other opcodes that look names up
        if opcode.name == "GLOBAL" and argument not in _NAMES:
            raise NotOnlyTensorsError(f"names {str(argument)[:100]}")
