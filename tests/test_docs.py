"""Links of the documentation lead somewhere, and what it says of files is so."""

import re
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
