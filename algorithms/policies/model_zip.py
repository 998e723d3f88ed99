"""The networks of SB3 models, rebuilt without running code from the file and within size limits.

SB3's own loader unpickles. Here the network is rebuilt from the JSON and the tensors in the zip; a
model for which that is not enough is refused. Sizes are checked in the zip's directory before
anything is unpacked. `torch.load(weights_only=True)` reads the tensors. That alone would not bound
memory, because it calls `bytearray(10**11)` if the file contains that. So the pickle may name only
the types in a state dict.
"""

import io
import json
import pickletools
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from algorithms.policies.network import Network, function_network
from algorithms.support.errors import first_line
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

MAX_BYTES = 256 * 2**20  # of the file, of what is unpacked from a zip, and of the tensors
MAX_DIRECTORY_BYTES = 2**18  # about 5,000 members; `zipfile` needs quadratic time for long entries
MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_CONTAINERS = 100_000  # maps and lists: each needs memory of its own
MAX_PICKLE_BYTES = 2**20
MAX_OPCODES = 10_000  # of the pickle; a tensor takes about 35

_PICKLED_NAMES = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
}
_POLICY_MODULES = (
    "algorithms.",
    "sb3_contrib.common.maskable.policies",
    "stable_baselines3.common.policies",
)
_FLATTEN = "<class 'stable_baselines3.common.torch_layers.FlattenExtractor'>"
_DEFAULT_ACTIVATION = nn.Tanh
_ACTIVATION_CLASSES: tuple[type[nn.Module], ...] = (
    nn.Tanh,
    nn.ReLU,
    nn.LeakyReLU,
    nn.PReLU,
    nn.ReLU6,
    nn.ELU,
    nn.CELU,
    nn.SELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.Hardtanh,
    nn.Hardswish,
)
ACTIVATIONS = {str(activation): activation for activation in _ACTIVATION_CLASSES}  # by SB3's text
# How the names of a policy's tensors begin.
_HIDDEN = "mlp_extractor.policy_net."
_PARTS = (_HIDDEN, "mlp_extractor.value_net.", "action_net.", "value_net.")
MAX_SHOWN = 200  # characters of a file's own text in an error


def read_sb3(path: Path, *, trust: bool = False) -> tuple[str | None, Network]:
    """The game that a MaskablePPO or PPO zip names, and its actor; errors do not name the file."""
    if trust:
        game, network = _loaded_by_sb3(path)
    else:
        game, network = _rebuilt(path)
    if not isinstance(game, str | None):
        raise PolicyError(f"{short_repr(game)} is not the name of a game")
    return game, network


def actor_of(policy: Any) -> nn.Module:
    """The part of an SB3 policy that plays: `(N, size)` -> `(N, A)` logits, sharing its weights."""
    return nn.Sequential(
        policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net
    )


def _loaded_by_sb3(path: Path) -> tuple[Any, Network]:
    """The game and the actor by SB3's own loader, which runs code from the file."""
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO

    reasons = []
    for algorithm in (MaskablePPO, PPO):
        try:
            model: Any = algorithm.load(path, device="cpu")
            size = int(model.observation_space.shape[0])
            actor = actor_of(model.policy).eval()
            actor(torch.zeros(1, size))
            network = function_network(actor, size, int(model.action_space.n))
            return getattr(model, "game", None), network
        except Exception as error:  # a trusted file may fail in any way
            reasons.append(first_line(error))
    raise PolicyError(f"SB3 cannot load it either: {'; '.join(reasons)}")


def _rebuilt(path: Path) -> tuple[Any, Network]:
    """The game and the actor, from the JSON and the tensors of an SB3 zip."""
    content = read_bytes(path, max_bytes=MAX_BYTES)
    try:
        members = _unpacked(content, ("data", "policy.pth"))
        data = _json(members["data"])
        tensors = _state_dict(members["policy.pth"])
    except BridgeError:
        raise
    except Exception as error:  # a broken file can fail anywhere
        raise PolicyError(f"not a complete SB3 model ({first_line(error)})") from None
    activation = _require_known_parts(data, tensors)
    try:
        network = _actor(tensors, activation)
        # A trial: it raises one of these errors if the layers do not fit each other.
        network.evaluate(np.zeros((1, network.input_size), np.float32), np.ones((1, 1), np.bool_))
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError):
        raise _needs_trust("a network whose layers do not follow from its tensors") from None
    same_input = _summary(data, "observation_space").get("_shape") == [network.input_size]
    num_actions = str(_summary(data, "action_space").get("n"))[:MAX_SHOWN]
    if not same_input or num_actions != str(network.num_actions):
        raise _needs_trust("a network whose layers do not follow from its spaces")
    return data.get("game"), network


def _summary(data: dict[str, Any], key: str) -> dict[str, Any]:
    """SB3's plain-text summary of a pickled object; empty if there is none."""
    summary = data.get(key)
    return summary if isinstance(summary, dict) else {}


def _require_known_parts(data: dict[str, Any], tensors: dict[str, torch.Tensor]) -> type[nn.Module]:
    """The activation of a model; an error if it has parts that are not rebuilt here."""
    module = str(_summary(data, "policy_class").get("__module__"))[:MAX_SHOWN]
    if not module.startswith(_POLICY_MODULES):
        raise _needs_trust(f"a policy class from {module!r}")
    kwargs = _summary(data, "policy_kwargs")
    extractor = str(kwargs.get("features_extractor_class", _FLATTEN))[:MAX_SHOWN]
    if extractor != _FLATTEN:
        raise _needs_trust(f"the features extractor {extractor}")
    activation = str(kwargs.get("activation_fn", _DEFAULT_ACTIVATION))[:MAX_SHOWN]
    if activation not in ACTIVATIONS:
        raise _needs_trust(f"the activation {activation}")
    other = ", ".join(name for name in tensors if not name.startswith(_PARTS))
    if other:
        raise _needs_trust(f"a network with parameters {other[:MAX_SHOWN]}")
    return ACTIVATIONS[activation]


def _actor(tensors: dict[str, torch.Tensor], activation: type[nn.Module]) -> Network:
    """Linear layers and activations in turn, as wide as their weights, and a last linear layer."""
    if not all(tensor.numel() for tensor in tensors.values()):
        raise ValueError("a layer without units")
    hidden = {
        name.removeprefix(_HIDDEN): tensor
        for name, tensor in tensors.items()
        if name.startswith(_HIDDEN)
    }
    last_weights = {name: tensors[f"action_net.{name}"] for name in ("weight", "bias")}
    actions, features = last_weights["weight"].shape
    shapes = [tensor.shape for tensor in hidden.values() if tensor.dim() == 2]  # of weights
    layers: list[nn.Module] = []
    with torch.device("meta"):  # no random weights: they are replaced below
        for outputs, inputs in shapes:
            layers.append(nn.Linear(inputs, outputs))
            layers.append(activation())
        last = nn.Linear(features, actions)
    nn.Sequential(*layers).load_state_dict(hidden, assign=True)
    last.load_state_dict(last_weights, assign=True)
    module = nn.Sequential(nn.Flatten(), *layers, last).eval()
    input_size = shapes[0][1] if shapes else features
    return function_network(module, input_size, actions)


def _unpacked(content: bytes, names: tuple[str, ...] = ()) -> dict[str, bytes]:
    """These members of a zip, or all of them; an error if they have more than `MAX_BYTES`."""
    unpacked = {}
    with zipfile.ZipFile(_LimitedReads(content)) as archive:
        members = [archive.getinfo(name) for name in names or archive.namelist()]
        if sum(member.file_size for member in members) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES:,} bytes")
        for member in members:
            # Other methods can unpack a few bytes to gigabytes at once.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("it is compressed by a method that SB3 does not use")
            plain = io.BytesIO()
            with archive.open(member) as packed:  # reads no more than the size that was checked
                shutil.copyfileobj(packed, plain, 2**16)
            unpacked[member.filename] = plain.getvalue()
    return unpacked


class _LimitedReads(io.BytesIO):
    """A file that refuses long reads: here the only one is that of a zip's directory."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ValueError(f"its directory has more than {MAX_DIRECTORY_BYTES:,} bytes")
        return super().read(size)


def _json(text: bytes) -> dict[str, Any]:
    """A JSON object whose size is checked before it is parsed."""
    if len(text) > MAX_JSON_BYTES or text.count(b"{") + text.count(b"[") > MAX_JSON_CONTAINERS:
        limits = f"{MAX_JSON_BYTES:,} bytes or {MAX_JSON_CONTAINERS:,} maps and lists"
        raise ValueError(f"data has more than {limits}")
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("data is not a map")
    return data


def _state_dict(content: bytes) -> dict[str, torch.Tensor]:
    """The tensors in a file that `torch.save` wrote, as float32."""
    # Written anew, so that torch reads the records that were checked and nothing else.
    checked = io.BytesIO()
    with zipfile.ZipFile(checked, "w") as archive:
        for name, record in _unpacked(content).items():
            if name.lower().endswith("data.pkl"):  # torch ignores the case of names
                _require_only_tensors(record)
            archive.writestr(name, record)
    checked.seek(0)
    tensors = torch.load(checked, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict):
        raise ValueError("policy.pth is not a map from names to tensors")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise ValueError("policy.pth is not a map from names to tensors")
    # A tensor can be larger than its storage: `expand` repeats elements.
    if 4 * sum(tensor.numel() for tensor in tensors.values()) > MAX_BYTES:
        raise ValueError(f"its tensors have more than {MAX_BYTES:,} bytes")
    return {name: tensor.float() for name, tensor in tensors.items()}


def _require_only_tensors(pickled: bytes) -> None:
    """Raise an error if a pickle names anything but dictionaries and tensors, or is too long."""
    if len(pickled) > MAX_PICKLE_BYTES:
        raise ValueError(f"data.pkl has more than {MAX_PICKLE_BYTES:,} bytes")
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
        if count > MAX_OPCODES:
            raise ValueError(f"data.pkl has more than {MAX_OPCODES:,} opcodes")
        # torch itself refuses the other opcodes that look names up
        if opcode.name == "GLOBAL" and argument not in _PICKLED_NAMES:
            named = str(argument)[:100]
            raise _needs_trust(f"a policy.pth that is not only tensors (names {named})")


def _needs_trust(what: str) -> PolicyError:
    return PolicyError(
        f"{what} cannot be rebuilt from JSON and tensors alone; SB3 can load it if you trust the "
        "file (trust=True, or --trust of a command), since that runs code from it"
    )
