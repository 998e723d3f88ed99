"""The CFR family, iterate by iterate against OpenSpiel's solvers and against the papers."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms import discounted_cfr

from algorithms.cfr import VARIANTS, PlainSolver, counterfactual_regrets
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.tree import CHANCE, TERMINAL, TreeBuilder, Visit
from kuhn_bridge.bridge import INFORMATION_STATES, information_state
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State
from tests.games import DICE, KUHN, KUHN3, LEDUC, apart, game, table, tree

FIRST_TEN = tuple(range(1, 11))
# A player acts at the root, where else chance does.
FIRST_TO_ACT = (
    "turn_based_simultaneous_game("
    "game=goofspiel(imp_info=True,num_cards=3,points_order=descending))"
)


def simultaneous(loaded):
    return python_cfr._CFRSolver(loaded, False, False, False)


CASES = [
    ("cfr", pyspiel.CFRSolver, KUHN, (*FIRST_TEN, 100, 1000)),
    ("cfr+", pyspiel.CFRPlusSolver, KUHN, (*FIRST_TEN, 100, 1000)),
    ("cfr", python_cfr.CFRSolver, KUHN, (*FIRST_TEN, 100)),
    ("cfr+", python_cfr.CFRPlusSolver, KUHN, (*FIRST_TEN, 100)),
    ("lcfr", discounted_cfr.LCFRSolver, KUHN, (*FIRST_TEN, 100)),
    ("dcfr", discounted_cfr.DCFRSolver, KUHN, (*FIRST_TEN, 100)),
    ("cfr-simultaneous", simultaneous, KUHN, (*FIRST_TEN, 100)),
    ("cfr", pyspiel.CFRSolver, KUHN3, (*FIRST_TEN, 100)),
    ("cfr", python_cfr.CFRSolver, KUHN3, FIRST_TEN),
    ("cfr+", pyspiel.CFRPlusSolver, KUHN3, (*FIRST_TEN, 100)),
    ("cfr", pyspiel.CFRSolver, LEDUC, (*FIRST_TEN, 50)),
    ("cfr+", pyspiel.CFRPlusSolver, LEDUC, (*FIRST_TEN, 50)),
    ("cfr", python_cfr.CFRSolver, LEDUC, (1, 2)),
    ("lcfr", discounted_cfr.LCFRSolver, LEDUC, (1, 2, 3)),
    ("dcfr", discounted_cfr.DCFRSolver, LEDUC, (1, 2, 3)),
    ("cfr", pyspiel.CFRSolver, DICE, FIRST_TEN),
    ("cfr+", pyspiel.CFRPlusSolver, DICE, FIRST_TEN),
    ("cfr", pyspiel.CFRSolver, FIRST_TO_ACT, FIRST_TEN),
    ("cfr+", pyspiel.CFRPlusSolver, FIRST_TO_ACT, FIRST_TEN),
]


@pytest.mark.parametrize(("variant", "make", "name", "compared"), CASES)
def test_every_iterate_is_openspiels(variant, make, name, compared):
    flat = tree(name)
    ours = ExactSolver(flat, VARIANTS[variant])
    theirs = make(game(name))
    for iteration in range(1, max(compared) + 1):
        theirs.evaluate_and_update_policy()
        if iteration in compared:
            ours.run(iteration - ours.iterations)
            current, average = (
                table(flat, p()) for p in (theirs.current_policy, theirs.average_policy)
            )
            if flat.num_players == 2:  # the same sums in the same order: the same bits
                assert np.array_equal(ours.current_policy(), current), iteration
            assert apart(ours.current_policy(), current) <= 1e-9, iteration
            assert apart(ours.average_policy(), average) <= 1e-12, iteration


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_plain_equations_give_the_exact_iterates(variant):
    plain = PlainSolver(tree(KUHN3), VARIANTS[variant])
    exact = ExactSolver(tree(KUHN3), VARIANTS[variant])
    for _ in range(3):
        plain.run(1)
        exact.run(1)
        assert apart(plain.regrets(), exact.regrets()) <= 1e-12
        assert apart(plain.current_policy(), exact.current_policy()) <= 1e-12
        assert apart(plain.average_policy(), exact.average_policy()) <= 1e-12


def test_regrets_of_uniform_play_in_kuhn():
    """player_1 with K calls a bet: it wins 2 instead of losing 1, if player_0 bets (1/6 * 1/2)."""
    kuhn = kuhn_tree()
    regrets = kuhn.table_of(counterfactual_regrets(kuhn, kuhn.uniform(), 1))
    king_facing_a_bet = INFORMATION_STATES.index("2b")
    # Two cards of player_0, each bet with probability 1/2; uniform play wins 1/2 on average.
    expected = 2 * (1 / 6) * (1 / 2) * 1.5
    assert regrets[king_facing_a_bet] == pytest.approx([expected, 0, -expected])
    assert not regrets[kuhn.owner == 0].any()


def test_our_own_tree_gives_the_same_iterates():
    """Information sets and actions are numbered differently there; the numbers are the same."""
    trees = kuhn_tree(), tree("python_kuhn_bridge")
    ours, theirs = (ExactSolver(flat, VARIANTS["cfr+"]) for flat in trees)
    order = [theirs.tree.keys.index(key) for key in ours.tree.keys]
    for _ in range(100):
        ours.run(1)
        theirs.run(1)
        assert np.array_equal(ours.current_policy(), theirs.current_policy()[order])


def test_a_wrong_variant_would_be_noticed():
    finals = {}
    for name, variant in VARIANTS.items():
        solver = ExactSolver(kuhn_tree(), variant)
        solver.run(10)
        finals[name] = solver.average_policy()
    for name, one in finals.items():
        for other, two in finals.items():
            assert (name == other) == (np.abs(one - two).max() < 1e-6), (name, other)


# Measured from OpenSpiel 2.0.2: NashConv on Kuhn after 10, 100 and 1,000 iterations.
FIGURES = {
    "cfr": (0.1374, 0.01645, 0.001875),
    "cfr+": (0.0654, 0.00239, 1.75e-4),
    "dcfr": (0.0456, 0.00333, 2.93e-4),
    "lcfr": (0.0425, 0.00218, 1.87e-4),
}


@pytest.mark.parametrize(("name", "figures"), FIGURES.items())
def test_known_figures(name, figures):
    solver = ExactSolver(kuhn_tree(), VARIANTS[name])
    for iterations, figure in zip((10, 100, 1000), figures, strict=True):
        solver.run(iterations - solver.iterations)
        found = nash_conv(solver.tree, solver.average_policy())
        assert found == pytest.approx(figure, rel=5e-3)


class SlowPredictive:
    """PCFR+ as its paper writes it, on dictionaries: an independent and slow reference.

    Farina, Kroer and Sandholm 2021, algorithm 2: with the loss l of iteration t observed,
    z(t) = [z(t-1) + <l, x> 1 - l]+; with the prediction m = l, the next policy is proportional to
    [z(t) + <m, x> 1 - m]+. Losses are negative counterfactual values; averages weigh t squared.
    Xu et al. 2024, PDCFR+: z is discounted, and averages weigh t to a higher power.
    """

    def __init__(self, alpha=np.inf, gamma=2):
        self.alpha = alpha  # PDCFR+ multiplies z by t^alpha / (t^alpha + 1) after each iteration
        self.gamma = gamma
        self.z = {key: {} for key in INFORMATION_STATES}
        self.x = {}
        self.total = {}
        for deal in DEALS:
            self._start(State.new(*deal))

    def _start(self, state):
        if not state.is_terminal:
            actions = state.legal_actions
            key = information_state(state.cards[state.actor], state.letters)
            self.z[key] = dict.fromkeys(actions, 0.0)
            self.x[key] = dict.fromkeys(actions, 1 / len(actions))
            self.total[key] = dict.fromkeys(actions, 0.0)
            for action in actions:
                self._start(state.act(action))

    def iterate(self, t):
        discount = 1 if self.alpha == np.inf else t**self.alpha / (t**self.alpha + 1)
        for seat in (0, 1):
            self.loss = {key: dict.fromkeys(row, 0.0) for key, row in self.x.items()}
            self.own = {}
            for deal in DEALS:
                self._value(State.new(*deal), seat, 1 / 6, 1.0)
            for key, own in self.own.items():
                x = self.x[key]
                loss = self.loss[key]
                mean = sum(loss[a] * x[a] for a in x)
                for a in x:
                    self.total[key][a] += t**self.gamma * own * x[a]
                    self.z[key][a] = discount * max(self.z[key][a] + mean - loss[a], 0)
                theta = {a: max(self.z[key][a] + mean - loss[a], 0) for a in x}
                norm = sum(theta.values())
                self.x[key] = {a: theta[a] / norm if norm else 1 / len(x) for a in x}

    def _value(self, state, seat, others, own):
        if state.is_terminal:
            return state.returns[seat]
        key = information_state(state.cards[state.actor], state.letters)
        row = self.x[key]
        mine = state.actor == seat
        value = 0.0
        for action, share in row.items():
            reach = (others, own * share) if mine else (others * share, own)
            child = self._value(state.act(action), seat, *reach)
            value += share * child
            if mine:
                self.loss[key][action] -= others * child
        if mine:
            self.own[key] = own
        return value


PREDICTIVE = {"pcfr+": SlowPredictive(), "pdcfr+": SlowPredictive(alpha=2.3, gamma=5)}


@pytest.mark.parametrize(("name", "slow"), PREDICTIVE.items())
def test_predictive_variants_are_their_papers(name, slow):
    ours = ExactSolver(kuhn_tree(), VARIANTS[name])
    for t in range(1, 201):
        slow.iterate(t)
        ours.run(1)
        for key, row in zip(ours.tree.keys, ours.average_policy(), strict=True):
            norm = sum(slow.total[key].values())
            for action, total in slow.total[key].items():
                assert row[action] == pytest.approx(total / norm if norm else 0.5, abs=1e-9)
    for key, row in zip(ours.tree.keys, ours.current_policy(), strict=True):
        assert [row[action] for action in slow.x[key]] == pytest.approx(list(slow.x[key].values()))


def test_chance_nodes_of_one_depth_keep_their_own_odds():
    """After 0 a coin pays once in four times, after 1 three times: in card games all are alike."""
    walk = [Visit(0, 0, key="only", legal=(0, 1))]
    for action, odds in ((0, 0.25), (1, 0.75)):
        walk += [Visit(1, CHANCE, action)]
        walk += [
            Visit(2, TERMINAL, won, p, returns=(won,)) for won, p in ((0, 1 - odds), (1, odds))
        ]
    solver = ExactSolver(TreeBuilder("coins", 1, 2).build(walk))
    solver.run(1)
    assert solver.regrets().tolist() == [[-0.25, 0.25]]
