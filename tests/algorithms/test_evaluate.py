"""The command that plays a policy against opponents."""

import json

import pytest

from algorithms.compiled.nashconv import evaluate_policy
from algorithms.evaluate import main
from algorithms.games import TreeGame, kuhn
from algorithms.games.kuhn import kuhn_tree
from algorithms.nashconv import joint_policy
from algorithms.policies import load_policy
from algorithms.policies.load import BEST_RESPONSE
from kuhn_bridge import Policy


def play(capsys, arguments):
    """What the command prints as JSON."""
    assert main([*arguments.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_policy_meets_every_opponent(capsys):
    assert main(["nash:0", "--hands", "2000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(kuhn().usual_opponents)


def test_exact_values_are_the_known_ones(capsys):
    result = play(capsys, "nash:1/3 --against nash:0 --hands 50000")["against"]["nash:0"]
    assert result["player_0"]["exact"] == pytest.approx(-1 / 18, abs=1e-12)
    assert result["player_1"]["exact"] == pytest.approx(1 / 18, abs=1e-12)
    assert result["both"]["exact"] == pytest.approx(0, abs=1e-12)
    assert result["player_0"]["hands"] == 50_000


def test_the_best_response_wins_what_nash_conv_says(capsys):
    results = play(capsys, f"uniform --against {BEST_RESPONSE} --hands 1000")["against"]
    nash_conv = Policy.uniform("kuhn").nash_conv()
    assert 2 * results[BEST_RESPONSE]["both"]["exact"] == pytest.approx(-nash_conv)


def test_nobody_beats_equilibrium(capsys):
    results = play(capsys, "nash:1/3 --hands 1000")["against"]
    assert tuple(results) == kuhn().usual_opponents
    assert min(match["both"]["exact"] for match in results.values()) >= -1e-12


def test_styles_are_what_they_say():
    assert load_policy("random") == load_policy("random-legal") == Policy.uniform("kuhn")
    assert load_policy("always-bet")["0b"] == {0: 1.0, 2: 0.0}
    assert load_policy("always-check")["2b"] == {0: 0.0, 2: 1.0}
    heuristic = load_policy("heuristic")
    assert (heuristic["2"], heuristic["0pb"]) == ({0: 0.0, 1: 1.0}, {0: 0.0, 2: 1.0})


def match(capsys, options=""):
    results = play(capsys, f"random:2 --against uniform --hands 500 {options}")
    return results["against"]["uniform"]


def test_a_seed_is_a_match(capsys):
    assert match(capsys) == match(capsys, "--seed 0") != match(capsys, "--seed 1")


def test_the_likeliest_actions_are_played(capsys):
    tree = kuhn_tree()
    policy = Policy.random("kuhn", 2)
    for options, mine in ("", policy), ("--deterministic", policy.greedy()):
        joint = joint_policy(tree, [mine.table, tree.uniform()])
        wanted = evaluate_policy(tree, joint).values[0]
        assert match(capsys, options)["player_0"]["exact"] == pytest.approx(wanted)


def test_a_game_of_three(capsys):
    game = "kuhn_poker(players=3)"
    results = play(capsys, f"random:1 --game {game} --hands 2000")
    assert results["game"] == game
    assert tuple(results["against"]) == TreeGame.usual_opponents
    assert set(results["against"]["uniform"]) == {"player_0", "player_1", "player_2", "all"}
    response = results["against"][BEST_RESPONSE]
    assert response["all"]["exact"] < results["against"]["uniform"]["all"]["exact"]


def test_an_opponents_file_names_the_game(tmp_path, capsys):
    path = tmp_path / "leduc.json"
    load_policy("cfr+:3", "leduc_poker").save(path)
    results = play(capsys, f"uniform --against {path} --hands 500")
    assert results["game"] == "leduc_poker"


@pytest.mark.parametrize(
    "arguments",
    [
        "nothing.zip",
        "uniform --against heuristik",
        "uniform --hands 1",
        "uniform --seed -1",
        f"uniform --hands {10**22}",
        "uniform --game leduk_poker",
        "heuristic --game leduc_poker",
        "best-response",
    ],
)
def test_mistakes_are_one_line(arguments, refused):
    refused(main, arguments.split())
