"""Train on a whole list of games with the defaults, and say where training does worst.

Every game is trained with every kind of run (a table, a network on the game's tree, a network on
states) and every seed, as `train_ppo` would do it, on the cores of this machine or on a Ray
cluster. NashConv of the saved models is printed as a share of uniform play's, the worst first.
Exit status 1: a share is above `--limit`. Ctrl-C stops it, and `--resume` continues it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from algorithms.support import command
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress

if TYPE_CHECKING:
    from algorithms.sweeps.plan import Plan

Half: TypeAlias = Literal["tuned", "reported"]
KINDS: Mapping[str, Mapping[str, str | int]] = {
    "table": {"net": "table"},
    "mlp": {"net": "mlp"},
    "states": {"env": "states"},
}


class TrainingGame(NamedTuple):
    """A game of the list."""

    name: str  # as `load_game` takes it
    short: str  # as tables show it
    half: Half  # whether choices were made by looking at its results, or they were only reported
    limit: float | None = None  # of the share, where `--limit` does not apply


def _turn_based(name: str) -> str:
    return f"turn_based_simultaneous_game(game={name})"


# Two players and three, with chance and without, zero-sum and not. The split was made before the
# learner was designed. In Sheriff and Battleship, which are not zero-sum, NashConv of a policy that
# all players learn together need not go to 0.
GAMES: tuple[TrainingGame, ...] = (
    TrainingGame("kuhn", "Kuhn", "tuned"),
    TrainingGame("leduc_poker", "Leduc", "tuned"),
    TrainingGame("liars_dice(numdice=1,dice_sides=4)", "Liar's Dice 4", "tuned"),
    TrainingGame("dark_hex(board_size=2,gameversion=adh)", "dark hex 2x2, abrupt", "tuned"),
    TrainingGame(
        _turn_based("goofspiel(imp_info=True,num_cards=4,points_order=random)"),
        "Goofspiel 4, random",
        "tuned",
    ),
    TrainingGame(
        "sheriff(max_items=3,max_bribe=3,item_penalty=2.0,item_value=5.0,num_rounds=2,"
        "sheriff_penalty=3.0)",
        "Sheriff",
        "tuned",
        limit=0.4,
    ),
    TrainingGame("tiny_bridge_2p", "tiny bridge", "tuned"),
    TrainingGame(_turn_based("oshi_zumo(coins=5,size=1,horizon=6)"), "oshi-zumo, 5 coins", "tuned"),
    TrainingGame("liars_dice(numdice=1,dice_sides=5)", "Liar's Dice 5", "reported"),
    TrainingGame(
        "dark_hex(num_rows=2,num_cols=3,gameversion=adh)", "dark hex 2x3, abrupt", "reported"
    ),
    TrainingGame(
        _turn_based("goofspiel(imp_info=True,num_cards=4,points_order=descending)"),
        "Goofspiel 4, descending",
        "reported",
    ),
    TrainingGame(
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=5 5,raiseSize=10 20,"
        "maxRaises=2 2,numSuits=2,numRanks=5,numHoleCards=1,numBoardCards=0 1,firstPlayer=1 1)",
        "limit poker, 10 cards",
        "reported",
    ),
    TrainingGame(
        "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2,"
        "allow_repeated_shots=False)",
        "Battleship 2x2",
        "reported",
        limit=0.4,
    ),
    TrainingGame("first_sealed_auction(max_value=8)", "sealed auction", "reported"),
    TrainingGame("kuhn_poker(players=3)", "Kuhn, 3 players", "reported"),
    TrainingGame(
        _turn_based("goofspiel(imp_info=True,num_cards=3,players=3,points_order=descending)"),
        "Goofspiel 3, 3 players",
        "reported",
    ),
)


class Result(NamedTuple):
    """A game with one kind of run."""

    game: TrainingGame
    kind: str
    shares: tuple[float, ...]  # one per seed, in the order of the seeds
    nash_convs: tuple[float, ...]
    cpu_seconds: float  # the mean of a run's: training, and fitting a network to the result

    @property
    def mean(self) -> float:
        """The mean of the shares."""
        return mean(self.shares)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 = all shares are within the limit, 1 = one is not, or a run failed."""
    parser = command.Parser(prog="python -m algorithms.training_games", description=__doc__)
    add = parser.add_argument
    add("--half", choices=(*get_args(Half), "all"), default="all", help="which games (all)")
    add("--kinds", default="table,mlp", help=f"kinds of runs, of {','.join(KINDS)} (%(default)s)")
    add("--games", metavar="TEXT", default="", help="only games whose name contains this")
    add("--seeds", default="0-4", help="random seeds (%(default)s)")
    add("--steps", type=command.number(1), metavar="N", help="decisions of a run (the default's)")
    add("--limit", type=float, default=0.15, metavar="X", help="largest share (%(default)s)")
    add("--out", type=Path, default=Path("training-games"), metavar="DIR", help="folder of results")
    add("--resume", action="store_true", help="continue the runs in --out")
    add("--report", action="store_true", help="only print the results in --out")
    add("--cpus", type=command.number(1), metavar="N", help="runs at a time (all cores)")
    add("--address", help="address of a Ray cluster (RAY_ADDRESS)")
    add("--json", action="store_true", help="print the results as one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    from algorithms.sweeps.plan import PLAN_FILE, read_plan
    from algorithms.sweeps.running import run_sweep

    if args.resume or args.report:
        plan = read_plan(args.out)
    elif (args.out / PLAN_FILE).exists():
        raise UsageError(f"--out {args.out}: has runs already; add --resume to continue them")
    else:
        plan = _plan(args)
    has_ended = True
    if not args.report:
        bar = nullcontext(_show_nothing) if args.json else progress("training", plan.steps())
        with bar as show:
            outcome = run_sweep(
                plan,
                args.out,
                show,
                resume=args.resume,
                address=args.address or os.environ.get("RAY_ADDRESS"),
                cpus=args.cpus,
                retries=3,
            )
        has_ended = outcome.has_ended
    results = read_training_results(args.out, plan)
    missing = len(plan.trials()) - sum(len(result.shares) for result in results)
    if args.json:
        print(json.dumps(_to_json(results)))
    else:
        print(to_text(results))
    if missing:
        print(f"{missing} runs have no result (--resume tries them again)", file=sys.stderr)
    if not has_ended:
        return command.EXIT_INTERRUPTED
    too_large = [result for result in results if max(result.shares) > _limit(result, args.limit)]
    return command.EXIT_FAILED if too_large or missing else command.EXIT_OK


def _show_nothing(done: int, note: str = "") -> None:
    pass


def _limit(result: Result, usual: float) -> float:
    """The largest share that a game may have."""
    return usual if result.game.limit is None else max(result.game.limit, usual)


def _plan(args: argparse.Namespace) -> Plan:
    """The runs that the options ask for."""
    from algorithms.games import load_game
    from algorithms.self_play.settings import configure
    from algorithms.sweeps.plan import Plan, parse_seeds

    kinds = args.kinds.split(",")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"--kinds {args.kinds}: want some of {','.join(KINDS)}")
    settings = {}
    for game in GAMES:
        if args.half not in ("all", game.half) or args.games not in game.name:
            continue
        loaded = load_game(game.name)
        for kind in kinds:
            if kind != "table" and not loaded.plays_networks:  # it has no tensor
                continue
            if kind == "states" and loaded.pyspiel_game is None:  # our own Kuhn
                continue
            chosen = {"game": game.name, **KINDS[kind]}
            if args.steps:
                chosen["steps"] = args.steps
            settings[f"{kind},{game.short}"] = configure(chosen)
    if not settings:
        raise UsageError(f"--games {args.games}: no game of the list has a name like that")
    return Plan(settings=settings, seeds=parse_seeds(args.seeds))


def read_training_results(folder: Path, plan: Plan) -> list[Result]:
    """The results of the runs that have ended, the worst mean share first."""
    from algorithms.sweeps.plan import MODEL_FILE

    by_label = {f"{kind},{game.short}": (game, kind) for game in GAMES for kind in KINDS}
    results = []
    for label in plan.settings:
        game, kind = by_label[label]
        documents = []
        for trial in plan.trials():
            if trial.setting == label and trial.has_ended(folder):
                path = (folder / trial.folder / MODEL_FILE).with_suffix(".json")
                documents.append(json.loads(path.read_text(encoding="utf-8")))
        if documents:
            results.append(
                Result(
                    game=game,
                    kind=kind,
                    shares=tuple(one["nash_conv"] / one["nash_conv_uniform"] for one in documents),
                    nash_convs=tuple(one["nash_conv"] for one in documents),
                    cpu_seconds=mean(
                        one["cpu_seconds"] + one["fitting_cpu_seconds"] for one in documents
                    ),
                )
            )
    return sorted(results, key=lambda result: -result.mean)


def to_text(results: Sequence[Result]) -> str:
    """Tables of all results, the worst first, and of their medians."""
    rows = [
        (
            result.game.short,
            result.kind,
            result.game.half,
            f"{100 * result.mean:.2f}",
            " ".join(f"{100 * share:.2f}" for share in result.shares),
            f"{mean(result.nash_convs):.5f}",
            f"{result.cpu_seconds:.1f}",
        )
        for result in results
    ]
    header = ("game", "run", "half", "mean, %", "each seed, %", "NashConv", "CPU s")
    lines = [command.table(header, rows), ""]
    for kind in KINDS:
        for half in get_args(Half):
            of_kind = [
                result for result in results if (result.kind, result.game.half) == (kind, half)
            ]
            if of_kind:
                middle = 100 * median(result.mean for result in of_kind)
                worst = of_kind[0]
                lines.append(
                    f"{kind}, {half} half: median {middle:.2f}%, "
                    f"worst {100 * worst.mean:.2f}% ({worst.game.short})"
                )
    return "\n".join(lines)


def _to_json(results: Sequence[Result]) -> list[dict[str, object]]:
    return [
        {
            "game": result.game.name,
            "half": result.game.half,
            "run": result.kind,
            "shares": result.shares,
            "nash_convs": result.nash_convs,
            "cpu_seconds": result.cpu_seconds,
        }
        for result in results
    ]


if __name__ == "__main__":
    sys.exit(main())
