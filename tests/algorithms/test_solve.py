"""The command that solves games, as a user runs it."""

import json
import re

import pytest
from matplotlib.axes import Axes

import kuhn_bridge as kb
from algorithms.policies import load_policy
from algorithms.solve import main
from algorithms.solvers import make_solver
from tests.games import KUHN3, LEDUC, from_names

ALONE = "cliff_walking(height=2,width=3,horizon=3)"


def test_kuhn(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "kuhn: 58 nodes, 12 information sets\npdcfr+: 1,000 iterations, the last policy\n"
    )
    assert "2p    player_1  K     check             0.0000  1.0000       -" in out
    assert "[0.0, 100.0, 0.0, 100.0]" in out
    assert "(equilibrium -0.055556 = -1/18)" in out
    assert float(re.search(r"NashConv +(\S+)", out)[1]) < 1e-12
    assert "to the equilibrium of alpha" in out


def test_until(capsys, tmp_path):
    out = tmp_path / "policy.json"
    assert main(["--until", "1e-6", "--json", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""  # no bar when nobody watches
    document = json.loads(printed.out)
    assert load_policy(out).nash_conv() == document["nash_conv"] <= 1e-6
    assert load_policy(out) == from_names(document["policy"])
    assert document["nash_conv"] == sum(document["gains"]) == 2 * document["exploitability"]
    assert document["distance"] < 1e-4
    before = [total for _, total in document["curve"][:-1]]
    assert min(before) > 1e-6


def test_the_last_policy_may_be_saved(capsys, tmp_path):
    found = {}
    for save in ("best", "average", "last"):
        out = tmp_path / f"{save}.json"
        arguments = ["--variant", "pcfr+", "--iterations", "500", "--out", str(out), "--json"]
        assert main([*arguments, "--save", save]) == 0
        found[save] = json.loads(capsys.readouterr().out)
        assert load_policy(out).nash_conv() == found[save]["nash_conv"]
    assert [run["holds"] for run in found.values()] == ["last", "average", "last"]
    assert found["last"]["nash_conv"] < 1e-12 < found["average"]["nash_conv"]


def test_until_gives_up(capsys, monkeypatch):
    monkeypatch.setattr("algorithms.solve.MAX_ITERATIONS", 50)
    assert main(["--until", "1e-9"]) == 1
    assert "not reached: NashConv 1e-09" in capsys.readouterr().out


@pytest.mark.parametrize(("game", "players"), [(LEDUC, 2), (KUHN3, 3), ("python_kuhn_bridge", 2)])
def test_openspiels_games(game, players, tmp_path, capsys):
    out = tmp_path / "policy.json"
    plot = tmp_path / "curve.png"
    arguments = ["--game", game, "--iterations", "60", "--out", str(out), "--plot", str(plot)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert f"(NashConv / {players} players)" in shown
    written = json.loads(out.read_text())
    assert written["game"] == game
    assert (written["format"], written["version"]) == ("kuhn-bridge-policy", 2)
    for rows in written["players"]:
        assert all(sum(row.values()) == pytest.approx(1) for row in rows.values())
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"policy.json", "curve.png"}


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_player_alone(mode, capsys):
    """Uniform play is 45.8 from the best way."""
    arguments = ["--game", ALONE, "--variant", "dcfr", "--iterations", "200", "--mode", mode]
    assert main([*arguments, "--save", "average", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nash_conv"] == pytest.approx(1.704e-05, rel=1e-3)


def test_options_reach_the_solver(monkeypatch, capsys):
    used = []

    def recording(tree, variant, **options):
        used.append((variant, options))
        return make_solver(tree, variant, **options)

    monkeypatch.setattr("algorithms.solvers.make_solver", recording)
    main(["--iterations", "1"])
    main(["--iterations", "1", "--mode", "exact", "--variant", "cfr", "--seed", "7"])
    main(["--iterations", "1", "--discounts", "1.5", "0", "2"])
    assert used == [
        ("pdcfr+", {}),
        ("cfr", {"mode": "exact", "seed": 7}),
        ("pdcfr+", {"discounts": [1.5, 0, 2]}),
    ]
    capsys.readouterr()


def test_nodes_may_be_bounded(capsys):
    few = ["--game", LEDUC, "--iterations", "1", "--max-nodes"]
    assert main([*few, "9457"]) == 0
    assert main([*few, "9456"]) == 2
    assert "too large for a tree" in capsys.readouterr().err


def test_a_long_strategy_is_cut_and_says_so(capsys):
    assert main(["--game", LEDUC, "--iterations", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count("\nplayer_") == 24
    assert "\n... and 912 more (--out writes all)\n" in out


def test_the_picture_is_of_the_curve(tmp_path, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(Axes, "plot", lambda self, *columns: drawn.append(columns))
    assert main(["--iterations", "5", "--plot", str(tmp_path / "x.png"), "--json"]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    assert [list(map(list, zip(*columns, strict=True))) for columns in drawn] == [curve]
    assert len(curve) == 5


@pytest.mark.parametrize("game", ["kuhn", LEDUC])
def test_the_default_reaches_a_billionth(game, capsys):
    assert main(["--game", game, "--until", "1e-9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nash_conv"] <= 1e-9


@pytest.mark.parametrize("exactly", [[], ["--rational"]])
def test_the_linear_program(exactly, capsys, tmp_path):
    out = tmp_path / "policy.json"
    assert main(["--variant", "lp", *exactly, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert ("exact value     -1/18" in shown) == bool(exactly)
    assert ("check: 2/3  bet: 1/3" in shown) == bool(exactly)
    assert load_policy(out).nash_conv() < 1e-9
    assert main(["--variant", "lp", *exactly, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document.get("exact_value") == ("-1/18" if exactly else None)
    assert document["value"] == pytest.approx(-1 / 18, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--game", "leduk_poker"], "did you mean 'leduc_poker'?"),
        (["--game", "kuhn_poker(playerz=3)"], "Unknown parameter 'playerz'"),
        (["--game", "goofspiel"], "simultaneous"),
        (["--game", "chess", "--max-nodes", "500"], "too large for a tree"),
        (["--variant", "cfr++"], "did you mean 'cfr+'?"),
        (["--iterations", "many"], "invalid int value: 'many'"),
        (["--iterations", "0"], "--iterations: want at least 1, not 0"),
        (["--mode", "slow"], "invalid choice: 'slow'"),
        (["--until", "0"], "above 0"),
        (["--until", "nan"], "above 0"),
        (["--seed", "-1"], "--seed: want at least 0, not -1"),
        (["--variant", "es-mccfr", "--discounts", "1", "1", "1"], "a variant without sampling"),
        (["--discounts", "nan", "1", "1"], "a variant without sampling"),
        (["--discounts", "1e300", "1e300", "1e300"], "the averaging weights overflowed"),
        (["--discounts", "1", "0", "inf"], "the averaging weights overflowed"),
        (["--discounts", "100", "-100", "100", "--iterations", "9999"], "weights overflowed"),
        (["--out", "nowhere/policy.json"], "no directory nowhere"),
        (["--out", "policy.txt"], "policy.txt: a policy of kuhn is written as .json"),
        (["--out", "policy.npz"], "policy.npz: a policy of kuhn is written as .json"),
        (["--rational"], "--rational requires --variant lp"),
        (["--variant", "lp", "--until", "1"], "--until cannot be combined with --variant lp"),
        (["--variant", "lp", "--game", KUHN3], "has 3 players; the linear program is for two"),
        (["--variant", "lp", "--game", "tiny_hanabi"], "is not zero-sum"),
        (["--variant", "lp", "--game", "phantom_ttt"], "too large for a tree"),
        (["--save", "first"], "invalid choice: 'first'"),
        (["--plot", "."], "a picture is written as .png"),
        (["--plot", "curve"], "a picture is written as .png"),
        (["--max-nodes", "-1"], "--max-nodes: want at least 1, not -1"),
        (["--variant", "CFR"], "did you mean 'cfr'?"),
        (["--game", ALONE, "--variant", "es-mccfr"], "has one player; sampling needs two"),
        (["--game", ALONE, "--variant", "os-mccfr"], "has one player; sampling needs two"),
    ],
)
def test_bad_input(arguments, words, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused(main, arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_no_file(tmp_path, refused):
    out = tmp_path / "policy.json"
    out.write_text("what was there")
    arguments = ["--game", "chess", "--max-nodes", "100", "--out", str(out)]
    assert "too large for a tree" in refused(main, arguments)
    assert out.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [out]


def test_solving_in_python():
    seen = []
    policy = kb.solve("kuhn", until=1e-6, callback=lambda *point: seen.append(point))
    assert policy.nash_conv() == seen[-1][1] <= 1e-6 < seen[-2][1]
    stopped = kb.solve("kuhn", callback=lambda iterations, nash_conv: iterations < 5)
    assert stopped == kb.solve("kuhn", iterations=5)
    assert kb.solve("kuhn", "lp").nash_conv() < 1e-9
    averages = {kb.solve("kuhn", "es-mccfr", iterations=50, seed=seed) for seed in (1, 1, 2)}
    assert len(averages) == 2
    last = kb.solve("kuhn", "pcfr+", iterations=300, save="last")
    assert last.nash_conv() < kb.solve("kuhn", "pcfr+", iterations=300, save="average").nash_conv()


def test_ctrl_c_returns_what_there_is():
    def interrupt(iterations, nash_conv):
        del nash_conv
        if iterations == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 3 iterations"):
        policy = kb.solve(LEDUC, callback=interrupt)
    assert policy == kb.solve(LEDUC, iterations=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"until": 0}, "until=0: want a NashConv above 0"),
        ({"save": "best policy"}, "unknown save 'best policy'"),
        ({"iterations": -1}, "iterations must be 0 or more; got -1"),
        ({"variant": "lpp"}, "unknown variant 'lpp'"),
    ],
)
def test_wrong_arguments_of_solve(options, words):
    with pytest.raises(kb.BridgeError, match=words):
        kb.solve("kuhn", **options)
