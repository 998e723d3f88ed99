"""The compiled twin of `algorithms.nashconv` computes the same as the plain functions."""

from dataclasses import replace

import numpy as np
import pytest

from algorithms import nashconv as plain
from algorithms.compiled import nashconv as compiled
from algorithms.games import load_game
from kuhn_bridge.errors import GameError, PolicyError
from tests.games import GAMES

FUNCTIONS = (
    "nash_conv",
    "expected_values",
    "returns_std",
    "reach_probabilities",
    "evaluation",
    "action_values",
)


def numbers(result):
    """All numbers of a result, in one array."""
    if isinstance(result, plain.ActionValues):
        result = [getattr(result, name) for name in plain.ActionValues.__slots__]
    parts = result if isinstance(result, (tuple, list)) else [result]
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("name", GAMES)
def test_each_function_gives_the_numbers_of_its_plain_twin(name):
    tree = load_game(name).tree
    policy = tree.random(11)
    chips = max(1.0, np.abs(tree.returns).max())
    for function in FUNCTIONS:
        slow = numbers(getattr(plain, function)(tree, policy))
        fast = numbers(getattr(compiled, function)(tree, policy))
        assert fast == pytest.approx(slow, abs=1e-12 * chips, nan_ok=True), function
    assert compiled.nash_convs(tree, [policy] * 9) == pytest.approx(
        plain.nash_convs(tree, [policy] * 9), abs=1e-12 * chips
    )


@pytest.mark.parametrize("name", ["kuhn", "kuhn_poker(players=3)", "tiny_hanabi"])
def test_measures_agree_in_responses_and_losses(name):
    tree = load_game(name).tree
    policy = tree.random(3)
    slow = plain.evaluate_policy(tree, policy)
    fast = compiled.evaluate_policy(tree, policy)
    assert fast.best_responses.tolist() == slow.best_responses.tolist()
    assert [loss.infoset for loss in fast.losses] == [loss.infoset for loss in slow.losses]
    for mine, right in zip(fast.losses, slow.losses, strict=True):
        assert mine == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("table", [np.ones((12, 2)), np.full((12, 3), 0.5)])
def test_both_refuse_what_is_not_a_policy_in_the_same_words(table):
    tree = load_game("kuhn").tree
    words = []
    for module in (plain, compiled):
        with pytest.raises(PolicyError) as error:
            module.evaluate_policy(tree, table)
        words.append(str(error.value))
    assert words[0] == words[1]


def test_returns_that_are_not_finite_are_named():
    tree = load_game("kuhn").tree
    broken = replace(tree, terminal_payoff=np.full_like(tree.terminal_payoff, np.nan))
    with pytest.raises(GameError, match="returns are not finite"):
        compiled.nash_conv(broken, tree.uniform())
    with pytest.raises(GameError, match="returns are not finite"):
        compiled.evaluate_policy(broken, tree.uniform())
