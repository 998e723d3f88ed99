"""The self-play environments: on the tree, on states, and move by move on the PettingZoo face."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from algorithms.compiled.nashconv import expected_values
from algorithms.games import load_game
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.self_play.states import StateSimulator
from kuhn_bridge import BridgeError
from kuhn_bridge.errors import IllegalActionError
from tests.games import LEDUC
from tests.shared_strings import SHARED
from tests.test_own_game import NAME as OWN_GAME

GAMES = (
    "kuhn",
    LEDUC,  # chance in the middle of a hand
    "kuhn_poker(players=3)",
    "liars_dice(numdice=1,dice_sides=2)",
    "goofspiel(imp_info=True,num_cards=3,points_order=descending)",  # turn-based, no chance
    "tiny_bridge_2p",  # several moves in a row
    OWN_GAME,  # in Python
    SHARED,  # players share information states
    "python_kuhn_bridge",
)
LARGE = "phantom_ttt"


def by_hand(env):
    """An environment that may be stepped without a learner."""
    env.guarded = False
    return env


def some_actions(masks, rng):
    return (masks * rng.random(masks.shape)).argmax(axis=1)


@pytest.mark.parametrize("name", ["kuhn", LEDUC])
def test_sb3_accepts_the_plain_environment(name):
    check_env(by_hand(SelfPlayEnv(name)))


def compare(name, *, seed=3, choices=6, **options):
    """Play one slot and the plain environment side by side; how many hands ended."""
    plain = by_hand(SelfPlayEnv(name, **options))
    fast = by_hand(SelfPlayVecEnv(1, name, seed=seed, **options))
    rng = np.random.default_rng(choices)
    hands = 0
    observation, _ = plain.reset(seed=seed)
    block = fast.reset()
    for _ in range(120):
        assert (observation == block[0]).all()
        assert (plain.action_masks() == fast.action_masks()[0]).all()
        action = rng.choice(np.flatnonzero(plain.action_masks()))
        observation, reward, ended, truncated, _ = plain.step(action)
        block, rewards, dones, infos = fast.step(np.array([action]))
        assert (reward, ended, truncated) == (rewards[0], dones[0], False)
        if ended:
            hands += 1
            assert not plain.action_masks().any()
            assert options or (infos[0]["terminal_observation"] == observation).all()
            observation, _ = plain.reset()
        for one, other in zip(plain.last_step(), fast.last_step(), strict=True):
            assert (np.asarray(one) == np.asarray(other)).all()
    return hands


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("infoset_numbers", [False, True])
def test_one_hand_at_a_time_is_the_plain_environment_draw_by_draw(name, infoset_numbers):
    assert compare(name, infoset_numbers=infoset_numbers) > 15


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_they_are_equal_on_leduc_with_any_seed(seed, choices):
    assert compare(LEDUC, seed=seed, choices=choices)


@pytest.mark.parametrize("name", [*(name for name in GAMES if name != "kuhn"), LARGE])
def test_states_are_those_of_openspiel(name):
    """Observations, masks, actors and returns against OpenSpiel's own answers, hand by hand."""
    game = load_game(name)
    env = by_hand(SelfPlayVecEnv(5, game, on="states", seed=1))
    rng = np.random.default_rng(2)
    observations = env.reset()
    ended = 0
    for _ in range(40):
        states = [replayed(game, history) for history in env.get_state()["histories"]]
        masks = env.action_masks()
        seats = env.last_step().seats
        size = game.observation_size
        for i, state in enumerate(states):
            assert state.current_player() == seats[i]
            tensor = np.array(state.information_state_tensor(), np.float32)
            assert (observations[i, :size] == tensor).all()
            assert np.flatnonzero(masks[i]).tolist() == state.legal_actions()
            if game.appends_seat:
                assert (observations[i, size:] == np.eye(game.num_players)[seats[i]]).all()
        actions = some_actions(masks, rng)
        observations, rewards, dones, _ = env.step(actions)
        step = env.last_step()
        for i, state in enumerate(states):
            state.apply_action(int(actions[i]))
            assert step.acted[i] == seats[i]
            if state.is_terminal():
                assert dones[i]
                assert step.returns[i] == pytest.approx(np.array(state.returns(), np.float32))
                assert rewards[i] == step.returns[i, seats[i]]
            elif not state.is_chance_node():
                assert not dones[i]
                assert not step.returns[i].any()
        ended += int(dones.sum())
    assert ended > 5


def replayed(game, history):
    state = game.pyspiel_game.new_initial_state()
    for action in history:
        state.apply_action(action)
    return state


@pytest.mark.parametrize("on", ["tree", "states"])
@pytest.mark.parametrize("name", [LEDUC, "kuhn_poker(players=3)"])
def test_the_mean_return_is_the_exact_value(name, on):
    game = load_game(name)
    env = by_hand(SelfPlayVecEnv(600, game, on=on, seed=1))
    hands = 12
    rng = np.random.default_rng(2)
    env.reset()
    won = np.zeros(game.num_players)
    played = np.zeros(600)
    while played.min() < hands:  # as many hands in each slot, or short ones would count too often
        env.step(some_actions(env.action_masks(), rng))
        step = env.last_step()
        counted = step.ended & (played < hands)
        won += step.returns[counted].sum(axis=0)
        played += step.ended
    error = np.abs(game.tree.returns).max() / np.sqrt(600 * hands)
    values = expected_values(game.tree, game.tree.uniform())
    assert won / (600 * hands) == pytest.approx(values, abs=4 * error)


@pytest.mark.parametrize("name", [LEDUC, LARGE])
def test_environments_continue_from_their_state(name):
    def play(env):
        played = []
        rng = np.random.default_rng(1)
        for _ in range(21):
            masks = np.concatenate([np.atleast_2d(m) for m in env.env_method("action_masks")])
            observations, rewards, dones, _ = env.step(some_actions(masks, rng))
            played.append((observations.tolist(), rewards.tolist(), dones.tolist()))
        return played

    kinds: list[Any] = [lambda: SelfPlayVecEnv(7, name, on="states")]
    if name == LEDUC:
        kinds += [lambda: SelfPlayVecEnv(7, name), lambda: DummyVecEnv([lambda: SelfPlayEnv(name)])]
    for make in kinds:
        first = make()
        other = make()
        for env in (first, other):
            env.env_method("allow_steps", allowed=True)
        first.seed(3)
        first.reset()
        play(first)
        other.reset()
        for index, state in enumerate(first.env_method("get_state")):
            other.env_method("set_state", state, indices=index)
        assert play(first) == play(other)


def test_on_states_a_seed_repeats_everything_and_a_reset_deals_anew():
    def first_hands(seed):
        env = by_hand(SelfPlayVecEnv(8, LEDUC, on="states"))
        env.seed(seed)
        return [env.reset().tolist() for _ in range(2)]

    assert first_hands(5) == first_hands(5) != first_hands(6)


def uniform(observations, masks):
    return masks / masks.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("name", "on"), [(LEDUC, "tree"), (LEDUC, "states"), (LARGE, "states")])
@pytest.mark.parametrize("learner", [0, 1])
def test_opponents_are_played_inside(name, on, learner):
    game = load_game(name)
    policy: Any = game.tree.uniform() if on == "tree" else uniform
    env = SelfPlayVecEnv(200, game, on=on, seed=2, opponents={1 - learner: policy})
    rng = np.random.default_rng(4)
    won = 0.0
    count = 0
    env.reset()
    for _ in range(60):  # without SelfPlay(): there is only one agent
        assert (env.last_step().seats == learner).all()
        _, rewards, dones, _ = env.step(some_actions(env.action_masks(), rng))
        assert (env.last_step().acted == learner).all()
        assert (rewards[~dones] == 0).all()
        won += float(rewards.sum())
        count += int(dones.sum())
    assert count > 1000
    if name == LEDUC:
        value = expected_values(game.tree, game.tree.uniform())[learner]
        assert won / count == pytest.approx(value, abs=0.5)


def test_an_opponent_sees_what_it_may_do_and_no_more():
    def first_legal(observations, masks):
        assert observations.dtype == np.float32
        assert masks.any(axis=1).all()
        assert (observations[:, :2] == [0, 1]).all()  # Leduc's tensor begins with the player
        return np.eye(masks.shape[1])[masks.argmax(axis=1)] * 2  # weights need not sum to 1

    hands = StateSimulator(load_game(LEDUC), 50, opponents={1: first_legal})
    for _ in range(30):
        hands.step(hands.masks.argmax(axis=1))
        assert (hands.seats == 0).all()


@pytest.mark.parametrize("opponents", [{0: None, 1: None}, {2: None}])
def test_opponents_leave_a_seat_of_the_game(opponents):
    with pytest.raises(BridgeError, match="want seats from 0 to 1, and one left over"):
        SelfPlayVecEnv(2, opponents=opponents)


@pytest.mark.parametrize(
    "make", [lambda: SelfPlayVecEnv(2), lambda: DummyVecEnv([SelfPlayEnv] * 2)]
)
def test_stepping_without_self_play_is_an_error_that_says_so(make):
    env = make()
    env.reset()
    with pytest.raises(BridgeError, match=r"callback=SelfPlay\(\)"):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(BridgeError, match=r"callback=SelfPlay\(\)"):
        MaskablePPO("MlpPolicy", make(), n_steps=8, batch_size=8).learn(16)


@pytest.mark.parametrize("on", ["tree", "states"])
@pytest.mark.parametrize("action", [1, 3, -1])
def test_an_illegal_action_is_refused_and_changes_nothing(on, action):
    env = by_hand(SelfPlayVecEnv(4, "python_kuhn_bridge", on=on))
    env.reset()
    env.step(np.array([0, 0, 1, 0]))  # slot 2 faces a bet
    before = env.get_state()
    with pytest.raises(IllegalActionError, match=f"action {action} is illegal in hand 2"):
        env.step(np.array([0, 0, action, 0]))
    assert env.get_state() == before


@pytest.mark.parametrize("action", [2, 3, -1])
def test_the_plain_environment_refuses_illegal_actions_too(action):
    plain = by_hand(SelfPlayEnv())
    plain.reset()
    with pytest.raises(IllegalActionError):
        plain.step(np.int64(action))
    assert plain.get_state()["actions"] == []


def test_spaces_are_those_of_the_game():
    assert SelfPlayEnv().observation_space == spaces.Box(0, 1, (10,), np.float32)
    assert SelfPlayVecEnv(1, infoset_numbers=True).observation_space == spaces.Box(
        0, 12, (1,), np.float32
    )
    assert SelfPlayVecEnv(1, LARGE).observation_space.shape == (108 + 2,)
    assert SelfPlayVecEnv(1, LARGE).on == "states"


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("kuhn", {"on": "states"}, "no OpenSpiel states"),
        (LARGE, {"on": "tree"}, "too large for a tree"),
        (LEDUC, {"on": "states", "infoset_numbers": True}, "infoset_numbers"),
        (LEDUC, {"on": "board"}, "board"),
        ("connect_four", {"on": "states"}, "information state tensor"),
        ("dark_hex_ir", {}, "the player has forgotten its earlier actions"),
        ("repeated_leduc_poker", {}, "the player has forgotten its earlier actions"),
    ],
)
def test_what_cannot_be_played_is_refused(name, options, word):
    with pytest.raises(BridgeError, match=word):
        SelfPlayVecEnv(2, name, **options)


def test_samples_are_legal_unless_a_mask_asks_for_something_else():
    env = SelfPlayEnv()
    env.reset()
    drawn = {int(env.action_space.sample()) for _ in range(50)}
    assert drawn == set(np.flatnonzero(env.action_masks()))
    assert env.action_space.sample(np.array([0, 0, 1], np.int8)) == 2


def test_the_statistics_of_a_monitor_are_whole():
    env = VecMonitor(by_hand(SelfPlayVecEnv(50)))
    env.reset()
    for _ in range(2):
        masks = env.env_method("action_masks")[0]
        _, _, dones, infos = env.step(masks.argmax(axis=1))
    assert dones.any()
    assert [("episode" in info) for info in infos] == dones.tolist()


@pytest.mark.parametrize(("game", "on"), [("kuhn", "tree"), (LEDUC, "states")])
def test_hands_have_infos_of_their_own(game, on):
    """A wrapper may write into one of them, as `VecNormalize` does."""
    env = by_hand(SelfPlayVecEnv(4, game, on=on))
    env.reset()
    for _ in range(2):
        *_, infos = env.step(env.action_masks().argmax(axis=1))
        infos[0]["mine"] = True
        assert [("mine" in info) for info in infos] == [True, False, False, False]


@pytest.mark.parametrize(("infoset_numbers", "looped"), [(False, 3), (True, 0)])
def test_loops_pass_over_dones_and_infos_only_for_training(infoset_numbers, looped):
    env = by_hand(SelfPlayVecEnv(3, infoset_numbers=infoset_numbers))
    env.reset()
    _, _, dones, infos = env.step(np.zeros(3, np.int64))
    assert len(list(dones)) == len(list(infos)) == looped
    assert len(dones) == len(infos) == 3
    assert infos[2] == {}
