"""The whole page in a real browser, against the same hands in the core."""

import json
import math
import random
import re
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.compiled.nashconv import action_values
from algorithms.games import kuhn
from algorithms.playing import page as served
from algorithms.policies import load_policy
from algorithms.policies.onnx_writer import export
from kuhn_bridge import INFORMATION_STATES, Action, Card, Policy, State
from kuhn_bridge.bridge import information_state
from tests.algorithms.playing.test_play import serving
from tests.games import COSTS
from tests.kuhn_bridge.web.test_web import ROOT, need

CARD_NAMES = {Card.J: "Jack", Card.Q: "Queen", Card.K: "King"}
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
SIZES = (
    *((1920, 1080), (1280, 800), (1280, 640), (1000, 700), (820, 1180), (768, 1024)),
    *((390, 844), (375, 667), (360, 740), (344, 882), (320, 568)),
    *((844, 390), (740, 360), (667, 375), (640, 400), (568, 320)),  # 640 is 1280 at 200% zoom
)
# Where a machine lacks these fonts, letters further apart or closer stand in for them.
FONTS = {
    "as they are": ("normal", ""),
    "wide": ("0.04em", '"DejaVu Sans", Verdana, sans-serif'),
    "narrow": ("-0.05em", '"DejaVu Sans Condensed", "Arial Narrow", sans-serif'),
}
LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SNAPSHOT = """() => ({
    own: document.querySelector("#own-card").dataset.card,
    bot: document.querySelector("#bot-card").dataset.card,
    moves: [...document.querySelectorAll("#history li")].map((li) => li.textContent),
    pot: document.querySelector("#pot").textContent,
    legal: [...document.querySelectorAll("[data-action]:enabled:not([hidden])")].map(
        (button) => Number(button.dataset.action)),
    over: !document.querySelector("#next").hidden,
})"""
SCORE = """() => Object.fromEntries(["total", "mean", "expected", "given", "hands", "status"].map(
    (id) => [id, document.getElementById(id).textContent]))"""
# What sticks out of the page or of its own box, and the children of the table that overlap.
OVERFLOW = """() => {
    const out = (e, size) => e[`client${size}`] > 1 && e[`scroll${size}`] > e[`client${size}`] + 1;
    const boxes = [...document.querySelectorAll("body *")].filter((e) => {
        const { display, textOverflow } = getComputedStyle(e);
        return display !== "inline" && textOverflow !== "ellipsis" && !e.matches("svg *");
    });
    const wide = [document.documentElement, ...boxes].filter((e) => out(e, "Width"));
    const tall = boxes.filter((e) => e.tagName !== "DIALOG" && out(e, "Height"));
    const parts = [...document.querySelectorAll(".place, .middle > *, .moves")].map(
        (e) => [e, e.getBoundingClientRect()]);
    const high = parts.flatMap(([a, p]) => parts.filter(([b, q]) => a !== b
        && p.left < q.right - 1 && q.left < p.right - 1
        && p.top < q.bottom - 1 && q.top < p.bottom - 1).map(([b]) => b));
    return [...wide, ...tall, ...high].map((e) => e.id || e.className || e.tagName);
}"""
SET_FONT = """([spacing, family]) => {
    document.documentElement.style.letterSpacing = spacing;
    for (const kind of ["--sans", "--serif"])
        document.documentElement.style.setProperty(kind, family);
}"""
ROWS = """() => [...document.querySelectorAll("#rows [data-state]")].map((row) => {
    const [fill, track] = ["i", ".track"].map(
        (part) => row.querySelector(part).getBoundingClientRect().width);
    const share = row.querySelector(".share").textContent;
    return { name: row.dataset.state, share, fill: fill / track };
})"""
REVIEW = '() => [...document.querySelectorAll("#review li")].map((line) => line.className)'
MINUS = "\N{MINUS SIGN}"
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


@pytest.fixture(scope="module")
def browser():
    need(find_spec("playwright"), "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        paths = (*map(shutil.which, BROWSERS), playwright.chromium.executable_path)
        found = [path for path in paths if path and Path(path).exists()]
        executable = need(found, "Chromium (python -m playwright install chromium)")[0]
        running = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def onnx_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported network whose probabilities differ at every information set."""
    import torch

    torch.manual_seed(11)
    hidden = torch.nn.Linear(10, 16)
    out = torch.nn.Linear(16, 3)
    with torch.no_grad():
        out.weight *= 6
    path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
    export(torch.nn.Sequential(hidden, torch.nn.Tanh(), out), kuhn(), path)
    return path


@dataclass
class Sitting:
    """A person at the page, and the same hands in the core, from the same random numbers."""

    page: Any
    policy: Policy
    chance: Iterator[float]
    seat: int = 1
    choice: str = "alternate"
    hand: State = field(init=False)
    costs: list[tuple[str, Fraction]] = field(default_factory=list)  # of this hand's own moves
    given: Fraction = Fraction(0)  # by all hands together
    results: list[tuple[int, int]] = field(default_factory=list)

    def deal(self) -> None:
        """The core's side of a new hand, drawn as the page draws it."""
        self.costs = []
        self.seat = 1 - self.seat if self.choice == "alternate" else int(self.choice)
        deck = list(Card)
        self.hand = State.new(*(deck.pop(int(next(self.chance) * len(deck))) for _ in range(2)))
        self.bot_moves()

    def bot_moves(self) -> None:
        while self.hand.actor == 1 - self.seat:
            row = self.policy[self.place(1 - self.seat)]
            draw = next(self.chance)
            cumulative = np.cumsum([row.get(action, 0) for action in Action])
            self.hand = self.hand.act(int(np.searchsorted(cumulative, draw, side="right")))
        if self.hand.is_terminal:
            self.results.append((self.seat, self.hand.returns[self.seat]))

    def place(self, seat: int) -> str:
        """The information state of a seat."""
        return information_state(self.hand.cards[seat], self.hand.letters)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def click(self, key: str) -> None:
        self.page.locator(f"button[data-key={key}]").click()

    def act(self, action: Action, press: Callable[[str], None] | None = None) -> None:
        cost = COSTS.get((self.place(self.seat), action), Fraction(0))
        self.hand = self.hand.act(action)
        self.costs.append((self.hand.history[-1], cost))
        self.given += cost
        self.bot_moves()
        (press or self.press)("cbf"[action])

    def play(self, hands: int, press: Callable[[str], None] | None = None, seed: int = 2) -> None:
        """Play at random, by keyboard unless told otherwise, and look at the page all along."""
        rng = random.Random(seed)
        for hand in range(hands):
            self.deal()
            self.see()
            while not self.hand.is_terminal:
                self.act(rng.choice(self.hand.legal_actions), press)
                self.see()
            if hand < hands - 1:
                (press or self.press)("n")

    def choose(self, name: str, source: str) -> None:
        """Choose another opponent; the page then deals a new hand."""
        self.page.get_by_label("against").select_option(name)
        self.policy = load_policy(source)
        self.results = []
        self.given = Fraction(0)
        self.page.locator("#opponent").blur()

    def see(self) -> None:
        """Wait until the page shows what the core says."""
        words = self.hand.history
        over = self.hand.is_terminal
        own, other = (self.hand.cards[seat].name for seat in (self.seat, 1 - self.seat))
        wanted = {
            "own": own,
            "bot": other if over and words[-1] != "fold" else "back",
            "moves": [
                f"You {word}" if index % 2 == self.seat else f"Bot {word}s"
                for index, word in enumerate(words)
            ],
            "pot": f"Pot {2 + sum(word in ('bet', 'call') for word in words)}",
            "legal": [] if over else [int(action) for action in self.hand.legal_actions],
            "over": over,
        }
        until(self.page, lambda: self.page.evaluate(SNAPSHOT), wanted)
        self.see_verdict()
        (self.see_totals if over else self.see_words)()

    def see_totals(self) -> None:
        chips = [won for _, won in self.results]
        expected = sum((1 if seat else -1) / 18 for seat, _ in self.results)
        assert self.page.text_content("dt:has(+ #expected)") == "Fair share"
        seen = self.page.evaluate(SCORE)
        total, mean = (seen[name].split("±") for name in ("total", "mean"))
        assert number(total[0]) == sum(chips)
        assert number(mean[0]) == pytest.approx(np.mean(chips), abs=0.0051)
        assert number(seen["expected"]) == pytest.approx(expected, abs=0.0051)
        assert number(seen["given"]) == pytest.approx(float(self.given), abs=0.0051)
        assert seen["hands"].split()[0] == str(len(chips))
        if len(chips) > 1:
            error = statistics.stdev(chips) / math.sqrt(len(chips))
            assert float(total[1]) == pytest.approx(error * len(chips), abs=0.051)
            assert float(mean[1]) == pytest.approx(error, abs=0.0051)
        verb = "win" if chips[-1] > 0 else "lose"
        assert f"{verb} {abs(chips[-1])} chip" in seen["status"]

    def see_verdict(self) -> None:
        """The table says in chips what each own move of the hand cost."""
        text = ", your ".join(
            f"{word}{' cost' if i == 0 else ''} {in_chips(cost)}"
            for i, (word, cost) in enumerate(self.costs)
        )
        verdict = self.page.locator(".felt #verdict")
        assert verdict.text_content() == (f"Against perfect play, your {text}." if text else "")
        costly = sum(cost for _, cost in self.costs) > 0
        assert verdict.get_attribute("class") == ("costly" if costly else "free")

    def see_words(self) -> None:
        """The status line is enough to decide by, for example for a screen reader."""
        words = self.hand.history
        first = len(self.hand.history) < 2
        choices = [self.hand.act(action).history[-1] for action in self.hand.legal_actions]
        text = [
            *([f"You hold the {CARD_NAMES[self.hand.cards[self.seat]]}."] if first else []),
            *([f"The bot {words[-1]}s."] if words else []),
            f"{' or '.join(choices).capitalize()}?",
        ]
        assert self.page.text_content("#status") == " ".join(text)


def in_chips(amount: Fraction) -> str:
    text = f"{float(amount):.2f}".rstrip("0").rstrip(".")
    return "nothing" if text == "0" else f"{text} chip{'' if text == '1' else 's'}"


def number(text: str) -> float:
    return float(text.strip().replace(MINUS, "-"))


KNOWS_THE_RULES = "localStorage.setItem('kuhn-bridge:rules', 'true');"


@pytest.fixture
def seat(browser):
    """Opens the page, ready; the test fails on a logged error or a request elsewhere."""
    troubles: list[str] = []
    with ExitStack() as stack:

        def sit(source="uniform", *, seed=1, route=None, script=KNOWS_THE_RULES, **context):
            rng = random.Random(seed)
            draws = [rng.random() for _ in range(1000)]
            url = stack.enter_context(serving(source)).url
            options = {"viewport": LAPTOP, "reduced_motion": "reduce", **context}
            view = browser.new_context(**options)
            stack.callback(view.close)
            page = view.new_page()
            page.set_default_timeout(10_000)
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
            page.on("request", lambda r: r.url.startswith(url) or troubles.append(r.url))
            page.add_init_script(f"const draws = {draws}; Math.random = () => draws.shift();")
            page.add_init_script(script)
            if route:
                page.route(*route)
            page.goto(url)
            page.locator("body[data-ready]").wait_for()
            return Sitting(page, load_policy(source), iter(draws))

        yield sit
    assert troubles == []


@pytest.fixture
def table(seat):
    return seat()


@pytest.fixture
def page(table):
    return table.page


def until(page: Any, look: Callable[[], Any], wanted: Any) -> None:
    """Wait until `look` finds what is wanted."""
    for _ in range(200):
        if (found := look()) == wanted:
            return
        page.wait_for_timeout(10)
    assert found == wanted


def reload(page: Any) -> None:
    page.reload()
    page.locator("body[data-ready]").wait_for()


def at_every_size(page: Any) -> Iterator[tuple[int, int]]:
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        yield width, height


def mind(page: Any) -> np.ndarray:
    """The rows `(12, 3)` that the page says its bot plays."""
    rows = page.locator("#rows [data-state]").all()
    return np.array([row.get_attribute("data-probabilities").split() for row in rows], np.float64)


def boxes(page: Any, *selectors: str) -> list[dict[str, float]]:
    """Where the first element of each is on the screen."""
    look = "(all) => all.map((s) => document.querySelector(s).getBoundingClientRect().toJSON())"
    return list(page.evaluate(look, selectors))


def test_whole_hands_by_clicking_in_both_seats_without_a_network(table):
    table.page.context.set_offline(True)
    table.play(14, table.click)
    assert {seat for seat, _ in table.results} == {0, 1}


@pytest.mark.parametrize("choice", ["0", "1"])
def test_whole_hands_by_keyboard_in_a_chosen_seat(seat, choice):
    table = seat("random:4", seed=int(choice))
    table.play(1)
    table.page.locator(f"input[value='{choice}']").check()
    table.choice = choice
    table.page.keyboard.press("n")
    table.play(12)
    assert [seat for seat, _ in table.results[1:]] == [int(choice)] * 12


def test_the_keyboard_stays_among_the_moves(table, page):
    page.locator("button[data-key=c]").focus()
    for _ in range(6):
        page.keyboard.press("Enter")
        page.wait_for_timeout(20)
        assert page.evaluate("document.activeElement.closest('.moves') !== null")
        assert page.evaluate("!document.activeElement.disabled && !document.activeElement.hidden")


@pytest.mark.parametrize("how", ["double click", "Enter", "Space", "c"])
def test_a_double_click_or_a_held_key_is_one_move(seat, how):
    """Against a bot that bets after a check, the button that said Check says Call next."""
    table = seat("always-bet")
    page = table.page
    button = table.page.locator("button[data-key=c]")

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


def test_keys_of_illegal_moves_with_modifiers_or_in_the_menu_do_nothing(table):
    table.deal()
    for key in ("f", "n", "Enter", "Control+b", "Alt+c", "x"):
        table.page.keyboard.press(key)
    table.see()
    table.page.locator("#opponent").focus()
    table.page.keyboard.press("b")
    table.page.wait_for_timeout(50)
    table.see()


def test_equilibrium_in_the_persons_place(seat):
    """The review of each decision says in one word what the bands say."""
    table = seat(seed=5)
    rng = random.Random(6)
    seen = set()
    ends = [load_policy(f"nash:{alpha}") for alpha in ("0", "1/3")]
    for _ in range(30):
        table.deal()
        wanted = []
        while not table.hand.is_terminal:
            action = rng.choice(table.hand.legal_actions)
            low, high = sorted(end[table.place(table.seat)][action] for end in ends)
            mixed = "mostly" if low > 0.5 else "sometimes"
            wanted.append("never" if high == 0 else "always" if low == 1 else mixed)
            table.act(action)
        table.page.locator("#next").wait_for()
        assert table.page.evaluate(REVIEW) == wanted
        seen.update(wanted)
        table.press("n")
    assert seen == {"never", "sometimes", "mostly", "always"}


def test_the_bots_mind_is_its_twelve_rows(seat):
    table = seat("random:9")
    page = table.page
    policy = table.policy
    assert page.locator("#mind").is_hidden()
    page.keyboard.press("m")
    assert page.locator("#mind-switch[role=switch]").get_attribute("aria-checked") == "true"
    measured = policy.measure()
    assert page.text_content("#nash-conv") == f"{measured.nash_conv:.4f}"
    first, second = (f"{value:+.3f}".replace("-", MINUS) for value in measured.best_values)
    won = f"{first} in the first seat, {second} in the second"
    assert page.text_content("#best-values") == f"Won from it: {won}"
    rows = page.evaluate(ROWS)
    assert [row["name"] for row in rows] == list(INFORMATION_STATES)
    for row in rows:
        policy_row = policy[row["name"]]
        bold = policy_row[max(a for a in policy_row if a != Action.FOLD)]  # bet, or else call
        assert float(row["share"].rstrip("%")) / 100 == pytest.approx(bold, abs=0.0051)
        assert row["fill"] == pytest.approx(bold, abs=0.02)
    page.locator("#mind-switch").click()
    assert page.locator("#mind").is_hidden()


def test_the_persons_best_move_is_shown_and_either_if_two_are_best(seat):
    names = {"Random habits 3": "random:3", "Coin flips": "uniform", "Never bluffs": "heuristic"}
    table = seat("random:3")
    page = table.page
    replies = table.page.locator("#rows td.reply")
    for name, source in {**names, "Perfect play": "nash:1/6"}.items():
        page.get_by_label("against").select_option(name)
        policy = load_policy(source)
        assert np.array_equal(mind(page), policy.table)
        assert replies.all_text_contents() == best_moves(policy)
        assert ("either" in best_moves(policy)) == (source != "random:3")
    heads = page.locator("#rows thead th").all_text_contents()
    assert heads == [*("bot bets", "you") * 2, *("bot calls", "you") * 2]
    assert replies.first.get_attribute("aria-label").startswith("your best move here: ")


def best_moves(policy: Policy) -> list[str]:
    """The best move against it at each information state; `either` if both are."""
    game = policy.game
    found = [[] for _ in INFORMATION_STATES]
    costs = action_values(game.tree, policy.table).costs
    choices = zip(game.tree.choice_infoset, game.tree.choice_action, costs, strict=True)
    for infoset, action, cost in choices:
        if not cost > 0:  # NaN where the policy never arrives
            found[infoset].append(game.action_label(infoset, action))
    return [words[0] if len(words) == 1 else "either" for words in found]


def test_a_model_that_runs_in_the_page_agrees_with_python(seat, onnx_path):
    need(served.runtime_files(), "onnxruntime-web (make web)")
    table = seat(str(onnx_path))
    assert table.page.locator("body").get_attribute("data-plays") == "onnx"
    assert "was run in this page" in table.page.text_content("#runtime")
    assert np.abs(mind(table.page) - table.policy.table).max() < 1e-6
    table.play(8, table.click)


@pytest.mark.parametrize("kind", ["broken", "no runtime"])
def test_a_model_that_the_page_cannot_run_is_played_from_its_table(
    seat, onnx_path, kind, monkeypatch
):
    route = None
    words = ["could not run this ONNX file", "docs/onnx.md"]
    if kind == "no runtime":
        monkeypatch.setattr(served, "runtime_files", dict)
        package = json.loads((ROOT / "package.json").read_text())
        words = [f"npm install onnxruntime-web@{package['dependencies']['onnxruntime-web']}"]
    else:
        need(served.runtime_files(), "onnxruntime-web (make web)")
        route = ("**/policy.onnx", lambda route: route.fulfill(body=b"broken"))
    table = seat(str(onnx_path), route=route)
    assert table.page.locator("body").get_attribute("data-plays") == "table"
    text = table.page.text_content("#runtime")
    assert all(word in text for word in words)
    assert np.array_equal(mind(table.page), table.policy.table)
    table.play(3, table.click)


def test_what_does_not_load_is_reported(browser):
    with serving() as server:
        for missing, text in (("game.json", "could not start"), ("mind.js", "files did not load")):
            page = browser.new_page()
            page.route(f"**/{missing}", lambda route: route.abort())
            page.goto(server.url)
            if missing == "mind.js":  # said by the style sheet, a moment later
                assert not page.get_by_text(text).is_visible()
                page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
            page.get_by_text(text).wait_for()
            page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_that_a_hand_needs(seat, scheme):
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True, "color_scheme": scheme}
    table = seat(**phone)
    page = table.page
    places = cycle([(8, 8), (70, 40)])  # two taps in one place are a double tap

    def tap(key: str) -> None:
        x, y = next(places)
        page.locator(f"button[data-key={key}]").tap(position={"x": x, "y": y})

    table.play(4, tap)
    page.locator("#mind-switch").tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for button in page.locator("button:visible, select, .seats label").all():
        assert button.bounding_box()["height"] >= 44
    page.evaluate("scrollTo(0, 0)")
    for part in ("#bot-card", "#own-card", "#status", "#verdict", ".moves", "#total"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= PHONE["height"], part


def fits_at_every_size(page: Any) -> None:
    """Cards, verdict and moves are in view, and nothing sticks out, in wide and narrow letters."""
    for width, height in at_every_size(page):
        for font, style in FONTS.items():
            page.evaluate(SET_FONT, style)
            where = f"{width} x {height}, letters {font}"
            felt, card, moves, verdict = boxes(page, ".felt", "#own-card", ".moves", "#verdict")
            assert max(card["bottom"], verdict["bottom"]) <= moves["top"], where
            assert moves["bottom"] <= min(felt["bottom"], height), where
            assert page.evaluate(OVERFLOW) == [], where
    assert page.get_by_text("Your next seat").is_visible()


def test_the_moves_are_in_view_at_every_size(table, page):
    """When a hand begins, and when figures and verdict are as long as they get."""
    fits_at_every_size(page)
    table.play(30)
    while len(table.costs) < 2 or not all(cost for _, cost in table.costs[1:]):
        page.keyboard.press("n")
        table.play(1, seed=len(table.results))
    fits_at_every_size(page)


def test_an_overflow_is_noticed(table):
    """The check above, with an error planted: letters too wide for any small screen."""
    table.play(2)
    table.page.set_viewport_size({"width": 320, "height": 568})
    assert table.page.evaluate(OVERFLOW) == []
    table.page.evaluate(SET_FONT, ["0.6em", ""])
    assert table.page.evaluate(OVERFLOW) != []


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE])
def test_nothing_jumps_while_a_hand_is_played(seat, viewport):
    table = seat(viewport=viewport)
    page = table.page
    parts = (
        *("#bot-card", "#history", "#status", "#verdict", "#own-card"),
        *(".moves", ".totals", ".review", "#mind-switch"),
    )

    def places() -> list[Any]:
        return [(round(box["y"]), round(box["height"])) for box in boxes(page, *parts)]

    first = places()
    rng = random.Random(3)
    for _ in range(12):
        table.deal()
        while not table.hand.is_terminal:
            table.act(rng.choice(table.hand.legal_actions))
            table.see()
            assert places() == first
        page.keyboard.press("n")


def test_the_bots_card_is_nowhere_in_the_page_before_the_showdown(table):
    table.deal()
    other = table.hand.cards[1 - table.seat]
    hidden = table.page.locator("section.felt").inner_html()
    assert CARD_NAMES[other] not in hidden
    assert f'data-card="{other.name}"' not in hidden


def test_the_accessibility_tree_has_roles_and_names(table, page):
    table.deal()
    assert page.locator("[role=status][aria-live=polite]").count() == 1
    assert page.locator("#review[aria-live=polite]").count() == 1
    assert page.locator("#verdict[aria-live=polite]").count() == 1
    own = CARD_NAMES[table.hand.cards[table.seat]]
    assert page.get_by_role("img", name=f"Your card: {own}").is_visible()
    assert page.get_by_role("img", name=f"The bot{APOSTROPHE}s card: face down").is_visible()
    assert page.get_by_role("button", name="Check", exact=True).is_enabled()
    assert page.get_by_role("radio", name="Alternate").is_checked()
    assert page.get_by_role("group", name="Your next seat").is_visible()
    page.get_by_role("switch", name=f"Show the bot{APOSTROPHE}s mind").click()
    assert page.locator("#rows").get_by_role("rowheader").count() == len(INFORMATION_STATES)


def test_the_rules_are_shown_once_and_on_request(seat):
    table = seat(script="")
    page = table.page
    rules = table.page.get_by_role("dialog", name="How to play")
    table.deal()
    assert rules.is_visible()
    text = rules.inner_text()
    for word in ("Jack", "King is highest", "1 chip into the pot", "call", "higher card wins"):
        assert word in text
    for key in "cbn":
        page.keyboard.press(key)  # no move is made behind the rules
    table.see()
    page.keyboard.press("Escape")
    assert rules.is_hidden()
    stored = "localStorage.getItem('kuhn-bridge:rules')"  # by an event that follows the key
    until(page, lambda: page.evaluate(stored), "true")
    reload(page)
    assert rules.is_hidden()
    page.keyboard.press("h")
    assert rules.is_visible()
    rules.get_by_role("button", name="Play").click()
    assert rules.is_hidden()
    page.get_by_role("button", name="How to play").click()
    assert rules.is_visible()


def test_the_rules_fit(seat):
    table = seat(script="")
    for width, height in at_every_size(table.page):
        dialog, title, button = boxes(table.page, "#rules", "#rules-title", "#rules-close")
        assert 0 <= dialog["left"] <= dialog["right"] <= width
        assert 0 <= dialog["top"] <= title["top"]
        assert button["bottom"] <= dialog["bottom"] <= height
        assert table.page.evaluate(OVERFLOW) == []


def test_an_opponent_is_chosen_and_its_totals_outlive_a_reload(seat):
    table = seat("nash:1/6")
    page = table.page
    offered = page.locator("#opponent option").all_text_contents()
    assert offered == [name for name, _ in served.OPPONENTS.values()]
    table.play(3)
    first = page.evaluate(SCORE)
    table.choose("Always bets", "always-bet")
    assert page.text_content("#hands") == "0 hands"
    table.play(5)  # against always-bet's rows
    second = page.evaluate(SCORE)
    chart = page.get_attribute("#chart .chips", "points")
    reload(page)
    assert page.locator("#opponent option:checked").text_content() == "Always bets"
    assert page.evaluate(SCORE) == second | {"status": page.text_content("#status")}
    assert page.get_attribute("#chart .chips", "points") == chart
    another = page.context.new_page()  # a visit begins with the opponent that it was given
    another.goto(page.url)
    another.get_by_text("3 hands").first.wait_for()
    assert another.locator("#opponent option:checked").text_content() == "Perfect play"
    page.get_by_label("against").select_option("Perfect play")
    page.get_by_text("3 hands").first.wait_for()
    assert page.evaluate(SCORE) == first | {"status": page.text_content("#status")}


def test_starting_over_forgets_one_opponent_after_asking(seat):
    table = seat("nash:1/6")
    page = table.page
    reset = table.page.get_by_role("button", name="Start over")
    messages: list[str] = []
    assert reset.is_hidden()
    table.play(2)
    table.choose("Coin flips", "uniform")
    table.play(1)
    page.once("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    reset.click()
    assert page.text_content("#hands") == "1 hand"
    page.once("dialog", lambda dialog: (messages.append(dialog.message), dialog.accept()))
    reset.click()
    assert page.text_content("#hands") == "0 hands"
    assert page.text_content("#given") == "0.00"
    assert "1 hand against “Coin flips”" in messages[0]
    assert len(messages) == 2
    reload(page)
    assert page.text_content("#hands") == "0 hands"
    page.get_by_label("against").select_option("Perfect play")
    page.get_by_text("2 hands").first.wait_for()


@pytest.mark.parametrize(
    "script",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });",
        f"{KNOWS_THE_RULES} Storage.prototype.setItem = () => {{ throw new Error('full'); }};",
        f"{KNOWS_THE_RULES} sessionStorage.setItem('kuhn-bridge:choice', '{{');",
    ],
    ids=["forbidden", "full", "damaged"],
)
def test_the_page_works_without_storage(seat, script):
    table = seat(script=script)
    table.page.keyboard.press("Escape")  # rules that were never remembered
    table.play(3)


DROP = """([name, bytes]) => {
    const files = new DataTransfer();
    files.items.add(new File([new Uint8Array(bytes)], name));
    return ["dragover", "drop"].map((kind) => document.body.dispatchEvent(new DragEvent(
        kind, { dataTransfer: files, bubbles: true, cancelable: true })));
}"""


def drop(page: Any, name: str, content: str | bytes) -> None:
    body = content.encode() if isinstance(content, str) else content
    left_to_the_browser = page.evaluate(DROP, [name, list(body)])
    assert left_to_the_browser == [False, False]  # which would open the file in place of the page


def seated(page: Any, name: str) -> None:
    page.locator("#opponent option:checked", has_text=name).wait_for(state="attached")


def test_an_own_file_is_dropped_and_plays(table, page, tmp_path):
    mine = Policy.random("kuhn", 5)
    path = tmp_path / "mine.json"
    mine.save(path)
    table.deal()
    drop(page, "policy.json", path.read_text())
    seated(page, "policy.json")
    table.policy = mine
    table.play(6)
    assert np.array_equal(mind(page), mine.table)
    assert page.locator("body.dragging").count() == 0
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Your file…").click()
    chooser.value.set_files(path)  # the same policy by another name is the same opponent
    page.get_by_text("6 hands").first.wait_for()
    assert page.locator("#opponent option").count() == 6
    reload(page)
    seated(page, "policy.json")  # remembered
    assert np.array_equal(mind(page), mine.table)
    assert page.text_content("#hands") == "6 hands"


def test_where_to_drop_a_file_is_shown_while_it_is_dragged(seat):
    drag = """([kind, what]) => {
        const data = new DataTransfer();
        if (what) data.items.add(new File([], what)); else data.setData("text/plain", "words");
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }));
    }"""
    table = seat(viewport=PHONE)
    page = table.page
    hint = table.page.get_by_text("Drop policy.json or policy.onnx")
    steps = ("dragover", "", False), ("dragover", "a.json", True), ("dragleave", "a.json", False)
    for kind, what, shown in steps:
        page.evaluate(drag, [kind, what])
        assert hint.is_visible() == shown
        (box,) = boxes(page, ".drop")
        assert not shown or box["width"] * box["height"] == math.prod(PHONE.values())


def test_an_own_network_is_dropped_and_plays(table, page, onnx_path):
    need(served.runtime_files(), "onnxruntime-web (make web)")
    table.deal()
    drop(page, "policy.onnx", onnx_path.read_bytes())
    seated(page, "policy.onnx")
    assert page.locator("body").get_attribute("data-plays") == "onnx"
    table.policy = load_policy(str(onnx_path))
    assert np.abs(mind(page) - table.policy.table).max() < 1e-6
    table.play(4)


REFUSED = (
    ("policy.json", "{", "the JSON is broken"),
    ("empty.json", "{}", "not a policy"),
    ("leduc.json", '{"format":"kuhn-bridge-policy","version":2,"game":"leduc_poker"}', "leduc_po"),
    ("policy.onnx", "no model", "could not run this ONNX file"),
    ("model.zip", "PK", "kuhn-bridge play model.zip"),
    ("notes.txt", "hello", ".json or .onnx"),
)


def test_an_unusable_file_is_refused_in_one_line(table):
    need(served.runtime_files(), "onnxruntime-web (make web)")
    table.deal()
    for name, content, text in REFUSED:
        drop(table.page, name, content)
        line = table.page.get_by_role("alert").filter(has_text=text)
        line.wait_for()
        assert line.text_content().startswith(f"{name}: ")
        assert "\n" not in line.text_content()
    assert table.page.locator("#opponent option").count() == 5
    table.see()  # the hand goes on
    drop(table.page, "fine.json", json.dumps(Policy.random("kuhn", 1).to_document()))
    seated(table.page, "fine.json")
    assert table.page.text_content("#trouble") == ""


def test_without_onnxruntime_a_dropped_network_is_refused(seat, onnx_path, monkeypatch):
    monkeypatch.setattr(served, "runtime_files", dict)
    page = seat().page
    drop(page, "policy.onnx", onnx_path.read_bytes())
    page.get_by_role("alert").filter(has_text="npm install onnxruntime-web").wait_for()


def stop_clock(page: Any) -> None:
    """From now on only the test moves the page's clock."""
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)


def test_the_bot_takes_a_moment(seat):
    table = seat(reduced_motion="no-preference")
    page = table.page
    stop_clock(page)
    table.deal()
    page.locator("button[data-key=b]").focus()
    table.act(Action.BET)
    page.clock.run_for(500)
    assert page.text_content("#status") == "The bot is thinking…"
    assert page.locator(".moves button:enabled:visible").count() == 0
    for key in "cbfn":
        page.keyboard.press(key)
    page.clock.run_for(200)
    table.see()
    assert page.evaluate("document.activeElement.id") == "next"  # the keyboard's place is kept


def test_under_reduced_motion_the_bot_answers_at_once(table):
    stop_clock(table.page)
    table.deal()
    table.act(Action.BET)
    table.page.locator("#next").wait_for()  # though no timer has run
    table.see()


def test_another_opponent_can_be_chosen_while_the_bot_thinks(seat):
    table = seat(reduced_motion="no-preference")
    page = table.page
    stop_clock(page)
    table.deal()
    page.keyboard.press("b")
    table.choose("Always checks", "always-check")
    table.deal()  # now in the second seat: that bot thinks too
    page.clock.run_for(5000)
    table.see()
    assert table.hand.history == ("check",)


def test_the_chart_shows_chips_fair_share_and_band(table, page):
    """The band is 1.96 standard deviations of hands between perfect players."""
    table.play(20)
    text = page.get_attribute("#chart", "aria-label")
    chips, shares, band = (
        [float(point.split(",")[1]) for point in page.get_attribute(part, "points").split()]
        for part in ("#chart .chips", "#chart .share", "#chart .band")
    )
    high, low = (number(page.text_content(part)) for part in ("#chart-high", "#chart-low"))
    walked = np.cumsum([0, *(won for _, won in table.results)])
    share = sum((1 if seat else -1) / 18 for seat, _ in table.results)
    variance = 1 + 3 * 11 / 54 - 1 / 18**2  # 4 instead of 1 if a bet is called, in 11 of 54 hands
    margin = 1.96 * math.sqrt(variance * 20)
    numbers = [number(part) for part in re.findall(rf"[+{MINUS}]?\d+\.?\d*", text)]
    assert numbers[:2] == [20, walked[-1]]
    assert numbers[2] == pytest.approx(share, abs=0.0051)
    assert numbers[-2:] == pytest.approx([share - margin, share + margin], abs=0.051)
    drawn = [high - (high - low) * y / 100 for y in chips]
    assert drawn == pytest.approx(walked, abs=0.6)  # the axis is labelled in whole chips
    assert band[20] < shares[-1] < band[21]


LONGEST = "The bot calls. Your Queen loses to the King: you lose 2 chips."
SAY = """([result, hands]) => {
    document.getElementById("status").textContent = result;
    document.getElementById("chart-hands").textContent = hands;
    return [".moves", ".totals"].map((part) => {
        const { top, bottom } = document.querySelector(part).getBoundingClientRect();
        return [Math.round(top), Math.round(bottom)];
    });
}"""


def test_the_longest_result_moves_nothing(table):
    """The moves stay under the finger, and the chart keeps its height, at every size."""
    for width, height in at_every_size(table.page):
        before = table.page.evaluate(SAY, ["Check or bet?", "0 hands"])
        assert table.page.evaluate(SAY, [LONGEST, "10000 hands"]) == before, (width, height)


def test_an_error_about_a_file_does_not_break_the_layout(table, page):
    drop(page, "a-policy-with-quite-a-long-name-of-its-own.json", "{")
    page.get_by_role("alert").filter(has_text="broken").wait_for()
    for width, height in at_every_size(page):
        assert page.evaluate(OVERFLOW) == [], (width, height)
        menu, own, how = boxes(page, "#opponent", "#own-file", "#how")
        assert menu["width"] > 60, (width, height)
        assert menu["right"] <= own["left"], (width, height)
        assert own["right"] <= how["left"] or how["bottom"] <= own["top"], (width, height)
    page.get_by_label("against").select_option("Always bets")
    assert page.text_content("#trouble") == ""


def test_an_endless_network_is_stopped_and_the_page_still_works(table, page, tmp_path):
    need(served.runtime_files(), "onnxruntime-web (make web)")
    from tests.models import loop

    stop_clock(page)
    table.deal()
    with page.expect_event("response", lambda response: response.url.endswith(".wasm")):
        drop(page, "endless.onnx", loop(tmp_path / "endless.onnx", "Max", 2**62).read_bytes())
    page.clock.run_for(9_000)
    table.see()  # the page answers while the model runs
    assert page.text_content("#trouble") == ""
    assert len(page.workers) == 1
    page.clock.run_for(2_000)
    page.get_by_role("alert").filter(has_text="no answer from this model").wait_for()
    until(page, lambda: page.workers, [])  # the end of a worker is reported a moment later
