"""`parity.benchmark` measures rows and writes them into a table; `parity.speed` in large games."""

import json
import time
from functools import partial
from itertools import pairwise

import pytest

from algorithms.games import load_game
from parity import benchmark, speed
from parity.benchmark import HEADER, Row, cells_of, update

HEX = load_game("dark_hex(board_size=2,gameversion=adh)", max_nodes=5)
ROW = Row("uniform play", "PTTT", 1.57746362, 1.234, 0.875, "quick")
PAGE = (
    f"# Title\n\n| {' | '.join(HEADER)} |\n|---|---|---|---|---|---|---|\n| a | b | 1 |\n\nText.\n"
)


def test_uniform_play_is_measured():
    (row,) = benchmark.uniform("small", HEX)
    assert row.nash_conv == HEX.measure(HEX.uniform()).nash_conv
    assert row.gib > 0
    assert f"{sum(HEX.num_infosets)} information sets" in row.remarks


def test_a_solver_is_measured_along_the_way():
    rows = list(benchmark.solved("cfr+", "small", HEX, after=(1, 10, 50)))
    assert [row.what for row in rows] == [
        "CFR+, 1 iteration",
        "CFR+, 10 iterations",
        "CFR+, 50 iterations",
    ]
    assert all(one.nash_conv > two.nash_conv for one, two in pairwise(rows))
    assert all(one.cpu_seconds < two.cpu_seconds for one, two in pairwise(rows))


def test_a_solvers_policy_is_put_into_a_network():
    (row,) = benchmark.distilled("small", 50, HEX, steps=300)
    solved = next(iter(benchmark.solved("dcfr", "small", HEX, after=(50,)))).nash_conv
    assert row.what == "distil of DCFR, 50 iterations"
    assert row.remarks == f"2 x 128, seed 0; {solved:.6f} before"
    assert solved < row.nash_conv < solved + 0.1
    assert row.cpu_seconds > 0


def test_trained_models_are_measured_over_seeds(monkeypatch):
    monkeypatch.setattr(benchmark, "GAMES", {"small": "dark_hex(num_rows=2,num_cols=3)"})
    (row,) = benchmark.trained("small", 3_000, seeds=range(2))
    assert 0 < row.nash_conv < 2
    assert row.half_width > 0
    assert row.cpu_seconds > 0
    assert row.remarks.startswith("seeds 0 to 1")


def test_rows_replace_those_of_the_same_name(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    update(page, [ROW])
    assert page.read_text() == PAGE.replace(
        "1 |\n", "1 |\n| uniform play | PTTT | 1.577464 | 0.788732 | 1.23 | 0.9 | quick |\n"
    )
    update(page, [Row("a", "b", 0.25, 12.4, 1, "", 0.02)])
    lines = page.read_text().splitlines()
    assert lines[4] == "| a | b | 0.2500 ± 0.0200 | 0.1250 ± 0.0100 | 12 | 1.0 |  |"
    assert cells_of(lines[5])[:2] == ROW.cells[:2]
    assert lines[6:] == ["", "Text."]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(benchmark, "in_own_process", benchmark.run_benchmark)
    known = {"uniform small": partial(benchmark.uniform, "small", HEX)}
    monkeypatch.setattr(benchmark, "BENCHMARKS", known)


@pytest.mark.usefixtures("small")
def test_the_command(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert benchmark.main(["--only", "uniform small", "--update", str(page)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == " ".join(HEADER).split()
    assert shown[1].startswith("uniform play  small")
    assert cells_of(page.read_text().splitlines()[5])[:2] == ("uniform play", "small")
    assert benchmark.main(["--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["nash_conv"] == HEX.measure(HEX.uniform()).nash_conv
    assert benchmark.main(["--list"]) == 0
    assert capsys.readouterr().out == "uniform small\n"


@pytest.mark.usefixtures("small")
def test_what_cannot_be_done_is_one_line(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("no table\n")
    for arguments, words in [
        (["--only", "uniform smal"], "did you mean 'uniform small'?"),
        (["--update", str(page)], "no table with the columns what, game"),
        (["--update", str(tmp_path / "nowhere.md")], "nowhere.md"),
    ]:
        assert benchmark.main(arguments) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


# `parity.speed` on large games.


def test_published_figures_are_marked(monkeypatch, capsys):
    def waiting():
        return lambda n: time.sleep(1e-4 * n) or n

    contest = speed.Contest(
        name="wait",
        unit="units",
        ours=waiting,
        peers={"them": waiting},
        seconds=1e-3,
        published={"authors": 2.0},
    )
    monkeypatch.setattr(speed, "contests", lambda: [contest])
    assert speed.main(["--json", "--rounds", "2"]) == 0
    them, authors = json.loads(capsys.readouterr().out)
    assert (them["measured"], authors["measured"]) == (True, False)
    assert authors["peer_per_second"] == 0.5
    assert authors["ratio"] == pytest.approx(2 * authors["ours_per_second"])
    assert speed.main(["--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "authors (published)" in shown
    assert "not measured here" in shown


@pytest.mark.slow
def test_large_games_are_timed():
    timed = {contest.name: contest for contest in speed.contests()}
    for name in speed.LARGE_GAMES:
        assert timed[f"NashConv, {name}"].published == speed.PUBLISHED_SECONDS
        restricted = timed[f"NashConv, {name}, two stones shown"]
        for make in (restricted.ours, *restricted.peers.values()):
            assert make()(2) == 2
