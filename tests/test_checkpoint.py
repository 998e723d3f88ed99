"""Checkpoints: a damaged one is refused, an edited one is refused, a full disk keeps the last."""

from __future__ import annotations

import copy
import io
import os
import random
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

from algorithms.learning.checkpoint import read_checkpoint, require_like, write_checkpoint
from algorithms.learning.recipes import configure
from algorithms.learning.training import Training
from algorithms.support.sealed import write_sealed
from algorithms.train_ppo import main
from kuhn_bridge import BridgeError

SMALL = {"steps": 4_000, "n_envs": 64}
OPTIONS = [
    part for name, value in SMALL.items() for part in (f"--{name.replace('_', '-')}", str(value))
]


class EnoughError(Exception):
    """Where the run is broken off."""


@cache
def kept(env: str = "vector", net: str = "table") -> bytes:
    """A checkpoint of a run that died."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.ckpt"

        def die(point: Any) -> None:
            if point.steps > 1_000:
                raise EnoughError

        config = configure({**SMALL, "env": env, "net": net})
        made = Training(config, checkpoint=path, checkpoint_every=500, watch=die)
        with pytest.raises(EnoughError):
            made.run()
        return path.read_bytes()


def state_of(folder: Path, *kind: str) -> dict[str, Any]:
    path = folder / "whole.ckpt"
    path.write_bytes(kept(*kind))
    return read_checkpoint(path)


def resumed(state: dict[str, Any]) -> Training:
    made = Training(configure(state["config"]))
    made.set_state(state)
    return made


def test_flipped_bits_cuts_and_other_files_are_refused(tmp_path: Path) -> None:
    path, whole = tmp_path / "model.ckpt", kept()
    draw = random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(BridgeError, match="not a whole checkpoint"):
            read_checkpoint(path)
    for content in (whole[:-1], whole[:1000], b"", whole + b"\0", b"junk"):
        path.write_bytes(content)
        with pytest.raises(BridgeError, match="not a whole checkpoint"):
            read_checkpoint(path)
    for sealed in (b"junk", b""):
        write_sealed(path, sealed)
        with pytest.raises(BridgeError, match="not a whole checkpoint"):
            read_checkpoint(path)
    for thing in ([1], {"steps": 1}, {"config": {}}, {"config": {}, "steps": -1}):
        write_checkpoint(path, thing)  # type: ignore[arg-type]  # that is the point
        with pytest.raises(BridgeError, match="not a whole checkpoint"):
            read_checkpoint(path)


class MakesFolder:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_strangers_checkpoint_does_not_run_code(tmp_path: Path) -> None:
    path, mark = tmp_path / "model.ckpt", tmp_path / "ran"
    write_checkpoint(path, {"config": {}, "steps": 1, "more": MakesFolder(mark)})
    with pytest.raises(BridgeError, match="not a whole checkpoint"):
        read_checkpoint(path)
    assert not mark.exists()


def test_where_nothing_was_kept_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match=r"none.ckpt: there is nothing to resume$"):
        read_checkpoint(tmp_path / "none.ckpt")


def test_a_state_has_the_keys_and_the_lengths_of_a_fresh_one() -> None:
    require_like({"hands": [3, 4], "rate": 1}, {"hands": [1, 2], "rate": 0.5})
    for wrong in (
        {"hands": [3], "rate": 1},
        {"hands": [3, -1], "rate": 1},
        {"hands": (3, 4), "rate": 1},
        {"hands": [3, 4], "rate": 1, "more": 1},
        {"hands": [3, 4]},
        [3, 4],
    ):
        with pytest.raises(BridgeError, match="is not what a training run keeps"):
            require_like(wrong, {"hands": [1, 2], "rate": 0.5})


def test_the_command_says_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(kept())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "model.ckpt").write_bytes(damaged)
    assert main(["--out", str(tmp_path / "model.zip"), "--resume", "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "damaged: its checksum does not match its content" in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.ckpt"]


def leaves(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value of a state, the first of each long list."""
    items: Any = ()
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, (list, tuple)):
        items = list(enumerate(state))[:2]
    for key, value in items:
        yield from leaves(value, (*path, key))
    if path:
        yield path


def edited(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    inner = edited(state[path[0]], path[1:], value)
    if isinstance(state, tuple):
        return (*state[: path[0]], inner, *state[path[0] + 1 :])
    changed = copy.copy(state)
    changed[path[0]] = inner
    return changed


def wrong_values(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        odd = [value[:-1] if value.dim() else value[None], value.to(torch.int32), 0]
        return [*odd, value * float("nan")] if value.is_floating_point() else odd
    odd = ["x", [[]], float("nan")]
    odd += [] if value is None else [None]  # as some settings of an optimizer are
    return odd if isinstance(value, float) else [*odd, -1]


def refusal(training: Training, state: dict[str, Any]) -> str:
    """What is said of a state that cannot be; a new line if it is taken."""
    try:
        training.set_state(state)
    except BridgeError as error:
        return str(error)
    return "\n"


FREE = {"config"}  # has a test of its own, below


@pytest.mark.parametrize("kind", [("vector", "table"), ("vector", "mlp"), ("aec", "table")])
def test_edited_contents_are_refused_in_one_line_wherever_the_edit_is(
    tmp_path: Path, kind: tuple[str, str]
) -> None:
    state = state_of(tmp_path, *kind)
    assert resumed(state).model.num_timesteps == state["steps"] > 500
    spare = Training(configure(state["config"]))
    places = [path for path in leaves(state) if path[0] not in FREE and path[:2] != ("envs", 1)]
    assert len(places) > 30
    for path in places:
        value = state
        for key in path:
            value = value[key]
        for wrong in wrong_values(value):
            assert "\n" not in refusal(spare, edited(state, path, wrong)), (path, wrong)
    for key in state.keys() - FREE:
        with pytest.raises(BridgeError):
            spare.set_state({name: value for name, value in state.items() if name != key})


def test_hands_that_cannot_be_are_not_played(tmp_path: Path) -> None:
    state = state_of(tmp_path)
    spare = Training(configure(state["config"]))
    for name, number in (("node", 10**6), ("node", 0), ("node", 57)):
        with pytest.raises(BridgeError, match="the learner is not to act"):
            spare.set_state(edited(state, ("envs", 0, name, 0), number))
    other = state["envs"][0]["hand"][0] + 1  # the other seat's
    with pytest.raises(BridgeError, match="the learner is not to act"):
        spare.set_state(edited(state, ("envs", 0, "hand", 0), other))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", "many"),
        ("steps", 10**400),
        ("steps", 1e300),
        ("n_envs", True),
        ("lr", None),
        ("lr", float("nan")),
        ("net", "cnn"),
        ("n_envs", 0),
        ("seed", []),
    ],
)
def test_edited_settings_are_refused(
    tmp_path: Path, name: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    state = edited(state_of(tmp_path), ("config", name), value)
    write_checkpoint(tmp_path / "model.ckpt", state)
    assert main(["--out", str(tmp_path / "model.zip"), "--resume", "--quiet"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_full_disk_keeps_the_last_good_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, good = tmp_path / "model.ckpt", kept()
    path.write_bytes(good)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) - 100, hard))  # a disk that is almost full
    try:
        resume = ["--out", str(tmp_path / "model.zip"), "--resume", "--quiet"]
        assert main([*resume, "--checkpoint-every", "500"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = capsys.readouterr().err
    assert "model.ckpt: cannot be written (File too large)" in said
    assert said.count("\n") == 1
    assert path.read_bytes() == good
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.ckpt"]


def test_a_run_that_is_resumed_ends_where_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(kept())
    assert main(["--out", str(tmp_path / "model.zip"), "--resume", "--quiet"]) == 0
    assert main(["--out", str(tmp_path / "whole.zip"), "--quiet", *OPTIONS]) == 0
    one, other = (torch_bytes(tmp_path / name) for name in ("model.zip", "whole.zip"))
    assert one == other


def torch_bytes(path: Path) -> bytes:
    """What a model plays, as bytes."""
    from algorithms.policies import load_policy

    file = io.BytesIO()
    file.write(load_policy(path).table.tobytes())
    return file.getvalue()
