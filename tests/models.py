"""Model files for tests: small SB3 zips and ONNX graphs, and changed copies of them."""

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from sb3_contrib import MaskablePPO

from algorithms.policies import load_policy
from algorithms.policies.load import game_of, open_source


class Spaces(gymnasium.Env):
    """The spaces of a game, which are all that an untrained model needs."""

    def __init__(self, size=10, actions=3):
        self.observation_space = gymnasium.spaces.Box(0, 1, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(actions)


def save_model(
    path, policy="MlpPolicy", algorithm=MaskablePPO, *, spaces=None, game=None, **kwargs
):
    """Save an untrained model with the policy's `kwargs`, and return it."""
    made = algorithm(policy, spaces or Spaces(), policy_kwargs=kwargs, device="cpu", seed=1)
    with torch.no_grad():  # far from uniform, so that a mistake shows
        for weight in made.policy.action_net.parameters():
            weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    if game is not None:
        made.game = game
    made.save(path)
    return made


def load_model(path, game=None, *, trust=False):
    """The network in a file, and its game."""
    source = open_source(str(path), trust=trust)
    found = game_of([source], game)
    return source.network(found), found


def played(path, game=None, *, trust=False):
    """The policy in a file, `(I, A)`."""
    return load_policy(path, game, trust=trust).table


@cache
def sound_zip():
    """A small model of Kuhn poker."""
    with TemporaryDirectory() as folder:
        save_model(Path(folder) / "model.zip", net_arch=[4])
        return (Path(folder) / "model.zip").read_bytes()


def members(content):
    """The members of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(content, compression=zipfile.ZIP_STORED):
    """A zip with these members."""
    with zipfile.ZipFile(made := io.BytesIO(), "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return made.getvalue()


def with_members(path, **changes):
    """The sound model with some members replaced; `policy` stands for `policy.pth`."""
    named = {name.replace("policy", "policy.pth"): data for name, data in changes.items()}
    path.write_bytes(zipped(members(sound_zip()) | named))
    return path


def with_data(path, **changes):
    """The sound model with some entries of its JSON replaced."""
    data = json.loads(members(sound_zip())["data"]) | changes
    return with_members(path, data=json.dumps(data).encode())


def with_tensors(path, change):
    """The sound model with its state dict changed."""
    stored = torch.load(io.BytesIO(members(sound_zip())["policy.pth"]), weights_only=True)
    torch.save(change(stored), file := io.BytesIO())
    return with_members(path, policy=file.getvalue())


def with_pickle(path, pickled):
    """The sound model with another pickle in its policy.pth."""
    inner = members(members(sound_zip())["policy.pth"])
    name = next(name for name in inner if name.endswith("data.pkl"))
    return with_members(path, policy=zipped(inner | {name: pickled}))


def node(operator, *inputs, to="out", **attributes):
    return helper.make_node(operator, inputs, [to], **attributes)


def cast(of, kind, to="out"):
    return helper.make_node("Cast", [of], [to], to=kind)


def given(name, *shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    path,
    *steps,
    constants=(),
    inputs=(),
    outputs=("out",),
    batch="n",
    size=10,
    actions=3,
    **properties,
):
    """An ONNX file: `raw = observation @ w`, then `steps` up to `outputs`."""
    weights = np.linspace(-1, 1, size * actions, dtype=np.float32)
    first = node("MatMul", "observation", "w", to="raw")
    made = helper.make_model(
        helper.make_graph(
            [first, *(steps or [node("Identity", "raw")])],
            "policy",
            [given("observation", batch, size), *inputs],
            [given(name, batch, None) for name in outputs],
            [helper.make_tensor("w", TensorProto.FLOAT, (size, actions), weights), *constants],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    helper.set_model_props(made, properties)
    onnx.save(made, path)
    return path


def loop(path, operator, trips):
    """An ONNX file with a Loop whose body applies `operator` to `x` and `x`."""
    attributes = {"axis": 0} if operator == "Concat" else {}
    steps = [node("Identity", "going", to="goes"), node(operator, "x", "x", to="y", **attributes)]
    inputs = [given("turn", kind=TensorProto.INT64), given("going", kind=TensorProto.BOOL)]
    outputs = [given("goes", kind=TensorProto.BOOL), given("y", "k", 3)]
    body = helper.make_graph(steps, "body", [*inputs, given("x", "m", 3)], outputs)
    constants = [
        helper.make_tensor("trips", TensorProto.INT64, (), [trips]),
        helper.make_tensor("yes", TensorProto.BOOL, (), [True]),
    ]
    return graph(path, node("Loop", "trips", "yes", "raw", body=body), constants=constants)
