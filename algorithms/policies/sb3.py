"""The networks of SB3 models, rebuilt without running code from the file.

SB3's own loader unpickles. Here the network is rebuilt from the JSON and the tensors in the zip; a
model for which that is not enough is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from algorithms.policies.archive import NotOnlyTensorsError, Tensors, read_zip
from algorithms.policies.network import Network
from algorithms.support.arrays import BoolArray, Float32Array
from algorithms.support.errors import first_line
from kuhn_bridge.errors import PolicyError

_POLICY_MODULES = (
    "algorithms.",
    "sb3_contrib.common.maskable.policies",
    "stable_baselines3.common.policies",
)
_FLATTEN = "stable_baselines3.common.torch_layers.FlattenExtractor"
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    f"torch.nn.modules.activation.{name}": getattr(nn, name)
    for name in (
        *("Tanh", "ReLU", "LeakyReLU", "PReLU", "ReLU6", "ELU", "CELU", "SELU", "GELU", "SiLU"),
        *("Mish", "Sigmoid", "Softplus", "Softsign", "Hardtanh", "Hardswish"),
    )
}
_TANH = "torch.nn.modules.activation.Tanh"  # SB3's default
_HIDDEN = "mlp_extractor.policy_net."
_PARTS = (_HIDDEN, "mlp_extractor.value_net.", "action_net.", "value_net.")


def read_sb3(path: Path, *, trust: bool = False) -> Network:
    """The actor of a MaskablePPO or PPO zip; errors do not name the file."""
    network = _trusted(path) if trust else _rebuilt(path)
    if not all(tensor.isfinite().all() for tensor in network.module.state_dict().values()):
        raise PolicyError("the network has weights that are not finite")
    return network


def actor_of(policy: Any) -> nn.Module:
    """The part of an SB3 policy that plays: `(N, size)` -> `(N, A)` logits, sharing its weights."""
    parts = (policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net)
    return nn.Sequential(*parts)


def torch_network(
    module: nn.Module, input_size: int, num_actions: int, *, game: Any = None
) -> Network:
    """The `Network` of a torch module from float32 `(n, input_size)` to logits."""
    module.eval()

    def evaluate(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        with torch.no_grad():
            return module(torch.from_numpy(inputs)).double().numpy()  # type: ignore[no-any-return]

    return Network(evaluate, input_size, num_actions, game=game, module=module)


def _rebuilt(path: Path) -> Network:
    """The actor, from the JSON and the tensors of an SB3 zip."""
    try:
        data, tensors = read_zip(path)
    except NotOnlyTensorsError as error:
        raise _needs_trust(f"a policy.pth that is not only tensors ({error})") from None
    module = str(_entry(data, "policy_class").get("__module__"))[:100]
    kwargs = _entry(data, "policy_kwargs")
    extractor = _class_name(kwargs.get("features_extractor_class", _FLATTEN))
    activation = _class_name(kwargs.get("activation_fn", _TANH))
    if not module.startswith(_POLICY_MODULES):
        raise _needs_trust(f"a policy class from {module!r}")
    if extractor != _FLATTEN:
        raise _needs_trust(f"the features extractor {extractor}")
    if activation not in _ACTIVATIONS:
        raise _needs_trust(f"the activation {activation}")
    if other := [key for key in tensors if not key.startswith(_PARTS)]:
        raise _needs_trust(f"a network with parameters {', '.join(other[:3])[:200]}")
    try:
        network = _actor(tensors, _ACTIVATIONS[activation], game=data.get("game"))
        network.module(torch.zeros(1, network.input_size))
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError):
        raise _needs_trust("a network whose layers do not follow from its tensors") from None
    spaces = _entry(data, "observation_space").get("_shape"), _entry(data, "action_space").get("n")
    if spaces[0] != [network.input_size] or str(spaces[1])[:20] != str(network.num_actions):
        raise _needs_trust("a network whose layers do not follow from its spaces")
    return network


def _actor(tensors: Tensors, activation: type[nn.Module], *, game: Any) -> Network:
    """Linear layers and activations in turn, as wide as their weights, and a last linear layer."""
    hidden = {k.removeprefix(_HIDDEN): t for k, t in tensors.items() if k.startswith(_HIDDEN)}
    head = {name: tensors[f"action_net.{name}"] for name in ("weight", "bias")}
    widths = [tensor.shape for tensor in hidden.values() if tensor.dim() == 2]
    actions, features = head["weight"].shape
    if not all(tensor.numel() for tensor in tensors.values()):
        raise ValueError("a layer without units")
    with torch.device("meta"):  # no random weights: they are replaced below
        layers = [m for out, size in widths for m in (nn.Linear(size, out), activation())]
        last = nn.Linear(features, actions)
    nn.Sequential(*layers).load_state_dict(hidden, assign=True)
    last.load_state_dict(head, assign=True)
    size = widths[0][1] if widths else features
    return torch_network(nn.Sequential(nn.Flatten(), *layers, last), size, actions, game=game)


def _trusted(path: Path) -> Network:
    """The actor of a model opened by SB3's own loader, which runs code from the file."""
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO

    reasons = []
    for algorithm in (MaskablePPO, PPO):
        try:
            model: Any = algorithm.load(path, device="cpu")
            size, actions = int(model.observation_space.shape[0]), int(model.action_space.n)
            actor = actor_of(model.policy)
            actor(torch.zeros(1, size))
            return torch_network(actor, size, actions, game=getattr(model, "game", None))
        except Exception as error:  # a trusted file may fail in any way
            reasons.append(first_line(error))
    raise PolicyError(f"SB3 cannot load it either: {'; '.join(reasons)}")


def _entry(data: dict[str, Any], key: str) -> dict[str, Any]:
    """One entry of SB3's JSON as a map: the plain-text summary of a pickled object."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _class_name(text: Any) -> str:
    """`a.B` for the `<class 'a.B'>` that SB3 writes."""
    return str(text)[:100].removeprefix("<class '").removesuffix("'>")


def _needs_trust(what: str) -> PolicyError:
    return PolicyError(
        f"{what} cannot be rebuilt from JSON and tensors alone; SB3 can load it if you trust the "
        "file, since that runs code from it"
    )
