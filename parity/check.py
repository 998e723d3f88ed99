"""`python -m parity.check`: compare everything with OpenSpiel, check by check."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from algorithms.games import KUHN, Game, load_game
from algorithms.policies import load_policy
from algorithms.support.command import EXIT_FAILED, EXIT_OK, Parser, table
from algorithms.support.errors import UsageError, unknown
from algorithms.support.progress import progress
from parity import registry
from parity.registry import GAME, Check, Settings, Tally


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all agree, 1 = a mismatch, 2 = could not run."""
    parser = Parser(prog="python -m parity.check", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="run only this check; repeatable")
    add("--list", action="store_true", help="list the checks and stop")
    add("--json", action="store_true", help="print one JSON list")
    add("--quick", action="store_true", help="fewer random policies and iterations")
    add("--game", metavar="NAME", help="check this OpenSpiel game instead of Kuhn poker")
    add("--model", type=Path, help="a model.zip or policy.onnx to check")
    candidate = "check your own Kuhn poker: package.module:object, file.py:object or an OpenSpiel "
    candidate += "game string. This runs the code that it names, so name only code that you trust"
    add("--candidate", metavar="WHERE:WHAT", help=candidate)
    actions = 'the meaning of the candidate\'s action IDs, e.g. "0=check/call,1=bet,2=fold"'
    add("--actions", metavar="MAP", help=actions)
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
        if arguments.model.suffix not in {".zip", ".onnx"}:
            raise UsageError(f"--model {arguments.model}: give a model.zip or a policy.onnx")
        load_policy(arguments.model)  # a file that cannot be read is not a mismatch
    chosen = _chosen(arguments.only, game)
    if arguments.list:
        header = ("group", "check", "what it compares")
        rows = [(item.group, item.name, item.title) for item in chosen]
        as_json = json.dumps([dict(zip(header, row, strict=True)) for row in rows])
        print(as_json if arguments.json else table(header, rows, left=3))
        return EXIT_OK
    settings = Settings(quick=arguments.quick, model=arguments.model, game=game)
    if any(item.group == GAME for item in chosen):
        _ = game.tree  # a tree that cannot be built is not a mismatch
    results = []
    with progress("checking", len(chosen)) as show:
        for done, item in enumerate(chosen):
            show(done, item.name)
            results.append((item, registry.run(item, settings)))
    if arguments.json:
        print(json.dumps([_as_dict(*result) for result in results], indent=2))
    else:
        _print(results)
    return EXIT_FAILED if any(tally.status == "FAIL" for _, tally in results) else EXIT_OK


def _refuse(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name):
            raise UsageError(f"--{name} {why}")


def _chosen(names: Sequence[str] | None, game: Game) -> list[Check]:
    """The named checks of Kuhn, or those of a game's tree and of its native form."""
    # importing them registers the checks
    from parity import gambit, policies  # noqa: F401

    known = registry.CHECKS
    if game.name != KUHN:
        game.require_exact()
        known = registry.GAME_CHECKS if game.fits_tree else {}
        known = known | (registry.NATIVE_CHECKS if game.find_native() else {})
    for name in names or ():
        if name not in known:
            raise unknown("check", name, known)
    chosen = [item for name, item in known.items() if not names or name in names]
    return sorted(chosen, key=lambda item: registry.GROUPS.index(item.group))


def _as_dict(item: Check, tally: Tally) -> dict[str, object]:
    """A result as JSON; an infinite deviation is null."""
    found = {name: getattr(item, name) for name in ("name", "group", "title")}
    found |= {"status": tally.status.lower(), "compared": tally.compared, "wrong": tally.wrong}
    found["deviation"] = tally.deviation if tally.deviation < math.inf else None
    return found | {"seconds": round(tally.seconds, 3), "cases": tally.cases, "note": tally.note}


def _print(results: Sequence[tuple[Check, Tally]]) -> None:
    rows = []
    for item, tally in results:
        deviation = f"{tally.deviation:.1e}" if tally.deviation else "0"
        figures = (f"{tally.compared:,}", deviation, f"{tally.seconds:.2f} s", tally.status)
        rows.append((item.group, item.name, *figures))
    print(table(("group", "check", "compared", "deviation", "time", ""), rows, left=2))
    for item, tally in results:
        for case in tally.cases:
            print(f"  {item.name}: {case}")
        if tally.wrong > len(tally.cases):
            print(f"  {item.name}: and {tally.wrong - len(tally.cases)} more")
        if tally.note:
            print(f"  {item.name}: {tally.status}: {tally.note}")
    compared = sum(tally.compared for _, tally in results)
    seconds = sum(tally.seconds for _, tally in results)
    failed = sum(tally.status == "FAIL" for _, tally in results)
    verdict = f"{failed} of {len(results)} checks FAIL" if failed else "everything agrees"
    print(f"\n{compared:,} comparisons in {seconds:.1f} s: {verdict}")


if __name__ == "__main__":
    sys.exit(main())
