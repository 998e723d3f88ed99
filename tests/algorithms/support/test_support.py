"""Shared by the commands: errors, files, checksums, tables."""

import gc
import importlib
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import kuhn_bridge
from algorithms.__main__ import COMMANDS
from algorithms.compiled import jit as compiled
from algorithms.support import command, files
from algorithms.support.errors import UsageError, first_line, unknown
from algorithms.support.progress import progress


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (
            ModuleNotFoundError("No module named 'warp'", name="warp"),
            2,
            "this needs the package warp; pip install 'kuhn-bridge[all]'",
        ),
        (UsageError("two\nlines"), 2, "two lines"),
        (UsageError(f"x{'y' * 10**6}z"), 2, f"x{'y' * 663}...{'y' * 332}z"),
        (OSError(28, "No space left", "model.zip"), 2, "model.zip: No space left"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mistakes_are_one_line_and_an_exit_code(error, code, printed, capsys):
    def fails():
        raise error

    assert command.run(fails, "command") == code
    assert capsys.readouterr().err == f"command: {printed}\n"


@pytest.mark.parametrize(
    ("closed", "encoding", "shown"),
    [
        (">&-", "utf-8", b""),
        ("", "ascii", b"\\xe9.json"),
        ("", "ascii:surrogateescape", b"\\xe9.json"),  # Python's choice for LC_ALL=C
        ("", "utf-8", b"\xc3\xa9.json"),
    ],
)
def test_closed_output_and_missing_characters_are_no_errors(closed, encoding, shown):
    program = (
        "from algorithms.support.command import run\n"
        "print(run(lambda: print('\\xe9.json') or 0, 'c'))"
    )
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, program],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (shown + b"\n0\n" if shown else b"")


def test_whole_numbers_may_have_an_exponent(capsys):
    parser = command.Parser(prog="command")
    parser.add_argument("--steps", type=command.whole)
    assert [parser.parse_args(["--steps", text]).steps for text in ("1e6", "30", "1_000")] == [
        1_000_000,
        30,
        1_000,
    ]
    for text in ("1.5", "1e-3", "inf", "nan", "many"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--steps", text])
        assert f"invalid int value: '{text}'" in capsys.readouterr().err


def test_a_program_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        command.run(lambda: 1 // 0, "command")


def test_wrong_arguments_are_one_line_too(capsys):
    with pytest.raises(SystemExit) as left:
        command.Parser(prog="command").parse_args(["a\nb"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "command: unrecognized arguments: a b (see --help)\n"


ROOT = Path(kuhn_bridge.__file__).parents[1]


def python(code, *options):
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_commands_collect_garbage_less_often():
    before = gc.get_threshold()
    gc.set_threshold(700)
    assert command.run(lambda: gc.get_threshold()[0], "name") == command.GARBAGE_THRESHOLD
    assert gc.get_threshold()[1:] == before[1:]
    gc.set_threshold(*before)


def test_every_command_works_without_docstrings():
    """Under PYTHONOPTIMIZE=2 there are none to describe a command with."""
    modules = [module for module, _ in COMMANDS.values()]
    code = f"""
import contextlib, importlib, io
for name in {modules}:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        importlib.import_module(name).main(["--help"])
    print(name, said.getvalue().startswith("usage: "))
"""
    run = python(code, "-OO")
    assert run.stderr == ""
    assert run.stdout.splitlines() == [f"{name} True" for name in modules]


def test_a_closed_pipe_is_no_error():
    code = "import sys; from algorithms.support.command import run\n"
    code += "sys.exit(run(lambda: print('nobody reads this') or 0, 'name'))"
    child = [sys.executable, "-c", code]
    with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as done:
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 0


@pytest.mark.parametrize(("total", "shown"), [(200, "60%"), (None, "120")])
def test_a_bar_is_drawn_on_a_terminals_standard_error_alone(total, shown, monkeypatch, capsys):
    for terminal in ("1", "0"):
        monkeypatch.setenv("TTY_COMPATIBLE", terminal)
        with progress("working", total) as show:
            show(120, "and a note")
        out, err = capsys.readouterr()
        assert out == ""
        drawn = [word in err for word in ("working", shown, "and a note")]
        assert drawn == [terminal == "1"] * 3


def test_functions_are_compiled_where_no_cache_can_be_written(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, "compiled")

    monkeypatch.setattr(compiled, "njit", njit)
    assert compiled.compiled(len) == (len, "compiled")


RENAMED_CLASS = """\
from typing import NamedTuple
from algorithms.compiled.jit import compiled

class {name}(NamedTuple):
    number: int

@compiled
def plus_one(pair: {name}) -> int:
    return pair.number + 1

RESULT = plus_one({name}(1))
CACHE_HITS = sum(plus_one.stats.cache_hits.values())
"""


def test_a_cache_of_another_version_with_other_classes_is_replaced(tmp_path, monkeypatch):
    """As after an upgrade in place."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "upgraded.py"
    cache_hits = []
    for name in ("Before", "After", None):
        if name is not None:
            path.write_text(RENAMED_CLASS.format(name=name))
        importlib.invalidate_caches()
        sys.modules.pop("upgraded", None)
        upgraded = importlib.import_module("upgraded")
        assert upgraded.RESULT == 2
        cache_hits.append(upgraded.CACHE_HITS)
    assert cache_hits == [0, 0, 1]  # the last one reads the new cache


def test_an_error_without_a_message_is_named_by_its_class():
    assert first_line(ValueError()) == "ValueError"
    assert first_line(ValueError("two\nlines")) == "two"
    assert len(first_line(ValueError("x" * 10_000))) == 300


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out.json"
    files.write_text(target, "first")

    def interrupted():
        with files.replacing(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "first"
    with files.replacing(target) as temporary:
        temporary.write_text("second")
        assert temporary.suffix == target.suffix
        assert target.read_text() == "first"
    assert target.read_text() == "second"
    assert list(tmp_path.iterdir()) == [target]


def test_a_killed_run_leaves_the_old_file(tmp_path):
    target = tmp_path / "model.ckpt"
    files.write_text(target, "first")
    code = f"""
import os, signal
from algorithms.support.files import replacing
with replacing({str(target)!r}) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python(code).returncode == -signal.SIGKILL
    assert target.read_text() == "first"


def test_two_runs_can_write_the_same_file(tmp_path):
    target = tmp_path / "model.ckpt"
    with files.replacing(target) as first:
        first.write_text("by one run")
        files.write_text(target, "by another")
        assert target.read_text() == "by another"
    assert target.read_text() == "by one run"


def test_a_full_disk_is_one_line_and_keeps_the_old_file(tmp_path):
    target = tmp_path / "model.ckpt"
    files.write_bytes(target, b"good")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # like a disk with 1,000 bytes left
    try:
        with pytest.raises(UsageError, match=r"model.ckpt: cannot be written \(File too large"):
            files.write_bytes(target, bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(list(tmp_path.iterdir())))
    files.write_text(tmp_path / "file.json", "whole")
    assert len(synced) == 1
    assert tmp_path / "file.json" not in synced[0]


def test_symbolic_links_are_followed(tmp_path):
    real = tmp_path / "there" / "real.json"
    made = tmp_path / "there" / "made.json"
    real.parent.mkdir()
    real.write_text("old")
    for name, target in (("link", real), ("dangling", made)):
        (tmp_path / name).symlink_to(target)
        files.write_text(tmp_path / name, name)
        assert (tmp_path / name).is_symlink()
        assert target.read_text() == name
    assert set(real.parent.iterdir()) == {real, made}


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_new_files_follow_the_umask_and_old_ones_keep_their_permissions(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        files.write_text(tmp_path / "new.json", "x")
        (tmp_path / "kept.json").touch(0o600)
        (tmp_path / "kept.json").chmod(0o640)
        files.write_text(tmp_path / "kept.json", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "kept.json").stat().st_mode) == 0o640


def device(path, minor):
    """A memory device of the test's own: an error in `files` must not replace the machine's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("rb").close()
    except OSError:
        pytest.skip("no devices can be made here")
    return path


def test_a_device_is_written_into_and_stays_a_device(tmp_path):
    null = device(tmp_path / "null", 3)
    full = device(tmp_path / "full", 7)
    files.require_writable(null)
    files.write_text(null, "gone")
    assert stat.S_ISCHR(null.stat().st_mode)
    link = tmp_path / "link"
    link.symlink_to(full)
    with pytest.raises(UsageError, match="No space left on device"):
        files.write_text(link, "too much")
    assert stat.S_ISCHR(full.stat().st_mode)
    assert link.is_symlink()


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe.json"
    received = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    content = "x" * 200_000  # more than a pipe holds
    files.write_text(pipe, content)
    reader.join(10)
    assert received == [content.encode()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_is_written_into_in_order(tmp_path):
    code = "from algorithms.support.files import write_text\nprint('first')\n"
    code += "write_text('/dev/stdout', 'second\\n')\nprint('third')"
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, cwd=ROOT, env=buffered, check=True)
    assert (tmp_path / "out").read_text() == "first\nsecond\nthird\n"


@pytest.mark.parametrize("call", [files.require_writable, lambda path: files.write_text(path, "")])
def test_a_file_that_cannot_be_written_is_one_line(tmp_path, call):
    for path, message in (
        (tmp_path / "none" / "x.json", "there is no directory .*none"),
        (tmp_path, "is a directory; give the name of a file"),
        ("/proc/nothing.json", r"/proc/nothing.json: cannot be written"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(UsageError, match=message):
            call(path)
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "x.json")
    with pytest.raises(UsageError, match=r"there is no directory .*/gone$"):
        call(tmp_path / "link")
    (tmp_path / "link").unlink()
    call(tmp_path / "fine.json")
    assert {path.name for path in tmp_path.iterdir()} <= {"fine.json"}


def test_pictures_have_the_suffix_png(tmp_path):
    files.require_png(tmp_path / "x.PNG")
    with pytest.raises(UsageError, match="a picture is written as"):
        files.require_png(tmp_path / "x.jpg")
    with pytest.raises(UsageError, match="there is no directory"):
        files.require_png(tmp_path / "none" / "x.png")


def test_reading_stops_at_the_limit(tmp_path):
    (tmp_path / "ten").write_bytes(bytes(10))
    assert files.read_bytes(tmp_path / "ten", max_bytes=10) == bytes(10)
    for path in (tmp_path / "ten", "/dev/zero"):
        with pytest.raises(UsageError, match="larger than 9 bytes"):
            files.read_bytes(path, max_bytes=9)


def test_a_checksum_detects_every_flipped_bit_and_every_truncation(tmp_path):
    path = tmp_path / "file"
    content = b"what was written"
    files.write_checksummed(path, content)
    assert files.read_checksummed(path) == content
    whole = path.read_bytes()
    damaged = [whole[:end] for end in range(len(whole))] + [whole + b"x"]
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    for other in damaged:
        path.write_bytes(other)
        with pytest.raises(UsageError, match="damaged, or not a file that kuhn-bridge wrote"):
            files.read_checksummed(path)


def test_the_nearest_name_is_suggested():
    assert "did you mean 'leduc_poker'?" in str(unknown("game", "leduk", ["kuhn", "leduc_poker"]))
    assert str(unknown("thing", "zzzz", ["a", "b"])).endswith("there are a, b")
    assert str(unknown("thing", "zzzz", "abcdefghijklmno")).endswith("k, l, ...")


def test_tables_are_aligned():
    text = command.table(("name", "x"), [("a", "1"), ("long", "22")])
    assert text == "name   x\na      1\nlong  22"


def test_long_texts_are_shortened_in_the_middle():
    assert command.shortened("short", 5) == "short"
    assert command.shortened("abcdefghijklmnop", 12) == "abcde...mnop"
    assert len(command.shortened("x" * 500, 100)) == 100
