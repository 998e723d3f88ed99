"""The report in a real browser: its numbers, its states, the keyboard, and what it never does."""

import json
import math
import random
import re
import statistics
import threading
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms.compiled.nashconv import action_values
from algorithms.games import load_game
from algorithms.lower_bound import Gain, LowerBound, SeatBound
from algorithms.play import _files
from algorithms.policies import load_policy
from algorithms.policies.load import open_source
from algorithms.reports import document
from algorithms.reports.document import ReportedPolicy, game_document
from algorithms.reports.writing import report_document, reported_policy, write_document
from algorithms.self_play.curve import Point, to_csv
from algorithms.support.server import Server
from tests.algorithms.reports.test_report import GAMES, array, measured, without_measure
from tests.games import DICE, KUHN3, LEDUC
from tests.kuhn_bridge.web.test_page import LAPTOP, MINUS, PHONE, browser, number

__all__ = ["browser"]  # a fixture

WIDTHS = (320, 375, 600, 768, 1000, 1280)
VALUES = "(all) => all.map((one) => [Number(one.value), one.textContent])"
# What sticks out of the page, or of a box that does not scroll.
OVERFLOW = """() => [document.documentElement, ...document.querySelectorAll("body *")].filter(e => {
    const { display, overflowX, textOverflow } = getComputedStyle(e);
    return display !== "inline" && overflowX !== "auto" && textOverflow !== "ellipsis"
        && !e.matches("svg, svg *, option, select, input")
        && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1;
}).map((e) => e.id || e.className || e.tagName)"""
UNNAMED = """() => [...document.querySelectorAll("a, button, input, select, summary")].filter(
    (e) => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim()
        || e.labels?.[0]?.textContent.trim())).map((e) => e.outerHTML)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@contextmanager
def opened(browser, address, script="", **context):
    """The page, ready; an error that it logs or a request for anything else is a failure."""
    troubles: list[str] = []
    view = browser.new_context(**{"viewport": LAPTOP, **context})
    view.add_init_script(script)
    page = view.new_page()
    page.set_default_timeout(10_000)
    start = address.partition("#")[0] if address.startswith("file:") else address
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else 0)
    page.on("request", lambda r: 0 if r.url.startswith(start) else troubles.append(r.url))
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    try:
        yield page
    finally:
        view.close()
    assert troubles == []


def saved(path, document):
    write_document(path, document)
    return path.as_uri()


def written(folder, name, policies, game, **options):
    if (path := folder / name).exists():
        return path.as_uri()
    return saved(path, report_document(policies, game, **options))


def leduc(folder):
    """A report of two policies, one of them with a learning curve and settings."""
    model = folder / "trained.json"
    if not model.exists():
        policy = load_policy("cfr:30", LEDUC).to_document()
        run = {"config": {"lr": 1.0, "seed": 0}, "versions": {"torch": "2.13"}, "steps": 2_000}
        model.write_text(json.dumps(policy | run))
        points = [Point(n * 10, n / 10, 4.7 / (1 + n), 4.7 / (2 + n)) for n in range(201)]
        model.with_suffix(".csv").write_text(to_csv(points))
    return written(folder, "leduc.html", [str(model), "random:1"], LEDUC)


@pytest.fixture
def page(browser, folder):
    """The report of Leduc poker."""
    with opened(browser, leduc(folder)) as page:
        yield page


def until(page, expression):
    """Wait for an expression; Playwright's own waiting evaluates text, which the page forbids."""
    for _ in range(300):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(10)
    raise AssertionError(expression)


def shown(page, selector):
    """The exact value and the text of each number there."""
    return list(page.locator(f"{selector} data").evaluate_all(VALUES))


def agrees(text, value):
    """Whether a number on the page is `value`, rounded."""
    plain = text.removeprefix("at least ").replace(MINUS, "-").replace(",", "")
    digits = len(plain.partition(".")[2].partition("e")[0])
    close = 0.51 * 10**-digits if "e" not in plain else 0.06 * abs(value)
    return abs(float(plain) - value) <= close


@pytest.mark.parametrize("game", GAMES)
def test_numbers_are_those_of_nashconv(browser, folder, capsys, game):
    names = ["random:1", "cfr:20"]
    address = written(folder, f"numbers-{GAMES.index(game)}.html", names, game)
    tree = (loaded := load_game(game)).tree
    with opened(browser, address) as page:
        reference = page.locator("#policies bdi").last.text_content()
        for place, name in enumerate([*names, reference]):
            theirs = measured(capsys, name, game)
            card = f"#policies article:nth-child({place + 1})"
            headline = shown(page, f"{card} .headline")
            assert [v for v, _ in headline] == [theirs["nash_conv"], theirs["exploitability"]]
            wanted = [theirs[f] for f in ("values", "best_response_values", "gains")]
            table = shown(page, f"{card} .players")
            assert [v for v, _ in table] == [x for row in zip(*wanted, strict=True) for x in row]
            assert all(agrees(text, value) for value, text in headline + table)
            if name == reference:
                continue
            assert theirs["verdict"][1:] in page.locator(card).text_content()
            (lost, _), largest = *shown(page, f"{card} .worst"), theirs["losses"][0]
            assert lost == pytest.approx(largest["lost"], rel=1e-6)
        theirs = measured(capsys, names[0], game)
        lines = shown(page, "#losses-list .lost")
        losses = theirs["losses"][: len(lines)]
        assert [v for v, _ in lines] == pytest.approx([x["lost"] for x in losses], rel=1e-6)
        assert all(agrees(text, value) for value, text in lines)
        worst = load_policy(names[0], loaded).measure().losses
        places = {loaded.infoset_label(loss.infoset) for loss in worst}
        titles = page.locator("#losses-list .place").all_text_contents()
        assert {x.replace("'", "") for x in titles} <= {x.replace("'", "") for x in places}
        for infoset in random.Random(0).sample(range(len(tree.keys)), 8):
            node = int(tree.members[tree.first_member[infoset]])
            history = ",".join(map(str, tree.history(node)))
            page.evaluate(f"location.hash = '#explorer/{history}'")
            page.locator(f"#explorer[data-node='{node}']").wait_for()
            see_decision(page, loaded, infoset, theirs)


def see_decision(page, game, infoset, theirs):
    """An information set in the explorer, beside what nashconv says of the first policy."""
    tree = game.tree
    owner = int(tree.owner[infoset])
    key = tree.keys[infoset]
    row = theirs["players"][owner][key]
    bars = shown(page, ".moves [data-policy='0'] .odds")
    assert [v for v, _ in bars] == pytest.approx(list(row.values()), rel=1e-6)
    labels = page.locator(".moves .step .label").all_text_contents()
    assert labels == [game.action_label(infoset, int(action)) for action in row]
    best = game.action_label(infoset, theirs["best_response_players"][owner][key])
    assert best in page.locator(".facts tbody tr:first-child .best").text_content().split(" or ")
    found = action_values(tree, load_policy(theirs["source"], game).table)
    slots = slice(*tree.first_choice[infoset : infoset + 2].tolist())
    values = shown(page, ".moves [data-policy='0'] .value")
    assert [v for v, _ in values] == pytest.approx(found.values[slots], rel=1e-5, abs=1e-7)
    assert all(agrees(text, value) for value, text in values)
    marks = page.locator(".moves [data-policy='0'] .mark").all_text_contents()
    for mark, cost in zip(marks, found.costs[slots], strict=True):
        if cost >= 0.001:
            assert float(mark.removeprefix("costs ")) == pytest.approx(cost, abs=0.00051)
        else:
            assert mark == ("costs <0.001" if cost else "best")
    known = {(x["player"], x["key"]): x for x in theirs["losses"]}.get((owner, key))
    (reach, _), (lost, _) = shown(page, ".facts tbody tr:first-child")
    if known:
        assert reach == pytest.approx(known["reach"], rel=1e-6)
    assert lost == pytest.approx(known["lost"] if known else 0, rel=1e-6, abs=1e-11)
    beliefs = [v for v, _ in shown(page, ".beliefs tbody td:nth-of-type(1)")]
    if len(beliefs) == np.diff(tree.first_member)[infoset]:
        assert sum(beliefs) == pytest.approx(1, abs=1e-5)


def test_every_node_of_kuhn_by_walking(browser, folder):
    """All 58 nodes by their links: steps, probabilities, returns, breadcrumbs."""
    tree = load_game("kuhn").tree
    seen = set()
    address = written(folder, "kuhn.html", ["uniform"], "kuhn")
    with opened(browser, f"{address}#explorer/") as page:

        def walk(node):
            page.locator(f"#explorer[data-node='{node}']").wait_for()
            seen.add(node)
            assert page.locator("#crumbs a").count() == len(tree.history(node)) + 1
            children = range(*tree.first_child[node : node + 2].tolist())
            if not children:
                returns = [number(text) for _, text in shown(page, ".returns")]
                assert returns == tree.returns[:, node].tolist()
            for place, child in enumerate(children):
                page.locator(".step").nth(place).click()
                walk(child)
                page.locator("#explorer-up").click()
                page.locator(f"#explorer[data-node='{node}']").wait_for()

        walk(0)
        page.go_back()
        page.locator("#explorer[data-node='3']").wait_for()
    assert len(seen) == 58


def test_a_loss_opens_its_place_and_filters_choose_among_losses(page):
    assert page.locator("#losses-list li").count() == 8
    page.locator("#losses-more").click()
    assert page.locator("#losses-list li").count() == 48
    page.locator("#losses-policy").select_option("random:1")
    page.locator("#losses-player").select_option("player_1")
    page.locator("#losses-text").fill("K♠ raise-raise")
    titles = page.locator("#losses-list .place").all_text_contents()
    assert titles
    assert all(re.match(r"player_1 with.*K♠.*raise-raise", title) for title in titles)
    page.locator("#losses-list a").first.click()
    until(page, f"document.getElementById('place').textContent === {json.dumps(titles[0])}")
    assert page.evaluate("document.activeElement.id") == "place"
    likeliest = shown(page, ".beliefs td:nth-of-type(2)")
    current = page.locator(".beliefs tr:has([aria-current]) td:nth-of-type(2) data")
    assert float(current.get_attribute("value")) == max(value for value, _ in likeliest)
    assert len({value for value, _ in likeliest}) > 1
    page.locator("#losses-text").fill("no such place")
    assert page.locator("#losses-list li").count() == 0
    assert "No loss" in page.text_content("#losses-count")


def test_search_finds_an_information_set(page):
    page.locator("#search").fill("player_0 j♠ board q♥ round 2 raise-raise")
    links = page.locator("#results a")
    assert links.count() > 1
    title = links.nth(1).text_content()
    links.nth(1).click()
    until(page, f"document.getElementById('place').textContent === {json.dumps(title)}")
    until(page, "document.getElementById('results').children.length === 0")
    page.locator("#search").fill("[Private: 5][Round 1][Player: 1]")  # the string itself
    page.keyboard.press("Enter")
    until(page, "document.getElementById('place').textContent.includes('K♥')")


def test_an_address_opens_a_place_and_a_wrong_one_says_so(browser, folder):
    with opened(browser, f"{leduc(folder)}#explorer/3,0,2,2") as page:
        assert page.text_content("#place") == "player_0 with Q♥ after raise-raise"
        assert page.locator("#explorer").bounding_box()["y"] < 120
        page.evaluate("location.hash = '#explorer/3,3'")
        page.get_by_role("alert").filter(has_text="does not have").wait_for()
        assert page.text_content("#place") == "Chance: 6 outcomes"


def test_the_curve_shows_values_where_one_points(page):
    values = page.locator("#curve-values")
    assert "2,000 steps" in values.text_content()
    page.locator("#curve-step").scroll_into_view_if_needed()
    box = page.locator("#curve-lines").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    for text in ("1,000 steps", "trained.json: average 0.04608", "trained.json: last 0.04653"):
        assert text in values.text_content()
    slider = page.get_by_role("slider", name="Step of training")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert "1,010 steps" in slider.get_attribute("aria-valuetext")
    points = page.locator("#curve-lines .average").get_attribute("points").split()
    places, heights = zip(*(map(float, point.split(",")) for point in points), strict=True)
    assert places == pytest.approx([n / 2 for n in range(201)], abs=0.001)
    wanted = [100 * (1 - (math.log10(4.7 / (2 + n)) + 2) / 3) for n in range(201)]
    assert heights == pytest.approx(wanted, abs=0.001)  # between 0.01 and 10
    page.get_by_text("Settings and versions").click()
    assert page.locator(".notes").inner_text().split() == [
        *("Settings", "and", "versions", "Run", "steps", "2000"),
        *("Config", "lr", "1.0", "seed", "0", "Versions", "torch", "2.13"),
    ]


def test_the_scale_has_the_best_first_and_a_place_for_zero(browser, folder):
    address = written(folder, "zero.html", ["nash:1/6", "heuristic"], "kuhn", equilibrium="cfr:9")
    with opened(browser, address) as page:
        rows = page.locator("#scale li:not(.axis)")
        values = [v for v, _ in shown(page, "#scale")]
        assert values == sorted(values)
        assert rows.first.locator("bdi").text_content() == "nash:1/6"
        assert shown(page, "#scale")[0][1] == "0"
        middle = "const { x, width } = e.getBoundingClientRect(); return x + width / 2;"
        look = f"(all) => all.map((e) => {{ {middle} }})"
        places = page.locator("#scale .mark").evaluate_all(look)
        assert places == sorted(places)
        axis = page.locator("#scale .axis .track span").evaluate_all(look)
        assert places[0] == pytest.approx(axis[0], abs=2)
        assert places[0] < axis[1] < places[1]
        assert page.locator("#scale .name:not(.track)").all_text_contents()[-1] == "uniform play"
        assert values[-1] == pytest.approx(11 / 12)


class Mirror:
    """The same hands at the table, with the same stream of chance, from the document's arrays."""

    def __init__(self, page, document, game, draws):
        self.page = page
        self.game = game
        self.tree = game.tree
        self.draws = iter(draws)
        self.policies = [
            {"name": policy["name"], **{k: array(v) for k, v in policy["tables"].items()}}
            for policy in document["policies"]
        ]
        self.seat = game.num_players - 1
        self.won = []
        self.costs = [0.0, 0.0]

    def deal(self):
        self.seat = (self.seat + 1) % self.game.num_players
        self.node = 0
        self.judged = []
        self.advance()

    def advance(self):
        tree = self.tree
        while tree.player[self.node] not in (self.seat, -4):
            first, last = tree.first_child[self.node : self.node + 2].tolist()
            infoset = int(tree.infoset[self.node])
            weights = tree.chance_probability[first:last].astype(np.float32)
            if infoset >= 0:
                start, stop = tree.first_choice[infoset : infoset + 2].tolist()
                weights = self.policies[0]["probabilities"][start:stop]
            left = next(self.draws)
            possible = np.flatnonzero(weights > 0).tolist()
            chosen = possible[-1]
            for place in possible:
                left -= float(weights[place])
                if left < 0:
                    chosen = place
                    break
            self.node = first + chosen
        if tree.player[self.node] == -4:
            self.won.append(float(tree.returns[self.seat, self.node]))

    def move(self, place):
        infoset = int(self.tree.infoset[self.node])
        slot = int(self.tree.first_choice[infoset]) + place
        costs = [float(policy["costs"][slot]) for policy in self.policies[:2]]
        self.costs = [total + cost for total, cost in zip(self.costs, costs, strict=True)]
        label = self.game.action_label(infoset, int(self.tree.choice_action[slot]))
        against = ("this opponent", self.policies[1]["name"])
        said = ", ".join(f"{in_chips(c)} against {a}" for c, a in zip(costs, against, strict=True))
        self.judged.append(f"{label} cost {said}")
        self.node = int(self.tree.first_child[self.node]) + place
        self.advance()

    @property
    def is_over(self):
        return bool(self.tree.player[self.node] == -4)

    def see(self):
        page = self.page
        infoset = int(self.tree.infoset[self.node])
        assert page.locator("#judged li").all_text_contents() == self.judged
        assert f"You are player_{self.seat} against " in page.text_content("#own-seat")
        situation = page.text_content("#situation")
        if not self.is_over:
            label = self.game.infoset_label(infoset).replace("'", "")
            assert situation.startswith("You ")
            assert situation.endswith(f" {label.split(' ', 2)[2]}")
            labels = page.locator("#own-moves button span").all_text_contents()
            actions = np.flatnonzero(self.tree.legal[infoset]).tolist()
            assert labels == [self.game.action_label(infoset, action) for action in actions]
            assert page.locator("#hand").is_hidden()
            return
        won = self.won[-1]
        assert f"you {'lose' if won < 0 else 'win'} {in_chips(abs(won))}." in situation
        assert page.locator("#hand-steps li").count() == len(self.tree.history(self.node))
        self.see_totals()

    def see_totals(self):
        texts = self.page.locator("#totals dd").all_text_contents()
        n = len(self.won)
        total = sum(self.won)
        assert f": {n} hand" in self.page.text_content("#totals-title")
        assert number(texts[0].split("±")[0]) == total
        assert number(texts[1].split("±")[0]) == pytest.approx(total / n, abs=0.0051)
        if n > 1:
            margin = 1.96 * statistics.stdev(self.won) / math.sqrt(n)
            assert number(texts[0].split("±")[1]) == pytest.approx(n * margin, abs=0.051)
            assert number(texts[1].split("±")[1]) == pytest.approx(margin, abs=0.0051)
        assert [number(text) for text in texts[2:4]] == pytest.approx(self.costs, abs=0.0051)


def in_chips(amount):
    text = f"{amount:.2f}".rstrip("0").rstrip(".")
    return "nothing" if text == "0" else f"{text} chip{'' if text == '1' else 's'}"


@pytest.mark.parametrize("name", [LEDUC, DICE, KUHN3])
def test_whole_hands_at_the_table(browser, folder, name):
    """By keyboard alone, each step as the tree has it, totals as they should be."""
    game = load_game(name)
    document = report_document(["random:1"], name, equilibrium="cfr+:50")
    path = folder / f"play-{GAMES.index(name)}.html"
    rng = random.Random(3)
    draws = [rng.random() for _ in range(2_000)]
    script = f"const draws = {draws}; Math.random = () => draws.shift();"
    with opened(browser, saved(path, document), script) as page:
        mirror = Mirror(page, document, game, draws)
        for hand in range(12):
            if hand:
                page.keyboard.press("n")
            mirror.deal()
            mirror.see()
            if not hand:
                page.locator("#own-moves button").first.focus()
            while not mirror.is_over:
                infoset = int(game.tree.infoset[mirror.node])
                place = rng.randrange(int(np.diff(game.tree.first_choice)[infoset]))
                if place < 9:
                    page.keyboard.press(str(place + 1))
                else:
                    page.locator("#own-moves button").nth(place).click()
                mirror.move(place)
                mirror.see()
        assert len(mirror.won) == 12


def test_another_opponent_and_another_seat_start_a_new_hand(page):
    page.locator("#opponent").select_option("cfr+:1000 (equilibrium)")
    assert "against cfr+:1000" in page.text_content("#own-seat")
    assert page.locator("#totals div").count() == 4  # nothing is said twice
    page.get_by_role("radio", name="player_1").check()
    assert "You are player_1" in page.text_content("#own-seat")


def test_the_whole_page_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(120):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.closest('section, header')?.id ?? ''"))
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        if page.evaluate("document.activeElement.dataset.child !== undefined"):
            break
    order = [part for part in dict.fromkeys(seen) if part]
    assert order == ["summary", "curve", "losses", "explorer", "play"]
    page.locator("#losses-list a").nth(2).focus()
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'place'")
    before = page.locator("#crumbs li").count()
    page.keyboard.press("1")
    until(page, f"document.querySelectorAll('#crumbs li').length === {before + 1}")
    page.keyboard.press("u")
    until(page, f"document.querySelectorAll('#crumbs li').length === {before}")
    page.locator("#search").focus()
    page.keyboard.type("1u")
    assert page.locator("#crumbs li").count() == before


ROLES = {
    "navigation": ("Sections", "History"),
    "region": ("How good it is", "How it learned", "Where the chips are lost", "Explorer", "Play"),
    "combobox": ("Policy", "Player", "Opponent"),
    "searchbox": ("Filter", "Search an information set"),
    "slider": ("Step of training",),
    "button": ("Show more", "Back one step"),
    "radio": ("player_0", "player_1", "Alternate"),
    "list": ("NashConv, the lowest first", "Losses, the largest first", "Moves"),
    "table": ("Chips per hand by player", "The policies at this information set"),
    "group": ("Your seat", "Moves to choose from", "Histories"),
    "img": ("trained.json: average: NashConv from 2.350 to 0.02327",),
}


def test_roles_and_names(page):
    for role, names in ROLES.items():
        for name in names:
            assert page.get_by_role(role, name=name).count() >= 1, (role, name)
    assert page.evaluate(UNNAMED) == []
    assert page.get_by_role("heading", level=1).count() == 1
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))"
    )
    assert all(b - a <= 1 for a, b in pairwise(levels))
    page.evaluate("location.hash = '#explorer/'")
    page.get_by_role("link", name="player_0 gets J♠ 16.7%").wait_for()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_in_any_state(browser, folder, width, scheme):
    size = {"width": width, "height": 800}
    with opened(browser, leduc(folder), viewport=size, color_scheme=scheme) as page:
        assert page.evaluate(OVERFLOW) == []
        page.get_by_text("Settings and versions").click()
        page.locator("#search").fill("k")
        assert page.evaluate(OVERFLOW) == []
        for history in ("", "3,0,1,2,1,5,1,2,2", "3,0,2,0"):
            page.evaluate(f"location.hash = '#explorer/{history}'")
            page.wait_for_timeout(30)
            assert page.evaluate(OVERFLOW) == []
        for _ in range(6):
            page.locator(".felt button:not([hidden])").first.click()
            assert page.evaluate(OVERFLOW) == []
        page.locator("#losses-text").fill("nothing like that")
        assert page.evaluate(OVERFLOW) == []


LONG = "model-with-a-very-long-name-" * 4


@pytest.mark.parametrize("width", [320, 1280])
def test_long_names_and_many_policies_stay_inside(browser, folder, width):
    game = load_game(DICE)
    entries = [
        reported_policy("random:1", load_policy(f"random:{n}", game), name=f"{LONG}{n}")
        for n in range(7)
    ]
    address = saved(folder / "many.html", game_document(game, entries, entries[0]))
    with opened(browser, address, viewport={"width": width, "height": 800}) as page:
        assert page.evaluate(OVERFLOW) == []


EVIL = "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"


def test_text_stays_text(browser, folder):
    """Names, information states, actions, outcomes and settings, each a piece of HTML."""
    document = report_document(["uniform"], KUHN3, equilibrium="cfr+:9")
    tree = document["tree"]
    policy = document["policies"][0]
    tree["keys"] = [f"{EVIL}{key}" for key in tree["keys"]]
    tree["labels"] = [f"{EVIL}{label}" for label in tree["labels"]]
    document["game"]["name"] = policy["name"] = EVIL
    policy["notes"] = {EVIL: {EVIL: EVIL}}
    policy["curve"] = {"steps": [0, 1], "last": [2.0, 1.0], "average": [2.0, 1.0]}
    with opened(browser, saved(folder / "evil.html", document)) as page:
        page.get_by_text("Settings and versions").click()
        page.locator("#search").fill("script")
        for selector in (
            *("#title", "#policies h3", "#place", "#crumbs", ".step .label", "#results"),
            *("#losses-list", "#curve-values", "#own-moves", "#situation", ".notes dd"),
            *("#losses-policy option", "#opponent option", "#totals-title"),
        ):
            assert EVIL in page.locator(selector).first.text_content(), selector
        assert page.title().startswith(EVIL)
        page.locator("#own-moves button").first.click()
        assert EVIL in page.text_content("#judged")
        page.evaluate("location.hash = '#explorer/'")
        page.locator("#explorer[data-node='0']").wait_for()
        assert EVIL in page.text_content(".outcomes")
        assert page.evaluate("window.broken === undefined")
        assert page.locator("img, script[src], #view script").count() == 0


def test_without_a_tree_the_explorer_is_left_out_and_the_page_says_so(browser, folder, monkeypatch):
    monkeypatch.setattr(document, "MAX_NODES", 100)
    address = written(folder, "large.html", ["random:1"], LEDUC, equilibrium="none")
    with opened(browser, address, viewport=PHONE) as page:
        assert page.get_by_text("left out above 100").is_visible()
        for section in ("explorer", "play", "curve"):
            assert page.locator(f"#{section}").is_hidden()
        assert page.locator("nav a").all_text_contents() == ["Summary", "Losses"]
        assert page.locator("#losses-list li").count() == 8
        page.locator("#losses-player").select_option("player_1")
        page.locator("#losses-text").fill("q♥ board k")
        titles = page.locator("#losses-list .place").all_text_contents()
        assert titles
        assert all(re.match("player_1(?=.*Q♥).*board", title) for title in titles)
        game = load_game(LEDUC)
        loss = load_policy("random:1", game).measure().losses[0]
        words = [game.action_label(loss.infoset, action) for action in (loss.played, loss.best)]
        worst = page.locator("#policies .worst").inner_text().split("\n")
        assert [line for line in worst if line and "NashConv" not in line] == [
            game.infoset_label(loss.infoset),
            *("plays most", f"{words[0]} {loss.probability:.1%}", "best response", words[1]),
            *("reached in", f"{loss.reach:.1%} of hands"),
        ]
        assert page.evaluate(OVERFLOW) == []


def test_a_bound_is_at_least_with_its_interval(browser, folder):
    seats = [SeatBound(seat, Gain("warm", 0.2, 0.018), 1, 9.0) for seat in (0, 1)]
    game = without_measure(load_game(KUHN3))
    policy = load_policy("uniform", game)
    bound = ReportedPolicy(
        name="model.zip", policy=policy, measure=LowerBound("x", tuple(seats), 1_000, 1_000)
    )
    with opened(browser, saved(folder / "bound.html", game_document(game, [bound]))) as page:
        card = page.locator("#policies article").inner_text()
        for text in ("at least 0.4000", "95% interval 0.3501 to 0.4499", "at least 0.1333"):
            assert text in card
        assert "at least 0.4000" in page.locator("#scale").inner_text()
        assert page.get_by_text("a smaller bound does not show that a policy is").is_visible()


def test_what_was_not_measured_has_no_number(browser, folder):
    game = without_measure(load_game(KUHN3))
    notes = {"run": {"seconds": 32.769942829}}
    one = ReportedPolicy(name="model.zip", policy=load_policy("uniform", game), notes=notes)
    with opened(browser, saved(folder / "unmeasured.html", game_document(game, [one]))) as page:
        assert page.get_by_text("NashConv was not measured.").is_visible()
        assert page.locator("data, #scale:visible, .players").count() == 0
        assert page.locator("nav a").all_text_contents() == ["Summary"]
        page.get_by_text("Settings and versions").click()
        assert page.locator(".notes dd").inner_text() == "32.7699"
        assert page.evaluate(OVERFLOW) == []


def test_bars_are_as_long_as_the_probabilities_at_every_width(browser, folder):
    for width in WIDTHS:
        size = {"width": width, "height": 800}
        with opened(browser, f"{leduc(folder)}#explorer/3,0,1,2", viewport=size) as page:
            for bar in page.locator(".moves [data-policy]").all():
                track, fill = (
                    bar.locator(s).bounding_box()["width"] for s in (".track", ".track i")
                )
                share = float(bar.locator(".odds data").get_attribute("value"))
                assert track >= 60
                assert fill == pytest.approx(share * track, abs=0.6)


CLICK = """(step) => new Promise((done) => {
    const start = performance.now();
    step.click();
    setTimeout(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""


@pytest.mark.slow
def test_a_click_in_the_largest_explorer_answers_at_once(browser, folder):
    """Liar's Dice with six sides, 294,883 nodes: half of all clicks within 100 ms."""
    game = "liars_dice(numdice=1,dice_sides=6)"
    rng = random.Random(0)
    address = written(folder, "dice-6.html", ["random:1"], game, equilibrium="cfr+:9")
    times = []
    with opened(browser, f"{address}#explorer/") as page:
        for _ in range(5):
            while steps := page.locator(".step").all():
                times.append(rng.choice(steps).evaluate(CLICK))
            page.evaluate("location.hash = '#explorer/'")
            page.locator("#explorer[data-node='0']").wait_for()
    assert statistics.median(times) < 100


def test_the_play_command_serves_the_page_at_the_table(browser):
    with Server(_files(load_game(KUHN3), open_source("random:1"))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with opened(browser, server.url) as page:
                assert page.text_content("h1") == f"Play {KUHN3}"
                first = page.locator("main > section").first
                assert first.get_attribute("id") == "play"
                assert page.locator("nav a").first.text_content() == "Play"
                options = page.locator("#opponent option").all_text_contents()
                assert options == ["random:1", "uniform", "cfr+:1000 (average of CFR+)"]
                page.locator(".felt button:not([hidden])").first.click()
        finally:
            server.shutdown()
            thread.join()


def test_the_hands_of_a_river_endgame(browser, folder):
    """The grid, the hands of a cell, the way through the public tree, and narrow windows."""
    address = written(folder, "river.html", ["random:1"], "river(board=7dJc3s9hQd,pot=2000)")
    with opened(browser, address) as page:
        assert page.locator("#explorer").is_hidden()
        assert page.locator(".cell").count() == 169
        page.get_by_role("button", name="AKs:").click()
        assert page.locator("#hands-detail tbody tr").count() == 4
        page.locator("#hands-actions").get_by_role("button", name="check").click()
        assert page.locator("#hands-place").text_content() == "player_1 after check"
        assert page.locator("#hands-actions").get_by_role("button", name="fold").is_disabled()
        page.select_option("#hands-view", "strength")
        page.locator(".strength").first.click()
        assert "K♣T♣" in page.locator("#hands-detail tbody").inner_text()
        page.select_option("#hands-view", "grid")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(OVERFLOW) == []
        assert page.evaluate(UNNAMED) == []


class HandsMirror:
    """The same hands of a poker endgame, from the same numbers, by OpenSpiel's states."""

    def __init__(self, page, document, game, draws):
        self.page = page
        self.game = game
        self.draws = iter(draws)
        self.hands = document["hands"]
        self.weight = array(self.hands["weight"]).reshape(2, -1)
        self.tables = [
            {name: array(policy["hands"][name]) for name in ("probability", "cost")}
            for policy in document["policies"]
        ]
        self.seat = 1
        self.won = []
        self.cost = 0.0

    def draw(self, weights):
        """The first place whose running sum is above a number in [0, total)."""
        sums = np.cumsum(np.asarray(weights, np.float64))
        return int(np.searchsorted(sums, next(self.draws) * sums[-1], side="right"))

    def deal(self):
        self.seat = 1 - self.seat
        cards = self.game.boards[0].hands
        while True:
            self.held = [self.draw(self.weight[player]) for player in range(2)]
            if not set(cards[self.held[0]]) & set(cards[self.held[1]]):
                break
        self.state = self.game.pyspiel_game.new_initial_state()
        for hand in self.held:
            for card in cards[hand]:
                self.state.apply_action(card)
        self.node = 0
        self.judged = []
        self.advance()

    def rows(self, name):
        """The numbers of the actions at the node, of the hand of the player to act."""
        table = self.tables[0][name].reshape(-1, len(self.hands["labels"]))
        edges = slice(*self.game.public_tree.first_edge[self.node : self.node + 2])
        return table[edges, self.held[self.state.current_player()]].tolist()

    def play(self, place):
        action = self.state.legal_actions()[place]
        self.node = self.game.next_node(self.node, action)
        self.state.apply_action(action)

    def advance(self):
        while self.node >= 0 and self.state.current_player() != self.seat:
            self.play(self.draw(self.rows("probability")))
        if self.node < 0:
            assert self.state.is_terminal()
            self.won.append(self.state.returns()[self.seat])

    def labels(self):
        actions = self.state.legal_actions()
        return [self.game.public_action_label(self.node, action) for action in actions]

    def move(self, place):
        cost = self.rows("cost")[place]
        self.cost += cost
        self.judged.append(f"{self.labels()[place]} cost {in_chips(cost)} against this opponent")
        self.play(place)
        self.advance()

    def see(self):
        page = self.page
        assert page.locator("#judged li").all_text_contents() == self.judged
        situation = page.text_content("#situation")
        own = self.hands["labels"][self.held[self.seat]]
        if self.node >= 0:
            cards = page.locator("#situation .card").all_text_contents()
            assert cards == [*self.hands["board"], own[:2], own[2:]]
            assert page.locator("#own-moves button span").all_text_contents() == self.labels()
            assert page.locator("#hand").is_hidden()
            return
        won = self.won[-1]
        assert f"you {'lose' if won < 0 else 'win'} {in_chips(abs(won))}." in situation
        steps = page.locator("#hand-steps li").all_text_contents()
        assert steps[self.seat] == f"you: {own}"
        other = self.hands["labels"][self.held[1 - self.seat]]
        assert steps[1 - self.seat] == f"player_{1 - self.seat}: {other}"
        texts = page.locator("#totals dd").all_text_contents()
        assert number(texts[0].split("±")[0]) == sum(self.won)
        assert number(texts[2]) == pytest.approx(self.cost, abs=0.0051)


@pytest.mark.parametrize("board", ["7dJc3s9hQd", "AsKsQsJsTs"])
def test_hands_of_a_river_endgame_at_the_table(browser, folder, board):
    game = load_game(f"river(board={board},blinds=1000,bets=fchpa)")
    policy = kb.Policy.random(game, seed=1)
    reported = ReportedPolicy(name="random:1", policy=policy, measure=policy.measure())
    document = game_document(game, [reported], mode="play")
    rng = random.Random(4)
    draws = [rng.random() for _ in range(2_000)]
    script = f"const draws = {draws}; Math.random = () => draws.shift();"
    with opened(browser, saved(folder / f"play-{board}.html", document), script) as page:
        assert page.locator("main > section").first.get_attribute("id") == "play"
        mirror = HandsMirror(page, document, game, draws)
        for hand in range(12):
            if hand:
                page.keyboard.press("n")
            mirror.deal()
            mirror.see()
            if not hand:
                page.locator("#play button:not([hidden])").first.focus()
            while mirror.node >= 0:
                place = rng.randrange(len(mirror.state.legal_actions()))
                page.keyboard.press(str(place + 1))
                mirror.move(place)
                mirror.see()
        assert len(mirror.won) == 12
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(OVERFLOW) == []
        assert page.evaluate(UNNAMED) == []
