"""Put any policy into a network, as a model for SB3 or as ONNX, and report what that costs.

POLICY is anything that `nashconv` measures exactly: a solver's policy such as `dcfr:1000`, a file,
or a network, which may be put into a smaller one. Ctrl-C keeps the best network so far.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algorithms.games import Game
from algorithms.nashconv import NO_LOSS
from algorithms.policies import load
from algorithms.policies.network import MAX_WIDTH, WIDTH
from algorithms.support import command
from algorithms.support.command import shortened, table
from algorithms.support.errors import UsageError
from algorithms.support.files import require_writable
from algorithms.support.progress import progress
from kuhn_bridge.errors import GameError

if TYPE_CHECKING:
    from algorithms.policies.distilled_policy import DistilledPolicy

SUFFIXES = (".zip", ".onnx")
SHOWN_LOSSES = 5
MAX_LABEL = 60  # characters of an information set's label


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = command.Parser(prog="python -m algorithms.distil", description=__doc__)
    add = parser.add_argument
    number = command.number
    add("policy", metavar="POLICY", help=load.HELP)
    add("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    add("--out", default="model.zip", metavar="FILE", help="model.zip or policy.onnx (%(default)s)")
    width = "units of each of the two hidden layers (%(default)s)"
    add("--width", type=number(1, MAX_WIDTH), default=WIDTH, metavar="N", help=width)
    steps = "steps of the optimizer (1,000 to 10,000, more in large games)"
    add("--steps", type=number(1), metavar="N", help=steps)
    add("--seed", type=number(0, load.MAX_SEED), default=0, help="random seed (%(default)s)")
    losses = "show the N information sets where most is lost (%(default)s)"
    add("--losses", type=number(0), default=SHOWN_LOSSES, metavar="N", help=losses)
    add("--trust", action="store_true", help="let a model's file run code")
    add("--json", action="store_true", help="print one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    if Path(args.out).suffix not in SUFFIXES:
        raise UsageError(f"--out {args.out}: give a name that ends in {' or '.join(SUFFIXES)}")
    require_writable(args.out)
    source = load.open_source(args.policy, trust=args.trust)
    game = load.game_of([source], args.game)
    _require_networks(game)
    policy = source.policy(game)

    from algorithms.policies.distilled_policy import distil, steps_for  # torch takes seconds

    steps = args.steps or steps_for(game)
    with progress("fitting", steps) as bar:
        distilled = distil(policy, width=args.width, steps=steps, seed=args.seed, progress=bar)
    distilled.save(args.out)
    if args.json:
        print(json.dumps(_summary(args, distilled)))
    else:
        print("\n".join(_report(args, distilled)))
    if distilled.interrupted:
        print(f"interrupted after {distilled.steps:,} of {steps:,} steps", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    return command.EXIT_OK


def _require_networks(game: Game) -> None:
    """Raise an error for a game without an exact measure, or that no network can play."""
    game.require_exact()
    if game.plays_networks:
        return
    table_file = f"policy{game.policy_file}"
    try:
        game.example_observation(game.observation_size)
    except GameError as error:
        raise UsageError(f"{error}; solve --out {table_file} writes its table") from None


def _report(args: argparse.Namespace, distilled: DistilledPolicy) -> Iterator[str]:
    """What the command prints."""
    yield distilled.game.size_label
    size = f"2 x {distilled.width}, {distilled.num_weights:,} weights"
    yield f"{args.policy} in a network of {size}, after {distilled.steps:,} steps"
    yield ""
    share = "-" if distilled.share_lost is None else f"{distilled.share_lost:.3%}"
    uniform = f"{share} of uniform play's {distilled.nash_conv_uniform:.4g}"
    yield f"NashConv before      {distilled.nash_conv_before:.4e}"
    yield f"NashConv after       {distilled.nash_conv_after:.4e}"
    yield f"lost                 {distilled.lost:.4e}  ({uniform})"
    yield from _loss_lines(distilled, args.losses)
    yield ""
    yield f"{args.out}: {Path(args.out).stat().st_size:,} bytes"


def _loss_lines(distilled: DistilledPolicy, count: int) -> Iterator[str]:
    """The information sets where the network loses most that the policy did not lose."""
    game = distilled.game
    rows = []
    for loss in distilled.losses()[:count]:
        if loss.lost <= NO_LOSS:
            break
        label = game.infoset_label(loss.infoset, loss.player)
        played = game.action_label(loss.infoset, loss.played, loss.player)
        best = game.action_label(loss.infoset, loss.best, loss.player)
        rows.append(
            (
                shortened(label, MAX_LABEL),
                f"{loss.reach:.4f}",
                f"{played} {loss.probability:.2f}",
                best,
                f"{loss.lost:.2e}",
            )
        )
    if rows:
        header = ("where it loses most", "reached", "plays", "best", "chips per hand")
        yield ""
        yield table(header, rows)


def _summary(args: argparse.Namespace, distilled: DistilledPolicy) -> dict[str, Any]:
    """What `--json` prints."""
    game = distilled.game
    losses = [
        loss._asdict() | {"label": game.infoset_label(loss.infoset, loss.player)}
        for loss in distilled.losses()[: args.losses]
    ]
    return {
        "policy": args.policy,
        "game": game.name,
        "out": args.out,
        "width": distilled.width,
        "weights": distilled.num_weights,
        "seed": args.seed,
        "steps": distilled.steps,
        "finished": not distilled.interrupted,
        "nash_conv_before": distilled.nash_conv_before,
        "nash_conv_after": distilled.nash_conv_after,
        "nash_conv_uniform": distilled.nash_conv_uniform,
        "share_lost": distilled.share_lost,
        "losses": losses,
        "curve": distilled.curve,
    }


if __name__ == "__main__":
    sys.exit(main())
