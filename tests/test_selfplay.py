"""The self-play environments: what PPO sees, and that the two are one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv

from algorithms.exact.values import nash_conv, seated
from algorithms.games.kuhn import kuhn_tree
from algorithms.learning.selfplay import (
    NOBODY,
    SelfPlayEnv,
    SelfPlayVecEnv,
    cumulative,
    kuhn_tables,
    uniform,
    walk,
)
from algorithms.learning.tutorial import TurnsEnv
from kuhn_bridge import INFORMATION_STATES, KuhnError, State, TabularPolicy, env
from kuhn_bridge.errors import IllegalActionError
from kuhn_bridge.policy import LEGAL
from kuhn_bridge.rules import DEALS, DECISIONS, Action
from kuhn_bridge.state import nodes

TABLES = kuhn_tables()
CASES = TABLES.cases


def pure_policies() -> list[np.ndarray]:
    """Every way to answer at the four histories, whatever the card: 16 policies `(12, 3)`."""
    choices = [[np.eye(3)[a] for a in Action if LEGAL[3 * i, a]] for i in range(len(DECISIONS))]
    return [np.repeat(np.array(rows), 3, axis=0) for rows in product(*choices)]


def hand(environment: SelfPlayEnv, case: int, policy: np.ndarray, actions: tuple[int, ...]) -> list:
    """All that the plain environment shows of one hand."""
    environment.set_opponent(policy)
    seen, _ = environment.reset(options={"case": case})
    shown = [(seen.tolist(), environment.action_masks().tolist())]
    for action in actions:
        if not environment.action_masks()[action]:
            return [*shown, "illegal"]
        seen, reward, over, _, _ = environment.step(np.int64(action))
        if over:
            return [*shown, (seen.tolist(), reward, True)]
        shown.append((seen.tolist(), environment.action_masks().tolist(), reward))
    return shown


def hand_in_tables(case: int, policy: np.ndarray, actions: tuple[int, ...]) -> list:
    """The same of the vectorised one, in the slot that begins with that case."""
    environment = SelfPlayVecEnv(len(CASES))
    environment.set_opponent(policy)
    seen = environment.reset()
    shown = [(seen[case].tolist(), environment.action_masks()[case].tolist())]
    for action in actions:
        masks = environment.action_masks()
        if not masks[case][action]:
            return [*shown, "illegal"]
        chosen = masks.argmax(axis=1)
        chosen[case] = action
        seen, rewards, dones, infos = environment.step(chosen)
        if dones[case]:
            end = infos[case]["terminal_observation"].tolist()
            return [*shown, (end, float(rewards[case]), True)]
        shown.append(
            (seen[case].tolist(), environment.action_masks()[case].tolist(), float(rewards[case]))
        )
    return shown


def test_the_plain_environment_is_one_that_sb3_accepts() -> None:
    check_env(SelfPlayEnv())


def test_both_environments_show_the_same_in_every_hand() -> None:
    plain, hands = SelfPlayEnv(), 0
    for case, policy in product(range(len(CASES)), pure_policies()):
        for actions in product(range(3), repeat=2):
            shown = hand(plain, case, policy, actions)
            assert shown == hand_in_tables(case, policy, actions)
            hands += shown[-1] != "illegal"
    assert hands > 12 * 16 * 4


def test_what_a_seat_is_paid_is_its_own() -> None:
    plain, paid = SelfPlayEnv(), set()
    for (case, (deal, seat)), policy in product(enumerate(CASES), pure_policies()):
        for actions in product(range(3), repeat=2):
            end = hand(plain, case, policy, actions)[-1]
            if end != "illegal" and end[-1] is True:
                state = State.new(*deal)
                for move in plain.get_state()["moves"]:
                    state = state.act(move)
                assert end[1] == state.returns[seat]
                paid.add((end[1], seat))
    assert paid == set(product((-2.0, -1.0, 1.0, 2.0), (0, 1)))


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_one_slot_is_the_plain_environment_draw_by_draw(seed: int, choices: int) -> None:
    policy = TabularPolicy.random(seed).probabilities
    plain, fast = SelfPlayEnv(), SelfPlayVecEnv(1, seed=seed)
    for environment in (plain, fast):
        environment.set_opponent(policy)
    (seen, _), block = plain.reset(seed=seed), fast.reset()
    random = np.random.default_rng(choices)
    for _ in range(100):
        assert (seen == block[0]).all()
        assert (plain.action_masks() == fast.action_masks()[0]).all()
        action = random.choice(np.flatnonzero(plain.action_masks()))
        seen, reward, over, _, _ = plain.step(action)
        block, rewards, dones, infos = fast.step(np.array([action]))
        assert (reward, over) == (rewards[0], dones[0])
        if over:
            assert (infos[0]["terminal_observation"] == seen).all()
            seen, _ = plain.reset()


def test_every_case_is_dealt_equally_often() -> None:
    environment, rounds = SelfPlayVecEnv(5), 2
    environment.reset()
    played: list[list[int]] = [[] for _ in range(5)]
    while min(map(len, played)) < rounds * len(CASES):
        cases = environment._slots.case % len(CASES)
        done = environment.step(environment.action_masks().argmax(axis=1))[2]
        for slot in np.flatnonzero(done):
            played[slot].append(int(cases[slot]))
    for slot, cases in enumerate(played):
        assert sorted(cases[: rounds * len(CASES)]) == sorted([*range(len(CASES))] * rounds)
        assert cases[0] == slot
    assert len(set(CASES)) == 2 * len(DEALS)


def test_the_mean_reward_is_the_exact_value() -> None:
    policy, tree = TabularPolicy.random(3).probabilities, kuhn_tree()
    environment = SelfPlayVecEnv(6000, seed=1)
    environment.set_opponent(policy)
    environment.reset()
    random, won, hands = np.random.default_rng(2), np.zeros(2), np.zeros(2)
    for _ in range(100):
        rows, seats = environment._rows(), environment._slots.case % 2
        draws = random.random((len(rows), 1))
        _, rewards, dones, _ = environment.step((cumulative(policy)[rows] <= draws).sum(axis=1))
        np.add.at(won, seats[dones], rewards[dones])
        np.add.at(hands, seats[dones], 1)
    values = nash_conv(tree, seated(tree, [policy, policy])).values
    assert np.abs(won / hands - values).max() < 5 * 2 / np.sqrt(hands.min())


def test_nothing_of_the_other_card_is_seen() -> None:
    """A seat's view of a hand, end included, follows from its card and the betting alone."""
    views: dict[tuple[str, int, int], set[bytes]] = {}
    for state in nodes():
        node = _node_of(state)
        for seat in (0, 1):
            row = TABLES.seen[node, seat]
            if row != NOBODY:
                key = (state.letters, seat, int(state.cards[seat]))
                views.setdefault(key, set()).add(TABLES.observations[row].tobytes())
    assert all(len(seen) == 1 for seen in views.values())
    ends = {state.letters for state in nodes() if state.is_terminal}
    at_ends = {next(iter(views[letters, 0, 0])) for letters in ends}
    assert len(at_ends) == 1  # one view for all ends
    for info in SelfPlayVecEnv(1)._infos:
        assert set(info) <= {"terminal_observation"}


def _node_of(state: State) -> int:
    node = int(TABLES.roots[DEALS.index(state.cards)])
    walked = State.new(*state.cards)
    while walked != state:
        action = next(
            a for a in walked.legal_actions if state.letters.startswith(walked.act(a).letters)
        )
        walked, node = walked.act(action), int(TABLES.after[node, action])
    return node


def test_the_tables_are_the_aec_face_node_by_node() -> None:
    assert len(TABLES.actor) == 54
    assert (TABLES.masks == LEGAL).all()
    for state in nodes():
        node, face = _node_of(state), env()
        face.reset(options={"cards": state.cards})
        walked = State.new(*state.cards)
        while walked != state:
            action = next(
                a for a in walked.legal_actions if state.letters.startswith(walked.act(a).letters)
            )
            face.step(action)
            walked = walked.act(action)
        assert TABLES.rewards[node].tolist() == [face.rewards[a] for a in face.possible_agents]
        assert (TABLES.actor[node] == NOBODY) == state.is_terminal
        for seat, agent in enumerate(face.possible_agents):
            if TABLES.seen[node, seat] != NOBODY:
                seen = TABLES.observations[TABLES.seen[node, seat]]
                assert (seen == face.observe(agent)["observation"]).all()


def test_rows_are_in_the_order_of_policies() -> None:
    for row, name in enumerate(INFORMATION_STATES):
        assert TABLES.observations[row, int(name[0])] == 1


def test_a_walk_that_meets_other_decisions_is_refused() -> None:
    with pytest.raises(KuhnError, match="policies list 1"):
        walk(env(), DEALS, [TABLES.observations[0]])


@pytest.mark.parametrize("action", [2, 3, -1])
def test_an_illegal_action_is_refused_and_changes_nothing(action: int) -> None:
    plain, fast = SelfPlayEnv(), SelfPlayVecEnv(4)
    plain.reset()
    fast.reset()
    before = fast.get_state()
    with pytest.raises(IllegalActionError, match="illegal"):
        fast.step(np.array([0, 0, action, 0]))
    assert fast.get_state() == before
    with pytest.raises(KuhnError):
        plain.step(np.int64(action))
    assert plain.get_state()["moves"] == []


@pytest.mark.parametrize("make", [lambda: SelfPlayVecEnv(7), lambda: DummyVecEnv([SelfPlayEnv])])
def test_an_environment_goes_on_from_its_state(make) -> None:
    def play(environment) -> list:
        played = []
        for _ in range(20):
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


def test_uniform_and_cumulative_rows_end_in_one() -> None:
    assert (cumulative(uniform(TABLES))[:, -1] == 1).all()
    assert (cumulative(TabularPolicy.random(0).probabilities).max(axis=1) == 1).all()


def test_the_usual_recipe_hands_the_last_actors_reward_to_the_other_seat() -> None:
    turns = TurnsEnv()
    turns.reset(options={"cards": ("J", "K")})
    _, reward, over, _, _ = turns.step(np.int64(Action.BET))
    assert (reward, over) == (0, False)
    seen, reward, over, _, _ = turns.step(np.int64(Action.CHECK_OR_CALL))
    assert (reward, over) == (2, True)  # player_1's gain ends the trajectory of player_0's bet
    assert not turns.action_masks().any()
    assert seen[7] == 1  # finished
