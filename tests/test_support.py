"""What the commands share."""

import errno
import gc
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import kuhn_bridge
from algorithms.support import command, compiled, files, garbage, sealed
from algorithms.support.errors import UsageError, first_line, unknown
from algorithms.support.progress import progress


def test_mistakes_are_one_line_and_exit_2(capsys):
    def missing():
        raise ModuleNotFoundError("No module named 'warp'", name="warp")

    def multiline():
        raise UsageError("two\nlines")

    def disk():
        raise OSError(28, "No space left on device", "model.zip")

    for fails, told in (
        (missing, "this needs the package warp; pip install 'kuhn-bridge[all]'"),
        (multiline, "two lines"),
        (disk, "model.zip: No space left on device"),
    ):
        assert command.run(fails, "command") == 2
        assert capsys.readouterr().err == f"command: {told}\n"


def test_a_name_of_a_megabyte_is_not_told_whole(capsys):
    def long():
        raise UsageError(f"x{'y' * 10**6}z")

    assert command.run(long, "command") == 2
    said = capsys.readouterr().err
    assert said.startswith("command: xyy")
    assert said.endswith("yyz\n")
    assert len(said) == len("command: \n") + command.LONGEST


@pytest.mark.parametrize(
    ("closed", "encoding", "shown"),
    [(">&-", "utf-8", b""), ("", "ascii", b"\\xe9.json"), ("", "utf-8", b"\xc3\xa9.json")],
)
def test_output_that_is_closed_or_lacks_letters_is_no_error(closed, encoding, shown):
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


def test_a_program_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        command.run(lambda: 1 // 0, "command")


def test_replacing_is_all_or_nothing(tmp_path):
    target = tmp_path / "out.json"
    files.write_text(target, "first")

    def fail():
        with files.replacing(target) as temporary:
            temporary.write_text("half")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert target.read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]
    for bad in (tmp_path, tmp_path / "nowhere" / "x.json"):
        with pytest.raises(UsageError), files.replacing(bad):
            pass


def test_wrong_arguments_are_one_line_too(capsys):
    with pytest.raises(SystemExit) as left:
        command.Parser(prog="command").parse_args(["a\nb"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "command: unrecognized arguments: a b (see --help)\n"


def test_ctrl_c_is_exit_130(capsys):
    def interrupted():
        raise KeyboardInterrupt

    assert command.run(interrupted, "command") == 130
    assert capsys.readouterr().err == "command: interrupted\n"


ROOT = Path(kuhn_bridge.__file__).parents[1]


def python(code, *options):
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


COMMANDS = [
    *(
        f"algorithms.{path.stem}"
        for path in sorted((ROOT / "algorithms").glob("*.py"))
        if "def main(" in path.read_text()
    ),
    "parity.check",
    "parity.speed",
]


def test_commands_search_for_garbage_seldom():
    before = gc.get_threshold()
    gc.set_threshold(700)
    assert command.run(lambda: gc.get_threshold()[0], "name") == garbage.OBJECTS
    assert gc.get_threshold()[1:] == before[1:]
    gc.set_threshold(*before)


def test_every_command_works_without_docstrings():
    """Under PYTHONOPTIMIZE=2 there are none to describe a command with."""
    code = f"""
import contextlib, importlib, io
for name in {COMMANDS}:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        importlib.import_module(name).main(["--help"])
    print(name, said.getvalue().startswith("usage: "))
"""
    run = python(code, "-OO")
    assert run.stderr == ""
    assert run.stdout.splitlines() == [f"{name} True" for name in COMMANDS]


def test_a_reader_who_has_had_enough_is_no_error():
    code = "import sys; from algorithms.support.command import run\n"
    code += "sys.exit(run(lambda: print('nobody reads this') or 0, 'name'))"
    child = [sys.executable, "-c", code]
    with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as done:
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 0


def test_a_bar_is_drawn_on_a_terminals_standard_error_alone(monkeypatch, capsys):
    for total, shown in ((200, "60%"), (None, "120")):
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        with progress("working", total) as show:
            show(120, "and a note")
        out, err = capsys.readouterr()
        assert out == ""
        assert all(word in err for word in ("working", shown, "and a note"))
        monkeypatch.setenv("TTY_COMPATIBLE", "0")
        with progress("working", total) as show:
            show(120, "and a note")
        assert "".join(capsys.readouterr()) == ""


def test_where_no_cache_can_be_kept_functions_are_compiled_all_the_same(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, "compiled")

    monkeypatch.setattr(compiled, "njit", njit)
    assert compiled.compiled(len) == (len, "compiled")


def test_an_error_without_words_is_named():
    assert first_line(ValueError()) == "ValueError"
    assert first_line(ValueError("two\nlines")) == "two"


def test_speed_without_openspiel_is_one_line():
    run = python(
        "import sys; sys.modules['pyspiel'] = None; import parity.speed as s; sys.exit(s.main([]))"
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "this needs the package pyspiel" in run.stderr


def device(path, minor):
    """A memory device of the test's own: an error in `files` must not cost the machine its own."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("rb").close()
    except OSError:
        pytest.skip("no devices can be made here")
    return path


def test_a_device_is_written_into_and_stays_a_device(tmp_path):
    null, full = device(tmp_path / "null", 3), device(tmp_path / "full", 7)
    files.write_text(null, "gone")
    assert stat.S_ISCHR(null.stat().st_mode)
    link = tmp_path / "link"
    link.symlink_to(full)
    with pytest.raises(UsageError, match="No space left on device"):
        files.write_text(link, "too much")
    assert stat.S_ISCHR(full.stat().st_mode)
    assert link.is_symlink()


def test_a_stream_is_written_into(tmp_path, capfd, monkeypatch):
    assert files._STREAMS == {"/dev/stdout": 1, "/dev/stderr": 2}
    monkeypatch.setattr(files, "_STREAMS", {str(tmp_path / "stdout"): 1})
    print("first", flush=True)
    files.write_text(tmp_path / "stdout", "second\n")
    assert capfd.readouterr().out == "first\nsecond\n"
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_into_and_never_waited_for(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe.json: cannot write there \(No such device"):
        files.write_text(pipe, "nobody reads this")
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    content = "x" * 200_000  # more than a pipe holds
    while True:
        try:
            files.write_text(pipe, content)
            break
        except UsageError:  # the reader is not there yet
            continue
    reader.join(10)
    assert got == [content.encode()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_full_pipe_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    handle, got = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), bytearray()

    def read():
        time.sleep(0.1)  # until it is full
        os.set_blocking(handle, True)
        while part := os.read(handle, 2**16):
            got.extend(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    files.write_text(tmp_path / "pipe", "x" * 200_000)  # more than a pipe holds
    reader.join(10)
    os.close(handle)
    assert len(got) == 200_000


def test_nothing_may_be_written_into_a_device(tmp_path):
    with files.replacing(device(tmp_path / "null", 3)):
        pass


def test_no_handle_stays_open(tmp_path):
    null, left = device(tmp_path / "null", 3), tmp_path / ".file-0123abcd.json"
    before = set(Path("/proc/self/fd").iterdir())
    left.touch()  # of a run that was killed
    for path in (tmp_path / "file.json", null):
        files.require_writable(path)
        files.write_text(path, "whole")
    assert not left.exists()
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(list(tmp_path.iterdir())))
    files.write_text(tmp_path / "file.json", "whole")
    assert len(synced) == 1
    assert tmp_path / "file.json" not in synced[0]


def test_what_was_printed_before_comes_before(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(files, "_STREAMS", {str(tmp_path / "stdout"): 1})
    with os.fdopen(os.dup(1), "w") as buffered:
        monkeypatch.setattr(sys, "stdout", buffered)
        print("first")
        files.write_text(tmp_path / "stdout", "second\n")
    assert capfd.readouterr().out == "first\nsecond\n"


def test_links_are_not_taken_for_what_a_killed_run_left(tmp_path):
    (tmp_path / "other").write_text("kept")
    link = tmp_path / ".file-0123abcd.json"
    link.symlink_to(tmp_path / "other")
    files.write_text(tmp_path / "file.json", "whole")
    assert link.read_text() == "kept"


def test_pictures_have_the_name_of_one(tmp_path):
    files.require_png(tmp_path / "x.PNG")
    with pytest.raises(UsageError, match="a picture is written as"):
        files.require_png(tmp_path / "x.jpg")


def test_symbolic_links_are_followed(tmp_path):
    real, link, dangling = tmp_path / "there" / "real.json", tmp_path / "link", tmp_path / "new"
    real.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    dangling.symlink_to(real.with_name("made.json"))
    files.write_text(link, "one")
    files.write_text(dangling, "two")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert real.read_text() == "one"
    assert real.with_name("made.json").read_text() == "two"
    assert {path.name for path in real.parent.iterdir()} == {"real.json", "made.json"}


def test_a_link_that_leads_to_itself_stays(tmp_path):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.symlink_to(two)
    two.symlink_to(one)
    with pytest.raises(UsageError, match="leads to itself"):
        files.write_text(one, "text")
    assert one.is_symlink()
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_the_way_back_out_of_a_folder_that_is_missing_is_missing_too(tmp_path):
    with pytest.raises(UsageError, match="there is no directory"):
        files.require_writable(tmp_path / "none" / ".." / "out.json")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_files_have_the_permissions_that_the_umask_leaves(tmp_path, mask, mode):
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


KILLED = """
import os, signal, sys
from algorithms.support.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else_is(tmp_path):
    target = tmp_path / "model.ckpt"
    for _ in range(2):  # the second removes what the first left
        killed = subprocess.run([sys.executable, "-c", KILLED, str(target)], cwd=ROOT, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list(tmp_path.iterdir())) == 1
    others = [
        ".model-notes.ckpt",
        ".other-0123abcd.ckpt",
        ".model-0123abcd.zip",
        "model-0123abcd.ckpt",
    ]
    for name in others:
        (tmp_path / name).touch()
    with files.replacing(target) as alive:  # somebody else is writing the same file right now
        alive.write_text("by another run")
        files.write_text(target, "done")
        assert alive.exists()
        alive.write_text("later")
    assert target.read_text() == "later"
    assert {path.name for path in tmp_path.iterdir()} == {"model.ckpt", *others}


def test_what_another_run_removes_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    target, lock, thefts = tmp_path / "model.ckpt", files._lock, iter((True, False))

    def late(handle):
        if next(thefts):
            next(tmp_path.iterdir()).unlink()
        lock(handle)

    monkeypatch.setattr(files, "_lock", late)
    with files.replacing(target) as temporary:
        with temporary.open() as other, pytest.raises(BlockingIOError):
            lock(other.fileno())
        temporary.write_text("whole")
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_one_line_and_keeps_the_last_good_file(tmp_path):
    target = tmp_path / "model.ckpt"
    files.write_bytes(target, b"good")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # as a disk with 1,000 bytes left
    try:
        with pytest.raises(UsageError, match=r"File too large; the file that was there is kept"):
            files.write_bytes(target, bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [target]

    def full():
        with files.replacing(tmp_path / "new.json"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UsageError, match=r"new.json: No space left on device$"):
        full()


@pytest.mark.parametrize("ask", [files.require_writable, lambda path: files.write_text(path, "")])
def test_where_nothing_can_be_written_is_told_in_the_same_words(tmp_path, ask):
    for path, told in (
        (tmp_path / "none" / "x.json", "there is no directory"),
        (tmp_path, "is a directory; give the name of a file"),
        ("/proc/nothing.json", "cannot write there"),
        (tmp_path / ("x" * 300), "File name too long"),
        ("a\0b", "is not the name of a file"),
    ):
        with pytest.raises((UsageError, OSError), match=told):
            ask(path)
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "x.json")
    with pytest.raises(UsageError, match=r"there is no directory .*/gone$"):
        ask(tmp_path / "link")
    (tmp_path / "link").unlink()
    with pytest.raises(UsageError, match=r"there is no directory .*/none$"):
        files.require_png(tmp_path / "none" / "x.png")
    ask(tmp_path / "fine.json")
    assert {path.name for path in tmp_path.iterdir()} <= {"fine.json"}


def test_reading_is_bounded_whatever_a_file_says_of_its_size(tmp_path):
    (tmp_path / "ten").write_bytes(bytes(10))
    assert files.read_bytes(tmp_path / "ten", most=10) == bytes(10)
    assert files._PART < 2**26  # the memory that an endless file takes
    for path in (tmp_path / "ten", "/dev/zero"):
        with pytest.raises(UsageError, match="larger than 9 bytes"):
            files.read_bytes(path, most=9)


def test_a_seal_notices_every_flipped_bit_and_every_cut(tmp_path):
    path, content = tmp_path / "sealed", b"what was written"
    sealed.write_sealed(path, content)
    assert sealed.read_sealed(path) == content
    assert sealed.read_sealed(path, most=len(content)) == content
    sealed.write_sealed(tmp_path / "large", bytes(2**20))
    assert sealed.read_sealed(tmp_path / "large") == bytes(2**20)
    with pytest.raises(UsageError, match="larger than"):
        sealed.read_sealed(path, most=len(content) - 1)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match=r"damaged|not a sealed file"):
            sealed.read_sealed(path)
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(UsageError, match=r"damaged|not a sealed file"):
            sealed.read_sealed(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(UsageError, match="damaged"):
        sealed.read_sealed(path)


def test_the_nearest_name_is_suggested():
    assert "did you mean 'leduc_poker'?" in str(unknown("game", "leduk", ["kuhn", "leduc_poker"]))
    assert str(unknown("thing", "zzzz", ["a", "b"])).endswith("there are a, b")
    assert str(unknown("thing", "zzzz", "abcdefghijklmno")).endswith("k, l, ...")


def test_tables_are_aligned():
    text = command.table(("name", "x"), [("a", "1"), ("long", "22")])
    assert text == "name   x\na      1\nlong  22"


def test_long_names_lose_their_middle():
    assert command.shortened("short", 5) == "short"
    assert command.shortened("abcdefghijklmnop", 12) == "abcde...mnop"
    assert len(command.shortened("x" * 500, 100)) == 100
