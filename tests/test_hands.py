"""Many hands at once: every one of them a hand of the core."""

from dataclasses import replace

import numpy as np
import pytest

from algorithms.exact.tree import CHANCE, TERMINAL, Visit, compile_tree
from algorithms.exact.values import expected_values
from algorithms.games import kuhn
from algorithms.learning import hands as hands_module
from algorithms.learning.board import board_of
from algorithms.learning.hands import Hands
from algorithms.support.draws import STEP, mixed
from kuhn_bridge import BridgeError
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State, nodes
from tests.games import KUHN3, LEDUC


def sight(state):
    """What the player to act sees and may do, as bytes."""
    seat = state.actor
    return state.observe(seat).astype(np.int8).tobytes(), state.mask(seat).tobytes()


def test_every_hand_is_a_hand_of_the_core():
    hands = Hands(601, seed=3)  # two share a draw: the last has one of its own
    dealt = [State.new(*deal) for deal in DEALS]
    possible = [list(dealt) for _ in range(601)]  # what each hand can be, from what was seen
    met = set()
    for _ in range(40):
        seen, legal = hands.look()
        for i, states in enumerate(possible):
            now = seen[i].tobytes(), legal[i].tobytes()
            possible[i] = [state for state in states if sight(state) == now]
            assert possible[i]
            met.update(possible[i])
            assert {state.actor for state in possible[i]} == {hands.seats()[i]}
        actions = hands.random_actions().copy()
        rewards, ended = hands.step(actions)
        for i, states in enumerate(possible):
            after = [state.act(actions[i]) for state in states]
            fits = [
                s for s in after if s.is_terminal == ended[i] and s.returns == tuple(rewards[i])
            ]
            assert fits
            possible[i] = list(dealt) if ended[i] else fits
    assert met == {state for state in nodes() if not state.is_terminal}


def test_a_seed_repeats_everything():
    def play(seed):
        hands = Hands(50, seed=seed)
        return [tuple(a.tobytes() for a in hands.step(hands.random_actions())) for _ in range(20)]

    assert play(1) == play(1) != play(2)


def test_cells_of_equal_size_share_out_unequal_deals():
    from algorithms.learning.hands import _aliases

    for count in range(1, 9):
        shares = np.random.default_rng(count).dirichlet(np.ones(count))
        own, other = _aliases(shares)
        dealt = own + np.bincount(other, 1 - own, count)
        assert dealt / count == pytest.approx(shares)


def test_deals_and_actions_are_equally_likely():
    hands = Hands(60_000, seed=0)
    roots, counts = np.unique(hands._node, return_counts=True)
    assert len(roots) == len(DEALS)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 20.5  # 999 of 1,000 seeds
    for _ in range(30):
        bets = int((hands.random_actions() == 0).sum())
        assert abs(bets - 30_000) < 5 * np.sqrt(15_000)
        hands.step(hands.random_actions())
    fresh = hands._node[np.isin(hands._node, roots)]
    counts = np.unique(fresh, return_counts=True)[1]
    mean = counts.mean()
    assert ((counts - mean) ** 2 / mean).sum() < 20.5


@pytest.mark.parametrize(
    "shares", [[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0, 0.05, 0.9, 0, 0.04, 0.01], [1 / 6] * 6]
)
def test_deals_are_as_likely_as_they_should_be(shares):
    tree = kuhn().tree
    board = board_of(kuhn())._replace(dealt=np.cumsum(shares))
    node = np.zeros(60_000, np.uint8)
    hands_module._deal(hands_module._rules(tree, board), np.uint64(7), node)
    right = np.array(shares)
    found = (node[:, None] == board.deals).mean(axis=0)
    assert (np.abs(found - right) <= 4 * np.sqrt(right * (1 - right) / 60_000)).all()


def test_cards_in_the_middle_of_a_hand_are_equally_likely():
    hands = Hands(24_000, LEDUC, seed=2)
    for _ in range(2):
        hands.step(np.ones(24_000, np.int8))  # both call: a public card comes next
    counts = np.bincount(hands.game.tree.action[hands._node], minlength=6)
    assert ((counts - 4_000) ** 2 / 4_000).sum() < 20.5  # 999 of 1,000 seeds


def test_hands_that_share_a_draw_are_dealt_and_played_apart():
    hands = Hands(60_000, seed=5)
    for _ in range(4):
        first, second = hands.random_actions().reshape(-1, 2).T
        alike = np.corrcoef(first, second)[0, 1]
        assert abs(alike) < 5 / np.sqrt(30_000)
        hands.step(hands.random_actions())
        first, second = hands._node.reshape(-1, 2).T
        alike = np.corrcoef(first, second)[0, 1]
        assert abs(alike) < 5 / np.sqrt(30_000)


def test_first_actions_do_not_follow_from_the_deals():
    hands = Hands(60_000, seed=4)
    alike = np.corrcoef(hands._node[:30_000], hands.random_actions()[::2])[0, 1]
    assert abs(alike) < 5 / np.sqrt(30_000)


def test_actions_beyond_127_keep_their_ids():
    _, legal = hands_module._choices(np.ones((1, 200), bool))
    assert legal.view(f"i{legal.itemsize}")[0].tolist() == list(range(200))


@pytest.mark.parametrize("bad", [2, 3, -1, 100])
def test_an_illegal_action_changes_nothing(bad):
    hands = Hands(8, seed=0)
    before = hands.look()[0].copy()
    actions = hands.random_actions()
    actions[5] = bad
    with pytest.raises(BridgeError, match=f"action {bad} is illegal in hand 5"):
        hands.step(actions)
    assert np.array_equal(hands.look()[0], before)


def test_an_action_below_0_is_not_counted_from_the_end():
    hands = Hands(8, seed=0)
    hands.step(np.ones(8, np.int8))  # all bet, so that 2, the last ID, is legal
    actions = np.full(8, 2, np.int8)
    actions[5] = -1
    with pytest.raises(BridgeError, match="action -1 is illegal in hand 5"):
        hands.step(actions)
    assert hands.step(np.full(8, 2, np.int8))[1].all()


@pytest.mark.parametrize("actions", [np.zeros(7, np.int8), np.zeros((8, 1), np.int8)])
def test_as_many_actions_as_hands(actions):
    with pytest.raises(BridgeError, match="8 hands want as many actions"):
        Hands(8, seed=0).step(actions)


@pytest.mark.parametrize("name", ["kuhn", KUHN3, LEDUC, "liars_dice(numdice=1,dice_sides=3)"])
def test_random_hands_of_any_game_pay_what_they_should(name):
    """Chance in the middle of a hand, three players, and node numbers of more than one byte."""
    hands = Hands(4_000, name, seed=1)
    paid = []
    first = np.ones(4_000, bool)  # one hand of each place: short ones would count too often
    while first.any():
        rewards, ended = hands.step(hands.random_actions())
        paid.append(rewards[ended & first])
        first &= ~ended
    won = np.concatenate(paid)
    tree = hands.game.tree
    error = won.std(axis=0) / np.sqrt(len(won))
    assert len(won) == 4_000
    assert (np.abs(won.mean(axis=0) - expected_values(tree, tree.uniform())) < 5 * error).all()


@pytest.mark.parametrize("batch", range(1, 9))
def test_every_hand_of_a_batch_is_dealt(batch):
    hands = Hands(batch, seed=3)
    assert len(hands._node) % 2 == 0  # two share a draw, and the compiled loop writes both
    for _ in range(20):
        assert (hands.game.tree.infoset[hands._node[:batch]] >= 0).all()
        hands.step(hands.random_actions())


def test_no_hand_draws_what_another_has_drawn():
    """In Kuhn one draw deals; where chance acts later a hand may need one at every depth."""
    assert Hands(2)._rules.draws == 1
    leduc = Hands(2, LEDUC)
    assert leduc._rules.draws == 1 + int(leduc.game.tree.depths().max())


def test_without_a_seed_hands_repeat_too():
    one, two = Hands(100), Hands(100, seed=0)
    assert (one.look()[0] == two.look()[0]).all()


def test_what_was_drawn_is_left_behind():
    """Each hand has as many draws of its own as it may take, at every step."""
    hands = Hands(6, LEDUC, seed=1)
    start = int(hands._draws[0])
    actions = hands.random_actions()
    assert (int(hands._draws[0]) - start) % 2**64 == 6 * int(STEP) % 2**64
    hands.step(actions)
    draws = 1 + hands._rules.draws
    assert (int(hands._draws[0]) - start) % 2**64 == 6 * draws * int(STEP) % 2**64


def test_all_of_a_sight_is_shown():
    """Leduc's 30 numbers and three actions take three pieces of 16 bytes."""
    hands = Hands(500, LEDUC, seed=1)
    for _ in range(5):
        rows = hands.game.tree.infoset[hands._node[:500]]
        seen, legal = hands.look()
        assert (seen == hands.game.observations[rows]).all()
        assert (legal == hands.game.tree.legal[rows]).all()
        hands.step(hands.random_actions())


def test_nothing_is_written_behind_the_last_hand():
    """Two hands share a draw: a third would be in the next pair or, behind the last, nowhere."""
    hands, behind = Hands(8, seed=0), 77
    node = np.resize(hands._node, 12)
    drawn, paid = np.full(12, behind, hands._drawn.dtype), np.full((12, 1), behind, np.uint64)
    over, state = np.ones(12, bool), np.uint64(1)
    hands_module._pick(hands._choices, hands._rules.row, node[:8], state, drawn[:8])
    hands_module._go(hands._rules, node[:8].copy(), state, (node[:8], paid[:8], over[:8]))
    for array in (drawn, paid):
        assert (array[:8] != behind).all()
        assert (array[8:] == behind).all()
    assert over.tolist() == [False] * 8 + [True] * 4


def test_chance_has_draws_of_its_own_for_every_hand():
    """Those after the first B, with which hands are dealt."""
    rules, batch, state = Hands(2, LEDUC)._rules, 50, 2**63 + 5
    asks = np.flatnonzero(rules.state == hands_module.CHANCES)
    there = np.resize(asks[-9:], batch).astype(rules.after.dtype)
    wanted = []
    for hand, node in enumerate(there):
        share = int(mixed(np.uint64((state + (hand + batch) * int(STEP)) % 2**64))) / 2**64
        children = slice(rules.first_child[node], rules.first_child[node + 1])
        wanted.append(children.start + int((rules.chance[children] <= share).sum()))
    hands_module._chance(rules, there, np.uint64(state))
    assert there.tolist() == wanted


def test_chance_may_act_after_the_very_first_move_alone():
    walk = [Visit(0, 0, key="only", legal=(0, 1)), Visit(1, CHANCE, 0)]
    walk += [Visit(2, TERMINAL, card, 0.5, returns=(card,)) for card in (0, 1)]
    walk += [Visit(1, TERMINAL, 1, returns=(0.0,))]
    tree = compile_tree("draw", 1, 2, walk)
    board = board_of(replace(kuhn(), source=replace(kuhn().source, tree=lambda: tree)))
    assert hands_module._rules(tree, board).draws == 1 + 2
