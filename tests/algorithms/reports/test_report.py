"""`algorithms.report`: the document beside `nashconv --json`, the page around it, the command."""

import base64
import json
import posixpath
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from algorithms import nashconv, report, sweep, train_ppo
from algorithms.compiled.nashconv import action_values, expected_values
from algorithms.games import load_game
from algorithms.large_games.large_game import LargeExactGame
from algorithms.lower_bound import Gain, LowerBound, SeatBound
from algorithms.policies import Policy, load_policy
from algorithms.reports import document, html_page, writing
from algorithms.reports.document import game_document, game_facts
from algorithms.reports.writing import report_document, reported_policy, write_document
from algorithms.self_play.curve import Point, to_csv
from algorithms.self_play.settings import configure
from algorithms.sweeps.plan import Plan
from tests.games import DICE, KUHN, KUHN3, LEDUC
from tests.kuhn_bridge.web.test_web import WEB, contrast, need

GAMES = ("kuhn", LEDUC, DICE, KUHN3)
ONE_PLAYER = "cliff_walking(height=2,width=3,horizon=3)"
NO_CHANCE = "matrix_rps"
SMALL = (
    *("goofspiel(imp_info=True,num_cards=3,points_order=descending)", ONE_PLAYER, NO_CHANCE),
    "sheriff(item_penalty=1.0,max_bribe=2,max_items=2,num_rounds=1,sheriff_penalty=1.0)",
)


def array(encoded):
    """What an encoded array holds."""
    return np.frombuffer(base64.b64decode(encoded["data"]), np.dtype(encoded["dtype"]))


def measured(capsys, source, game):
    assert nashconv.main([source, "--game", game, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("game", GAMES)
def test_measures_are_those_of_nashconv(game, capsys):
    document = report_document(["random:1", "uniform"], game)
    names = [policy["name"] for policy in document["policies"]]
    assert names == ["random:1", "uniform", "nash:1/6" if game == "kuhn" else "cfr+:1000"]
    for name, policy in zip(names, document["policies"], strict=True):
        theirs = measured(capsys, name, game)
        for field in ("nash_conv", "exploitability", "gains", "values", "verdict"):
            assert policy[field] == pytest.approx(theirs[field]) or policy[field] == theirs[field]
        assert list(policy["best_values"]) == theirs["best_response_values"]
        worst = [loss["key"] for loss in theirs["losses"]]
        keys = document["tree"]["keys"]
        ranking = array(policy["tables"]["ranking"])
        lost = array(policy["tables"]["losses"])
        assert len(worst) == len(ranking)
        assert lost[ranking] == pytest.approx([loss["lost"] for loss in theirs["losses"]], rel=1e-6)
        assert {keys[infoset] for infoset in ranking} == set(worst)


@pytest.mark.parametrize("name", [*GAMES, *SMALL])
def test_the_tree_of_the_document_is_the_games(name):
    game = load_game(name)
    tree = game.tree
    document = report_document(["random:2"], name)["tree"]
    for field, wanted in (
        ("children", np.diff(tree.first_child)),
        ("infoset", tree.infoset),
        ("owner", tree.owner),
        ("slots", np.diff(tree.first_choice)),
        ("slot_action", tree.choice_action),
    ):
        assert (array(document[field]) == wanted).all()
    rows = np.array(document["returns"])[array(document["return_index"])]
    assert (tree.returns[:, tree.terminals] == rows.T).all()
    nodes = np.flatnonzero(tree.player == -1).tolist()
    theirs = document["outcomes"]
    outcomes = [x for node in nodes for x in range(*tree.first_child[node : node + 2].tolist())]
    assert (array(theirs["action"]) == tree.action[outcomes]).all()
    assert (array(theirs["probability"]) == np.float32(tree.chance_probability[outcomes])).all()
    labels = [document["labels"][place] for place in array(theirs["label"])]
    assert labels == [label for node in nodes for label in game.chance_labels(node)]
    words = [document["labels"][place] for place in array(document["slot_label"])]
    assert words == [
        game.action_label(int(row), int(action))
        for row, action in zip(tree.choice_infoset, tree.choice_action, strict=True)
    ]
    assert document["keys"] == list(tree.keys)


@pytest.mark.parametrize("name", GAMES)
def test_tables_are_action_values(name):
    game = load_game(name)
    policy = load_policy("random:5", game).table
    found = action_values(game.tree, policy)
    tables = report_document(["random:5"], name)["policies"][0]["tables"]
    assert array(tables["probabilities"]) == pytest.approx(policy[game.tree.legal], rel=1e-6)
    for field in ("values", "costs", "reach", "losses", "beliefs"):
        assert array(tables[field]) == pytest.approx(getattr(found, field), rel=1e-6, nan_ok=True)
    assert ((array(tables["costs"]) == 0) == (found.costs == 0)).all()


def test_seats_are_what_others_win_there():
    document = report_document(["uniform"], LEDUC, equilibrium="random:1")
    uniform, guest = document["policies"]
    game = load_game(LEDUC)
    tables = [load_policy(name, game).table for name in ("uniform", "random:1")]
    own = game.tree.owner
    for seat in (0, 1):
        mixed = np.where((own == seat)[:, None], tables[1], tables[0])
        won = expected_values(game.tree, mixed)[seat]
        assert uniform["seats"][seat]["reference"] == pytest.approx(won)
        assert uniform["seats"][seat]["best_response"] == uniform["best_values"][seat]
    assert guest["seats"][0]["reference"] == pytest.approx(guest["values"][0])


@pytest.mark.parametrize(
    ("game", "equilibrium", "role"),
    [
        ("kuhn", None, "equilibrium"),
        (LEDUC, "cfr+:10", "equilibrium"),
        (KUHN3, "cfr+:10", "average of CFR+"),
        (KUHN3, "uniform", "reference"),
        (LEDUC, "uniform", "reference"),
        ("matrix_pd", "cfr:10", "average of CFR"),
        ("kuhn", "none", None),
        (ONE_PLAYER, "cfr+:10", "average of CFR+"),
    ],
)
def test_the_reference_is_called_what_it_is(game, equilibrium, role):
    last = report_document(["random:1"], game, equilibrium=equilibrium)["policies"][-1]
    assert last["role"] == role


def test_a_reference_among_the_policies_is_shown_once():
    document = report_document(["cfr+:10", "uniform"], LEDUC, equilibrium="cfr+:10")["policies"]
    assert [(policy["name"], policy["role"]) for policy in document] == [
        ("uniform", None),
        ("cfr+:10", "equilibrium"),
    ]


def test_above_the_limit_the_losses_are_in_words_and_there_is_no_tree(capsys, monkeypatch):
    monkeypatch.setattr(document, "MAX_NODES", 9)
    game = load_game(LEDUC)
    found = report_document(["random:1"], game, equilibrium="uniform")
    assert found["tree"] is None
    assert found["without_tree"] == (
        "leduc_poker has 9,457 nodes: the explorer and the table are left out above 9 nodes."
    )
    theirs = measured(capsys, "random:1", LEDUC)["losses"]
    lines = found["policies"][0]["losses"]
    assert len(lines) == 500
    row = game.tree.keys.index(theirs[0]["key"])
    assert lines[0] == {
        "player": theirs[0]["player"],
        "label": game.infoset_label(row),
        "reach": pytest.approx(theirs[0]["reach"]),
        "played": game.action_label(row, theirs[0]["played"]),
        "probability": theirs[0]["probability"],
        "best": game.action_label(row, theirs[0]["best"]),
        "lost": pytest.approx(theirs[0]["lost"]),
    }
    assert found["policies"][1]["role"] == "reference"


def test_a_native_game_reports_what_its_tree_would():
    name = "liars_dice(numdice=1,dice_sides=3)"
    small = load_game(name)
    large = load_game(name, max_nodes=5)
    assert isinstance(large, LargeExactGame)
    wanted = Policy.uniform(small).measure()
    document = game_document(large, [reported_policy("uniform", Policy(large, large.uniform()))])
    (policy,) = document["policies"]
    for field in ("nash_conv", "gains"):
        assert policy[field] == pytest.approx(getattr(wanted, field), abs=1e-6)
    lost = [loss.lost for loss in wanted.losses]
    assert [loss["lost"] for loss in policy["losses"]] == pytest.approx(lost, abs=1e-6)
    assert policy["losses"][0]["label"].startswith("player_")
    assert document["tree"] is None
    assert "does not fit a tree" in document["without_tree"]
    assert document["game"]["infosets"] == len(small.tree.keys)
    assert document["game"]["nodes"] is None


def without_measure(game):
    """A small game as if it were too large for a tree, and without another exact measure."""
    return load_game(game.name, max_nodes=5)


def test_without_an_exact_measure_the_report_has_a_bound(monkeypatch):
    asked = []

    def lower_bound(policy, *, decisions, progress):
        asked.append((policy, decisions))
        gains = enumerate((0.375, 0.125))
        seats = [SeatBound(seat, Gain("warm, greedy", gain, 0.01), 2, 9.0) for seat, gain in gains]
        return LowerBound("kuhn_poker", tuple(seats), 4_000, decisions)

    monkeypatch.setattr(Policy, "lower_bound", lower_bound)
    found = report_document(["uniform"], without_measure(load_game(KUHN)), decisions=2_000)
    (policy,) = found["policies"]
    assert "nash_conv" not in policy
    assert policy["nash_conv_at_least"] == pytest.approx(0.5)
    assert policy["exploitability_at_least"] == pytest.approx(0.25)
    assert policy["interval"] == pytest.approx((0.5 - 0.027718, 0.5 + 0.027718), abs=1e-5)
    assert policy["gains"] == (0.375, 0.125)
    assert policy["verdict"] == ""
    assert policy["notes"]["lower bound"] == {
        "decisions per response": "2000",
        "hands to measure it": "4000",
        "response of player_0": "warm, greedy",
        "response of player_1": "warm, greedy",
    }
    assert [decisions for _, decisions in asked] == [2_000]
    assert found["tree"] is None
    assert "lower bound of NashConv" in found["without_tree"]
    assert found["game"]["uniform_nash_conv"] is None
    found = report_document(["uniform"], without_measure(load_game(KUHN)), decisions=0)
    (policy,) = found["policies"]
    assert not [name for name in policy if name.startswith(("nash_conv", "exploitability"))]
    assert policy["gains"] == ()


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["a/model.zip", "uniform"], ["model.zip", "uniform"]),
        (["a/model.zip", "b/model.zip", "cfr:9"], ["a/model.zip", "b/model.zip", "cfr:9"]),
        (["s/x/0/m.zip", "s/y/0/m.zip", "s/y/1/m.zip"], ["x/0/m.zip", "y/0/m.zip", "y/1/m.zip"]),
    ],
)
def test_names_are_as_long_as_they_need_to_be(sources, names):
    assert writing.policy_names(sources) == names


def test_a_training_run_ends_with_a_report(tmp_path, capsys):
    out = tmp_path / "model.zip"
    options = ["--steps", "4096", "--n-envs", "64", "--html"]
    assert train_ppo.main(["--out", str(out), *options]) == 0
    size = out.with_suffix(".html").stat().st_size
    assert f"report: {out.with_suffix('.html')}, {size / 1e6:.2f} MB" in capsys.readouterr().out
    document = in_page(out.with_suffix(".html"))
    policy = document["policies"][0]
    saved = json.loads(out.with_suffix(".json").read_text())
    assert policy["name"] == "model.zip"
    assert policy["nash_conv"] == pytest.approx(saved["nash_conv"])
    assert policy["curve"]["steps"][-1] == saved["steps"]
    assert policy["notes"]["config"]["steps"] == "4096"


def in_page(path):
    """The document inside a report."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="document">(.*?)</script>', text, re.DOTALL)[1])


def test_a_report_is_a_page(tmp_path, refused):
    out = tmp_path / "report.txt"
    assert "want a file whose name ends in .html" in refused(
        report.main, ["uniform", "--out", str(out)]
    )
    assert not out.exists()


def sweep_of(folder, games):
    """A finished sweep: two settings, each with two seeds of which the second is better."""
    grid = {
        f"n_envs={n}": configure({"game": g, "n_envs": n})
        for n, g in zip((8, 16), games, strict=True)
    }
    plan = Plan(settings=grid, seeds=(0, 1))
    plan.write(folder)
    for trial in plan.trials():
        own = folder / trial.folder
        own.mkdir(parents=True)
        policy = load_policy(f"cfr:{trial.config.n_envs * (trial.config.seed + 1)}", "kuhn")
        result = {f"nash_conv{x}": policy.nash_conv() for x in ("", "_last", "_average")}
        result["steps"] = 9
        (own / "model.json").write_text(json.dumps(policy.to_document() | result))
        (own / "model.csv").write_text(to_csv([Point(0, 0.0, 1.0, 1.0), Point(9, 1.0, 0.5, 0.5)]))
        (own / "trial.json").write_text("{}")


def test_a_sweep_ends_with_a_report_of_each_settings_best_run(tmp_path, capsys):
    sweep_of(tmp_path, ("kuhn", "kuhn"))
    assert sweep.main(["--report", str(tmp_path), "--html"]) == 0
    assert f"report: {tmp_path / 'sweep.html'}" in capsys.readouterr().out
    document = in_page(tmp_path / "sweep.html")
    assert [policy["name"] for policy in document["policies"]] == [
        "n_envs=16/seed-1/model.json",
        "n_envs=8/seed-1/model.json",
        "nash:1/6",
    ]
    assert document["policies"][0]["curve"]["steps"] == [0, 9]


def test_a_sweep_over_several_games_has_no_report(tmp_path, capsys):
    sweep_of(tmp_path, ("kuhn", LEDUC))
    assert sweep.main(["--report", str(tmp_path), "--html"]) == 2
    assert "--html: a report covers one game, but this sweep has 2" in capsys.readouterr().err


def test_facts_of_a_game():
    facts = game_facts(load_game(KUHN3))
    assert (facts["num_players"], facts["nodes"], facts["infosets"]) == (3, 617, 48)
    assert facts["constant_sum"]
    assert facts["uniform_nash_conv"] == pytest.approx(2.0625)
    assert not game_facts(load_game("matrix_pd"))["constant_sum"]


RUN = {
    "format": "kuhn-bridge-policy",
    "steps": 100,
    "seconds": 1.5,
    "config": {"game": "kuhn", "lr": 1.0},
    "versions": {"torch": "2"},
}


def test_what_lies_beside_a_model_is_read(tmp_path):
    model = tmp_path / "model.zip"
    assert writing.notes_beside(str(model)) == {}
    assert writing.curve_beside(str(model)) == ()
    (tmp_path / "model.json").write_text(json.dumps(RUN))
    (tmp_path / "model.csv").write_text(
        "steps,seconds,nash_conv,nash_conv_average\n0,0.0,1.0,1.5\n"
    )
    assert writing.notes_beside(str(model)) == {
        "run": {"steps": 100, "seconds": 1.5},
        "config": RUN["config"],
        "versions": RUN["versions"],
    }
    assert [point.average for point in writing.curve_beside(str(model))] == [1.5]
    for text in ("", "[1]", "{", '{"config": 3}', "\xff", "[" * 100_000):  # not ours
        (tmp_path / "model.json").write_text(text)
        (tmp_path / "model.csv").write_text(text)
        assert writing.notes_beside(str(model)) == {}
        assert writing.curve_beside(str(model)) == ()


class Elements(HTMLParser):
    """The elements of a page with their attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_page_is_whole(tmp_path):
    path = tmp_path / "report.html"
    size = write_document(path, report_document(["uniform"]))
    text = path.read_text(encoding="utf-8")
    assert size == path.stat().st_size
    tags = Elements(text).found
    for tag, attributes in tags:
        assert tag not in ("link", "img", "iframe", "base")
        assert not {"src", "srcset"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<!-- " not in text


def test_no_text_ends_the_element_that_it_stands_in(tmp_path):
    evil = "</script><script>alert(1)</script><!--"
    document = report_document(["uniform"])
    document["game"]["name"] = document["policies"][0]["name"] = document["tree"]["keys"][0] = evil
    path = tmp_path / "report.html"
    write_document(path, document)
    text = path.read_text()
    assert evil not in text
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    assert json.loads(scripts[0])["game"]["name"] == evil


def test_the_joined_script_is_a_module_that_parses(tmp_path):
    node = need(shutil.which("node"), "node")
    path = tmp_path / "page.mjs"
    path.write_text(html_page.joined_script())
    assert "import {" not in path.read_text()
    done = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_module_of_the_report_is_used_and_served():
    served = set(html_page.page_assets(report_document(["uniform"])))
    own = {f"/report/{path.name}" for path in (WEB / "report").iterdir() if path.suffix == ".js"}
    assert own <= served
    for name in own:
        for target in re.findall(r'from "(\.[^"]+)"', (WEB / name.lstrip("/")).read_text()):
            assert posixpath.normpath(f"/report/{target}") in served


def test_the_command_says_how_large_the_file_is(tmp_path, capsys):
    out = tmp_path / "leduc.html"
    assert report.main(["uniform", "random:1", "--game", LEDUC, "--out", str(out)]) == 0
    size = out.stat().st_size
    assert capsys.readouterr().out == f"wrote {out}: {size / 1e6:.2f} MB\n"
    assert size < 2_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unifrom"], "unknown policy 'unifrom'"),
        (["uniform", "--equilibrium", "cfr++:3"], "unknown policy 'cfr++:3'"),
        (["uniform", "--game", "leduc"], "unknown game 'leduc'"),
        (["missing.zip"], "missing.zip: No such file"),
        (["uniform", "--out", "nowhere/report.html"], "there is no directory nowhere"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


INKS = ("colour-0", "colour-1", "colour-2", "colour-3", "colour-4", "colour-reference")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["panel", "paper"])
@pytest.mark.parametrize("ink", [*INKS, "quiet", "good"])
def test_names_in_colour_stand_out(scheme, ground, ink):
    """The ratio of WCAG 2 between text and its ground."""
    common, own = ((WEB / name).read_text() for name in html_page.STYLESHEETS)
    parts = common.split("@media", 2)[: 2 if scheme == "dark" else 1]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", "".join(parts)))
    for name, *pair in re.findall(r"\.([\w-]+) \{\n  --own: light-dark\((#\w+), (#\w+)\)", own):
        colours[name] = pair[scheme == "dark"]
    assert contrast(colours[ink], colours[ground], 0.0) >= 4.5


def test_policies_in_memory_are_reported(tmp_path):
    policy = Policy.random(LEDUC, 1)
    other = Policy.uniform(LEDUC)
    policy.report(tmp_path / "x.html", other)
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    document = report_document(["random:1", "uniform"], LEDUC)
    for reported in document["policies"]:
        assert str(reported["nash_conv"])[:12] in text
    assert "the policy" in text
    with pytest.raises(ValueError, match=r"ends in \.html"):
        policy.report(tmp_path / "x.txt")
    with pytest.raises(ValueError, match="a policy of kuhn beside one of leduc_poker"):
        policy.report(tmp_path / "x.html", Policy.uniform("kuhn"))
