"""Train over many seeds and settings at once, on this machine or on a Ray cluster.

Every combination of `--set` values runs with every seed, as `train_ppo` would run it. Writes each
model with its learning curve, `sweep.csv`, `sweep.json` and `sweep.png`. Ctrl-C stops it, and
`--resume` continues it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.modules import import_modules, imported_modules
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.sweeps.plan import Plan
    from algorithms.sweeps.results import SweepResults
    from algorithms.sweeps.running import Outcome

HTML = "sweep.html"
MAX_SHOWN = 5  # settings in a report, the best ones
PLAN_OPTIONS = ("game", "seeds", "set", "trials", "storage", "checkpoint_every")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all runs succeeded, 1 = a run failed, 130 = interrupted."""
    parser = command.Parser(prog="python -m algorithms.sweep", description=__doc__)
    _add_plan_options(parser)
    _add_run_options(parser)
    _add_output_options(parser)
    return parser.run(_run, argv)


def _add_plan_options(parser: command.Parser) -> None:
    parser.add_argument("--game", help="the game, as for train_ppo")
    parser.add_import()
    parser.add_argument(
        "--seeds", metavar="SEEDS", help="random seeds: 0-9, or 0,3,7, or a count (10)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="values of a setting of train_ppo; all combinations are run",
    )
    parser.add_argument("--trials", type=int, metavar="N", help="run only N random combinations")
    parser.add_argument(
        "--confirm", type=int, metavar="K", help="then run the K best settings on new seeds"
    )
    parser.add_argument(
        "--fresh-seeds",
        type=command.number(1),
        metavar="M",
        help="the number of new seeds (as many as --seeds)",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder for all results (sweep)"
    )
    parser.add_argument("--resume", action="store_true", help="continue the sweep in --out")
    parser.add_argument(
        "--cpus",
        type=command.number(1),
        metavar="N",
        help="number of runs at a time, one core each (all cores)",
    )
    parser.add_argument(
        "--address",
        help="address of a Ray cluster: auto, host:port or ray://host:port (RAY_ADDRESS)",
    )
    parser.add_argument(
        "--storage",
        help="a folder or URI that all nodes of the cluster can read and write (in --out)",
    )
    parser.add_argument(
        "--retries",
        type=command.number(0),
        default=3,
        metavar="N",
        help="number of retries of a run that crashes (%(default)s)",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=command.number(1),
        metavar="STEPS",
        help="steps between checkpoints (1,000,000)",
    )


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="only print the results of a finished sweep"
    )
    parser.add_argument(
        "--html", action="store_true", help="write a report of each setting's best run: sweep.html"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from algorithms.sweeps import results as sweep_results

    folder = args.report or args.out or Path("sweep")
    plan = _plan(args, folder)
    games = {config.game for config in plan.settings.values()}
    if args.html and len(games) > 1:
        raise UsageError(f"--html: a report covers one game, but this sweep has {len(games)}")
    has_ended = True
    if not args.report:
        outcome = _sweep(args, plan, folder)
        plan = outcome.plan
        has_ended = outcome.has_ended
    results = sweep_results.read_results(folder, plan)
    sweep_results.write_results(folder, results)
    written = f"results: {folder}, curves: {folder}/sweep.png"
    if args.html and _write_html(folder, results):
        written += f", report: {folder / HTML}"
    if args.json:
        print(json.dumps(sweep_results.to_json(results)))
    elif not args.quiet:
        print(f"{sweep_results.to_text(results)}\n\n{written}")
    if not has_ended:
        called = command.as_called("python -m algorithms.sweep")
        again = f"{called} --resume --out {shlex.quote(str(folder))}"
        print(f"interrupted; finished runs are kept; continue with: {again}", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    failed = results.in_state(sweep_results.FAILED)
    return command.EXIT_FAILED if failed else command.EXIT_OK


# ---------------------------------------------------------------------------------------------
# The plan
# ---------------------------------------------------------------------------------------------


def _plan(args: argparse.Namespace, folder: Path) -> Plan:
    """A new plan, or the stored one of the folder."""
    from algorithms.sweeps.plan import PLAN_FILE, read_plan

    if args.report or args.resume:
        import_modules(read_plan(folder).imports)
    if args.report:
        return read_plan(folder)
    if args.resume:
        return _resumed_plan(args, folder)
    if (folder / PLAN_FILE).exists():
        raise UsageError(f"--out {folder}: has a sweep already; add --resume to continue it")
    return _new_plan(args)


def _new_plan(args: argparse.Namespace) -> Plan:
    from algorithms.games import load_game
    from algorithms.self_play.settings import configure, is_measured, require_trainable
    from algorithms.sweeps import plan

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
    without_confirmation = plan.Plan(
        settings=settings,
        seeds=plan.parse_seeds(args.seeds or "10"),
        storage=storage,
        checkpoint_every=args.checkpoint_every or 1_000_000,
        imports=imported_modules(),
    )
    new_plan = _with_confirmation(args, without_confirmation)
    configure({"seed": max(new_plan.seeds) + new_plan.fresh_seeds})  # refuses too large ones
    return new_plan


def _resumed_plan(args: argparse.Namespace, folder: Path) -> Plan:
    """The stored plan of the folder; options that differ from it are an error."""
    from algorithms.sweeps.plan import read_plan

    stored = read_plan(folder)
    named = [option for option in PLAN_OPTIONS if getattr(args, option)]
    if named:
        planned = _new_plan(args)
        for option in named:
            field = "settings" if option in {"set", "game", "trials"} else option
            if getattr(planned, field) != getattr(stored, field):
                flag = f"--{option.replace('_', '-')}"
                raise UsageError(
                    f"--resume: {flag} differs from the sweep in {folder}; leave it out"
                )
    return _with_confirmation(args, stored)


def _with_confirmation(args: argparse.Namespace, plan: Plan) -> Plan:
    """The plan with the options --confirm and --fresh-seeds."""
    if args.confirm is None:
        if args.fresh_seeds is not None:
            raise UsageError("--fresh-seeds requires --confirm")
        return plan
    if not 1 <= args.confirm <= len(plan.settings):
        raise UsageError(
            f"--confirm {args.confirm}: must be 1 to {len(plan.settings)}, the number of settings"
        )
    fresh_seeds = len(plan.seeds) if args.fresh_seeds is None else args.fresh_seeds
    if plan.chosen and (args.confirm, fresh_seeds) != (plan.confirm, plan.fresh_seeds):
        stored = f"{plan.confirm} settings on {plan.fresh_seeds} seeds"
        raise UsageError(f"--confirm: the sweep confirms {stored}")
    return replace(plan, confirm=args.confirm, fresh_seeds=fresh_seeds)


# ---------------------------------------------------------------------------------------------
# The runs and their report
# ---------------------------------------------------------------------------------------------


def _sweep(args: argparse.Namespace, plan: Plan, folder: Path) -> Outcome:
    """Run the plan."""
    from algorithms.sweeps.running import run_sweep

    is_quiet = args.quiet or args.json
    if not is_quiet:
        runs = f"Sweep: {len(plan.settings)} settings x {len(plan.seeds)} seeds"
        if plan.confirm:
            runs += f", then the {plan.confirm} best x {plan.fresh_seeds} fresh seeds"
        print(f"{runs}\nWriting to {folder}")
    bar = nullcontext(_show_nothing) if args.quiet else progress("sweep", plan.steps())
    with bar as show:
        outcome = run_sweep(
            plan,
            folder,
            show,
            resume=args.resume,
            address=args.address or os.environ.get("RAY_ADDRESS"),
            cpus=args.cpus,
            retries=args.retries,
        )
    if outcome.has_ended and not args.resume and not is_quiet:
        print(outcome.effort)
    return outcome


def _show_nothing(done: int, note: str = "") -> None:
    pass


def _write_html(folder: Path, results: SweepResults) -> bool:
    """Write the report of the best runs; false if there is no run yet."""
    from algorithms.reports.writing import report_document, write_document
    from algorithms.sweeps.results import best_models

    models = best_models(folder, results)[:MAX_SHOWN]
    if not models:
        return False
    document = report_document([str(model) for model in models], decisions=0)
    write_document(folder / HTML, document)
    return True


if __name__ == "__main__":
    sys.exit(main())
