"""`kuhn-bridge COMMAND`, as users of the installed wheel have it."""

import subprocess
import sys
from pathlib import Path

import pytest

import algorithms
from algorithms import __main__ as commands
from algorithms.support.command import as_called
from kuhn_bridge import __version__
from parity import candidate

ROOT = Path(algorithms.__file__).parent.parent
# Like the installed script: neither the working directory nor `python -m` is on its path.
SCRIPT = """
import sys
sys.argv[0] = "kuhn-bridge"
sys.path.insert(0, {!r})
from algorithms.__main__ import main
sys.exit(main())
"""


def script(*arguments, cwd):
    command = [sys.executable, "-P", "-c", SCRIPT.format(str(ROOT)), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_every_command_is_listed_and_named_by_its_module():
    modules = {
        f"{folder}.{path.stem}"
        for folder in ("algorithms", "parity")
        for path in (ROOT / folder).glob("*.py")
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert {module for module, _ in commands.COMMANDS.values()} == modules
    for name, (module, _) in commands.COMMANDS.items():
        assert module.rpartition(".")[2].replace("_", "-") == name


def test_without_a_command_they_are_listed(capsys):
    assert commands.main([]) == 0
    assert "kuhn-bridge COMMAND" in capsys.readouterr().out
    assert commands.main(["--version"]) == 0
    assert capsys.readouterr().out == f"kuhn-bridge {__version__}\n"


def test_an_unknown_command_is_one_line(refused):
    line = "kuhn-bridge: unknown command 'nashcon': did you mean 'nashconv'?\n"
    assert refused(commands.main, ["nashcon"]) == line


def test_packages_of_the_working_directory_do_not_shadow_ours(tmp_path):
    for name in ("algorithms", "parity", "kuhn_bridge"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    code, out, err = script("nashconv", "uniform", "nash:0", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "uniform  0.916667" in out


def test_messages_name_a_command_as_it_was_called(tmp_path, monkeypatch):
    code, _, err = script("nashconv", "--nonsense", cwd=tmp_path)
    assert code == 2
    assert err.startswith("kuhn-bridge nashconv: ")
    code, out, _ = script("train-ppo", "--help", cwd=tmp_path)
    assert code == 0
    assert out.startswith("usage: kuhn-bridge train-ppo")
    names = {"kuhn-bridge": "kuhn-bridge train-ppo", "x.py": "python -m a.train_ppo"}
    for called, name in names.items():
        monkeypatch.setattr(sys, "argv", [called])
        assert as_called("python -m a.train_ppo") == name


def test_a_candidate_may_be_a_module_of_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "mine_alone.py").write_text("from kuhn_bridge import KuhnPoker as Mine\n")
    (tmp_path / "algorithms.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.delitem(sys.modules, "mine_alone", raising=False)
    assert candidate.load("mine_alone:Mine").__name__ == "KuhnPoker"
    assert sys.path[-1] == str(tmp_path)
    with pytest.raises(candidate.UsageError, match="No module named 'nobodys'"):
        candidate.load("nobodys:Mine")
