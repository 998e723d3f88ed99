"""The command that measures policies, as a user runs it."""

import json
import subprocess
import sys

import pytest
from hypothesis import given

from algorithms import nashconv as module
from algorithms.exact.values import nash_conv
from algorithms.nashconv import Theirs, by_openspiel, main, report, verdict
from algorithms.solve import main as solve
from kuhn_bridge import TabularPolicy
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
    assert TabularPolicy.from_dict(found["policy"]) == TabularPolicy.random(1)
    assert found["value"] == pytest.approx(found["openspiel"]["value"])
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
    "cut.json": TabularPolicy.uniform().to_json()[:100],
    "half.json": json.dumps(
        {"format": "kuhn-bridge-policy", "version": 1, "policy": {"0": {"BET": 1.0}}}
    ),
    "sum.json": TabularPolicy.uniform().to_json().replace("0.5", "0.4"),
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
    assert name.split(":")[-1] in captured.err


@given(policies())
def test_openspiel_agrees_on_everything(policy):
    item = report("any", policy, openspiel=True)
    assert item.theirs.gap(item.measure) < 1e-9
    assert 0 <= item.dominated <= 1


def test_a_disagreement_would_be_noticed(monkeypatch, capsys):
    def off(policy):
        right = by_openspiel(policy)
        return Theirs(right.nash_conv + 1e-6, right.gains, right.value)

    monkeypatch.setattr(module, "by_openspiel", off)
    assert main(["uniform", "--openspiel"]) == 1
    captured = capsys.readouterr()
    assert "DISAGREES" in captured.out
    assert captured.err == "uniform: OpenSpiel disagrees\n"


@pytest.mark.parametrize(
    ("total", "words"),
    [(0, "an equilibrium"), (1, "worse than uniform"), (11 / 24, "50.0% of the way")],
)
def test_verdicts(total, words):
    assert words in verdict(total)


def test_the_report_is_the_measure():
    policy = TabularPolicy.random(9)
    measure = nash_conv(module._tree(), policy.probabilities)
    assert report("x", policy).measure[:4] == measure[:4]
