"""The checks of `--game NAME`: one OpenSpiel game, our tree and OpenSpiel's states in lockstep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python.algorithms import best_response, expected_game_score

from algorithms.exact import cfr, values
from algorithms.exact.simulator import running_sums
from algorithms.exact.solving import MODES, AnySolver, in_mode
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
from parity.registry import Settings, Skipped, game_check
from parity.tally import Tally

GROUP = "game"
ITERATES = 1e-9
EXACT = 1e-10  # per chip at stake
TIED = 1e-11  # policies that differ by more come from regrets that are 0 but for rounding
HANDS, WATCHED = 2048, 16  # at a time in the environment, and replayed step by step
ROUNDS, ROUNDS_QUICK = 30, 12  # hands of each
FEW_NODES = 20_000  # OpenSpiel's Python takes seconds where there are more


@game_check("tree", "every node of the tree against OpenSpiel's states")
def check_tree(tally: Tally, settings: Settings) -> None:
    """Actor, legal actions, chance, information state and returns, both walked at once."""
    game = _game(settings)
    tree, met = game.tree, 0
    rows: dict[tuple[int, str], int] = {}
    for node, state in _lockstep(game):
        met += 1
        where, player = _spelt(state), state.current_player()
        tally.same(where, "lets {} act", int(tree.player[node]), player)
        children = _children(tree, node)
        actions = [int(tree.action[child]) for child in children]
        if player == TERMINAL:
            tally.same(where, "pays {}", tree.returns[:, node].tolist(), list(state.returns()))
        elif player == CHANCE:
            ours = [
                (a, float(tree.edge[child])) for a, child in zip(actions, children, strict=True)
            ]
            tally.same(where, "draws {}", ours, state.chance_outcomes())
        else:
            row = int(tree.infoset[node])
            key = (player, state.information_state_string())
            tally.same(where, "knows {}", (int(tree.owner[row]), tree.keys[row]), key)
            tally.same(where, "is information set {}", row, rows.setdefault(key, row))
            tally.same(where, "allows {}", actions, state.legal_actions())
            tally.same(where, "may {}", np.flatnonzero(tree.legal[row]).tolist(), actions)
    tally.same("the whole tree", "has {} nodes", tree.num_nodes, met)


@game_check("sights", "what networks see against OpenSpiel's information state tensors")
def check_sights(tally: Tally, settings: Settings) -> None:
    """At every node, so that nodes of one information set are shown alike too."""
    game = _game(settings)
    try:
        seen = game.observations
    except GameError as reason:
        raise Skipped(str(reason)) from None
    for node, state in _lockstep(game):
        if (player := state.current_player()) >= 0:
            tensor = np.asarray(state.information_state_tensor(player), np.float32)
            ours = seen[game.tree.infoset[node]]
            tally.same(_spelt(state), "shows {}", ours.tolist(), tensor.tolist())


@game_check("values", "what random policies win, by OpenSpiel's own walk")
def check_values(tally: Tally, settings: Settings) -> None:
    """Every player's value."""
    for where, policy in _random_policies(settings):
        theirs = policy.to_openspiel()
        root, seats = theirs.game.new_initial_state(), [theirs] * policy.game.num_players
        ours = values.expected_values(policy.game.tree, policy.table)
        for player, value in enumerate(expected_game_score.policy_value(root, seats)):
            phrase = f"gives player_{player} {{}}"
            tally.close(where, phrase, ours[player], float(value), _exact(policy))


@game_check("best-response", "what best responses to random policies win")
def check_best_response(tally: Tally, settings: Settings) -> None:
    """Each player's, and that the actions we name really win it."""
    for where, policy in _random_policies(settings):
        theirs, tree = policy.to_openspiel(), policy.game.tree
        measure = values.evaluate_policy(tree, policy.table)
        answers = values.pure(tree, measure.best_responses)
        for player in range(tree.num_players):
            response = best_response.BestResponsePolicy(theirs.game, player, theirs)
            best = float(response.value(theirs.game.new_initial_state()))
            phrase = f"lets player_{player} win {{}}"
            tally.close(where, phrase, measure.best_values[player], best, _exact(policy))
            mixed = [answers if p == player else policy.table for p in range(tree.num_players)]
            won = values.expected_values(tree, values.seated(tree, mixed))[player]
            tally.close(f"{where}, played out", phrase, won, best, _exact(policy))


@game_check("nashconv", "NashConv and gains of random policies, one at a time and many at once")
def check_nashconv(tally: Tally, settings: Settings) -> None:
    """Against OpenSpiel's `exploitability`."""
    policies = dict(_random_policies(settings))
    together = values.nash_convs(_game(settings).tree, [p.table for p in policies.values()])
    for (where, policy), many in zip(policies.items(), together, strict=True):
        theirs, ours = measured_by_openspiel(policy.game, policy.table), policy.measure()
        tally.close(where, "has NashConv {}", ours.nash_conv, theirs.nash_conv, _exact(policy))
        tally.close(f"{where} of many", "has NashConv {}", many, theirs.nash_conv, _exact(policy))
        for player, gain in enumerate(theirs.gains):
            phrase = f"lets player_{player} gain {{}}"
            tally.close(where, phrase, ours.gains[player], gain, _exact(policy))


@game_check("cfr", "CFR, iterate by iterate, against OpenSpiel's C++ solver")
def check_cfr(tally: Tally, settings: Settings) -> None:
    """Average policies; alternating updates."""
    _compare_iterates(tally, settings, cfr.CFR, pyspiel.CFRSolver)


@game_check("cfr+", "CFR+, iterate by iterate, against OpenSpiel's C++ solver")
def check_cfr_plus(tally: Tally, settings: Settings) -> None:
    """Average policies."""
    _compare_iterates(tally, settings, cfr.CFR_PLUS, pyspiel.CFRPlusSolver)


@game_check("fast", "the fast mode of the CFR family, iterate by iterate, against the exact mode")
def check_fast(tally: Tally, settings: Settings) -> None:
    """Regrets and averages, until the modes part in a tie, which rounding decides."""
    tally.ours, tally.theirs = "the fast mode", "the exact one"
    tree = _game(settings).tree
    for name, variant in cfr.VARIANTS.items():
        exact, fast = (in_mode(mode, tree, variant) for mode in MODES)
        for iteration in range(1, 6 if settings.quick else 11):
            exact.run(1)
            fast.run(1)
            if _part(tally, f"{name}, iteration {iteration}", fast, exact):
                break


def _part(tally: Tally, where: str, fast: AnySolver, exact: AnySolver) -> bool:
    """Compare two solvers; whether one player's next policies differ, and so all that follows."""
    tree = exact.tree
    for player in range(tree.num_players):
        rows = np.flatnonzero(tree.owner == player)
        for kind in ("average_policy", "regrets"):
            mine, right = (getattr(solver, kind)()[rows] for solver in (fast, exact))
            at, action = np.unravel_index(np.abs(mine - right).argmax(), mine.shape)
            phrase = f"has {kind} {{}} for action {action}"
            numbers = float(mine[at, action]), float(right[at, action])
            tally.close(f"{where}, {tree.keys[rows[at]]!r}", phrase, *numbers, ITERATES)
        mine, right = (solver.current_policy()[rows] for solver in (fast, exact))
        if np.abs(mine - right).max() > TIED:
            return True
    return False


@game_check("policies", "random policies to OpenSpiel's three kinds and JSON, and back")
def check_policies(tally: Tally, settings: Settings) -> None:
    """To the last bit."""
    for where, policy in _random_policies(settings):
        game = policy.game
        text = json.dumps(policy.to_document())
        back = Policy.from_document(text, game)
        tally.holds(where, "JSON gives the same policy back", back == policy)
        kinds: dict[str, Callable[..., Any]] = {"a Python policy": to_openspiel_policy}
        if _keys_are_unique(game.tree):
            kinds |= {"Python's table": to_python_tabular, "C++'s table": to_pyspiel_tabular}
        for kind, convert in kinds.items():
            back = Policy.from_openspiel(convert(game, policy.table), game)
            tally.holds(where, f"{kind} gives the same policy back", back == policy)


@game_check("environment", "the vectorised self-play environment against OpenSpiel's states")
def check_environment(tally: Tally, settings: Settings) -> None:
    """Every step of some hands replayed by OpenSpiel, and the mean of all returns."""
    game = _game(settings)
    policy = Policy.random(game, 0).table
    env, rng = SelfPlayVecEnv(HANDS, game, numbered=True), np.random.default_rng(1)
    env.per_seat_credit = True
    env.reset()
    won: list[list[float]] = [[] for _ in range(game.num_players)]
    rounds, played = ROUNDS_QUICK if settings.quick else ROUNDS, np.zeros(HANDS, int)
    while played.min() < rounds:  # as many hands in each slot, or short ones would count too often
        nodes, infosets, masks = env.simulator.nodes, env.simulator.infosets, env.action_masks()
        actions = (running_sums(policy)[infosets] <= rng.random((HANDS, 1))).sum(axis=1)
        env.step(actions)
        step = env.last_step()
        for slot in np.flatnonzero(step.ended & (played < rounds)).tolist():
            for seat, returns in enumerate(won):
                returns.append(float(step.returns[slot, seat]))
        played += step.ended
        for slot in range(WATCHED):
            there = None if step.ended[slot] else int(env.simulator.nodes[slot])
            moved = _Step(
                int(step.acted[slot]),
                int(nodes[slot]),
                int(actions[slot]),
                there,
                tuple(step.returns[slot].tolist()),
            )
            _compare_step(game, moved, masks[slot].tolist(), tally)
    for seat, returns in enumerate(won):
        _compare_mean(game, policy, seat, returns, tally)


class _Step(NamedTuple):
    """One slot's step: from where, by which action, to the next decision or the end."""

    seat: int
    node: int
    action: int
    there: int | None
    returns: tuple[float, ...]


def _compare_step(game: Game, step: _Step, mask: list[bool], tally: Tally) -> None:
    tree, root = game.tree, game.origin.new_initial_state()
    state = _replayed(root, tree.history(step.node))
    where = f"seat {step.seat} {_spelt(state)}"
    tally.same(where, "lets {} act", step.seat, state.current_player())
    legal = set(state.legal_actions())
    tally.same(where, "allows {}", mask, [action in legal for action in range(len(mask))])
    state.apply_action(step.action)
    if step.there is None:
        tally.holds(where, f"{step.returns} can be won", step.returns in _ends(state))
        return
    moves = tree.history(step.there)
    before = len(state.history())
    tally.same(where, "goes on from {}", moves[:before], state.history())
    for move in moves[before:]:
        chance = state.is_chance_node() and move in state.legal_actions()
        tally.holds(where, f"{move} is a move of chance", chance)
        state.apply_action(move)
    tally.same(where, "then lets {} act", int(tree.player[step.there]), state.current_player())
    tally.same(where, "pays {} on the way", step.returns, (0.0,) * tree.num_players)


def _replayed(state: Any, moves: Sequence[int]) -> Any:
    for move in moves:
        state.apply_action(move)
    return state


def _ends(state: Any) -> set[tuple[float, ...]]:
    """All returns with which chance can end the hand here, as float32."""
    if state.is_terminal():
        return {tuple(float(np.float32(value)) for value in state.returns())}
    if not state.is_chance_node():
        return set()
    return {end for move in state.legal_actions() for end in _ends(state.child(move))}


def _compare_mean(
    game: Game, policy: Float64Array, seat: int, won: Sequence[float], tally: Tally
) -> None:
    """The mean return of many hands is the exact value."""
    exact = values.expected_values(game.tree, policy)[seat]
    error = float(np.std(won) / np.sqrt(len(won)))
    claim = f"{len(won):,} hands win {np.mean(won):.4f} on average, {exact:.4f} exactly"
    tally.holds(f"seat {seat}", claim, bool(abs(np.mean(won) - exact) <= 5 * error + 1e-6))


def _compare_iterates(
    tally: Tally, settings: Settings, variant: cfr.Variant, theirs: Callable[[Any], Any]
) -> None:
    game = _game(settings)
    if not _keys_are_unique(game.tree):
        raise Skipped("OpenSpiel's solvers mix up players that share information state strings")
    if game.num_players == 1:
        raise Skipped("OpenSpiel's solvers want two players or more")
    ours, solver = cfr.Solver(game.tree, variant), theirs(game.origin)
    for iteration in range(1, 6 if settings.quick else 11):
        ours.run(1)
        solver.evaluate_and_update_policy()
        mine, right = (
            ours.average_policy(),
            Policy.from_openspiel(solver.average_policy(), game).table,
        )
        for row, key in enumerate(game.tree.keys):
            where = f"iteration {iteration}, {key!r}"
            for action in np.flatnonzero(game.tree.legal[row]).tolist():
                phrase = f"plays {action} with probability {{}}"
                tally.close(
                    where, phrase, float(mine[row, action]), float(right[row, action]), ITERATES
                )


def _random_policies(settings: Settings) -> Iterator[tuple[str, Policy]]:
    """A few policies, fewer of a large game."""
    game = _game(settings)
    few = settings.quick or game.tree.num_nodes > FEW_NODES
    for seed in range(1 if few else 5):
        yield f"random policy {seed}", Policy.random(game, seed)


def _lockstep(game: Game) -> Iterator[tuple[int, Any]]:
    """Every node that OpenSpiel has, with its state; children in OpenSpiel's order."""
    stack = [(0, game.origin.new_initial_state())]
    while stack:
        node, state = stack.pop()
        yield node, state
        children = _children(game.tree, node)
        for child, action in zip(children, state.legal_actions(), strict=True):
            stack.append((child, state.child(action)))


def _children(tree: Tree, node: int) -> range:
    return range(int(tree.first_child[node]), int(tree.first_child[node + 1]))


def _spelt(state: Any) -> str:
    return f"after {state.history()}"


def _exact(policy: Policy) -> float:
    return EXACT * max(1.0, float(np.abs(policy.game.tree.returns).max()))


def _keys_are_unique(tree: Tree) -> bool:
    return len(set(tree.keys)) == len(tree.keys)


def _game(settings: Settings) -> Game:
    if settings.game is None:
        raise ValueError("these checks are about a game")
    return settings.game
