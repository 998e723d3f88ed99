"""The algorithms: CFR iterate by iterate, values, best responses and equilibria."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pyspiel
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms import discounted_cfr, expected_game_score, exploitability
from open_spiel.python.games import data

from algorithms.exact import values
from algorithms.exact.cfr import VARIANTS
from algorithms.exact.kuhn import nash
from algorithms.exact.linear_program import solve_zero_sum
from algorithms.exact.solving import Mode, make_solver
from algorithms.exact.tree import Tree
from algorithms.games import kuhn
from algorithms.games.kuhn import kuhn_tree
from algorithms.games.openspiel import openspiel_tree
from algorithms.policies import Policy
from algorithms.policies.openspiel import to_pyspiel_tabular, to_python_tabular
from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.rules import AGENTS
from parity.registry import Settings, check
from parity.tally import Tally

GROUP = "algorithms"
ITERATES = 1e-9
EXACT = 1e-12
VALUE = -1 / 18
ALPHAS = tuple(Fraction(step, 36) for step in range(13))  # from 0 to 1/3

Rows: TypeAlias = dict[str, dict[int, float]]


def random_policies(settings: Settings) -> Iterator[tuple[str, Policy]]:
    """The same few hundred policies every time."""
    for seed in range(12 if settings.quick else 300):
        yield f"random policy {seed}", Policy.random(kuhn(), seed)


def iterates(
    variant: str,
    theirs: Callable[[pyspiel.Game], Any],
    *,
    game: str,
    upto: int,
    mode: Mode = "exact",
) -> Any:
    """Average and current rows of both sides after iterations 1..10, 100, 1,000 up to `upto`."""
    loaded = pyspiel.load_game(game)
    tree, solver = openspiel_tree(loaded), theirs(loaded)
    ours = make_solver(tree, VARIANTS[variant], mode=mode)
    for iteration in [*range(1, 11), 100, 1000]:
        if iteration > upto:
            return
        for _ in range(ours.iterations, iteration):
            solver.evaluate_and_update_policy()
        ours.run(iteration - ours.iterations)
        where = f"{game}, iteration {iteration}"
        for kind in ("average_policy", "current_policy"):
            mine, right = getattr(ours, kind)(), getattr(solver, kind)()
            yield f"{where}, {kind}", _rows(tree, mine), _asked(right, tree.keys)


def compare_iterates(tally: Tally, found: Any) -> None:
    """Require that both sides play the same at every information state."""
    for where, ours, theirs in found:
        tally.same(where, "has the information states {}", set(ours), set(theirs))
        for name, row in theirs.items():
            for action, probability in row.items():
                phrase = f"plays {action} with probability {{}}"
                spot = f"{where}, {name!r}"
                tally.close(
                    spot, phrase, ours.get(name, {}).get(action, 0.0), probability, ITERATES
                )


def _rows(tree: Tree, policy: Float64Array) -> Rows:
    return {
        key: {action: float(policy[row, action]) for action in tree.legal[row].nonzero()[0]}
        for row, key in enumerate(tree.keys)
    }


def _asked(policy: Any, keys: Sequence[str]) -> Rows:
    """What an OpenSpiel policy, Python's or C++'s, does at each information state."""
    if isinstance(policy, pyspiel.Policy):
        return {key: dict(policy.get_state_policy(key)) for key in keys}
    return {
        name: {
            action: float(policy.action_probability_array[row, action])
            for action in policy.legal_actions_mask[row].nonzero()[0]
        }
        for name, row in policy.state_lookup.items()
    }


def worth(policy: Policy) -> Sequence[float]:
    """What both players win on average, as OpenSpiel finds by walking over its own tree."""
    root = pyspiel.load_game("kuhn_poker").new_initial_state()
    found = expected_game_score.policy_value(
        root, [to_python_tabular(policy.game, policy.table)] * len(AGENTS)
    )
    return [float(chips) for chips in found]


@check("cfr", GROUP, "CFR, every iterate, against OpenSpiel's C++ and Python solvers")
def check_cfr(tally: Tally, settings: Settings) -> None:
    """Average and current policies, alternating updates."""
    far = 100 if settings.quick else 1000
    compare_iterates(tally, iterates("cfr", pyspiel.CFRSolver, game="kuhn_poker", upto=far))
    compare_iterates(tally, iterates("cfr", python_cfr.CFRSolver, game="kuhn_poker", upto=100))
    few = 1 if settings.quick else 5
    compare_iterates(tally, iterates("cfr", pyspiel.CFRSolver, game="leduc_poker", upto=few))


@check("cfr+", GROUP, "CFR+, every iterate, against OpenSpiel's C++ and Python solvers")
def check_cfr_plus(tally: Tally, settings: Settings) -> None:
    """Average and current policies."""
    far = 100 if settings.quick else 1000
    compare_iterates(tally, iterates("cfr+", pyspiel.CFRPlusSolver, game="kuhn_poker", upto=far))
    python = python_cfr.CFRPlusSolver
    compare_iterates(tally, iterates("cfr+", python, game="kuhn_poker", upto=100))
    few = 1 if settings.quick else 5
    compare_iterates(tally, iterates("cfr+", pyspiel.CFRPlusSolver, game="leduc_poker", upto=few))


@check("lcfr", GROUP, "linear CFR, every iterate, against OpenSpiel's Python solver")
def check_lcfr(tally: Tally, settings: Settings) -> None:
    """Average and current policies."""
    compare_iterates(
        tally, iterates("lcfr", discounted_cfr.LCFRSolver, game="kuhn_poker", upto=100)
    )


@check("dcfr", GROUP, "discounted CFR, every iterate, against OpenSpiel's Python solver")
def check_dcfr(tally: Tally, settings: Settings) -> None:
    """Average and current policies."""
    compare_iterates(
        tally, iterates("dcfr", discounted_cfr.DCFRSolver, game="kuhn_poker", upto=100)
    )


@check("fast", GROUP, "the fast mode of CFR and CFR+, against OpenSpiel's C++ solvers")
def check_fast(tally: Tally, settings: Settings) -> None:
    """Average and current policies, which differ from the exact mode's by rounding alone."""
    far, few = (100, 3) if settings.quick else (1000, 10)
    for variant, theirs in (("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)):
        for game, upto in (("kuhn_poker", far), ("leduc_poker", few)):
            found = iterates(variant, theirs, game=game, upto=upto, mode="fast")
            compare_iterates(tally, found)


@check("nashconv", GROUP, "NashConv of random policies against OpenSpiel's in C++")
def check_nashconv(tally: Tally, settings: Settings) -> None:
    """Kuhn with few rows and Leduc with many."""
    tree, game = kuhn_tree(), pyspiel.load_game("kuhn_poker")
    policies = [policy for _, policy in random_policies(settings)]
    together = values.nash_convs(tree, [policy.table for policy in policies])
    for number, policy in enumerate(policies):
        ours = values.nash_conv(tree, policy.table)
        theirs = pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table))
        tally.close(f"random policy {number}", "has NashConv {}", ours, theirs, EXACT)
        tally.close(f"policy {number} of many", "has NashConv {}", together[number], theirs, EXACT)
    leduc = pyspiel.load_game("leduc_poker")
    tree = openspiel_tree(leduc)
    for seed in range(1 if settings.quick else 3):
        table = tree.random(seed)
        rows = {key: list(row.items()) for key, row in _rows(tree, table).items()}
        ours = values.nash_conv(tree, table)
        theirs = pyspiel.nash_conv(leduc, pyspiel.TabularPolicy(rows))
        tally.close(f"leduc_poker, random policy {seed}", "has NashConv {}", ours, theirs, EXACT)


@check("best-response", GROUP, "what each player gains by best-responding to random policies")
def check_best_response(tally: Tally, settings: Settings) -> None:
    """Gains player by player, from OpenSpiel's Python best response."""
    tree, game = kuhn_tree(), pyspiel.load_game("kuhn_poker")
    for where, policy in random_policies(settings):
        ours = values.evaluate_policy(tree, policy.table)
        found = exploitability.nash_conv(
            game,
            to_python_tabular(policy.game, policy.table),
            return_only_nash_conv=False,
            use_cpp_br=True,
        )
        for agent, mine, theirs in zip(AGENTS, ours.gains, found.player_improvements, strict=True):
            tally.close(where, f"lets {agent} gain {{}}", mine, theirs, EXACT)


@check("values", GROUP, "what random policies win on average against each other")
def check_values(tally: Tally, settings: Settings) -> None:
    """Expected chips of both players, from OpenSpiel's walk over its own tree."""
    tree = kuhn_tree()
    for where, policy in random_policies(settings):
        ours = values.expected_values(tree, policy.table)
        for agent, mine, right in zip(AGENTS, ours, worth(policy), strict=True):
            tally.close(where, f"pays {agent} {{}}", mine, right, EXACT)


@check("equilibria", GROUP, "the closed-form equilibria in OpenSpiel's NashConv, and its own data")
def check_equilibria(tally: Tally, settings: Settings) -> None:
    """NashConv 0 and value -1/18 for every alpha; the same numbers in OpenSpiel's table."""
    game = pyspiel.load_game("kuhn_poker")
    for alpha in ALPHAS:
        where, policy = f"alpha = {alpha}", Policy(kuhn(), nash(alpha))
        tally.close(
            where,
            "has NashConv {}",
            0.0,
            pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table)),
            EXACT,
        )
        tally.close(where, "is worth {}", VALUE, worth(policy)[0], EXACT)
        theirs = Policy.from_openspiel(data.kuhn_nash_equilibrium(min(float(alpha), 1 / 3)), kuhn())
        for name in INFORMATION_STATES:
            for action, probability in policy[name].items():
                phrase = f"plays {action.name} at {name!r} with probability {{}}"
                tally.close(where, phrase, probability, theirs[name][action], EXACT)


@check("lp", GROUP, "the linear program's value and policy against OpenSpiel's CFR+ limit")
def check_lp(tally: Tally, settings: Settings) -> None:
    """OpenSpiel's average policy bounds the value by its own NashConv."""
    game = pyspiel.load_game("kuhn_poker")
    solution = solve_zero_sum(kuhn_tree())
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(300 if settings.quick else 3000):
        solver.evaluate_and_update_policy()
    limit = Policy.from_openspiel(solver.average_policy(), kuhn())
    slack = pyspiel.nash_conv(game, solver.average_policy())
    tally.close("kuhn_poker", "is worth {}", solution.value, worth(limit)[0], slack)
    tally.close("kuhn_poker", "is worth {}", solution.value, VALUE, EXACT)
    mine = to_pyspiel_tabular(kuhn(), solution.policy)
    tally.close("the LP's policy", "has NashConv {}", 0.0, pyspiel.nash_conv(game, mine), ITERATES)
