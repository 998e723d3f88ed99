"""The checks of the algorithms on Kuhn and Leduc, and those of `--game NAME`."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python.algorithms import best_response, discounted_cfr, exploitability
from open_spiel.python.algorithms import cfr as python_cfr
from open_spiel.python.algorithms.expected_game_score import policy_value
from open_spiel.python.games import data

from algorithms import nashconv
from algorithms.cfr import VARIANTS
from algorithms.compiled.simulator import running_sums
from algorithms.games import KUHN, Game, kuhn, load_game
from algorithms.kuhn_equilibria import nash
from algorithms.linear_program import solve_zero_sum
from algorithms.nashconv import evaluate_policy, expected_values
from algorithms.policies import Policy, openspiel_policies
from algorithms.policies.openspiel_policies import to_pyspiel_tabular, to_python_tabular
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.solvers import MODES, make_solver
from algorithms.support.arrays import Float64Array
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.bridge import INFORMATION_STATES
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import AGENTS
from parity.registry import GAME, Settings, Skipped, Subject, Tally, check

GROUP = "algorithms"
KUHN_POKER, LEDUC = "kuhn_poker", "leduc_poker"
EXACT, ITERATES = 1e-12, 1e-9
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
TIE = 1e-11  # a larger difference of policies comes from regrets that are 0 up to rounding
HANDS, REPLAYED = 2048, 16  # slots of the environment, and those that are replayed
ROUNDS, ROUNDS_QUICK = 30, 12  # hands per slot


def random_policies(settings: Settings) -> Iterator[tuple[str, Policy]]:
    """The same policies every time: 300 of Kuhn, 5 of another game, fewer if large or quick."""
    game = settings.game
    few, many = (12, 300) if game.name == KUHN else (1, 5)
    for seed in range(few if settings.quick or game.tree.num_nodes > FEW_NODES else many):
        yield f"random policy {seed}", Policy.random(game, seed)


def tolerance(game: Game) -> float:
    """How far numbers of chips per hand may differ."""
    return EXACT if game.name == KUHN else EXACT_PER_CHIP * max(1, np.abs(game.tree.returns).max())


def compare_iterates(tally: Tally, game: Game, ours: Subject, theirs: Any, upto: int) -> None:
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
    return [float(value) for value in policy_value(theirs.game.new_initial_state(), seats)]


def openspiel_nash_conv(policy: Policy) -> float:
    """NashConv in C++; of Kuhn on `kuhn_poker`."""
    game = policy.game.origin or pyspiel.load_game(KUHN_POKER)
    return float(pyspiel.nash_conv(game, to_pyspiel_tabular(policy.game, policy.table)))


def _lockstep(game: Game) -> Iterator[tuple[int, Any]]:
    """Every node of the tree with its OpenSpiel state; children are in OpenSpiel's order."""
    stack = [(0, game.origin.new_initial_state())]
    while stack:
        node, state = stack.pop()
        yield node, state
        children = range(*game.tree.first_child[node : node + 2].tolist())
        for child, action in zip(children, state.legal_actions(), strict=True):
            stack.append((child, state.child(action)))


@check("tree", GAME, "every node of the tree against OpenSpiel's states")
def _check_tree(tally: Tally, settings: Settings) -> None:
    tree, visited = settings.game.tree, 0
    infosets: dict[tuple[int, str], int] = {}
    for node, state in _lockstep(settings.game):
        visited += 1
        where, player = f"after {state.history()}", state.current_player()
        tally.same(where, "lets {} act", int(tree.player[node]), player)
        children = tree.first_child[node : node + 2]
        actions = tree.action[slice(*children)].tolist()
        if player == TERMINAL:
            tally.same(where, "pays {}", tree.returns[:, node].tolist(), list(state.returns()))
        elif player == CHANCE:
            shares = tree.chance_probability[slice(*children)].tolist()
            ours = list(zip(actions, shares, strict=True))
            tally.same(where, "draws {}", ours, state.chance_outcomes())
        else:
            infoset = int(tree.infoset[node])
            key = (player, state.information_state_string())
            tally.same(where, "knows {}", (int(tree.owner[infoset]), tree.keys[infoset]), key)
            tally.same(where, "is infoset {}", infoset, infosets.setdefault(key, infoset))
            tally.same(where, "allows {}", actions, state.legal_actions())
            legal = np.flatnonzero(tree.legal[infoset]).tolist()
            tally.same(where, "has the legal actions {}", legal, actions)
    tally.same("the whole tree", "has {} nodes", tree.num_nodes, visited)


@check("observations", GAME, "what networks observe against OpenSpiel's information state tensors")
def _check_observations(tally: Tally, settings: Settings) -> None:
    """At every node, so all nodes of an information set must have the same tensor."""
    game = settings.game
    try:
        observations = game.observations
    except GameError as reason:
        raise Skipped(str(reason)) from None
    for node, state in _lockstep(game):
        if (player := state.current_player()) >= 0:
            tensor = np.asarray(state.information_state_tensor(player), np.float32)
            ours = observations[game.tree.infoset[node]].tolist()
            tally.same(f"after {state.history()}", "observes {}", ours, tensor.tolist())


def _check_solver(variant: str, title: str) -> None:
    """Average and current policies: Kuhn's, and Leduc's where there is a solver in C++."""

    @check(variant, GROUP, title)
    def check_solver(tally: Tally, settings: Settings, *, make: Subject = make_solver) -> None:
        ours = partial(make, variant=variant, mode="exact")
        python, cpp = PYTHON_SOLVERS[variant], CPP_SOLVERS.get(variant)
        far, few = (100, 1) if settings.quick else (1000, 5)
        rounds = [(KUHN_POKER, cpp, far), (LEDUC, cpp, few)] if cpp else []
        for name, solver, upto in (*rounds, (KUHN_POKER, python, 100)):
            compare_iterates(tally, load_game(name), ours, solver, upto)


_check_solver("cfr", "CFR, every iterate, against OpenSpiel's C++ and Python solvers")
_check_solver("cfr+", "CFR+, every iterate, against OpenSpiel's C++ and Python solvers")
_check_solver("lcfr", "linear CFR, every iterate, against OpenSpiel's Python solver")
_check_solver("dcfr", "discounted CFR, every iterate, against OpenSpiel's Python solver")


@check("fast", GROUP, "the fast mode of CFR and CFR+, against OpenSpiel's C++ solvers")
def _check_fast(tally: Tally, settings: Settings, *, make: Subject = make_solver) -> None:
    sizes = {KUHN_POKER: 100, LEDUC: 3} if settings.quick else {KUHN_POKER: 1000, LEDUC: 10}
    for (variant, solver), (name, upto) in product(CPP_SOLVERS.items(), sizes.items()):
        ours = partial(make, variant=variant, mode="fast")
        compare_iterates(tally, load_game(name), ours, solver, upto)


@check("nashconv", GROUP, "NashConv of random policies against OpenSpiel's in C++")
def _check_nashconv(
    tally: Tally,
    settings: Settings,
    *,
    nash_conv: Subject = nashconv.nash_conv,
    nash_convs: Subject = nashconv.nash_convs,
) -> None:
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
def _check_best_response(
    tally: Tally, settings: Settings, *, evaluate: Subject = evaluate_policy
) -> None:
    """Gains of each player, by OpenSpiel's `exploitability` with best responses in C++."""
    game = pyspiel.load_game(KUHN_POKER)
    for where, policy in random_policies(settings):
        ours = evaluate(kuhn().tree, policy.table)
        theirs = to_python_tabular(policy.game, policy.table)
        found = exploitability.nash_conv(game, theirs, return_only_nash_conv=False, use_cpp_br=True)
        for agent, mine, right in zip(AGENTS, ours.gains, found.player_improvements, strict=True):
            tally.close(where, f"lets {agent} gain {{}}", mine, right, EXACT)


@check("values", GAME, "the values of random policies, by OpenSpiel's own walk")
@check("values", GROUP, "the values of random policies for both players")
def _check_values(
    tally: Tally, settings: Settings, *, expected_values: Subject = expected_values
) -> None:
    """Expected chips of every player, from OpenSpiel's walk over its own states."""
    for where, policy in random_policies(settings):
        ours = expected_values(policy.game.tree, policy.table)
        for player, value in enumerate(openspiel_values(policy)):
            phrase = f"pays player_{player} {{}}"
            tally.close(where, phrase, ours[player], value, tolerance(policy.game))


@check("equilibria", GROUP, "the closed-form equilibria by OpenSpiel's NashConv, and its own table")
def _check_equilibria(
    tally: Tally, settings: Settings, *, equilibrium: Subject = nash, value: float = VALUE
) -> None:
    """NashConv 0 and value -1/18 for every alpha; the same probabilities as OpenSpiel's table."""
    for alpha in ALPHAS:
        where, policy = f"alpha = {alpha}", Policy(kuhn(), equilibrium(alpha))
        tally.close(where, "has NashConv {}", 0.0, openspiel_nash_conv(policy), EXACT)
        tally.close(where, "has value {}", value, openspiel_values(policy)[0], EXACT)
        theirs = Policy.from_openspiel(data.kuhn_nash_equilibrium(min(float(alpha), 1 / 3)), kuhn())
        for name in INFORMATION_STATES:
            for action, probability in policy[name].items():
                phrase = f"plays {action.name} at {name!r} with probability {{}}"
                tally.close(where, phrase, probability, theirs[name][action], EXACT)


@check("lp", GROUP, "the linear program's value and policy against OpenSpiel's CFR+")
def _check_lp(tally: Tally, settings: Settings, *, solve: Subject = solve_zero_sum) -> None:
    """The value of OpenSpiel's average policy is known up to that policy's NashConv."""
    game = pyspiel.load_game(KUHN_POKER)
    solution, solver = solve(kuhn().tree), pyspiel.CFRPlusSolver(game)
    for _ in range(300 if settings.quick else 3000):
        solver.evaluate_and_update_policy()
    limit = Policy.from_openspiel(solver.average_policy(), kuhn())
    slack = pyspiel.nash_conv(game, solver.average_policy())
    for right, distance in ((openspiel_values(limit)[0], slack), (VALUE, EXACT)):
        tally.close(KUHN_POKER, "has value {}", solution.value, right, distance)
    found = openspiel_nash_conv(Policy(kuhn(), solution.policy))
    tally.close("the LP's policy", "has NashConv {}", 0.0, found, ITERATES)


@check("best-response", GAME, "the values of best responses to random policies")
def _check_game_best_response(
    tally: Tally, settings: Settings, *, evaluate: Subject = evaluate_policy
) -> None:
    """The best values of all players, and the values of our best responses when they are played."""
    tree, limit = settings.game.tree, tolerance(settings.game)
    for where, policy in random_policies(settings):
        theirs, measure = policy.to_openspiel(), evaluate(tree, policy.table)
        responses = nashconv.pure_policy(tree, measure.best_responses)
        for player in range(tree.num_players):
            response = best_response.BestResponsePolicy(theirs.game, player, theirs)
            best = float(response.value(theirs.game.new_initial_state()))
            phrase = f"lets player_{player} win {{}}"
            tally.close(where, phrase, measure.best_values[player], best, limit)
            joint = [responses if p == player else policy.table for p in range(tree.num_players)]
            won = expected_values(tree, nashconv.joint_policy(tree, joint))[player]
            tally.close(f"{where}, played out", phrase, won, best, limit)


@check("nashconv", GAME, "NashConv and gains of random policies, one at a time and in a batch")
def _check_game_nashconv(
    tally: Tally,
    settings: Settings,
    *,
    evaluate: Subject = evaluate_policy,
    nash_convs: Subject = nashconv.nash_convs,
) -> None:
    tree, limit = settings.game.tree, tolerance(settings.game)
    policies, phrase = dict(random_policies(settings)), "has NashConv {}"
    batch = nash_convs(tree, [policy.table for policy in policies.values()])
    for (where, policy), of_batch in zip(policies.items(), batch, strict=True):
        theirs = openspiel_policies.measured_by_openspiel(policy.game, policy.table)
        ours = evaluate(tree, policy.table)
        tally.close(where, phrase, ours.nash_conv, theirs.nash_conv, limit)
        tally.close(f"{where} of a batch", phrase, of_batch, theirs.nash_conv, limit)
        for player, gain in enumerate(theirs.gains):
            tally.close(where, f"lets player_{player} gain {{}}", ours.gains[player], gain, limit)


def _check_game_solver(variant: str) -> None:
    """Average policies, in two-player games also current ones; alternating updates."""

    @check(variant, GAME, f"{variant.upper()}, iterate by iterate, against OpenSpiel's C++ solver")
    def check_solver(tally: Tally, settings: Settings, *, make: Subject = make_solver) -> None:
        game = settings.game
        if len(set(game.tree.keys)) < len(game.tree.keys):
            raise Skipped("OpenSpiel's solvers need different information state strings per player")
        if game.num_players == 1:
            raise Skipped("OpenSpiel's solvers need two players or more")
        ours, upto = partial(make, variant=variant, mode="exact"), 5 if settings.quick else 10
        compare_iterates(tally, game, ours, CPP_SOLVERS[variant], upto)


_check_game_solver("cfr")
_check_game_solver("cfr+")


@check("fast", GAME, "the fast mode of the CFR family, iterate by iterate, against the exact mode")
def _check_game_fast(tally: Tally, settings: Settings, *, make: Subject = make_solver) -> None:
    """Regrets and averages, until rounding breaks a tie differently in the two modes."""
    tally.ours, tally.theirs = "the fast mode", "the exact one"
    for name in VARIANTS:
        exact, fast = (make(settings.game.tree, name, mode=mode) for mode in MODES)
        for iteration in range(1, 6 if settings.quick else 11):
            exact.run(1)
            fast.run(1)
            if _compare_solvers(tally, f"{name}, iteration {iteration}", fast, exact):
                break


def _compare_solvers(tally: Tally, where: str, fast: Any, exact: Any) -> bool:
    """Compare two solvers; true if their current policies, and so later iterates, differ."""
    tree = exact.tree
    for player in range(tree.num_players):
        own = np.flatnonzero(tree.owner == player)
        for kind in ("average_policy", "regrets"):
            mine, right = (getattr(solver, kind)()[own] for solver in (fast, exact))
            infoset, action = np.unravel_index(np.abs(mine - right).argmax(), mine.shape)
            phrase = f"has {kind} {{}} for action {action}"
            numbers = float(mine[infoset, action]), float(right[infoset, action])
            spot = f"{where}, {tree.keys[own[infoset]]!r}"
            tally.close(spot, phrase, *numbers, ITERATES)
        mine, right = (solver.current_policy()[own] for solver in (fast, exact))
        if np.abs(mine - right).max() > TIE:
            return True
    return False


@check("policies", GAME, "random policies to OpenSpiel's three kinds and JSON, and back")
def _check_policies(tally: Tally, settings: Settings, *, reader: type[Policy] = Policy) -> None:
    """The policy that comes back must be the same bit for bit."""
    game = settings.game
    kinds: dict[str, Callable[..., Any]] = {
        "a Python policy": openspiel_policies.to_openspiel_policy
    }
    if len(set(game.tree.keys)) == len(game.tree.keys):
        kinds["Python's table"] = to_python_tabular
        kinds["C++'s table"] = to_pyspiel_tabular
    for where, policy in random_policies(settings):
        back = reader.from_document(json.dumps(policy.to_document()), game)
        tally.holds(where, "JSON gives the same policy back", back == policy)
        for kind, convert in kinds.items():
            back = reader.from_openspiel(convert(game, policy.table), game)
            tally.holds(where, f"{kind} gives the same policy back", back == policy)


@check("environment", GAME, "the vectorised self-play environment against OpenSpiel's states")
def _check_environment(
    tally: Tally, settings: Settings, *, make_env: Subject = SelfPlayVecEnv
) -> None:
    """Some hands are replayed on OpenSpiel's states; the mean returns of all are compared."""
    game = settings.game
    policy = Policy.random(game, 0).table
    env = make_env(HANDS, game, guarded=False, numbered=True)
    rng = np.random.default_rng(1)
    env.reset()
    won: list[Any] = []  # all returns of each hand
    rounds, played = ROUNDS_QUICK if settings.quick else ROUNDS, np.zeros(HANDS, int)
    while played.min() < rounds:  # the same number per slot, or short hands would count more
        nodes, infosets, masks = env.simulator.nodes, env.simulator.infosets, env.action_masks()
        actions = (running_sums(policy)[infosets] <= rng.random((HANDS, 1))).sum(axis=1)
        env.step(actions)
        last = env.last_step()
        won.extend(last.returns[last.ended & (played < rounds)].astype(float))
        played += last.ended
        for slot in range(REPLAYED):
            seat, node, action = (int(of[slot]) for of in (last.acted, nodes, actions))
            after = None if last.ended[slot] else int(env.simulator.nodes[slot])
            step = Step(seat, node, action, after, tuple(last.returns[slot].tolist()))
            compare_step(game, step, masks[slot].tolist(), tally)
    means, errors = np.mean(won, axis=0), np.std(won, axis=0) / np.sqrt(len(won))
    for seat, exact in enumerate(expected_values(game.tree, policy)):
        claim = f"{len(won):,} hands win {means[seat]:.4f} on average, {exact:.4f} exactly"
        near = abs(means[seat] - exact) <= 5 * errors[seat] + 1e-6  # five standard errors
        tally.holds(f"seat {seat}", claim, bool(near))


class Step(NamedTuple):
    """One slot's step: the seat that acted and where, the next decision, and all returns."""

    seat: int
    node: int
    action: int
    next_node: int | None  # none if the hand ended
    returns: tuple[float, ...]


def compare_step(game: Game, step: Step, mask: list[bool], tally: Tally) -> None:
    """Replay one step of the environment on OpenSpiel's states."""
    tree, state = game.tree, game.origin.new_initial_state()
    for move in tree.history(step.node):
        state.apply_action(move)
    where = f"seat {step.seat} after {state.history()}"
    tally.same(where, "lets {} act", step.seat, state.current_player())
    legal = set(state.legal_actions())
    tally.same(where, "allows {}", mask, [action in legal for action in range(len(mask))])
    state.apply_action(step.action)
    if step.next_node is None:
        possible = step.returns in _possible_returns(state)
        tally.holds(where, f"the returns {step.returns} are possible", possible)
        return
    moves, before = tree.history(step.next_node), len(state.history())
    tally.same(where, "continues from {}", moves[:before], state.history())
    for move in moves[before:]:
        chance = state.is_chance_node() and move in state.legal_actions()
        tally.holds(where, f"{move} is a move of chance", chance)
        state.apply_action(move)
    actor = int(tree.player[step.next_node])
    tally.same(where, "then lets {} act", actor, state.current_player())
    tally.same(where, "pays {} before the end", step.returns, (0.0,) * tree.num_players)


def _possible_returns(state: Any) -> set[tuple[float, ...]]:
    """All returns that are possible if only chance is left to move, as float32."""
    if state.is_terminal():
        return {tuple(np.asarray(state.returns(), np.float32).tolist())}
    if not state.is_chance_node():
        return set()
    return set().union(*(_possible_returns(state.child(move)) for move in state.legal_actions()))
