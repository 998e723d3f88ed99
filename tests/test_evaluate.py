"""The command that plays a policy against opponents."""

import json
from pathlib import Path
from typing import Any

import pytest

from algorithms.evaluate import KUHN_OPPONENTS, OPPONENTS, main
from algorithms.exact.simulation import Sample, all_seats
from algorithms.exact.values import evaluate_policy, joint_policy
from algorithms.games.kuhn import kuhn_tree
from algorithms.learning import matches
from algorithms.policies import load_policy
from algorithms.policies.sources import BEST_RESPONSE
from kuhn_bridge import Policy


def test_a_policy_meets_every_opponent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nash:0", "--hands", "2000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(KUHN_OPPONENTS)


def test_exact_values_are_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nash:1/3", "--against", "nash:0", "--hands", "50000", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["against"]["nash:0"]
    assert result["player_0"]["exact"] == pytest.approx(-1 / 18, abs=1e-12)
    assert result["player_1"]["exact"] == pytest.approx(1 / 18, abs=1e-12)
    assert result["both"]["exact"] == pytest.approx(0, abs=1e-12)
    assert result["player_0"]["hands"] == 50_000


def test_the_best_response_wins_what_nash_conv_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uniform", "--against", BEST_RESPONSE, "--hands", "1000", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)["against"][BEST_RESPONSE]["both"]
    measured = evaluate_policy(kuhn_tree(), Policy.uniform("kuhn").table)
    assert 2 * both["exact"] == pytest.approx(-measured.nash_conv)


@pytest.mark.parametrize("name", KUHN_OPPONENTS)
def test_nobody_beats_equilibrium(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nash:1/3", "--against", name, "--hands", "1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["against"][name]["both"]["exact"] >= -1e-12


def test_styles_are_what_they_say() -> None:
    uniform = Policy.uniform("kuhn")
    assert load_policy("random") == load_policy("random-legal") == uniform
    assert load_policy("always-bet")["0b"] == {0: 1.0, 2: 0.0}
    assert load_policy("always-check")["2b"] == {0: 0.0, 2: 1.0}
    heuristic = load_policy("heuristic")
    assert (heuristic["2"], heuristic["0pb"]) == ({0: 0.0, 1: 1.0}, {0: 0.0, 2: 1.0})


def match(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    arguments = ["random:2", "--against", "uniform", "--hands", "500", "--json", *options]
    assert main(arguments) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["against"]["uniform"]
    return found


def test_a_seed_is_a_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert match(capsys) == match(capsys, "--seed", "0") != match(capsys, "--seed", "1")


def test_the_likeliest_actions_are_played(capsys: pytest.CaptureFixture[str]) -> None:
    tree, policy = kuhn_tree(), Policy.random("kuhn", 2)
    for options, mine in ([], policy), (["--deterministic"], policy.greedy()):
        joint = joint_policy(tree, [mine.table, tree.uniform()])
        wanted = evaluate_policy(tree, joint).values[0]
        assert match(capsys, *options)["player_0"]["exact"] == pytest.approx(wanted)


def test_one_seat_that_is_off_is_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = Sample(100, 1.0, 0.1, 1.0), Sample(100, 1.0, 0.01, 2.0)
    match = (*samples, all_seats(samples))
    monkeypatch.setattr(matches, "play_match", lambda *args, **options: match)
    assert main(["uniform", "--against", "uniform"]) == 1
    capsys.readouterr()


def test_a_game_of_three(capsys: pytest.CaptureFixture[str]) -> None:
    game = "kuhn_poker(players=3)"
    assert main(["random:1", "--game", game, "--hands", "2000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["game"] == game
    assert tuple(found["against"]) == OPPONENTS
    assert set(found["against"]["uniform"]) == {"player_0", "player_1", "player_2", "both"}
    response = found["against"][BEST_RESPONSE]
    assert response["both"]["exact"] < found["against"]["uniform"]["both"]["exact"]


def test_an_opponents_file_names_the_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "leduc.json"
    load_policy("cfr+:3", "leduc_poker").save(path)
    assert main(["uniform", "--against", str(path), "--hands", "500", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["game"] == "leduc_poker"


@pytest.mark.parametrize(
    "argv",
    [
        ["nothing.zip"],
        ["uniform", "--against", "heuristik"],
        ["uniform", "--hands", "1"],
        ["uniform", "--seed", "-1"],
        ["uniform", "--hands", str(10**22)],
        ["uniform", "--game", "leduk_poker"],
        ["heuristic", "--game", "leduc_poker"],
        ["best-response"],
    ],
)
def test_mistakes_are_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
