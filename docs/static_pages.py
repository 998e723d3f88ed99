"""Pages that `make docs` adds to the site: tables to play at, reports, and the notebook.

mkdocs calls `on_files`. Everything is computed from files of the repository within seconds; the
network was trained by `train_ppo --game kuhn --net mlp --width 32 --steps 2000000`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from algorithms.playing.page import PERFECT, assets
from algorithms.reports.html_page import page_html
from algorithms.reports.writing import report_document

DOCS = Path(__file__).parent
NETWORK = DOCS / "kuhn-network.onnx"
NOTEBOOK = "notebook.ipynb"
# Folders of the site with a table of Kuhn poker, and the policy that sits there.
TABLES = {"play-perfect": PERFECT, "play-network": str(NETWORK)}
# Reports, their game and policies.
REPORTS = {
    "liars-dice-report.html": (
        "liars_dice(numdice=1,dice_sides=4)",
        ("cfr+:10", "uniform"),
    ),
    "river-report.html": (
        "river(board=7dJc3s9hQd,pot=2000)",
        ("pcfr+:300", "uniform"),
    ),
}
# The pages that this file adds, as links name them.
PAGES = (*(f"{folder}/index.html" for folder in TABLES), *REPORTS, "notebook.md")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages to the files of the site; mkdocs calls this."""
    from mkdocs.structure.files import File

    for path, content in generated().items():
        files.append(File.generated(config, path, content=content))
    return files


def generated(reports: Iterable[str] = REPORTS) -> dict[str, str | bytes]:
    """The content of each page by its path in the site, with some of the reports."""
    pages: dict[str, str | bytes] = {}
    for folder, policy in TABLES.items():
        for name, content in assets(policy).items():
            pages[folder + name] = content
    for name in reports:
        game, policies = REPORTS[name]
        pages[name] = page_html(report_document(policies, game))
    pages["notebook.md"] = notebook_page((DOCS / NOTEBOOK).read_text(encoding="utf-8"))
    return pages


def notebook_page(text: str) -> str:
    """A notebook with its stored outputs as Markdown."""
    parts = [f"*[{NOTEBOOK}]({NOTEBOOK}) is this page as a notebook.*"]
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    # The title stays first.
    parts[0], parts[1] = parts[1], parts[0]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    """An output of a cell: its HTML, or its text."""
    data = output.get("data", {})
    if "text/html" in data:
        # Markdown takes a block of HTML as it is, if it has no empty line.
        lines = "".join(data["text/html"]).splitlines()
        return "\n".join(line for line in lines if line.strip())
    text = "".join(data.get("text/plain", output.get("text", "")))
    return f"```text\n{text}\n```" if text else ""
