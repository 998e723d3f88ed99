"""The checks of the algorithms on Kuhn and Leduc: solvers, NashConv, best responses, equilibria."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import pyspiel
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms import discounted_cfr, exploitability
from open_spiel.python.games import data

from algorithms.compiled import nashconv
from algorithms.compiled.nashconv import evaluate_policy, expected_values
from algorithms.games import Game, kuhn, load_game
from algorithms.kuhn_equilibria import nash
from algorithms.linear_program import Solution, solve_zero_sum
from algorithms.nashconv import Evaluation, Measure
from algorithms.policies import Policy
from algorithms.policies.openspiel_policies import to_python_tabular
from algorithms.solvers import make_solver
from algorithms.support.arrays import Float64Array
from algorithms.tree import Tree
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.rules import AGENTS
from parity.openspiel_measures import (
    EXACT,
    ITERATES,
    KUHN_POKER,
    compare_tables,
    openspiel_nash_conv,
    openspiel_values,
    random_policies,
    tolerance,
)
from parity.plain_code import MakeSolver, compare_plain_code
from parity.registry import CheckSettings, Group, Tally

ALGORITHMS = Group("algorithms")
LEDUC = "leduc_poker"
VALUE = -1 / 18  # of Kuhn for player_0
COMPARED_ITERATIONS = (*range(1, 11), 100, 1000)
CPP_SOLVERS = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}
PYTHON_SOLVERS = {
    "cfr": python_cfr.CFRSolver,
    "cfr+": python_cfr.CFRPlusSolver,
    "lcfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}
LARGEST_ALPHA = 1 / 3
ALPHAS = tuple(Fraction(step, 36) for step in range(13))  # from 0 to 1/3

Evaluate: TypeAlias = Callable[[Tree, Float64Array], Measure]


# ---------------------------------------------------------------------------------------------
# Solvers
# ---------------------------------------------------------------------------------------------


def compare_iterates(
    tally: Tally,
    game: Game,
    make_ours: Callable[[Tree], Any],
    make_theirs: Callable[[pyspiel.Game], Any],
    last_iteration: int,
) -> None:
    """Require the same policies after `COMPARED_ITERATIONS`, up to the last one.

    Current policies are compared in two-player games: with more players rounding decides ties.
    """
    ours = make_ours(game.tree)
    theirs = make_theirs(game.pyspiel_game)
    done = 0
    for iteration in COMPARED_ITERATIONS:
        if iteration > last_iteration:
            break
        ours.run(iteration - done)
        for _ in range(done, iteration):
            theirs.evaluate_and_update_policy()
        done = iteration
        place = f"{game.name}, iteration {iteration}"
        average = ours.average_policy()
        compare_tables(
            tally, f"{place}, average_policy", game.tree, average, theirs.average_policy()
        )
        if game.num_players == len(AGENTS):
            current = ours.current_policy()
            compare_tables(
                tally, f"{place}, current_policy", game.tree, current, theirs.current_policy()
            )


def _compare_with_python(tally: Tally, variant: str, make: MakeSolver) -> None:
    make_ours = partial(make, variant=variant, mode="exact")
    compare_iterates(tally, load_game(KUHN_POKER), make_ours, PYTHON_SOLVERS[variant], 100)


def _compare_with_cpp(
    tally: Tally, variant: str, make_ours: Callable[..., Any], iterations: Mapping[str, int]
) -> None:
    """Compare a variant on some games, each up to an iteration."""
    for name, last_iteration in iterations.items():
        compare_iterates(tally, load_game(name), make_ours, CPP_SOLVERS[variant], last_iteration)


def _check_both(variant: str, tally: Tally, settings: CheckSettings, make: MakeSolver) -> None:
    iterations = {KUHN_POKER: 100, LEDUC: 1} if settings.quick else {KUHN_POKER: 1000, LEDUC: 5}
    make_ours = partial(make, variant=variant, mode="exact")
    _compare_with_cpp(tally, variant, make_ours, iterations)
    _compare_with_python(tally, variant, make)


@ALGORITHMS.check("cfr", "CFR, every iterate, against OpenSpiel's C++ and Python solvers")
def _check_cfr(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    _check_both("cfr", tally, settings, make)


@ALGORITHMS.check("cfr+", "CFR+, every iterate, against OpenSpiel's C++ and Python solvers")
def _check_cfr_plus(
    tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver
) -> None:
    _check_both("cfr+", tally, settings, make)


@ALGORITHMS.check("lcfr", "linear CFR, every iterate, against OpenSpiel's Python solver")
def _check_lcfr(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    _compare_with_python(tally, "lcfr", make)


@ALGORITHMS.check("dcfr", "discounted CFR, every iterate, against OpenSpiel's Python solver")
def _check_dcfr(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    _compare_with_python(tally, "dcfr", make)


@ALGORITHMS.check("fast", "the fast mode of CFR and CFR+, against OpenSpiel's C++ solvers")
def _check_fast(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    iterations = {KUHN_POKER: 100, LEDUC: 3} if settings.quick else {KUHN_POKER: 1000, LEDUC: 10}
    for variant in CPP_SOLVERS:
        make_ours = partial(make, variant=variant, mode="fast")
        _compare_with_cpp(tally, variant, make_ours, iterations)


@ALGORITHMS.check("plain", "NashConv and CFR in plain code, against their compiled twins")
def _check_plain(
    tally: Tally,
    settings: CheckSettings,
    *,
    evaluate: Callable[..., Evaluation] = nashconv.evaluation,
    make: MakeSolver = make_solver,
) -> None:
    for name in (KUHN_POKER, LEDUC):
        compare_plain_code(tally, settings, load_game(name), evaluate=evaluate, make=make)


# ---------------------------------------------------------------------------------------------
# Values and best responses
# ---------------------------------------------------------------------------------------------


@ALGORITHMS.check("nashconv", "NashConv of random policies against OpenSpiel's in C++")
def _check_nashconv(
    tally: Tally,
    settings: CheckSettings,
    *,
    nash_conv: Callable[..., float] = nashconv.nash_conv,
    nash_convs: Callable[..., Any] = nashconv.nash_convs,
) -> None:
    """Kuhn with few information sets and Leduc with many; one at a time and in a batch."""
    of_kuhn = dict(random_policies(settings))
    of_leduc = {f"{LEDUC}, policy {seed}": Policy.random(LEDUC, seed) for seed in range(3)}
    for policies in (of_kuhn, of_leduc):
        tree = next(iter(policies.values())).game.tree
        batch = nash_convs(tree, [policy.table for policy in policies.values()])
        for (place, policy), from_batch in zip(policies.items(), batch, strict=True):
            theirs = openspiel_nash_conv(policy)
            alone = nash_conv(tree, policy.table)
            tally.close(place, "has NashConv {}", alone, theirs, EXACT)
            tally.close(f"{place} of a batch", "has NashConv {}", from_batch, theirs, EXACT)


@ALGORITHMS.check("best-response", "what best responses gain against random policies, per player")
def _check_best_response(
    tally: Tally, settings: CheckSettings, *, evaluate: Evaluate = evaluate_policy
) -> None:
    """Gains of each player, by OpenSpiel's `exploitability` with best responses in C++."""
    game = pyspiel.load_game(KUHN_POKER)
    for place, policy in random_policies(settings):
        measure = evaluate(kuhn().tree, policy.table)
        theirs = exploitability.nash_conv(
            game,
            to_python_tabular(policy.game, policy.table),
            return_only_nash_conv=False,
            use_cpp_br=True,
        )
        their_gains = theirs.player_improvements
        for agent, gain, their_gain in zip(AGENTS, measure.gains, their_gains, strict=True):
            tally.close(place, f"lets {agent} gain {{}}", gain, their_gain, EXACT)


def compare_values(
    tally: Tally, settings: CheckSettings, expected_values: Callable[..., Sequence[float]]
) -> None:
    """Expected chips of every player, from OpenSpiel's walk over its own states."""
    for place, policy in random_policies(settings):
        ours = expected_values(policy.game.tree, policy.table)
        for player, value in enumerate(openspiel_values(policy)):
            phrase = f"pays player_{player} {{}}"
            tally.close(place, phrase, ours[player], value, tolerance(policy.game))


@ALGORITHMS.check("values", "the values of random policies for both players")
def _check_values(
    tally: Tally,
    settings: CheckSettings,
    *,
    expected_values: Callable[..., Sequence[float]] = expected_values,
) -> None:
    compare_values(tally, settings, expected_values)


# ---------------------------------------------------------------------------------------------
# Equilibria
# ---------------------------------------------------------------------------------------------


@ALGORITHMS.check("equilibria", "the closed-form equilibria by OpenSpiel's NashConv and own table")
def _check_equilibria(
    tally: Tally,
    settings: CheckSettings,
    *,
    equilibrium: Callable[[Fraction], Float64Array] = nash,
    value: float = VALUE,
) -> None:
    """NashConv 0 and value -1/18 for every alpha; the same probabilities as OpenSpiel's table."""
    for alpha in ALPHAS:
        place = f"alpha = {alpha}"
        policy = Policy(kuhn(), equilibrium(alpha))
        tally.close(place, "has NashConv {}", 0.0, openspiel_nash_conv(policy), EXACT)
        tally.close(place, "has value {}", value, openspiel_values(policy)[0], EXACT)
        their_table = data.kuhn_nash_equilibrium(min(float(alpha), LARGEST_ALPHA))
        theirs = Policy.from_openspiel(their_table, kuhn())
        for name in INFORMATION_STATES:
            for action, probability in policy[name].items():
                phrase = f"plays {action.name} at {name!r} with probability {{}}"
                tally.close(place, phrase, probability, theirs[name][action], EXACT)


@ALGORITHMS.check("lp", "the linear program's value and policy against OpenSpiel's CFR+")
def _check_lp(
    tally: Tally,
    settings: CheckSettings,
    *,
    solve: Callable[[Tree], Solution] = solve_zero_sum,
) -> None:
    """The value of OpenSpiel's average policy is known up to that policy's NashConv."""
    game = pyspiel.load_game(KUHN_POKER)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(300 if settings.quick else 3000):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    their_value = openspiel_values(Policy.from_openspiel(average, kuhn()))[0]
    their_nash_conv = pyspiel.nash_conv(game, average)

    solution = solve(kuhn().tree)
    tally.close(KUHN_POKER, "has value {}", solution.value, their_value, their_nash_conv)
    tally.close(KUHN_POKER, "has value {}", solution.value, VALUE, EXACT)
    our_nash_conv = openspiel_nash_conv(Policy(kuhn(), solution.policy))
    tally.close("the LP's policy", "has NashConv {}", 0.0, our_nash_conv, ITERATES)
