"""What the open_spiel wheel gives to outsiders, as it is."""

from pathlib import Path

import pyspiel
import pytest
from absl import flags
from open_spiel.integration_tests import api_test
from open_spiel.python.algorithms import generate_playthrough
from open_spiel.python.tests import games_sim_test

import kuhn_bridge.openspiel

NAME = kuhn_bridge.openspiel.SHORT_NAME
PLAYTHROUGH = Path(__file__).with_name(f"{NAME}.txt")


class TestFullTree(api_test.EnforceAPIOnFullTreeBase):
    """4 chance, 24 decision, 30 terminal nodes, 12 information states: `kuhn_poker`'s."""

    game = pyspiel.load_game(NAME)
    game_name = "kuhn_poker"


class TestPartialTree(api_test.EnforceAPIOnPartialTreeBase):
    game = pyspiel.load_game(NAME)
    game_name = NAME


del api_test  # its base classes are no tests of ours


def test_random_simulations_with_serialisation():
    pyspiel.random_sim_test(pyspiel.load_game(NAME), num_sims=100, serialize=True, verbose=False)


def test_simulated_games():
    for _ in range(20):
        games_sim_test.GamesSimTest().sim_game(pyspiel.load_game(NAME))


@pytest.fixture
def parsed_flags():
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


@pytest.mark.usefixtures("parsed_flags")
def test_the_committed_playthrough_replays():
    """To write it anew: `generate_playthrough.playthrough(NAME, [2, 0, 0, 1, 0])`."""
    actual = generate_playthrough.playthrough(NAME, [2, 0, 0, 1, 0])
    assert actual.strip() == PLAYTHROUGH.read_text(encoding="utf-8").strip()


@pytest.mark.usefixtures("parsed_flags")
def test_openspiels_own_replay_accepts_the_playthrough():
    expected, actual = generate_playthrough.replay(str(PLAYTHROUGH))
    assert actual.split() == expected.split()
