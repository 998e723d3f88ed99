"""Checkpoints: a damaged one is refused, none runs code, a full disk keeps the last."""

import io
import os
import random
import resource
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from algorithms.self_play.settings import configure
from algorithms.self_play.training_run import Training, read_checkpoint, write_checkpoint
from algorithms.support.files import write_checksummed
from algorithms.train_ppo import main
from kuhn_bridge import BridgeError

SMALL = {"steps": 4_000, "n_envs": 64, "n_steps": 8}


class EnoughError(Exception):
    """Where the run is broken off."""


@cache
def checkpoint():
    """The checkpoint of a run that died."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.ckpt"

        def die(point):
            if point.steps > 1_000:
                raise EnoughError

        made = Training(configure(SMALL), checkpoint=path, checkpoint_every=500, watch=die)
        with pytest.raises(EnoughError):
            made.run()
        return path.read_bytes()


def test_flipped_bits_cuts_and_other_files_are_refused(tmp_path, capsys):
    path = tmp_path / "model.ckpt"
    whole = checkpoint()
    draw = random.Random(0)
    damaged = [bytearray(whole) for _ in range(100)]
    for content in damaged:
        content[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    torch.save([1], file := io.BytesIO())  # without a checksum
    others = (b"", b"junk", file.getvalue())
    for content in (*damaged, whole[:-1], whole[:1000], whole + b"\0", *others):
        path.write_bytes(content)
        with pytest.raises(BridgeError, match="not a complete checkpoint"):
            read_checkpoint(path)
    assert main(["--out", str(tmp_path / "model.zip"), "--resume", "--quiet"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.ckpt"]


def test_other_contents_under_a_checksum_are_refused(tmp_path):
    path = tmp_path / "model.ckpt"
    for content in (b"junk", b""):
        write_checksummed(path, content)
        with pytest.raises(BridgeError, match="not a checkpoint"):
            read_checkpoint(path)
    for thing in ([1], {"steps": 1}, {"settings": {}}):
        write_checkpoint(path, thing)  # type: ignore[arg-type]  # that is the point
        with pytest.raises(BridgeError, match="not a checkpoint"):
            read_checkpoint(path)


class MakesFolder:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_strangers_checkpoint_does_not_run_code(tmp_path):
    path = tmp_path / "model.ckpt"
    mark = tmp_path / "ran"
    write_checkpoint(path, {"settings": {}, "steps": 1, "more": MakesFolder(mark)})
    with pytest.raises(BridgeError, match="not a checkpoint"):
        read_checkpoint(path)
    assert not mark.exists()


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "model.ckpt"
    path.write_bytes(checkpoint())
    other = Training(configure({**SMALL, "game": "leduc_poker"}))
    with pytest.raises(BridgeError, match="not a checkpoint of this run"):
        other.set_state(read_checkpoint(path))


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path, capsys):
    path = tmp_path / "model.ckpt"
    good = checkpoint()
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
