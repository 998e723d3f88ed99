"""The checks of the training environments fail on planted errors."""

from dataclasses import replace

import pytest

from algorithms.exact.simulator import rules_of
from algorithms.games import kuhn
from algorithms.learning.environments import SelfPlayVecEnv
from tests.games import altered
from tests.planting import failures


def replaced(name, change):
    """Change one field of a named tuple."""
    return lambda fields: fields._replace(**{name: change(getattr(fields, name))})


def rules(name, change):
    """The simulator's arrays with one of them changed."""
    return {"make_rules": lambda *args: replaced(name, change)(rules_of(*args))}


def game(**changes):
    """Kuhn with other arrays in its tree, and its observations reversed."""
    right = kuhn()
    arrays = {name: change(getattr(right.tree, name)) for name, change in changes.items()}
    tree = replace(right.tree, **arrays)
    wrong = altered(right, tree=tree, _observations=lambda self: right.observations[::-1])
    return {"make_game": lambda: wrong}


def environment(name, change):
    """The vectorised environment with another result of a method; the plain one keeps its own."""
    right = getattr(SelfPlayVecEnv, name)
    methods = {name: lambda self: change(right(self))}
    return {"make_env": type("OtherEnv", (SelfPlayVecEnv,), methods)}


def step(part, change):
    """Another part of what `step_wait` returns: observations, rewards, whether ended, infos."""
    return environment(
        "step_wait", lambda parts: (*parts[:part], change(parts[part]), *parts[part + 1 :])
    )


def last_step(name, change):
    """Another part of what `last_step` returns."""
    return environment("last_step", replaced(name, change))


PLANTED = [
    ("tables", rules("player", lambda player: 1 - player), "ours has 1 to act"),
    ("tables", rules("returns", lambda returns: 2 * returns), "ours pays [-2.0, 2.0]"),
    ("tables", rules("child", abs), "ours allows [True, True, True]"),
    ("tables", game(), "ours shows [0.0, 0.0, 1.0"),
    ("tables", game(legal=lambda legal: legal | True), "ours allows [True, True, True]"),
    ("selfplay", environment("reset", lambda seen: 2 * seen), "ours shows [2.0"),
    ("selfplay", environment("action_masks", lambda masks: ~masks), "ours allows ["),
    ("selfplay", step(0, lambda seen: seen + (seen == 0)), "ours shows [1.0, 1.0"),
    ("selfplay", step(1, lambda rewards: 2 * rewards), "ours pays 2, the plain one"),
    ("selfplay", step(2, lambda ended: ~ended), "ours is over: True"),
    ("selfplay", last_step("seats", lambda seats: 1 - seats), "ours lets 1 act"),
    ("selfplay", last_step("returns", lambda returns: 2 * returns), "ours pays all [2.0, -2.0]"),
]


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    assert any(text in case for case in failures(row, subject))
