"""What the report's page is given of a river endgame."""

import numpy as np
import pytest

import kuhn_bridge as kb
from algorithms.games import load_game
from algorithms.reports import hands
from algorithms.reports.document import ReportedPolicy, game_document
from tests.algorithms.reports.test_report import array
from tests.large_games import large, poker

RIVER = "river(board=7dJc3s9hQd,pot=2000)"


@pytest.fixture(scope="module")
def found():
    game = load_game(RIVER)
    policy = kb.Policy.random(game, seed=1)
    reported = ReportedPolicy(name="random:1", policy=policy, measure=policy.measure())
    return game, policy, game_document(game, [reported])


def test_the_public_tree_is_in_words(found):
    _, _, document = found
    nodes = document["hands"]["nodes"]
    assert len(nodes) == 18
    assert nodes[0]["label"] == "to start"
    assert nodes[0]["actions"] == ["fold", "check", "pot bet", "all-in"]
    after_check = nodes[0]["children"][1]
    assert nodes[after_check]["label"] == "after check"
    fold = document["hands"]["rules"][-1 - nodes[0]["children"][0]]
    assert fold == {"fold": True, "payoff": [-1_000.0, -1_000.0, -1_000.0]}
    assert document["without_tree"] == ""
    assert document["tree"] is None


def test_hands_are_in_the_cells_of_a_grid(found):
    _, _, document = found
    shown = document["hands"]
    cells = array(shown["cell"])
    by_name = {name: np.flatnonzero(cells == i) for i, name in enumerate(shown["cells"])}
    assert sum(map(len, by_name.values())) == 1_081
    assert [shown["labels"][hand] for hand in by_name["AKs"]] == ["A♣K♣", "A♦K♦", "A♥K♥", "A♠K♠"]
    assert len(by_name["QQ"]) == 3  # a queen is on the board
    assert {shown["labels"][hand][1] for hand in by_name["AKo"]} == set("♣♦♥♠")
    # Nobody beats the straight from nine to king.
    beaten = array(shown["strength"])
    assert shown["labels"][int(beaten.argmax())] in {"K♣T♣", "K♦T♣", "K♥T♣", "K♠T♣"}
    assert beaten.mean() == pytest.approx(0.5, abs=1e-6)


def test_a_policy_is_shown_by_hand_and_by_cell(found):
    game, policy, document = found
    tables = document["policies"][0]["hands"]
    edges = len(game.public_tree.action)
    probability = array(tables["probability"]).reshape(edges, -1) / 255
    assert pytest.approx(policy.table[0][:1_081], abs=0.5 / 255 + 1e-6) == probability[:4].T
    losses = array(tables["losses"]).reshape(18, -1)
    assert losses.sum() == pytest.approx(policy.nash_conv(), rel=1e-5)
    # At the root all hands arrive, so a cell is the mean of its hands.
    cells = array(document["hands"]["cell"])
    grid = array(tables["grid"]).reshape(edges, 169) / 255
    aces = probability[:4, cells == 0].mean(axis=1)
    assert grid[:4, 0] == pytest.approx(aces, abs=1 / 255)
    assert (array(tables["arriving"]).reshape(18, 169)[0] == 255).all()


def test_other_games_have_no_hands(monkeypatch):
    small = large(poker())
    assert hands.hands_document(small)["cell"] is None  # hands of a small deck have no grid
    assert hands.hands_tables(small, kb.Policy.uniform(small))["grid"] is None
    assert hands.hands_document(load_game("kuhn")) is None
    monkeypatch.setattr(hands, "MAX_NUMBERS", 10)
    assert hands.hands_document(small) is None
