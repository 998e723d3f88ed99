"""The fast mode: the exact mode's numbers up to rounding, whatever the game looks like."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from algorithms.cfr import VARIANTS
from algorithms.compiled.cfr import WIDTHS, FastSolver, make_layout
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import expected_values, nash_conv, reach_probabilities
from algorithms.tree import CHANCE, TERMINAL, TreeBuilder, Visit
from tests.games import DICE, KUHN, KUHN3, LEDUC, apart, tree

DICE2, DICE3, DICE5 = (f"liars_dice(numdice=1,dice_sides={sides})" for sides in (2, 3, 5))
BRIDGE = "tiny_bridge_2p"
GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3))"
LANES = {KUHN: 4, KUHN3: 1, LEDUC: 6, DICE2: 2, DICE3: 4, DICE: 4, DICE5: 6}
LANES |= {BRIDGE: 1, GOOFSPIEL: 1}


def _high_card(cards):
    """One bet between two hands of many: more hands than lanes."""
    yield Visit(0, CHANCE)
    for first in range(cards):
        yield Visit(1, CHANCE, first, 1 / cards)
        for second in range(cards):
            if second != first:
                won = 1.0 if first > second else -1.0
                yield Visit(2, 0, second, 1 / (cards - 1), f"{first}", (0, 1))
                yield Visit(3, TERMINAL, 0, returns=(won, -won))
                yield Visit(3, 1, 1, key=f"{second}b", legal=(0, 1))
                yield Visit(4, TERMINAL, 0, returns=(1.0, -1.0))
                yield Visit(4, TERMINAL, 1, returns=(2 * won, -2 * won))


def _many_hands():
    return TreeBuilder("high card", 2, 19).build(_high_card(19))


def pair(flat, variant="cfr", iterations=0):
    """Both solvers of a game, after some iterations."""
    solvers = ExactSolver(flat, VARIANTS[variant]), FastSolver(flat, VARIANTS[variant])
    for solver in solvers:
        solver.run(iterations)
    return solvers


def assert_same_after_five_iterations(flat):
    exact, fast = pair(flat, iterations=5)
    assert fast.average_policy() == pytest.approx(exact.average_policy(), abs=1e-10)
    assert fast.regrets() == pytest.approx(exact.regrets(), abs=1e-10)


# Regrets of `pdcfr+` cancel exactly in its second iteration on Kuhn, which is a tie.
WITHOUT_TIES = [
    (name, variant)
    for name in (KUHN, LEDUC, DICE, DICE3, GOOFSPIEL)
    for variant in VARIANTS
    if (name, variant) != (KUHN, "pdcfr+")
]


@pytest.mark.parametrize(("name", "variant"), WITHOUT_TIES)
def test_ten_iterations_are_the_exact_ones(name, variant):
    exact, fast = pair(tree(name), variant)
    # Discounts make small regrets, and those are rough; the more so the higher their weight.
    near = {"cfr": 1e-12, "pdcfr+": 1e-8}.get(variant, 1e-10)
    for _ in range(10):
        exact.run(1)
        fast.run(1)
        assert apart(fast.average_policy(), exact.average_policy()) <= near
        assert apart(fast.regrets(), exact.regrets()) <= near
        assert apart(fast.current_policy(), exact.current_policy()) <= 1e-8


@pytest.mark.parametrize("name", [KUHN3, DICE5, BRIDGE])
def test_averages_after_ten_iterations_of_cfr(name):
    exact, fast = pair(tree(name), iterations=10)
    assert apart(fast.average_policy(), exact.average_policy()) <= 1e-12


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", [KUHN, KUHN3, LEDUC, DICE, DICE3, GOOFSPIEL])
def test_nash_conv_is_the_same_on_the_way(name, variant):
    """To 2%, or as close as the exact mode is to itself when the last bits of payoffs change."""
    flat = tree(name)
    exact, fast = pair(flat, variant)
    for iterations in (10, 100, 1_000):
        right, found = (_measured(solver, flat, iterations) for solver in (exact, fast))
        if abs(found - right) > 0.02 * right + 1e-9:
            assert (name, variant, iterations) in APART
            others = [ExactSolver(_rough(flat, seed), VARIANTS[variant]) for seed in range(8)]
            spread = [right, *(_measured(other, flat, iterations) for other in others)]
            assert 0.98 * min(spread) <= found <= 1.02 * max(spread)


# Where ties let the modes differ by more than 2%.
APART = [
    *((KUHN3, "cfr-simultaneous", iterations) for iterations in (10, 100, 1_000)),
    (KUHN3, "dcfr", 1_000),
    *((LEDUC, variant, 1_000) for variant in ("lcfr", "dcfr")),
    *((name, "lcfr", 1_000) for name in (DICE, DICE3)),
    *((KUHN, "pdcfr+", iterations) for iterations in (10, 100)),
]


def _measured(solver, flat, iterations):
    solver.run(iterations - solver.iterations)
    return nash_conv(flat, solver.average_policy())


def _rough(flat, seed):
    """The game with payoffs that are off in the last bit or two."""
    last_bits = np.random.default_rng(seed).uniform(-4e-16, 4e-16, flat.returns.shape)
    return replace(flat, returns=flat.returns * (1 + last_bits))


@pytest.mark.parametrize(("name", "iterations"), [(KUHN, 400), (DICE3, 1_000), (DICE, 2_000)])
def test_both_reach_a_millionth(name, iterations):
    for solver in pair(tree(name), "pcfr+", iterations):
        assert nash_conv(solver.tree, solver.average_policy()) < 1e-6


@pytest.mark.parametrize(("name", "width"), LANES.items())
def test_lanes_where_hands_are_alike(name, width):
    assert make_layout(tree(name)).width == width


def test_more_hands_than_lanes():
    flat = _many_hands()
    assert make_layout(flat).width == WIDTHS[-1] < 19
    exact, fast = pair(flat, "cfr+", iterations=50)
    assert fast.average_policy() == pytest.approx(exact.average_policy(), abs=1e-10)


@pytest.mark.parametrize("name", [*LANES, "high card"])
def test_a_layout_is_the_game(name):
    """Every choice has a row and a lane of its own, and products pay what the terminals pay."""
    flat = _many_hands() if name == "high card" else tree(name)
    layout = make_layout(flat)
    assert len(np.unique(layout.index)) == flat.num_choices
    policy = flat.random(3)
    reach = reach_probabilities(flat, policy)
    table = np.zeros((layout.num_rows, layout.width))
    table.ravel()[layout.index] = reach[1:]
    table[: flat.num_players, 0] = 1
    first = layout.arrays.first_product
    for player, value in enumerate(expected_values(flat, policy)):
        products = layout.arrays.products[first[player] : first[player + 1]]
        own, which, other, *third = products.T
        rest = np.prod([table[at, 0] for at in third], axis=0)
        paid = np.einsum("bji,bj->bi", layout.arrays.matrices[which], table[other])
        idle = flat.terminal_sequence[player] == 0  # hands that end before the player acts
        early = reach[flat.terminal_sequence[:, idle]].prod(axis=0)
        found = ((paid * table[own]).sum(axis=1) * rest).sum()
        found += flat.terminal_payoff[player, idle] @ early
        assert found == pytest.approx(value, abs=1e-12)


def _at_random(seed):
    """Three hands each, then public moves: two in a row, cards in between, early ends."""

    def walk(depth, hands, moves, here):
        rng = np.random.default_rng([seed, *moves])
        actor = int(rng.integers(CHANCE, 2))
        actions = tuple(range(rng.integers(2, 4)))
        shares = rng.dirichlet(np.ones(len(actions)))
        if len(moves) == 5 or rng.random() < 0.05 * len(moves):
            pays = np.random.default_rng([seed, *hands, 9, *moves]).normal(size=2)
            yield Visit(depth, TERMINAL, *here, returns=tuple(pays))
            return
        if actor == CHANCE:
            yield Visit(depth, CHANCE, *here)
        else:
            key = f"{actor} holds {hands[actor]}: {moves}"
            yield Visit(depth, actor, *here, key=key, legal=actions)
        for action, share in zip(actions, shares, strict=True):
            edge = (action, share if actor == CHANCE else 1.0)
            yield from walk(depth + 1, hands, (*moves, action), edge)

    yield Visit(0, CHANCE)
    for deal in range(9):
        yield from walk(1, divmod(deal, 3), (), (deal, 1 / 9))


@pytest.mark.parametrize("seed", [46, 48, 285, 297])
def test_games_of_no_regular_shape(seed):
    flat = TreeBuilder("random", 2, 9).build(_at_random(seed))
    assert make_layout(flat).width == 4
    assert_same_after_five_iterations(flat)


def _crossed():
    """Chance decides who moves first; then player 0, who has not seen the other's move, again.

    All these last decisions are at one depth, but follow decisions of two depths: in the first hand
    player 0's are where player 1's are in the second and the third, which player 0 tells apart.
    """
    pays = iter(np.random.default_rng(0).normal(size=24))
    yield Visit(0, CHANCE)
    for hand in range(3):
        first, second = (0, 1) if hand == 0 else (1, 0)
        keys = f"0 in {hand}", f"1 in {min(hand, 1)}"
        yield Visit(1, first, hand, 1 / 3, key=keys[first], legal=(0, 1))
        for moves in product((0, 1), repeat=2):
            if moves[1] == 0:
                yield Visit(2, second, moves[0], key=keys[second], legal=(0, 1))
            yield Visit(3, 0, moves[1], key=f"{keys[0]}, {moves[first]}", legal=(0, 1))
            for action, pay in zip((0, 1), pays, strict=False):
                yield Visit(4, TERMINAL, action, returns=(pay, -pay))


def test_rows_of_different_depths_are_not_taken_for_each_other(monkeypatch):
    monkeypatch.setattr("algorithms.compiled.cfr.MIN_DENSITY", 0)  # lanes, whether they pay or not
    flat = TreeBuilder("crossed", 2, 3).build(_crossed())
    assert make_layout(flat).width == 2
    assert_same_after_five_iterations(flat)
