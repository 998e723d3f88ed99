"""Policies by name and by file."""

from fractions import Fraction

import pytest

from algorithms.exact.kuhn import nash
from algorithms.policies.sources import load
from kuhn_bridge import Action, KuhnError, TabularPolicy


def test_names(tmp_path):
    assert load("uniform") == TabularPolicy.uniform()
    assert load("random:7") == TabularPolicy.random(7)
    assert load("nash:1/3") == nash(Fraction(1, 3))
    assert load("nash:0.2")["0"][Action.BET] == 0.2
    file = tmp_path / "policy.json"
    file.write_text(TabularPolicy.random(3).to_json())
    assert load(str(file)) == TabularPolicy.random(3)


def test_the_likeliest_action():
    greedy = load("nash:0.1", deterministic=True)
    assert set(greedy.probabilities.ravel()) == {0, 1}
    assert greedy["1pb"] == {Action.CHECK_OR_CALL: 0, Action.FOLD: 1}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("nash", "nash:<alpha>"),
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
    ],
)
def test_refusals_name_what_would_be_right(source, words):
    with pytest.raises(KuhnError, match=words):
        load(source)
