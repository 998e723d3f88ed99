"""Solve a game with a member of the CFR family and say how far from equilibrium it is."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.exact.kuhn import nearest_nash
from algorithms.exact.solving import MODES, NAMES, SAMPLING, Milestone, Solved, make_solver, solve
from algorithms.games import KUHN, MAX_NODES, load_game
from algorithms.policies import Policy
from algorithms.policies.json_format import to_players
from algorithms.policies.kuhn import to_names, to_percentages
from algorithms.support import command, files
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from kuhn_bridge.rules import AGENTS

DEFAULT_ITERATIONS = 1_000
MOST_ITERATIONS = 20_000_000  # after which `until` gives up
SHOWN_ROWS = 24
WIDEST = 120  # characters of an information set's name


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if `--until` was not reached."""
    parser = command.Parser(prog="python -m algorithms.solve", description=__doc__)
    parser.add_argument(
        "--game", default=KUHN, help=f"{KUHN} or any small OpenSpiel game (%(default)s)"
    )
    parser.add_argument("--variant", default="cfr+", help=f"{', '.join(NAMES)} (%(default)s)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--iterations",
        type=int,
        default=DEFAULT_ITERATIONS,
        metavar="N",
        help="how many (%(default)s)",
    )
    length.add_argument("--until", type=float, metavar="NASHCONV", help="stop when this small")
    parser.add_argument(
        "--discounts",
        type=float,
        nargs=3,
        metavar=("ALPHA", "BETA", "GAMMA"),
        help="instead of the variant's own",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="fast",
        help="exact: OpenSpiel's iterates bit for bit; fast: the same up to rounding (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of a sampling variant (%(default)s)")
    parser.add_argument("--max-nodes", type=int, default=MAX_NODES, help="refuse larger games")
    parser.add_argument(
        "--no-cache", action="store_true", help="walk the game even if its tree is on disk"
    )
    parser.add_argument("--out", metavar="FILE.json", help="write the average policy")
    parser.add_argument("--plot", metavar="FILE.png", help="draw NashConv over iterations")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    _require(args)
    until, limit = args.until or -math.inf, MOST_ITERATIONS if args.until else args.iterations
    with ExitStack() as held:  # an output that cannot be written fails before the work starts
        out, plot = (p and held.enter_context(files.replacing(p)) for p in (args.out, args.plot))
        game = load_game(args.game, max_nodes=args.max_nodes, cached=not args.no_cache)
        how = {"discounts": args.discounts, "seed": args.seed, "mode": args.mode}
        solver = make_solver(game.tree, args.variant, **how)
        with progress("solving", None if args.until else limit) as bar:
            solved = solve(solver, iterations=limit, until=until, progress=bar)
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
    """Refuse impossible values, before any work."""
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
        raise UsageError(f"--seed {args.seed}: want a whole number from 0 up")
    if args.discounts and (args.variant in SAMPLING or any(map(math.isnan, args.discounts))):
        raise UsageError(f"--discounts {args.discounts}: {args.variant} cannot use them")


def _summary(args: argparse.Namespace, policy: Policy, solved: Solved) -> dict[str, Any]:
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


def _report(args: argparse.Namespace, policy: Policy, solved: Solved) -> Iterator[str]:
    measure, game = solved.measure, policy.game
    tree, known = game.tree, game.closed_form
    yield f"{game.name}: {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets"
    yield f"{args.variant}: {solved.iterations:,} iterations"
    yield ""
    yield from _kuhn_strategy(policy) if game.name == KUHN else _strategy(policy)
    yield ""
    right = f"  (equilibrium {float(known.value):+.6f} = {known.value})" if known else ""
    yield f"value           {', '.join(f'{value:+.6f}' for value in measure.values)}{right}"
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
    game = policy.game
    rows = []
    for row, (shares, legal) in enumerate(zip(policy.table, game.tree.legal, strict=True)):
        if row == SHOWN_ROWS:
            break
        actions = np.flatnonzero(legal).tolist()
        shown = "  ".join(
            f"{game.action_label(row, action)}: {shares[action]:.4f}" for action in actions
        )
        rows.append((command.shortened(game.infoset_label(row), WIDEST), shown))
    yield command.table(("information set", "action: probability"), rows, left=2)
    if (more := len(policy.table) - SHOWN_ROWS) > 0:
        yield f"... and {more:,} more (--out writes all)"


def _plot(path: Path, title: str, curve: Sequence[Milestone]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", title=title)
    axes.set(xlabel="iterations", ylabel="NashConv (chips per hand)")
    axes.plot(*zip(*curve, strict=True))
    axes.grid(which="both", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
