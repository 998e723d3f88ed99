"""A device that a machine without a GPU does not have, pretended with tensors on the CPU.

Inside `with PretendedDevice():` the device `mps` can be used. Its tensors are on the CPU, and
marked. As on a real device, an operation on tensors of both kinds is an error, so are numpy arrays
made of marked tensors, and there is no float64.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

DEVICE = torch.device("mps")
CPU = torch.device("cpu")
ACROSS = {"copy_", "_has_compatible_shallow_copy_type"}  # functions of tensors on two devices
TO_NUMPY = {"numpy", "__array__"}


class PretendedDevice(TorchFunctionMode):
    """The mode in which tensors can be on `DEVICE`."""

    def __enter__(self) -> Any:
        """Let parameters be copied on their device, which happens outside of the mode."""
        self._deepcopy = copy = torch.nn.Parameter.__deepcopy__

        def on_its_device(parameter: Any, memo: Any) -> Any:
            copied = copy(parameter, memo)
            return _mark(copied) if _is_marked(parameter) else copied

        torch.nn.Parameter.__deepcopy__ = on_its_device
        return super().__enter__()

    def __exit__(self, *args: Any) -> None:
        torch.nn.Parameter.__deepcopy__ = self._deepcopy
        super().__exit__(*args)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one function of torch, or refuse it."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        owner = getattr(func, "__self__", None)
        attribute = getattr(owner, "__name__", "")  # of `Tensor.device.__get__` and the like
        given = list(_tensors((args, kwargs)))
        marked = [tensor for tensor in given if _is_marked(tensor)]
        if name == "__get__" and attribute == "device":
            return DEVICE if marked else func(*args, **kwargs)
        if name == "__get__" and attribute in ("grad", "_grad", "data"):
            return _mark(func(*args, **kwargs)) if marked else func(*args, **kwargs)
        if name == "__set__":
            func(*args, **kwargs)
            if attribute == "data" and _is_marked(args[1]):
                _mark(args[0])
            elif attribute == "data":  # a module that moves to the CPU
                vars(args[0]).pop("on_pretended_device", None)
            return None
        if name == "register_hook" and marked:
            tensor, hook = args
            return func(tensor, lambda gradient: hook(_mark(gradient)))
        if name == "cpu":
            return func(*args, **kwargs).clone() if marked else func(*args, **kwargs)
        wanted = _take_device(name, args, kwargs)
        if name in ("to", "cuda") and wanted.device is not None:
            result = func(*wanted.args, **kwargs)
            if wanted.device == DEVICE:
                return _mark(result.clone() if result is args[0] and not marked else result)
            return result.clone() if marked else result
        if name in TO_NUMPY and marked:
            raise TypeError(f"can't convert {DEVICE} tensor to numpy: use Tensor.cpu() first")
        sized = [tensor for tensor in given if tensor.dim()]
        unmarked = [tensor for tensor in sized if not _is_marked(tensor)]
        indexing = name == "__getitem__" and _is_marked(args[0])
        if marked and unmarked and name not in ACROSS and not indexing:
            raise RuntimeError(f"{name}: tensors on {DEVICE} and on the CPU")
        result = func(*wanted.args, **kwargs)
        if wanted.device == DEVICE or (marked and name not in TO_NUMPY):
            if name == "copy_" and not _is_marked(args[0]):
                return result
            return _mark(result)
        return result


class _Call:
    """The arguments of a function without the device, and the device."""

    def __init__(self, args: Any, device: Any) -> None:
        self.args = args
        self.device = device


def _take_device(name: str, args: Any, kwargs: dict[str, Any]) -> _Call:
    """Replace the device in a call by the CPU."""
    device = None
    if "device" in kwargs and kwargs["device"] is not None:
        device = torch.device(kwargs["device"])
        kwargs["device"] = CPU
    if name == "to":
        args = list(args)
        for i, value in enumerate(args[1:], start=1):
            if isinstance(value, str | torch.device):
                device = torch.device(value)
                args[i] = CPU
    return _Call(args, device)


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested containers."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        for value in values.values():
            yield from _tensors(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)


def _is_marked(tensor: Any) -> bool:
    return "on_pretended_device" in getattr(tensor, "__dict__", {})


def _mark(result: Any) -> Any:
    """Put all tensors of a result on the device."""
    for tensor in _tensors(result):
        with torch._C.DisableTorchFunction():
            if tensor.dtype == torch.float64:
                raise TypeError(f"{DEVICE} has no float64")
        tensor.__dict__["on_pretended_device"] = True
    return result
