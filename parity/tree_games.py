"""The checks of `--game NAME` for games with a tree: the tree, measures, solvers, environment."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python.algorithms import best_response

from algorithms.compiled.nashconv import (
    evaluate_policy,
    evaluation,
    expected_values,
    nash_convs,
)
from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.nashconv import Evaluation, joint_policy, pure_policy
from algorithms.policies import Policy, openspiel_policies
from algorithms.policies.openspiel_policies import to_pyspiel_tabular, to_python_tabular
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.solvers import make_solver
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.errors import GameError
from parity import registry
from parity.algorithms import CPP_SOLVERS, Evaluate, compare_iterates, compare_values
from parity.openspiel_measures import random_policies, tolerance
from parity.plain_code import MakeSolver, compare_plain_code, compare_runs
from parity.registry import CheckSettings, Group, Skipped, Tally

TREE_GAMES = Group(registry.TREE_GAMES)
NUM_ENVS = 2048  # environments that play side by side
REPLAYED = 16  # of these, whose steps are replayed on OpenSpiel's states
# Hands per environment.
HANDS_EACH = 30
HANDS_EACH_QUICK = 12
STANDARD_ERRORS = 5  # between a mean of hands and the exact value


# ---------------------------------------------------------------------------------------------
# The tree
# ---------------------------------------------------------------------------------------------


def _lockstep(game: Game) -> Iterator[tuple[int, Any]]:
    """Every node of the tree with its OpenSpiel state; children are in OpenSpiel's order."""
    stack = [(0, game.pyspiel_game.new_initial_state())]
    while stack:
        node, state = stack.pop()
        yield node, state
        children = _children(game.tree, node)
        for child, action in zip(children, state.legal_actions(), strict=True):
            stack.append((child, state.child(action)))


def _children(tree: Tree, node: int) -> range:
    return range(int(tree.first_child[node]), int(tree.first_child[node + 1]))


@TREE_GAMES.check("tree", "every node of the tree against OpenSpiel's states")
def _check_tree(tally: Tally, settings: CheckSettings) -> None:
    tree = settings.game.tree
    visited = 0
    infosets: dict[tuple[int, str], int] = {}  # by player and information state string
    for node, state in _lockstep(settings.game):
        visited += 1
        place = f"after {state.history()}"
        player = state.current_player()
        tally.same(place, "lets {} act", int(tree.player[node]), player)
        children = list(_children(tree, node))
        actions = tree.action[children].tolist()
        if player == TERMINAL:
            tally.same(place, "pays {}", tree.returns[:, node].tolist(), list(state.returns()))
        elif player == CHANCE:
            probabilities = tree.chance_probability[children].tolist()
            outcomes = list(zip(actions, probabilities, strict=True))
            tally.same(place, "draws {}", outcomes, state.chance_outcomes())
        else:
            infoset = int(tree.infoset[node])
            ours = (int(tree.owner[infoset]), tree.keys[infoset])
            theirs = (player, state.information_state_string())
            tally.same(place, "knows {}", ours, theirs)
            first = infosets.setdefault(theirs, infoset)
            tally.same(place, "is infoset {}", infoset, first)
            tally.same(place, "allows {}", actions, state.legal_actions())
            legal = np.flatnonzero(tree.legal[infoset]).tolist()
            tally.same(place, "has the legal actions {}", legal, actions)
    tally.same("the whole tree", "has {} nodes", tree.num_nodes, visited)


@TREE_GAMES.check("observations", "what networks observe against information state tensors")
def _check_observations(tally: Tally, settings: CheckSettings) -> None:
    """At every node, so all nodes of an information set must have the same tensor."""
    game = settings.game
    try:
        observations = game.observations
    except GameError as reason:
        raise Skipped(str(reason)) from None
    for node, state in _lockstep(game):
        player = state.current_player()
        if player < 0:
            continue
        tensor = np.asarray(state.information_state_tensor(player), np.float32).tolist()
        observation = observations[game.tree.infoset[node]].tolist()
        tally.same(f"after {state.history()}", "observes {}", observation, tensor)


# ---------------------------------------------------------------------------------------------
# Values and best responses
# ---------------------------------------------------------------------------------------------


@TREE_GAMES.check("values", "the values of random policies, by OpenSpiel's own walk")
def _check_values(
    tally: Tally,
    settings: CheckSettings,
    *,
    expected_values: Callable[..., Sequence[float]] = expected_values,
) -> None:
    compare_values(tally, settings, expected_values)


@TREE_GAMES.check("best-response", "the values of best responses to random policies")
def _check_best_response(
    tally: Tally, settings: CheckSettings, *, evaluate: Evaluate = evaluate_policy
) -> None:
    """The best values of all players, and the values of our best responses when they are played."""
    tree = settings.game.tree
    limit = tolerance(settings.game)
    for place, policy in random_policies(settings):
        theirs = policy.to_openspiel()
        measure = evaluate(tree, policy.table)
        responses = pure_policy(tree, measure.best_responses)
        for player in range(tree.num_players):
            response = best_response.BestResponsePolicy(theirs.game, player, theirs)
            best_value = float(response.value(theirs.game.new_initial_state()))
            phrase = f"lets player_{player} win {{}}"
            tally.close(place, phrase, measure.best_values[player], best_value, limit)
            tables = [policy.table] * tree.num_players
            tables[player] = responses
            played_out = expected_values(tree, joint_policy(tree, tables))[player]
            tally.close(f"{place}, played out", phrase, played_out, best_value, limit)


@TREE_GAMES.check("nashconv", "NashConv and gains of random policies, one at a time and in a batch")
def _check_nashconv(
    tally: Tally,
    settings: CheckSettings,
    *,
    evaluate: Evaluate = evaluate_policy,
    nash_convs: Callable[..., Any] = nash_convs,
) -> None:
    tree = settings.game.tree
    limit = tolerance(settings.game)
    policies = dict(random_policies(settings))
    batch = nash_convs(tree, [policy.table for policy in policies.values()])
    for (place, policy), from_batch in zip(policies.items(), batch, strict=True):
        theirs = openspiel_policies.measured_by_openspiel(policy.game, policy.table)
        ours = evaluate(tree, policy.table)
        phrase = "has NashConv {}"
        tally.close(place, phrase, ours.nash_conv, theirs.nash_conv, limit)
        tally.close(f"{place} of a batch", phrase, from_batch, theirs.nash_conv, limit)
        for player, gain in enumerate(theirs.gains):
            tally.close(place, f"lets player_{player} gain {{}}", ours.gains[player], gain, limit)


# ---------------------------------------------------------------------------------------------
# Solvers
# ---------------------------------------------------------------------------------------------


def _check_iterates(variant: str, tally: Tally, settings: CheckSettings, make: MakeSolver) -> None:
    """Average policies, in two-player games also current ones; alternating updates."""
    game = settings.game
    if len(set(game.tree.keys)) < len(game.tree.keys):
        raise Skipped("OpenSpiel's solvers need different information state strings per player")
    if game.num_players == 1:
        raise Skipped("OpenSpiel's solvers need two players or more")
    make_ours = partial(make, variant=variant, mode="exact")
    iterations = 5 if settings.quick else 10
    compare_iterates(tally, game, make_ours, CPP_SOLVERS[variant], iterations)


@TREE_GAMES.check("cfr", "CFR, iterate by iterate, against OpenSpiel's C++ solver")
def _check_cfr(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    _check_iterates("cfr", tally, settings, make)


@TREE_GAMES.check("cfr+", "CFR+, iterate by iterate, against OpenSpiel's C++ solver")
def _check_cfr_plus(
    tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver
) -> None:
    _check_iterates("cfr+", tally, settings, make)


@TREE_GAMES.check("fast", "the fast mode of the CFR family, by iterate, against the exact mode")
def _check_fast(tally: Tally, settings: CheckSettings, *, make: MakeSolver = make_solver) -> None:
    """Regrets and averages, until rounding breaks a tie differently in the two modes."""
    tally.ours = "the fast mode"
    tally.theirs = "the exact one"
    tree = settings.game.tree
    compare_runs(
        tally,
        "",
        make_ours=partial(make, tree, mode="fast"),
        make_theirs=partial(make, tree, mode="exact"),
        iterations=5 if settings.quick else 10,
    )


@TREE_GAMES.check("plain", "NashConv and CFR in plain code, against their compiled twins")
def _check_plain(
    tally: Tally,
    settings: CheckSettings,
    *,
    evaluate: Callable[..., Evaluation] = evaluation,
    make: MakeSolver = make_solver,
) -> None:
    compare_plain_code(tally, settings, settings.game, evaluate=evaluate, make=make)


# ---------------------------------------------------------------------------------------------
# Policies and the environment
# ---------------------------------------------------------------------------------------------


@TREE_GAMES.check("policies", "random policies to OpenSpiel's three kinds and JSON, and back")
def _check_policies(
    tally: Tally, settings: CheckSettings, *, reader: type[Policy] = Policy
) -> None:
    """The policy that comes back must be the same bit for bit."""
    game = settings.game
    converters: dict[str, Callable[..., Any]] = {
        "a Python policy": openspiel_policies.to_openspiel_policy
    }
    if len(set(game.tree.keys)) == len(game.tree.keys):  # tables have no column for the player
        converters["Python's table"] = to_python_tabular
        converters["C++'s table"] = to_pyspiel_tabular
    for place, policy in random_policies(settings):
        back = reader.from_document(json.dumps(policy.to_document()), game)
        tally.holds(place, "JSON gives the same policy back", back == policy)
        for kind, convert in converters.items():
            back = reader.from_openspiel(convert(game, policy.table), game)
            tally.holds(place, f"{kind} gives the same policy back", back == policy)


@TREE_GAMES.check("environment", "the vectorised self-play environment against OpenSpiel's states")
def _check_environment(
    tally: Tally, settings: CheckSettings, *, make_env: Callable[..., Any] = SelfPlayVecEnv
) -> None:
    """Some hands are replayed on OpenSpiel's states; the mean returns of all are compared."""
    game = settings.game
    policy = Policy.random(game, 0).table
    env = make_env(NUM_ENVS, game, guarded=False, infoset_numbers=True)
    env.reset()
    rng = np.random.default_rng(1)
    returns: list[Any] = []  # of each finished hand, one number per player
    hands_each = HANDS_EACH_QUICK if settings.quick else HANDS_EACH
    # The same number of hands per environment, or short hands would count more.
    finished = np.zeros(NUM_ENVS, int)
    while finished.min() < hands_each:
        nodes = env.simulator.nodes
        infosets = env.simulator.infosets
        masks = env.action_masks()
        # An action is drawn as the number of running sums of its row that a random number passes.
        passed = running_sums(policy)[infosets] <= rng.random((NUM_ENVS, 1))
        actions = passed.sum(axis=1)
        env.step(actions)
        last = env.last_step()
        counted = last.ended & (finished < hands_each)
        returns.extend(last.returns[counted].astype(float))
        finished += last.ended
        for index in range(REPLAYED):
            step = Step(
                seat=int(last.acted[index]),
                node=int(nodes[index]),
                action=int(actions[index]),
                next_node=None if last.ended[index] else int(env.simulator.nodes[index]),
                returns=tuple(last.returns[index].tolist()),
            )
            compare_step(game, step, masks[index].tolist(), tally)
    means = np.mean(returns, axis=0)
    errors = np.std(returns, axis=0) / np.sqrt(len(returns))
    for seat, exact in enumerate(expected_values(game.tree, policy)):
        claim = f"{len(returns):,} hands win {means[seat]:.4f} on average, {exact:.4f} exactly"
        is_near = abs(means[seat] - exact) <= STANDARD_ERRORS * errors[seat] + 1e-6
        tally.holds(f"seat {seat}", claim, bool(is_near))


class Step(NamedTuple):
    """One environment's step: the seat that acted and where, the next decision, all returns."""

    seat: int
    node: int
    action: int
    next_node: int | None  # none if the hand ended
    returns: tuple[float, ...]


def compare_step(game: Game, step: Step, mask: list[bool], tally: Tally) -> None:
    """Replay one step of the environment on OpenSpiel's states."""
    tree = game.tree
    state = game.pyspiel_game.new_initial_state()
    for action in tree.history(step.node):
        state.apply_action(action)
    place = f"seat {step.seat} after {state.history()}"
    tally.same(place, "lets {} act", step.seat, state.current_player())
    legal = set(state.legal_actions())
    tally.same(place, "allows {}", mask, [action in legal for action in range(len(mask))])
    state.apply_action(step.action)
    if step.next_node is None:
        possible = step.returns in _possible_returns(state)
        tally.holds(place, f"the returns {step.returns} are possible", possible)
        return
    history = tree.history(step.next_node)
    length = len(state.history())
    tally.same(place, "continues from {}", history[:length], state.history())
    for action in history[length:]:
        is_chance = state.is_chance_node() and action in state.legal_actions()
        tally.holds(place, f"{action} is a move of chance", is_chance)
        state.apply_action(action)
    actor = int(tree.player[step.next_node])
    tally.same(place, "then lets {} act", actor, state.current_player())
    nothing = (0.0,) * tree.num_players
    tally.same(place, "pays {} before the end", step.returns, nothing)


def _possible_returns(state: Any) -> set[tuple[float, ...]]:
    """All returns that are possible if only chance is left to move, as float32."""
    if state.is_terminal():
        return {tuple(np.asarray(state.returns(), np.float32).tolist())}
    if not state.is_chance_node():
        return set()
    possible = set()
    for outcome in state.legal_actions():
        possible |= _possible_returns(state.child(outcome))
    return possible
