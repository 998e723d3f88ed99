"""The checks of the algorithms: CFR, values, best responses and equilibria."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms import discounted_cfr, expected_game_score, exploitability
from open_spiel.python.games import data

from algorithms.exact.kuhn import nash
from algorithms.exact.solving import make_solver
from algorithms.exact.tree import Tree
from algorithms.exact.two_player import solve_zero_sum
from algorithms.exact.values import evaluate_policy, expected_values, nash_conv, nash_convs
from algorithms.games import KUHN, Game, kuhn, load_game
from algorithms.policies import Policy
from algorithms.policies.openspiel import to_pyspiel_tabular, to_python_tabular
from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.rules import AGENTS
from parity.registry import Settings, Tally, check

GROUP = "algorithms"
KUHN_POKER, LEDUC = "kuhn_poker", "leduc_poker"
ITERATES = 1e-9
EXACT = 1e-12
EXACT_PER_CHIP = 1e-10  # times the largest return, in other games than Kuhn
FEW_NODES = 20_000  # OpenSpiel's Python takes seconds above that
VALUE = -1 / 18
CPP_SOLVERS = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}
PYTHON_SOLVERS = {
    "cfr": python_cfr.CFRSolver,
    "cfr+": python_cfr.CFRPlusSolver,
    "lcfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}
ALPHAS = tuple(Fraction(step, 36) for step in range(13))  # from 0 to 1/3


def random_policies(settings: Settings) -> Iterator[tuple[str, Policy]]:
    """The same policies every time: 300 of Kuhn, 5 of another game, fewer if large or quick."""
    game = settings.game
    if game.name == KUHN:
        count = 12 if settings.quick else 300
    else:
        count = 1 if settings.quick or game.tree.num_nodes > FEW_NODES else 5
    for seed in range(count):
        yield f"random policy {seed}", Policy.random(game, seed)


def tolerance(game: Game) -> float:
    """How far numbers of chips per hand may differ."""
    return EXACT if game.name == KUHN else EXACT_PER_CHIP * max(1, np.abs(game.tree.returns).max())


def compare_iterates(
    tally: Tally, game: Game, mine: Any, theirs: Callable[[Any], Any], *, upto: int
) -> None:
    """Require the same policies after iterations 1..10, 100 and 1,000, up to `upto`.

    Current policies are compared in two-player games: with more players rounding decides ties.
    """
    right, done = theirs(game.origin), 0
    kinds = ("average_policy", "current_policy")[: 2 if game.num_players == len(AGENTS) else 1]
    for iteration in [n for n in (*range(1, 11), 100, 1000) if n <= upto]:
        mine.run(iteration - done)
        for _ in range(done, iteration):
            right.evaluate_and_update_policy()
        done = iteration
        for kind in kinds:
            where = f"{game.name}, iteration {iteration}, {kind}"
            compare_tables(tally, where, game.tree, getattr(mine, kind)(), getattr(right, kind)())


def compare_tables(tally: Tally, where: str, tree: Tree, ours: Float64Array, policy: Any) -> None:
    """Require the same probabilities of a table `(I, A)` and of an OpenSpiel policy."""
    known = getattr(policy, "state_lookup", tree.keys)  # C++ policies do not list them
    tally.same(where, "has the information states {}", set(tree.keys), set(known))
    cpp = isinstance(policy, pyspiel.Policy)
    for infoset, key in enumerate(tree.keys):
        theirs = dict(policy.get_state_policy(key)) if cpp else policy.policy_for_key(key)
        for action in np.flatnonzero(tree.legal[infoset]).tolist():
            spot, phrase = f"{where}, {key!r}", f"plays {action} with probability {{}}"
            tally.close(spot, phrase, ours[infoset, action], theirs[action], ITERATES)


def openspiel_values(policy: Policy) -> list[float]:
    """Every player's value, as OpenSpiel computes it on its own states."""
    theirs = policy.to_openspiel()
    seats = [theirs] * policy.game.num_players
    found = expected_game_score.policy_value(theirs.game.new_initial_state(), seats)
    return [float(value) for value in found]


def openspiel_nash_conv(policy: Policy) -> float:
    """NashConv in C++; of Kuhn on `kuhn_poker`."""
    game = policy.game.origin or pyspiel.load_game(KUHN_POKER)
    found: float = pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table))
    return found


def _check_solver(variant: str, title: str) -> None:
    """Average and current policies: Kuhn's, and Leduc's where there is a solver in C++."""

    @check(variant, GROUP, title)
    def check_solver(tally: Tally, settings: Settings) -> None:
        python, cpp = PYTHON_SOLVERS[variant], CPP_SOLVERS.get(variant)
        far, few = (100, 1) if settings.quick else (1000, 5)
        rounds = [(KUHN_POKER, cpp, far), (LEDUC, cpp, few)] if cpp else []
        for name, solver, upto in (*rounds, (KUHN_POKER, python, 100)):
            game = load_game(name)
            ours = make_solver(game.tree, variant, mode="exact")
            compare_iterates(tally, game, ours, solver, upto=upto)


_check_solver("cfr", "CFR, every iterate, against OpenSpiel's C++ and Python solvers")
_check_solver("cfr+", "CFR+, every iterate, against OpenSpiel's C++ and Python solvers")
_check_solver("lcfr", "linear CFR, every iterate, against OpenSpiel's Python solver")
_check_solver("dcfr", "discounted CFR, every iterate, against OpenSpiel's Python solver")


@check("fast", GROUP, "the fast mode of CFR and CFR+, against OpenSpiel's C++ solvers")
def _check_fast(tally: Tally, settings: Settings) -> None:
    sizes = {KUHN_POKER: 100, LEDUC: 3} if settings.quick else {KUHN_POKER: 1000, LEDUC: 10}
    for (variant, solver), (name, upto) in product(CPP_SOLVERS.items(), sizes.items()):
        game = load_game(name)
        ours = make_solver(game.tree, variant, mode="fast")
        compare_iterates(tally, game, ours, solver, upto=upto)


@check("nashconv", GROUP, "NashConv of random policies against OpenSpiel's in C++")
def _check_nashconv(tally: Tally, settings: Settings) -> None:
    """Kuhn with few information sets and Leduc with many; one at a time and in a batch."""
    leduc = {f"{LEDUC}, policy {seed}": Policy.random(LEDUC, seed) for seed in range(3)}
    for group in (dict(random_policies(settings)), leduc):
        tree = next(iter(group.values())).game.tree
        batch = nash_convs(tree, [policy.table for policy in group.values()])
        for (where, policy), of_batch in zip(group.items(), batch, strict=True):
            right = openspiel_nash_conv(policy)
            tally.close(where, "has NashConv {}", nash_conv(tree, policy.table), right, EXACT)
            tally.close(f"{where} of a batch", "has NashConv {}", of_batch, right, EXACT)


@check("best-response", GROUP, "what best responses gain against random policies, for each player")
def _check_best_response(tally: Tally, settings: Settings) -> None:
    """Gains of each player, by OpenSpiel's `exploitability` with best responses in C++."""
    game = pyspiel.load_game(KUHN_POKER)
    for where, policy in random_policies(settings):
        ours = evaluate_policy(kuhn().tree, policy.table)
        theirs = to_python_tabular(policy.game, policy.table)
        found = exploitability.nash_conv(game, theirs, return_only_nash_conv=False, use_cpp_br=True)
        for agent, mine, right in zip(AGENTS, ours.gains, found.player_improvements, strict=True):
            tally.close(where, f"lets {agent} gain {{}}", mine, right, EXACT)


@check("values", GROUP, "the values of random policies for both players")
def check_values(tally: Tally, settings: Settings) -> None:
    """Expected chips of every player, from OpenSpiel's walk over its own states."""
    for where, policy in random_policies(settings):
        ours = expected_values(policy.game.tree, policy.table)
        for player, value in enumerate(openspiel_values(policy)):
            phrase = f"pays player_{player} {{}}"
            tally.close(where, phrase, ours[player], value, tolerance(policy.game))


@check("equilibria", GROUP, "the closed-form equilibria by OpenSpiel's NashConv, and its own table")
def _check_equilibria(tally: Tally, settings: Settings) -> None:
    """NashConv 0 and value -1/18 for every alpha; the same probabilities as OpenSpiel's table."""
    for alpha in ALPHAS:
        where, policy = f"alpha = {alpha}", Policy(kuhn(), nash(alpha))
        tally.close(where, "has NashConv {}", 0.0, openspiel_nash_conv(policy), EXACT)
        tally.close(where, "has value {}", VALUE, openspiel_values(policy)[0], EXACT)
        theirs = Policy.from_openspiel(data.kuhn_nash_equilibrium(min(float(alpha), 1 / 3)), kuhn())
        for name in INFORMATION_STATES:
            for action, probability in policy[name].items():
                phrase = f"plays {action.name} at {name!r} with probability {{}}"
                tally.close(where, phrase, probability, theirs[name][action], EXACT)


@check("lp", GROUP, "the linear program's value and policy against OpenSpiel's CFR+")
def _check_lp(tally: Tally, settings: Settings) -> None:
    """The value of OpenSpiel's average policy is known up to that policy's NashConv."""
    game = pyspiel.load_game(KUHN_POKER)
    solution, solver = solve_zero_sum(kuhn().tree), pyspiel.CFRPlusSolver(game)
    for _ in range(300 if settings.quick else 3000):
        solver.evaluate_and_update_policy()
    limit = Policy.from_openspiel(solver.average_policy(), kuhn())
    slack = pyspiel.nash_conv(game, solver.average_policy())
    phrase = "has value {}"
    tally.close(KUHN_POKER, phrase, solution.value, openspiel_values(limit)[0], slack)
    tally.close(KUHN_POKER, phrase, solution.value, VALUE, EXACT)
    found = openspiel_nash_conv(Policy(kuhn(), solution.policy))
    tally.close("the LP's policy", "has NashConv {}", 0.0, found, ITERATES)
