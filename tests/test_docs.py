"""Links, commands and targets of the pages exist; commands print what the pages show."""

import re
import runpy
import shlex
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

import kuhn_bridge
from algorithms.__main__ import COMMANDS
from algorithms.games import MAX_NODES
from algorithms.self_play.settings import KINDS, Settings, default
from algorithms.solvers import DEFAULT_ITERATIONS, DEFAULT_VARIANT, NAMES
from algorithms.support import budget

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
EXAMPLES = [*(ROOT / "examples").glob("*.py")]
SITE = runpy.run_path(str(ROOT / "docs" / "static_pages.py"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"python -m (algorithms|parity)\.(\w+)")


def anchors(path):
    """The headings of a page as GitHub and mkdocs name them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        found = path.exists() and (not anchor or anchor in anchors(path))
        found |= page.parent.name == "docs" and target in SITE["PAGES"]
        assert "://" in link or found, f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_site_links_to_nothing_outside_of_docs(page):
    """Only `docs` becomes the site; `make docs` refuses other links."""
    if page.parent.name == "docs":
        assert [link for link in LINK.findall(page.read_text("utf-8")) if link[:3] == "../"] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    modules = {module for module, _ in COMMANDS.values()}
    for package, name in COMMAND.findall(page.read_text(encoding="utf-8")):
        assert f"{package}.{name}" in modules, f"{page.name}: python -m {package}.{name}"


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_users_are_shown_the_public_api_alone(page):
    """`algorithms` and `parity` are run as commands, not imported."""
    imported = re.compile(r"^(?:>>> )?(?:from|import) (?:algorithms|parity).*", re.MULTILINE)
    assert imported.findall(page.read_text(encoding="utf-8")) == []


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    generated = {name for name in SITE["PAGES"] if name.endswith(".md")}
    assert named == generated | {path.name for path in (ROOT / "docs").glob("*.md")}


CI = ROOT / ".github" / "workflows" / "ci.yml"
WORKFLOWS = [*CI.parent.glob("*.yml"), ROOT / ".ci" / "run"]
TARGET = re.compile(r"(?:run: |^)make ([\w-]+)", re.MULTILINE)


@pytest.mark.parametrize("page", [*WORKFLOWS, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_targets_and_files_exist(page):
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = TARGET.findall(text)
    assert named
    assert set(named) <= made
    files = re.findall(r"cache-dependency-path: ([\w.]+)|(\w+/\w+\.py)$", text, re.MULTILINE)
    for path in filter(None, (path for pair in files for path in pair)):
        assert (ROOT / path).exists(), path


def test_every_python_that_is_promised_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    (tested,) = re.findall(r"python-version: \[(.+)\]", CI.read_text())
    assert re.findall(r"3\.\d+", tested) == promised
    assert project["requires-python"] == f">={promised[0]}"


def settings_table():
    """The settings that are numbers, with their defaults, as docs/training.md shows them."""
    yield "| setting | table | `mlp` | PPO | meaning |"
    yield "|---|---|---|---|---|"
    for field in fields(Settings):
        if isinstance(field.default, str):
            continue
        values = (default(field.name, kind) for kind in KINDS)
        cells = ("" if value is None else f"{value:,}" for value in values)
        flag = field.name.replace("_", "-")
        yield f"| `--{flag}` | {' | '.join(cells)} | {field.metadata['help']} |"


def test_settings_are_as_documented():
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition("\n## Settings\n")[2], flags=re.MULTILINE)[0]
    assert [line for line in section.splitlines() if line.startswith("|")] == [*settings_table()]


def test_docstrings_state_the_defaults():
    solve = kuhn_bridge.solve.__doc__
    load = kuhn_bridge.load_game.__doc__
    assert f"`{DEFAULT_VARIANT}` (the default)" in solve
    assert f"({DEFAULT_ITERATIONS:,} by default)" in solve
    assert all(f"`{name}`" in solve for name in NAMES)
    assert f"({MAX_NODES:,} by default)" in load
    (seed,) = budget.SEEDS
    bound = " ".join(kuhn_bridge.Policy.lower_bound.__doc__.split())
    assert f"({budget.DECISIONS:,} by default)" in bound
    assert f"({budget.HANDS:,} by default" in bound
    assert f"and {budget.TREE_HANDS:,} in games with a tree)" in bound
    assert f"(only {seed} by default)" in bound


SHOWN = re.compile(r"^\$ python -m ([\w.]+) ?(.*)$")
VARIES = ("agrees: the largest difference",)  # with the machine


def shown_in(page):
    """Commands and what the page says that they print."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for block in re.findall(r"```text\n(\$ .*?)```", text, re.DOTALL):
        yield from (part.split("\n", 1) for part in re.split(r"(?m)^(?=\$ )", block) if part)


def test_commands_print_what_the_pages_show(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    seen = 0
    for line, wanted in (*shown_in("games.md"), *shown_in("ten-minutes.md")):
        module, given = SHOWN.match(line).groups()
        given, _, tail = given.partition(" | tail -")
        import_module(module).main(shlex.split(given))
        out = "".join(capsys.readouterr()).splitlines()
        lines = zip(out[-int(tail) :] if tail else out, wanted.splitlines(), strict=True)
        other = [pair for pair in lines if pair[0] != pair[1]]
        assert [pair for pair in other if not any(word in pair[1] for word in VARIES)] == []
        seen += 1
    assert seen == 6
