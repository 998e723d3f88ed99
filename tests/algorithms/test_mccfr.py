"""Monte Carlo CFR: unbiased regrets, and averages that converge."""

import numpy as np
import pytest

from algorithms.cfr import VARIANTS
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import nash_conv, reach_probabilities
from algorithms.games.kuhn import kuhn_tree
from algorithms.mccfr import SAMPLING, SamplingSolver
from algorithms.solvers import make_solver
from tests.games import KUHN, KUHN3, LEDUC, tree


@pytest.mark.parametrize("variant", SAMPLING)
@pytest.mark.parametrize("name", ["kuhn", KUHN3, LEDUC])
def test_the_first_regrets_are_right_on_average(variant, name):
    """Player 0 samples against uniform play first, where exact CFR says what to expect."""
    flat = kuhn_tree() if name == "kuhn" else tree(name)
    exact = ExactSolver(flat, VARIANTS["cfr-simultaneous"])
    exact.run(1)
    rows = flat.owner == 0
    runs = 2_000
    samples = np.empty((runs, *flat.legal[rows].shape))
    for seed in range(runs):
        solver = SamplingSolver(flat, variant, seed=seed)
        solver.run(1)
        samples[seed] = solver.regrets()[rows]
    error = samples.std(axis=0) / np.sqrt(runs)
    off = np.abs(samples.mean(axis=0) - exact.regrets()[rows])
    seen = (samples != 0).sum(axis=0) > 30  # enough for a mean to be about normal
    assert seen.any()
    assert (off[seen] <= 5 * error[seen] + 1e-12).all()


DICE3 = "liars_dice(numdice=1,dice_sides=3)"


@pytest.mark.parametrize(
    ("seed", "iterations", "most"),
    [(1, 3_000_000, 0.002), *((seed, 300_000, 0.006) for seed in range(5))],
)
def test_outcome_sampling_arrives(seed, iterations, most):
    """Actions that the others never play stay in the average; without them seed 1 is at 0.047."""
    solver = SamplingSolver(tree(DICE3), "os-mccfr", seed=seed)
    solver.run(iterations)
    assert nash_conv(solver.tree, solver.average_policy()) <= most


@pytest.mark.parametrize("name", [KUHN, KUHN3])
def test_an_average_counts_what_its_owner_reaches(name):
    """An information set counts as its owner's policy reaches it, whatever the others play.

    Player 0 never bets, so the others' decisions after its bet are reached by exploration alone. An
    information set of m nodes adds m times its owner's reach times its policy on average.
    """
    flat = tree(name)
    regret = np.where(flat.choice_action == 0, 1.0, np.where(flat.choice_owner == 0, 0.0, 3.0))
    policy = flat.table_of(regret) / flat.table_of(regret).sum(axis=1, keepdims=True)
    reach = reach_probabilities(flat, policy)
    expected = np.diff(flat.first_member)[flat.choice_infoset] * reach[1:]
    runs = 20_000
    samples = np.empty((runs, flat.num_choices))
    for seed in range(runs):
        solver = SamplingSolver(flat, "os-mccfr", seed=seed)
        solver._regret[:] = regret
        solver.run(1)
        samples[seed] = solver._policy_sum
    error = samples.std(axis=0) / np.sqrt(runs)
    # Player 0's average is taken last, when its regrets have changed.
    later = (flat.choice_owner > 0) & ((samples != 0).sum(axis=0) > 30)
    assert later.sum() > 10
    assert (np.abs(samples.mean(axis=0) - expected)[later] <= 5 * error[later]).all()


@pytest.mark.parametrize("name", [KUHN, KUHN3])
def test_external_sampling_counts_every_player_once(name):
    """By the reach of chance and all players but the one whose regrets are updated.

    Regrets are so large that the run does not change the policy.
    """
    flat = tree(name)
    iterations = 50_000
    solver = SamplingSolver(flat, "es-mccfr")
    solver._regret[:] = 1e12 * (1 + flat.choice_action)
    policy = solver.current_policy()
    reach = reach_probabilities(flat, policy)
    expected = np.zeros(flat.num_choices)
    for node in flat.members:
        infoset = flat.infoset[node]
        updated = (flat.owner[infoset] - 1) % flat.num_players
        others = [p for p in range(flat.num_players) if p != updated]
        weight = flat.chance_reach[node] * reach[flat.sequence[others, node]].prod()
        slots = slice(*flat.first_choice[[infoset, infoset + 1]])
        expected[slots] += weight * policy[infoset, flat.legal[infoset]]
    solver.run(iterations)
    off = np.abs(solver._policy_sum / iterations - expected)
    assert expected.min() > 0
    assert (off < 5 * np.sqrt(expected / iterations)).all()


def exact_regrets(flat, policy, reach):
    """What one iteration adds to each slot's regret on average while all play `policy`."""
    values = flat.returns.copy()
    regrets = np.zeros(flat.num_choices)
    for node in range(flat.num_nodes - 1, -1, -1):
        children = np.arange(*flat.first_child[[node, node + 1]])
        infoset = flat.infoset[node]
        if infoset < 0:
            values[:, node] += (values[:, children] * flat.chance_probability[children]).sum(axis=1)
            continue
        values[:, node] = values[:, children] @ policy[infoset, flat.legal[infoset]]
        owner = flat.owner[infoset]
        others = [p for p in range(flat.num_players) if p != owner]
        weight = flat.chance_reach[node] * reach[flat.sequence[others, node]].prod()
        slots = slice(*flat.first_choice[[infoset, infoset + 1]])
        regrets[slots] += weight * (values[owner, children] - values[owner, node])
    return regrets


@pytest.mark.parametrize("variant", SAMPLING)
def test_regrets_of_three_players_are_right_on_average(variant):
    """Of an uneven policy that stays, for its regrets are so large; in 100 batches."""
    flat = tree(KUHN3)
    solver = SamplingSolver(flat, variant)
    start = np.random.default_rng(0).uniform(1e9, 9e9, flat.num_choices)
    solver._regret[:] = start
    policy = solver.current_policy()
    reach = reach_probabilities(flat, policy)
    batches = np.empty((100, flat.num_choices))
    size = 5_000
    for batch in batches:
        solver._regret[:] = start
        solver.run(size)
        batch[:] = (solver._regret - start) / size
    error = batches.std(axis=0) / np.sqrt(len(batches))
    off = np.abs(batches.mean(axis=0) - exact_regrets(flat, policy, reach))
    assert (off <= 5 * error + 1e-9).all()


@pytest.mark.parametrize(("seed", "figure"), [(0, "0.0199"), (1, "0.0151")])
def test_outcome_sampling_is_as_documented(seed, figure):
    """The first of three figures in docs/solving.md: 100,000 iterations."""
    solver = make_solver(tree(DICE3), "os-mccfr", seed=seed)
    solver.run(100_000)
    assert f"{nash_conv(solver.tree, solver.average_policy()):.4f}" == figure
