"""Links, commands and targets that pages and workflows name do exist."""

import re
import tomllib
from pathlib import Path

import pytest

from parity.commands import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
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
        if "://" in link:
            continue
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(path), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    modules = {module for module, _ in COMMANDS.values()}
    for package, name in COMMAND.findall(page.read_text(encoding="utf-8")):
        assert f"{package}.{name}" in modules, f"{page.name}: python -m {package}.{name}"


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert named == {path.name for path in (ROOT / "docs").glob("*.md")}


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
