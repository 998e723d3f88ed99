"""`parity.check`, `parity.speed` and `parity.growth`: the commands, and how checks are counted."""

import json
import os
import subprocess
import sys
from itertools import chain, count
from pathlib import Path

import numpy as np
import pytest

from algorithms.games.kuhn import kuhn
from kuhn_bridge.state import nodes
from parity import check, growth, policies, speed
from parity.kuhn_rules import RULES
from parity.registry import Check, CheckSettings, Skipped, Tally, run
from tests.parity import (
    test_parity_gambit,
    test_parity_kuhn,
    test_parity_policies,
    test_parity_tree_games,
)
from tests.planted_errors import ALGORITHMS, KUHN_CHECKS, QUICK

DOCS = Path(__file__).parents[2] / "docs"
# These take most of the time, and the error planted below does not concern them.
SLOW = {"cfr", "cfr+", "lcfr", "dcfr", "fast", "plain"}
SLOW |= {"selfplay", "policies", "pettingzoo-api", "policy.js"}


@pytest.mark.parametrize("name", KUHN_CHECKS)
def test_everything_agrees(name):
    """In CI no check may be skipped; elsewhere those that need node or Gambit may."""
    result = run(KUHN_CHECKS[name], QUICK)
    assert result.cases == []
    optional = {"engine.js", "policy.js", "gambit-tree", "gambit-regrets", "gambit-value"}
    may_skip = name in optional and not os.environ.get("CI")
    if result.status != "skipped" or not may_skip:
        assert result.status == ("known" if name == "shimmy-upstream" else "pass"), result.note
        assert result.compared > 0


def test_every_check_has_a_planted_error():
    """But the one that watches another project; those of `--game` have a test of their own."""
    tables = (
        test_parity_kuhn,
        test_parity_tree_games,
        test_parity_policies,
        test_parity_gambit,
    )
    rows = {row for table in tables for row, _, _ in table.PLANTED}
    assert rows == set(KUHN_CHECKS) - {"shimmy-upstream"}


def test_an_error_in_the_core_fails_the_checks_concerned_and_no_others():
    """A check-check hand pays 2, in the states that all users of the core share."""
    policies.exported(QUICK)  # trained without the error
    ends = [state for state in nodes() if state.letters == "pp"]
    right = {state: state.returns for state in ends}
    for state in ends:
        object.__setattr__(state, "returns", tuple(2 * chips for chips in right[state]))
    kuhn.cache_clear()
    quick = CheckSettings(quick=True)  # with the wrong game
    try:
        results = {name: run(item, quick) for name, item in KUHN_CHECKS.items() if name not in SLOW}
    finally:
        for state in ends:
            object.__setattr__(state, "returns", right[state])
        kuhn.cache_clear()
    failed = {name for name, result in results.items() if result.status == "FAIL"}
    expected = {"core", "core-python", "openspiel-face", "pettingzoo", "shimmy", "nashconv"}
    expected |= {"best-response", "values", "lp", "model"}
    assert failed - {"engine.js"} == expected  # which may be skipped


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "FAIL"),  # it compared nothing
        (RuntimeError("no luck"), "FAIL"),
        (ModuleNotFoundError(name="shimmy"), "skipped"),
        (ModuleNotFoundError(name="parity.gone"), "FAIL"),  # a module of ours
    ],
)
def test_the_status_of_a_check(error, status):
    def body(tally, settings):
        if error:
            raise error

    assert run(Check("x", "rules", "x", body), QUICK).status == status


@pytest.mark.parametrize(
    ("number", "wrong", "deviation"),
    [(0.9e-12, 0, 0.9e-12), (1.1e-12, 1, 1.1e-12), (float("nan"), 1, np.inf)],
)
def test_a_tolerance_is_a_limit(number, wrong, deviation):
    tally = Tally()
    tally.close("here", "pays {}", 0.0, number, 1e-12)
    assert (tally.compared, tally.wrong, tally.deviation) == (1, wrong, deviation)


def test_a_tally_keeps_the_largest_deviation_and_the_first_cases():
    tally = Tally()
    tally.close("here", "has {}", 0.5, 0.25, 1.0)
    assert (tally.wrong, tally.deviation) == (0, 0.25)
    tally.same("here", "has {}", 3, 1)
    assert (tally.wrong, tally.deviation) == (1, 2)
    for _ in range(7):
        tally.same("there", "has {}", "a", "b")
    assert (tally.compared, tally.wrong, tally.deviation) == (9, 8, np.inf)  # of text
    assert tally.cases == [
        "here: ours has 3, OpenSpiel has 1",
        *["there: ours has a, OpenSpiel has b"] * 5,
    ]


def skipping(tally, settings):
    raise Skipped("not today")


def test_the_table_has_counts_deviations_and_cases(capsys, monkeypatch):
    def wrong(tally, settings):
        for _ in range(8):
            tally.close("here", "has {}", 0.5, 0.25, 0.1)

    def different(tally, settings):
        tally.same("there", "has {}", "a", "b")

    bodies = {"core": wrong, "nashconv": different, "masks": skipping}
    for name, body in bodies.items():
        group = ALGORITHMS if name == "nashconv" else RULES
        monkeypatch.setitem(group.checks, name, Check(name, group.name, "x", body))
    chosen = ["--only", "nashconv", "--only", "core", "--only", "masks"]
    assert check.main(chosen) == 1
    out = capsys.readouterr().out
    assert [line.split()[1:4] for line in out.splitlines()[1:4]] == [
        ["core", "8", "2.5e-01"],
        ["masks", "0", "0"],
        ["nashconv", "1", "inf"],
    ]
    assert "  core: here: ours has 0.5, OpenSpiel has 0.25\n" in out
    assert "  core: and 2 more\n" in out
    assert "  masks: skipped: not today\n" in out
    assert "\n9 comparisons in " in out
    assert "2 of 3 checks FAIL" in out
    assert check.main([*chosen, "--json"]) == 1
    core, masks, nashconv = json.loads(capsys.readouterr().out)
    assert (core["deviation"], nashconv["deviation"]) == (0.25, None)
    assert (core["compared"], core["wrong"]) == (8, 8)
    assert (core["status"], masks["status"]) == ("fail", "skipped")


def test_quick_and_model_reach_the_checks(capsys, monkeypatch):
    seen = []

    def body(tally, settings):
        seen.append((settings.quick, settings.model))
        tally.holds("here", "it holds", True)

    monkeypatch.setitem(RULES.checks, "core", Check("core", "rules", "x", body))
    model = policies.small_model()
    assert check.main(["--only", "core"]) == 0
    assert check.main(["--only", "core", "--quick", "--model", str(model)]) == 0
    assert seen == [(False, None), (True, model)]
    capsys.readouterr()


def test_the_command_prints_a_table_a_list_or_json(capsys):
    assert check.main(["--only", "core", "--only", "rulebook"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("group  check")
    assert "everything agrees" in out
    assert check.main(["--list"]) == 0
    assert "every node of the core against kuhn_poker" in capsys.readouterr().out
    assert check.main(["--list", "--only", "core", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["group"], row["check"]) == ("rules", "core")
    assert check.main(["--only", "core", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["status"], row["compared"], row["deviation"]) == ("pass", 180, 0)


def test_two_runs_give_the_same_results(capsys):
    def rows():
        check.main(["--json", "--quick", "--only", "nashconv", "--only", "selfplay"])
        document = json.loads(capsys.readouterr().out)
        return [{key: row[key] for key in row if key != "seconds"} for row in document]

    assert rows() == rows()


HANABI = ["--game", "tiny_hanabi"]
CANDIDATE = ["--candidate", "kuhn_poker"]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (check, ["--only", "cor"], "did you mean 'core'?"),
        (check, ["--model", "missing.zip"], "missing.zip"),
        (check, ["--model", "missing.onnx"], "missing.onnx: No such file"),
        (check, ["--model", "policy.json"], "give a model.zip or a policy.onnx"),
        (check, ["--game", "leduk"], "unknown game 'leduk'"),
        (check, ["--game", "nfg_game"], "OpenSpiel cannot load it"),
        (check, [*HANABI, "--only", "core"], "unknown check 'core'"),
        (check, [*HANABI, "--model", "m.zip"], "--model cannot be combined with --game"),
        (check, [*HANABI, "--candidate", "x:y"], "--game cannot be combined with"),
        (check, [*CANDIDATE, "--only", "core"], "--only cannot be combined with"),
        (check, ["--actions", "0=check"], "--actions requires --candidate"),
        (check, [*CANDIDATE, "--actions", "0=check/bet,1=call/fold"], "the same ID"),
        (check, [*CANDIDATE, "--actions", "0=check/fold,5=bet/call"], "ID 5; the IDs are 0 to 1"),
        (check, [*CANDIDATE, "--actions", "one=check"], "--actions has the form"),
        (check, [*CANDIDATE, "--actions", "0=raise"], "--actions has the form"),
        (check, [*CANDIDATE, "--actions", "0=check,1=bet"], "call, fold"),
        (check, [*CANDIDATE, "--actions", "0=check,1=check"], "gives check two IDs"),
        (check, ["--candidate", "tests.candidates:Forgetful"], "does not repeat its deal"),
        (check, ["--candidate", "tests.candidates:Broken"], "cannot be played: OSError: no cards"),
        (check, ["--candidate", "tests.candidates:Three"], "the candidate has 3 agents, not 2"),
        (check, ["--candidate", "nowhere.at.all:x"], "cannot load the candidate"),
        (check, ["--candidate", "kuhn_bridge:Nothing"], "has no attribute 'Nothing'"),
        (check, ["--candidate", "no_such_game"], "cannot load the candidate"),
        (check, ["--candidate", "kuhn.py"], "kuhn.py:KuhnPoker"),
        (check, ["--candidate", ""], "cannot load the candidate"),
        (check, ["--candidate", "kuhn_poker(players=3)"], "3 players, not 2"),
        (check, ["--candidate", "math:pi"], "a candidate is a rulebook"),
        (check, ["--candidate", "os:path"], "got module"),
        (check, ["--candidate", "tic_tac_toe"], "has 9 actions; Kuhn poker has 2, 3 or 4"),
        (speed, ["--only", "warp drive"], "unknown contest"),
        (speed, ["--rounds", "0"], "argument --rounds: want at least 1, not 0"),
        (growth, ["--most", "0"], "argument --most: want at least 1, not 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(command, arguments, message, capfd):
    try:
        code = command.main(arguments)
    except SystemExit as stop:  # by the parser
        code = stop.code
    assert code == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_checks_are_listed_in_the_docs():
    page = (DOCS / "parity.md").read_text(encoding="utf-8")
    assert [name for name in KUHN_CHECKS if f" {name} " not in page] == []


def test_growth_on_small_games(capsys, monkeypatch):
    monkeypatch.setattr(growth, "SECONDS", 0.001)
    assert growth.main(["--most", "700", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)
    assert [point["nodes"] for point in points] == [58, 617]
    assert all(point["nanoseconds"]["fast"] > 0 for point in points)


def test_growth_with_a_coarse_clock(monkeypatch):
    moments = chain([0.0, 0.0], count(1.0))
    monkeypatch.setattr(growth.time, "process_time", lambda: next(moments))
    measurement = growth.measure("Kuhn", "kuhn_poker", 100)
    assert measurement.nodes == 58
    assert all(0 < figure < np.inf for figure in measurement.nanoseconds.values())


def test_the_checks_of_kuhn_do_not_load_the_large_games():
    code = (
        "import sys; from parity.check import main; main(['--list']); "
        "assert not [name for name in sys.modules if 'phantom' in name or 'large_games.l' in name]"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
