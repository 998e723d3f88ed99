"""Model files for tests: small SB3 zips and ONNX graphs, and changed copies of them."""

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from sb3_contrib import MaskablePPO

from algorithms.games import Game
from algorithms.policies import load_policy
from algorithms.policies.network import Network
from algorithms.policies.sources import game_of, open_source
from algorithms.support.arrays import Float64Array


class Spaces(gymnasium.Env):
    """The spaces of a game, which are all that an untrained model needs."""

    def __init__(self, size: int = 10, actions: int = 3) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 1, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(actions)


def save_model(
    path: Path,
    policy: Any = "MlpPolicy",
    algorithm: Any = MaskablePPO,
    *,
    spaces: Spaces | None = None,
    game: str | None = None,
    **kwargs: Any,
) -> Any:
    """Save an untrained model with the policy's `kwargs`, and return it."""
    made = algorithm(policy, spaces or Spaces(), policy_kwargs=kwargs, device="cpu", seed=1)
    with torch.no_grad():  # far from uniform, so that a mistake shows
        for weight in made.policy.action_net.parameters():
            weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    if game is not None:
        made.game = game
    made.save(path)
    return made


def load_model(
    path: Path, game: Game | None = None, *, trust: bool = False
) -> tuple[Network, Game]:
    """The network in a file, and its game."""
    source = open_source(str(path), trust=trust)
    found = game_of([source], game)
    return source.network(found), found


def played(path: Path, game: Game | None = None, *, trust: bool = False) -> Float64Array:
    """The policy in a file, `(I, A)`."""
    return load_policy(path, game, trust=trust).table


@cache
def sound_zip() -> bytes:
    """A small model of Kuhn poker."""
    with TemporaryDirectory() as folder:
        save_model(Path(folder) / "model.zip", net_arch=[4])
        return (Path(folder) / "model.zip").read_bytes()


def members(content: bytes) -> dict[str, bytes]:
    """The members of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(content: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip with these members."""
    with zipfile.ZipFile(made := io.BytesIO(), "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return made.getvalue()


def with_members(path: Path, **changes: bytes) -> Path:
    """The sound model with some members replaced; `policy` stands for `policy.pth`."""
    named = {name.replace("policy", "policy.pth"): data for name, data in changes.items()}
    path.write_bytes(zipped(members(sound_zip()) | named))
    return path


def with_data(path: Path, **changes: Any) -> Path:
    """The sound model with some entries of its JSON replaced."""
    data = json.loads(members(sound_zip())["data"]) | changes
    return with_members(path, data=json.dumps(data).encode())


def with_tensors(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The sound model with its state dict changed."""
    stored = torch.load(io.BytesIO(members(sound_zip())["policy.pth"]), weights_only=True)
    torch.save(change(stored), file := io.BytesIO())
    return with_members(path, policy=file.getvalue())


def with_pickle(path: Path, pickled: bytes) -> Path:
    """The sound model with another pickle in its policy.pth."""
    inner = members(members(sound_zip())["policy.pth"])
    name = next(name for name in inner if name.endswith("data.pkl"))
    return with_members(path, policy=zipped(inner | {name: pickled}))


def graph(
    path: Path,
    *steps: Any,
    constants: Any = (),
    inputs: Any = (),
    outputs: Any = ("out",),
    batch: str | int = "n",
    size: int = 10,
    actions: int = 3,
    **properties: str,
) -> Path:
    """An ONNX file: `raw = observation @ w`, then `steps` up to `outputs`."""
    weights = np.linspace(-1, 1, size * actions, dtype=np.float32)
    given = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [batch, size])]
    first = helper.make_node("MatMul", ["observation", "w"], ["raw"])
    made = helper.make_model(
        helper.make_graph(
            [first, *(steps or [helper.make_node("Identity", ["raw"], ["out"])])],
            "policy",
            [*given, *inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, None]) for n in outputs],
            [helper.make_tensor("w", TensorProto.FLOAT, (size, actions), weights), *constants],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    helper.set_model_props(made, properties)
    onnx.save(made, path)
    return path


def loop(path: Path, operator: str, trips: int) -> Path:
    """An ONNX file with a Loop whose body applies `operator` to `x` and `x`."""
    attributes = {"axis": 0} if operator == "Concat" else {}
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes"]),
            helper.make_node(operator, ["x", "x"], ["y"], **attributes),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", 3]),
        ],
        [
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k", 3]),
        ],
    )
    constants = [
        helper.make_tensor("trips", TensorProto.INT64, (), [trips]),
        helper.make_tensor("yes", TensorProto.BOOL, (), [True]),
    ]
    step = helper.make_node("Loop", ["trips", "yes", "raw"], ["out"], body=body)
    return graph(path, step, constants=constants)
