"""Monte Carlo CFR: seeded, right on average, and on its way to equilibrium."""

import numpy as np
import pytest

from algorithms.exact.cfr import CFR_SIMULTANEOUS, Solver
from algorithms.exact.sampling import SamplingSolver
from algorithms.exact.solving import make_solver
from algorithms.exact.values import nash_conv
from algorithms.games.kuhn import kuhn_tree
from tests.games import KUHN, KUHN3, LEDUC, tree

SCHEMES = ["external", "outcome"]


@pytest.mark.parametrize(("scheme", "bound"), [("external", 0.02), ("outcome", 0.06)])
@pytest.mark.parametrize("seed", range(3))
def test_it_approaches_equilibrium(scheme, bound, seed):
    solver = SamplingSolver(kuhn_tree(), scheme, seed=seed)
    solver.run(100)
    early = nash_conv(solver.tree, solver.average_policy())
    solver.run(30_000)
    late = nash_conv(solver.tree, solver.average_policy())
    assert late < min(bound, early)
    assert solver.iteration == 30_100


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_seed_is_a_run(scheme):
    runs = [SamplingSolver(kuhn_tree(), scheme, seed=seed) for seed in (0, 0, 2)]
    runs += [SamplingSolver(kuhn_tree(), scheme)]  # without one it is 0
    runs[0].run(500)
    for run in runs[1:]:
        for _ in range(5):
            run.run(100)
    averages = [run.average_policy() for run in runs]
    assert np.array_equal(averages[0], averages[1])
    assert not np.array_equal(averages[0], averages[2])
    assert np.array_equal(averages[0], averages[3])


@pytest.mark.parametrize(("name", "scheme"), [("es-mccfr", "external"), ("os-mccfr", "outcome")])
def test_a_solver_is_made_by_name_and_seed(name, scheme):
    runs = [SamplingSolver(kuhn_tree(), scheme, seed=7), make_solver(kuhn_tree(), name, seed=7)]
    for run in runs:
        run.run(100)
    assert np.array_equal(runs[0].average_policy(), runs[1].average_policy())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["kuhn", KUHN3, LEDUC])
def test_the_first_regrets_are_right_on_average(scheme, name):
    """Player 0 samples against uniform play first, where exact CFR says what to expect."""
    flat = kuhn_tree() if name == "kuhn" else tree(name)
    exact = Solver(flat, CFR_SIMULTANEOUS)
    exact.run(1)
    rows = flat.owner == 0
    runs = 2_000
    samples = np.empty((runs, *flat.legal[rows].shape))
    for seed in range(runs):
        solver = SamplingSolver(flat, scheme, seed=seed)
        solver.run(1)
        samples[seed] = solver.regrets()[rows]
    error = samples.std(axis=0) / np.sqrt(runs)
    off = np.abs(samples.mean(axis=0) - exact.regrets()[rows])
    seen = (samples != 0).sum(axis=0) > 30  # enough for a mean to be about normal
    assert seen.any()
    assert (off[seen] <= 5 * error[seen] + 1e-12).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_handed_out_is_a_policy(scheme):
    solver = SamplingSolver(tree(LEDUC), scheme)
    solver.run(50)
    for policy in (solver.average_policy(), solver.current_policy()):
        assert policy.sum(axis=1) == pytest.approx(1)
        assert (policy[~solver.tree.legal] == 0).all()
        with pytest.raises(ValueError, match="read-only"):
            policy[0, 0] = 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_played_next_follows_from_the_regrets(scheme):
    solver = SamplingSolver(kuhn_tree(), scheme)
    solver.run(50)
    regrets = np.maximum(solver.regrets(), 0)
    sums = regrets.sum(axis=1, keepdims=True)
    assert (sums > 0).any()
    expected = np.where(sums > 0, regrets / np.maximum(sums, 1e-300), solver.tree.uniform())
    assert solver.current_policy() == pytest.approx(expected, abs=1e-12)


DICE3 = "liars_dice(numdice=1,dice_sides=3)"


@pytest.mark.parametrize(
    ("seed", "iterations", "most"),
    [(1, 3_000_000, 0.002), *((seed, 300_000, 0.006) for seed in range(5))],
)
def test_outcome_sampling_arrives(seed, iterations, most):
    """What the others never play must not drop out of the average: it did, at 0.047 for seed 1."""
    solver = SamplingSolver(tree(DICE3), "outcome", seed=seed)
    solver.run(iterations)
    assert nash_conv(solver.tree, solver.average_policy()) <= most


@pytest.mark.parametrize("name", [KUHN, KUHN3])
def test_an_average_counts_what_its_owner_reaches(name):
    """An information set counts as its owner's policy reaches it, whatever the others play.

    Player 0 never bets, so what the others do after its bet is met by exploring alone. With m
    members, a row adds m times its owner's reach times its policy, on average.
    """
    flat = tree(name)
    regret = np.where(flat.slots[:, 3] == 0, 1.0, np.where(flat.slots[:, 1] == 0, 0.0, 3.0))
    policy = flat.policy_of(regret) / flat.policy_of(regret).sum(axis=1, keepdims=True)
    reach = np.ones(flat.num_slots + 1)
    for slot, (row, _, before, action) in enumerate(flat.slots):
        reach[slot + 1] = reach[before] * policy[row, action]
    expected = np.diff(flat.first_member)[flat.slots[:, 0]] * reach[1:]
    runs = 20_000
    samples = np.empty((runs, flat.num_slots))
    for seed in range(runs):
        solver = SamplingSolver(flat, "outcome", seed=seed)
        solver._regret[:] = regret
        solver.run(1)
        samples[seed] = solver._sum
    error = samples.std(axis=0) / np.sqrt(runs)
    # Player 0's average is taken last, when its regrets have changed.
    later = (flat.slots[:, 1] > 0) & ((samples != 0).sum(axis=0) > 30)
    assert later.sum() > 10
    assert (np.abs(samples.mean(axis=0) - expected)[later] <= 5 * error[later]).all()


@pytest.mark.parametrize("name", [KUHN, KUHN3])
def test_external_sampling_counts_every_player_once(name):
    """As often as chance and all players but the one before it in turn, who tries all, arrive.

    Regrets are so large that the run does not change them.
    """
    flat, iterations = tree(name), 50_000
    solver = SamplingSolver(flat, "external")
    solver._regret[:] = 1e12 * (1 + flat.slots[:, 3])
    policy, likely = solver.current_policy(), np.ones(flat.num_slots + 1)
    for slot, (row, _, before, action) in enumerate(flat.slots):
        likely[slot + 1] = likely[before] * policy[row, action]
    expected = np.zeros(flat.num_slots)
    for node in flat.members:
        row = flat.infoset[node]
        trying = (flat.owner[row] - 1) % flat.num_players
        others = [p for p in range(flat.num_players) if p != trying]
        weight = flat.chance[node] * likely[flat.sequence[others, node]].prod()
        slots = slice(*flat.first_slot[[row, row + 1]])
        expected[slots] += weight * policy[row, flat.legal[row]]
    solver.run(iterations)
    off = np.abs(solver._sum / iterations - expected)
    assert expected.min() > 0
    assert (off < 5 * np.sqrt(expected / iterations)).all()


def exact_regrets(flat, policy, likely):
    """What one iteration adds to each slot's regret on average while all play `policy`."""
    values, regrets = flat.returns.copy(), np.zeros(flat.num_slots)
    for node in range(flat.num_nodes - 1, -1, -1):
        children = np.arange(*flat.first_child[[node, node + 1]])
        row = flat.infoset[node]
        if row < 0:
            values[:, node] += (values[:, children] * flat.edge[children]).sum(axis=1)
            continue
        values[:, node] = values[:, children] @ policy[row, flat.legal[row]]
        owner = flat.owner[row]
        others = [p for p in range(flat.num_players) if p != owner]
        weight = flat.chance[node] * likely[flat.sequence[others, node]].prod()
        slots = slice(*flat.first_slot[[row, row + 1]])
        regrets[slots] += weight * (values[owner, children] - values[owner, node])
    return regrets


@pytest.mark.parametrize("scheme", SCHEMES)
def test_regrets_of_three_players_are_right_on_average(scheme):
    """Of an uneven policy that stays, for its regrets are so large; in 100 batches."""
    flat = tree(KUHN3)
    solver = SamplingSolver(flat, scheme)
    start = np.random.default_rng(0).uniform(1e9, 9e9, flat.num_slots)
    solver._regret[:] = start
    policy, likely = solver.current_policy(), np.ones(flat.num_slots + 1)
    for slot, (row, _, before, action) in enumerate(flat.slots):
        likely[slot + 1] = likely[before] * policy[row, action]
    batches, size = np.empty((100, flat.num_slots)), 5_000
    for batch in batches:
        solver._regret[:] = start
        solver.run(size)
        batch[:] = (solver._regret - start) / size
    error = batches.std(axis=0) / np.sqrt(len(batches))
    off = np.abs(batches.mean(axis=0) - exact_regrets(flat, policy, likely))
    assert (off <= 5 * error + 1e-9).all()


@pytest.mark.parametrize(("seed", "figure"), [(0, "0.0199"), (1, "0.0151")])
def test_outcome_sampling_is_as_documented(seed, figure):
    """The first of three figures in docs/solving.md: 100,000 iterations."""
    solver = make_solver(tree("liars_dice(numdice=1,dice_sides=3)"), "os-mccfr", seed=seed)
    solver.run(100_000)
    assert f"{nash_conv(solver.tree, solver.average_policy()):.4f}" == figure
