"""Games in `.efg` files: loaded, solved, trained on, measured, reported and saved."""

import json
import os
import pickle

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms import nashconv, report, solve, train_ppo
from algorithms.games import load_game, same_game
from algorithms.games.efg_game import MAX_ONE_HOT
from kuhn_bridge.errors import BridgeError, GameError, PolicyError
from parity import check

# Myerson's card game. Alice does not see the card; the payoffs are those of an ante and a raise.
CARDS = """EFG 2 R "A card game" { "Fred" "Alice" }
c "" 1 "deal" { "Red" 1/2 "Black" 1/2 } 0
p "" 1 1 "red" { "Raise" "Fold" } 0
p "" 2 1 "raised" { "Meet" "" } 0
t "" 1 "" { 2 -2 }
t "" 2 "" { 1 -1 }
t "" 2
p "" 1 2 "black" { "Raise" "Fold" } 0
p "" 2 1 0
t "" 3 "" { -2 2 }
t "" 2
t "" 4 "" { -1 1 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the file `cards.efg`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cards.efg").write_text(CARDS, encoding="utf-8")
    return tmp_path


def test_the_name_is_the_path(folder):
    game = load_game("cards.efg")
    assert game.name == "cards.efg"
    assert (game.title, game.players) == ("A card game", ("Fred", "Alice"))
    assert game.agents == ("player_0", "player_1")
    assert load_game(folder / "cards.efg").name == str(folder / "cards.efg")
    assert pickle.loads(pickle.dumps(game)).tree.keys == game.tree.keys


def test_labels_are_those_of_the_file(folder):
    game = load_game("cards.efg")
    assert [game.infoset_label(infoset) for infoset in range(3)] == [
        "player_0 (Fred) at 'red'",
        "player_1 (Alice) at 'raised'",
        "player_0 (Fred) at 'black'",
    ]
    assert [game.action_label(1, action) for action in range(2)] == ["Meet", "action 1"]
    assert game.chance_labels(0) == ["Red", "Black"]


def test_it_is_solved_measured_and_saved(folder, capsys):
    solved = kb.solve("cards.efg", "lp")
    assert solved.measure().values[0] == pytest.approx(1 / 3)
    solved.save("policy.json")
    assert kb.load_policy("policy.json") == solved
    assert nashconv.main(["policy.json", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["game"] == "cards.efg"
    assert result["nash_conv"] == pytest.approx(0, abs=1e-12)
    assert result["players"][0]["red"]["0"] == 1  # with a red card Fred raises


def test_a_changed_file_is_read_again(folder):
    path = folder / "cards.efg"
    before = load_game("cards.efg")
    path.write_text(CARDS.replace("{ 2 -2 }", "{ 8 -8 }"), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    after = load_game("cards.efg")
    assert before.tree.returns.max() == 2
    assert after.tree.returns.max() == 8


def test_files_with_the_same_content_are_one_game(folder):
    (folder / "copy.efg").write_text(CARDS, encoding="utf-8")
    (folder / "other.efg").write_text(CARDS.replace("-2", "-3"), encoding="utf-8")
    assert same_game("cards.efg", "copy.efg")
    assert same_game("cards.efg", "elsewhere/cards.efg")  # a file that is not here
    assert not same_game("cards.efg", "other.efg")
    assert not same_game("cards.efg", "leduc_poker")
    kb.Policy.uniform("other.efg").save("other.json")
    with pytest.raises(PolicyError, match=r"a policy of other.efg, not of cards.efg"):
        kb.load_policy("other.json", "cards.efg")


def test_a_policy_whose_file_has_moved_asks_for_it(folder):
    kb.Policy.random("cards.efg", seed=3).save("policy.json")
    (folder / "elsewhere").mkdir()
    (folder / "cards.efg").rename(folder / "elsewhere" / "cards.efg")
    wrong = "policy.json: its game is the file cards.efg, which is not there; name the game"
    with pytest.raises(PolicyError, match=wrong):
        kb.load_policy("policy.json")
    policy = kb.load_policy("policy.json", "elsewhere/cards.efg")
    assert np.array_equal(policy.table, kb.Policy.random(policy.game, seed=3).table)


def test_a_network_sees_a_one_hot_of_the_information_set(folder):
    game = load_game("cards.efg")
    assert np.array_equal(game.observations, np.eye(3))
    assert not game.appends_seat
    command = ["--game", "cards.efg", "--net", "mlp", "--steps", "60000", "--out", "model.zip"]
    assert train_ppo.main([*command, "--n-envs", "1024", "--quiet"]) == 0
    trained = kb.load_policy("model.zip")
    assert trained.game.name == "cards.efg"
    uniform = kb.Policy.uniform("cards.efg").nash_conv()
    assert trained.nash_conv() < uniform / 2


def test_pettingzoo_needs_a_game_of_openspiel(folder):
    from kuhn_bridge.sb3 import SelfPlayEnv

    with pytest.raises(BridgeError, match="SelfPlayVecEnv plays it on its tree"):
        SelfPlayEnv("cards.efg")


def test_a_one_hot_of_many_information_sets_is_refused(folder):
    rows = [f'p "" 1 {number} "" {{ "go" "stop" }} 0\nt "" 0' for number in range(MAX_ONE_HOT + 1)]
    text = "\n".join(['EFG 2 R "" { "A" }', *rows, 't "" 0'])
    (folder / "large.efg").write_text(text, encoding="utf-8")
    game = load_game("large.efg")
    assert not game.plays_networks
    with pytest.raises(GameError, match="limited to 5,000; tables do not need it"):
        _ = game.observations
    assert kb.Policy.uniform(game).nash_conv() == 0


def test_reports_have_the_labels(folder):
    assert report.main(["uniform", "--game", "cards.efg", "--out", "cards.html"]) == 0
    text = (folder / "cards.html").read_text(encoding="utf-8")
    assert all(label in text for label in ("Meet", "Black", "raised"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cards.efg: No such file or directory"),
        ("EFG 3", "cards.efg, line 1: only version 2 of the format is supported"),
    ],
)
def test_a_mistake_is_one_line(folder, capsys, text, message):
    path = folder / "cards.efg"
    path.unlink()
    if text:
        path.write_text(text, encoding="utf-8")
    assert solve.main(["--game", "cards.efg"]) == 2
    assert capsys.readouterr().err.endswith(f"{message}\n")
    with pytest.raises(GameError, match=message):
        load_game("cards.efg")


@pytest.mark.parametrize("name", ["kuhn", "kuhn_poker(players=3)", "leduc_poker"])
def test_save_writes_what_load_game_reads(folder, name):
    game = load_game(name)
    game.save("saved.efg")
    saved = load_game("saved.efg")
    assert saved.title == name
    assert saved.tree.num_nodes == game.tree.num_nodes
    assert sorted(saved.tree.keys) == sorted(game.tree.keys)
    assert kb.Policy.uniform(saved).nash_conv() == pytest.approx(
        kb.Policy.uniform(game).nash_conv(), abs=1e-12
    )


def test_save_keeps_title_and_players(folder):
    load_game("cards.efg").save("again.efg")
    again = load_game("again.efg")
    assert (again.title, again.players) == ("A card game", ("Fred", "Alice"))


def test_save_keeps_the_file_that_was_read(folder):
    (folder / "link.efg").symlink_to("cards.efg")
    for name in ("cards.efg", "link.efg"):
        with pytest.raises(GameError, match="the game was read from this file"):
            load_game("cards.efg").save(name)
    assert (folder / "cards.efg").read_text(encoding="utf-8") == CARDS


def test_save_refuses_other_suffixes_and_large_games(folder):
    with pytest.raises(GameError, match=r"game.txt: a game is written as .efg"):
        load_game("kuhn").save("game.txt")
    with pytest.raises(GameError, match="too large for a tree"):
        load_game("phantom_ttt").save("game.efg")


def test_check_compares_a_file_with_gambit(folder, capsys):
    pytest.importorskip("pygambit")
    assert check.main(["--game", "cards.efg"]) == 0
    assert "everything agrees" in capsys.readouterr().out
    # Gambit wants probabilities that sum to exactly 1, this project allows rounded ones.
    rounded = CARDS.replace('"Red" 1/2', '"Red" 0.5000000000001')
    (folder / "cards.efg").write_text(rounded, encoding="utf-8")
    assert check.main(["--game", "cards.efg"]) == 0
    assert "Probabilities must sum to exactly one" in capsys.readouterr().out
