"""Simulation: hands played, next to the exact value that must fit them."""

import json
from statistics import NormalDist

import numpy as np
import pytest

from algorithms.compiled.nashconv import expected_values
from algorithms.compiled.simulator import play_out
from algorithms.games.kuhn import kuhn_tree
from algorithms.self_play import matches as module
from algorithms.self_play.matches import MAX_HANDS, MIN_HANDS, Sample, all_seats, simulate
from algorithms.simulate import main
from kuhn_bridge import Policy
from tests.games import LEDUC, tree

TREE = kuhn_tree()


def test_a_match(capsys):
    assert main(["nash:0", "uniform", "--hands", "20000"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("what nash:0 wins from uniform, chips per hand\n")
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["player_0", "player_1", "both"]
    assert "+0.05556" in out
    assert "+0.16667" in out


def test_json(capsys):
    assert main(["random:1", "nash:1/3", "--hands", "5000", "--seed", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["policies"] == ["random:1", "nash:1/3"]
    both = document["both seats"]
    assert both["hands"] == 10_000
    assert both["interval"][0] < both["mean"] < both["interval"][1]
    means = [document[f"player_{seat}"]["mean"] for seat in (0, 1)]
    assert both["mean"] == pytest.approx(sum(means) / 2)


def test_a_seed_is_a_match(capsys):
    outputs = []
    for seed in ([], ["--seed", "0"], ["--seed", "2"]):
        main(["uniform", "random:5", "--hands", "1000", *seed])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.parametrize("given", ["uniform --hands 0", "uniform --seed -1", "no.json", "unifrom"])
def test_bad_input(given, refused):
    refused(main, ["uniform", *given.split()])


def test_larger_games():
    leduc = tree(LEDUC)
    policies = [leduc.random(1), leduc.random(2)]
    samples = simulate(leduc, policies, hands=50_000, seed=1, progress=lambda *_: None)
    assert all(sample.errors_off < 5 for sample in samples)
    assert all_seats(samples).hands == 100_000


def test_a_wrong_exact_value_would_be_noticed(monkeypatch, capsys):
    def wrong(*args):
        return tuple(value + 0.1 for value in expected_values(*args))

    monkeypatch.setattr(module, "expected_values", wrong)
    assert main(["nash:0", "uniform", "--hands", "20000"]) == 1
    assert "outside" in capsys.readouterr().out


def test_how_far_off_a_sample_is():
    assert Sample(10, 1.0, 0.0, 1.0).errors_off == 0
    assert Sample(10, 1.0, 0.0, 2.0).errors_off == float("inf")
    assert Sample(10**9, 0.5001, 1e-5, 0.5).errors_off == pytest.approx(10)
    assert Sample(100, 0.5 + 1e-10, 0.0, 0.5).errors_off == 0  # rounding
    reach = 0.5 * NormalDist().inv_cdf(0.975)
    assert Sample(10, 1.0, 0.5).interval == pytest.approx((1 - reach, 1 + reach), rel=1e-6)


def test_means_and_errors_are_those_of_the_hands_played(monkeypatch):
    counts = []
    reported = []

    def noted(rules, hands, stream):
        counts.append(play_out(rules, hands, stream))
        return counts[-1]

    monkeypatch.setattr(module, "play_out", noted)
    monkeypatch.setattr(module, "CHUNK", 1000)
    policies = [Policy.random("kuhn", seed).table for seed in (1, 2)]
    options = {"hands": 2500, "seed": 7, "progress": lambda done, note: reported.append(done)}
    samples = simulate(TREE, policies, **options)
    assert [count.sum() for count in counts] == [1000, 1000, 500] * 2
    assert reported == [0, 1000, 2000, 2500, 3500, 4500]
    for seat, sample in enumerate(samples):
        won = np.repeat(TREE.returns[seat], sum(counts[3 * seat : 3 * seat + 3]))
        assert sample.mean == pytest.approx(won.mean())
        assert sample.standard_error == pytest.approx(won.std(ddof=1) / np.sqrt(2500))


def test_all_seats_count_the_same():
    seats = Sample(10, 1.0, 0.3, 2.0), Sample(10, 3.0, 0.4, 5.0)
    assert all_seats(seats) == Sample(20, 2.0, 0.25, 3.5)


@pytest.mark.parametrize("hands", [MIN_HANDS - 1, MAX_HANDS + 1])
def test_how_many_hands_may_be_played(hands, refused):
    error = refused(main, ["uniform", "uniform", "--hands", str(hands)])
    assert "want a number from 30 to 1000000000000" in error
