"""Policies by name and by file."""

from fractions import Fraction

import numpy as np
import pytest

from algorithms.exact.kuhn import nash
from algorithms.exact.solving import NAMES, make_solver
from algorithms.exact.values import expected_values, joint_policy
from algorithms.games import load_game
from algorithms.policies import Policy, onnx, sb3
from algorithms.policies.kuhn import STYLES
from algorithms.policies.sources import MOST_ITERATIONS, best_response, game_of, load, load_all
from kuhn_bridge import Action, BridgeError

LEDUC = load_game("leduc_poker")


def test_names(tmp_path):
    assert load("uniform") == Policy.uniform("kuhn")
    assert load("random:7") == Policy.random("kuhn", 7)
    assert load("nash:1/3") == nash(Fraction(1, 3))
    assert load("nash:0.2")["0"][Action.BET] == 0.2
    file = tmp_path / "policy.json"
    file.write_text(Policy.random("kuhn", 3).to_json())
    assert load(str(file)) == Policy.random("kuhn", 3)


@pytest.mark.parametrize("variant", NAMES)
def test_variants_are_solved_on_the_spot(variant):
    solver = make_solver(LEDUC.tree, variant)
    solver.run(7)
    assert np.array_equal(load(f"{variant}:7", LEDUC).table, solver.average_policy())


def test_names_of_another_game():
    assert load("uniform", LEDUC) == load("random", LEDUC) == Policy.uniform(LEDUC)
    assert load("random:5", LEDUC) == Policy.random(LEDUC, 5)
    against = Policy.random(LEDUC, 1)
    response = load("best-response", LEDUC, against=against)
    assert expected_values(LEDUC.tree, joint_policy(LEDUC.tree, [response, against]))[0] == (
        pytest.approx(against.measure().best_values[0])
    )


def test_the_game_is_the_first_files(tmp_path):
    path = tmp_path / "leduc.json"
    path.write_text(Policy.random(LEDUC, 2).to_json())
    found = load_all(["best-response", "uniform", str(path)])
    assert found[2] == Policy.random(LEDUC, 2)
    assert found[0] == best_response(found[1])  # the first of the others, as they were given
    with pytest.raises(BridgeError, match="a policy of leduc_poker, not of kuhn"):
        load_all([str(path)], "kuhn")


def test_the_likeliest_action():
    greedy = load("nash:0.1", deterministic=True)
    assert set(greedy.table.ravel()) == {0, 1}
    assert greedy["1pb"] == {Action.CHECK_OR_CALL: 0, Action.FOLD: 1}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("nash", "nash:<alpha>"),
        ("cfr+:0", r"cfr\+:<iterations>"),
        ("cfr+", r"cfr\+:<iterations>"),
        ("cfr:99999999999", "cfr:<iterations>"),
        ("best-response", "no policy that it could respond to"),
        ("nash:x", "nash:<alpha>"),
        ("nash:1/0", "nash:<alpha>"),
        ("nash:0.5", "outside"),
        ("nash:inf", "nash:<alpha>"),
        ("random:", "random:<seed>"),
        ("random:-1", "random:<seed>"),
        ("nowhere.json", "No such file"),
        ("nowhere.zip", "nowhere.zip"),
        ("nowhere.onnx", "nowhere.onnx"),
        ("zzz", "unknown policy 'zzz'"),
        ("heuristic:1", "unknown policy"),
        (f"cfr:{MOST_ITERATIONS + 1}", "cfr:<iterations>"),
        ("nash:0.1e5000000", "nash:<alpha>"),
        ("nash:1e9999", "nash:<alpha>"),
        (f"nash:{'1' * 10_000}/3", "nash:<alpha>"),
        (f"random:{'1' * 10_000}", "random:<seed>"),
    ],
)
def test_refusals_name_what_would_be_right(source, words):
    with pytest.raises(BridgeError, match=words) as error:
        load(source)
    assert len(str(error.value)) < 500


def test_the_least_that_is_a_number_here():
    assert load("random:0") == Policy.random("kuhn", 0)
    solver = make_solver(LEDUC.tree, "cfr+")
    solver.run(1)
    assert np.array_equal(load("cfr+:1", LEDUC).table, solver.average_policy())


@pytest.mark.parametrize("source", ["nash:0", *(name for name in STYLES if name != "random")])
def test_what_is_a_policy_of_kuhn_alone(source):
    assert load(source).game.name == "kuhn"
    with pytest.raises(BridgeError, match=f"{source} is a policy of kuhn, not of leduc_poker"):
        load(source, LEDUC)


def test_each_kind_of_file_has_its_reader_and_none_is_trusted_unasked(monkeypatch):
    read = []
    for reader in (onnx, sb3):

        def note(path, *, game=None, trust=None, kind=reader):
            read.append((kind, path, trust))
            return Policy.uniform(LEDUC)

        monkeypatch.setattr(reader, "load_policy", note)
    load("a.onnx")
    load("a.zip")
    load("a.zip", trust=True)
    load_all(["b.zip"], "leduc_poker")
    game_of(["c.zip"])
    assert read == [
        (onnx, "a.onnx", None),
        (sb3, "a.zip", False),
        (sb3, "a.zip", True),
        (sb3, "b.zip", False),
        (sb3, "c.zip", False),
    ]
