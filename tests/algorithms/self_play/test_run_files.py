"""No file is lost: what another command wrote, an interrupted run, a run that is still writing."""

import subprocess
import sys
import time

import pytest

from algorithms.support.locks import locked
from algorithms.train_ppo import main
from kuhn_bridge import BridgeError, load_policy, solve

TINY = ["--steps", "2048", "--n-envs", "64", "--quiet", "--points", "0"]
# A run that takes long enough to be met by another one.
LONG = [sys.executable, "-m", "algorithms.train_ppo", "--steps", "100000000", "--quiet"]


@pytest.mark.parametrize("suffix", [".json", ".csv", ".png", ".html"])
def test_what_another_command_wrote_is_not_replaced(suffix, tmp_path, refused):
    other = tmp_path / f"leduc{suffix}"
    if suffix == ".json":
        solve("kuhn", iterations=10).save(other)
    else:
        other.write_text("the user's own")
    before = other.read_bytes()
    error = refused(main, ["--out", str(tmp_path / "leduc.zip"), *TINY, "--html"])
    assert f"{other} exists" in error
    assert "choose another --out" in error
    assert other.read_bytes() == before
    assert list(tmp_path.iterdir()) == [other]


def test_a_run_replaces_the_files_of_an_earlier_one(tmp_path):
    out = ["--out", str(tmp_path / "model.zip"), *TINY]
    assert main(out) == 0
    (tmp_path / "model.png").unlink(missing_ok=True)
    first = (tmp_path / "model.json").read_text()
    assert main([*out, "--seed", "1"]) == 0
    assert (tmp_path / "model.json").read_text() != first
    assert load_policy(tmp_path / "model.zip").game.name == "kuhn"


def test_the_curve_of_a_run_may_be_replaced_without_its_result(tmp_path):
    out = ["--out", str(tmp_path / "model.zip"), *TINY]
    assert main(out) == 0
    (tmp_path / "model.json").unlink()
    assert main(out) == 0


@pytest.fixture
def running(tmp_path):
    """A run in another process, which has written its first checkpoint."""
    command = [*LONG, "--out", str(tmp_path / "model.zip")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (tmp_path / "model.ckpt").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        yield process
        process.kill()


def test_two_runs_with_one_name_notice_each_other(running, tmp_path, refused):
    for options in ([], ["--resume"]):
        error = refused(main, ["--out", str(tmp_path / "model.zip"), *TINY, *options])
        assert "another process is writing it" in error
    running.kill()
    running.wait()
    kept = (tmp_path / "model.ckpt").read_bytes()
    error = refused(main, ["--out", str(tmp_path / "model.zip"), *TINY])
    assert "model.ckpt is the checkpoint of an interrupted run: --resume continues it" in error
    assert (tmp_path / "model.ckpt").read_bytes() == kept
    (tmp_path / "model.ckpt").unlink()
    assert main(["--out", str(tmp_path / "model.zip"), *TINY]) == 0
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".lock"]


def test_a_lock_is_held_once_and_released(tmp_path):
    path = tmp_path / "model.zip"
    for _ in range(2):
        with locked(path):
            with pytest.raises(BridgeError, match="another process is writing it"), locked(path):
                pytest.fail("locked twice")
            with locked(tmp_path / "other.zip"):
                pass
        assert not list(tmp_path.iterdir())
