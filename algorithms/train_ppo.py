"""Train MaskablePPO to play a game against itself, towards equilibrium.

Stock `sb3_contrib.MaskablePPO`. Writes a model, its learning curve (.csv and .png), its settings
and results (.json). Ctrl-C saves the current policy; `--resume` continues from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from algorithms.games import KUHN, ExactGame, Game, TreeGame, as_game, load_game
from algorithms.self_play.run_files import CHECKPOINT, require_no_checkpoint, require_own
from algorithms.self_play.settings import (
    Settings,
    configure,
    describe,
    is_bounded,
    is_measured,
    require_trainable,
)
from algorithms.support import command, files
from algorithms.support.errors import UsageError
from algorithms.support.locks import locked
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.self_play.curve import Point
    from algorithms.self_play.training import Trained

WRITTEN = (".zip", ".csv", ".png", ".json", ".ckpt")
HTML = ".html"


def train(  # options by name
    game: Game | str = KUHN,
    *,
    policy_kwargs: Mapping[str, Any] | None = None,
    callback: Any = None,
    progress: bool = False,
    device: str = "cpu",
    **settings: Any,
) -> Trained:
    """Train by self-play as the command `train_ppo` does, and return what it would write.

    Ctrl-C ends the run early and returns what there is, with a warning.

    Args:
        game: a `Game` or its name.
        policy_kwargs: arguments of SB3's policy, for a network of your own. A stock model is then
            trained with `SelfPlay()` as it is in a program of your own.
        callback: callback of SB3, or a list of them, to call as the model learns.
        progress: whether to show a progress bar.
        device: device of a network that is trained on states, or that has `policy_kwargs`: `cpu`,
            `cuda`, `mps`, or `auto`.
        settings: settings of the command, e.g. `steps=1_000_000, net="mlp", seed=1`.
    """
    from algorithms.self_play.training import train_in_memory

    return train_in_memory(
        as_game(game),
        settings,
        policy_kwargs=policy_kwargs,
        callback=callback,
        show_progress=progress,
        device=device,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = command.Parser(prog="python -m algorithms.train_ppo", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("model.zip"), help="the model (model.zip)")
    saved = "the better policy (best), the last, the average, or both: the last in *.last.zip"
    add("--save", choices=("best", "last", "average", "both"), default="best", help=saved)
    add("--resume", action="store_true", help="continue from the last checkpoint")
    recipes = "self-play, or usual: naive self-play, which fails, for comparison (%(default)s)"
    add("--recipe", choices=("self-play", "usual"), default="self-play", help=recipes)
    for name, kind in get_type_hints(Settings).items():
        options: Any = {"metavar": {int: "N", float: "X"}.get(kind, name.upper())}
        options["type"] = command.whole if kind is int else kind
        options["default"] = argparse.SUPPRESS  # a setting that is not given follows from others
        add(f"--{name.replace('_', '-')}", help=describe(name), **options)
    parser.add_import()
    every: Any = {"type": int, "metavar": "STEPS", "default": 1_000_000}
    add("--checkpoint-every", help="steps between checkpoints (1,000,000)", **every)
    add("--device", default="cpu", help="where a network learns on states: cpu, cuda or mps (cpu)")
    add("--html", action="store_true", help="write a report as well: *.html")
    add("--tensorboard", type=Path, metavar="DIR", help="a folder for TensorBoard logs")
    add("--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the result as one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    _require_possible(args)
    with locked(args.out):
        if args.recipe == "usual":
            from algorithms.self_play import naive_ppo  # it takes seconds to import

            return naive_ppo.run(args)
        return _run_alone(args)


def _run_alone(args: argparse.Namespace) -> int:
    """The run, while no other process writes the same files."""
    path = args.out.with_suffix(CHECKPOINT)
    settings, state = _settings(args, path)  # before the libraries, which take seconds to import
    if not args.resume:
        require_no_checkpoint(path)
    import torch

    from algorithms.reports.writing import report_document, write_document
    from algorithms.self_play.saving import save_results
    from algorithms.self_play.training_run import Training

    torch.set_num_threads(1)  # the networks are tiny: threads would only wait for each other
    say: Any = (lambda text: None) if args.quiet or args.json else print
    say(_plan(args, settings, state["steps"] if state else 0))
    bar: Any = nullcontext(lambda steps, note: None)
    with bar if args.quiet else progress("training", settings.steps) as show:

        def watch(point: Point) -> None:
            show(point.steps, _note(point, bounded=is_bounded(settings, training.game)))
            if not point.steps and _measures_take_long(training.game) and settings.points:
                spent = training.recorder.measuring_cpu_seconds
                say(f"The first point took {spent:.1f} CPU seconds")

        training = Training(
            settings,
            tensorboard=args.tensorboard,
            watch=watch,
            checkpoint=path,
            checkpoint_every=args.checkpoint_every,
            device=args.device,
        )
        if state is not None:
            training.set_state(state)
        training.run()
    result = save_results(training, args.out, which=args.save)
    if training.stopped:
        end = f"interrupted at step {result['steps']:,}, saved {result['source']}"
        print(f"{end}; --resume continues from there", file=sys.stderr)
    else:
        path.unlink(missing_ok=True)
    say(_report(result, args.out))
    if args.html:
        page = args.out.with_suffix(HTML)
        size = write_document(page, report_document([result["source"]], decisions=0))
        say(f"report: {page}, {size / 1e6:.2f} MB")
    for warning in result["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    if args.json:
        print(json.dumps(result))
    return command.EXIT_INTERRUPTED if training.stopped else command.EXIT_OK


def _settings(args: argparse.Namespace, path: Path) -> tuple[Settings, dict[str, Any] | None]:
    """The settings, checked, and the state of the run to resume, if any."""
    known = {f.name for f in fields(Settings)}
    given = {name: value for name, value in vars(args).items() if name in known}
    state = None
    if args.resume:
        from algorithms.self_play.training_run import read_checkpoint

        state = read_checkpoint(path)
        stored = state["settings"]
        if set(stored) != known:
            raise UsageError("--resume: the checkpoint was written by another version")
        for name, value in given.items():
            if value != stored[name]:
                hint = "leave it out, or start again without --resume"
                raise UsageError(
                    f"--resume continues with {name} {stored[name]}, not {value}; {hint}"
                )
        given = stored
    settings = configure(given)
    require_trainable(settings)
    return settings, state


def _require_possible(args: argparse.Namespace) -> None:
    """Refuse, before the training run, options that would fail after it."""
    out = args.out
    if out.suffix != ".zip" or (out.exists() and not out.is_file()):  # the model is read again
        raise UsageError(f"--out {out}: give a file whose name ends in .zip")
    written = [*WRITTEN, HTML] if args.html else [*WRITTEN]
    for suffix in written:
        files.require_writable(out.with_suffix(suffix))
    require_own(out, written)
    if args.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {args.checkpoint_every}: want at least 1")
    if args.tensorboard and not find_spec("tensorboard"):
        raise UsageError("--tensorboard: not installed; pip install 'kuhn-bridge[tensorboard]'")


def _plan(args: argparse.Namespace, settings: Settings, done: int) -> str:
    """What is trained, what measuring costs, and the files that are written."""
    from algorithms.self_play.saving import LAST

    start = f", from step {done:,}" if done else ""
    game = load_game(settings.game)
    cost = ""
    suffixes = []
    if game.plays_networks:
        suffixes.append(".zip")
        if args.save == "both":
            suffixes.append(LAST)
    suffixes.append(".csv")
    if is_measured(settings, game):
        suffixes.append(".png")
    suffixes.append(".json")
    if args.html:
        suffixes.append(HTML)
    outputs = [args.out.with_suffix(suffix) for suffix in suffixes]
    if _measures_take_long(game) and settings.points:
        cost = (
            f"\nExact NashConv at {settings.points + 1} points of the curve, each of two networks "
            f"at {game.size.infosets:,} information sets; --points changes that, "
            "and --points 0 leaves it out"
        )
    elif is_bounded(settings, game):
        cost = (
            f"\nLower bounds of NashConv at {settings.points + 1} points of the curve, each from "
            f"{4 * game.num_players} best responses of {settings.bound_decisions:,} decisions"
        )
    elif not isinstance(game, TreeGame):
        cost = "\nNashConv is not measured"
    return (
        f"Training MaskablePPO on {settings.game}: "
        f"{settings.steps:,} steps{start}, "
        f"{settings.n_envs:,} hands at a time ({settings.env}), {settings.net} network, "
        f"seed {settings.seed}{cost}\nThen writing {', '.join(map(str, outputs))}"
    )


def _measures_take_long(game: Game) -> bool:
    """Whether an exact measure takes many seconds."""
    return isinstance(game, ExactGame) and not game.measures_at_once


def _note(point: Point, *, bounded: bool) -> str:
    rate = f"{point.steps / point.seconds if point.seconds else 0:,.0f} steps/s"
    if math.isnan(point.last):
        return rate
    name = "NashConv at least" if bounded else "NashConv"
    return f"{rate}  {name} {point.last:.4f}  average {point.average:.4f}"


def _report(result: dict[str, Any], out: Path) -> str:
    speed = (
        f"{result['steps']:,} steps in {result['seconds']:.1f} s, "
        f"{result['steps_per_second']:,.0f} steps/s\nCPU seconds: training "
        f"{result['cpu_seconds']:.1f}, measuring {result['measuring_cpu_seconds']:.1f}, "
        f"fitting {result['fitting_cpu_seconds']:.1f}"
    )
    source = shlex.quote(str(result["source"]))
    more = f"more: {command.as_called('python -m algorithms.nashconv')} {source}"
    saved = f"{result['source']} ({result['holds']})"
    if "nash_conv_at_least_average" in result:
        last, average = (result[f"nash_conv_at_least_{which}"] for which in ("last", "average"))
        speed += f"\nNashConv at least {last:.5f} (last policy), {average:.5f} (average policy)"
    if "nash_conv_uniform" not in result:
        return f"{result['source']} holds the {result['holds']} policy\n{speed}\n{more}"
    names = "last policy", "average policy", saved, "uniform policy"
    ends = "_last", "_average", "", "_uniform"
    figures = [f"{result[f'nash_conv{end}']:.5f}" for end in ends]
    table = command.table(("", "NashConv"), zip(names, figures, strict=True))
    game = load_game(result["game"])
    if game.pot is not None:
        share = game.share_of_pot(result["nash_conv"])
        table += f"\nNashConv of {result['source']}: {share} of {game.pot:,} chips"
    return f"{table}\n{speed}\ncurve: {out.with_suffix('.png')}   {more}"


if __name__ == "__main__":
    sys.exit(main())
