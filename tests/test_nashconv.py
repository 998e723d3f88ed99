"""The command that measures policies, as a user runs it."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

from algorithms.exact.elimination import eliminate
from algorithms.exact.values import evaluate_policy, joint_policy, pure_policy
from algorithms.games import kuhn, load_game
from algorithms.nashconv import _agrees, main
from algorithms.policies import Policy
from algorithms.policies import report as module
from algorithms.policies.openspiel import Theirs, measured_by_openspiel
from algorithms.policies.report import report, verdict
from algorithms.solve import main as solve
from kuhn_bridge import Action
from tests.games import from_names
from tests.strategies import policies


def test_one_policy(capsys):
    assert main(["uniform", "--openspiel"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("uniform: NashConv 0.916667, as far from equilibrium as uniform play")
    assert "gain                      +0.375000000  +0.541666667" in out
    assert "gain, by OpenSpiel        +0.375000000  +0.541666667" in out
    assert "value against -1/18  +0.180556" in out
    assert "agrees" in out
    assert "dominated            0.5000 on player_1 with K after bet: fold" in out
    table = out.split("\n\n")[1].splitlines()
    assert len(table) == 14
    assert table[12].split() == ["2pb", "0.5000", "-", "0.5000", "0.5000", "-", "0.5000", "call"]


def test_an_equilibrium(capsys):
    assert main(["nash:0.25", "--max", "1e-9"]) == 0
    out = capsys.readouterr().out
    assert "an equilibrium, up to rounding" in out
    assert "distance             0.000000 to the equilibrium of alpha 0.2500" in out
    assert "dominated actions    none played" in out


def test_several_at_once(capsys):
    assert main(["uniform", "nash:0", "random:3", "--openspiel"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "policy"
    assert [line.split()[0] for line in lines[1:4]] == ["uniform", "nash:0", "random:3"]
    assert lines[1].split()[1] == lines[1].split()[-1] == "0.916667"


def test_json(capsys):
    assert main(["random:1", "--json", "--openspiel"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == "random:1"
    assert found["nash_conv"] == pytest.approx(sum(found["gains"]))
    assert found["openspiel"]["gap"] < 1e-9
    assert from_names(found["policy"]) == Policy.random("kuhn", 1)
    assert found["values"] == pytest.approx(found["openspiel"]["values"])
    assert found["value"] == found["values"][0]
    assert found["game"] == "kuhn"
    assert Policy.from_players("kuhn", found["players"]) == Policy.random("kuhn", 1)
    assert main(["random:1", "uniform", "--json"]) == 0
    assert [item["source"] for item in json.loads(capsys.readouterr().out)] == [
        "random:1",
        "uniform",
    ]


def test_the_limit(capsys):
    assert main(["uniform", "--max", "0.95"]) == 0
    assert main(["nash:0.1", "uniform", "--max", "0.9"]) == 1
    assert capsys.readouterr().err == "uniform: NashConv is above 0.9\n"


def test_deterministic_play(capsys):
    assert main(["nash:0.1", "--deterministic", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nash_conv"] > 0.1
    assert {p for row in found["policy"].values() for p in row.values()} == {0, 1}


def test_what_solve_writes(tmp_path, capsys):
    out = tmp_path / "policy.json"
    assert solve(["--iterations", "100", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main([str(out), "--max", "0.0025"]) == 0
    assert main([str(out), "--max", "0.0023"]) == 1


def test_as_a_process():
    command = [sys.executable, "-m", "algorithms.nashconv", "uniform", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["nash_conv"] == pytest.approx(11 / 12)
    assert done.stderr == ""


BROKEN = {
    "other.json": '{"format": "kuhn-bridge-game-policy", "version": 1, "game": "leduc_poker"}',
    "later.json": '{"format": "kuhn-bridge-policy", "version": 3, "game": "leduc_poker"}',
    "nameless.json": '{"format": "kuhn-bridge-policy", "version": 2, "players": []}',
    "unknown.json": '{"format": "kuhn-bridge-policy", "version": 2, "game": "unknown.j"}',
    "single.json": json.dumps(
        {"format": "kuhn-bridge-policy", "version": 2, "game": "kuhn_poker", "players": [{}]}
    ),
    "cut.json": Policy.uniform("kuhn").to_json()[:100],
    "half.json": json.dumps(
        {"format": "kuhn-bridge-policy", "version": 1, "policy": {"0": {"BET": 1.0}}}
    ),
    "sum.json": Policy.uniform("kuhn").to_json().replace("0.5", "0.4"),
    "binary.json": "\udcff",
    "cut.zip": "PK",
}


@pytest.mark.parametrize("name", [*BROKEN, "missing.json", "unifrom", "nash:2", "missing.zip"])
def test_bad_input(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if name in BROKEN:
        (tmp_path / name).write_text(BROKEN[name], errors="surrogateescape")
    assert main(["uniform", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert name.split(":")[-1].removesuffix("son") in captured.err


@given(policies())
def test_openspiel_agrees_on_everything(policy):
    item = report("any", policy, openspiel=True)
    assert item.theirs.gap(item.measure) < 1e-10
    removed = [(r.infoset, r.action) for r in eliminate(item.policy.game.tree).removals]
    assert item.kuhn.dominated == max(policy.table[place] for place in removed)


def test_a_disagreement_would_be_noticed(monkeypatch, capsys):
    def off(policy):
        right = measured_by_openspiel(policy)
        return Theirs(right.nash_conv, right.gains, (right.values[0], right.values[1] + 1e-6))

    monkeypatch.setattr(module, "measured_by_openspiel", off)
    assert main(["uniform", "--openspiel"]) == 1
    captured = capsys.readouterr()
    assert "DISAGREES" in captured.out
    assert captured.err == "uniform: OpenSpiel disagrees\n"


def test_the_gap_is_the_largest_difference_of_any_number():
    policy = Policy.uniform("kuhn")
    ours, right = policy.measure(), measured_by_openspiel(policy)
    for wrong in (
        replace(right, nash_conv=right.nash_conv + 1),
        replace(right, gains=(right.gains[0], right.gains[1] + 1)),
        replace(right, values=(right.values[0] - 1, right.values[1])),
    ):
        assert wrong.gap(ours) == pytest.approx(1)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (0, "an equilibrium"),
        (1e-8, "100.0% of the way"),
        (1e-3, "99.9% of the way"),
        (11 / 48, "75.0% of the way"),
        (11 / 12, "as far from equilibrium as uniform play (0.9167)"),
        (1, "worse than uniform"),
    ],
)
def test_verdicts(total, words):
    assert words in verdict(total, 11 / 12)


def test_the_report_is_the_measure():
    policy = Policy.random("kuhn", 9)
    measure = evaluate_policy(kuhn().tree, policy.table)
    found = report("x", policy).measure
    assert (found.nash_conv, found.gains) == (measure.nash_conv, measure.gains)
    assert (found.values, found.best_values) == (measure.values, measure.best_values)


def test_openspiel_is_held_to_every_figure():
    measure = evaluate_policy(kuhn().tree, kuhn().tree.uniform())
    right = Theirs(measure.nash_conv, measure.gains, measure.values)
    assert right.gap(measure) == 0
    for name in ("nash_conv", "gains", "values"):
        off = np.add(getattr(right, name), 0.25)
        wrong = replace(right, **{name: off if name == "nash_conv" else tuple(off)})
        assert wrong.gap(measure) == pytest.approx(0.25)


def test_json_says_where_chips_are_lost_and_how_to_take_them(capsys):
    assert main(["always-bet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    policy = from_names(found["policy"])
    first, wanted = found["losses"][0], policy.measure().losses[0]
    assert (
        (first["reach"], first["probability"]) == (wanted.reach, wanted.probability) == (1 / 3, 1)
    )
    assert (first["key"], first["played"], first["best"]) == ("0", Action.BET, Action.CHECK_OR_CALL)
    answers = {
        key: action for rows in found["best_response_players"] for key, action in rows.items()
    }
    table = pure_policy(policy.game.tree, [answers[key] for key in policy.game.tree.keys])
    for player, best in enumerate(found["best_response_values"]):
        mixed = [table if p == player else policy.table for p in (0, 1)]
        values = evaluate_policy(policy.game.tree, joint_policy(policy.game.tree, mixed)).values
        assert values[player] == pytest.approx(best)
    named = {key: Action[name] for key, name in found["best_response"].items()}
    assert named == answers
    assert found["exploitability"] == pytest.approx(found["nash_conv"] / 2)


def test_ten_losses_are_listed_unless_asked_otherwise(capsys):
    for options, shown in (([], 10), (["--losses", "0"], 0), (["--losses", "12"], 12)):
        assert main(["uniform", "--game", "leduc_poker", *options]) == 0
        assert capsys.readouterr().out.count("\nplayer_") == shown


@pytest.mark.parametrize("options", [["--losses", "-1"], ["--max", "nan"]])
def test_impossible_options(options, capsys):
    assert main(["uniform", *options]) == 2
    assert f"{' '.join(options)}: want a" in capsys.readouterr().err


def test_agreement_is_up_to_rounding_at_the_stakes_of_the_game():
    theirs = SimpleNamespace(gap=lambda measure: 5e-10)
    for name, agree in (("kuhn", False), ("leduc_poker", True)):  # 2 chips, 13 chips
        item = SimpleNamespace(game=load_game(name), theirs=theirs, measure=None)
        assert _agrees(item) is agree


def test_any_game(capsys):
    assert main(["random:3", "--game", "leduc_poker", "--openspiel", "--losses", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("random:3: NashConv 5.03496, worse than uniform play (4.7472)\n")
    assert "leduc_poker: 9,457 nodes, 936 information sets" in out
    assert "gain, by OpenSpiel        +2.413779443  +2.621177211" in out
    assert "exploitability       2.51748 (NashConv / 2 players)" in out
    assert "agrees: the largest difference is" in out
    first = next(line for line in out.splitlines() if line.startswith("player_1 with K♥"))
    assert first.split()[-6:] == ["0.1042", "fold", "0.60", "raise", "0.376742", "7%"]
    assert "... and 934 more that lose" in out


def test_json_of_any_game(capsys):
    assert main(["random:3", "--game", "kuhn_poker(players=3)", "--json", "--openspiel"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["game"] == "kuhn_poker(players=3)"
    assert len(found["gains"]) == len(found["values"]) == len(found["players"]) == 3
    assert found["exploitability"] == pytest.approx(found["nash_conv"] / 3)
    assert found["openspiel"]["gap"] < 1e-10
    policy = Policy.from_players("kuhn_poker(players=3)", found["players"])
    assert policy == Policy.random("kuhn_poker(players=3)", 3)
    assert sum(loss["lost"] for loss in found["losses"]) == pytest.approx(found["nash_conv"])
    assert "value" not in found
    assert "policy" not in found


@pytest.mark.parametrize("game", ["kuhn", "kuhn_poker(players=3)"])
def test_the_best_responses_in_json_win_what_they_should(game, capsys):
    assert main(["random:3", "--game", game, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    players, responses = found["players"], found["best_response_players"]
    for player, response in enumerate(responses):
        best = {
            key: {action: float(int(action) == response[key]) for action in row}
            for key, row in players[player].items()
        }
        against = [*players[:player], best, *players[player + 1 :]]
        won = Policy.from_players(game, against).measure().values[player]
        assert won == pytest.approx(found["best_response_values"][player])
    for loss in found["losses"]:
        row = players[loss["player"]][loss["key"]]
        assert loss["probability"] == max(row.values()) == row[str(loss["played"])]
        assert loss["best"] == responses[loss["player"]][loss["key"]]
    if game == "kuhn":
        named = {key: Action[name] for key, name in found["best_response"].items()}
        assert named == responses[0] | responses[1]


def test_where_kuhn_loses(capsys):
    assert main(["always-bet", "--losses", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("player_0 with J to start")  # bets, and is called by Q and K
    assert "more that lose" in lines[-1]
    assert main(["nash:0", "--losses", "5"]) == 0
    assert "where chips are lost" not in capsys.readouterr().out


def test_the_response_to_a_policy_is_measured_too(capsys):
    assert main(["uniform", "best-response", "cfr+:10", "--json"]) == 0
    uniform, response, solved = json.loads(capsys.readouterr().out)
    assert response["best_response_values"] != uniform["best_response_values"]
    assert {p for row in response["policy"].values() for p in row.values()} == {0, 1}
    assert solved["nash_conv"] == pytest.approx(0.06537, abs=1e-5)


def test_a_file_names_its_game_and_a_flag_may_not_contradict_it(tmp_path, capsys):
    out = str(tmp_path / "leduc.json")
    assert solve(["--game", "leduc_poker", "--iterations", "10", "--out", out]) == 0
    capsys.readouterr()
    assert main([out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["game"] == "leduc_poker"
    assert main([out, "uniform", "--game", "leduc_poker(players=2)"]) == 0  # the same game
    assert main([out, "uniform"]) == 0
    assert "uniform play has NashConv 4.747222" in capsys.readouterr().out
    for other in ("kuhn", "kuhn_poker", "leduc_poker(suit_isomorphism=True)"):
        assert main([out, "--game", other]) == 2
        assert capsys.readouterr().err.endswith(f"a policy of leduc_poker, not of {other}\n")
    assert main([out, "nash:0"]) == 2
    assert "nash:0 is a policy of kuhn, not of leduc_poker" in capsys.readouterr().err
