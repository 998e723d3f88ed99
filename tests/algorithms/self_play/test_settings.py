"""Settings: what follows from what is given, and what is refused."""

from dataclasses import asdict, fields

import pytest

from algorithms.self_play.settings import Settings, configure, describe
from kuhn_bridge import BridgeError

LEDUC = "leduc_poker"
LARGE = "phantom_ttt"


@pytest.mark.parametrize(
    ("given", "kind", "env", "net"),
    [
        ({}, "table", "tree", "table"),
        ({"net": "mlp"}, "network", "tree", "mlp"),
        ({"env": "aec"}, "table", "aec", "table"),
        ({"game": LEDUC, "env": "states"}, "network", "states", "mlp"),
        ({"game": LEDUC, "env": "states", "learner": "ppo"}, "states", "states", "mlp"),
        ({"game": LEDUC, "env": "states", "kl": 0.1}, "states", "states", "mlp"),
        ({"game": LARGE}, "states", "states", "mlp"),
    ],
)
def test_environment_and_network_follow_from_the_game(given, kind, env, net):
    settings = configure(given)
    assert (settings.kind, settings.env, settings.net) == (kind, env, net)
    assert configure(asdict(settings)) == settings  # as a checkpoint has them


def test_settings_that_are_given_win():
    given = {"game": LEDUC, "net": "mlp", "exploration": 0.05, "n_steps": 3, "width": 20}
    settings = configure(given)
    assert {name: getattr(settings, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "n_steps"),
    [
        ({}, 4),
        ({"game": LEDUC}, 4),
        ({"game": LEDUC, "n_envs": 64}, 64),
        ({"game": LEDUC, "net": "mlp"}, 4),
        ({"game": LEDUC, "n_envs": 1}, 128),
        ({"game": LEDUC, "env": "states"}, 4),
        ({"game": LEDUC, "env": "states", "learner": "ppo"}, 32),
        ({"game": LEDUC, "n_envs": 8}, 128),
        ({"game": "dark_hex(num_rows=2,num_cols=3,gameversion=adh)", "n_envs": 16}, 128),
    ],
)
def test_rollouts_have_enough_decisions(given, n_steps):
    assert configure(given).n_steps == n_steps


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"steps": 0}, "steps=0: want a whole number from 1 to"),
        ({"game": LARGE, "learning_rate": 1e300}, "from 0 to 1000000"),
        ({"points": -1}, "points=-1"),
        ({"exploration": float("nan")}, "exploration=nan"),
        ({"steps": 10**400}, "want a whole number from 1 to"),
        ({"exploration": 2.0}, "from 0 to 1"),
        ({"seed": -1}, "seed=-1"),
        ({"env": "treee"}, "did you mean 'tree'"),
        ({"net": "cnn"}, "unknown net"),
        ({"n_step": 1}, "did you mean 'n_steps'"),
        ({"epochs": 3}, "epochs=3: it has no effect on a table"),
        ({"net": "mlp", "batch_size": 64}, "batch_size=64: it has no effect on a network that is"),
        ({"net": "mlp", "ent_coef": 0.2}, "ent_coef=0.2: it has no effect on a network that is"),
        ({"game": LARGE, "exploration": 0.2}, "it has no effect on a network that learns by PPO"),
        ({"learner": "ppo"}, "learner=ppo needs env=states"),
        ({"game": LEDUC, "env": "states", "exploration": 0.2, "kl": 1}, "learns by PPO"),
        ({"game": LARGE, "net": "table"}, "net=table needs a game that fits a tree"),
        ({"game": "ledoc_poker"}, "did you mean 'leduc_poker'"),
    ],
)
def test_impossible_settings_are_refused(given, word):
    with pytest.raises(BridgeError, match=word):
        configure(given)


def test_every_setting_says_what_it_is():
    assert describe("steps").startswith(
        "number of decisions to learn from; on states 10,000,000 (20,000,000; with PPO 10,000,000"
    )
    assert all(len(describe(f.name)) > 15 for f in fields(Settings))
