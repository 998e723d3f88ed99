"""The contests of `parity.speed`: the same work done by us and by a peer.

A contender takes a number n, does about n units of work, and returns how many it did.
"""

import contextlib
import importlib.util
import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from algorithms.exact.phantom.rules import with_public_stones
from algorithms.exact.phantom.values import Evaluator, normalise
from algorithms.exact.phantom.walk import find_tries, walk
from algorithms.exact.solving import Mode, make_solver
from algorithms.exact.values import nash_conv, nash_convs
from algorithms.games import load_game
from algorithms.games.openspiel import openspiel_tree
from algorithms.games.phantom import Phantom
from kuhn_bridge import kuhn_v0
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State
from parity.benchmark import GAMES as LARGE
from parity.faces import shimmed

Contender: TypeAlias = Callable[[int], int]
Maker: TypeAlias = Callable[[], Contender]

BATCH = 131_072
OPTIONAL = {"Pgx": "pgx", "LiteEFG": "LiteEFG"}
GAMES = {
    "Kuhn": "kuhn_poker",
    "Leduc": "leduc_poker",
    "Liar's Dice 4": "liars_dice(numdice=1,dice_sides=4)",
}
DICE6 = "liars_dice(numdice=1,dice_sides=6)"
OPENSPIEL, EXACT_MODE, USUAL = "OpenSpiel (C++)", "our exact mode", "the usual recipe"
LARGE_GAMES = {"phantom tic-tac-toe": LARGE["PTTT"], "dark hex 3x3": LARGE["DH3"]}
# Seconds per evaluation of one policy in these games, as the authors of two public projects report
# them on their own hardware. The fastest of each: exp-a-spiel (C++) takes 75 to 86 s on 16 to 24
# threads; nashbench (JAX) 5.4 to 9.5 s on an RTX A6000, and over 40 minutes on a CPU.
PUBLISHED = {"exp-a-spiel, 16-24 threads": 75.0, "nashbench, RTX A6000": 5.4}
SHOWN_STONES = 1 << 4, 1 << 0  # the centre for player 0, a corner for player 1
# Our targets: ratios to OpenSpiel.
CFR_TARGETS = {"Kuhn": 130, "Leduc": 800, "Liar's Dice 4": 500}
NASH_CONV_TARGETS = {"Kuhn": 500, "Leduc": 3500, "Liar's Dice 4": 2000}


@dataclass(frozen=True, slots=True)
class Contest:
    """One kind of work, who does it, and the ratios that we want to reach, by peer."""

    name: str
    unit: str
    ours: Maker
    peers: Mapping[str, Maker]
    targets: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.2  # per sample
    published: Mapping[str, float] = field(default_factory=dict)  # seconds per unit; not measured


def contests() -> list[Contest]:
    """All contests, with the peers that are installed."""
    openspiel: dict[str, Maker] = {
        OPENSPIEL: partial(_openspiel, "kuhn_poker"),
        "OpenSpiel (Python)": partial(_openspiel, "python_kuhn_poker"),
    }
    ours, shimmy = partial(_aec, kuhn_v0.env), {"Shimmy": partial(_aec, shimmed)}
    pgx = {"Pgx": _pgx} if installed("pgx") else {}
    fast, exact = partial(_ours, DICE6, "fast"), {EXACT_MODE: partial(_ours, DICE6, "exact")}
    nash_conv = {OPENSPIEL: partial(_openspiel_nash_conv, GAMES["Kuhn"])}
    self_play, usual = partial(_trained, "self-play"), {USUAL: partial(_trained, "usual")}
    return [
        Contest("core, random hands", "decisions", _core, openspiel, {OPENSPIEL: 5}),
        Contest("AEC face, random hands", "decisions", ours, shimmy, {"Shimmy": 20}),
        Contest(f"{BATCH:,} hands at once", "decisions", _hands, pgx, {"Pgx": 15}),
        *(_cfr(name, game) for name, game in GAMES.items()),
        Contest("CFR, Liar's Dice 6", "iterations", fast, exact, {EXACT_MODE: 6}, seconds=0.5),
        *(_simultaneous_cfr(name, game) for name, game in GAMES.items()),
        *(_nash_conv(name, game) for name, game in GAMES.items()),
        Contest("NashConv, Kuhn, one call", "policies", _one_call, nash_conv, {OPENSPIEL: 100}),
        *(_large_nash_conv(name, game) for name, game in LARGE_GAMES.items()),
        *(_restricted_nash_conv(name, game) for name, game in LARGE_GAMES.items()),
        Contest("training loop", "decisions", self_play, usual, {USUAL: 200}, seconds=2.0),
    ]


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def _repeated(work: Callable[[], Any], *, units: int = 1) -> Contender:
    """A contender that calls a function; each call does `units` units of work."""

    def play(n: int) -> int:
        calls = -(-n // units)
        for _ in range(calls):
            work()
        return calls * units

    return play


def _core() -> Contender:
    draw, coin = random.Random(0).random, random.Random(1).getrandbits
    dealt = [State.new(*deal) for deal in DEALS]  # states are immutable: six are enough

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


def _aec(make_env: Callable[[], Any]) -> Contender:
    env, draw = make_env(), random.Random(0).random

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


def _hands() -> Contender:
    from algorithms.exact.simulator import Simulator
    from algorithms.games import kuhn

    game = kuhn()
    simulator = Simulator(game.tree, BATCH)
    both = np.hstack([game.observations, game.tree.legal]).astype(np.int8)
    words = np.pad(both, ((0, 0), (0, -both.shape[1] % 8))).view(np.uint64)  # quick to copy

    def step() -> None:
        words.take(simulator.infosets, axis=0)  # observations and masks
        simulator.step(simulator.random_actions())

    return _repeated(step, units=BATCH)


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
    def openspiel() -> Contender:
        return _repeated(pyspiel.CFRSolver(pyspiel.load_game(game)).evaluate_and_update_policy)

    peers: dict[str, Maker] = {
        OPENSPIEL: openspiel,
        "our exact mode": partial(_ours, game, "exact"),
    }
    targets = {OPENSPIEL: CFR_TARGETS[name]}
    return Contest(f"CFR, {name}", "iterations", partial(_ours, game, "fast"), peers, targets)


def _ours(game: str, mode: Mode, variant: str = "cfr") -> Contender:
    solver = make_solver(openspiel_tree(pyspiel.load_game(game)), variant, mode=mode)

    def play(n: int) -> int:
        solver.run(n)
        return n

    return play


def _simultaneous_cfr(name: str, game: str) -> Contest:
    """LiteEFG's CFR updates all players at once, so here ours does too.

    LiteEFG updates several averages in a second call; ours updates one in every iteration. So
    LiteEFG is timed with that call, which does more than ours, and without it, which does less.
    """
    peers: dict[str, Maker] = {}
    if installed("LiteEFG"):
        peers["LiteEFG, all its averages"] = partial(_lite_efg, game, averages=True)
        peers["LiteEFG, no average"] = partial(_lite_efg, game, averages=False)
    ours = partial(_ours, game, "fast", "cfr-simultaneous")
    return Contest(f"simultaneous CFR, {name}", "iterations", ours, peers, dict.fromkeys(peers, 10))


def _lite_efg(game: str, *, averages: bool) -> Contender:
    import LiteEFG
    from LiteEFG.baselines import CFR

    with contextlib.redirect_stdout(io.StringIO()):
        graph = CFR.graph()
        env = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), traverse_type="Enumerate")
        env.set_graph(graph)

    def iterate() -> None:
        graph.update_graph(env)
        if averages:
            env.update_strategy(graph.current_strategy())

    return _repeated(iterate)


def _nash_conv(name: str, game: str) -> Contest:
    """Ours measures a batch of 100 policies; OpenSpiel's takes one at a time."""

    def ours() -> Contender:
        tree = openspiel_tree(pyspiel.load_game(game))
        policies = np.stack([tree.random(seed) for seed in range(100)])
        return _repeated(partial(nash_convs, tree, policies), units=len(policies))

    peers = {OPENSPIEL: partial(_openspiel_nash_conv, game)}
    targets = {OPENSPIEL: NASH_CONV_TARGETS[name]}
    return Contest(f"NashConv, {name}", "policies, 100 per batch", ours, peers, targets)


def _one_call() -> Contender:
    tree = openspiel_tree(pyspiel.load_game(GAMES["Kuhn"]))
    return _repeated(partial(nash_conv, tree, tree.random(0)))


def _openspiel_nash_conv(game: str) -> Contender:
    loaded = pyspiel.load_game(game)
    return _repeated(partial(pyspiel.nash_conv, loaded, pyspiel.UniformRandomPolicy(loaded)))


def _large_nash_conv(name: str, game: str) -> Contest:
    def ours() -> Contender:
        loaded = load_game(game)
        return _repeated(partial(loaded.measure, loaded.uniform_table()))

    return Contest(f"NashConv, {name}", "policies", ours, {}, seconds=1.0, published=PUBLISHED)


def _restricted_nash_conv(name: str, game: str) -> Contest:
    """After two stones that both players see, so that a walk can visit every history."""

    @cache
    def evaluator() -> Evaluator:
        native = load_game(game).native
        if not isinstance(native, Phantom):
            raise TypeError(f"{game} has no walk over histories")
        return Evaluator(with_public_stones(native.rules, SHOWN_STONES))

    def ours() -> Contender:
        tables = [np.zeros((s.num_infosets, s.cells), np.float32) for s in evaluator().sequences]
        for sequences, rows in zip(evaluator().sequences, tables, strict=True):
            normalise(sequences, rows)
        return _repeated(partial(evaluator().evaluate, tables))

    def walked() -> Contender:
        rules = evaluator().rules
        tries = find_tries(rules)
        first, second = (np.ones(children.shape[:2]) for children in tries.children)
        return _repeated(partial(walk, rules, tries, (first, second)))

    peers = {"a walk over all histories": walked}
    return Contest(f"NashConv, {name}, two stones shown", "policies", ours, peers)


def _trained(recipe: str) -> Contender:
    import torch

    from algorithms.learning.settings import configure
    from algorithms.learning.training import Training

    torch.set_num_threads(1)

    def play(n: int) -> int:
        training = Training(configure({"recipe": recipe, "steps": n}))
        training.run()
        return int(training.model.num_timesteps)

    return play
