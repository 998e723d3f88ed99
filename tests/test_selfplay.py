"""The self-play environments: what PPO sees, and that the two are one."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pyspiel
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from algorithms.exact.tree import CHANCE, TERMINAL, Visit, compile_tree
from algorithms.exact.values import evaluate_policy
from algorithms.games import load_game
from algorithms.learning.board import _deals, board_of, cumulative, deal_of
from algorithms.learning.selfplay import SelfPlayEnv, SelfPlayVecEnv
from algorithms.learning.tutorial import TurnsEnv
from kuhn_bridge import BridgeError, Policy, State
from kuhn_bridge.errors import IllegalActionError
from kuhn_bridge.rules import DEALS, DECISIONS, Action, Card
from tests.games import LEGAL
from tests.test_own_game import NAME as OWN_GAME

KUHN = load_game("kuhn")
GAMES = (
    "kuhn",
    "leduc_poker",  # chance in the middle of a hand
    "kuhn_poker(players=3)",
    "liars_dice(numdice=1,dice_sides=2)",
    "goofspiel(imp_info=True,num_cards=3,points_order=descending)",  # turn-based, no chance
    "tiny_bridge_2p",  # several moves in a row
    OWN_GAME,  # a seat may have nothing to decide
    "python_kuhn_bridge",
)


def seated(environment, policy):
    """The environment with its other seats taken."""
    environment.set_opponent(policy)
    return environment


def pure_policies() -> list[np.ndarray]:
    """Every way to answer at the four histories, whatever the card: 16 policies `(12, 3)`."""
    choices = [[np.eye(3)[a] for a in Action if LEGAL[3 * i, a]] for i in range(len(DECISIONS))]
    return [np.repeat(np.array(rows), 3, axis=0) for rows in product(*choices)]


def test_the_plain_environment_is_one_that_sb3_accepts() -> None:
    for name in ("kuhn", "leduc_poker"):
        check_env(seated(SelfPlayEnv(name), load_game(name).tree.uniform()))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("numbered", [False, True])
def test_one_slot_is_the_plain_environment_draw_by_draw(name: str, numbered: bool) -> None:
    game = load_game(name)
    policy, random = game.tree.random(5), np.random.default_rng(6)
    plain = seated(SelfPlayEnv(game, numbered=numbered), policy)
    fast = seated(SelfPlayVecEnv(1, game, seed=3, numbered=numbered), policy)
    (seen, _), block = plain.reset(seed=3), fast.reset()
    hands = 0
    for _ in range(150):
        assert (seen == block[0]).all()
        assert (plain.action_masks() == fast.action_masks()[0]).all()
        action = random.choice(np.flatnonzero(plain.action_masks()))
        seen, reward, over, cut_off, _ = plain.step(action)
        block, rewards, dones, infos = fast.step(np.array([action]))
        assert (reward, over, cut_off) == (rewards[0], dones[0], False)
        if over:
            hands += 1
            assert not plain.action_masks().any()
            assert (infos[0]["terminal_observation"] == seen).all()
            seen, _ = plain.reset()
    assert hands > 20


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_they_are_one_on_kuhn_with_any_seed(seed: int, choices: int) -> None:
    policy = Policy.random("kuhn", seed).table
    plain = seated(SelfPlayEnv(), policy)
    fast = seated(SelfPlayVecEnv(1, seed=seed), policy)
    (seen, _), block = plain.reset(seed=seed), fast.reset()
    random = np.random.default_rng(choices)
    for _ in range(50):
        assert (seen == block[0]).all()
        action = random.choice(np.flatnonzero(plain.action_masks()))
        seen, reward, over, _, _ = plain.step(action)
        block, rewards, dones, _ = fast.step(np.array([action]))
        assert (reward, over) == (rewards[0], dones[0])
        if over:
            seen, _ = plain.reset()


def test_what_a_seat_is_paid_is_its_own() -> None:
    plain, board, paid = SelfPlayEnv(), board_of(KUHN), set()
    for hand, policy in product(range(20), pure_policies()):
        for actions in product(range(3), repeat=2):
            seated(plain, policy).reset(options={"hand": hand})
            for action in actions:
                if not plain.action_masks()[action]:
                    break
                _, reward, over, _, _ = plain.step(np.int64(action))
                if over:
                    number, seat = divmod(hand, 2)
                    deal = KUHN.tree.history(int(board.deals[deal_of(board, number)]))
                    state = State.new(*map(Card, deal))
                    for move in plain.get_state()["moves"]:
                        state = state.act(move)
                    assert reward == state.returns[seat]
                    paid.add((reward, seat))
                    break
                assert reward == 0
    assert paid == set(product((-2.0, -1.0, 1.0, 2.0), (0, 1)))


@pytest.mark.parametrize("name", ["kuhn", "leduc_poker", "kuhn_poker(players=3)"])
def test_every_seat_gets_every_deal_as_often_as_chance_has_it(name: str) -> None:
    game = load_game(name)
    board, hands = board_of(game), 5000
    counts = np.bincount([deal_of(board, k) for k in range(hands)], minlength=len(board.deals))
    assert (
        np.abs(counts - hands * game.tree.chance_reach[board.deals]).max() < 3
    )  # drawn: 20 and more
    assert (game.tree.player[board.deals] >= 0).all()
    environment = seated(SelfPlayVecEnv(6, game), game.tree.uniform())
    environment.reset()
    assert environment.seats().tolist() == [i % game.num_players for i in range(6)]


def test_deals_of_unequal_probability_come_as_often_as_they_should() -> None:
    game = load_game("python_kuhn_bridge")
    board = board_of(game)._replace(dealt=np.cumsum([0.5, 0.3, 0.1, 0.05, 0.03, 0.02]))
    counts = np.bincount([deal_of(board, k) for k in range(10_000)])
    assert np.abs(counts - [5000, 3000, 1000, 500, 300, 200]).max() < 4


@pytest.mark.parametrize("name", ["kuhn", "leduc_poker", "kuhn_poker(players=3)"])
def test_the_mean_reward_is_the_exact_value(name: str) -> None:
    game = load_game(name)
    policy, random = game.tree.random(3), np.random.default_rng(2)
    environment = seated(SelfPlayVecEnv(6000, game, seed=1), policy)
    environment.reset()
    players = game.num_players
    won, hands, sums = np.zeros(players), np.zeros(players), cumulative(policy)
    for _ in range(100):
        rows, seats = environment.rows(), environment.seats()
        draws = random.random((len(rows), 1))
        _, rewards, dones, _ = environment.step((sums[rows] <= draws).sum(axis=1))
        np.add.at(won, seats[dones], rewards[dones])
        np.add.at(hands, seats[dones], 1)
    values = evaluate_policy(game.tree, policy).values
    largest = np.abs(game.tree.returns).max()
    # Hands in which a seat never acts are left out, so only seats that always act are compared.
    acts = [p for p in range(players) if p == 0 or name != "kuhn_poker(players=3)"]
    assert np.abs(won / hands - values)[acts].max() < 5 * largest / np.sqrt(hands.min())


def test_nothing_is_seen_but_what_the_tensor_of_the_seat_says() -> None:
    game = pyspiel.load_game("leduc_poker")
    environment = seated(SelfPlayEnv("leduc_poker"), load_game("leduc_poker").tree.uniform())
    for hand in range(20):
        seen, _ = environment.reset(seed=hand, options={"hand": hand})
        state = game.new_initial_state()
        chances = iter(
            environment.game.tree.history(
                int(environment._board.deals[deal_of(environment._board, environment._hand // 2)])
            )
        )
        for move in (*chances, *environment.get_state()["moves"]):
            state.apply_action(move)
        if not state.is_chance_node():
            assert seen.tolist() == state.information_state_tensor(environment._hand % 2)


def test_hands_in_which_the_seat_never_acts_are_passed_over() -> None:
    game = load_game("kuhn")
    always_bets = np.where(LEGAL[:, 1:2], np.eye(3)[1], np.eye(3)[2])  # and folds to a bet
    environment = seated(SelfPlayVecEnv(200, game), always_bets)
    environment.reset()
    assert (game.tree.owner[environment.rows()] == environment.seats()).all()
    oh_hell = load_game("kuhn_poker(players=3)")
    folds = np.eye(2)[np.zeros(len(oh_hell.tree.keys), int)]
    third = seated(SelfPlayVecEnv(300, oh_hell), folds)
    third.reset()
    assert set(third.seats().tolist()) == {0, 1, 2}


def test_an_environment_that_nobody_is_seated_in_says_so_once() -> None:
    for environment in (SelfPlayVecEnv(2), DummyVecEnv([SelfPlayEnv])):
        environment.reset()
        with pytest.warns(UserWarning, match="nobody has seated the other players"):
            environment.step(np.zeros(environment.num_envs, np.int64))
        environment.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            environment.step(np.zeros(environment.num_envs, np.int64))


def test_the_warning_points_at_whoever_plays() -> None:
    environment = SelfPlayVecEnv(2)
    environment.reset()
    with pytest.warns(UserWarning, match="nobody has seated") as told:
        environment.step(np.zeros(2, np.int64))
    assert told[0].filename == __file__


def test_a_reset_begins_with_the_first_hands_again() -> None:
    environment = seated(SelfPlayVecEnv(8, seed=5), LEGAL / 2)
    environment.reset()
    first = environment.get_state()
    for _ in range(3):
        environment.step(np.zeros(8, np.int64))
    assert environment.get_state()["hand"] != first["hand"]
    environment.seed(5)
    environment.reset()
    assert environment.get_state() == first
    environment.seed(6)
    assert environment.get_state()["rng"] != first["rng"]


@pytest.mark.parametrize("action", [2, 3, -1])
def test_an_illegal_action_is_refused_and_changes_nothing(action: int) -> None:
    plain, fast = (seated(made, LEGAL / 2) for made in (SelfPlayEnv(), SelfPlayVecEnv(4)))
    plain.reset()
    fast.reset()
    before = fast.get_state()
    with pytest.raises(IllegalActionError, match="illegal"):
        fast.step(np.array([0, 0, action, 0]))
    assert fast.get_state() == before
    with pytest.raises(BridgeError):
        plain.step(np.int64(action))
    assert plain.get_state()["moves"] == []


def test_an_action_below_0_is_not_counted_from_the_end() -> None:
    bets = np.where(LEGAL[:, 1:2], np.eye(3)[1], np.eye(3)[0])
    plain, fast = (seated(made, bets) for made in (SelfPlayEnv(first=1), SelfPlayVecEnv(2)))
    plain.reset()
    fast.reset()
    assert plain.action_masks()[2]  # seat 1 faces a bet: the last ID is legal
    assert fast.action_masks()[1, 2]
    with pytest.raises(IllegalActionError, match="action -1 is illegal in slot 1"):
        fast.step(np.array([0, -1]))
    with pytest.raises(BridgeError, match="-1 is not an action ID"):
        plain.step(np.int64(-1))


@pytest.mark.parametrize("game", ["kuhn", "leduc_poker"])
@pytest.mark.parametrize("kind", [SelfPlayVecEnv, SelfPlayEnv])
def test_an_environment_goes_on_from_its_state(game: str, kind: type) -> None:
    def make():
        made = (
            SelfPlayVecEnv(7, game)
            if kind is SelfPlayVecEnv
            else DummyVecEnv([lambda: SelfPlayEnv(game)])
        )
        made.env_method("set_opponent", load_game(game).tree.uniform())
        return made

    def play(environment) -> list:
        played = []
        for _ in range(21):
            masks = np.concatenate(
                [np.atleast_2d(m) for m in environment.env_method("action_masks")]
            )
            seen, rewards, dones, _ = environment.step(masks.argmax(axis=1))
            played.append((seen.tolist(), rewards.tolist(), dones.tolist()))
        return played

    first = make()
    first.seed(3)
    first.reset()
    play(first)
    states, other = first.env_method("get_state"), make()
    other.reset()
    for index, state in enumerate(states):
        other.env_method("set_state", state, indices=index)
    assert play(first) == play(other)


def test_hands_that_cannot_be_are_refused() -> None:
    environment = seated(SelfPlayVecEnv(2), LEGAL / 2)
    environment.reset()
    first = environment.get_state()
    environment.set_state(first)  # hand 0 is one
    nodes, node = KUHN.tree.num_nodes, first["node"][0]
    for name, wrong in (("hand", -2), ("node", nodes), ("node", node - nodes)):
        with pytest.raises(BridgeError, match="a hand in which the learner is not to act"):
            environment.set_state({**first, name: [wrong, first[name][1]]})
    assert environment.get_state() == first


def test_a_hand_may_begin_at_the_root() -> None:
    environment = SelfPlayVecEnv(1, GAMES[4])
    environment.reset()
    first = environment.get_state()
    assert first["node"] == [0]
    environment.set_state(first)


def test_what_is_seen_lies_between_0_and_1() -> None:
    assert SelfPlayEnv().observation_space == spaces.Box(0, 1, (10,), np.float32)
    assert SelfPlayVecEnv(1, numbered=True).observation_space == spaces.Box(0, 12, (1,), np.float32)


def test_samples_are_legal_unless_a_mask_asks_for_something_else() -> None:
    environment = SelfPlayEnv()
    environment.reset()
    drawn = {int(environment.action_space.sample()) for _ in range(50)}
    assert drawn == set(np.flatnonzero(environment.action_masks()))
    assert environment.action_space.sample(np.array([0, 0, 1], np.int8)) == 2


def test_the_statistics_of_a_monitor_are_whole() -> None:
    """What training passes over for speed is there for everybody else."""
    environment = VecMonitor(SelfPlayVecEnv(50))
    environment.env_method("set_opponent", LEGAL / 2)
    environment.reset()
    masks = environment.env_method("action_masks")[0]
    _, _, dones, infos = environment.step(masks.argmax(axis=1))
    assert dones.any()
    assert [("episode" in info) for info in infos] == dones.tolist()


@pytest.mark.parametrize(("numbered", "passed"), [(False, 3), (True, 0)])
def test_loops_pass_over_dones_and_infos_only_for_training(numbered: bool, passed: int) -> None:
    environment = seated(SelfPlayVecEnv(3, numbered=numbered), LEGAL / 2)
    environment.reset()
    _, _, dones, infos = environment.step(np.zeros(3, np.int64))
    assert len(list(dones)) == len(list(infos)) == passed
    assert len(dones) == len(infos) == 3


def test_running_sums_end_in_one() -> None:
    assert (cumulative(KUHN.tree.uniform())[:, -1] == 1).all()
    assert (cumulative(Policy.random("kuhn", 0).table).max(axis=1) == 1).all()
    board = board_of(load_game("leduc_poker"))
    last = board.first_child[1:][board.player == -1] - 1
    assert (board.chance[last] == 1).all()
    assert (board.player[board.deals] != TERMINAL).all()
    assert len(board_of(KUHN).deals) == len(DEALS)


def test_the_usual_recipe_hands_the_last_actors_reward_to_the_other_seat() -> None:
    turns = TurnsEnv()
    turns.reset(options={"cards": ("J", "K")})
    _, reward, over, _, _ = turns.step(np.int64(Action.BET))
    assert (reward, over) == (0, False)
    seen, reward, over, _, _ = turns.step(np.int64(Action.CHECK_OR_CALL))
    assert (reward, over) == (2, True)  # player_1's gain ends the trajectory of player_0's bet
    assert not turns.action_masks().any()
    assert seen[7] == 1  # finished


def test_an_attribute_is_set_for_all_slots() -> None:
    environment = SelfPlayVecEnv(3)
    environment.set_attr("note", "mine")
    assert environment.get_attr("note") == ["mine"] * 3


def test_without_a_seed_hands_repeat_too() -> None:
    one, two = (seated(SelfPlayVecEnv(64, **seed), LEGAL / 2) for seed in ({}, {"seed": 0}))
    assert (one.reset() == two.reset()).all()
    for _ in range(5):
        checks = np.zeros(64, np.int64)
        assert (one.step(checks)[0] == two.step(checks)[0]).all()


def test_what_a_step_gave_stays_as_it_was():
    """A learner may keep it until the rollout is over."""
    environment = SelfPlayVecEnv(64, seed=1)
    environment.set_opponent(environment.game.tree.uniform())
    environment.reset()
    kept, copies = [], []
    for _ in range(4):
        given = environment.step(environment.action_masks().argmax(axis=1))[:3]
        kept.append(given)
        copies.append([array.copy() for array in given])
    for given, copy in zip(kept, copies, strict=True):
        assert all(map(np.array_equal, given, copy))
    assert len({rewards.tobytes() for _, rewards, _ in kept}) > 1


def test_deals_may_be_of_different_lengths():
    """Chance lets the player decide at once, or deals once more."""

    def decision(depth, card, key):
        yield Visit(depth, 0, card, 0.5, key, (0, 1))
        yield from (Visit(depth + 1, TERMINAL, move, returns=(1.0,)) for move in (0, 1))

    later = [visit for card in (0, 1) for visit in decision(2, card, f"later, {card}")]
    once_more = Visit(1, CHANCE, 1, 0.5)
    walk = [Visit(0, CHANCE), *decision(1, 0, "at once"), once_more, *later]
    tree = compile_tree("uneven", 1, 2, walk)
    deals = _deals(tree)
    assert tree.chance_reach[deals].tolist() == [0.5, 0.25, 0.25]
    assert (tree.player[deals] == 0).all()
