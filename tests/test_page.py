"""The whole page in a real browser, beside the same hands in the core."""

from __future__ import annotations

import json
import math
import random
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms import play
from algorithms.policies import sources
from kuhn_bridge import INFORMATION_STATES, Action, Card, State, TabularPolicy
from tests.test_play import serving
from tests.test_web import ROOT, action_to, need, onnx_path

__all__ = ["onnx_path"]  # a fixture

CARD_NAMES = {Card.J: "Jack", Card.Q: "Queen", Card.K: "King"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SIZES = (
    *((1920, 1080), (1280, 800), (1280, 640), (1000, 700), (820, 1180), (768, 1024)),
    *((390, 844), (375, 667), (360, 740), (344, 882), (320, 568)),
    *((844, 390), (740, 360), (667, 375), (640, 400), (568, 320)),  # 640 is 1280 at 200% zoom
)
# No font is named that a machine may lack: letters further apart or closer stand in for it.
FONTS = {"as they are": "normal", "wide": "0.04em", "narrow": "-0.05em"}
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SNAPSHOT = """() => ({
    own: document.querySelector("#own-card").dataset.card,
    bot: document.querySelector("#bot-card").dataset.card,
    moves: [...document.querySelectorAll("#history li")].map((li) => li.textContent),
    pot: document.querySelector("#pot").textContent,
    legal: [...document.querySelectorAll("[data-action]:enabled:not([hidden])")].map(
        (button) => Number(button.dataset.action)),
    over: !document.querySelector("#next").hidden,
})"""
SCORE = """() => Object.fromEntries(["total", "mean", "expected", "hands", "status"].map(
    (id) => [id, document.getElementById(id).textContent]))"""
# What sticks out of the page or of its own box, and the children of the table that overlap.
OVERFLOW = """() => {
    const wide = [document.documentElement, ...document.querySelectorAll("body *")].filter(
        (e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1
            && getComputedStyle(e).display !== "inline"
            && getComputedStyle(e).textOverflow !== "ellipsis");
    const parts = [...document.querySelectorAll(".place, .middle > *, .moves")].map(
        (e) => [e, e.getBoundingClientRect()]);
    const high = parts.flatMap(([a, p]) => parts.filter(([b, q]) => a !== b
        && p.left < q.right - 1 && q.left < p.right - 1
        && p.top < q.bottom - 1 && q.top < p.bottom - 1).map(([b]) => b));
    return [...wide, ...high].map((e) => e.id || e.className || e.tagName);
}"""
SPACING = "(spacing) => { document.documentElement.style.letterSpacing = spacing; }"
MINUS, APOSTROPHE = "\N{MINUS SIGN}", "\N{RIGHT SINGLE QUOTATION MARK}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    need(find_spec("playwright"), "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = [
            path for path in (*map(shutil.which, BROWSERS), own) if path and Path(path).exists()
        ]
        executable = need(found, "Chromium (python -m playwright install chromium)")[0]
        running = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield running
        running.close()


@dataclass
class Sitting:
    """A person at the page, and the same hands in the core: one stream of chance feeds both."""

    page: Any
    policy: TabularPolicy
    chance: Iterator[float]
    seat: int = 1
    choice: str = "alternate"
    hand: State = field(init=False)
    results: list[tuple[int, int]] = field(default_factory=list)

    def deal(self) -> None:
        """The core's side of a new hand, drawn as the page draws it."""
        self.seat = 1 - self.seat if self.choice == "alternate" else int(self.choice)
        deck = list(Card)
        self.hand = State.new(*(deck.pop(int(next(self.chance) * len(deck))) for _ in range(2)))
        self.bot_moves()

    def bot_moves(self) -> None:
        while self.hand.actor == 1 - self.seat:
            name = f"{int(self.hand.cards[1 - self.seat])}{self.hand.letters}"
            row, draw = self.policy[name], next(self.chance)
            cumulative = np.cumsum([row.get(action, 0) for action in Action])
            self.hand = self.hand.act(int(np.searchsorted(cumulative, draw, side="right")))
        if self.hand.is_terminal:
            self.results.append((self.seat, self.hand.returns[self.seat]))

    def act(self, action: Action, press: Callable[[str], None]) -> None:
        self.hand = self.hand.act(action)
        self.bot_moves()
        press("cbf"[action])

    def see(self) -> None:
        """The page comes to show what the core says."""
        wanted = self.wanted()
        for _ in range(200):
            seen = self.page.evaluate(SNAPSHOT)
            if seen == wanted:
                break
            self.page.wait_for_timeout(10)
        assert seen == wanted
        if self.hand.is_terminal:
            self.see_totals()
        else:
            self.see_words()

    def wanted(self) -> dict[str, Any]:
        """What `SNAPSHOT` should find."""
        words, over = self.hand.history, self.hand.is_terminal
        own, other = (self.hand.cards[seat].name for seat in (self.seat, 1 - self.seat))
        movers = [index % 2 == self.seat for index in range(len(words))]
        return {
            "own": own,
            "bot": other if over and words[-1] != "fold" else "back",
            "moves": [
                f"You {word}" if mine else f"Bot {word}s"
                for word, mine in zip(words, movers, strict=True)
            ],
            "pot": f"Pot {2 + sum(word in ('bet', 'call') for word in words)}",
            "legal": [] if over else [int(action) for action in self.hand.legal_actions],
            "over": over,
        }

    def see_totals(self) -> None:
        chips = [won for _, won in self.results]
        expected = sum((1 if seat else -1) / 18 for seat, _ in self.results)
        label = self.page.locator("dt:has(+ #expected)").text_content()
        assert label == "Perfect play"
        seen = self.page.evaluate(SCORE)
        assert number(seen["total"].split("±")[0]) == sum(chips)
        assert number(seen["mean"].split("±")[0]) == pytest.approx(np.mean(chips), abs=0.0051)
        assert number(seen["expected"]) == pytest.approx(expected, abs=0.0051)
        assert seen["hands"].split()[0] == str(len(chips))
        if len(chips) > 1:
            error = statistics.stdev(chips) / math.sqrt(len(chips))
            assert float(seen["total"].split("±")[1]) == pytest.approx(
                error * len(chips), abs=0.051
            )
            assert float(seen["mean"].split("±")[1]) == pytest.approx(error, abs=0.0051)
        verb = "win" if chips[-1] > 0 else "lose"
        assert f"{verb} {abs(chips[-1])} chip" in seen["status"]

    def see_words(self) -> None:
        """The status tells who only listens all that a decision needs: the card at the first."""
        words, first = self.hand.history, len(self.hand.history) < 2
        choices = [self.hand.act(action).history[-1] for action in self.hand.legal_actions]
        said = [
            *([f"You hold the {CARD_NAMES[self.hand.cards[self.seat]]}."] if first else []),
            *([f"The bot {words[-1]}s."] if words else []),
            f"{' or '.join(choices).capitalize()}?",
        ]
        assert self.page.text_content("#status") == " ".join(said)


def number(text: str) -> float:
    return float(text.strip().replace(MINUS, "-"))


@contextmanager
def sitting(
    browser: Any, source: str, *, seed: int = 1, route: Any = None, **context: Any
) -> Iterator[Sitting]:
    """The page, opened and ready; an error it logs or a request elsewhere is a failure."""
    rng = random.Random(seed)
    draws = [rng.random() for _ in range(1000)]
    troubles: list[str] = []
    with serving(source) as server:
        view = browser.new_context(**{"viewport": LAPTOP, **context})
        page = view.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        page.on(
            "request",
            lambda r: None if r.url.startswith(server.url) else troubles.append(r.url),
        )
        page.add_init_script(f"const draws = {draws}; Math.random = () => draws.shift();")
        if route:
            page.route(*route)
        page.goto(server.url)
        page.locator("body[data-ready]").wait_for()
        try:
            yield Sitting(page, sources.load(source).to_kuhn(), iter(draws))
        finally:
            view.close()
        assert troubles == []


def play_hands(table: Sitting, hands: int, press: Callable[[str], None], seed: int = 2) -> None:
    rng = random.Random(seed)
    for hand in range(hands):
        table.deal()
        table.see()
        while not table.hand.is_terminal:
            table.act(rng.choice(table.hand.legal_actions), press)
            table.see()
        if hand < hands - 1:
            press("n")


def mind(page: Any) -> np.ndarray:
    """The rows `(12, 3)` that the page says its bot plays."""
    rows = page.locator("#rows tr").all()
    return np.array([row.get_attribute("data-probabilities").split() for row in rows], np.float64)


def clicker(page: Any) -> Callable[[str], None]:
    return lambda key: page.locator(f"button[data-key={key}]").click()


def test_whole_hands_by_clicking_in_both_seats(browser: Any) -> None:
    with sitting(browser, "uniform") as table:
        play_hands(table, 24, clicker(table.page))
        assert {seat for seat, _ in table.results} == {0, 1}


@pytest.mark.parametrize("choice", ["0", "1"])
def test_whole_hands_by_keyboard_in_a_chosen_seat(browser: Any, choice: str) -> None:
    with sitting(browser, "random:4", seed=int(choice)) as table:
        play_hands(table, 1, table.page.keyboard.press)
        table.page.locator(f"input[value='{choice}'] + span").click()
        table.choice = choice
        table.page.keyboard.press("n")
        play_hands(table, 12, table.page.keyboard.press)
        assert [seat for seat, _ in table.results[1:]] == [int(choice)] * 12


def test_the_keyboard_stays_among_the_moves(browser: Any) -> None:
    with sitting(browser, "uniform") as table:
        page = table.page
        page.locator("button[data-key=c]").focus()
        for _ in range(6):
            page.keyboard.press("Enter")
            page.wait_for_timeout(20)
            assert page.evaluate("document.activeElement.closest('.moves') !== null")
            assert page.evaluate(
                "!document.activeElement.disabled && !document.activeElement.hidden"
            )


@pytest.mark.parametrize("how", ["double click", "Enter", "Space", "c"])
def test_a_double_click_or_a_held_key_is_one_move(browser: Any, tmp_path: Path, how: str) -> None:
    """Against a bot that bets after a check, the button that said Check says Call next."""
    rows = TabularPolicy.uniform().to_dict()
    rows |= {f"{card}p": {"CHECK_OR_CALL": 0.0, "BET": 1.0} for card in range(3)}
    path = tmp_path / "bets.json"
    path.write_text(TabularPolicy.from_dict(rows).to_json())
    with sitting(browser, str(path)) as table:
        page, button = table.page, table.page.locator("button[data-key=c]")

        def press(_: str) -> None:
            if how == "double click":
                return button.dblclick()
            button.focus()
            for _ in range(4):
                page.keyboard.down(how)
            return page.keyboard.up(how)

        table.deal()
        for history in (("check", "bet"), ("check", "bet", "call")):
            table.act(Action.CHECK_OR_CALL, press)
            assert table.hand.history == history
            page.wait_for_timeout(50)
            table.see()


def test_keys_of_illegal_moves_and_with_modifiers_do_nothing(browser: Any) -> None:
    with sitting(browser, "uniform") as table:
        table.deal()
        for key in ("f", "n", "Enter", "Control+b", "Alt+c", "x"):
            table.page.keyboard.press(key)
        table.see()


def test_equilibrium_in_the_persons_place(browser: Any) -> None:
    """All 12 decisions are reviewed rightly: what the bands say, in words."""
    verdicts: dict[tuple[str, Action], str] = {}
    with sitting(browser, "uniform", seed=5) as table:
        rng = random.Random(6)
        for _ in range(60):
            table.deal()
            decided = []
            while not table.hand.is_terminal:
                action = rng.choice(table.hand.legal_actions)
                own = int(table.hand.cards[table.seat])
                decided.append((f"{own}{table.hand.letters}", action))
                table.act(action, table.page.keyboard.press)
            table.page.locator("#next").wait_for()
            lines = table.page.locator("#review li").all()
            verdicts |= zip(decided, (li.get_attribute("class") for li in lines), strict=True)
            assert decided[-1][0][0] == str("JQK".index(lines[-1].text_content()[0]))
            table.page.keyboard.press("n")
            table.page.get_by_text("Shown when the hand is over").wait_for()
    ends = [sources.load(f"nash:{alpha}").to_kuhn() for alpha in ("0", "1/3")]
    for (name, action), verdict in verdicts.items():
        low, high = sorted(end[name][action] for end in ends)
        mixed = "mostly" if low > 0.5 else "sometimes"
        wanted = "never" if high == 0 else "always" if low == 1 else mixed
        assert verdict == wanted, (name, action)
    assert len(verdicts) > 20


def test_the_bots_mind_is_its_twelve_rows(browser: Any) -> None:
    with sitting(browser, "random:9") as table:
        page, policy = table.page, table.policy
        assert page.locator("#mind").is_hidden()
        page.keyboard.press("m")
        assert page.locator("#mind-switch[role=switch]").get_attribute("aria-checked") == "true"
        bot = play.describe("random:9", policy, runtime=False)
        assert page.text_content("#nash-conv") == f"{bot['nash_conv']:.4f}"
        rows = page.locator("#rows tr").all()
        assert [row.get_attribute("data-state") for row in rows] == list(INFORMATION_STATES)
        for row, name in zip(rows, INFORMATION_STATES, strict=True):
            bold = Action.BET if Action.BET in policy[name] else Action.CHECK_OR_CALL
            share = float(row.locator(".share").text_content().rstrip("%")) / 100
            assert share == pytest.approx(policy[name][bold], abs=0.0051)
            fill, track = (row.locator(part).bounding_box()["width"] for part in ("i", ".track"))
            assert fill / track == pytest.approx(policy[name][bold], abs=0.02)
            state = State.new(int(name[0]), (int(name[0]) + 1) % 3)
            for letter in name[1:]:
                state = state.act(action_to(state.cards, state.letters + letter))
            answer = state.act(Action[bot["best_responses"][name]]).history[-1]
            assert row.locator(".reply").text_content() == answer
        page.locator("#mind-switch").click()
        assert page.locator("#mind").is_hidden()


def test_a_model_runs_in_the_page_and_says_what_python_says(browser: Any, onnx_path: Path) -> None:
    need(play.runtime_files(), "onnxruntime-web (make web)")
    with sitting(browser, str(onnx_path)) as table:
        assert table.page.locator("body").get_attribute("data-ready") == "onnx"
        assert "runs in this page" in table.page.text_content("#runtime")
        assert np.abs(mind(table.page) - table.policy.probabilities).max() < 1e-6
        play_hands(table, 8, clicker(table.page))


def test_without_onnxruntime_the_table_plays_and_the_page_says_so(
    browser: Any, onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "runtime_files", dict)
    with sitting(browser, str(onnx_path)) as table:
        assert table.page.locator("body").get_attribute("data-ready") == "table"
        said = table.page.text_content("#runtime")
        version = json.loads((ROOT / "package.json").read_text())["dependencies"]["onnxruntime-web"]
        assert "make web" in said
        assert f"npm install onnxruntime-web@{version}" in said
        assert np.array_equal(mind(table.page), table.policy.probabilities)
        play_hands(table, 6, clicker(table.page))


@pytest.fixture
def foreign_path(onnx_path: Path, tmp_path: Path) -> Path:
    """A model that Python reads, though its inputs and outputs have names of their own."""
    import onnx

    model = onnx.load(onnx_path)
    mine = {"observation": "obs", "action_mask": "mask", "probabilities": "policy"}
    for value in (*model.graph.input, *model.graph.output):
        value.name = mine.get(value.name, value.name)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [mine.get(name, name) for name in names]
    path = tmp_path / "foreign.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("kind", ["broken", "foreign"])
def test_a_model_that_the_page_cannot_run_is_played_from_its_table(
    browser: Any, onnx_path: Path, foreign_path: Path, kind: str
) -> None:
    need(play.runtime_files(), "onnxruntime-web (make web)")
    broken = ("**/policy.onnx", lambda route: route.fulfill(body=b"broken"))
    source, route = (onnx_path, broken) if kind == "broken" else (foreign_path, None)
    with sitting(browser, str(source), route=route) as table:
        assert table.page.locator("body").get_attribute("data-ready") == "table"
        said = table.page.text_content("#runtime")
        assert "could not run this ONNX file" in said
        assert "docs/onnx.md" in said
        assert np.array_equal(mind(table.page), table.policy.probabilities)
        play_hands(table, 3, clicker(table.page))


def test_once_loaded_it_needs_no_network(browser: Any) -> None:
    with sitting(browser, "nash:1/6") as table:
        table.page.context.set_offline(True)
        play_hands(table, 6, table.page.keyboard.press)


def test_a_server_that_has_gone_is_said(browser: Any) -> None:
    with serving() as server:
        page = browser.new_page()
        page.route("**/bot.json", lambda route: route.abort())
        page.goto(server.url)
        page.get_by_text("could not start").wait_for()
        page.close()


def test_a_module_that_does_not_load_is_said(browser: Any) -> None:
    with serving() as server:
        page = browser.new_page()
        page.route("**/mind.js", lambda route: route.abort())
        page.goto(server.url)
        late = page.get_by_text("files did not load")
        assert not late.is_visible()
        page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
        assert late.is_visible()
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_that_a_hand_needs(browser: Any, scheme: str) -> None:
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True, "color_scheme": scheme}
    with sitting(browser, "uniform", **phone) as table:
        page = table.page

        def tap(key: str) -> None:
            page.wait_for_timeout(550)  # two taps in half a second are a double tap
            page.locator(f"button[data-key={key}]").tap()

        play_hands(table, 4, tap)
        page.locator("#mind-switch").tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        for button in page.locator("button:visible, .seats label").all():
            assert button.bounding_box()["height"] >= 44
        page.evaluate("scrollTo(0, 0)")
        for part in ("#bot-card", "#own-card", "#status", ".moves", "#total", "#review li"):
            box = page.locator(part).first.bounding_box()
            assert box["y"] + box["height"] <= PHONE["height"], part


def test_the_moves_are_in_view_at_every_size(browser: Any) -> None:
    """Also when some hands have made the figures long, and a hand was as long as it can be."""
    with sitting(browser, "uniform") as table:
        page = table.page
        play_hands(table, 30, page.keyboard.press)
        while len(table.hand.history) < 3:
            page.keyboard.press("n")
            play_hands(table, 1, page.keyboard.press)
        for (width, height), font in product(SIZES, FONTS):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate(SPACING, FONTS[font])
            where = f"{width} x {height}, letters {font}"
            felt, card, moves = (
                page.locator(part).bounding_box() for part in (".felt", "#own-card", ".moves")
            )
            assert card["y"] + card["height"] <= moves["y"], where
            assert moves["y"] + moves["height"] <= min(felt["y"] + felt["height"], height), where
            assert page.evaluate(OVERFLOW) == [], where
            assert page.get_by_text("Your next seat").is_visible()


def test_what_does_not_fit_is_seen(browser: Any) -> None:
    """The check above, with an error planted: letters too wide for any small screen."""
    with sitting(browser, "uniform") as table:
        play_hands(table, 2, table.page.keyboard.press)
        table.page.set_viewport_size({"width": 320, "height": 568})
        assert table.page.evaluate(OVERFLOW) == []
        table.page.evaluate(SPACING, "0.6em")
        assert table.page.evaluate(OVERFLOW) != []


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE])
def test_nothing_jumps_while_a_hand_is_played(browser: Any, viewport: dict[str, int]) -> None:
    with sitting(browser, "uniform", viewport=viewport) as table:
        page = table.page
        parts = (
            "#bot-card",
            "#history",
            "#status",
            "#own-card",
            ".moves",
            ".review",
            "#mind-switch",
        )

        def boxes() -> list[Any]:
            tops = [page.locator(part).bounding_box() for part in parts]
            return [(round(box["y"]), round(box["height"])) for box in tops]

        first = boxes()
        rng = random.Random(3)
        for _ in range(12):
            table.deal()
            while not table.hand.is_terminal:
                table.act(rng.choice(table.hand.legal_actions), page.keyboard.press)
                table.see()
                assert boxes() == first
            page.keyboard.press("n")


def test_the_bots_card_is_nowhere_in_the_page_before_the_showdown(browser: Any) -> None:
    with sitting(browser, "uniform") as table:
        table.deal()
        other = table.hand.cards[1 - table.seat]
        hidden = table.page.locator("section.felt").inner_html()
        assert CARD_NAMES[other] not in hidden
        assert f'data-card="{other.name}"' not in hidden


def test_a_screen_reader_hears_what_happens(browser: Any) -> None:
    with sitting(browser, "uniform") as table:
        page = table.page
        table.deal()
        assert page.locator("[role=status][aria-live=polite]").count() == 1
        assert page.locator("#review[aria-live=polite]").count() == 1
        own = CARD_NAMES[table.hand.cards[table.seat]]
        assert page.get_by_role("img", name=f"Your card: {own}").is_visible()
        assert page.get_by_role("img", name=f"The bot{APOSTROPHE}s card: face down").is_visible()
        assert page.get_by_role("button", name="Check", exact=True).is_enabled()
        assert page.get_by_role("radio", name="Alternate").is_checked()
        assert page.get_by_role("group", name="Your next seat").is_visible()
        page.get_by_role("switch", name=f"Show the bot{APOSTROPHE}s mind").click()
        assert page.get_by_role("row").count() == len(INFORMATION_STATES)
