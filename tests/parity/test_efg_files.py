"""Files and games are compared with Gambit one by one; differences are noticed."""

import numpy as np
import pytest

from algorithms.games import load_game
from algorithms.games.efg_game import EfgGame
from algorithms.linear_program import solve_zero_sum
from algorithms.nashconv import evaluate_policy
from parity import efg_files
from parity.gambit import GAMBIT
from parity.registry import CheckSettings, run
from tests.algorithms.games.test_efg_game import CARDS
from tests.algorithms.games.test_efg_reader import game_of

pygambit = pytest.importorskip("pygambit")
FORGETFUL = game_of(
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 2 "" { "a" "b" } 0',
    't "" 0',
    't "" 1 "" { 1 0 }',
    'p "" 1 2 "" { "a" "b" } 0',
    't "" 1',
    't "" 0',
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "cards.efg").write_text(CARDS, encoding="utf-8")
    (tmp_path / "forgetful.efg").write_text(FORGETFUL, encoding="utf-8")
    return tmp_path


def test_a_folder_is_compared(folder, capsys):
    assert efg_files.main([str(folder)]) == 0
    out = capsys.readouterr().out
    assert "forgetful.efg: line 6: at information set 2" in out
    assert "(Gambit: no perfect recall)" in out
    assert out.endswith("1 refused, 1 agrees\n")


def test_a_wrong_reader_is_noticed(folder, capsys, monkeypatch):
    right = EfgGame._build_tree

    def wrong(self):
        tree = right(self)
        returns = tree.returns.copy()
        returns[0] *= 2
        made = tree.__class__(**{**vars(tree), "returns": returns})
        vars(made)["terminal_payoff"] = tree.terminal_payoff * 2
        return made

    monkeypatch.setattr(EfgGame, "_build_tree", wrong)
    assert efg_files.main([str(folder)]) == 1
    assert "cards.efg: DIFFERS: " in capsys.readouterr().out


def test_games_are_saved_and_read_back(capsys, monkeypatch):
    names = ["kuhn_poker", "chess", "lewis_signaling"]
    monkeypatch.setattr(efg_files, "registered_names", lambda: names)
    assert efg_files.main([]) == 0
    out = capsys.readouterr().out
    assert out.count("Gambit: agrees") == 2
    monkeypatch.setattr(efg_files, "as_read_back", lambda tree, table: tree.uniform())
    assert efg_files.main([]) == 1


def test_a_policy_finds_its_rows_in_the_saved_tree(tmp_path):
    game = load_game("leduc_poker")
    game.save(tmp_path / "leduc.efg")
    saved = load_game(tmp_path / "leduc.efg").tree
    table = game.tree.random(7)
    rows = efg_files.as_read_back(game.tree, table)
    assert rows.shape == saved.legal.shape
    assert np.array_equal(rows > 0, saved.legal)
    same = evaluate_policy(saved, rows).nash_conv
    assert same == pytest.approx(evaluate_policy(game.tree, table).nash_conv, abs=1e-12)


# Two nodes and two information sets of a player with the same name, which Gambit 17 refuses. Its
# linear program gives the root probabilities of 0 and the value 0; player_0 loses 1.
SAME_LABELS = game_of(
    'p "same" 1 1 "" { "a" "b" } 0',
    'p "same" 2 1 "x" { "c" "d" } 0',
    't "" 1 "" { -1 1 }',
    't "" 2 "" { 1 -1 }',
    'p "" 2 2 "x" { "c" "d" } 0',
    't "" 2',
    't "" 1',
)


# Chance acts twice at event 1, which is no imperfect recall of a player.
COMMON_EVENT = game_of(
    'c "" 1 "" { "x" 1/3 "y" 2/3 } 0',
    *2
    * [
        'c "" 1 0',
        'p "" 1 1 "" { "a" "b" } 0',
        't "" 1 "" { 1 -1 }',
        't "" 0',
        'p "" 2 1 "" { "a" "b" } 0',
        't "" 0',
        't "" 2 "" { -1 1 }',
    ],
)


def test_an_event_that_occurs_twice_on_a_path_is_no_difference(tmp_path, capsys):
    path = tmp_path / "common.efg"
    path.write_text(COMMON_EVENT, encoding="utf-8")
    assert not pygambit.read_efg(path).is_perfect_recall
    assert efg_files.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 agrees\n"


def test_labels_that_gambit_refuses_are_left_out(tmp_path, capsys):
    path = tmp_path / "same.efg"
    path.write_text(SAME_LABELS, encoding="utf-8")
    with pytest.raises(ValueError, match="label must be unique"):
        pygambit.read_efg(path)
    assert efg_files.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 agrees\n"


def test_a_wrong_value_is_noticed_where_gambit_needs_a_second_linear_program(tmp_path):
    path = tmp_path / "same.efg"
    path.write_text(SAME_LABELS, encoding="utf-8")

    def solve(tree):
        return solve_zero_sum(tree)._replace(value=-0.9)

    settings = CheckSettings(game=load_game(path))
    result = run(GAMBIT.checks["gambit-value"], settings, solve=solve)
    assert result.status == "FAIL"
    assert result.cases[0].endswith("ours has the value -0.9, Gambit has the value -1")


def test_an_empty_folder_is_refused(tmp_path, refused):
    assert "no .efg files there" in refused(efg_files.main, [str(tmp_path)])


def test_a_machine_without_gambit_is_told(folder, refused, monkeypatch):
    monkeypatch.setattr(efg_files, "find_spec", lambda name: None)
    assert "pip install 'kuhn-bridge[gambit]'" in refused(efg_files.main, [str(folder)])
