"""The checks of `--game NAME`: our tree of an OpenSpiel game against OpenSpiel's states."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python.algorithms import best_response

from algorithms.exact import values
from algorithms.exact.cfr import VARIANTS
from algorithms.exact.simulator import running_sums
from algorithms.exact.solving import MODES, make_solver
from algorithms.exact.tree import CHANCE, TERMINAL, Tree
from algorithms.games import Game
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.policies import Policy
from algorithms.policies.openspiel import (
    measured_by_openspiel,
    to_openspiel_policy,
    to_pyspiel_tabular,
    to_python_tabular,
)
from algorithms.support.arrays import Float64Array
from kuhn_bridge.errors import GameError
from parity.registry import GAME, Settings, Skipped, Tally, check
from parity.solvers import (
    CPP_SOLVERS,
    ITERATES,
    SolverFactory,
    check_values,
    compare_iterates,
    random_policies,
    tolerance,
)

TIE = 1e-11  # a larger difference of policies comes from regrets that are 0 up to rounding
HANDS, REPLAYED = 2048, 16  # slots of the environment, and those that are replayed
ROUNDS, ROUNDS_QUICK = 30, 12  # hands per slot


@check("tree", GAME, "every node of the tree against OpenSpiel's states")
def check_tree(tally: Tally, settings: Settings) -> None:
    """Actor, legal actions, chance, information state and returns."""
    game = settings.game
    tree, visited = game.tree, 0
    infosets: dict[tuple[int, str], int] = {}
    for node, state in _lockstep(game):
        visited += 1
        where, player = _label(state), state.current_player()
        tally.same(where, "lets {} act", int(tree.player[node]), player)
        children = _children(tree, node)
        actions = [int(tree.action[child]) for child in children]
        if player == TERMINAL:
            tally.same(where, "pays {}", tree.returns[:, node].tolist(), list(state.returns()))
        elif player == CHANCE:
            edges = zip(actions, children, strict=True)
            ours = [(action, float(tree.chance_probability[child])) for action, child in edges]
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
def check_observations(tally: Tally, settings: Settings) -> None:
    """At every node, so all nodes of an information set must have the same tensor."""
    game = settings.game
    try:
        observations = game.observations
    except GameError as reason:
        raise Skipped(str(reason)) from None
    for node, state in _lockstep(game):
        if (player := state.current_player()) >= 0:
            tensor = np.asarray(state.information_state_tensor(player), np.float32)
            ours = observations[game.tree.infoset[node]]
            tally.same(_label(state), "observes {}", ours.tolist(), tensor.tolist())


check("values", GAME, "the values of random policies, by OpenSpiel's own walk")(check_values)


@check("best-response", GAME, "the values of best responses to random policies")
def check_best_response(
    tally: Tally, settings: Settings, *, evaluate: Callable[..., Any] = values.evaluate_policy
) -> None:
    """The best values of all players, and the values of our best responses when they are played."""
    for where, policy in random_policies(settings):
        theirs, tree = policy.to_openspiel(), policy.game.tree
        measure = evaluate(tree, policy.table)
        responses = values.pure_policy(tree, measure.best_responses)
        for player in range(tree.num_players):
            response = best_response.BestResponsePolicy(theirs.game, player, theirs)
            best = float(response.value(theirs.game.new_initial_state()))
            phrase = f"lets player_{player} win {{}}"
            tally.close(where, phrase, measure.best_values[player], best, tolerance(policy.game))
            joint = [responses if p == player else policy.table for p in range(tree.num_players)]
            won = values.expected_values(tree, values.joint_policy(tree, joint))[player]
            tally.close(f"{where}, played out", phrase, won, best, tolerance(policy.game))


@check("nashconv", GAME, "NashConv and gains of random policies, one at a time and in a batch")
def check_nashconv(
    tally: Tally,
    settings: Settings,
    *,
    evaluate: Callable[..., Any] = values.evaluate_policy,
    nash_convs: Callable[..., Any] = values.nash_convs,
) -> None:
    """Against OpenSpiel's `exploitability`."""
    tree, policies = settings.game.tree, dict(random_policies(settings))
    batch = nash_convs(tree, [policy.table for policy in policies.values()])
    phrase = "has NashConv {}"
    for (where, policy), of_batch in zip(policies.items(), batch, strict=True):
        theirs = measured_by_openspiel(policy.game, policy.table)
        ours, limit = evaluate(tree, policy.table), tolerance(policy.game)
        tally.close(where, phrase, ours.nash_conv, theirs.nash_conv, limit)
        tally.close(f"{where} of a batch", phrase, of_batch, theirs.nash_conv, limit)
        for player, gain in enumerate(theirs.gains):
            text = f"lets player_{player} gain {{}}"
            tally.close(where, text, ours.gains[player], gain, limit)


def _check_solver(
    variant: str, tally: Tally, settings: Settings, *, make: SolverFactory = make_solver
) -> None:
    """Average policies, in two-player games also current ones; alternating updates."""
    game = settings.game
    if not _keys_are_unique(game.tree):
        raise Skipped("OpenSpiel's solvers need different information state strings per player")
    if game.num_players == 1:
        raise Skipped("OpenSpiel's solvers need two players or more")
    ours = partial(make, variant=variant, mode="exact")
    compare_iterates(tally, game, ours, CPP_SOLVERS[variant], upto=5 if settings.quick else 10)


for _variant in CPP_SOLVERS:
    _title = f"{_variant.upper()}, iterate by iterate, against OpenSpiel's C++ solver"
    check(_variant, GAME, _title)(partial(_check_solver, _variant))


@check("fast", GAME, "the fast mode of the CFR family, iterate by iterate, against the exact mode")
def check_fast(tally: Tally, settings: Settings, *, make: SolverFactory = make_solver) -> None:
    """Regrets and averages, until rounding breaks a tie differently in the two modes."""
    tally.ours, tally.theirs = "the fast mode", "the exact one"
    tree = settings.game.tree
    for name in VARIANTS:
        exact, fast = (make(tree, variant=name, mode=mode) for mode in MODES)
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
            tally.close(f"{where}, {tree.keys[own[infoset]]!r}", phrase, *numbers, ITERATES)
        mine, right = (solver.current_policy()[own] for solver in (fast, exact))
        if np.abs(mine - right).max() > TIE:
            return True
    return False


@check("policies", GAME, "random policies to OpenSpiel's three kinds and JSON, and back")
def check_policies(
    tally: Tally,
    settings: Settings,
    *,
    from_document: Callable[..., Policy] = Policy.from_document,
    from_openspiel: Callable[..., Policy] = Policy.from_openspiel,
) -> None:
    """The policy that comes back must be the same bit for bit."""
    for where, policy in random_policies(settings):
        game = policy.game
        back = from_document(json.dumps(policy.to_document()), game)
        tally.holds(where, "JSON gives the same policy back", back == policy)
        kinds: dict[str, Callable[..., Any]] = {"a Python policy": to_openspiel_policy}
        if _keys_are_unique(game.tree):
            kinds |= {"Python's table": to_python_tabular, "C++'s table": to_pyspiel_tabular}
        for kind, convert in kinds.items():
            back = from_openspiel(convert(game, policy.table), game)
            tally.holds(where, f"{kind} gives the same policy back", back == policy)


@check("environment", GAME, "the vectorised self-play environment against OpenSpiel's states")
def check_environment(
    tally: Tally, settings: Settings, *, make_env: Callable[..., Any] = SelfPlayVecEnv
) -> None:
    """Some hands are replayed on OpenSpiel's states; the mean returns of all are compared."""
    game = settings.game
    policy = Policy.random(game, 0).table
    env, rng = make_env(HANDS, game, numbered=True), np.random.default_rng(1)
    env.per_seat_credit = True
    env.reset()
    won: list[list[float]] = [[] for _ in range(game.num_players)]
    rounds, played = ROUNDS_QUICK if settings.quick else ROUNDS, np.zeros(HANDS, int)
    while played.min() < rounds:  # the same number per slot, or short hands would count more
        nodes, infosets, masks = env.simulator.nodes, env.simulator.infosets, env.action_masks()
        actions = (running_sums(policy)[infosets] <= rng.random((HANDS, 1))).sum(axis=1)
        env.step(actions)
        last = env.last_step()
        for slot in np.flatnonzero(last.ended & (played < rounds)).tolist():
            for seat, returns in enumerate(won):
                returns.append(float(last.returns[slot, seat]))
        played += last.ended
        for slot in range(REPLAYED):
            step = Step(
                int(last.acted[slot]),
                int(nodes[slot]),
                int(actions[slot]),
                None if last.ended[slot] else int(env.simulator.nodes[slot]),
                tuple(last.returns[slot].tolist()),
            )
            compare_step(game, step, masks[slot].tolist(), tally)
    for seat, returns in enumerate(won):
        _compare_mean(game, policy, seat, returns, tally)


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
    where = f"seat {step.seat} {_label(state)}"
    tally.same(where, "lets {} act", step.seat, state.current_player())
    legal = set(state.legal_actions())
    tally.same(where, "allows {}", mask, [action in legal for action in range(len(mask))])
    state.apply_action(step.action)
    if step.next_node is None:
        possible = step.returns in _possible_returns(state)
        tally.holds(where, f"the returns {step.returns} are possible", possible)
        return
    moves = tree.history(step.next_node)
    before = len(state.history())
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
        return {tuple(float(np.float32(value)) for value in state.returns())}
    if not state.is_chance_node():
        return set()
    children = (state.child(move) for move in state.legal_actions())
    return set().union(*map(_possible_returns, children))


def _compare_mean(
    game: Game, policy: Float64Array, seat: int, won: Sequence[float], tally: Tally
) -> None:
    """Require that the mean return is the exact value, within five standard errors."""
    exact = values.expected_values(game.tree, policy)[seat]
    error = float(np.std(won) / np.sqrt(len(won)))
    claim = f"{len(won):,} hands win {np.mean(won):.4f} on average, {exact:.4f} exactly"
    tally.holds(f"seat {seat}", claim, bool(abs(np.mean(won) - exact) <= 5 * error + 1e-6))


def _lockstep(game: Game) -> Iterator[tuple[int, Any]]:
    """Every node of the tree with its OpenSpiel state; children are in OpenSpiel's order."""
    stack = [(0, game.origin.new_initial_state())]
    while stack:
        node, state = stack.pop()
        yield node, state
        children = _children(game.tree, node)
        for child, action in zip(children, state.legal_actions(), strict=True):
            stack.append((child, state.child(action)))


def _children(tree: Tree, node: int) -> range:
    return range(int(tree.first_child[node]), int(tree.first_child[node + 1]))


def _label(state: Any) -> str:
    return f"after {state.history()}"


def _keys_are_unique(tree: Tree) -> bool:
    return len(set(tree.keys)) == len(tree.keys)
