"""`python -m parity.check`: our side and OpenSpiel's in lockstep, check by check."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from algorithms.games import KUHN, load_game
from algorithms.policies import load_policy
from algorithms.support.command import EXIT_FAILED, EXIT_OK, Parser, run, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from parity.registry import CHECKS, GAME_CHECKS, GROUPS, Check, Result, Settings
from parity.registry import run as run_check

HEADER = ("group", "check", "compared", "deviation", "time", "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all agree, 1 = a mismatch, 2 = could not run."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    return run(lambda: _main(arguments), parser.prog)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.candidate is not None:
        from parity.candidate import report

        _refuse(
            arguments,
            ("only", "list", "quick", "model", "game"),
            "cannot be combined with --candidate",
        )
        return report(arguments.candidate, actions=arguments.actions, as_json=arguments.json)
    _refuse(arguments, ("actions",), "requires --candidate")
    # importing them fills the lists of checks
    from parity import faces, games, policies, rules, selfplay, solvers  # noqa: F401

    game = None
    if arguments.game not in {None, KUHN}:
        _refuse(arguments, ("model",), "cannot be combined with --game")
        game = load_game(arguments.game)
    if arguments.model:
        _require_model(arguments.model)
    chosen = _chosen(arguments.only, CHECKS if game is None else GAME_CHECKS)
    if arguments.list:
        header = ("group", "check", "what it compares")
        rows = _listed(chosen)
        listed = [dict(zip(header, row, strict=True)) for row in rows]
        print(json.dumps(listed) if arguments.json else table(header, rows, left=3))
        return EXIT_OK
    settings = Settings(quick=arguments.quick, model=arguments.model, game=game)
    results = _run_all(chosen, settings)
    if arguments.json:
        print(json.dumps([result.as_dict() for result in results], indent=2))
    else:
        _print(results)
    return EXIT_FAILED if any(result.status == "FAIL" for result in results) else EXIT_OK


def _refuse(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise UsageError(f"--{name} {why}")


def _require_model(path: Path) -> None:
    """Refuse what cannot be read: that is no mismatch."""
    if path.suffix not in {".zip", ".onnx"}:
        raise UsageError(f"--model {path}: give a model.zip or a policy.onnx")
    load_policy(path)


def _chosen(names: Sequence[str] | None, known: Mapping[str, Check]) -> list[Check]:
    for name in names or ():
        if name not in known:
            raise unknown("check", name, known)
    chosen = [item for name, item in known.items() if not names or name in names]
    return sorted(chosen, key=lambda item: GROUPS.index(item.group))


def _listed(chosen: Iterable[Check]) -> list[tuple[str, str, str]]:
    return [(item.group, item.name, item.title) for item in chosen]


def _run_all(chosen: Sequence[Check], settings: Settings) -> list[Result]:
    results = []
    with progress("checking", len(chosen)) as show:
        for done, item in enumerate(chosen):
            show(done, item.name)
            results.append(run_check(item, settings))
    return results


def _print(results: Sequence[Result]) -> None:
    print(table(HEADER, map(_row, results), left=2))
    for result in results:
        for case in result.tally.cases:
            print(f"  {result.check.name}: {case}")
        if result.tally.wrong > len(result.tally.cases):
            more = result.tally.wrong - len(result.tally.cases)
            print(f"  {result.check.name}: and {more} more")
        if result.note:
            print(f"  {result.check.name}: {result.status}: {result.note}")
    compared = sum(result.tally.compared for result in results)
    seconds = sum(result.seconds for result in results)
    failed = sum(result.status == "FAIL" for result in results)
    verdict = f"{failed} of {len(results)} checks FAIL" if failed else "everything agrees"
    print(f"\n{compared:,} comparisons in {seconds:.1f} s: {verdict}")


def _row(result: Result) -> tuple[str, ...]:
    tally = result.tally
    deviation = f"{tally.deviation:.1e}" if tally.deviation else "0"
    shown = (f"{tally.compared:,}", deviation, f"{result.seconds:.2f} s", result.status)
    return (result.check.group, result.check.name, *shown)


def _parser() -> Parser:
    parser = Parser(prog="python -m parity.check", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run this check; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the checks and stop")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument("--quick", action="store_true", help="fewer random policies and iterations")
    parser.add_argument("--game", metavar="NAME", help=f"check this OpenSpiel game, not {KUHN}")
    parser.add_argument("--model", type=Path, help="a model.zip or policy.onnx to check")
    parser.add_argument(
        "--candidate",
        metavar="WHERE:WHAT",
        help="check your own Kuhn: package.module:object, file.py:object or an OpenSpiel game "
        "string. This runs the code it names, so name only code you trust",
    )
    parser.add_argument(
        "--actions",
        metavar="MAP",
        help='what the candidate\'s action IDs mean, e.g. "0=check/call,1=bet,2=fold"',
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
