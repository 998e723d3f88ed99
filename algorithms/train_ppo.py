"""Train MaskablePPO to play any small game against itself, towards equilibrium.

Stock `sb3_contrib.MaskablePPO`. Writes a model, its learning curve (.csv and .png) and how it was
made (.json). Ctrl-C saves what there is; `--resume` continues from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algorithms.support import command, files
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.learning.curve import Point
    from algorithms.learning.recipes import Config

EXIT_INTERRUPTED = 130
HELD = ("last", "average")
WRITTEN = (".zip", ".csv", ".png", ".json", ".ckpt")


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = _parser()
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _parser() -> argparse.ArgumentParser:
    parser = command.Parser(
        prog="python -m algorithms.train_ppo",
        description=command.summary(__doc__),
        argument_default=argparse.SUPPRESS,  # what is not given comes from the recipe
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("model.zip"), help="the model (model.zip)")
    add(
        "--save",
        choices=("best", *HELD, "both"),
        default="best",
        help="the better policy (best), the last, the average, or both: the last in *.last.zip",
    )
    add("--resume", action="store_true", default=False, help="go on from the last checkpoint")
    add("--recipe", help="self-play, or tutorial: the usual recipe, for comparison")
    add("--game", help="kuhn, or any small OpenSpiel game: leduc_poker (kuhn)")
    add("--init", metavar="MODEL", help="a model.zip of the same game to start from")
    add("--env", help="vector: thousands of hands at once; aec: PettingZoo, move by move")
    add("--net", help="table: a weight per information set and action; mlp: a network")
    add("--steps", type=int, help="decisions to learn from (20,000,000)")
    add("--seed", type=int, help="decides deals, draws and weights (0)")
    add("--n-envs", type=int, help="hands at a time (2048)")
    add(
        "--n-steps",
        type=int,
        help="decisions of each between updates (4; more in larger games)",
    )
    add("--lr", type=float, help="how far a row moves, relative to what it can gain (1); falls")
    add("--entropy", type=float, help="pull towards the magnet at the start (0.2)")
    add("--entropy-end", type=float, help="pull towards the magnet at the end (0.1)")
    add(
        "--magnet", type=float, help="how far the magnet follows in an update (0.01); 0: not at all"
    )
    add("--vf-coef", type=float, help="weight of the value loss (0.5)")
    add("--width", type=int, help="mlp: units of each of two layers (128)")
    add("--fit", type=int, help="mlp: steps of Adam per update (6)")
    add("--fit-lr", type=float, help="mlp: Adam's learning rate; falls to a third (0.006)")
    add("--checkpoint-every", type=int, metavar="STEPS", default=1_000_000, help="(1,000,000)")
    add("--tensorboard", type=Path, metavar="DIR", default=None, help="log there as well")
    add("--quiet", action="store_true", default=False, help="print nothing")
    add("--json", action="store_true", default=False, help="print the result as one JSON object")
    return parser


def _run(args: argparse.Namespace) -> int:
    _require_possible(args)
    kept = args.out.with_suffix(".ckpt")
    settings, state = _asked(args, kept)  # before the libraries, which take seconds to import
    import torch

    from algorithms.learning.saving import save_results
    from algorithms.learning.training import Training

    torch.set_num_threads(1)  # the networks are tiny: threads would only wait for each other
    checkpoint = kept if settings.recipe == "self-play" else None
    say = _nothing if args.quiet or args.json else print
    say(_plan(settings, _outputs(args, settings), state["steps"] if state else 0))
    with nullcontext(_nothing) if args.quiet else progress("training", settings.steps) as show:
        training = Training(
            settings,
            tensorboard=args.tensorboard,
            watch=lambda point: show(point.steps, _note(point)),
            checkpoint=checkpoint,
            checkpoint_every=args.checkpoint_every,
        )
        if state is not None:
            training.set_state(state)
        training.run()
    result = save_results(training, args.out, which=args.save)
    if training.stopped:
        more = "; --resume goes on from there" if checkpoint else ""
        where = f"interrupted at step {result['steps']:,}, saved {result['source']}{more}"
        print(where, file=sys.stderr)
    elif checkpoint:
        checkpoint.unlink(missing_ok=True)
    say(_report(result, args.out))
    if args.json:
        print(json.dumps(result))
    return EXIT_INTERRUPTED if training.stopped else command.EXIT_OK


def _asked(args: argparse.Namespace, kept: Path) -> tuple[Config, dict[str, Any] | None]:
    """What to train, if that is possible, and where an earlier run stopped."""
    from algorithms.learning.recipes import Config, configure, require_savable

    names = [field.name for field in fields(Config)]
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    if args.resume:
        from algorithms.learning.checkpoint import read_checkpoint

        state = read_checkpoint(kept)
        settings = _resumed(given, state["config"])
    else:
        state, settings = None, configure(given)
    require_savable(settings)
    return settings, state


def _require_possible(args: argparse.Namespace) -> None:
    """Refuse before the training run what would be refused after it."""
    out = args.out
    if out.suffix != ".zip" or (out.exists() and not out.is_file()):  # it is read again
        raise UsageError(f"--out {out}: give a file whose name ends in .zip")
    for suffix in WRITTEN:
        files.require_writable(out.with_suffix(suffix))
    if args.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {args.checkpoint_every}: want at least 1")
    if args.tensorboard and not find_spec("tensorboard"):
        raise UsageError("--tensorboard: not installed; pip install 'kuhn-bridge[tensorboard]'")


def _resumed(given: dict[str, Any], stored: dict[str, Any]) -> Config:
    """The configuration of a checkpoint, unless other settings are asked for."""
    from algorithms.learning.recipes import Config, configure

    if not isinstance(stored, dict) or set(stored) != {field.name for field in fields(Config)}:
        raise UsageError("--resume: the checkpoint is of another version of this program")
    for name, value in given.items():
        if value != stored[name]:
            raise UsageError(
                f"--resume goes on with {name} {stored[name]}, not {value}; "
                "leave it out, or start afresh without --resume"
            )
    for field in fields(Config):
        kind = type(field.default)
        if type(stored[field.name]) not in {kind, int if kind is float else kind}:
            raise UsageError(f"--resume: the checkpoint has no sensible {field.name}")
    return configure(stored)


def _outputs(args: argparse.Namespace, settings: Config) -> list[Path]:
    """The files that a training run writes: no model where networks cannot play the game."""
    from algorithms.games import load_game
    from algorithms.learning.saving import LAST, holds_models

    models = [".zip", *([LAST] if args.save == "both" else [])]
    kept = models if holds_models(load_game(settings.game)) else []
    return [args.out.with_suffix(suffix) for suffix in (*kept, ".csv", ".png", ".json")]


def _plan(settings: Config, outputs: Sequence[Path], done: int) -> str:
    start = f", from step {done:,}" if done else ""
    return (
        f"Training MaskablePPO ({settings.recipe}) on {settings.game}: "
        f"{settings.steps:,} steps{start}, "
        f"{settings.n_envs:,} hands at a time ({settings.env}), {settings.net} network, "
        f"seed {settings.seed}\nThen writing {', '.join(map(str, outputs))}"
    )


def _note(point: Point) -> str:
    rate = point.steps / point.seconds if point.seconds else 0
    return f"{rate:,.0f} steps/s  NashConv {point.last:.4f}  average {point.average:.4f}"


def _report(result: dict[str, Any], out: Path) -> str:
    rows = [
        ("last policy", f"{result['nash_conv_last']:.5f}"),
        ("average policy", f"{result['nash_conv_average']:.5f}"),
        (f"{result['source']} ({result['holds']})", f"{result['nash_conv']:.5f}"),
        ("uniform policy", f"{result['nash_conv_uniform']:.5f}"),
    ]
    more = command.as_called("python -m algorithms.nashconv")
    speed = f"{result['steps']:,} steps in {result['seconds']:.1f} s"
    return (
        f"{command.table(('', 'NashConv'), rows)}\n"
        f"{speed}, {result['steps_per_second']:,.0f} steps/s\n"
        f"curve: {out.with_suffix('.png')}   more: {more} {result['source']}"
    )


def _nothing(*args: Any) -> None:
    """Say or show nothing."""


if __name__ == "__main__":
    sys.exit(main())
