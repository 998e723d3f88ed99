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

from algorithms.exact.kuhn import VALUE, nearest_nash
from algorithms.exact.solving import NAMES, SAMPLING, Point, Solved, make_solver, solve
from algorithms.exact.tree import Policy, Tree
from algorithms.games import KUHN as NATIVE
from algorithms.games import load_game
from algorithms.games.openspiel import MAX_NODES
from algorithms.support import command, files
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from kuhn_bridge.policy import TabularPolicy
from kuhn_bridge.rules import AGENTS

DEFAULT_ITERATIONS = 1_000
MOST_ITERATIONS = 20_000_000  # after which `until` gives up
SHOWN_ROWS = 24


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if `--until` was not reached."""
    parser = command.Parser(prog="python -m algorithms.solve", description=__doc__)
    parser.add_argument(
        "--game", default=NATIVE, help=f"{NATIVE} or any OpenSpiel name (%(default)s)"
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
    parser.add_argument("--seed", type=int, default=0, help="of a sampling variant (%(default)s)")
    parser.add_argument("--max-nodes", type=int, default=MAX_NODES, help="refuse larger games")
    parser.add_argument("--out", metavar="FILE.json", help="write the average policy")
    parser.add_argument("--plot", metavar="FILE.png", help="draw NashConv over iterations")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    _require(args)
    until, limit = args.until or -math.inf, MOST_ITERATIONS if args.until else args.iterations
    with ExitStack() as held:  # an output that cannot be written is told before the work
        out, plot = (p and held.enter_context(files.replacing(p)) for p in (args.out, args.plot))
        tree = load_game(args.game, max_nodes=args.max_nodes).tree
        solver = make_solver(tree, args.variant, discounts=args.discounts, seed=args.seed)
        with progress("solving", None if args.until else limit) as bar:
            solved = solve(solver, iterations=limit, until=until, progress=bar)
        if out:
            out.write_text(f"{_policy_json(args.game, tree, solved.policy)}\n", encoding="utf-8")
        if plot:
            _plot(plot, f"{args.variant} on {args.game}", solved.curve)
    if args.json:
        print(json.dumps(_summary(args, tree, solved)))
    else:
        print("\n".join(_report(args, tree, solved)))
    missed = args.until and solved.measure.total > args.until
    return command.DOES_NOT_HOLD if missed else command.HOLDS


def _require(args: argparse.Namespace) -> None:
    """Refuse what cannot be meant, before any work."""
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


def _policy_map(game: str, tree: Tree, policy: Policy) -> dict[str, dict[str, float]]:
    """Information states to actions to probabilities; actions by name in Kuhn, else by ID."""
    if game == NATIVE:
        return TabularPolicy(policy).to_dict()
    return {
        key: {str(action): float(row[action]) for action in np.flatnonzero(legal)}
        for key, row, legal in zip(tree.keys, policy, tree.legal, strict=True)
    }


def _policy_json(game: str, tree: Tree, policy: Policy) -> str:
    if game == NATIVE:
        return TabularPolicy(policy).to_json()
    head = {"format": "kuhn-bridge-game-policy", "version": 1, "game": game}
    return json.dumps(head | {"policy": _policy_map(game, tree, policy)})


def _summary(args: argparse.Namespace, tree: Tree, solved: Solved) -> dict[str, Any]:
    measure = solved.measure
    summary = {
        "game": args.game,
        "variant": args.variant,
        "iterations": solved.iterations,
        "nash_conv": measure.total,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "value": measure.values[0],
        "values": measure.values,
        "curve": solved.curve,
        "policy": _policy_map(args.game, tree, solved.policy),
    }
    if args.game == NATIVE:
        nearest = nearest_nash(TabularPolicy(solved.policy))
        summary |= {"distance": nearest.distance, "alpha": nearest.alpha}
    return summary


def _report(args: argparse.Namespace, tree: Tree, solved: Solved) -> Iterator[str]:
    measure, kuhn = solved.measure, args.game == NATIVE
    yield f"{args.game}: {tree.num_nodes:,} nodes, {len(tree.keys):,} information sets"
    yield f"{args.variant}: {solved.iterations:,} iterations"
    yield ""
    if kuhn:
        policy = TabularPolicy(solved.policy)
        yield str(policy)
        yield ""
        yield "percent         [check, bet, fold, call] with J, Q, K"
        for agent, rows in zip(AGENTS, policy.to_percentages(), strict=True):
            yield f"{agent:<15} " + "  ".join(str([round(p, 2) for p in row]) for row in rows)
    else:
        yield _strategy(args.game, tree, solved.policy)
    yield ""
    known = f"  (equilibrium {float(VALUE):+.6f} = {VALUE})" if kuhn else ""
    yield f"value           {', '.join(f'{value:+.6f}' for value in measure.values)}{known}"
    gains = ", ".join(f"{gain:.2e}" for gain in measure.gains)
    yield f"NashConv        {measure.total:.4e}  (gains {gains})"
    yield f"exploitability  {measure.exploitability:.4e}  (NashConv / {tree.num_players} players)"
    if kuhn:
        near = nearest_nash(policy)
        yield f"distance        {near.distance:.4e} to the equilibrium of alpha {near.alpha:.4f}"
    if args.until and measure.total > args.until:
        yield f"not reached: NashConv {args.until:g}"


def _strategy(game: str, tree: Tree, policy: Policy) -> str:
    rows = list(_policy_map(game, tree, policy).items())
    shown = command.table(
        ("information state", "action: probability"),
        (
            (" ".join(key.split()), "  ".join(f"{action}: {p:.4f}" for action, p in row.items()))
            for key, row in rows[:SHOWN_ROWS]
        ),
    )
    left = len(rows) - SHOWN_ROWS
    return f"{shown}\n... and {left:,} more (--out writes all)" if left > 0 else shown


def _plot(path: Path, title: str, curve: Sequence[Point]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", title=title)
    axes.set(xlabel="iterations", ylabel="NashConv (chips a hand)")
    axes.plot(*zip(*curve, strict=True))
    axes.grid(which="both", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
