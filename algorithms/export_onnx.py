"""`python -m algorithms.export_onnx model.zip`: a trained policy as one ONNX file, checked.

What the file promises is in `docs/onnx.md`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from algorithms.games import KUHN, Game, load_game
from algorithms.policies.answers import masked
from algorithms.policies.policy import Policy
from algorithms.support.command import EXIT_OK, Parser, run
from algorithms.support.errors import UsageError
from algorithms.support.files import replacing
from kuhn_bridge import Action, __version__

if TYPE_CHECKING:
    from torch import nn

OPSET = 18
AGREEMENT = 1e-6  # between torch's probabilities and onnxruntime's
SINGLES = 100  # information sets, at most, that are also run one by one
INPUTS = ("observation", "action_mask")
OUTPUTS = ("probabilities", "logits")

Arrays = dict[str, npt.NDArray[Any]]


def states(game: Game) -> Arrays:
    """The inputs of all information sets: float32 `(I, size)` and int8 `(I, A)`."""
    return dict(zip(INPUTS, (game.observations, game.tree.legal.astype(np.int8)), strict=True))


def export(network: nn.Module, game: Game, out: str | Path) -> tuple[Policy, float]:
    """Write the file; its policy as onnxruntime computes it, and its largest difference to torch.

    Args:
        network: float32 `(N, size)` observations of `game` -> `(N, A)` logits.
        game: whose observations and actions they are.
        out: replaced only by a file that agrees with `network` on all information sets.
    """
    policy = _masked(network.eval())
    wanted = _torch_outputs(policy, game)
    with replacing(out) as temporary:
        properties = _properties(_as_policy(game, wanted))
        proto = _clean(_to_proto(policy, game), properties)
        temporary.write_bytes(proto.SerializeToString(deterministic=True))
        got = run_onnx(temporary, game)
        difference = disagreement(wanted, got, game)
    return _as_policy(game, got), difference


def run_onnx(path: str | Path, game: Game) -> Arrays:
    """Both outputs of an exported file at all information sets, each float32 `(I, A)`.

    All at once and one by one must say the same, since the batch is dynamic.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = states(game)
    whole = session.run(OUTPUTS, inputs)
    rows = np.unique(np.linspace(0, len(game.tree.keys) - 1, SINGLES).astype(int))
    for row in rows.tolist():
        alone = session.run(OUTPUTS, {name: array[[row]] for name, array in inputs.items()})
        for one, many in zip(alone, whole, strict=True):
            if not np.allclose(one[0], many[row], 10 * AGREEMENT, AGREEMENT):
                raise UsageError(f"{path}: alone and among others, row {row} answers differently")
    return dict(zip(OUTPUTS, whole, strict=True))


def disagreement(wanted: Arrays, got: Arrays, game: Game) -> float:
    """The largest difference between two policies' probabilities; an error if they differ.

    Logits may be of any size, so they are held to the tolerance relative to that.
    """
    illegal = got["probabilities"][~game.tree.legal]
    if illegal.any():
        raise UsageError(f"the exported file gives illegal actions up to {illegal.max():.3g}")
    difference = float(np.abs(wanted["probabilities"] - got["probabilities"]).max())
    if not difference < AGREEMENT:
        raise UsageError(f"the exported file differs from torch by {difference:.3g}")
    if not np.allclose(got["logits"], wanted["logits"], rtol=10 * AGREEMENT, atol=AGREEMENT):
        raise UsageError("the exported file has other logits than torch")
    return difference


def main(argv: Sequence[str] | None = None) -> int:
    """Export, check, report."""
    parser = Parser(prog="python -m algorithms.export_onnx", description=main.__doc__)
    parser.add_argument("model", help="a MaskablePPO or PPO zip, e.g. model.zip")
    parser.add_argument("--out", default="policy.onnx", help="the file to write (%(default)s)")
    parser.add_argument("--game", metavar="NAME", help=f"the model's own, or {KUHN}")
    parser.add_argument("--json", action="store_true", help="print the policy as JSON")
    parser.add_argument(
        "--trust", action="store_true", help="let SB3 unpickle the zip, which can run its code"
    )
    options = parser.parse_args(argv)
    return run(lambda: _run(options), parser.prog)


def _run(options: argparse.Namespace) -> int:
    from algorithms.policies.sb3 import load_model

    game = load_game(options.game) if options.game else None
    model = load_model(options.model, game=game, trust=options.trust)
    policy, difference = export(model.network, model.game, options.out)
    if options.json:
        print(json.dumps(policy.to_document()))
        return EXIT_OK
    print(policy if model.game.name == KUHN else model.game)
    print(
        f"{options.out}: {Path(options.out).stat().st_size:,} bytes, "
        f"NashConv {policy.nash_conv():.6f}, differs from torch by {difference:.1e}"
    )
    return EXIT_OK


def _as_policy(game: Game, outputs: Arrays) -> Policy:
    return Policy(game, masked(outputs["probabilities"].astype(np.float64), game.tree.legal))


def _masked(network: nn.Module) -> nn.Module:
    """The network with the mask: `(observation, action_mask) -> (probabilities, logits)`."""
    import torch

    class Masked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(
            self, observation: torch.Tensor, action_mask: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            logits = self.network(observation)
            legal = action_mask.to(torch.bool)
            lowest = torch.finfo(logits.dtype).min
            shares = torch.softmax(torch.where(legal, logits, lowest), dim=1)
            return torch.where(legal, shares, 0.0), logits

    return Masked()


def _torch_outputs(policy: nn.Module, game: Game) -> Arrays:
    import torch

    with torch.no_grad():
        outputs = policy(*(torch.tensor(array) for array in states(game).values()))
    return {name: tensor.numpy() for name, tensor in zip(OUTPUTS, outputs, strict=True)}


def _to_proto(policy: nn.Module, game: Game) -> Any:
    import torch

    batch = torch.export.Dim("N")
    example = tuple(torch.tensor(array[:2]) for array in states(game).values())
    with _quiet():
        program = torch.onnx.export(
            policy,
            example,
            dynamo=True,
            opset_version=OPSET,
            external_data=False,
            input_names=INPUTS,
            output_names=OUTPUTS,
            dynamic_shapes=({0: batch}, {0: batch}),
            verbose=False,
        )
    return program.model_proto if program else None


def _properties(policy: Policy) -> dict[str, str]:
    actions = {"actions": json.dumps({action.name: action.value for action in Action})}
    return {
        "name": "kuhn-bridge-policy",
        "version": __version__,
        "game": policy.game.name,
        **(actions if policy.game.name == KUHN else {}),
        "nash_conv": repr(float(policy.nash_conv())),
    }


def _clean(proto: Any, properties: dict[str, str]) -> Any:
    """The model without the exporter's traces of source files, and with our properties."""
    import onnx

    _strip(proto)
    proto.producer_name, proto.producer_version = "kuhn-bridge", __version__
    proto.graph.name = "policy"
    onnx.helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _strip(message: Any) -> None:
    for field, value in message.ListFields():
        if field.name in {"doc_string", "metadata_props"}:
            message.ClearField(field.name)
        elif field.message_type:
            for part in (value,) if hasattr(value, "ListFields") else value:
                _strip(part)


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch's exporter warns about its own internals and missing libraries we do not use."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


if __name__ == "__main__":
    sys.exit(main())
