"""Trained models as policies, without running what a stranger put into the file.

SB3's own loader unpickles. Here the JSON of a zip is only read, its tensors are loaded with
`weights_only=True`, and the network is rebuilt from both; what cannot be rebuilt so is refused.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from algorithms.features import CardTimesHistory
from kuhn_bridge.encoding import OBSERVATION_SIZE, encode
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import LEGAL, Probabilities, TabularPolicy
from kuhn_bridge.rules import DECISIONS, Action, Card

OBSERVATIONS = np.stack([encode(card, letters) for letters in DECISIONS for card in Card])
MAX_BYTES = 256 * 2**20  # of one unpacked file: no honest policy for this game comes near

Tensors: TypeAlias = dict[str, torch.Tensor]

_POLICY_MODULES = {
    "algorithms.networks",
    "sb3_contrib.common.maskable.policies",
    "stable_baselines3.common.policies",
}
_FLATTEN = "stable_baselines3.common.torch_layers.FlattenExtractor"
_CARD_TIMES_HISTORY = "algorithms.features.CardTimesHistory"
_TANH = "torch.nn.modules.activation.Tanh"
_HIDDEN = "mlp_extractor.policy_net."
_PARTS = (_HIDDEN, "mlp_extractor.value_net.", "action_net.", "value_net.")


def load_policy(
    path: str | Path, *, trust: bool = False, deterministic: bool = False
) -> TabularPolicy:
    """The 12 rows that a model (`.zip` of SB3, or `.onnx`) plays; `deterministic` takes argmax."""
    path = Path(path)
    if path.suffix == ".onnx":
        table = _onnx_probabilities(path)
    else:
        table = network_probabilities(load_network(path, trust=trust))
    policy = TabularPolicy(table)
    return policy.likeliest() if deterministic else policy


def load_network(path: str | Path, *, trust: bool = False) -> nn.Module:
    """A saved model's actor: float32 `(N, 10)` observations -> `(N, 3)` logits."""
    path = Path(path)
    network = _trusted(path) if trust else _rebuilt(path)
    if not all(tensor.isfinite().all() for tensor in network.state_dict().values()):
        raise PolicyError(f"{path}: the network has weights that are not finite numbers")
    return network.eval()


def actor_of(policy: Any) -> nn.Module:
    """The part of an SB3 policy that plays: `(N, 10)` -> `(N, 3)` logits, sharing its weights."""
    parts = (policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net)
    return nn.Sequential(*parts)


def network_probabilities(network: nn.Module) -> Probabilities:
    """A network's policy, float64 `(12, 3)`: the softmax of its logits over the legal actions."""
    with torch.no_grad():
        logits: Probabilities = network(torch.as_tensor(OBSERVATIONS)).double().numpy()
    return _masked_softmax(logits)


def _masked_softmax(logits: Probabilities) -> Probabilities:
    weights = np.exp(logits - np.max(logits, axis=1, where=LEGAL, initial=-np.inf, keepdims=True))
    return _masked(weights)


def _masked(weights: Probabilities) -> Probabilities:
    legal = np.where(LEGAL, weights, 0)
    return np.asarray(legal / legal.sum(axis=1, keepdims=True))


def _rebuilt(path: Path) -> nn.Module:
    """The actor, from the JSON and the tensors of an SB3 zip alone."""
    data, tensors = _contents(path)
    space, actions = _entry(data, "observation_space"), _entry(data, "action_space")
    _require_game(path, space.get("_shape"), actions.get("n"))
    module = _entry(data, "policy_class").get("__module__")
    if module not in _POLICY_MODULES:
        raise _refusal(path, f"a policy class from {module!r}")
    if strange := [key for key in tensors if not key.startswith(_PARTS)]:
        raise _refusal(path, f"a network with parameters {', '.join(strange[:3])}")
    kwargs = _entry(data, "policy_kwargs")
    features = _features(path, str(kwargs.get("features_extractor_class", _FLATTEN)))
    activation = _activation(path, str(kwargs.get("activation_fn", _TANH)))
    try:
        network = nn.Sequential(features, _hidden(tensors, activation), _head(tensors))
        network_probabilities(network)
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError):
        raise _refusal(path, "a network whose layers do not follow from its tensors") from None
    return network


def _hidden(tensors: Tensors, activation: type[nn.Module]) -> nn.Module:
    """SB3's hidden layers: linear and activation in turn, as wide as their weights say."""
    own = {key.removeprefix(_HIDDEN): t for key, t in tensors.items() if key.startswith(_HIDDEN)}
    widths = [tensor.shape for tensor in own.values() if tensor.dim() == 2]
    layers = [m for out, size in widths for m in (nn.Linear(size, out), activation())]
    hidden = nn.Sequential(*layers)
    hidden.load_state_dict(own)
    return hidden


def _head(tensors: Tensors) -> nn.Module:
    """The last linear layer, to one logit for each action."""
    weight, bias = tensors["action_net.weight"], tensors["action_net.bias"]
    head = nn.Linear(weight.shape[1], len(Action))
    head.load_state_dict({"weight": weight, "bias": bias})
    return head


def _trusted(path: Path) -> nn.Module:
    """The actor of a model opened by SB3's own loader, which runs what the file says."""
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO

    reasons = []
    for algorithm in (MaskablePPO, PPO):
        try:
            policy = algorithm.load(path, device="cpu").policy
            break
        except Exception as error:  # a trusted file may fail in any way
            reasons.append(_first_line(error))
    else:
        raise PolicyError(f"{path}: SB3 cannot load it either: {'; '.join(reasons)}")
    _require_game(path, policy.observation_space.shape, getattr(policy.action_space, "n", None))
    return actor_of(policy)


def _contents(path: Path) -> tuple[dict[str, Any], Tensors]:
    """The JSON and the tensors of an SB3 zip, both read without running anything."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(_member(archive, "data"))
            file = io.BytesIO(_member(archive, "policy.pth"))
        tensors = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise PolicyError(f"{path}: {error.strerror}") from None
    except pickle.UnpicklingError:
        raise _refusal(path, "a policy.pth with more in it than tensors") from None
    except Exception as error:  # a broken file can fail anywhere
        raise PolicyError(f"{path}: not a whole SB3 model ({_first_line(error)})") from None
    maps = isinstance(data, dict) and isinstance(tensors, dict)
    if not maps or not all(isinstance(t, torch.Tensor) for t in tensors.values()):
        raise PolicyError(f"{path}: not an SB3 model: `data` or `policy.pth` is no map")
    return data, tensors


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    size = archive.getinfo(name).file_size
    if size > MAX_BYTES:
        raise ValueError(f"{name} would unpack to {size} bytes; at most {MAX_BYTES} are read")
    return archive.read(name)


def _entry(data: dict[str, Any], key: str) -> dict[str, Any]:
    """One entry of SB3's JSON as a map: what it says of a pickled object in plain text."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _require_game(path: Path, shape: Any, actions: Any) -> None:
    """Refuse a model whose spaces, as SB3 notes them, are not Kuhn poker's."""
    if shape not in ([OBSERVATION_SIZE], (OBSERVATION_SIZE,)) or str(actions) != f"{len(Action)}":
        raise PolicyError(
            f"{path}: a model for another game: observations {shape}, {actions} actions; "
            f"Kuhn poker has [{OBSERVATION_SIZE}] and {len(Action)}"
        )


def _features(path: Path, name: str) -> nn.Module:
    """The features extractor of that class name, among those that have no weights."""
    known: dict[str, type[nn.Module]] = {
        _FLATTEN: nn.Flatten,
        _CARD_TIMES_HISTORY: CardTimesHistory,
    }
    extractor = known.get(_class_name(name))
    if extractor is None:
        raise _refusal(path, f"the features extractor {name}")
    return extractor()


def _activation(path: Path, name: str) -> type[nn.Module]:
    found = re.fullmatch(r"torch\.nn\.modules\.activation\.(\w+)", _class_name(name))
    activation = getattr(nn, found[1], None) if found else None
    if activation is None:
        raise _refusal(path, f"the activation {name}")
    return activation  # type: ignore[no-any-return]  # found by name in torch.nn


def _class_name(text: str) -> str:
    """`<class 'a.B'>` -> `a.B`: SB3 notes classes as Python prints them."""
    return text.removeprefix("<class '").removesuffix("'>")


def _refusal(path: Path, what: str) -> PolicyError:
    return PolicyError(
        f"{path}: {what} cannot be rebuilt safely; "
        "trust the file (--trust) to load it with SB3, which runs code from it"
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def _onnx_probabilities(path: Path) -> Probabilities:
    """What an ONNX model plays: `[N, 10]` in, with or without a `[N, 3]` mask; `[N, 3]` out."""
    import onnxruntime

    try:
        content = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
        feeds = {i.name: _feed(path, i) for i in session.get_inputs()}
        outputs = dict(
            zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True)
        )
    except PolicyError:
        raise
    except Exception as error:  # onnxruntime's errors have no common base
        raise PolicyError(f"{path}: onnxruntime cannot run it ({_first_line(error)})") from None
    return _as_probabilities(path, outputs)


def _feed(path: Path, given: Any) -> Any:
    """What goes into one input of an ONNX model: observations or masks, by its width."""
    tables = {OBSERVATION_SIZE: OBSERVATIONS, len(Action): LEGAL}
    width = given.shape[-1] if len(given.shape) == 2 else None
    dtype = _ONNX_TYPES.get(given.type)
    if width not in tables or dtype is None:
        raise PolicyError(
            f"{path}: input {given.name!r} is {given.type} {given.shape}; an observation is "
            f"[N, {OBSERVATION_SIZE}], an action mask [N, {len(Action)}]"
        )
    return tables[width].astype(dtype)


_ONNX_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(bool)": np.bool_,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


def _as_probabilities(path: Path, outputs: dict[str, Any]) -> Probabilities:
    """The output called `probabilities`, or else the first of its shape, whatever it holds."""
    tables = {
        name: np.asarray(output, np.float64)
        for name, output in outputs.items()
        if np.shape(output) == LEGAL.shape
    }
    if not tables:
        raise PolicyError(f"{path}: no output is [N, {len(Action)}]; they are {', '.join(outputs)}")
    table = tables.get("probabilities", next(iter(tables.values())))
    if np.isnan(table).any():
        raise PolicyError(f"{path}: the model answers NaN")
    sums_to_one = (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4)
    return _masked(table) if sums_to_one else _masked_softmax(table)
