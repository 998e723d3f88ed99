"""The checks of the training environments fail on planted errors."""

from dataclasses import replace

import pytest

from algorithms.games import kuhn
from algorithms.learning.selfplay import SelfPlayVecEnv
from parity import selfplay
from tests.planting import failures, rows_of


def board(**changes):
    """The arrays of the fast environments with one of them changed."""
    right = selfplay.board_of

    def board_of(game):
        made = right(game)
        arrays = {name: change(getattr(made, name).copy()) for name, change in changes.items()}
        return made._replace(**arrays)

    return selfplay, "board_of", board_of


def game(**changes):
    """Kuhn with other arrays in its tree, and its observations reversed."""
    right = kuhn()
    arrays = {name: change(getattr(right.tree, name).copy()) for name, change in changes.items()}
    tree = replace(right.tree, **arrays)
    source = replace(
        right.source, tree=lambda: tree, observations=lambda _: right.observations[::-1]
    )
    return selfplay, "kuhn", lambda: replace(right, source=source)


def method(name, change):
    """Another method of the vectorised environment; the plain one keeps its own."""
    right = getattr(SelfPlayVecEnv, name)
    return SelfPlayVecEnv, name, lambda self: change(right(self))


def step(**changes):
    """Another part of what `step_wait` returns."""

    def change(found):
        parts = dict(zip(("observations", "rewards", "ended", "infos"), found, strict=True))
        return tuple(
            changes[name](part) if name in changes else part for name, part in parts.items()
        )

    return method("step_wait", change)


def ended_at_once(found):
    observations, rewards, ended, _ = found
    infos = [{"terminal_observation": observation} for observation in observations]
    return observations, rewards, ended | True, infos


def one_more(infos):
    return [{key: value + 1 for key, value in info.items()} for info in infos]


PLANTED = [
    ("tables", board(player=lambda player: 1 - player), "ours has 1 to act"),
    ("tables", board(returns=lambda returns: 2 * returns), "ours pays [-2.0, 2.0]"),
    ("tables", game(), "ours shows [0.0, 0.0, 1.0"),
    ("tables", game(legal=lambda legal: legal | True), "ours allows [True, True, True]"),
    ("selfplay", method("reset", lambda observations: 2 * observations), "shows [2.0"),
    ("selfplay", method("action_masks", lambda masks: ~masks), "allows ["),
    ("selfplay", step(observations=lambda seen: seen + (seen == 0)), "ours shows [1.0, 1.0"),
    ("selfplay", step(infos=one_more), "ours shows [1.0, 1.0"),
    ("selfplay", step(rewards=lambda rewards: 2 * rewards), "ours pays 2, the plain one"),
    ("selfplay", method("step_wait", ended_at_once), "ours is over: True"),
]


@pytest.mark.parametrize(("row", "patch", "text"), PLANTED)
def test_a_planted_error_is_described(row, patch, text, monkeypatch):
    monkeypatch.setattr(*patch)
    assert any(text in case for case in failures(row, {}))


def test_every_check_has_a_planted_error():
    assert {row for row, _, _ in PLANTED} == rows_of(selfplay)
