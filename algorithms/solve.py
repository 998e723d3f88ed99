"""Solve a game with a variant of CFR, and report NashConv."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.exact import solving
from algorithms.exact.kuhn import nearest_nash
from algorithms.exact.solving import DEFAULT_ITERATIONS, DEFAULT_VARIANT, MODES, NAMES, SAMPLING
from algorithms.exact.values import evaluate_policy
from algorithms.games import KUHN, MAX_NODES, load_game
from algorithms.policies import Policy
from algorithms.policies.json_format import to_players
from algorithms.policies.kuhn import to_names, to_percentages
from algorithms.support import command, files
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from kuhn_bridge.rules import AGENTS

MAX_ITERATIONS = 20_000_000  # after which --until gives up
MAX_ROWS = 24  # information sets printed
MAX_LABEL = 120  # characters of an information set's label


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if `--until` was not reached."""
    parser = command.Parser(prog="python -m algorithms.solve", description=__doc__)
    add = parser.add_argument
    add("--game", default=KUHN, help=f"{KUHN} or any small OpenSpiel game (%(default)s)")
    add("--variant", default=DEFAULT_VARIANT, help=f"{', '.join(NAMES)} (%(default)s)")
    length = parser.add_mutually_exclusive_group()
    stop = length.add_argument
    stop("--iterations", type=int, default=DEFAULT_ITERATIONS, metavar="N", help="(%(default)s)")
    stop("--until", type=float, metavar="NASHCONV", help="run until NashConv is at most this")
    exponents = "alpha, beta and gamma of discounted CFR instead of the variant's own"
    add("--discounts", type=float, nargs=3, metavar=("A", "B", "G"), help=exponents)
    modes = "exact: OpenSpiel's iterates bit for bit; fast: the same up to rounding (%(default)s)"
    add("--mode", choices=MODES, default="fast", help=modes)
    add("--seed", type=int, default=0, help="random seed of a sampling variant (%(default)s)")
    add("--max-nodes", type=int, default=MAX_NODES, help="refuse larger games (%(default)s)")
    add("--no-cache", action="store_true", help="neither read nor write the cached tree")
    add("--out", metavar="FILE.json", help="write the average policy")
    add("--plot", metavar="FILE.png", help="draw NashConv over iterations")
    add("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    _require(args)
    limit = MAX_ITERATIONS if args.until else args.iterations
    with ExitStack() as held:  # an output that cannot be written fails before the work starts
        out, plot = (p and held.enter_context(files.replacing(p)) for p in (args.out, args.plot))
        game = load_game(args.game, max_nodes=args.max_nodes, cached=not args.no_cache)
        solver = solving.make_solver(
            game.tree, args.variant, discounts=args.discounts, seed=args.seed, mode=args.mode
        )
        with progress("solving", None if args.until else limit) as bar:
            solved = solving.run_solver(
                solver,
                partial(evaluate_policy, game.tree),
                iterations=limit,
                until=args.until or -math.inf,
                progress=bar,
            )
        policy = Policy(game, solved.policy)
        if out:
            out.write_text(f"{json.dumps(policy.to_document())}\n", encoding="utf-8")
        if plot:
            _plot(plot, f"{args.variant} on {game.name}", solved.curve)
    if args.json:
        print(json.dumps(_summary(args, policy, solved)))
    else:
        print("\n".join(_report(args, policy, solved)))
    missed = args.until and solved.measure.nash_conv > args.until
    return command.EXIT_FAILED if missed else command.EXIT_OK


def _require(args: argparse.Namespace) -> None:
    """Reject impossible values before the work starts."""
    if args.variant not in NAMES:
        raise unknown("variant", args.variant, NAMES)
    if args.iterations < 1:
        raise UsageError(f"--iterations {args.iterations}: want at least 1")
    if args.until is not None and not args.until > 0:
        raise UsageError(f"--until {args.until}: want a NashConv above 0")
    if args.max_nodes < 1:
        raise UsageError(f"--max-nodes {args.max_nodes}: want at least 1")
    if args.plot:
        files.require_png(args.plot)
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: want an integer from 0 up")
    if args.discounts and (args.variant in SAMPLING or any(map(math.isnan, args.discounts))):
        raise UsageError(
            f"--discounts {args.discounts}: want three numbers, and a variant without sampling"
        )


def _summary(args: argparse.Namespace, policy: Policy, solved: solving.Solved) -> dict[str, Any]:
    measure = solved.measure
    summary = {
        "game": policy.game.name,
        "variant": args.variant,
        "iterations": solved.iterations,
        "nash_conv": measure.nash_conv,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "values": measure.values,
        "curve": solved.curve,
        "players": to_players(policy.game.tree, policy.table),
    }
    if policy.game.name == KUHN:
        nearest = nearest_nash(policy.table)
        summary |= {"value": measure.values[0], "policy": to_names(policy.table)}
        summary |= {"distance": nearest.distance, "alpha": nearest.alpha}
    return summary


def _report(args: argparse.Namespace, policy: Policy, solved: solving.Solved) -> Iterator[str]:
    measure, game = solved.measure, policy.game
    tree, known = game.tree, game.closed_form
    yield f"{game.name}: {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets"
    yield f"{args.variant}: {solved.iterations:,} iterations"
    yield ""
    yield from _kuhn_strategy(policy) if game.name == KUHN else _strategy(policy)
    yield ""
    equilibrium = f"  (equilibrium {float(known.value):+.6f} = {known.value})" if known else ""
    yield f"value           {', '.join(f'{value:+.6f}' for value in measure.values)}{equilibrium}"
    gains = ", ".join(f"{gain:.2e}" for gain in measure.gains)
    yield f"NashConv        {measure.nash_conv:.4e}  (gains {gains})"
    yield f"exploitability  {measure.exploitability:.4e}  (NashConv / {tree.num_players} players)"
    if game.name == KUHN:
        near = nearest_nash(policy.table)
        yield f"distance        {near.distance:.4e} to the equilibrium of alpha {near.alpha:.4f}"
    if args.until and measure.nash_conv > args.until:
        yield f"not reached: NashConv {args.until:g}"


def _kuhn_strategy(policy: Policy) -> Iterator[str]:
    yield str(policy)
    yield ""
    yield "percent         [check, bet, fold, call] with J, Q, K"
    for agent, rows in zip(AGENTS, to_percentages(policy.table), strict=True):
        yield f"{agent:<15} " + "  ".join(str([round(p, 2) for p in row]) for row in rows)


def _strategy(policy: Policy) -> Iterator[str]:
    game, table = policy.game, policy.table
    rows = []
    for infoset, legal in enumerate(game.tree.legal[:MAX_ROWS]):
        actions = "  ".join(
            f"{game.action_label(infoset, action)}: {table[infoset, action]:.4f}"
            for action in np.flatnonzero(legal).tolist()
        )
        rows.append((command.shortened(game.infoset_label(infoset), MAX_LABEL), actions))
    yield command.table(("information set", "action: probability"), rows, left=2)
    if (more := len(table) - MAX_ROWS) > 0:
        yield f"... and {more:,} more (--out writes all)"


def _plot(path: Path, title: str, curve: Sequence[solving.CurvePoint]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", title=title)
    axes.set(xlabel="iterations", ylabel="NashConv (chips per hand)")
    axes.plot(*zip(*curve, strict=True))
    axes.grid(which="both", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
