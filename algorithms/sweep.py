"""Train over many seeds and settings at once, on this machine or on a Ray cluster.

Every combination of `--set` values runs with every seed, as `train_ppo` would run it. Writes each
model with its learning curve, `sweep.csv`, `sweep.json` and `sweep.png`. Ctrl-C stops it, and
`--resume` continues it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.learning.sweeping.plan import Plan

EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = _parser()
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _parser() -> argparse.ArgumentParser:
    parser = command.Parser(prog="python -m algorithms.sweep", description=command.summary(__doc__))
    add = parser.add_argument
    add("--game", help="what is played, as train_ppo takes it")
    add("--seeds", metavar="SEEDS", help="0-9, or 0,3,7, or how many (10)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="values of a setting of train_ppo; every combination is run",
    )
    add("--trials", type=int, metavar="N", help="only N of the combinations, drawn at random")
    add("--out", type=Path, metavar="DIR", help="the folder for everything (sweep)")
    add("--resume", action="store_true", help="continue the sweep in --out")
    add("--report", type=Path, metavar="DIR", help="only show a sweep's results again, from files")
    add("--confirm", type=int, metavar="K", help="then run the K best settings on fresh seeds")
    add("--fresh-seeds", type=int, metavar="M", help="on how many (as many as --seeds)")
    add("--cpus", type=int, metavar="N", help="runs at a time, one core each (all cores)")
    add("--address", help="a Ray cluster: auto, host:port or ray://host:port (RAY_ADDRESS)")
    add("--storage", help="a folder or URI that all machines of the cluster reach (in --out)")
    add("--retries", type=int, default=3, metavar="N", help="of a run that breaks off (3)")
    add("--checkpoint-every", type=int, metavar="STEPS", help="(1,000,000)")
    add("--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the results as one JSON object")
    return parser


def _run(args: argparse.Namespace) -> int:
    from algorithms.learning.sweeping.plan import read_plan
    from algorithms.learning.sweeping.results import read_report, to_json, to_text, write_report

    if args.report:
        folder, plan, ended = args.report, read_plan(args.report), True
    else:
        folder = args.out or Path("sweep")
        plan = _resumed(args, folder) if args.resume else _planned(args, folder)
        plan, ended = _sweep(args, plan, folder)
    report = read_report(folder, plan)
    write_report(folder, report)
    if args.json:
        print(json.dumps(to_json(report)))
    elif not args.quiet:
        print(f"{to_text(report)}\n\neverything is in {folder}, the curves in {folder}/sweep.png")
    if not ended:
        again = f"{command.as_called('python -m algorithms.sweep')} --resume --out {folder}"
        print(f"interrupted; what has ended is kept; continue with: {again}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return command.EXIT_FAILED if report.failures else command.EXIT_OK


def _planned(args: argparse.Namespace, folder: Path) -> Plan:
    """The sweep that is asked for, if all of it is possible."""
    from algorithms.learning.settings import configure, require_trainable
    from algorithms.learning.sweeping import plan

    if (folder / plan.FILE).exists():
        raise UsageError(f"--out {folder}: has a sweep; --resume continues it, or give another")
    if args.checkpoint_every is not None and args.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {args.checkpoint_every}: want at least 1")
    game = [f"game={args.game}"] if args.game else []
    settings = plan.settings_grid(plan.parse_choices([*game, *args.set]))
    for config in {config.game: config for config in settings.values()}.values():
        require_trainable(config)
    if args.trials is not None:
        settings = plan.sampled(settings, args.trials)
    made = plan.Plan(
        settings=settings,
        seeds=plan.parse_seeds(args.seeds or "10"),
        storage=_storage(args.storage),
        checkpoint_every=args.checkpoint_every or 1_000_000,
    )
    made = _confirming(args, made)
    configure({"seed": max(made.seeds) + made.fresh_seeds})
    return made


def _resumed(args: argparse.Namespace, folder: Path) -> Plan:
    """The sweep in the folder, unless another is asked for."""
    from algorithms.learning.sweeping.plan import read_plan

    stored = read_plan(folder)
    options = ("game", "seeds", "set", "trials", "storage", "checkpoint_every")
    given = [option for option in options if getattr(args, option)]
    if given:
        asked = _planned(args, folder / "-")
        plain = {"set": "settings", "game": "settings", "trials": "settings"}
        for option in given:
            name = plain.get(option, option)
            if getattr(asked, name) != getattr(stored, name):
                wrong = f"--{option.replace('_', '-')}"
                raise UsageError(f"--resume: {wrong} is not as {folder} has it; leave it out")
    return _confirming(args, stored)


def _confirming(args: argparse.Namespace, plan: Plan) -> Plan:
    """The plan, with the confirmation that is asked for."""
    if args.confirm is None:
        if args.fresh_seeds is not None:
            raise UsageError("--fresh-seeds requires --confirm, how many settings to confirm")
        return plan
    fresh = len(plan.seeds) if args.fresh_seeds is None else args.fresh_seeds
    if not 1 <= args.confirm <= len(plan.settings):
        raise UsageError(f"--confirm {args.confirm}: want 1 to {len(plan.settings)}, the settings")
    if fresh < 1:
        raise UsageError(f"--fresh-seeds {fresh}: want at least 1")
    if plan.chosen and (args.confirm, fresh) != (plan.confirm, plan.fresh_seeds):
        raise UsageError(
            f"--confirm: {plan.confirm} settings are being confirmed on {plan.fresh_seeds} seeds"
        )
    return replace(plan, confirm=args.confirm, fresh_seeds=fresh)


def _storage(given: str | None) -> str:
    """As Ray spells it: a URI, or an absolute path."""
    if not given:
        return ""
    return given if "://" in given else str(Path(given).expanduser().resolve())


def _sweep(args: argparse.Namespace, plan: Plan, folder: Path) -> tuple[Plan, bool]:
    """Run the plan: it, with the settings that were chosen, and whether it came to its end."""
    from algorithms.learning.sweeping.driving import Means, drive

    if args.cpus is not None and args.cpus < 1:
        raise UsageError(f"--cpus {args.cpus}: want at least 1")
    if args.retries < 0:
        raise UsageError(f"--retries {args.retries}: want at least 0")
    say = _nothing if args.quiet or args.json else print
    say(_outline(plan, folder))
    means = Means(
        address=args.address or os.environ.get("RAY_ADDRESS"),
        cpus=args.cpus,
        retries=args.retries,
        fresh=not args.resume,
    )
    with nullcontext(_nothing) if args.quiet else progress("sweep", plan.steps()) as show:
        outcome = drive(plan, folder, means, show)
    if outcome.ended and not args.resume:
        say(outcome.effort)
    return outcome.plan, outcome.ended


def _outline(plan: Plan, folder: Path) -> str:
    runs = f"{len(plan.settings)} settings x {len(plan.seeds)} seeds"
    then = f", then the {plan.confirm} best x {plan.fresh_seeds} fresh seeds" * bool(plan.confirm)
    return f"Sweep: {runs}{then}\nWriting to {folder}"


def _nothing(*args: Any) -> None:
    """Say or show nothing."""


if __name__ == "__main__":
    sys.exit(main())
