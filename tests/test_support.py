"""What the commands share."""

import pytest

from algorithms.support import command, files
from algorithms.support.errors import UsageError, unknown


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


def test_the_nearest_name_is_suggested():
    assert "did you mean 'leduc_poker'?" in str(unknown("game", "leduk", ["kuhn", "leduc_poker"]))
    assert "there are a, b" in str(unknown("thing", "zzzz", ["a", "b"]))


def test_tables_are_aligned():
    text = command.table(("name", "x"), [("a", "1"), ("long", "22")])
    assert text == "name   x\na      1\nlong  22"
