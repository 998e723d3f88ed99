"""Shimmy's wrapper of OpenSpiel: `WholeHands` plays whole hands, the original does not."""

import pickle

import numpy as np
import pyspiel
import pytest
from shimmy import OpenSpielCompatibilityV0

import kuhn_bridge.openspiel
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions, to_openspiel
from kuhn_bridge.rules import BETTING, DEALS, ENDINGS
from kuhn_bridge.shimmy import WholeHands

GAMES = ["kuhn_poker", kuhn_bridge.openspiel.SHORT_NAME]


def dealt(env, deal):
    """Reset until chance deals what we want."""
    for seed in range(1000):
        env.reset(seed=seed)
        if env.game_state.history() == list(deal):
            return env
    raise AssertionError(f"{deal} never came up")


def last_rewards(env):
    rewards = {}
    for agent in env.agent_iter():
        _, rewards[agent], termination, truncation, _ = env.last()
        assert termination
        assert not truncation
        env.step(None)
    return rewards


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("letters", ENDINGS)
def test_in_lockstep_with_our_aec_face(game, letters):
    shimmy = WholeHands(game_name=game)
    ours = kuhn_v0.env()
    for deal in DEALS:
        dealt(shimmy, deal)
        ours.reset(options={"cards": deal})
        for move, action in enumerate(letters_to_actions(letters)):
            faces = BETTING[letters[:move]].faces_bet
            assert shimmy.agent_selection == ours.agent_selection
            legal = np.flatnonzero(ours.infos[ours.agent_selection]["action_mask"])
            theirs = np.flatnonzero(shimmy.infos[shimmy.agent_selection]["action_mask"])
            cross = int if game != "kuhn_poker" else lambda a, faces=faces: to_openspiel(a, faces)
            assert sorted(map(cross, legal)) == theirs.tolist()
            ours.step(action)
            shimmy.step(cross(action))
            assert shimmy.rewards == ours.rewards
            assert shimmy.terminations == ours.terminations
        assert last_rewards(shimmy) == last_rewards(ours)


@pytest.mark.parametrize(
    "game", ["leduc_poker", "leduc_poker(players=3)", "kuhn_poker(players=3)", "liars_dice"]
)
def test_other_games_with_chance_nodes_play_to_their_end(game):
    env = WholeHands(env=pyspiel.load_game(game))
    assert env.possible_agents == [f"player_{i}" for i in range(env._env.num_players())]
    for seed in range(20):
        env.reset(seed=seed)
        for agent in env.possible_agents:
            env.action_space(agent).seed(seed)
        for agent in env.agent_iter():
            _, _, termination, truncation, info = env.last()
            if termination or truncation:
                break
            env.step(env.action_space(agent).sample(info["action_mask"]))
        assert env.game_state.is_terminal()
        returns = env.game_state.returns()
        assert last_rewards(env) == dict(zip(env.possible_agents, returns, strict=True))


def test_it_pickles_with_its_parameters():
    env = pickle.loads(pickle.dumps(WholeHands(game_name="leduc_poker(players=3)")))
    env.reset(seed=0)
    assert len(env.agents) == 3


# Upstream's errors: when one of these tests fails, `WholeHands` can become smaller.


def test_shimmy_still_truncates_every_hand_after_one_action():
    env = OpenSpielCompatibilityV0(game_name="kuhn_poker")
    for deal in DEALS:
        dealt(env, deal)
        env.step(0)
        assert all(env.truncations.values())
        assert not any(env.terminations.values())
        assert set(env.rewards.values()) == {0.0}


def test_shimmy_still_forgets_parameters():
    env = OpenSpielCompatibilityV0(env=pyspiel.load_game("leduc_poker(players=3)"))
    with pytest.raises(pyspiel.SpielError):
        env.reset(seed=0)
