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
    from algorithms.sweeping.plan import Plan

HTML = "sweep.html"
MAX_SHOWN = 5  # settings in a report, the best ones


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all runs succeeded, 1 = a run failed, 130 = interrupted."""
    parser = _parser()
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _parser() -> argparse.ArgumentParser:
    parser = command.Parser(prog="python -m algorithms.sweep", description=command.summary(__doc__))
    add = parser.add_argument
    add("--game", help="the game, as for train_ppo")
    add("--seeds", metavar="SEEDS", help="random seeds: 0-9, or 0,3,7, or a count (10)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="values of a setting of train_ppo; all combinations are run",
    )
    add("--trials", type=int, metavar="N", help="run only N random combinations")
    add("--out", type=Path, metavar="DIR", help="the folder for all results (sweep)")
    add("--resume", action="store_true", help="continue the sweep in --out")
    add("--report", type=Path, metavar="DIR", help="only print the results of a finished sweep")
    add("--confirm", type=int, metavar="K", help="then run the K best settings on new seeds")
    add("--fresh-seeds", type=int, metavar="M", help="the number of new seeds (as many as --seeds)")
    add("--cpus", type=int, metavar="N", help="number of runs at a time, one core each (all cores)")
    address = "address of a Ray cluster: auto, host:port or ray://host:port (RAY_ADDRESS)"
    add("--address", help=address)
    add(
        "--storage",
        help="a folder or URI that all nodes of the cluster can read and write (in --out)",
    )
    add(
        "--retries",
        type=int,
        default=3,
        metavar="N",
        help="number of retries of a run that crashes (%(default)s)",
    )
    add(
        "--checkpoint-every",
        type=int,
        metavar="STEPS",
        help="steps between checkpoints (1,000,000)",
    )
    add("--html", action="store_true", help="write a report of each setting's best run: sweep.html")
    add("--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the results as one JSON object")
    return parser


def _run(args: argparse.Namespace) -> int:
    from algorithms.sweeping.plan import read_plan
    from algorithms.sweeping.results import (
        best_models,
        read_report,
        to_json,
        to_text,
        write_report,
    )

    if args.report:
        folder, plan, ended = args.report, read_plan(args.report), True
    else:
        folder = args.out or Path("sweep")
        plan = _resumed(args, folder) if args.resume else _planned(args, folder)
        _require_one_game(args, plan)
        plan, ended = _sweep(args, plan, folder)
    report = read_report(folder, plan)
    write_report(folder, report)
    models = best_models(folder, report)[:MAX_SHOWN]
    if args.html and models:
        _require_one_game(args, plan)
        _write_html(folder / HTML, models)
    if args.json:
        print(json.dumps(to_json(report)))
    elif not args.quiet:
        page = f", report: {folder / HTML}" if args.html and models else ""
        print(f"{to_text(report)}\n\nresults: {folder}, curves: {folder}/sweep.png{page}")
    if not ended:
        again = f"{command.as_called('python -m algorithms.sweep')} --resume --out {folder}"
        print(f"interrupted; finished runs are kept; continue with: {again}", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    return command.EXIT_FAILED if report.failures else command.EXIT_OK


def _require_one_game(args: argparse.Namespace, plan: Plan) -> None:
    games = {config.game for config in plan.settings.values()}
    if args.html and len(games) > 1:
        raise UsageError(f"--html: a report covers one game, but this sweep has {len(games)}")


def _write_html(path: Path, models: Sequence[Path]) -> None:
    from algorithms.reporting.writing import report_document, write_document

    write_document(path, report_document([str(model) for model in models], decisions=0))


def _planned(args: argparse.Namespace, folder: Path) -> Plan:
    """The plan of a new sweep."""
    from algorithms.games import load_game
    from algorithms.learning.settings import configure, is_measured, require_trainable
    from algorithms.sweeping import plan

    if (folder / plan.PLAN_FILE).exists():
        raise UsageError(f"--out {folder}: has a sweep already; add --resume to continue it")
    if args.checkpoint_every is not None and args.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {args.checkpoint_every}: must be at least 1")
    game = [f"game={args.game}"] if args.game else []
    settings = plan.settings_grid(plan.parse_choices([*game, *args.set]))
    for config in {config.game: config for config in settings.values()}.values():
        require_trainable(config)
    for config in settings.values():
        if not is_measured(config, load_game(config.game)):
            raise UsageError(
                f"a sweep compares NashConv, which is not measured in {config.game} "
                f"with points={config.points}"
            )
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
    """The stored plan of the folder; options that differ from it are an error."""
    from algorithms.sweeping.plan import read_plan

    stored = read_plan(folder)
    options = ("game", "seeds", "set", "trials", "storage", "checkpoint_every")
    given = [option for option in options if getattr(args, option)]
    if given:
        planned = _planned(args, folder / "-")
        for option in given:
            name = "settings" if option in {"set", "game", "trials"} else option
            if getattr(planned, name) != getattr(stored, name):
                flag = f"--{option.replace('_', '-')}"
                raise UsageError(
                    f"--resume: {flag} differs from the sweep in {folder}; leave it out"
                )
    return _confirming(args, stored)


def _confirming(args: argparse.Namespace, plan: Plan) -> Plan:
    """The plan with the options --confirm and --fresh-seeds."""
    if args.confirm is None:
        if args.fresh_seeds is not None:
            raise UsageError("--fresh-seeds requires --confirm")
        return plan
    fresh = len(plan.seeds) if args.fresh_seeds is None else args.fresh_seeds
    if not 1 <= args.confirm <= len(plan.settings):
        raise UsageError(
            f"--confirm {args.confirm}: must be 1 to {len(plan.settings)}, the number of settings"
        )
    if fresh < 1:
        raise UsageError(f"--fresh-seeds {fresh}: must be at least 1")
    if plan.chosen and (args.confirm, fresh) != (plan.confirm, plan.fresh_seeds):
        raise UsageError(
            f"--confirm: the sweep confirms {plan.confirm} settings on {plan.fresh_seeds} seeds"
        )
    return replace(plan, confirm=args.confirm, fresh_seeds=fresh)


def _storage(given: str | None) -> str:
    """A URI or an absolute path, as Ray expects."""
    if not given:
        return ""
    return given if "://" in given else str(Path(given).expanduser().resolve())


def _sweep(args: argparse.Namespace, plan: Plan, folder: Path) -> tuple[Plan, bool]:
    """Run the plan; return it with the chosen settings, and whether all runs ended."""
    from algorithms.sweeping.running import Resources, run_sweep

    if args.cpus is not None and args.cpus < 1:
        raise UsageError(f"--cpus {args.cpus}: must be at least 1")
    if args.retries < 0:
        raise UsageError(f"--retries {args.retries}: must be at least 0")
    report_line = _ignore if args.quiet or args.json else print
    report_line(_outline(plan, folder))
    address = args.address or os.environ.get("RAY_ADDRESS")
    resources = Resources(address=address, cpus=args.cpus, retries=args.retries)
    with nullcontext(_ignore) if args.quiet else progress("sweep", plan.steps()) as show:
        outcome = run_sweep(plan, folder, resources, show, resume=args.resume)
    if outcome.ended and not args.resume:
        report_line(outcome.effort)
    return outcome.plan, outcome.ended


def _outline(plan: Plan, folder: Path) -> str:
    runs = f"{len(plan.settings)} settings x {len(plan.seeds)} seeds"
    then = f", then the {plan.confirm} best x {plan.fresh_seeds} fresh seeds" * bool(plan.confirm)
    return f"Sweep: {runs}{then}\nWriting to {folder}"


def _ignore(*args: Any) -> None:
    """Print nothing."""


if __name__ == "__main__":
    sys.exit(main())
