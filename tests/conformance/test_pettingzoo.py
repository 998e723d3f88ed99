"""PettingZoo's own test suites, as they are."""

import importlib

import pytest
from pettingzoo.test import api_test, render_test, seed_test
from pettingzoo.test.seed_test import check_environment_deterministic

from kuhn_bridge import kuhn_v0

# The suites know by name which of PettingZoo's own games have dict observations, and warn about
# everybody else's; an all-zero mask is what the contract asks of a finished agent.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning"),
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably:UserWarning"),
    pytest.mark.filterwarnings("ignore:Action mask numpy array is all zeros:UserWarning"),
]


@pytest.mark.parametrize("factory", [kuhn_v0.env, kuhn_v0.raw_env])
def test_api(factory):
    for _ in range(50):  # one call sees a hand or two
        api_test(factory(), num_cycles=100)


def test_seed():
    seed_test(kuhn_v0.env)


@pytest.mark.parametrize("seed", range(50))
def test_seed_over_many_hands(seed, monkeypatch):
    """The suite plays one hand at seed 42; here it plays 20 on end at each of many seeds."""
    one = kuhn_v0.env()
    other = kuhn_v0.env()
    one.reset(seed=seed)
    other.reset(seed=seed)
    reset = kuhn_v0.KuhnEnv.reset
    monkeypatch.setattr(kuhn_v0.KuhnEnv, "reset", lambda self, seed=None, options=None: reset(self))
    for _ in range(20):
        check_environment_deterministic(one, other, num_cycles=10)


def test_render(capsys):
    render_test(kuhn_v0.env)


def test_state_space():
    # The rest of that suite plays without looking at masks, so it is not for games that have them.
    importlib.import_module("pettingzoo.test.state_test").test_state_space(kuhn_v0.env())
