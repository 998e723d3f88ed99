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

import torch
from torch import nn

from algorithms.games import KUHN, Game
from algorithms.learning.features import CardTimesHistory
from algorithms.policies.policy import GamePolicy, require_game
from algorithms.policies.rows import OBSERVATIONS, masked_softmax, policy_in
from algorithms.support.errors import first_line
from kuhn_bridge.encoding import OBSERVATION_SIZE
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.policy import Probabilities
from kuhn_bridge.rules import Action

MAX_BYTES = 256 * 2**20  # of one unpacked file: no honest policy for this game comes near

Tensors: TypeAlias = dict[str, torch.Tensor]

_POLICY_MODULES = {
    "algorithms.networks",  # as version 0.1 called it
    "algorithms.learning.networks",
    "sb3_contrib.common.maskable.policies",
    "stable_baselines3.common.policies",
}
_FLATTEN = "stable_baselines3.common.torch_layers.FlattenExtractor"
_CARD_TIMES_HISTORY = "algorithms.learning.features.CardTimesHistory"
_CARD_TIMES_HISTORY_0_1 = "algorithms.features.CardTimesHistory"
_TANH = "torch.nn.modules.activation.Tanh"
_HIDDEN = "mlp_extractor.policy_net."
_PARTS = (_HIDDEN, "mlp_extractor.value_net.", "action_net.", "value_net.")


def load_policy(path: str | Path, *, game: Game | None = None, trust: bool = False) -> GamePolicy:
    """The policy that an SB3 model plays."""
    require_game(KUHN, game)
    policy = policy_in(path, network_probabilities(load_network(path, trust=trust)))
    return GamePolicy.from_kuhn(policy)


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
    return masked_softmax(logits)


def _rebuilt(path: Path) -> nn.Module:
    """The actor, from the JSON and the tensors of an SB3 zip alone."""
    data, tensors = _contents(path)
    space, actions = _entry(data, "observation_space"), _entry(data, "action_space")
    _require_game(path, space.get("_shape"), actions.get("n"))
    module = str(_entry(data, "policy_class").get("__module__"))
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
            reasons.append(first_line(error))
    else:
        raise PolicyError(f"{path}: SB3 cannot load it either: {'; '.join(reasons)}")
    _require_game(path, policy.observation_space.shape, getattr(policy.action_space, "n", None))
    actor = actor_of(policy)
    try:
        network_probabilities(actor)
    except Exception as error:
        raise PolicyError(f"{path}: its network cannot be run ({first_line(error)})") from None
    return actor


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
        raise PolicyError(f"{path}: not a whole SB3 model ({first_line(error)})") from None
    maps = isinstance(data, dict) and isinstance(tensors, dict)
    if not maps or not all(isinstance(k, str) and torch.is_tensor(t) for k, t in tensors.items()):
        raise PolicyError(f"{path}: not an SB3 model: `data` or `policy.pth` is no map")
    if sum(t.numel() * t.element_size() for t in tensors.values()) > MAX_BYTES:
        raise PolicyError(f"{path}: its tensors take more than {MAX_BYTES} bytes")
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
        _CARD_TIMES_HISTORY_0_1: CardTimesHistory,
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
