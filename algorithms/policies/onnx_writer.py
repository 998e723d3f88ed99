"""Write networks as ONNX files that are checked against torch; `docs/onnx.md` has the contract."""

import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from algorithms.games import KUHN, Game
from algorithms.policies.network import Network, as_network
from algorithms.policies.policy import Policy
from algorithms.support.errors import UsageError
from algorithms.support.files import replacing
from kuhn_bridge import Action, __version__

OPSET = 18
AGREEMENT = 1e-6  # between torch's probabilities and onnxruntime's
SINGLES = 100  # information sets, at most, that are also run one by one
RANDOM_INPUTS = 1_000  # on which a file is checked if the game has no tree
INPUTS = ("observation", "action_mask")
OUTPUTS = ("probabilities", "logits")

Arrays = dict[str, Any]  # numpy arrays by the names of inputs or outputs


def example_inputs(game: Game, size: int | None = None) -> Arrays:
    """Inputs of a network of input `size`: float32 `(n, size)` and int8 masks `(n, A)`.

    They are those of all information sets, or random ones if the game does not fit a tree.
    """
    if game.fits_tree:
        observations, legal = game.network_inputs(size), game.tree.legal
    else:
        random = np.random.default_rng(0)
        size = size or game.observation_size + game.num_players
        observations = random.integers(0, 2, (RANDOM_INPUTS, size)).astype(np.float32)
        legal = random.random((RANDOM_INPUTS, game.num_actions)) < 0.5
        legal[:, 0] |= ~legal.any(axis=1)
    return dict(zip(INPUTS, (observations, legal.astype(np.int8)), strict=True))


def export(network: Network | Callable[[Any], Any], game: Game, out: str | Path) -> float:
    """Write the ONNX file of a torch module; the largest difference of probabilities to torch's.

    `out` is replaced only by a file that agrees with the module on `example_inputs`.
    """
    found = network if isinstance(network, Network) else as_network(network, game)
    if found.module is None:
        raise UsageError("only torch modules can be exported")
    inputs, module = example_inputs(game, found.input_size), _Masked(found.module.eval())
    tensors = [torch.tensor(array) for array in inputs.values()]
    with replacing(out) as temporary:
        proto = _to_proto(module, tensors)
        proto.producer_name, proto.producer_version = "kuhn-bridge", __version__
        proto.graph.name = "policy"
        properties = {"name": "kuhn-bridge-policy", "version": __version__, "game": game.name}
        if game.name == KUHN:
            properties["actions"] = json.dumps({action.name: action.value for action in Action})
        if game.fits_tree:
            properties["nash_conv"] = repr(float(Policy(game, network=found).nash_conv()))
        onnx.helper.set_model_props(proto, properties)
        onnx.checker.check_model(proto, full_check=True)
        temporary.write_bytes(proto.SerializeToString(deterministic=True))
        with torch.no_grad():
            expected = {n: x.numpy() for n, x in zip(OUTPUTS, module(*tensors), strict=True)}
        # Rounding errors grow with the logits, and on random inputs these can be any size.
        tolerance = AGREEMENT if game.fits_tree else AGREEMENT * _scale(expected["logits"])
        return disagreement(expected, run_onnx(temporary, inputs), inputs, tolerance=tolerance)


def run_onnx(path: str | Path, inputs: Arrays) -> Arrays:
    """Both outputs of an exported file, each float32 `(n, A)`.

    An error if a row's outputs depend on the other rows of the batch.
    """
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = session.run(OUTPUTS, inputs)
    rows = np.unique(np.linspace(0, len(inputs["observation"]) - 1, SINGLES).astype(int))
    for row in rows.tolist():
        single = session.run(OUTPUTS, {name: array[[row]] for name, array in inputs.items()})
        for one, many in zip(single, outputs, strict=True):
            if np.abs(one[0] - many[row]).max() > 10 * AGREEMENT * _scale(many):
                raise UsageError(f"{path}: row {row} has another output alone than in a batch")
    return dict(zip(OUTPUTS, outputs, strict=True))


def disagreement(
    expected: Arrays, found: Arrays, inputs: Arrays, *, tolerance: float = AGREEMENT
) -> float:
    """The largest difference between torch's and onnxruntime's probabilities.

    An error if that is `tolerance` or more, or if the logits differ relative to their size.
    """
    illegal = found["probabilities"][inputs["action_mask"] == 0]
    if illegal.any():
        raise UsageError(f"the exported file gives illegal actions up to {illegal.max():.3g}")
    difference = float(np.abs(expected["probabilities"] - found["probabilities"]).max())
    if not difference < tolerance:
        raise UsageError(f"the exported file differs from torch by {difference:.3g}")
    logits = np.abs(found["logits"] - expected["logits"]).max() / _scale(expected["logits"])
    if not logits < 10 * AGREEMENT:
        raise UsageError("the exported file has other logits than torch")
    return difference


def _scale(values: Any) -> float:
    """The largest magnitude, or 1 if that is smaller."""
    return max(1.0, float(np.abs(values).max()))


class _Masked(nn.Module):
    """A network with the mask: `(observation, action_mask) -> (probabilities, logits)`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, observation: torch.Tensor, action_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Probabilities `(N, A)`, 0 for illegal actions, and logits `(N, A)`."""
        logits = self.network(observation)
        legal = action_mask.to(torch.bool)
        lowest = torch.finfo(logits.dtype).min
        probabilities = torch.softmax(torch.where(legal, logits, lowest), dim=1)
        return torch.where(legal, probabilities, 0.0), logits


def _to_proto(module: nn.Module, tensors: list[torch.Tensor]) -> Any:
    """The ONNX model of a module, without the exporter's notes about source files."""
    batch = torch.export.Dim("N")
    # Its warnings are about its internals and about libraries that are not used here.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        program: Any = torch.onnx.export(
            module,
            tuple(tensor[:2] for tensor in tensors),
            dynamo=True,
            opset_version=OPSET,
            external_data=False,
            input_names=INPUTS,
            output_names=OUTPUTS,
            dynamic_shapes=({0: batch}, {0: batch}),
            verbose=False,
        )
    return _stripped(program.model_proto)


def _stripped(message: Any) -> Any:
    for field, value in message.ListFields():
        if field.name in {"doc_string", "metadata_props"}:
            message.ClearField(field.name)
        elif field.message_type:
            for part in (value,) if hasattr(value, "ListFields") else value:
                _stripped(part)
    return message
