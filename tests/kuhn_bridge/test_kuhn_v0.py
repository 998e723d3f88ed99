"""The PettingZoo environment, by its public methods."""

import copy
import pickle
from collections import Counter

import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box

import kuhn_bridge
from kuhn_bridge import Action, BridgeError, State, kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.rules import AGENTS, DEALS, ENDINGS

HANDS = [(deal, letters) for deal in DEALS for letters in ENDINGS]


def dealt(cards=("K", "J")):
    env = kuhn_v0.env()
    env.reset(options={"cards": cards})
    return env


def test_the_names_a_user_imports():
    assert kuhn_bridge.env is kuhn_v0.env
    assert kuhn_bridge.raw_env is kuhn_v0.raw_env
    assert str(kuhn_v0.env()) == "kuhn_v0"
    assert isinstance(pettingzoo.make("aec", "kuhn_bridge/kuhn_v0"), kuhn_v0.KuhnEnv)
    assert kuhn_v0.env().unwrapped.metadata == {
        "name": "kuhn_v0",
        "render_modes": ["human", "ansi"],
        "is_parallelizable": False,
        "render_fps": 1,
    }


def test_spaces_are_binary():
    env = kuhn_v0.env()
    for agent in AGENTS:
        assert env.observation_space(agent)["observation"] == Box(0, 1, (10,), np.float32)
        assert env.observation_space(agent)["action_mask"] == Box(0, 1, (3,), np.int8)
    assert env.state_space == Box(0, 1, (13,), np.float32)


@pytest.mark.parametrize(("deal", "letters"), HANDS)
def test_every_hand_in_lockstep_with_the_core(deal, letters):
    env = dealt(deal)
    state = State.new(*deal)
    for action in letters_to_actions(letters):
        assert env.agent_selection == AGENTS[state.actor]
        for seat, agent in enumerate(AGENTS):
            seen = env.observe(agent)
            assert np.array_equal(seen["observation"], state.observe(seat))
            assert np.array_equal(seen["action_mask"], state.mask(seat))
            assert set(env.infos[agent]) == {"action_mask"}
            assert np.array_equal(env.infos[agent]["action_mask"], state.mask(seat))
            assert env.observation_space(agent).contains(seen)
        assert env.state_space.contains(env.state())
        assert {*env.rewards.values(), env.last()[1]} == {0}
        assert not any(env.terminations.values())
        env.step(action)
        state = state.act(action)
    assert tuple(env.rewards.values()) == state.returns
    left = {}
    for agent in env.agent_iter():
        seen, left[agent], termination, truncation, _ = env.last()
        assert termination
        assert not truncation
        assert np.array_equal(seen["observation"], state.observe(AGENTS.index(agent)))
        assert seen["action_mask"].tolist() == [0, 0, 0]
        env.step(None)
        assert not any(env.rewards.values())  # paid once
    assert tuple(left.values()) == state.returns


def test_deals_follow_the_seed():
    def cards(env, seed, hands=30):
        drawn = []
        for hand in range(hands):
            env.reset(seed=seed if hand == 0 else None)
            drawn.append(tuple(env.state()[:6]))
        return drawn

    env = kuhn_v0.env()
    first = cards(env, 5)
    assert cards(env, 5) == first == cards(kuhn_v0.env(), 5)
    assert cards(env, 6) != first
    assert len(set(first)) == 6


def test_every_deal_comes_up_equally_often():
    env = kuhn_v0.env()
    env.reset(seed=0)
    counts = Counter()
    for _ in range(6000):
        env.reset()
        counts[tuple(env.state()[:6])] += 1
    # chi-squared with 5 degrees of freedom stays below 20.5 in 999 of 1,000 seeds
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5


def test_a_fixed_deal_takes_nothing_from_the_stream():
    env = kuhn_v0.env()
    plain = kuhn_v0.env()
    env.reset(seed=9)
    plain.reset(seed=9)
    env.reset(options={"cards": ("K", "J")})
    env.reset()
    plain.reset()
    assert np.array_equal(env.state(), plain.state())


def snapshot(env):
    return (
        env.agent_selection if env.agents else None,
        list(env.agents),
        dict(env.rewards),
        dict(env._cumulative_rewards),
        dict(env.terminations),
        env.state().tolist(),
        env._rng.getstate(),
    )


@pytest.mark.parametrize("action", [2, -1, 3, 1.5, True, None, "BET", np.float64(1), np.bool_(1)])
def test_a_bad_action_raises_and_changes_nothing(action):
    env = dealt()
    if action == -1:
        env.step(Action.BET)  # so that the last ID is legal
    before = snapshot(env)
    with pytest.raises(BridgeError) as error:
        env.step(action)
    assert "\n" not in str(error.value)
    assert snapshot(env) == before


def test_acting_after_the_end():
    env = dealt()
    env.step(Action.BET)
    env.step(Action.FOLD)
    before = snapshot(env)
    with pytest.raises(BridgeError, match=r"phase terminal after \[bet, fold\].*step\(None\)"):
        env.step(Action.BET)
    assert snapshot(env) == before
    env.step(None)
    env.step(None)
    with pytest.raises(BridgeError, match="call reset"):
        env.step(None)


def test_before_the_first_reset():
    env = kuhn_v0.env(render_mode="ansi")
    calls = (lambda: env.step(0), lambda: env.observe("player_0"))
    for call in (*calls, env.state, env.render, env.last, env.agent_iter):
        with pytest.raises(BridgeError, match="call reset"):
            call()


@pytest.mark.parametrize("agent", ["player_2", "", None, 0])
def test_a_wrong_agent(agent):
    env = dealt()
    for method in (env.observe, env.action_space, env.observation_space):
        with pytest.raises(BridgeError, match="the agents are player_0, player_1"):
            method(agent)


@pytest.mark.parametrize(
    ("seed", "cards"),
    [
        *((1, cards) for cards in [("K", "K"), ("K", "A"), ("K",), "KJ", None, 3, (1.0, 2)]),
        *((seed, ("K", "J")) for seed in (-1, 1.5, "seven")),
    ],
)
def test_a_bad_reset_raises_and_changes_nothing(seed, cards):
    env = dealt()
    env.step(Action.BET)
    before = snapshot(env)
    with pytest.raises(BridgeError):
        env.reset(seed=seed, options={"cards": cards})
    assert snapshot(env) == before


def test_rendering(capsys):
    env = kuhn_v0.env(render_mode="ansi")
    env.reset(options={"cards": ("K", "J")})
    env.step(Action.BET)
    assert env.render() == (
        "player_0 [K]   player_1 [J]   pot 3   bet\nplayer_1 to act: CHECK_OR_CALL or FOLD"
    )
    env.step(Action.CHECK_OR_CALL)
    assert env.render().endswith("pot 4   bet, call\nplayer_0 wins 2")
    env.reset(options={"cards": ("J", "K")})
    env.step(Action.CHECK_OR_CALL)
    env.step(Action.CHECK_OR_CALL)
    assert env.render().endswith("pot 2   check, check\nplayer_1 wins 1")
    assert capsys.readouterr().out == ""
    human = kuhn_v0.env(render_mode="human")
    human.reset(options={"cards": ("Q", "J")})
    assert capsys.readouterr().out.startswith("player_0 [Q]")
    with pytest.raises(BridgeError, match="render_mode 'rgb_array' is unknown"):
        kuhn_v0.env(render_mode="rgb_array")
    with pytest.warns(UserWarning, match="render_mode"):
        dealt().render()


def test_pickle_and_deepcopy_carry_the_hand_and_the_stream():
    env = kuhn_v0.env()
    env.reset(seed=11)
    env.step(Action.BET)
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert snapshot(twin) == snapshot(env)
        twin.step(Action.FOLD)
        assert not env.terminations["player_0"]
        twin.reset()
        again = copy.deepcopy(env)
        again.reset()
        assert np.array_equal(twin.state(), again.state())


def test_returned_arrays_are_copies():
    env = dealt()
    env.observe("player_0")["observation"][:] = 7
    env.infos["player_0"]["action_mask"][:] = 0
    assert env.observe("player_0")["observation"].max() == 1
    env.step(np.int32(Action.BET))
    assert env.infos["player_1"]["action_mask"].tolist() == [1, 0, 1]
