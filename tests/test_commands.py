"""`kuhn-bridge COMMAND`, as those have it who installed the wheel."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import algorithms
from algorithms.support.command import as_called
from kuhn_bridge import __version__
from parity import candidate, commands

ROOT = Path(algorithms.__file__).parent.parent
# What the installed script does: neither the folder nor `python -m` is on its path.
SCRIPT = """
import sys
sys.argv[0] = "kuhn-bridge"
sys.path.insert(0, {!r})
from parity.commands import main
sys.exit(main())
"""


def script(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT.format(str(ROOT)), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_every_command_has_a_name_and_every_name_a_command():
    files = {
        f"{folder}.{path.stem}"
        for folder in ("algorithms", "parity")
        for path in (ROOT / folder).glob("*.py")
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert {module for module, _ in commands.COMMANDS.values()} == files
    for name, (module, _) in commands.COMMANDS.items():
        assert module.rpartition(".")[2].replace("_", "-") == name


def test_without_a_command_they_are_listed(capsys):
    assert commands.main([]) == 0
    assert "kuhn-bridge COMMAND" in capsys.readouterr().out
    assert commands.main(["--version"]) == 0
    assert capsys.readouterr().out == f"kuhn-bridge {__version__}\n"


def test_an_unknown_command_is_one_line(capsys):
    assert commands.main(["nashcon"]) == 2
    assert capsys.readouterr().err == (
        "kuhn-bridge: unknown command 'nashcon': did you mean 'nashconv'?\n"
    )


def test_commands_work_whatever_lies_in_the_folder(tmp_path):
    for name in ("algorithms", "parity", "kuhn_bridge"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    code, out, err = script("nashconv", "uniform", "nash:0", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "uniform  0.916667" in out


def test_a_command_goes_by_the_name_it_was_called_by(tmp_path):
    code, _, err = script("nashconv", "--nonsense", cwd=tmp_path)
    assert code == 2
    assert err.startswith("kuhn-bridge nashconv: ")
    code, out, _ = script("train-ppo", "--help", cwd=tmp_path)
    assert code == 0
    assert out.startswith("usage: kuhn-bridge train-ppo")


def test_a_command_names_others_as_it_was_called(monkeypatch):
    """No message says `python -m`: that would find an algorithms/ of the user's own."""
    for path in (
        path for folder in ("algorithms", "parity") for path in ROOT.glob(f"{folder}/**/*.py")
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        told = {id(node.value) for node in nodes if isinstance(node, ast.Expr | ast.keyword)}
        told |= {
            id(argument)
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("as_called")
            for argument in node.args
        }
        for node in nodes:
            if isinstance(node, ast.Constant) and "python -m" in str(node.value):
                assert id(node) in told, f"{path.name}:{node.lineno}"
    for called, name in (
        ("kuhn-bridge", "kuhn-bridge train-ppo"),
        ("x.py", "python -m a.train_ppo"),
    ):
        monkeypatch.setattr(sys, "argv", [called])
        assert as_called("python -m a.train_ppo") == name


def test_a_candidate_may_be_a_module_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "mine_alone.py").write_text("from kuhn_bridge import KuhnPoker as Mine\n")
    (tmp_path / "algorithms.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.delitem(sys.modules, "mine_alone", raising=False)
    assert candidate.load("mine_alone:Mine").__name__ == "KuhnPoker"
    assert sys.path[-1] == str(tmp_path)
    with pytest.raises(candidate.UsageError, match="No module named 'nobodys'"):
        candidate.load("nobodys:Mine")
