"""The JSON and the tensors of an SB3 zip, read without running anything and up to fixed sizes.

Neither the sizes that headers claim nor what a pickle asks to be called are believed: members are
unpacked piece by piece, and a state dict is rebuilt from a short list of opcodes and two names.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import pickletools
import re
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.support.errors import UsageError, first_line
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import PolicyError

MAX_BYTES = 256 * 2**20  # of the file, of all that is unpacked from it, and of its parameters
MAX_MEMBERS = 10_000
MAX_DIRECTORY_BYTES = 2 * 2**20  # `zipfile` takes the square of an entry's length to read it
MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_VALUES = 100_000
MAX_JSON_DEPTH = 32
MAX_PICKLE_BYTES = 2**20

Parameters: TypeAlias = dict[str, npt.NDArray[np.float32]]


class MoreThanTensorsError(PolicyError):
    """A state dict that only a loader which runs code could read."""


def read_model(path: Path) -> tuple[dict[str, Any], Parameters]:
    """SB3's description of a model, and the parameters of its policy as float32."""
    try:
        archive = Archive(read_bytes(path, most=MAX_BYTES))
        data = _parsed(archive.read("data", most=MAX_JSON_BYTES))
        parameters = _state_dict(Archive(archive.read("policy.pth")))
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    except (MoreThanTensorsError, UsageError):
        raise
    except Exception as error:  # a broken file can fail anywhere
        raise PolicyError(f"{path}: not a whole SB3 model ({first_line(error)})") from None
    return data, parameters


class Archive:
    """A zip in memory whose members together unpack to at most `MAX_BYTES`."""

    def __init__(self, content: bytes) -> None:
        if content.count(b"PK\x01\x02") > MAX_MEMBERS:  # one for each entry of the directory
            raise ValueError(f"more than {MAX_MEMBERS:,} members")
        self._zip = zipfile.ZipFile(_InPieces(content))
        self._left = MAX_BYTES

    def names(self) -> list[str]:
        """What is in it."""
        return self._zip.namelist()

    def read(self, name: str, *, most: int = MAX_BYTES) -> bytes:
        """A member of at most `most` bytes, whatever its header claims."""
        info = self._zip.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that SB3 does not use")
        most, content = min(most, self._left), bytearray()
        with self._zip.open(info) as member:
            while part := member.read(2**20):  # never all at once: a little can unpack to a lot
                content += part
                if len(content) > most:
                    raise ValueError(f"{name} unpacks to more than {most:,} bytes")
        self._left -= len(content)
        return bytes(content)


class _InPieces(io.BytesIO):
    """A file of which much is never asked for at once, except by a directory that is too large."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, as any file has them."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ValueError(f"a directory of more than {MAX_DIRECTORY_BYTES:,} bytes")
        return super().read(size)


# A string, ended or not, or a mark; possessive, so that it takes one pass whatever the text is.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{\]},]', re.DOTALL)


def _parsed(text: bytes) -> dict[str, Any]:
    """A JSON object of bounded depth and number of values, both counted before it is parsed."""
    depth = deepest = values = 0
    for token in _TOKEN.finditer(text):
        kind = token[0][:1]
        depth += (kind in b"[{") - (kind in b"]}")
        values += kind in b"[{,"
        deepest = max(deepest, depth)
        if values > MAX_JSON_VALUES or deepest > MAX_JSON_DEPTH:
            raise ValueError(f"data has more than {MAX_JSON_VALUES:,} values or is too deep")
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("data is no map")
    return data


# What torch.save writes for a dict of tensors (protocol 2), and nothing else.
_OPCODES = {
    *("PROTO", "STOP", "MARK", "GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
    *("NONE", "NEWTRUE", "NEWFALSE", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
}
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",  # the upper half of a float32
}


def _state_dict(archive: Archive) -> Parameters:
    """The parameters in a file that torch.save wrote."""
    pickles = [name for name in archive.names() if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError("policy.pth is not what torch.save writes today")
    root = pickles[0].removesuffix("data.pkl")
    pickled = archive.read(pickles[0], most=MAX_PICKLE_BYTES)
    if f"{root}byteorder" in archive.names() and archive.read(f"{root}byteorder") != b"little":
        raise ValueError("policy.pth has its bytes in another order")
    _require_plain(pickled)
    found = _Unpickler(pickled, _Tensors(archive, root)).load()
    if not isinstance(found, dict):
        raise ValueError("policy.pth is no map")
    tensors = dict(dict.items(found))
    if not all(isinstance(k, str) and isinstance(t, np.ndarray) for k, t in tensors.items()):
        raise ValueError("policy.pth is no map of names to tensors")
    return tensors


def _require_plain(pickled: bytes) -> None:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
        far = opcode.name == "LONG_BINPUT" and (argument or 0) > count  # a memo of that length
        if opcode.name not in _OPCODES or far:
            raise MoreThanTensorsError("")


class _Tensors:
    """Stands for torch's function that makes a tensor of a storage; makes an array of bytes."""

    __slots__ = ("_archive", "_left", "_root", "_storages")

    def __init__(self, archive: Archive, root: str) -> None:
        self._archive, self._root, self._left = archive, root, MAX_BYTES
        self._storages: dict[str, npt.NDArray[np.float32]] = {}

    def storage(self, identity: Any) -> npt.NDArray[np.float32]:
        """The numbers of a storage, flat."""
        kind, storage, key = identity[:3]
        if kind != "storage" or not isinstance(key, str):
            raise ValueError("policy.pth refers to something unknown")
        if key not in self._storages:
            raw = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), _STORAGES[storage])
            if raw.dtype == np.uint16:
                raw = (raw.astype(np.uint32) << 16).view(np.float32)
            with np.errstate(over="ignore"):  # what float32 cannot hold is found to be infinite
                self._storages[key] = raw.astype(np.float32)
        return self._storages[key]

    def __call__(
        self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any
    ) -> npt.NDArray[np.float32]:
        """The tensor of that shape in a storage."""
        numbers = (offset, *size, *stride)
        if not isinstance(storage, np.ndarray) or len(size) != len(stride) or len(size) > 8:
            raise ValueError("policy.pth has a tensor without a shape")
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("policy.pth has a tensor of an impossible shape")
        self._left -= 4 * math.prod(size)
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if self._left < 0:
            raise ValueError(f"its tensors take more than {MAX_BYTES:,} bytes")
        if 0 not in size and last >= len(storage):
            raise ValueError("policy.pth has a tensor larger than its storage")
        steps = [4 * step for step in stride]
        return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()

    def __setstate__(self, state: Any) -> None:
        raise MoreThanTensorsError("")


class _Unpickler(pickle.Unpickler):
    """Knows a dict, a tensor and the names of storages; everything else is refused."""

    def __init__(self, pickled: bytes, tensors: _Tensors) -> None:
        super().__init__(io.BytesIO(pickled))
        self._tensors = tensors

    def find_class(self, module: str, name: str) -> Any:
        """The three things that a state dict names."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self._tensors
        if module == "torch" and name in _STORAGES:
            return name
        raise MoreThanTensorsError("")

    def persistent_load(self, identity: Any) -> Any:
        """The storage that a tensor refers to."""
        return self._tensors.storage(identity)
