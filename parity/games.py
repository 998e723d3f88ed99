"""The checks of `--game NAME`: our tree of an OpenSpiel game against OpenSpiel's states."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python.algorithms import best_response

from algorithms.exact import values
from algorithms.exact.cfr import VARIANTS
from algorithms.exact.simulator import running_sums
from algorithms.exact.solving import MODES, make_solver
from algorithms.exact.tree import CHANCE, TERMINAL, Tree
from algorithms.exact.values import evaluate_policy, nash_convs
from algorithms.games import Game
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.policies import Policy, openspiel
from kuhn_bridge.errors import GameError
from parity import solvers
from parity.registry import GAME, Settings, Skipped, Tally, check
from parity.solvers import random_policies, tolerance

TIE = 1e-11  # a larger difference of policies comes from regrets that are 0 up to rounding
HANDS, REPLAYED = 2048, 16  # slots of the environment, and those that are replayed
ROUNDS, ROUNDS_QUICK = 30, 12  # hands per slot


@check("tree", GAME, "every node of the tree against OpenSpiel's states")
def _check_tree(tally: Tally, settings: Settings) -> None:
    """Actor, legal actions, chance, information state and returns."""
    tree, visited = settings.game.tree, 0
    infosets: dict[tuple[int, str], int] = {}
    for node, state in _lockstep(settings.game):
        visited += 1
        where, player = _label(state), state.current_player()
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
            ours = observations[game.tree.infoset[node]]
            tally.same(_label(state), "observes {}", ours.tolist(), tensor.tolist())


_title = "the values of random policies, by OpenSpiel's own walk"
check("values", GAME, _title)(solvers.check_values)


@check("best-response", GAME, "the values of best responses to random policies")
def _check_best_response(tally: Tally, settings: Settings) -> None:
    """The best values of all players, and the values of our best responses when they are played."""
    tree, limit = settings.game.tree, tolerance(settings.game)
    for where, policy in random_policies(settings):
        theirs, measure = policy.to_openspiel(), evaluate_policy(tree, policy.table)
        responses = values.pure_policy(tree, measure.best_responses)
        for player in range(tree.num_players):
            response = best_response.BestResponsePolicy(theirs.game, player, theirs)
            best = float(response.value(theirs.game.new_initial_state()))
            phrase = f"lets player_{player} win {{}}"
            tally.close(where, phrase, measure.best_values[player], best, limit)
            joint = [responses if p == player else policy.table for p in range(tree.num_players)]
            won = values.expected_values(tree, values.joint_policy(tree, joint))[player]
            tally.close(f"{where}, played out", phrase, won, best, limit)


@check("nashconv", GAME, "NashConv and gains of random policies, one at a time and in a batch")
def _check_nashconv(tally: Tally, settings: Settings) -> None:
    """Against OpenSpiel's `exploitability`."""
    tree, limit = settings.game.tree, tolerance(settings.game)
    policies, phrase = dict(random_policies(settings)), "has NashConv {}"
    batch = nash_convs(tree, [policy.table for policy in policies.values()])
    for (where, policy), of_batch in zip(policies.items(), batch, strict=True):
        theirs = openspiel.measured_by_openspiel(policy.game, policy.table)
        ours = evaluate_policy(tree, policy.table)
        tally.close(where, phrase, ours.nash_conv, theirs.nash_conv, limit)
        tally.close(f"{where} of a batch", phrase, of_batch, theirs.nash_conv, limit)
        for player, gain in enumerate(theirs.gains):
            tally.close(where, f"lets player_{player} gain {{}}", ours.gains[player], gain, limit)


def _check_solver(variant: str) -> None:
    """Average policies, in two-player games also current ones; alternating updates."""

    @check(variant, GAME, f"{variant.upper()}, iterate by iterate, against OpenSpiel's C++ solver")
    def check_solver(tally: Tally, settings: Settings) -> None:
        game = settings.game
        if not _keys_are_unique(game.tree):
            raise Skipped("OpenSpiel's solvers need different information state strings per player")
        if game.num_players == 1:
            raise Skipped("OpenSpiel's solvers need two players or more")
        ours, theirs = make_solver(game.tree, variant, mode="exact"), solvers.CPP_SOLVERS[variant]
        solvers.compare_iterates(tally, game, ours, theirs, upto=5 if settings.quick else 10)


_check_solver("cfr")
_check_solver("cfr+")


@check("fast", GAME, "the fast mode of the CFR family, iterate by iterate, against the exact mode")
def _check_fast(tally: Tally, settings: Settings) -> None:
    """Regrets and averages, until rounding breaks a tie differently in the two modes."""
    tally.ours, tally.theirs = "the fast mode", "the exact one"
    for name in VARIANTS:
        exact, fast = (make_solver(settings.game.tree, name, mode=mode) for mode in MODES)
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
            tally.close(spot, phrase, *numbers, solvers.ITERATES)
        mine, right = (solver.current_policy()[own] for solver in (fast, exact))
        if np.abs(mine - right).max() > TIE:
            return True
    return False


@check("policies", GAME, "random policies to OpenSpiel's three kinds and JSON, and back")
def _check_policies(tally: Tally, settings: Settings) -> None:
    """The policy that comes back must be the same bit for bit."""
    game = settings.game
    kinds: dict[str, Callable[..., Any]] = {"a Python policy": openspiel.to_openspiel_policy}
    if _keys_are_unique(game.tree):
        kinds["Python's table"] = openspiel.to_python_tabular
        kinds["C++'s table"] = openspiel.to_pyspiel_tabular
    for where, policy in random_policies(settings):
        back = Policy.from_document(json.dumps(policy.to_document()), game)
        tally.holds(where, "JSON gives the same policy back", back == policy)
        for kind, convert in kinds.items():
            back = Policy.from_openspiel(convert(game, policy.table), game)
            tally.holds(where, f"{kind} gives the same policy back", back == policy)


@check("environment", GAME, "the vectorised self-play environment against OpenSpiel's states")
def _check_environment(tally: Tally, settings: Settings) -> None:
    """Some hands are replayed on OpenSpiel's states; the mean returns of all are compared."""
    game = settings.game
    policy = Policy.random(game, 0).table
    env: Any = SelfPlayVecEnv(HANDS, game, numbered=True)
    rng = np.random.default_rng(1)
    env.per_seat_credit = True
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
            step = Step(
                int(last.acted[slot]),
                int(nodes[slot]),
                int(actions[slot]),
                None if last.ended[slot] else int(env.simulator.nodes[slot]),
                tuple(last.returns[slot].tolist()),
            )
            compare_step(game, step, masks[slot].tolist(), tally)
    means, errors = np.mean(won, axis=0), np.std(won, axis=0) / np.sqrt(len(won))
    for seat, exact in enumerate(values.expected_values(game.tree, policy)):
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
    where = f"seat {step.seat} {_label(state)}"
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


def _lockstep(game: Game) -> Iterator[tuple[int, Any]]:
    """Every node of the tree with its OpenSpiel state; children are in OpenSpiel's order."""
    stack = [(0, game.origin.new_initial_state())]
    while stack:
        node, state = stack.pop()
        yield node, state
        children = range(*game.tree.first_child[node : node + 2].tolist())
        for child, action in zip(children, state.legal_actions(), strict=True):
            stack.append((child, state.child(action)))


def _label(state: Any) -> str:
    return f"after {state.history()}"


def _keys_are_unique(tree: Tree) -> bool:
    return len(set(tree.keys)) == len(tree.keys)
