"""Write networks as ONNX files that are checked against torch; `docs/onnx.md` has the contract."""

import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from torch import nn

from algorithms.games import Game
from algorithms.policies.network import Network, as_network
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float32Array, Int8Array
from algorithms.support.errors import UsageError
from algorithms.support.files import replacing
from kuhn_bridge import __version__

Message: TypeAlias = Any  # of protobuf, which has no types
OPSET = 18
AGREEMENT = 1e-6  # between torch's probabilities and onnxruntime's
SINGLES = 100  # information sets, at most, that are also run one by one


class Inputs(NamedTuple):
    """What an exported file is given: a batch of n decisions."""

    observation: Float32Array  # (n, size)
    action_mask: Int8Array  # (n, A)


class Outputs(NamedTuple):
    """What an exported file answers, each float32 `(n, A)`."""

    probabilities: Float32Array  # 0 for illegal actions
    logits: Float32Array


def example_inputs(game: Game, size: int | None = None) -> Inputs:
    """Inputs of a network of input `size`: all information sets, or random without a tree."""
    examples = game.example_inputs(size)
    return Inputs(examples.observations, examples.legal.astype(np.int8))


def export(network: Network | Callable[[Any], Any], game: Game, out: str | Path) -> float:
    """Write the ONNX file of a torch module; the largest difference of probabilities to torch's.

    `out` is replaced only by a file that agrees with the module on `example_inputs`.
    """
    if not isinstance(network, Network):
        network = as_network(network, game)
    if network.module is None:
        raise UsageError("only torch modules can be exported")
    module = _Masked(network.module.eval())
    examples = game.example_inputs(network.input_size)
    inputs = Inputs(examples.observations, examples.legal.astype(np.int8))
    with torch.no_grad():
        of_torch = module(torch.tensor(inputs.observation), torch.tensor(inputs.action_mask))
    expected = Outputs(*(tensor.numpy() for tensor in of_torch))
    # Rounding errors grow with the logits, and on random inputs these can be any size.
    tolerance = AGREEMENT if examples.every else AGREEMENT * _scale(expected.logits)
    model = _to_onnx(module, inputs)
    _describe(model, network, game)
    onnx.checker.check_model(model, full_check=True)
    with replacing(out) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))
        return disagreement(expected, run_onnx(temporary, inputs), inputs, tolerance=tolerance)


def run_onnx(path: str | Path, inputs: Inputs) -> Outputs:
    """The outputs of an exported file.

    An error if a row's outputs depend on the other rows of the batch.
    """
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = Outputs(*session.run(Outputs._fields, inputs._asdict()))
    rows = np.unique(np.linspace(0, len(inputs.observation) - 1, SINGLES).astype(int))
    for row in rows.tolist():
        one_row = {name: array[[row]] for name, array in inputs._asdict().items()}
        alone = session.run(Outputs._fields, one_row)
        for single, batch in zip(alone, outputs, strict=True):
            if np.abs(single[0] - batch[row]).max() > 10 * AGREEMENT * _scale(batch):
                raise UsageError(f"{path}: row {row} has another output alone than in a batch")
    return outputs


def disagreement(
    expected: Outputs, exported: Outputs, inputs: Inputs, *, tolerance: float = AGREEMENT
) -> float:
    """The largest difference between torch's and onnxruntime's probabilities.

    An error if that is `tolerance` or more, or if the logits differ relative to their size.
    """
    illegal = exported.probabilities[inputs.action_mask == 0]
    if illegal.any():
        raise UsageError(f"the exported file gives illegal actions up to {illegal.max():.3g}")
    difference = float(np.abs(expected.probabilities - exported.probabilities).max())
    if not difference < tolerance:
        raise UsageError(f"the exported file differs from torch by {difference:.3g}")
    of_logits = np.abs(exported.logits - expected.logits).max() / _scale(expected.logits)
    if not of_logits < 10 * AGREEMENT:
        raise UsageError("the exported file has other logits than torch")
    return difference


def _scale(values: npt.NDArray[Any]) -> float:
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


def _to_onnx(module: _Masked, inputs: Inputs) -> onnx.ModelProto:
    """The ONNX model of a module, without the exporter's notes about source files."""
    batch = torch.export.Dim("N")
    two_rows = tuple(torch.tensor(array[:2]) for array in inputs)
    # Its warnings are about its internals and about libraries that are not used here.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        program: Any = torch.onnx.export(
            module,
            two_rows,
            dynamo=True,
            opset_version=OPSET,
            external_data=False,
            input_names=Inputs._fields,
            output_names=Outputs._fields,
            dynamic_shapes=({0: batch}, {0: batch}),
            verbose=False,
        )
    model: onnx.ModelProto = program.model_proto
    _remove_notes(model)
    return model


def _describe(model: onnx.ModelProto, network: Network, game: Game) -> None:
    """Write into a model what made it, its game and, where that is quick, its NashConv."""
    model.producer_name = "kuhn-bridge"
    model.producer_version = __version__
    model.graph.name = "policy"
    properties = {"name": "kuhn-bridge-policy", "version": __version__, "game": game.name}
    names = [game.action_name(action) for action in range(game.num_actions)]
    if all(isinstance(name, str) for name in names):
        properties["actions"] = json.dumps({name: action for action, name in enumerate(names)})
    if game.measures_at_once:
        properties["nash_conv"] = repr(float(Policy(game, network=network).nash_conv()))
    onnx.helper.set_model_props(model, properties)


def _remove_notes(message: Message) -> None:
    """Remove the exporter's comments from a message and from all messages in it."""
    for field, value in message.ListFields():
        if field.name in {"doc_string", "metadata_props"}:
            message.ClearField(field.name)
        elif field.message_type:
            # One message, or a list of them.
            parts = [value] if hasattr(value, "ListFields") else value
            for part in parts:
                _remove_notes(part)
