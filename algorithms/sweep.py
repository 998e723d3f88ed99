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
from typing import TYPE_CHECKING

from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.sweeps.plan import Plan

HTML = "sweep.html"
MAX_SHOWN = 5  # settings in a report, the best ones


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all runs succeeded, 1 = a run failed, 130 = interrupted."""
    parser = command.Parser(prog="python -m algorithms.sweep", description=__doc__)
    add, number = parser.add_argument, command.number
    add("--game", help="the game, as for train_ppo")
    add("--seeds", metavar="SEEDS", help="random seeds: 0-9, or 0,3,7, or a count (10)")
    values = "values of a setting of train_ppo; all combinations are run"
    add("--set", action="append", default=[], metavar="NAME=A,B", help=values)
    add("--trials", type=int, metavar="N", help="run only N random combinations")
    add("--out", type=Path, metavar="DIR", help="the folder for all results (sweep)")
    add("--resume", action="store_true", help="continue the sweep in --out")
    add("--report", type=Path, metavar="DIR", help="only print the results of a finished sweep")
    add("--confirm", type=int, metavar="K", help="then run the K best settings on new seeds")
    fresh = "the number of new seeds (as many as --seeds)"
    add("--fresh-seeds", type=number(1), metavar="M", help=fresh)
    cpus = "number of runs at a time, one core each (all cores)"
    add("--cpus", type=number(1), metavar="N", help=cpus)
    address = "address of a Ray cluster: auto, host:port or ray://host:port (RAY_ADDRESS)"
    add("--address", help=address)
    storage = "a folder or URI that all nodes of the cluster can read and write (in --out)"
    add("--storage", help=storage)
    retries = "number of retries of a run that crashes (%(default)s)"
    add("--retries", type=number(0), default=3, metavar="N", help=retries)
    every = "steps between checkpoints (1,000,000)"
    add("--checkpoint-every", type=number(1), metavar="STEPS", help=every)
    add("--html", action="store_true", help="write a report of each setting's best run: sweep.html")
    add("--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the results as one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    from algorithms.sweeps import results
    from algorithms.sweeps.plan import read_plan

    folder, ended = args.report or args.out or Path("sweep"), True
    if args.report:
        plan = read_plan(folder)
    else:
        plan = _resumed(args, folder) if args.resume else _planned(args, folder)
    games = {config.game for config in plan.settings.values()}
    if args.html and len(games) > 1:
        raise UsageError(f"--html: a report covers one game, but this sweep has {len(games)}")
    if not args.report:
        plan, ended = _sweep(args, plan, folder)
    report = results.read_report(folder, plan)
    results.write_report(folder, report)
    models, page = results.best_models(folder, report)[:MAX_SHOWN], ""
    if args.html and models:
        from algorithms.reports.writing import report_document, write_document

        document = report_document([str(model) for model in models], decisions=0)
        write_document(folder / HTML, document)
        page = f", report: {folder / HTML}"
    if args.json:
        print(json.dumps(results.to_json(report)))
    elif not args.quiet:
        print(f"{results.to_text(report)}\n\nresults: {folder}, curves: {folder}/sweep.png{page}")
    if not ended:
        again = f"{command.as_called('python -m algorithms.sweep')} --resume --out {folder}"
        print(f"interrupted; finished runs are kept; continue with: {again}", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    return command.EXIT_FAILED if report.in_state(results.FAILED) else command.EXIT_OK


def _planned(args: argparse.Namespace, folder: Path) -> Plan:
    """The plan of a new sweep."""
    from algorithms.games import load_game
    from algorithms.self_play.settings import configure, is_measured, require_trainable
    from algorithms.sweeps import plan

    if (folder / plan.PLAN_FILE).exists():
        raise UsageError(f"--out {folder}: has a sweep already; add --resume to continue it")
    game = [f"game={args.game}"] if args.game else []
    settings = plan.settings_grid(plan.parse_choices([*game, *args.set]))
    for config in settings.values():
        require_trainable(config)
        if not is_measured(config, load_game(config.game)):
            raise UsageError(
                f"a sweep compares NashConv, which is not measured in {config.game} "
                f"with points={config.points}"
            )
    if args.trials is not None:
        settings = plan.sampled(settings, args.trials)
    storage = args.storage or ""
    if storage and "://" not in storage:
        storage = str(Path(storage).expanduser().resolve())  # as Ray expects
    made = plan.Plan(
        settings=settings,
        seeds=plan.parse_seeds(args.seeds or "10"),
        storage=storage,
        checkpoint_every=args.checkpoint_every or 1_000_000,
    )
    made = _confirming(args, made)
    configure({"seed": max(made.seeds) + made.fresh_seeds})  # refuses too large ones
    return made


def _resumed(args: argparse.Namespace, folder: Path) -> Plan:
    """The stored plan of the folder; options that differ from it are an error."""
    from algorithms.sweeps.plan import read_plan

    stored, planned = read_plan(folder), None
    for option in ("game", "seeds", "set", "trials", "storage", "checkpoint_every"):
        if getattr(args, option):
            planned = planned or _planned(args, folder / "-")
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
        most = f"{len(plan.settings)}, the number of settings"
        raise UsageError(f"--confirm {args.confirm}: must be 1 to {most}")
    if plan.chosen and (args.confirm, fresh) != (plan.confirm, plan.fresh_seeds):
        before = f"{plan.confirm} settings on {plan.fresh_seeds} seeds"
        raise UsageError(f"--confirm: the sweep confirms {before}")
    return replace(plan, confirm=args.confirm, fresh_seeds=fresh)


def _sweep(args: argparse.Namespace, plan: Plan, folder: Path) -> tuple[Plan, bool]:
    """Run the plan; return it with the chosen settings, and whether all runs ended."""
    from algorithms.sweeps.running import run_sweep

    quiet, address = args.quiet or args.json, args.address or os.environ.get("RAY_ADDRESS")
    if not quiet:
        runs = f"{len(plan.settings)} settings x {len(plan.seeds)} seeds"
        then = f", then the {plan.confirm} best x {plan.fresh_seeds} fresh seeds"
        print(f"Sweep: {runs}{then * bool(plan.confirm)}\nWriting to {folder}")
    options = {"resume": args.resume, "address": address, "cpus": args.cpus}
    silent = nullcontext(lambda *progress: None)
    with silent if args.quiet else progress("sweep", plan.steps()) as show:
        outcome = run_sweep(plan, folder, show, retries=args.retries, **options)
    plan, ended, effort = outcome
    if ended and not (args.resume or quiet):
        print(effort)
    return plan, ended


if __name__ == "__main__":
    sys.exit(main())
