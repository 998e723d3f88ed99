"""`python -m parity.speed`: compare our speed with that of other libraries, on this machine."""

import argparse
import contextlib
import importlib.util
import io
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from algorithms.cfr import VARIANTS
from algorithms.compiled.simulator import Simulator
from algorithms.games import kuhn, load_game
from algorithms.large_games.phantom.evaluation import Evaluator
from algorithms.large_games.phantom.rules import with_public_stones
from algorithms.nashconv import nash_conv, nash_convs
from algorithms.solvers import Mode, make_solver
from algorithms.support.command import EXIT_OK, Parser, number, table
from algorithms.support.errors import unknown
from algorithms.support.files import replacing, require_png
from algorithms.support.progress import progress
from kuhn_bridge import kuhn_v0
from kuhn_bridge.rules import DEALS
from kuhn_bridge.state import State
from parity.benchmark import GAMES as LARGE
from parity.reference.phantom_walk import find_tries, walk

Contender: TypeAlias = Callable[[int], int]  # does about n units of work, and returns how many
Maker: TypeAlias = Callable[[], Contender]

BATCH = 131_072
KUHN, DICE6 = "kuhn_poker", "liars_dice(numdice=1,dice_sides=6)"
GAMES = {  # with our targets of CFR and NashConv: ratios to OpenSpiel
    "Kuhn": (KUHN, 130, 500),
    "Leduc": ("leduc_poker", 800, 3500),
    "Liar's Dice 4": ("liars_dice(numdice=1,dice_sides=4)", 500, 2000),
}
OPENSPIEL, EXACT_MODE = "OpenSpiel (C++)", "our exact mode"
LARGE_GAMES = {"phantom tic-tac-toe": LARGE["PTTT"], "dark hex 3x3": LARGE["DH3"]}
# Seconds per evaluation of one policy in these games, as the authors of two public projects report
# them on their own hardware. The fastest of each: exp-a-spiel (C++) takes 75 to 86 s on 16 to 24
# threads; nashbench (JAX) 5.4 to 9.5 s on an RTX A6000, and over 40 minutes on a CPU.
PUBLISHED = {"exp-a-spiel, 16-24 threads": 75.0, "nashbench, RTX A6000": 5.4}
SHOWN_STONES = 1 << 4, 1 << 0  # the centre for player 0, a corner for player 1
HEADER = ("what", "peer", "ours/s", "peer/s", "ratio", "range", "target")


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work done by us and by peers, and the ratios to the first peers that we want."""

    name: str
    unit: str
    ours: Maker
    peers: Mapping[str, Maker]
    targets: Sequence[float] = ()
    seconds: float = 0.2  # per sample
    published: Mapping[str, float] = field(default_factory=dict)  # seconds per unit; not measured


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="python -m parity.speed", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="run this contest; repeatable")
    add("--rounds", type=number(1), default=5, help="the number of rounds (%(default)s)")
    add("--json", action="store_true", help="print one JSON list")
    add("--chart", type=Path, metavar="PNG", help="draw the ratios as bars")
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.chart:
        require_png(arguments.chart)
    every = {contest.name: contest for contest in contests()}
    for name in arguments.only or ():
        if name not in every:
            raise unknown("contest", name, every)
    chosen = arguments.only or list(every)
    ratios: list[dict[str, Any]] = []
    with progress("timing", len(chosen)) as show:
        for done, name in enumerate(chosen):
            show(done, name)
            ratios += measure(every[name], rounds=arguments.rounds)
    if arguments.chart:
        draw(ratios, arguments.chart)
    if arguments.json:
        print(json.dumps(ratios, indent=2))
        return EXIT_OK
    print(table(HEADER, map(_row, ratios), left=2))
    optional = {"Pgx": "pgx", "LiteEFG": "LiteEFG"}
    if missing := [name for name, package in optional.items() if not _installed(package)]:
        print(f"not installed, so not timed: {', '.join(missing)} (the extra [peers])")
    if not all(ratio["measured"] for ratio in ratios):
        print("(published): the authors' figure on their hardware, not measured here")
    return EXIT_OK


def _row(ratio: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{ratio['contest']} ({ratio['unit']})",
        ratio["peer"] if ratio["measured"] else f"{ratio['peer']} (published)",
        _short(ratio["ours_per_second"]),
        _short(ratio["peer_per_second"]),
        f"{ratio['ratio']:.1f}x",
        f"{ratio['lowest']:.1f}-{ratio['highest']:.1f}",
        "" if ratio["target"] is None else f">= {ratio['target']:g}",
    )


def _short(number: float) -> str:
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g}{letter}"
    return f"{number:.3g}"


def draw(ratios: Iterable[Mapping[str, Any]], path: Path) -> None:
    """A bar per measured ratio on a log axis; 1 is the peer's own speed."""
    from matplotlib.figure import Figure

    found = [ratio for ratio in ratios if ratio["measured"]][::-1]
    figure = Figure(figsize=(8, 0.42 * len(found) + 1), layout="constrained")
    axes, widths = figure.subplots(), [ratio["ratio"] for ratio in found]
    labels = [f"{ratio['contest']}  vs  {ratio['peer']}" for ratio in found]
    bars = axes.barh(labels, widths, color="#2f6fb3", height=0.62)
    axes.bar_label(bars, fmt="%.0fx", padding=3, fontsize=9)
    for place, ratio in enumerate(found):
        if target := ratio["target"]:
            axes.plot([target] * 2, [place - 0.31, place + 0.31], color="#222222", lw=1.5)
    axes.set(xscale="log", xlim=(1, 2 * max(widths)))
    axes.set_xlabel("times the peer's speed\n(black: the target)")
    axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=140)


def measure(contest: Contest, *, rounds: int) -> Iterator[dict[str, Any]]:
    """Our speed divided by each peer's: the median over rounds, and the range.

    All contenders are timed in each round, so that noise affects them equally. The speed of a peer
    that is not measured here is a published figure.
    """
    makers = {"ours": contest.ours, **contest.peers}
    warm = {name: _calibrated(make(), contest.seconds) for name, make in makers.items()}
    rates: dict[str, list[float]] = {name: [] for name in warm}
    for _ in range(rounds):
        for name, (contender, units) in warm.items():
            rates[name].append(_rate(contender, units))
    ours = rates.pop("ours")
    rates |= {peer: [1 / seconds] * rounds for peer, seconds in contest.published.items()}
    targets = dict(zip(contest.peers, contest.targets, strict=False))
    for peer, theirs in rates.items():
        ratios = [mine / right for mine, right in zip(ours, theirs, strict=True)]
        yield {
            "contest": contest.name,
            "unit": contest.unit,
            "peer": peer,
            "ours_per_second": median(ours),
            "peer_per_second": median(theirs),
            "ratio": median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
            "target": targets.get(peer),
            "measured": peer in contest.peers,
        }


def _calibrated(contender: Contender, seconds: float) -> tuple[Contender, int]:
    """Warm up, and find how many units of work fill a sample of `seconds`."""
    units = contender(1)
    while (rate := _rate(contender, units)) * seconds > 2 * units:
        units = max(2 * units, int(rate * seconds / 2))
    return contender, max(1, int(rate * seconds))


def _rate(contender: Contender, units: int) -> float:
    start = time.perf_counter()
    return contender(units) / (time.perf_counter() - start)


def contests() -> Iterator[Contest]:
    """All contests, with the peers that are installed."""
    from parity.kuhn import shimmed  # which imports OpenSpiel

    names = {OPENSPIEL: KUHN, "OpenSpiel (Python)": "python_kuhn_poker"}
    peers: dict[str, Maker] = {peer: partial(_openspiel, name) for peer, name in names.items()}
    yield Contest("core, random hands", "decisions", _core, peers, [5])
    peers = {"Shimmy": partial(_aec, shimmed)}
    yield Contest("AEC face, random hands", "decisions", partial(_aec, kuhn_v0.env), peers, [20])
    peers = {"Pgx": _pgx} if _installed("pgx") else {}
    yield Contest(f"{BATCH:,} hands at once", "decisions", _hands, peers, [15])
    for name, (game, target, _) in GAMES.items():
        peers = {OPENSPIEL: partial(_openspiel_cfr, game), EXACT_MODE: partial(_cfr, game, "exact")}
        yield Contest(f"CFR, {name}", "iterations", partial(_cfr, game), peers, [target])
    ours, peers = partial(_cfr, DICE6), {EXACT_MODE: partial(_cfr, DICE6, "exact")}
    yield Contest("CFR, Liar's Dice 6", "iterations", ours, peers, [6], seconds=0.5)
    for name, (game, *_) in GAMES.items():
        # LiteEFG's CFR updates all players at once, so here ours does too. LiteEFG updates several
        # averages in a second call; ours updates one in every iteration. So LiteEFG is timed with
        # that call, which does more than ours, and without it, which does less.
        calls = {"all its averages": True, "no average": False} if _installed("LiteEFG") else {}
        peers = {f"LiteEFG, {call}": partial(_lite_efg, game, on) for call, on in calls.items()}
        ours = partial(_cfr, game, "fast", "cfr-simultaneous")
        yield Contest(f"simultaneous CFR, {name}", "iterations", ours, peers, [10, 10])
    for name, (game, _, target) in GAMES.items():
        unit, peers = "policies, 100 per batch", {OPENSPIEL: partial(_openspiel_nash_conv, game)}
        yield Contest(f"NashConv, {name}", unit, partial(_nash_conv, game, 100), peers, [target])
    ours, peers = partial(_nash_conv, KUHN, 1), {OPENSPIEL: partial(_openspiel_nash_conv, KUHN)}
    yield Contest("NashConv, Kuhn, one call", "policies", ours, peers, [100])
    for name, game in LARGE_GAMES.items():
        ours = partial(_large_nash_conv, game)
        yield Contest(f"NashConv, {name}", "policies", ours, {}, seconds=1.0, published=PUBLISHED)
    for name, game in LARGE_GAMES.items():
        peers = {"a walk over all histories": partial(_walk, game)}
        what, ours = f"NashConv, {name}, two stones shown", partial(_restricted_nash_conv, game)
        yield Contest(what, "policies", ours, peers)
    peers = {"the usual recipe": partial(_trained, "usual")}
    ours = partial(_trained, "self-play")
    yield Contest("training loop", "decisions", ours, peers, [200], seconds=2.0)


def _installed(package: str) -> bool:
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
    draw, coin = random.Random(0).random, random.Random(1).getrandbits
    game = load_game(name).origin

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


def _cfr(game: str, mode: Mode = "fast", variant: str = "cfr") -> Contender:
    solver = make_solver(load_game(game).tree, variant, mode=mode)

    def play(n: int) -> int:
        solver.run(n)
        return n

    return play


def _openspiel_cfr(game: str) -> Contender:
    import pyspiel

    return _repeated(pyspiel.CFRSolver(load_game(game).origin).evaluate_and_update_policy)


def _lite_efg(game: str, averages: bool) -> Contender:
    import LiteEFG
    from LiteEFG.baselines import CFR

    with contextlib.redirect_stdout(io.StringIO()):
        graph = CFR.graph()
        env = LiteEFG.OpenSpielEnv(load_game(game).origin, traverse_type="Enumerate")
        env.set_graph(graph)

    def iterate() -> None:
        graph.update_graph(env)
        if averages:
            env.update_strategy(graph.current_strategy())

    return _repeated(iterate)


def _nash_conv(game: str, batch: int) -> Contender:
    tree = load_game(game).tree
    policies = np.stack([tree.random(seed) for seed in range(batch)])
    one, many = partial(nash_conv, tree, policies[0]), partial(nash_convs, tree, policies)
    return _repeated(many if batch > 1 else one, units=batch)


def _openspiel_nash_conv(name: str) -> Contender:
    import pyspiel

    game = load_game(name).origin
    return _repeated(partial(pyspiel.nash_conv, game, pyspiel.UniformRandomPolicy(game)))


def _large_nash_conv(name: str) -> Contender:
    game = load_game(name)
    return _repeated(partial(game.measure, game.uniform_table()))


@cache
def _evaluator(game: str) -> Evaluator:
    """After two stones that both players see, so that a walk can visit every history."""
    native: Any = load_game(game).native
    return Evaluator(with_public_stones(native.rules, SHOWN_STONES))


def _restricted_nash_conv(game: str) -> Contender:
    evaluator = _evaluator(game)
    uniform = evaluator.make_solver(VARIANTS["cfr"]).average_policy()
    return _repeated(partial(evaluator.measure, uniform))


def _walk(game: str) -> Contender:
    rules = _evaluator(game).rules
    tries = find_tries(rules)
    return _repeated(partial(walk, rules, tries, np.ones(tries.actions.shape)))


def _trained(recipe: str) -> Contender:
    import torch

    from algorithms.self_play.settings import configure
    from algorithms.self_play.training_run import Training

    torch.set_num_threads(1)

    def play(n: int) -> int:
        training = Training(configure({"recipe": recipe, "steps": n}))
        training.run()
        return int(training.model.num_timesteps)

    return play


if __name__ == "__main__":
    sys.exit(main())
