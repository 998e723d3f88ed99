"""`python -m parity.speed`: compare our speed with that of other libraries, on this machine."""

import argparse
import contextlib
import importlib.util
import io
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from algorithms.cfr import VARIANTS
from algorithms.compiled.nashconv import nash_conv, nash_convs
from algorithms.compiled.simulator import Simulator
from algorithms.games import kuhn, load_game
from algorithms.large_games.phantom.evaluation import Evaluator
from algorithms.large_games.phantom.game import PhantomGame
from algorithms.solvers import Mode, make_solver
from algorithms.support.command import EXIT_OK, Parser, number, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from kuhn_bridge import kuhn_v0
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State
from parity.benchmark import GAMES as BENCHMARK_GAMES
from parity.reference.phantom_walk import find_tries, walk
from parity.reference.public_stones import with_public_stones
from parity.reference.random_actions import RandomActions

Contender: TypeAlias = Callable[[int], int]
"""Does about n units of work, and returns how many."""
MakeContender: TypeAlias = Callable[[], Contender]

HANDS_AT_ONCE = 131_072
POLICIES_AT_ONCE = 100
KUHN = "kuhn_poker"
DICE6 = "liars_dice(numdice=1,dice_sides=6)"
OPENSPIEL = "OpenSpiel (C++)"
EXACT_MODE = "our exact mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeGame:
    """A game of several contests, with the ratios to OpenSpiel that we want to reach."""

    name: str
    cfr_target: float
    nash_conv_target: float


TREE_GAMES = {
    "Kuhn": TreeGame(name=KUHN, cfr_target=130, nash_conv_target=500),
    "Leduc": TreeGame(name="leduc_poker", cfr_target=800, nash_conv_target=3500),
    "Liar's Dice 4": TreeGame(
        name="liars_dice(numdice=1,dice_sides=4)", cfr_target=500, nash_conv_target=2000
    ),
}
LARGE_GAMES = {
    "phantom tic-tac-toe": BENCHMARK_GAMES["PTTT"],
    "dark hex 3x3": BENCHMARK_GAMES["DH3"],
}
# Seconds per evaluation of one policy in these games, as the authors of two public projects report
# them on their own hardware. The fastest of each: exp-a-spiel (C++) takes 75 to 86 s on 16 to 24
# threads; nashbench (JAX) 5.4 to 9.5 s on an RTX A6000, and over 40 minutes on a CPU.
PUBLISHED_SECONDS = {"exp-a-spiel, 16-24 threads": 75.0, "nashbench, RTX A6000": 5.4}
# Cells as bit masks.
CENTRE = 1 << 4
CORNER = 1 << 0
OPTIONAL_PEERS = {"Pgx": "pgx", "LiteEFG": "LiteEFG"}  # packages
HEADER = ("what", "peer", "ours/s", "peer/s", "ratio", "range", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The same work done by us and by peers, and the ratios to the first peers that we want."""

    name: str
    unit: str
    ours: MakeContender
    peers: Mapping[str, MakeContender] = field(default_factory=dict)
    targets: Sequence[float] = ()
    seconds: float = 0.2  # per sample
    published: Mapping[str, float] = field(default_factory=dict)  # seconds per unit; not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Our speed divided by a peer's: the median over rounds, and the range."""

    contest: str
    unit: str
    peer: str
    ours_per_second: float
    peer_per_second: float
    ratio: float
    lowest: float
    highest: float
    target: float | None
    measured: bool  # or published

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            f"{self.contest} ({self.unit})",
            self.peer if self.measured else f"{self.peer} (published)",
            _short(self.ours_per_second),
            _short(self.peer_per_second),
            f"{self.ratio:.1f}x",
            f"{self.lowest:.1f}-{self.highest:.1f}",
            "" if self.target is None else f">= {self.target:g}",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.speed", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run this contest; repeatable"
    )
    parser.add_argument(
        "--rounds", type=number(1), default=5, help="the number of rounds (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    by_name = {contest.name: contest for contest in contests()}
    for name in arguments.only or ():
        if name not in by_name:
            raise unknown("contest", name, by_name)
    chosen = arguments.only or list(by_name)
    ratios: list[Ratio] = []
    with progress("timing", len(chosen)) as show:
        for done, name in enumerate(chosen):
            show(done, name)
            ratios += measure(by_name[name], rounds=arguments.rounds)
    if arguments.json:
        print(json.dumps([asdict(ratio) for ratio in ratios], indent=2))
    else:
        _print(ratios)
    return EXIT_OK


def _print(ratios: Sequence[Ratio]) -> None:
    print(table(HEADER, [ratio.cells for ratio in ratios], left=2))
    missing = [name for name, package in OPTIONAL_PEERS.items() if not _installed(package)]
    if missing:
        print(f"not installed, so not timed: {', '.join(missing)} (the extra [peers])")
    if not all(ratio.measured for ratio in ratios):
        print("(published): the authors' figure on their hardware, not measured here")


def _short(number: float) -> str:
    """Three digits, with k for thousands and M for millions."""
    if number >= 1e6:
        return f"{number / 1e6:.3g}M"
    if number >= 1e3:
        return f"{number / 1e3:.3g}k"
    return f"{number:.3g}"


# ---------------------------------------------------------------------------------------------
# Timing
# ---------------------------------------------------------------------------------------------


def measure(contest: Contest, *, rounds: int) -> Iterator[Ratio]:
    """Our speed divided by each peer's.

    All contenders are timed in each round, so that noise affects them equally. The speed of a peer
    that is not measured here is a published figure.
    """
    ours = _Timed(contest.ours(), contest.seconds)
    peers = {name: _Timed(make(), contest.seconds) for name, make in contest.peers.items()}
    our_rates = []
    peer_rates: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        our_rates.append(ours.rate())
        for name, peer in peers.items():
            peer_rates[name].append(peer.rate())
    for name, seconds in contest.published.items():
        peer_rates[name] = [1 / seconds] * rounds
    targets = dict(zip(contest.peers, contest.targets, strict=False))
    for name, rates in peer_rates.items():
        ratios = [our / their for our, their in zip(our_rates, rates, strict=True)]
        yield Ratio(
            contest=contest.name,
            unit=contest.unit,
            peer=name,
            ours_per_second=median(our_rates),
            peer_per_second=median(rates),
            ratio=median(ratios),
            lowest=min(ratios),
            highest=max(ratios),
            target=targets.get(name),
            measured=name in contest.peers,
        )


class _Timed:
    """A contender that is warm, with the units of work that fill a sample of some seconds."""

    def __init__(self, contender: Contender, seconds: float) -> None:
        self._contender = contender
        self._units = contender(1)
        rate = self.rate()
        while rate * seconds > 2 * self._units:
            self._units = max(2 * self._units, int(rate * seconds / 2))
            rate = self.rate()
        self._units = max(1, int(rate * seconds))

    def rate(self) -> float:
        """Units of work per second, in one sample."""
        start = time.perf_counter()
        done = self._contender(self._units)
        return done / (time.perf_counter() - start)


# ---------------------------------------------------------------------------------------------
# The contests
# ---------------------------------------------------------------------------------------------


def contests() -> Iterator[Contest]:
    """All contests, with the peers that are installed."""
    yield from _kuhn_contests()
    yield from _cfr_contests()
    yield from _nash_conv_contests()
    yield Contest(
        name="training loop",
        unit="decisions",
        ours=_trained,
        peers={"naive self-play": _trained_naively},
        targets=[200],
        seconds=2.0,
    )


def _kuhn_contests() -> Iterator[Contest]:
    """The core, the AEC environment, and many hands at once."""
    from parity.kuhn_adapters import corrected_shimmy  # which imports OpenSpiel

    yield Contest(
        name="core, random hands",
        unit="decisions",
        ours=_core,
        peers={
            OPENSPIEL: partial(_openspiel, KUHN),
            "OpenSpiel (Python)": partial(_openspiel, "python_kuhn_poker"),
        },
        targets=[5],
    )
    yield Contest(
        name="AEC environment, random hands",
        unit="decisions",
        ours=partial(_aec, kuhn_v0.env),
        peers={"Shimmy": partial(_aec, corrected_shimmy)},
        targets=[20],
    )
    yield Contest(
        name=f"{HANDS_AT_ONCE:,} hands at once",
        unit="decisions",
        ours=_hands,
        peers={"Pgx": _pgx} if _installed("pgx") else {},
        targets=[15],
    )


def _cfr_contests() -> Iterator[Contest]:
    for label, game in TREE_GAMES.items():
        yield Contest(
            name=f"CFR, {label}",
            unit="iterations",
            ours=partial(_cfr, game.name),
            peers={
                OPENSPIEL: partial(_openspiel_cfr, game.name),
                EXACT_MODE: partial(_cfr, game.name, "exact"),
            },
            targets=[game.cfr_target],
        )
    yield Contest(
        name="CFR, Liar's Dice 6",
        unit="iterations",
        ours=partial(_cfr, DICE6),
        peers={EXACT_MODE: partial(_cfr, DICE6, "exact")},
        targets=[6],
        seconds=0.5,
    )
    for label, game in TREE_GAMES.items():
        # LiteEFG's CFR updates all players at once, so here ours does too. LiteEFG updates several
        # averages in a second call; ours updates one in every iteration. So LiteEFG is timed with
        # that call, which does more than ours, and without it, which does less.
        peers = {}
        if _installed("LiteEFG"):
            peers["LiteEFG, all its averages"] = partial(_lite_efg, game.name, averages=True)
            peers["LiteEFG, no average"] = partial(_lite_efg, game.name, averages=False)
        yield Contest(
            name=f"simultaneous CFR, {label}",
            unit="iterations",
            ours=partial(_cfr, game.name, "fast", "cfr-simultaneous"),
            peers=peers,
            targets=[10, 10],
        )


def _nash_conv_contests() -> Iterator[Contest]:
    for label, game in TREE_GAMES.items():
        yield Contest(
            name=f"NashConv, {label}",
            unit=f"policies, {POLICIES_AT_ONCE} per batch",
            ours=partial(_nash_conv_of_batch, game.name),
            peers={OPENSPIEL: partial(_openspiel_nash_conv, game.name)},
            targets=[game.nash_conv_target],
        )
    yield Contest(
        name="NashConv, Kuhn, one call",
        unit="policies",
        ours=partial(_nash_conv, KUHN),
        peers={OPENSPIEL: partial(_openspiel_nash_conv, KUHN)},
        targets=[100],
    )
    for label, name in LARGE_GAMES.items():
        yield Contest(
            name=f"NashConv, {label}",
            unit="policies",
            ours=partial(_large_nash_conv, name),
            seconds=1.0,
            published=PUBLISHED_SECONDS,
        )
    for label, name in LARGE_GAMES.items():
        yield Contest(
            name=f"NashConv, {label}, two stones shown",
            unit="policies",
            ours=partial(_restricted_nash_conv, name),
            peers={"a walk over all histories": partial(_walk, name)},
        )


# ---------------------------------------------------------------------------------------------
# The contenders
# ---------------------------------------------------------------------------------------------


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _repeated(work: Callable[[], Any], *, units: int = 1) -> Contender:
    """A contender that calls a function; each call does `units` units of work."""

    def play(n: int) -> int:
        calls = math.ceil(n / units)
        for _ in range(calls):
            work()
        return calls * units

    return play


def _core() -> Contender:
    draw = random.Random(0).random
    flip = random.Random(1).getrandbits
    dealt = [State.new(*deal) for deal in DEALS]  # states are immutable: six are enough

    def play(n: int) -> int:
        done = 0
        while done < n:
            state = dealt[int(draw() * 6)]
            while not state.is_terminal:
                state = state.act(state.legal_actions[flip(1)])
                done += 1
        return done

    return play


def _openspiel(name: str) -> Contender:
    draw = random.Random(0).random
    flip = random.Random(1).getrandbits
    game = load_game(name).pyspiel_game

    def play(n: int) -> int:
        done = 0
        while done < n:
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes = state.chance_outcomes()
                    state.apply_action(outcomes[int(draw() * len(outcomes))][0])
                else:
                    state.apply_action(state.legal_actions()[flip(1)])
                    done += 1
        return done

    return play


def _aec(make_env: Callable[[], Any]) -> Contender:
    env = make_env()
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


def _hands() -> Contender:
    game = kuhn()
    simulator = Simulator(game.tree, HANDS_AT_ONCE)
    random_actions = RandomActions(game.tree)
    # What a player sees at each information set, in whole words of 8 bytes, which copy quickly:
    # its observation and its mask, as int8 (I, 10 + 3), padded to (I, 16).
    seen = np.hstack([game.observations, game.tree.legal]).astype(np.int8)
    padding = -seen.shape[1] % 8
    words = np.pad(seen, ((0, 0), (0, padding))).view(np.uint64)

    def step() -> None:
        infosets = simulator.infosets
        words.take(infosets, axis=0)
        simulator.step(random_actions.draw(infosets))

    return _repeated(step, units=HANDS_AT_ONCE)


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
        return jax.vmap(one)(state, actions, jax.random.split(deal, HANDS_AT_ONCE))

    keys = jax.random.split(jax.random.PRNGKey(0), HANDS_AT_ONCE)
    state = jax.jit(jax.vmap(env.init))(keys)

    def play(n: int) -> int:
        nonlocal state
        steps = math.ceil(n / HANDS_AT_ONCE)
        for key in jax.random.split(jax.random.PRNGKey(n), steps):
            state = advance(state, key)
        state.observation.block_until_ready()
        return steps * HANDS_AT_ONCE

    return play


def _cfr(game: str, mode: Mode = "fast", variant: str = "cfr") -> Contender:
    solver = make_solver(load_game(game).tree, variant, mode=mode)

    def play(n: int) -> int:
        solver.run(n)
        return n

    return play


def _openspiel_cfr(game: str) -> Contender:
    import pyspiel

    return _repeated(pyspiel.CFRSolver(load_game(game).pyspiel_game).evaluate_and_update_policy)


def _lite_efg(game: str, *, averages: bool) -> Contender:
    import LiteEFG
    from LiteEFG.baselines import CFR

    with contextlib.redirect_stdout(io.StringIO()):
        graph = CFR.graph()
        env = LiteEFG.OpenSpielEnv(load_game(game).pyspiel_game, traverse_type="Enumerate")
        env.set_graph(graph)

    def iterate() -> None:
        graph.update_graph(env)
        if averages:
            env.update_strategy(graph.current_strategy())

    return _repeated(iterate)


def _nash_conv(game: str) -> Contender:
    tree = load_game(game).tree
    return _repeated(partial(nash_conv, tree, tree.random(0)))


def _nash_conv_of_batch(game: str) -> Contender:
    tree = load_game(game).tree
    policies = np.stack([tree.random(seed) for seed in range(POLICIES_AT_ONCE)])
    return _repeated(partial(nash_convs, tree, policies), units=POLICIES_AT_ONCE)


def _openspiel_nash_conv(name: str) -> Contender:
    import pyspiel

    game = load_game(name).pyspiel_game
    return _repeated(partial(pyspiel.nash_conv, game, pyspiel.UniformRandomPolicy(game)))


def _large_nash_conv(name: str) -> Contender:
    game = load_game(name)
    return _repeated(partial(game.measure, game.uniform()))


@cache
def _evaluator(game: str) -> Evaluator:
    """After two stones that both players see, so that a walk can visit every history."""
    loaded = load_game(game)
    if not isinstance(loaded, PhantomGame):
        raise UsageError(f"{game}: want a phantom game")
    return Evaluator(with_public_stones(loaded.rules, (CENTRE, CORNER)))


def _restricted_nash_conv(game: str) -> Contender:
    evaluator = _evaluator(game)
    uniform = evaluator.make_solver(VARIANTS["cfr"]).average_policy()
    return _repeated(partial(evaluator.measure, uniform))


def _walk(game: str) -> Contender:
    rules = _evaluator(game).rules
    tries = find_tries(rules)
    return _repeated(partial(walk, rules, tries, np.ones(tries.actions.shape)))


def _trained() -> Contender:
    """Decisions of a whole training run of Kuhn."""
    import torch

    from algorithms.self_play.settings import configure
    from algorithms.self_play.training_run import Training

    torch.set_num_threads(1)

    def play(n: int) -> int:
        training = Training(configure({"steps": n}))
        training.run()
        return int(training.model.num_timesteps)

    return play


def _trained_naively() -> Contender:
    """Decisions of a whole run of naive self-play."""
    import torch

    from algorithms.self_play.naive_ppo import NaiveSettings, train

    torch.set_num_threads(1)

    def play(n: int) -> int:
        model, _ = train(NaiveSettings(steps=n))
        return int(model.num_timesteps)

    return play


if __name__ == "__main__":
    sys.exit(main())
