"""Policies by name and by file."""

from fractions import Fraction

import numpy as np
import pytest

from algorithms.games import load_game
from algorithms.games.kuhn_policies import OPPONENTS
from algorithms.kuhn_equilibria import nash
from algorithms.policies.load import MAX_ITERATIONS, best_response, load_policies
from algorithms.solvers import DEFAULT_VARIANT, NAMES, make_solver
from kuhn_bridge import Action, BridgeError, Policy, load_policy, solve

LEDUC = load_game("leduc_poker")


def test_policies_by_name():
    assert load_policy("uniform") == load_policy("random") == Policy.uniform("kuhn")
    assert load_policy("random:0") == Policy.random("kuhn", 0)
    assert load_policy("nash:1/3") == Policy("kuhn", nash(Fraction(1, 3)))
    assert load_policy("nash:0.2")["0"][Action.BET] == 0.2
    assert load_policy("always-bet")["0b"] == {Action.CHECK_OR_CALL: 1, Action.FOLD: 0}
    assert load_policy("uniform", LEDUC) == Policy.uniform(LEDUC)
    assert load_policy("random:5", LEDUC) == Policy.random(LEDUC, 5)


@pytest.mark.parametrize("variant", NAMES)
def test_a_variant_and_its_iterations_name_a_solution(variant):
    solver = make_solver(LEDUC.tree, variant)
    solver.run(7)
    average = Policy(LEDUC, solver.average_policy())
    last = Policy(LEDUC, solver.current_policy())
    better = last if last.nash_conv() < average.nash_conv() else average
    assert solve(LEDUC, variant, iterations=7) == better
    assert solve(LEDUC, variant, iterations=7, save="average") == average
    assert load_policy(f"{variant}:7", LEDUC) == solve("leduc_poker", variant, iterations=7)


def test_a_thousand_iterations_of_the_default_variant():
    assert solve("kuhn") == load_policy(f"{DEFAULT_VARIANT}:1000")


def test_a_solvers_policies_have_names():
    average, last, better = (
        load_policy(f"cfr:100{kind}", LEDUC) for kind in (":average", ":last", "")
    )
    solver = LEDUC.make_solver("cfr")
    solver.run(100)
    assert (average.table == solver.average_policy()).all()
    assert (last.table == solver.current_policy()).all()
    assert average.nash_conv() < last.nash_conv()
    assert better == average


def test_best_response_answers_the_first_other_policy():
    uniform, response, _ = load_policies(["uniform", "best-response", "random:1"], LEDUC)
    assert response == best_response(uniform)
    first = LEDUC.tree.owner[:, np.newaxis] == 0
    against = Policy(LEDUC, np.where(first, response.table, uniform.table))
    assert against.measure().values[0] == pytest.approx(uniform.measure().best_values[0])
    assert load_policies(["best-response", "uniform"], LEDUC)[0] == response


def test_the_game_is_that_of_the_first_file(tmp_path):
    policy = Policy.random(LEDUC, 2)
    path = str(tmp_path / "leduc.json")
    policy.save(path)
    assert load_policies(["uniform", path]) == [Policy.uniform(LEDUC), policy]
    with pytest.raises(BridgeError, match="a policy of leduc_poker, not of kuhn"):
        load_policies([path], "kuhn")


def test_deterministic_takes_the_most_probable_actions():
    (greedy,) = load_policies(["nash:0.1"], deterministic=True)
    assert greedy == load_policy("nash:0.1").greedy()
    assert greedy["1pb"] == {Action.CHECK_OR_CALL: 0, Action.FOLD: 1}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("zzz", "unknown policy 'zzz'"),
        ("heuristic:1", "unknown policy"),
        ("best-response", "needs another POLICY"),
        ("cfr+", r"cfr\+:<iterations>"),
        ("cfr+:0", r"cfr\+:<iterations>"),
        ("cfr+:100:lst", "unknown policy of a solver 'lst': did you mean 'last'?"),
        ("cfr+:100:", "unknown policy of a solver '': there are average, last"),
        (f"cfr:{MAX_ITERATIONS + 1}", "cfr:<iterations>"),
        ("nash", "nash:<alpha>"),
        ("nash:x", "nash:<alpha>"),
        ("nash:1/0", "nash:<alpha>"),
        ("nash:inf", "nash:<alpha>"),
        ("nash:0.5", r"a number in \[0, 1/3\]"),
        ("random:", "random:<seed>"),
        ("random:-1", "random:<seed>"),
        ("nash:1/3-legal", "nash:<alpha>"),
        ("heuristic-legal", "heuristic"),
        ("nowhere.json", "No such file"),
        ("nowhere.zip", "nowhere.zip"),
        ("nowhere.onnx", "nowhere.onnx"),
    ],
)
def test_refusals_name_what_would_be_right(source, words):
    with pytest.raises(BridgeError, match=words) as error:
        load_policy(source)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("source", ["nash:0", *(name for name in OPPONENTS if name != "random")])
def test_policies_of_kuhn_alone(source):
    assert load_policy(source).game.name == "kuhn"
    with pytest.raises(BridgeError, match=f"{source} is a policy of kuhn, not of leduc_poker"):
        load_policy(source, LEDUC)
