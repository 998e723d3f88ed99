"""The pages that `make docs` adds, on a plain server of static files; the notebook runs."""

import functools
import http.server
import importlib.util
import json
import threading
from pathlib import Path

import pytest

from tests.kuhn_bridge.web.test_page import browser  # noqa: F401  # a fixture
from tests.kuhn_bridge.web.test_web import need

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"


def static_pages():
    """The module `docs/static_pages.py`, as mkdocs loads it."""
    spec = importlib.util.spec_from_file_location("static_pages", DOCS / "static_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a server of the pages."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in static_pages().generated(["liars-dice-report.html"]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def open_page(site, browser):  # noqa: F811
    """A function that opens a page; no errors and no requests to elsewhere are allowed."""
    context = browser.new_context()
    wrong = []
    page = context.new_page()
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    own = (site, "data:", "blob:")
    page.on("request", lambda sent: sent.url.startswith(own) or wrong.append(sent.url))

    def load(name):
        page.goto(f"{site}/{name}")
        return page

    yield load
    context.close()
    assert wrong == []


@pytest.mark.parametrize(
    ("folder", "opponent"),
    [("play-perfect", "Perfect play"), ("play-network", "kuhn-network.onnx")],
)
def test_kuhn_is_played_from_static_files(open_page, folder, opponent):
    page = open_page(f"{folder}/index.html")
    page.wait_for_selector("#rules[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("[data-action]:enabled")
    assert page.eval_on_selector("#opponent", "it => it.selectedOptions[0].label") == opponent
    while page.query_selector("#next[hidden]"):
        page.click("[data-action]:enabled:visible")
        page.wait_for_selector("[data-action]:enabled:visible, #next:not([hidden])")
    assert page.inner_text("#trouble") == ""
    assert page.inner_text("#hands") == "1 hand"


def test_reports_open(open_page):
    page = open_page("liars-dice-report.html")
    page.wait_for_selector("h1:has-text('liars_dice')")
    assert "cfr+:1000" in page.inner_text("body")


def test_the_index_shows_the_pages():
    shown = (DOCS / "index.md").read_text(encoding="utf-8").partition("```")[0]
    assert all(f"]({name})" in shown for name in static_pages().PAGES)


def pages_of(navigation):
    """The pages of a navigation of mkdocs: each entry is a page, or a group with a list."""
    for entry in navigation:
        for content in entry.values():
            yield from [content] if isinstance(content, str) else pages_of(content)


def test_the_navigation_has_every_page_once():
    need(importlib.util.find_spec("yaml"), "PyYAML")
    import yaml

    config = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))
    written = [path.name for path in DOCS.glob("*.md")] + ["notebook.md"]
    assert sorted(pages_of(config["nav"])) == sorted(written)


def test_the_notebook_is_a_page_with_its_outputs():
    text = static_pages().notebook_page(NOTEBOOK.read_text(encoding="utf-8"))
    assert text.startswith("# From Kuhn to a measured Leduc agent")
    assert text.count('<div class="kuhn-bridge">') == 8
    assert "<svg" in text


def test_the_notebook_runs():
    need(importlib.util.find_spec("nbclient"), "nbclient")
    need(importlib.util.find_spec("ipykernel"), "ipykernel")
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    kinds = [{*output["data"]} for cell in stored for output in cell.get("outputs", [])]
    assert [{*output["data"]} for output in outputs] == kinds
