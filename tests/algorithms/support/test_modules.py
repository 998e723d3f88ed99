"""`--import MODULE` registers a game of the user's own before a command loads it."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from algorithms import nashconv, solve
from algorithms.__main__ import COMMANDS
from algorithms.support.errors import UsageError
from algorithms.support.modules import import_modules, imported_modules

EXAMPLES = Path(__file__).parents[3] / "examples"
GAME = "python_ace_king"


def run(*arguments, folder):
    """A command in a new process, where nothing has been imported yet."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["own_game", "own_game.py", str(EXAMPLES / "own_game.py")])
def test_a_game_of_ones_own_is_named_on_the_command_line(module):
    done = run("algorithms.nashconv", "uniform", "--game", GAME, "--json", folder=EXAMPLES)
    assert done.returncode == 2
    assert "known once its module is imported" in done.stderr
    options = ("--game", GAME, "--import", module, "--json")
    done = run("algorithms.nashconv", "uniform", *options, folder=EXAMPLES)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nash_conv"] == pytest.approx(1)


def options_of(command, capsys):
    """The options that a command's help lists."""
    module, _ = COMMANDS[command]
    with pytest.raises(SystemExit):
        import_module(module).main(["--help"])
    return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_every_command_with_a_game_imports_modules(capsys):
    with_game = [name for name in COMMANDS if "--game" in options_of(name, capsys)]
    assert len(with_game) > 10
    assert [name for name in with_game if "--import" not in options_of(name, capsys)] == []


def test_another_process_imports_the_module_that_a_game_needs(tmp_path):
    write = (
        "import pickle, pathlib; from algorithms.support.modules import import_modules; "
        f"import_modules([{str(EXAMPLES / 'own_game.py')!r}]); import kuhn_bridge as kb; "
        f"game = kb.load_game({GAME!r}); pathlib.Path('game').write_bytes(pickle.dumps(game))"
    )
    read = "import pickle, pathlib; print(pickle.loads(pathlib.Path('game').read_bytes()).name)"
    for code in (write, read):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert done.stdout == f"{GAME}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise KeyError('x')", "(KeyError: 'x')"),
        ("raise SystemExit(3)", "(SystemExit: 3)"),
        ("def f(:", "SyntaxError"),
        (None, "there is no such file"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, refused, text, message):
    path = tmp_path / f"broken{abs(hash(message))}.py"
    if text:
        path.write_text(text, encoding="utf-8")
    line = refused(solve.main, ["--import", str(path)])
    assert f"cannot import {path}" in line
    assert message in line
    assert str(path) not in imported_modules()


def test_a_name_that_does_not_exist_is_one_line(refused):
    assert "No module named 'no_such_module'" in refused(
        nashconv.main, ["uniform", "--import", "no_such_module"]
    )


def test_a_file_with_the_name_of_another_module_is_refused(tmp_path):
    (tmp_path / "json.py").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="rename the file"):
        import_modules([str(tmp_path / "json.py")])
