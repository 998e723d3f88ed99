"""Makes the example and the pictures of docs/report.md, and the one of docs/poker.md.

Run it as `python docs/report_pictures.py [MODEL]`. Without a model it trains one first (about 10
CPU seconds). Needs Playwright and a Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from algorithms import train_ppo
from algorithms.reports.writing import report_document, write_document

HERE = Path(__file__).parent
EXAMPLE = HERE / "leduc-report.html"
LAPTOP, PHONE = (
    {"viewport": {"width": width, "height": 860}, "color_scheme": "light"} for width in (1180, 390)
)
DARK = LAPTOP | {"color_scheme": "dark"}
RIVER = "river(board=7dJc3s9hQd,pot=2000)"
FLAGS = ["--no-sandbox", "--disable-gpu"]


def main(model: str | None = None) -> None:
    """Write the example, then look at it."""
    with tempfile.TemporaryDirectory() as folder:
        source = model or str(Path(folder) / "leduc.zip")
        if model is None:
            train_ppo.main(["--game", "leduc_poker", "--out", source, "--quiet"])
        write_document(EXAMPLE, report_document([source], equilibrium="cfr+:1000"))
    with sync_playwright() as playwright:
        executable = "/usr/bin/chromium-headless-shell"
        path = executable if Path(executable).exists() else None
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        take(browser, "report-summary.png", "#summary", LAPTOP)
        take(browser, "report-losses.png", "#losses", LAPTOP)
        take(browser, "report-explorer.png", "#explorer/3,0,1,2", DARK)
        take(browser, "report-phone.png", "#explorer/3,0,1,2", PHONE)
        take(browser, "report-play.png", "#play", LAPTOP, hands=6)
        take_river(browser)
        browser.close()


def take_river(browser: Any) -> None:
    """The first decision of a solved river endgame, and one of its starting hands."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "river.html"
        write_document(report, report_document(["cfr+:1000"], RIVER))
        view = browser.new_context(**LAPTOP)
        page = view.new_page()
        page.goto(f"{report.as_uri()}#hands")
        page.locator("body[data-ready]").wait_for()
        page.locator("#hands-grid button[aria-label^=KTs]").click()
        page.locator("#hands").screenshot(path=HERE / "river-hands.png")
        view.close()


def take(browser: Any, name: str, place: str, options: dict[str, Any], *, hands: int = 0) -> None:
    """A picture of one place of the example."""
    view = browser.new_context(**options)
    view.add_init_script(
        "let state = 7; Math.random = () => (state = (state * 16807) % 2147483647) / 2147483647;"
    )
    page = view.new_page()
    page.goto(f"{EXAMPLE.as_uri()}{place}")
    page.locator("body[data-ready]").wait_for()
    for hand in range(hands):
        while page.locator("#deal").is_hidden():
            page.locator("#own-moves button").first.click()
        if hand < hands - 1:
            page.locator("#deal").click()
    if place == "#play":
        page.locator("#play").evaluate("(play) => play.scrollIntoView()")
    page.screenshot(path=HERE / name)
    view.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
