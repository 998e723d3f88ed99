"""What is timed: the same work done by us and by a peer.

A contender takes a number n and does about n units of work; it returns how many it really did.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from kuhn_bridge import kuhn_v0
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State

Contender: TypeAlias = Callable[[int], int]
Maker: TypeAlias = Callable[[], Contender]

BATCH = 131_072
OPTIONAL = {"Pgx": "pgx", "LiteEFG": "LiteEFG"}
GAMES = {
    "Kuhn": "kuhn_poker",
    "Leduc": "leduc_poker",
    "Liar's Dice": "liars_dice(numdice=1,dice_sides=4)",
}


@dataclass(frozen=True, slots=True)
class Contest:
    """One line of work; `peers` maps a peer's name to its maker, and to the ratio we aim at."""

    name: str
    unit: str
    ours: Maker
    peers: dict[str, Maker]
    targets: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.2  # a sample


def contests() -> list[Contest]:
    """All of them, with the peers that are installed."""
    return [
        Contest(
            "core, random hands",
            "decisions",
            _core,
            {
                "OpenSpiel (C++)": lambda: _openspiel("kuhn_poker"),
                "OpenSpiel (Python)": lambda: _openspiel("python_kuhn_poker"),
            },
            {"OpenSpiel (C++)": 5},
        ),
        Contest(
            "AEC face, random hands",
            "decisions",
            lambda: _aec(kuhn_v0.env()),
            {"Shimmy": lambda: _aec(_shimmy())},
            {"Shimmy": 20},
        ),
        Contest(
            f"{BATCH:,} hands at once",
            "decisions",
            _hands,
            {"Pgx": _pgx} if installed("pgx") else {},
            {"Pgx": 10},
        ),
        *(_cfr(name, game) for name, game in GAMES.items()),
        *(_nash_conv(name, game) for name, game in GAMES.items()),
        Contest(
            "training loop",
            "decisions",
            lambda: _trained("self-play"),
            {"the usual recipe": lambda: _trained("tutorial")},
            {"the usual recipe": 200},
            seconds=2.0,
        ),
    ]


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def _core() -> Contender:
    draw, coin = random.Random(0).random, random.Random(1).getrandbits
    dealt = [State.new(*deal) for deal in DEALS]  # states never change: six are enough for all

    def play(n: int) -> int:
        done = 0
        while done < n:
            state = dealt[int(draw() * 6)]
            while not state.is_terminal:
                state = state.act(state.legal_actions[coin(1)])
                done += 1
        return done

    return play


def _openspiel(name: str) -> Contender:
    from open_spiel.python.games import kuhn_poker  # noqa: F401  # registers the Python one

    draw, coin = random.Random(0).random, random.Random(1).getrandbits
    game = pyspiel.load_game(name)

    def play(n: int) -> int:
        done = 0
        while done < n:
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes = state.chance_outcomes()
                    state.apply_action(outcomes[int(draw() * len(outcomes))][0])
                else:
                    state.apply_action(state.legal_actions()[coin(1)])
                    done += 1
        return done

    return play


def _aec(env: Any) -> Contender:
    draw = random.Random(0).random

    def play(n: int) -> int:
        done = 0
        while done < n:
            env.reset()
            for _ in env.agent_iter():
                _, _, termination, truncation, info = env.last()
                if termination or truncation:
                    env.step(None)
                else:
                    legal = np.flatnonzero(info["action_mask"])
                    env.step(legal[int(draw() * len(legal))])
                    done += 1
        return done

    return play


def _shimmy() -> Any:
    from kuhn_bridge.shimmy import WholeHands

    return WholeHands(game_name="kuhn_poker")


def _hands() -> Contender:
    from algorithms.learning.hands import Hands

    hands = Hands(BATCH)

    def play(n: int) -> int:
        steps = -(-n // BATCH)
        for _ in range(steps):
            hands.look()
            hands.step(hands.random_actions())
        return steps * BATCH

    return play


def _pgx() -> Contender:
    import jax
    import pgx
    from jax import numpy as jnp
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make("kuhn_poker")
    one = auto_reset(env.step, env.init)

    @jax.jit
    def advance(state: Any, key: Any) -> Any:
        choose, deal = jax.random.split(key)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        actions = jax.random.categorical(choose, logits, axis=-1)
        return jax.vmap(one)(state, actions, jax.random.split(deal, BATCH))

    keys = jax.random.split(jax.random.PRNGKey(0), BATCH)
    state = jax.jit(jax.vmap(env.init))(keys)

    def play(n: int) -> int:
        nonlocal state
        steps = -(-n // BATCH)
        for key in jax.random.split(jax.random.PRNGKey(n), steps):
            state = advance(state, key)
        state.observation.block_until_ready()
        return steps * BATCH

    return play


def _cfr(name: str, game: str) -> Contest:
    def ours() -> Contender:
        from algorithms.exact.cfr import Solver
        from algorithms.games.openspiel import openspiel_tree

        solver = Solver(openspiel_tree(pyspiel.load_game(game)))

        def play(n: int) -> int:
            solver.run(n)
            return n

        return play

    def openspiel() -> Contender:
        solver = pyspiel.CFRSolver(pyspiel.load_game(game))

        def play(n: int) -> int:
            for _ in range(n):
                solver.evaluate_and_update_policy()
            return n

        return play

    peers: dict[str, Maker] = {"OpenSpiel (C++)": openspiel}
    if installed("LiteEFG"):
        peers["LiteEFG"] = lambda: _lite_efg(game)
    targets = {"OpenSpiel (C++)": 30 if name == "Kuhn" else 60, "LiteEFG": 10}
    return Contest(f"CFR, {name}", "iterations", ours, peers, targets)


def _lite_efg(game: str) -> Contender:
    import LiteEFG
    from LiteEFG.baselines import CFR

    with contextlib.redirect_stdout(io.StringIO()):
        graph = CFR.graph()
        env = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), traverse_type="Enumerate")
        env.set_graph(graph)

    def play(n: int) -> int:
        for _ in range(n):
            graph.update_graph(env)
            env.update_strategy(graph.current_strategy())
        return n

    return play


def _nash_conv(name: str, game: str) -> Contest:
    """Ours measures policies by the hundred; OpenSpiel's takes one at a time."""

    def ours() -> Contender:
        from algorithms.exact.values import nash_convs
        from algorithms.games.openspiel import openspiel_tree

        tree = openspiel_tree(pyspiel.load_game(game))
        policies = np.stack([tree.random(seed) for seed in range(100)])

        def play(n: int) -> int:
            batches = -(-n // len(policies))
            for _ in range(batches):
                nash_convs(tree, policies)
            return batches * len(policies)

        return play

    def openspiel() -> Contender:
        loaded = pyspiel.load_game(game)
        policy = pyspiel.UniformRandomPolicy(loaded)

        def play(n: int) -> int:
            for _ in range(n):
                pyspiel.nash_conv(loaded, policy)
            return n

        return play

    peers: dict[str, Maker] = {"OpenSpiel (C++)": openspiel}
    targets = {"OpenSpiel (C++)": 100}
    return Contest(f"NashConv, {name}", "policies, 100 at once", ours, peers, targets)


def _trained(recipe: str) -> Contender:
    import torch

    from algorithms.learning.recipes import configure
    from algorithms.learning.training import Training

    torch.set_num_threads(1)

    def play(n: int) -> int:
        training = Training(configure({"recipe": recipe, "steps": n}))
        training.run()
        return int(training.model.num_timesteps)

    return play
