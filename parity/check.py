"""`python -m parity.check`: compare everything with OpenSpiel, check by check."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from algorithms.games import KUHN, Game, TreeGame, large_game, load_game
from algorithms.games.efg_game import EfgGame
from algorithms.policies import load_policy
from algorithms.support.command import EXIT_FAILED, EXIT_OK, Parser, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from parity import registry
from parity.registry import Check, CheckSettings, Group, Tally

MODEL_SUFFIXES = (".zip", ".onnx")


class Result(NamedTuple):
    """A check that was run."""

    check: Check
    tally: Tally


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all agree, 1 = a mismatch, 2 = could not run."""
    parser = Parser(prog="python -m parity.check", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run only this check; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the checks and stop")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument("--quick", action="store_true", help="fewer policies and iterations")
    parser.add_argument(
        "--game",
        metavar="NAME",
        help="check this game or .efg file instead of Kuhn poker",
    )
    parser.add_import()
    parser.add_argument("--model", type=Path, help="a model.zip or policy.onnx to check")
    parser.add_argument(
        "--candidate",
        metavar="WHERE:WHAT",
        help="check your own Kuhn poker: package.module:object, file.py:object or an OpenSpiel "
        "game string. This runs the code that it names, so name only code that you trust",
    )
    parser.add_argument(
        "--actions",
        metavar="MAP",
        help='the meaning of the candidate\'s action IDs, e.g. "0=check/call,1=bet,2=fold"',
    )
    return parser.run(_main, argv)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.candidate is not None:
        from parity.candidate import report

        others = ("only", "list", "quick", "model", "game")
        _refuse(arguments, others, "cannot be combined with --candidate")
        return report(arguments.candidate, actions=arguments.actions, as_json=arguments.json)
    _refuse(arguments, ("actions",), "requires --candidate")
    game = load_game(arguments.game or KUHN)
    if game.name != KUHN:
        _refuse(arguments, ("model",), "cannot be combined with --game")
    if arguments.model:
        _require_model(arguments.model)
    checks = _chosen(arguments.only, game)
    if arguments.list:
        _print_list(checks, as_json=arguments.json)
        return EXIT_OK
    if any(check.group == registry.TREE_GAMES for check in checks):
        _ = game.tree  # a tree that cannot be built is not a mismatch
    settings = CheckSettings(quick=arguments.quick, model=arguments.model, game=game)
    results = []
    with progress("checking", len(checks)) as show:
        for done, check in enumerate(checks):
            show(done, check.name)
            results.append(Result(check, registry.run(check, settings)))
    if arguments.json:
        print(json.dumps([_as_dict(result) for result in results], indent=2))
    else:
        _print_results(results)
    failed = any(result.tally.status == "FAIL" for result in results)
    return EXIT_FAILED if failed else EXIT_OK


def _refuse(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise UsageError(f"--{name} {why}")


def _require_model(path: Path) -> None:
    """Refuse a file that is no model: that would not be a mismatch."""
    if path.suffix not in MODEL_SUFFIXES:
        raise UsageError(f"--model {path}: give a model.zip or a policy.onnx")
    load_policy(path)


def groups_of(game: Game) -> list[Group]:
    """The groups of checks that apply to a game, in the order of the table."""
    if game.name == KUHN:
        from parity.algorithms import ALGORITHMS
        from parity.gambit import GAMBIT
        from parity.kuhn_adapters import ADAPTERS
        from parity.kuhn_rules import RULES
        from parity.policies import POLICIES

        return [RULES, ADAPTERS, ALGORITHMS, POLICIES, GAMBIT]
    if isinstance(game, EfgGame):
        from parity.gambit import GAMBIT

        return [GAMBIT]
    game.require_exact()
    groups = []
    if isinstance(game, TreeGame):
        from parity.tree_games import TREE_GAMES

        groups.append(TREE_GAMES)
    if large_game(game.pyspiel_game, game.name):
        from parity.large_games import LARGE_GAMES

        groups.append(LARGE_GAMES)
    return groups


def _chosen(names: Sequence[str] | None, game: Game) -> list[Check]:
    """The named checks of a game, by default all, in the order of the table."""
    checks = {name: check for group in groups_of(game) for name, check in group.checks.items()}
    if not names:
        return list(checks.values())
    for name in names:
        if name not in checks:
            raise unknown("check", name, checks)
    return [check for name, check in checks.items() if name in names]


def _print_list(checks: Sequence[Check], *, as_json: bool) -> None:
    header = ("group", "check", "what it compares")
    rows = [(check.group, check.name, check.title) for check in checks]
    if as_json:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in rows]))
    else:
        print(table(header, rows, left=3))


def _as_dict(result: Result) -> dict[str, object]:
    """A result as JSON; an infinite deviation is null."""
    check, tally = result
    return {
        "name": check.name,
        "group": check.group,
        "title": check.title,
        "status": tally.status.lower(),
        "compared": tally.compared,
        "wrong": tally.wrong,
        "deviation": tally.deviation if tally.deviation < math.inf else None,
        "seconds": round(tally.seconds, 3),
        "cases": tally.cases,
        "note": tally.note,
    }


def _print_results(results: Sequence[Result]) -> None:
    """One row per check, then the mismatches, then the totals."""
    rows = []
    for check, tally in results:
        compared = f"{tally.compared:,}"
        deviation = f"{tally.deviation:.1e}" if tally.deviation else "0"
        seconds = f"{tally.seconds:.2f} s"
        rows.append((check.group, check.name, compared, deviation, seconds, tally.status))
    print(table(("group", "check", "compared", "deviation", "time", ""), rows, left=2))
    for check, tally in results:
        for case in tally.cases:
            print(f"  {check.name}: {case}")
        if tally.wrong > len(tally.cases):
            print(f"  {check.name}: and {tally.wrong - len(tally.cases)} more")
        if tally.note:
            print(f"  {check.name}: {tally.status}: {tally.note}")
    total_compared = sum(tally.compared for _, tally in results)
    total_seconds = sum(tally.seconds for _, tally in results)
    failed = sum(tally.status == "FAIL" for _, tally in results)
    verdict = f"{failed} of {len(results)} checks FAIL" if failed else "everything agrees"
    print(f"\n{total_compared:,} comparisons in {total_seconds:.1f} s: {verdict}")


if __name__ == "__main__":
    sys.exit(main())
