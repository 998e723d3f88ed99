"""Many hands at once on a tree: every one of them a hand of the game."""

import numpy as np
import pytest

from algorithms.compiled.nashconv import expected_values, reach_probabilities
from algorithms.compiled.simulator import Simulator, deal_of, new_stream, play_out, playable_tree
from algorithms.games import kuhn, load_game
from algorithms.tree import CHANCE, TERMINAL, TreeBuilder, Visit
from kuhn_bridge import State
from kuhn_bridge.errors import IllegalActionError
from kuhn_bridge.rules import Card
from parity.reference.random_actions import RandomActions
from tests.games import GAMES, KUHN3, LEDUC, tree

TREE = kuhn().tree


def state_at(node: int) -> State:
    """The state of the core at a node of Kuhn's tree."""
    card0, card1, *actions = TREE.history(node)
    state = State.new(Card(card0), Card(card1))
    for action in actions:
        state = state.act(action)
    return state


def test_every_step_is_one_of_the_core() -> None:
    hands = Simulator(TREE, 601, seed=3)
    random_actions = RandomActions(TREE)
    visited = set()
    for _ in range(40):
        before = [state_at(int(node)) for node in hands.nodes]
        visited.update(before)
        assert [state.actor for state in before] == hands.seats.tolist()
        actions = random_actions.draw(hands.infosets)
        hands.step(actions)
        assert [state.actor for state in before] == hands.acted.tolist()
        for i, state in enumerate(before):
            after = state.act(int(actions[i]))
            assert after.is_terminal == hands.ended[i]
            assert after.returns == tuple(hands.returns[i])
            if not after.is_terminal:
                assert state_at(int(hands.nodes[i])) == after
    assert len(visited) == len(TREE.members)  # every decision of the game


@pytest.mark.parametrize("name", [name for name in GAMES if name != "kuhn"])
def test_every_step_is_one_of_openspiel(name: str) -> None:
    game = load_game(name)
    hands = Simulator(game.tree, 20, seed=1)
    random_actions = RandomActions(game.tree)
    for _ in range(10):
        before = hands.nodes
        actions = random_actions.draw(hands.infosets)
        hands.step(actions)
        for i, node in enumerate(before):
            state = game.pyspiel_game.new_initial_state()
            for action in game.tree.history(int(node)):
                state.apply_action(action)
            assert state.current_player() == hands.acted[i]
            state.apply_action(int(actions[i]))
            assert state.is_terminal() or not hands.ended[i] or state.is_chance_node()
            if state.is_terminal():
                assert hands.returns[i] == pytest.approx(np.array(state.returns(), np.float32))
            elif not hands.ended[i]:
                history = game.tree.history(int(hands.nodes[i]))
                assert history[: len(state.history())] == state.history()


def test_a_seed_repeats_everything() -> None:
    def play(seed: int) -> list[bytes]:
        hands = Simulator(tree(LEDUC), 50, seed=seed)
        random_actions = RandomActions(tree(LEDUC))
        played = []
        for _ in range(20):
            hands.step(random_actions.draw(hands.infosets))
            played.append(hands.nodes.tobytes())
        return played

    assert play(1) == play(1) != play(2)


def test_another_seed_deals_other_hands() -> None:
    dealt = [Simulator(tree(LEDUC), 50, seed=seed).nodes.tolist() for seed in range(4)]
    for i, one in enumerate(dealt):
        for other in dealt[:i]:
            assert np.mean(np.equal(one, other)) < 0.5


def test_a_state_continues_as_the_original() -> None:
    original = Simulator(tree(LEDUC), 9, seed=1)
    copy = Simulator(tree(LEDUC), 9, seed=2)
    random_actions = RandomActions(tree(LEDUC))
    for _ in range(7):
        original.step(random_actions.draw(original.infosets))
    copy.set_state(original.get_state())
    for _ in range(20):
        actions = random_actions.draw(original.infosets)
        original.step(actions)
        copy.step(actions)
        assert copy.get_state() == original.get_state()


@pytest.mark.parametrize("name", ["kuhn", LEDUC, KUHN3])
def test_every_deal_comes_as_often_as_chance_has_it(name: str) -> None:
    game = load_game(name).tree
    hands = 5000
    playable = playable_tree(game, {})
    dealt = [deal_of(playable, np.uint64(hand)) for hand in range(hands)]
    counts = np.bincount(dealt, minlength=game.num_nodes)
    nodes = np.flatnonzero(counts)
    assert (game.player[nodes] >= 0).all()
    assert game.chance_reach[nodes].sum() == pytest.approx(1)
    assert np.abs(counts[nodes] - hands * game.chance_reach[nodes]).max() < 4  # drawn: 20 and more


def uneven(*probabilities: float) -> list[Visit]:
    """A game in which chance deals one of several stakes, then the player takes it or not."""
    visits = [Visit(0, CHANCE)]
    for deal, probability in enumerate(probabilities):
        visits.append(Visit(1, 0, deal, probability, str(deal), (0, 1)))
        visits += [Visit(2, TERMINAL, action, returns=(deal * action,)) for action in (0, 1)]
    return visits


def test_uneven_deals_come_as_often_as_they_should() -> None:
    probabilities = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    playable = playable_tree(TreeBuilder("uneven", 1, 2).build(uneven(*probabilities)), {})
    dealt = [deal_of(playable, np.uint64(hand)) - 1 for hand in range(10_000)]
    assert np.abs(np.bincount(dealt) - 10_000 * probabilities).max() < 6


@pytest.mark.parametrize("name", ["kuhn", LEDUC, KUHN3, "tiny_bridge_2p"])
def test_opponents_move_inside_and_win_what_they_should(name: str) -> None:
    game = load_game(name).tree
    policy = game.random(3)
    last = game.num_players - 1
    hands = Simulator(game, 20_000, seed=1, opponents=dict.fromkeys(range(last), policy))
    sums = np.cumsum(policy, axis=1)
    rng = np.random.default_rng(0)
    won = np.zeros(game.num_players)
    count = np.zeros(20_000)
    for _ in range(60):
        assert (hands.seats == last).all()
        draws = rng.random((20_000, 1))
        hands.step((sums[hands.infosets] < draws * sums[hands.infosets][:, -1:]).sum(axis=1))
        first = hands.ended & (count == 0)  # one hand of each: long ones count as much as short
        won += hands.returns[first].sum(axis=0)
        count += first
    # The value of all hands in which the last player has a decision.
    reach = reach_probabilities(game, policy)
    decided = game.terminal_sequence[last] > 0
    weight = (game.chance_reach[game.terminals] * reach[game.terminal_sequence].prod(axis=0))[
        decided
    ]
    exact = game.returns[:, game.terminals[decided]] @ weight / weight.sum()
    assert count.sum() > 19_900
    assert won / count.sum() == pytest.approx(exact, abs=5 * np.abs(exact).max() / 50 + 0.1)


@pytest.mark.parametrize("action", [2, 3, -1])
def test_an_illegal_action_is_refused_and_changes_nothing(action: int) -> None:
    hands = Simulator(TREE, 4)
    before = hands.get_state()
    with pytest.raises(IllegalActionError, match=f"action {action} is illegal in hand 2"):
        hands.step(np.array([0, 0, action, 0]))
    with pytest.raises(IllegalActionError, match="4 hands need as many actions"):
        hands.step(np.array([0, 0]))
    assert hands.get_state() == before


def test_random_actions_are_equally_likely() -> None:
    hands = Simulator(TREE, 60_000, seed=0)
    random_actions = RandomActions(TREE)
    for _ in range(10):
        actions = random_actions.draw(hands.infosets)
        assert TREE.legal[hands.infosets, actions].all()
        assert abs(int((actions == 0).sum()) - 30_000) < 5 * np.sqrt(15_000)
        hands.step(actions)


@pytest.mark.parametrize("seed", range(3))
def test_every_ending_comes_as_often_as_it_should(seed: int) -> None:
    policy = TREE.random(seed)
    hands = 200_000
    playable = playable_tree(TREE, {0: policy, 1: policy})
    count = play_out(playable, hands, new_stream(seed))
    reach = reach_probabilities(TREE, policy)
    expected = (
        hands * TREE.chance_reach[TREE.terminals] * reach[TREE.terminal_sequence].prod(axis=0)
    )
    assert count.sum() == count[TREE.terminals].sum() == hands
    assert (np.abs(count[TREE.terminals] - expected) <= 5 * np.sqrt(expected) + 1e-9).all()
    mean = count @ TREE.returns[0] / hands
    assert mean == pytest.approx(expected_values(TREE, policy)[0], abs=0.02)


def test_an_action_of_probability_0_is_never_drawn() -> None:
    policy = np.zeros(TREE.legal.shape)
    policy[np.arange(12), TREE.legal.argmax(axis=1)] = 1  # check, and call
    count = play_out(playable_tree(TREE, {0: policy, 1: policy}), 10_000, new_stream(0))
    assert set(np.abs(TREE.returns[0, count > 0])) == {1}  # always check-check


def test_rows_that_sum_to_a_little_less_than_1_are_played() -> None:
    """As those of float32 networks do: no draw may lead past the last action."""
    short = TREE.uniform() * (1 - 1e-7)
    assert (playable_tree(TREE, {0: short, 1: short}).policy.max(axis=1) == 1).all()
