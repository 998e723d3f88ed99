"""`export_efg` writes games that load again."""

import pytest

import kuhn_bridge as kb
from algorithms import export_efg
from algorithms.games import load_game


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (["--game", "liars_dice(numdice=1,dice_sides=3)"], "liars_dice.efg"),
        (["--game", "kuhn", "--out", "mine.efg"], "mine.efg"),
    ],
)
def test_a_game_is_written_and_loads(tmp_path, monkeypatch, capsys, options, written):
    monkeypatch.chdir(tmp_path)
    assert export_efg.main(options) == 0
    assert capsys.readouterr().out.startswith(f"{written}: ")
    game = load_game(options[1])
    uniform = kb.Policy.uniform(game).nash_conv()
    assert kb.Policy.uniform(written).nash_conv() == pytest.approx(uniform, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--game", "phantom_ttt"], "too large for a tree"),
        (["--game", "kuhn", "--out", "kuhn.txt"], "give a name that ends in .efg"),
        (["--game", "kuhn", "--out", "nowhere/kuhn.efg"], "there is no directory nowhere"),
        (["--game", "none.efg"], "none.efg: No such file or directory"),
        ([], "--game"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, refused, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(export_efg.main, options)
    assert not list(tmp_path.iterdir())
