"""Rock-paper-scissors: regret matching where it is easiest to see."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms import rps
from algorithms.rps import PAYOFF, against, main, regret_matching, self_play


def test_the_example(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-4:] == ["rock", "paper", "scissors", "shortfall"]
    assert lines[1].startswith("self-play")


@pytest.mark.parametrize("seed", range(3))
def test_self_play_comes_to_a_third_each(seed):
    outcome = self_play(8_000, seed=seed)
    assert outcome.average == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    assert outcome.shortfall < 0.05


@pytest.mark.parametrize(
    ("opponent", "answer"), [((0.4, 0.3, 0.3), 1), ((0.2, 0.6, 0.2), 2), ((0, 0.1, 0.9), 0)]
)
def test_a_biased_opponent_meets_the_best_answer(opponent, answer):
    outcome = against(opponent, 8_000)
    assert outcome.average[answer] > 0.9
    assert outcome.shortfall < 0.05


def test_too_few_rounds_do_not_hold():
    assert main(["--rounds", "1", "--opponent", "1", "0", "0"]) == 1


def test_json(capsys):
    assert main(["--rounds", "5000", "--seed", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["self-play"]["average"]) == pytest.approx(1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rounds", "0"],
        ["--seed", "-1"],
        ["--opponent", "1", "1", "0"],
        ["--opponent", "nan", "0", "1"],
    ],
)
def test_bad_input(arguments, capsys):
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


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
    policies, moves = [], iter([0, 1, 0, 0])
    monkeypatch.setattr(rps, "_draw_move", lambda p, _: policies.append(p.tolist()) or next(moves))
    outcome = self_play(2)
    even = [1 / 3] * 3
    assert policies == [even, even, pytest.approx([0, 1 / 3, 2 / 3]), even]
    assert outcome.average == pytest.approx(np.mean([even, [0, 1 / 3, 2 / 3]], axis=0))


def test_options_are_used(capsys):
    def printed(*options):
        main(["--json", *options])
        found = json.loads(capsys.readouterr().out)
        played = [found[name]["average"] for name in ("self-play", "against the opponent")]
        return found["rounds"], found["seed"], played

    def expected(rounds, seed, opponent):
        played = self_play(rounds, seed=seed), against(opponent, rounds, seed=seed)
        return rounds, seed, [outcome.average.tolist() for outcome in played]

    assert printed() == expected(20_000, 0, (0.4, 0.3, 0.3))
    some = ["--rounds", "50", "--seed", "3", "--opponent", "0.2", "0.5", "0.3"]
    assert printed(*some) == expected(50, 3, (0.2, 0.5, 0.3))
    assert expected(50, 3, (0.2, 0.5, 0.3)) != expected(50, 4, (0.2, 0.5, 0.3))


@pytest.mark.parametrize(("shortfall", "code"), [(0.049, 0), (0.051, 1)])
def test_the_tolerance_decides(shortfall, code, monkeypatch, capsys):
    found = rps.Averages(np.full(3, 1 / 3), shortfall)
    monkeypatch.setattr(rps, "self_play", lambda *args, **options: found)
    assert main(["--rounds", "20000"]) == code
    capsys.readouterr()
