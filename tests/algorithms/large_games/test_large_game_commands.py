"""`solve` and `nashconv` on large games, as a user runs them: boards so small that they are quick.

`--max-nodes` makes them too large for a tree.
"""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from algorithms import nashconv, solve
from algorithms.games import load_game
from algorithms.large_games.large_game import LargeExactGame
from algorithms.policies import Policy, load_policy
from algorithms.support import files
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import PolicyError

HEX = "dark_hex(board_size=2,gameversion=adh)"
DICE = "liars_dice(numdice=1,dice_sides=3)"
FEW_NODES = ["--max-nodes", "5"]


def small(name):
    """A game without a tree with an exact measure, which is small."""
    return load_game(name, max_nodes=5)


def run(*arguments, capsys):
    code = solve.main([*FEW_NODES, *arguments])
    return code, capsys.readouterr()


@pytest.mark.parametrize("variant", ["cfr+", "pcfr+", "dcfr"])
@pytest.mark.parametrize("game", [HEX, DICE])
def test_a_large_game_is_solved_into_a_file(game, variant, tmp_path, capsys):
    out = tmp_path / "policy.npz"
    arguments = ["--game", game, "--variant", variant, "--iterations", "60", "--out", str(out)]
    code, printed = run(*arguments, "--json", capsys=capsys)
    document = json.loads(printed.out)
    assert (code, document["iterations"], document["curve"][-1]) == (
        0,
        60,
        [60, document["nash_conv"]],
    )
    assert document["nash_conv"] < 0.05
    assert "players" not in document
    policy = load_policy(out, small(game))
    assert policy.nash_conv() == pytest.approx(document["nash_conv"], abs=1e-6)
    assert list(tmp_path.iterdir()) == [out]  # no checkpoint of a finished run


@pytest.mark.parametrize(
    ("game", "first", "other"),
    [
        (HEX, "player_0: first action", "player_1: took a1, failed at "),
        (DICE, "player_0 with 1 to start", "player_1 with 1 after 2-3 "),
    ],
)
def test_the_strategy_is_printed_in_words(game, first, other, capsys):
    code, printed = run("--game", game, "--iterations", "2", capsys=capsys)
    lines = printed.out.splitlines()
    sets = sum(small(game).num_infosets)
    assert (code, lines[0]) == (0, f"{game}: {sets:,} information sets")
    assert lines[4].startswith(first)
    assert any(line.startswith(other) for line in lines)
    assert f"... and {sets - 24} more (--out writes all)" in lines
    assert lines[-1].endswith("(NashConv / 2 players)")


def test_a_run_ends_at_the_nashconv_or_at_the_last_iteration(capsys):
    until = ["--game", HEX, "--until", "0.05", "--json"]
    code, printed = run(*until, capsys=capsys)
    document = json.loads(printed.out)
    assert code == 0
    assert document["nash_conv"] <= 0.05 < document["curve"][-2][1]
    code, printed = run(*until, "--iterations", "3", capsys=capsys)
    assert code == 1
    assert json.loads(printed.out)["iterations"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "policy.json"], "is written as .npz"),
        (["--variant", "es-mccfr"], "by cfr, cfr+, lcfr, dcfr, pcfr+"),
        (["--variant", "cfr-simultaneous"], "cfr-simultaneous needs both players' policies"),
        (["--mode", "exact"], "where solvers have no mode"),
        (["--resume"], "the --out of the earlier run"),
        (["--resume", "--out", "policy.npz"], "policy.ckpt: there is nothing to resume"),
    ],
)
def test_what_a_large_game_lacks_is_one_line(arguments, words, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused(solve.main, [*FEW_NODES, "--game", HEX, *arguments])
    assert not list(tmp_path.iterdir())


def stopping(at, error=KeyboardInterrupt):
    """`make_solver` of solvers whose `run` raises an error after some iterations."""
    make_solver = LargeExactGame.make_solver

    def make(game, *arguments, **options):
        solver = make_solver(game, *arguments, **options)
        run = solver.run

        def run_to_the_error(iterations):
            for _ in range(iterations):
                if solver.iterations == at:
                    raise error
                run(1)

        solver.run = run_to_the_error
        return solver

    return make


@pytest.mark.parametrize("game", [HEX, DICE])
def test_an_interrupted_run_is_resumed_with_the_same_result(game, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["--game", game, "--variant", "pcfr+", "--iterations", "40"]
    assert run(*arguments, "--out", "whole.npz", capsys=capsys)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(LargeExactGame, "make_solver", stopping(17))
        code, printed = run(*arguments, "--out", "half.npz", capsys=capsys)
    assert code == 130
    expected = "interrupted after 17 iterations, saved half.npz; --resume continues from there"
    assert printed.err.splitlines() == [expected]
    half = load_policy("half.npz", small(game)).nash_conv()
    assert f"NashConv        {half:.4e}" in printed.out
    code, printed = run(*arguments, "--out", "half.npz", "--resume", capsys=capsys)
    assert code == 0
    whole, resumed = (load_policy(name, small(game)) for name in ("whole.npz", "half.npz"))
    assert whole == resumed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half.npz", "whole.npz"]


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(tmp_path, refused, monkeypatch):
    def line(game, *arguments):
        again = ["--game", game, *arguments, "--out", "x.npz", "--resume"]
        return refused(solve.main, [*FEW_NODES, *again])

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(LargeExactGame, "make_solver", stopping(3))
        assert solve.main([*FEW_NODES, "--game", HEX, "--out", "x.npz", "--json"]) == 130
    assert f"a run of game {HEX}, not {DICE}" in line(DICE)
    assert "a run of variant pdcfr+, not dcfr" in line(HEX, "--variant", "dcfr")
    checkpoint = tmp_path / "x.ckpt"
    content = checkpoint.read_bytes()
    for damaged in (content[:-100], content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]):
        checkpoint.write_bytes(damaged)
        assert "x.ckpt: damaged" in line(HEX)


def test_a_killed_run_is_resumed_from_its_last_checkpoint(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(solve, "CHECKPOINT_SECONDS", -1)  # after every measure
    arguments = ["--game", HEX, "--iterations", "40"]
    run(*arguments, "--out", "whole.npz", capsys=capsys)
    with monkeypatch.context() as patch:
        patch.setattr(LargeExactGame, "make_solver", stopping(17, SystemError))
        with pytest.raises(SystemError):
            run(*arguments, "--out", "half.npz", capsys=capsys)
    assert not (tmp_path / "half.npz").exists()
    assert files.read_arrays("half.ckpt")["updates"] == [2 * 16]  # two players
    assert run(*arguments, "--out", "half.npz", "--resume", capsys=capsys)[0] == 0
    assert load_policy("whole.npz", small(HEX)) == load_policy("half.npz", small(HEX))


@pytest.mark.slow
def test_ctrl_c_in_a_terminal(tmp_path):
    out = tmp_path / "policy.npz"
    arguments = ["--game", HEX, "--max-nodes", "5", "--iterations", "9999999", "--out", str(out)]
    command = [sys.executable, "-m", "algorithms.solve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(10)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "saved" in said
    assert "NashConv" in printed
    assert load_policy(out, small(HEX)).nash_conv() < 0.01


def test_a_policy_of_a_game_with_a_tree_is_no_npz(tmp_path, capsys):
    path = tmp_path / "policy.npz"
    Policy.uniform(small(HEX)).save(path)
    assert nashconv.main([str(path)]) == 2
    assert "its policies are .json" in capsys.readouterr().err
    with pytest.raises(PolicyError, match=r"is written as \.npz"):
        Policy.uniform(small(HEX)).save(tmp_path / "policy.json")


# Arrays on disk.


def test_arrays_come_back(tmp_path):
    arrays = {"a": np.arange(3), "b": np.array("word"), "c": np.zeros((0, 2))}
    files.write_arrays(tmp_path / "x.npz", arrays)
    found = files.read_arrays(tmp_path / "x.npz")
    assert set(found) == set(arrays)
    assert all((found[name] == arrays[name]).all() for name in arrays)


def test_only_plain_stored_arrays_are_read(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(10**6))
    with pytest.raises(UsageError, match="compressed"):
        files.read_arrays(path)
    np.savez(path, a=np.array([{}]))
    with pytest.raises(UsageError, match="damaged, or not arrays"):
        files.read_arrays(path)
    path.write_text("nothing of the kind")
    with pytest.raises(UsageError, match="damaged, or not arrays"):
        files.read_arrays(path)
    np.savez(path, a=np.zeros(100))
    monkeypatch.setattr(files, "MAX_ARRAYS_BYTES", 500)
    with pytest.raises(UsageError, match="larger than 500 bytes"):
        files.read_arrays(path)
