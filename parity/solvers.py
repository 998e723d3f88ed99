"""The algorithms: CFR iterate by iterate, values, best responses and equilibria."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import pyspiel
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms import discounted_cfr, expected_game_score, exploitability
from open_spiel.python.games import data

from algorithms.exact import values
from algorithms.exact.kuhn import nash
from algorithms.exact.linear_program import solve_zero_sum
from algorithms.exact.solving import make_solver
from algorithms.exact.tree import Tree
from algorithms.games import Game, kuhn, load_game
from algorithms.games.kuhn import kuhn_tree
from algorithms.policies import Policy
from algorithms.policies.openspiel import to_pyspiel_tabular, to_python_tabular
from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.rules import AGENTS
from parity.registry import Settings, check
from parity.tally import Tally

GROUP = "algorithms"
KUHN_POKER, LEDUC = "kuhn_poker", "leduc_poker"
ITERATES = 1e-9
EXACT = 1e-12
VALUE = -1 / 18
ALPHAS = tuple(Fraction(step, 36) for step in range(13))  # from 0 to 1/3

Rows: TypeAlias = dict[str, dict[int, float]]
SolverFactory: TypeAlias = Callable[..., Any]
"""`make_solver(tree, variant, mode=...)`."""


def random_policies(settings: Settings) -> Iterator[tuple[str, Policy]]:
    """The same 300 random policies every time, 12 of them if quick."""
    for seed in range(12 if settings.quick else 300):
        yield f"random policy {seed}", Policy.random(kuhn(), seed)


def compare_iterates(
    tally: Tally,
    game: Game,
    ours: Callable[[Tree], Any],
    theirs: Callable[[Any], Any],
    *,
    upto: int,
) -> None:
    """Require the same policies after iterations 1..10, 100 and 1,000, up to `upto`.

    Current policies are compared in two-player games: with more players rounding decides ties.
    """
    mine, right, done = ours(game.tree), theirs(game.origin), 0
    kinds = ("average_policy", "current_policy")[: 2 if game.num_players == len(AGENTS) else 1]
    for iteration in [n for n in (*range(1, 11), 100, 1000) if n <= upto]:
        mine.run(iteration - done)
        for _ in range(done, iteration):
            right.evaluate_and_update_policy()
        done = iteration
        for kind in kinds:
            where = f"{game.name}, iteration {iteration}, {kind}"
            rows = _table_rows(game.tree, getattr(mine, kind)())
            compare_rows(tally, where, rows, _policy_rows(getattr(right, kind)(), game.tree.keys))


def compare_rows(tally: Tally, where: str, ours: Rows, theirs: Rows) -> None:
    """Require the same probabilities at every information state."""
    tally.same(where, "has the information states {}", set(ours), set(theirs))
    for name, row in theirs.items():
        for action, probability in row.items():
            phrase = f"plays {action} with probability {{}}"
            mine = ours.get(name, {}).get(action, 0.0)
            tally.close(f"{where}, {name!r}", phrase, mine, probability, ITERATES)


def _table_rows(tree: Tree, table: Float64Array) -> Rows:
    return {
        key: {action: float(table[infoset, action]) for action in tree.legal[infoset].nonzero()[0]}
        for infoset, key in enumerate(tree.keys)
    }


def _policy_rows(policy: Any, keys: Sequence[str]) -> Rows:
    """The probabilities of an OpenSpiel policy, Python's or C++'s, at each information state."""
    if isinstance(policy, pyspiel.Policy):
        return {key: dict(policy.get_state_policy(key)) for key in keys}
    return {
        name: {
            action: float(policy.action_probability_array[row, action])
            for action in policy.legal_actions_mask[row].nonzero()[0]
        }
        for name, row in policy.state_lookup.items()
    }


def openspiel_values(policy: Policy) -> Sequence[float]:
    """Both players' values, as OpenSpiel computes them on its own tree."""
    root = pyspiel.load_game("kuhn_poker").new_initial_state()
    seats = [to_python_tabular(policy.game, policy.table)] * len(AGENTS)
    return [float(value) for value in expected_game_score.policy_value(root, seats)]


@check("cfr", GROUP, "CFR, every iterate, against OpenSpiel's C++ and Python solvers")
def check_cfr(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Average and current policies, alternating updates."""
    peers = (pyspiel.CFRSolver, python_cfr.CFRSolver)
    _compare_with_both(tally, settings, lambda tree: make(tree, "cfr", mode="exact"), peers)


@check("cfr+", GROUP, "CFR+, every iterate, against OpenSpiel's C++ and Python solvers")
def check_cfr_plus(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Average and current policies."""
    peers = (pyspiel.CFRPlusSolver, python_cfr.CFRPlusSolver)
    _compare_with_both(tally, settings, lambda tree: make(tree, "cfr+", mode="exact"), peers)


def _compare_with_both(
    tally: Tally, settings: Settings, ours: Callable[[Tree], Any], peers: tuple[Any, Any]
) -> None:
    """Kuhn with OpenSpiel's C++ and Python solvers, Leduc with C++'s."""
    far, few = (100, 1) if settings.quick else (1000, 5)
    compare_iterates(tally, load_game(KUHN_POKER), ours, peers[0], upto=far)
    compare_iterates(tally, load_game(KUHN_POKER), ours, peers[1], upto=100)
    compare_iterates(tally, load_game(LEDUC), ours, peers[0], upto=few)


@check("lcfr", GROUP, "linear CFR, every iterate, against OpenSpiel's Python solver")
def check_lcfr(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Average and current policies."""
    game, solver = load_game(KUHN_POKER), discounted_cfr.LCFRSolver
    compare_iterates(tally, game, lambda tree: make(tree, "lcfr", mode="exact"), solver, upto=100)


@check("dcfr", GROUP, "discounted CFR, every iterate, against OpenSpiel's Python solver")
def check_dcfr(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Average and current policies."""
    game, solver = load_game(KUHN_POKER), discounted_cfr.DCFRSolver
    compare_iterates(tally, game, lambda tree: make(tree, "dcfr", mode="exact"), solver, upto=100)


@check("fast", GROUP, "the fast mode of CFR and CFR+, against OpenSpiel's C++ solvers")
def check_fast(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Average and current policies, which differ from the exact mode's by rounding only."""
    solvers = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}
    sizes = {KUHN_POKER: 100, LEDUC: 3} if settings.quick else {KUHN_POKER: 1000, LEDUC: 10}
    for (variant, solver), (name, upto) in product(solvers.items(), sizes.items()):

        def ours(tree: Tree, variant: str = variant) -> Any:
            return make(tree, variant, mode="fast")

        compare_iterates(tally, load_game(name), ours, solver, upto=upto)


@check("nashconv", GROUP, "NashConv of random policies against OpenSpiel's in C++")
def check_nashconv(
    tally: Tally,
    settings: Settings,
    *,
    nash_conv: Callable[..., float] = values.nash_conv,
    nash_convs: Callable[..., Any] = values.nash_convs,
) -> None:
    """Kuhn with few information sets and Leduc with many; one at a time and in a batch."""
    leduc = load_game(LEDUC)
    policies = dict(random_policies(settings))
    more = {f"{LEDUC}, policy {seed}": Policy.random(leduc, seed) for seed in range(3)}
    for group, name in ((policies, KUHN_POKER), (more, LEDUC)):
        theirs = pyspiel.load_game(name)
        tree = next(iter(group.values())).game.tree
        batch = nash_convs(tree, [policy.table for policy in group.values()])
        for (where, policy), of_batch in zip(group.items(), batch, strict=True):
            right = pyspiel.nash_conv(theirs, to_pyspiel_tabular(policy.game, policy.table))
            ours = nash_conv(tree, policy.table)
            tally.close(where, "has NashConv {}", ours, right, EXACT)
            tally.close(f"{where} of a batch", "has NashConv {}", of_batch, right, EXACT)


@check("best-response", GROUP, "what each player gains by best-responding to random policies")
def check_best_response(
    tally: Tally, settings: Settings, *, evaluate: Callable[..., Any] = values.evaluate_policy
) -> None:
    """Gains of each player, from OpenSpiel's Python best response."""
    tree, game = kuhn_tree(), pyspiel.load_game("kuhn_poker")
    for where, policy in random_policies(settings):
        ours = evaluate(tree, policy.table)
        theirs = to_python_tabular(policy.game, policy.table)
        found = exploitability.nash_conv(game, theirs, return_only_nash_conv=False, use_cpp_br=True)
        for agent, mine, right in zip(AGENTS, ours.gains, found.player_improvements, strict=True):
            tally.close(where, f"lets {agent} gain {{}}", mine, right, EXACT)


@check("values", GROUP, "the values of random policies for both players")
def check_values(
    tally: Tally,
    settings: Settings,
    *,
    expected_values: Callable[..., Sequence[float]] = values.expected_values,
) -> None:
    """Expected chips of both players, from OpenSpiel's walk over its own tree."""
    tree = kuhn_tree()
    for where, policy in random_policies(settings):
        ours = expected_values(tree, policy.table)
        for agent, mine, right in zip(AGENTS, ours, openspiel_values(policy), strict=True):
            tally.close(where, f"pays {agent} {{}}", mine, right, EXACT)


@check("equilibria", GROUP, "the closed-form equilibria in OpenSpiel's NashConv, and its own data")
def check_equilibria(
    tally: Tally,
    settings: Settings,
    *,
    equilibrium: Callable[[Fraction], Float64Array] = nash,
    value: float = VALUE,
) -> None:
    """NashConv 0 and value -1/18 for every alpha; the same probabilities as OpenSpiel's table."""
    game = pyspiel.load_game("kuhn_poker")
    for alpha in ALPHAS:
        where, policy = f"alpha = {alpha}", Policy(kuhn(), equilibrium(alpha))
        found = pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table))
        tally.close(where, "has NashConv {}", 0.0, found, EXACT)
        tally.close(where, "has value {}", value, openspiel_values(policy)[0], EXACT)
        theirs = Policy.from_openspiel(data.kuhn_nash_equilibrium(min(float(alpha), 1 / 3)), kuhn())
        for name in INFORMATION_STATES:
            for action, probability in policy[name].items():
                phrase = f"plays {action.name} at {name!r} with probability {{}}"
                tally.close(where, phrase, probability, theirs[name][action], EXACT)


@check("lp", GROUP, "the linear program's value and policy against OpenSpiel's CFR+ limit")
def check_lp(
    tally: Tally, settings: Settings, *, solve: Callable[[Tree], Any] = solve_zero_sum
) -> None:
    """OpenSpiel's average policy gives the value up to its own NashConv."""
    game = pyspiel.load_game("kuhn_poker")
    solution = solve(kuhn_tree())
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(300 if settings.quick else 3000):
        solver.evaluate_and_update_policy()
    limit = Policy.from_openspiel(solver.average_policy(), kuhn())
    slack = pyspiel.nash_conv(game, solver.average_policy())
    where, phrase = "kuhn_poker", "has value {}"
    tally.close(where, phrase, solution.value, openspiel_values(limit)[0], slack)
    tally.close(where, phrase, solution.value, VALUE, EXACT)
    mine = to_pyspiel_tabular(kuhn(), solution.policy)
    tally.close("the LP's policy", "has NashConv {}", 0.0, pyspiel.nash_conv(game, mine), ITERATES)
