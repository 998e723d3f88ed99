"""What objects look like in a notebook: right figures, escaped text, no scripts."""

from html.parser import HTMLParser

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms.self_play.curve import LearningCurve, Point
from kuhn_bridge import notebook

ANGLE = '<script>alert("&")</script>'
NASTY = f"""EFG 2 R "{ANGLE}" {{ "{ANGLE}" "B" }}
p "" 1 1 "{ANGLE}" {{ "{ANGLE}" "b" }} 0
t "" 1 "" {{ 1 0 }}
t "" 0
""".replace('alert("&")', "alert(&)")


class Text(HTMLParser):
    """The text of well-formed HTML, and the names of its elements."""

    def __init__(self, html):
        super().__init__()
        self.open = []
        self.tags = set()
        self.texts = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def shown(thing):
    parsed = Text(thing._repr_html_())
    assert "script" not in parsed.tags
    return parsed.text


def test_a_state():
    state = kb.State.new("K", "J")
    assert "player_0: check or bet" in shown(state)
    assert "2 chips" in shown(state)
    over = state.act(kb.Action.BET).act(kb.Action.CHECK_OR_CALL)
    assert "bet, call" in shown(over)
    assert "4 chips" in shown(over)
    assert "player_0 +2, player_1 -2" in shown(over)


def test_a_small_policy_has_a_bar_per_information_set():
    text = shown(kb.load_policy("nash:1/3"))
    assert text.count("player_") == 12
    assert "player_0 with J to start check 67% bet 33%" in " ".join(text.split())
    assert "NashConv 0, 12 information sets" in text
    # 2.8e-17 in floating point
    assert "NashConv below 1e-12, 12" in shown(kb.load_policy("nash:1/6"))


def test_a_label_that_does_not_fit_into_its_bar_is_left_out():
    parts = [notebook.Part("a long name of an action", 0.5, 0), notebook.Part("b", 0.5, 1)]
    html = notebook.strips([("row", parts)])
    assert "b 50%" in Text(html).text
    assert "long" not in Text(html).text
    assert 'title="a long name of an action 50%"' in html


def test_a_larger_policy_has_the_first_rows():
    text = shown(kb.Policy.uniform("leduc_poker"))
    assert "NashConv 4.74722, 936 information sets" in text
    assert "and 928 more" in text


def test_a_large_policy_is_not_measured():
    policy = kb.Policy.uniform("phantom_ttt")
    assert "phantom_ttt" in shown(policy)
    assert "every legal action equally often" in shown(policy)


def test_a_function_of_states_is_named():
    pytest.importorskip("pyspiel")
    policy = kb.Policy.from_openspiel(lambda state: {state.legal_actions()[0]: 1.0}, "phantom_ttt")
    assert "a function of OpenSpiel's states" in shown(policy)


def test_a_measure_has_figures_and_the_largest_losses():
    policy = kb.Policy.uniform("kuhn")
    text = shown(policy.measure())
    assert "NashConv 0.916667" in text
    worst = policy.measure().losses[0]
    assert policy.game.infoset_label(worst.infoset) in text
    assert f"{worst.lost:.6f}" in text
    assert "no chips are lost" in shown(kb.load_policy("nash:0").measure())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kuhn", ["12 (6 + 6)", "zero-sum", "player_0 with J to start: check, bet"]),
        ("matrix_pd", ["not zero-sum"]),
        ("matrix_shapleys_game", ["not zero-sum"]),
        ("blotto", ["zero-sum", "58 more"]),
        ("phantom_ttt", ["exact, without a tree", "5,990,669", "first action: x(0,0), x(0,1)"]),
        (
            "river(board=7dJc3s9hQd,pot=2000)",
            ["19,458", "player_0 with 2♦2♣ to start: fold, check, pot bet, all-in"],
        ),
        ("goofspiel", ["a lower bound"]),
    ],
)
def test_a_game(name, words):
    text = shown(kb.load_game(name))
    assert all(word in text for word in words)


def test_a_game_in_a_file_has_a_title(tmp_path):
    path = tmp_path / "shop.efg"
    path.write_text(NASTY.replace(ANGLE.replace('alert("&")', "alert(&)"), "shop"))
    text = shown(kb.load_game(path))
    assert "title shop players 2 (shop, B)" in " ".join(text.split())


def test_a_constant_sum_is_shown(tmp_path):
    path = tmp_path / "share.efg"
    leaves = 't "" 1 "" { 3 1 }\nt "" 2 "" { 0 4 }\n'
    path.write_text('EFG 2 R "" { "A" "B" }\np "" 1 1 "" { "a" "b" } 0\n' + leaves)
    assert "payoffs sum to 4" in " ".join(shown(kb.load_game(path)).split())


def test_a_large_tree_is_not_built_to_be_shown():
    game = kb.load_game("liars_dice")
    assert "built when it is first needed" in shown(game)
    assert "tree" not in vars(game)


def test_a_curve_is_a_picture():
    curve = LearningCurve([Point(0, 0.0, 0.9, 0.9), Point(1000, 1.0, 0.01, float("nan"))])
    parsed = Text(curve._repr_html_())
    assert {"svg", "polyline"} <= parsed.tags
    assert "1,000" in parsed.text
    assert "no figures" in shown(LearningCurve())
    assert "no figures" in shown(LearningCurve([Point(0, 0.0, float("nan"), float("nan"))]))


def test_text_is_escaped(tmp_path):
    path = tmp_path / "nasty.efg"
    path.write_text(NASTY, encoding="utf-8")
    game = kb.load_game(path)
    policy = kb.Policy(game, np.array([[0.25, 0.75]]))
    for thing in (game, policy, policy.measure()):
        assert "<script>alert(&)</script>" in shown(thing)


def test_an_axis_has_powers_of_ten():
    points = {"line": [(0, 3.0), (10, 0.02)]}
    text = Text(notebook.line_chart(points, x_label="x", y_label="y")).text.split()
    assert {"0.01", "0.1", "1", "10"} <= set(text)
