"""Rock-paper-scissors: regret matching where it is easiest to see."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms import rps
from algorithms.rps import PAYOFF, average_policy, main, regret_matching


@pytest.mark.parametrize("seed", range(3))
def test_self_play_comes_to_a_third_each(seed):
    average, shortfall = average_policy(8_000, seed=seed)
    assert average == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    assert shortfall < 0.05


@pytest.mark.parametrize(
    ("opponent", "answer"), [((0.4, 0.3, 0.3), 1), ((0.2, 0.6, 0.2), 2), ((0, 0.1, 0.9), 0)]
)
def test_a_biased_opponent_meets_the_best_answer(opponent, answer):
    average, shortfall = average_policy(8_000, opponent)
    assert average[answer] > 0.9
    assert shortfall < 0.05


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rounds", "0"],
        ["--seed", "-1"],
        ["--opponent", "1", "1", "0"],
        ["--opponent", "nan", "0", "1"],
    ],
)
def test_bad_input(arguments, refused):
    assert arguments[0] in refused(main, arguments)


@given(arrays(float, 3, elements=st.floats(-1e6, 1e6)))
def test_regrets_become_a_policy(regret):
    policy = regret_matching(regret)
    assert policy.sum() == pytest.approx(1)
    assert (policy >= 0).all()
    assert (policy[regret <= 0] == 0).all() or not (regret > 0).any()


def test_the_game_is_fair():
    assert (PAYOFF == -PAYOFF.T).all()


def test_each_player_regrets_what_it_would_have_won(monkeypatch):
    """Rock meets paper: the first wants paper or, twice as much, scissors; the second nothing."""
    policies = []
    moves = iter([0, 1, 0, 0])
    monkeypatch.setattr(rps, "_draw_move", lambda p, _: policies.append(p.tolist()) or next(moves))
    average, _ = average_policy(2)
    even = [1 / 3] * 3
    assert policies == [even, even, pytest.approx([0, 1 / 3, 2 / 3]), even]
    assert average == pytest.approx(np.mean([even, [0, 1 / 3, 2 / 3]], axis=0))


def test_options_are_used(capsys):
    def printed(*options):
        main(["--json", *options])
        document = json.loads(capsys.readouterr().out)
        return document, [
            document[name]["average"] for name in ("self-play", "against the opponent")
        ]

    def expected(rounds, seed, fixed):
        played = [average_policy(rounds, opponent, seed=seed) for opponent in (None, fixed)]
        return [average.tolist() for average, _ in played]

    assert printed()[1] == expected(20_000, 0, (0.4, 0.3, 0.3))
    some = ["--rounds", "50", "--seed", "3", "--opponent", "0.2", "0.5", "0.3"]
    found, averages = printed(*some)
    assert (found["rounds"], found["seed"]) == (50, 3)
    assert averages == expected(50, 3, (0.2, 0.5, 0.3)) != expected(50, 4, (0.2, 0.5, 0.3))


@pytest.mark.parametrize(("shortfall", "code"), [(0.049, 0), (0.051, 1)])
def test_the_tolerance_decides(shortfall, code, monkeypatch, capsys):
    found = np.full(3, 1 / 3), shortfall
    monkeypatch.setattr(rps, "average_policy", lambda *args, **options: found)
    assert main([]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-4:] == ["rock", "paper", "scissors", "shortfall"]
    assert lines[1].split() == ["self-play", *["0.3333"] * 3, f"{shortfall:.4f}"]
