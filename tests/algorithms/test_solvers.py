"""What all solvers have in common, by the names of their variants; and measured runs."""

import signal
import threading
import time
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from algorithms import cfr
from algorithms.cfr import VARIANTS
from algorithms.compiled.cfr import FastSolver
from algorithms.compiled.cfr_exact import ExactSolver
from algorithms.compiled.nashconv import evaluate_policy, nash_conv
from algorithms.games.kuhn import kuhn_tree
from algorithms.mccfr import SAMPLING
from algorithms.solvers import MODES, NAMES, SAVE, make_solver, run_solver
from kuhn_bridge.errors import BridgeError, GameError
from tests.games import LEDUC, tree

TREE = kuhn_tree()
PREDICTIVE = ("pcfr+", "pdcfr+")
MAKERS = {
    **{
        f"{name}, {mode}": partial(make_solver, variant=name, mode=mode)
        for name, mode in product(VARIANTS, MODES)
    },
    **{name: partial(make_solver, variant=name) for name in SAMPLING},
}
every_solver = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def tables(solver):
    return solver.average_policy(), solver.current_policy(), solver.regrets()


@every_solver
def test_it_converges(make):
    solver = make(TREE)
    assert all((table == TREE.uniform()).all() for table in tables(solver)[:2])
    solver.run(100)
    early = nash_conv(TREE, solver.average_policy())
    solver.run(7_900)
    assert nash_conv(TREE, solver.average_policy()) < min(0.06, early)
    assert solver.iterations == 8_000


@every_solver
def test_many_iterations_are_many_times_one(make, monkeypatch):
    once = make(TREE)
    often = make(TREE)
    parts = make(TREE)
    once.run(30)
    for _ in range(30):
        often.run(1)
        often.run(0)
    monkeypatch.setattr(cfr, "MAX_NODE_VISITS", 7 * TREE.num_nodes)  # per compiled call
    parts.run(30)
    assert once.iterations == often.iterations == parts.iterations == 30
    for one, other, third in zip(tables(once), tables(often), tables(parts), strict=True):
        assert np.array_equal(one, other)
        assert np.array_equal(one, third)


@every_solver
def test_results_are_frozen_policies(make):
    solver = make(tree(LEDUC))
    solver.run(10)
    average, current, regrets = results = tables(solver)
    copies = [table.copy() for table in results]
    for policy in (average, current):
        assert policy.sum(axis=1) == pytest.approx(1)
        assert (policy[~solver.tree.legal] == 0).all()
    solver.run(10)
    for table, copy in zip(results, copies, strict=True):
        assert np.array_equal(table, copy)
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = 1
    assert (regrets[~solver.tree.legal] == 0).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PREDICTIVE])
def test_the_current_policy_matches_the_regrets(name):
    solver = make_solver(TREE, name)
    solver.run(50)
    positive = np.maximum(solver.regrets(), 0)
    sums = positive.sum(axis=1, keepdims=True)
    assert (sums > 0).any()
    expected = np.where(sums > 0, positive / np.maximum(sums, 1e-300), TREE.uniform())
    assert solver.current_policy() == pytest.approx(expected, abs=1e-12)


@every_solver
def test_iterations_below_zero_are_refused(make):
    solver = make(TREE)
    with pytest.raises(BridgeError, match="iterations must be 0 or more; got -1"):
        solver.run(-1)


@pytest.mark.parametrize("name", ["cfr+", "os-mccfr"])
def test_ctrl_c_is_heard_in_the_middle_of_a_run(name):
    solver = make_solver(TREE, name)
    solver.run(1)  # compiles
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # on a busy machine it comes at once
        threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
        solver.run(10**10)
    assert time.monotonic() - started < 10
    assert solver.iterations < 10**10


def test_solvers_by_name_mode_and_seed():
    assert type(make_solver(TREE)) is FastSolver
    assert make_solver(TREE).variant == VARIANTS["pdcfr+"]
    assert type(make_solver(TREE, VARIANTS["cfr+"], mode="exact")) is ExactSolver
    assert make_solver(TREE, "cfr", discounts=(1.5, 0, 2)).variant == VARIANTS["dcfr"]
    averages = []
    for options in ({}, {"seed": 0}, {"seed": 7}, {"variant": "os-mccfr", "seed": 0}):
        solver = make_solver(TREE, **{"variant": "es-mccfr"} | options)
        solver.run(100)
        averages.append(solver.average_policy())
    assert [np.array_equal(averages[0], average) for average in averages] == [1, 1, 0, 0]


@pytest.mark.parametrize("name", SAMPLING)
def test_sampling_needs_two_players(name):
    with pytest.raises(GameError, match="has one player; sampling needs two"):
        make_solver(tree("cliff_walking(height=2,width=3,horizon=3)"), name)


def test_a_run_is_measured_ever_less_often():
    seen = []
    solver = make_solver(TREE, "cfr")
    measure = partial(evaluate_policy, TREE)
    solved = run_solver(solver, measure, iterations=1000, progress=lambda n, _: seen.append(n))
    assert seen == [iterations for iterations, _ in solved.curve]
    assert seen[:10] == list(range(1, 11))
    assert seen[-1] == solved.iterations == 1000
    assert all(after <= 1.1 * before + 1 for before, after in pairwise(seen))
    assert solved.curve[-1][1] == solved.measure.nash_conv == nash_conv(TREE, solved.policy)


def test_a_run_goes_on_where_the_solver_is():
    solver = make_solver(TREE, "cfr")
    solver.run(100)
    solved = run_solver(solver, partial(evaluate_policy, TREE), iterations=200)
    assert [iterations for iterations, _ in solved.curve][::6] == [110, 195]
    with pytest.raises(BridgeError, match="iterations must be more than 200; got 200"):
        run_solver(solver, partial(evaluate_policy, TREE), iterations=200)


def test_a_run_stops_at_a_nash_conv():
    solver = make_solver(TREE)
    solved = run_solver(solver, partial(evaluate_policy, TREE), iterations=10**6, until=1e-3)
    *before, last = (nash_conv for _, nash_conv in solved.curve)
    assert last <= 1e-3 < min(before)
    assert solver.iterations == solved.iterations


@every_solver
def test_ctrl_c_leaves_complete_iterations(make, monkeypatch):
    """The interrupt arrives right after a compiled call, before Python does anything else."""
    whole = make(TREE)
    stopped = make(TREE)
    advance = stopped._advance

    def interrupted(iterations):
        advance(iterations)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(stopped, "_advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stopped.run(20)
    assert stopped.iterations == 20
    whole.run(20)
    for one, other in zip(tables(whole), tables(stopped), strict=True):
        assert np.array_equal(one, other)
    whole.run(10)
    stopped.run(10)
    for one, other in zip(tables(whole), tables(stopped), strict=True):
        assert np.array_equal(one, other)


DICE4 = "liars_dice(numdice=1,dice_sides=4)"


@pytest.mark.parametrize(
    ("variant", "iterations", "kind"), [("pcfr+", 1000, "last"), ("cfr+", 1000, "average")]
)
def test_the_better_of_last_and_average_is_returned(variant, iterations, kind):
    measure = partial(evaluate_policy, tree(DICE4))
    runs = {
        save: run_solver(
            make_solver(tree(DICE4), variant),
            measure,
            iterations=iterations,
            save=save,
            along=False,
        )
        for save in SAVE
    }
    other = "average" if kind == "last" else "last"
    assert [runs[save].kind for save in ("best", "average", "last")] == [kind, "average", "last"]
    assert np.array_equal(runs["best"].policy, runs[kind].policy)
    assert runs[kind].measure.nash_conv < runs[other].measure.nash_conv / 5
    assert [len(run.curve) for run in runs.values()] == [1, 1, 1]


def test_until_looks_at_both():
    measure = partial(evaluate_policy, tree(DICE4))
    needed = {
        save: run_solver(
            make_solver(tree(DICE4), "pcfr+"), measure, iterations=10**5, until=1e-6, save=save
        ).iterations
        for save in ("best", "average")
    }
    assert needed["best"] < needed["average"] / 2


def test_a_watcher_may_end_a_run():
    seen = []

    def watch(iterations, nash_conv):
        seen.append((iterations, nash_conv))
        return iterations < 7

    solved = run_solver(
        make_solver(TREE), partial(evaluate_policy, TREE), iterations=50, watch=watch
    )
    assert tuple(seen) == solved.curve
    assert solved.iterations == 7
    assert not solved.interrupted
