"""Trained models as policies, without running code from the file.

SB3's own loader unpickles. Here `archive` reads the JSON and the tensors of a zip, and the network
is rebuilt from both; what cannot be rebuilt so is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from algorithms.games import Game, kuhn
from algorithms.policies.answers import game_in, masked_softmax, policy_in
from algorithms.policies.archive import MoreThanTensorsError, read_model
from algorithms.policies.features import CardTimesHistory
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import first_line
from kuhn_bridge.errors import PolicyError, short_repr

MAX_LAYERS = 64
BATCH = 4_096  # information sets shown to a network at a time

Tensors: TypeAlias = dict[str, torch.Tensor]

_POLICY_MODULES = {
    "algorithms.networks",  # as version 0.1 called it
    "algorithms.learning.networks",
    "sb3_contrib.common.maskable.policies",
    "stable_baselines3.common.policies",
}
_FEATURES: dict[str, type[nn.Module]] = {
    "stable_baselines3.common.torch_layers.FlattenExtractor": nn.Flatten,
    "algorithms.policies.features.CardTimesHistory": CardTimesHistory,
    "algorithms.features.CardTimesHistory": CardTimesHistory,  # as version 0.1 called it
}
_FLATTEN = next(iter(_FEATURES))
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    f"torch.nn.modules.activation.{activation.__name__}": activation
    for activation in (
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
}
_TANH = next(iter(_ACTIVATIONS))
_HIDDEN = "mlp_extractor.policy_net."
_PARTS = (_HIDDEN, "mlp_extractor.value_net.", "action_net.", "value_net.")


class Model(NamedTuple):
    """A saved model's actor, float32 `(N, size)` observations -> `(N, A)` logits, and its game."""

    game: Game
    network: nn.Module


def load_policy(path: str | Path, *, game: Game | None = None, trust: bool = False) -> Policy:
    """What an SB3 model plays, at every information set of its game."""
    model = load_model(path, game=game, trust=trust)
    return policy_in(path, model.game, network_probabilities(model.network, model.game))


def load_model(path: str | Path, *, game: Game | None = None, trust: bool = False) -> Model:
    """A saved model; `game` is the one it must be of, or is taken to be of if it names none."""
    path = Path(path)
    model = _trusted(path, game) if trust else _rebuilt(path, game)
    if not all(tensor.isfinite().all() for tensor in model.network.state_dict().values()):
        raise PolicyError(f"{path}: the network has weights that are not finite numbers")
    model.network.eval()
    return model


def actor_of(policy: Any) -> nn.Module:
    """The part of an SB3 policy that plays: `(N, size)` -> `(N, A)` logits, sharing its weights."""
    parts = (policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net)
    return nn.Sequential(*parts)


def network_probabilities(network: nn.Module, game: Game | None = None) -> Float64Array:
    """A network's policy, float64 `(I, A)`: the softmax of its logits over the legal actions."""
    game = game or kuhn()
    seen = torch.as_tensor(game.observations.copy())
    with torch.no_grad():
        logits = torch.cat([network(part) for part in torch.split(seen, BATCH)])
    return masked_softmax(logits.double().numpy(), game.tree.legal)


def _rebuilt(path: Path, wanted: Game | None) -> Model:
    """The actor, from the JSON and the tensors of an SB3 zip alone."""
    try:
        data, parameters = read_model(path)
    except MoreThanTensorsError:
        raise _refusal(path, "a policy.pth with more in it than tensors") from None
    game = game_in(path, data.get("game"), wanted)
    space, actions = _entry(data, "observation_space"), _entry(data, "action_space")
    _require_shapes(path, game, space.get("_shape"), actions.get("n"))
    module = str(_entry(data, "policy_class").get("__module__"))
    if module not in _POLICY_MODULES:
        raise _refusal(path, f"a policy class from {module!r}")
    if strange := [key for key in parameters if not key.startswith(_PARTS)]:
        raise _refusal(path, f"a network with parameters {', '.join(strange[:3])}")
    if not all(array.size for array in parameters.values()):
        raise _refusal(path, "a network with a layer of no units")
    if len(parameters) > 4 * MAX_LAYERS:
        raise _refusal(path, f"a network of more than {MAX_LAYERS} layers")
    kwargs = _entry(data, "policy_kwargs")
    features = _known(path, _FEATURES, kwargs.get("features_extractor_class", _FLATTEN))
    activation = _known(path, _ACTIVATIONS, kwargs.get("activation_fn", _TANH))
    tensors = {key: torch.from_numpy(array) for key, array in parameters.items()}
    try:
        parts = (features(), _hidden(tensors, activation), _head(tensors, game))
        network = nn.Sequential(*parts)
        network(torch.as_tensor(game.observations[:1].copy()))
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError):
        raise _refusal(path, "a network whose layers do not follow from its tensors") from None
    return Model(game, network)


def _hidden(tensors: Tensors, activation: type[nn.Module]) -> nn.Module:
    """SB3's hidden layers: linear and activation in turn, as wide as their weights say."""
    own = {key.removeprefix(_HIDDEN): t for key, t in tensors.items() if key.startswith(_HIDDEN)}
    widths = [tensor.shape for tensor in own.values() if tensor.dim() == 2]
    with torch.device("meta"):  # the weights are given: none need to be drawn
        layers = [m for out, size in widths for m in (nn.Linear(size, out), activation())]
    hidden = nn.Sequential(*layers)
    hidden.load_state_dict(own, assign=True)
    return hidden


def _head(tensors: Tensors, game: Game) -> nn.Module:
    """The last linear layer, to one logit for each action."""
    weight, bias = tensors["action_net.weight"], tensors["action_net.bias"]
    with torch.device("meta"):
        head = nn.Linear(weight.shape[1], game.tree.legal.shape[1])
    head.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    return head


def _trusted(path: Path, wanted: Game | None) -> Model:
    """The actor of a model opened by SB3's own loader, which runs what the file says."""
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO

    reasons = []
    for algorithm in (MaskablePPO, PPO):
        try:
            model = algorithm.load(path, device="cpu")
            policy = model.policy
            break
        except Exception as error:  # a trusted file may fail in any way
            reasons.append(first_line(error))
    else:
        raise PolicyError(f"{path}: SB3 cannot load it either: {'; '.join(reasons)}")
    game = game_in(path, getattr(model, "game", None), wanted)
    actions = getattr(policy.action_space, "n", None)
    _require_shapes(path, game, policy.observation_space.shape, actions)
    actor = actor_of(policy)
    try:
        network_probabilities(actor, game)
    except Exception as error:
        raise PolicyError(f"{path}: its network cannot be run ({first_line(error)})") from None
    return Model(game, actor)


def _entry(data: dict[str, Any], key: str) -> dict[str, Any]:
    """One entry of SB3's JSON as a map: what it says of a pickled object in plain text."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _require_shapes(path: Path, game: Game, shape: Any, actions: Any) -> None:
    """Refuse a model whose spaces, as SB3 notes them, are not the game's."""
    size, count = game.observations.shape[1], game.tree.legal.shape[1]
    if shape not in ([size], (size,)) or str(actions)[:20] != f"{count}":
        raise PolicyError(
            f"{path}: a model for another game: observations {short_repr(shape)}, "
            f"{short_repr(actions)} actions; {game.name} has [{size}] and {count}"
        )


def _known(path: Path, table: dict[str, type[nn.Module]], text: Any) -> type[nn.Module]:
    """The class that SB3 notes as Python prints it, `<class 'a.B'>`, if it is on the list."""
    found = table.get(str(text).removeprefix("<class '").removesuffix("'>"))
    if found is None:
        raise _refusal(path, str(text)[:100])
    return found


def _refusal(path: Path, what: str) -> PolicyError:
    return PolicyError(
        f"{path}: {what} cannot be rebuilt safely; "
        "trust the file (--trust) to load it with SB3, which runs code from it"
    )
