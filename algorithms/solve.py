"""Solve a game with a variant of CFR or with the linear program, and report NashConv.

Ctrl-C ends the run as if its iterations were complete. A large exact game also leaves a checkpoint
beside the policy, from which `--resume` continues.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from algorithms import solvers
from algorithms.cfr import require_iterations
from algorithms.games import KUHN, MAX_NODES, Game, TreeGame, as_game, load_game
from algorithms.games.game import arrays_of
from algorithms.games.kuhn_policies import to_names
from algorithms.large_games.solver import LargeGameSolver
from algorithms.linear_program import ExactSolution, solve_exactly, solve_zero_sum
from algorithms.mccfr import SAMPLING
from algorithms.nashconv import Measure
from algorithms.policies import Policy
from algorithms.policies.json_files import to_players
from algorithms.solvers import DEFAULT_ITERATIONS, DEFAULT_VARIANT, MODES, NAMES, SAVE, Save
from algorithms.support import command, files
from algorithms.support.errors import MAX_SEED, UsageError, unknown, whole_number
from algorithms.support.files import read_arrays, write_arrays
from algorithms.support.progress import progress
from kuhn_bridge.errors import short_repr

LP = "lp"  # the variant that is the linear program
# What the linear program has not.
OPTIONS_OF_ITERATIONS = (
    "iterations",
    "until",
    "discounts",
    "mode",
    "seed",
    "save",
    "resume",
    "plot",
)
MAX_ITERATIONS = 20_000_000  # iterations after which --until gives up
MAX_ROWS = 24  # information sets that are printed
MAX_LABEL = 120  # characters of an information set's label
CHECKPOINT = ".ckpt"  # replaces the policy's suffix
CHECKPOINT_SECONDS = 600  # between checkpoints, each of which takes about a second per GiB


def solve(  # noqa: PLR0913  # options by name
    game: Game | str,
    variant: str = DEFAULT_VARIANT,
    *,
    iterations: int | None = None,
    until: float | None = None,
    seed: int = 0,
    save: Save = "best",
    callback: Callable[[int, float], object] | None = None,
) -> Policy:
    """The better of the average and the last policy of a run of the CFR family.

    Ctrl-C ends the run early and returns what there is, with a warning. The variant `lp` is the
    linear program in sequence form: one solution to the last digits, without iterations.

    Args:
        game: a `Game` or its name.
        variant: `pdcfr+` (the default), `cfr`, `cfr+`, `lcfr`, `dcfr`, `pcfr+`,
            `cfr-simultaneous`, `es-mccfr`, `os-mccfr` or `lp`.
        iterations: number of iterations (1,000 by default); with `until` the largest number
            (20,000,000 by default).
        until: NashConv at which the run ends.
        seed: random seed of a variant that samples.
        save: `average` or `last` to return that policy instead of the better one (`best`).
        callback: function that is called now and then with the number of iterations and NashConv;
            the run ends if it returns False.
    """
    if until is not None and (not isinstance(until, float | int | np.number) or not until > 0):
        raise UsageError(f"until={short_repr(until)}: want a NashConv above 0")
    if callback is not None and not callable(callback):
        raise UsageError(f"callback={short_repr(callback)}: want a function")
    seed = whole_number("seed", seed, least=0, most=MAX_SEED)
    if save not in SAVE:
        raise unknown("save", save, SAVE)
    if not isinstance(variant, str):
        raise UsageError(
            f"variant={short_repr(variant)}: want a name such as {DEFAULT_VARIANT!r}; "
            "the number of iterations is given by name, iterations=1000"
        )
    if iterations is None:
        iterations = DEFAULT_ITERATIONS if until is None else MAX_ITERATIONS
    if not isinstance(iterations, int | np.integer):
        raise UsageError(f"iterations={short_repr(iterations)}: want a whole number")
    loaded = as_game(game)
    if variant == LP:
        return Policy(loaded, solve_zero_sum(loaded.tree).policy)
    seeding = {"seed": seed} if variant in SAMPLING else {}
    solver = loaded.make_solver(variant, **seeding)
    if iterations == 0:
        return Policy(loaded, solver.average_policy())
    require_iterations(iterations)
    options: dict[str, Any] = {} if callback is None else {"watch": callback}
    solved = solvers.run_solver(
        solver,
        loaded.measure,
        iterations=iterations,
        until=-math.inf if until is None else until,
        save=save,
        along=until is not None or callback is not None,
        **options,
    )
    if solved.interrupted:
        warnings.warn(f"interrupted after {solved.iterations:,} iterations", stacklevel=2)
    return Policy(loaded, solved.policy)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if `--until` was not reached."""
    parser = command.Parser(prog="python -m algorithms.solve", description=__doc__)
    add = parser.add_argument
    number = command.number
    games = f"{KUHN}, an OpenSpiel game or an .efg file (%(default)s)"
    add("--game", default=KUHN, metavar="NAME", help=games)
    parser.add_import()
    variants = f"{', '.join((*NAMES, LP))}, the linear program (%(default)s)"
    add("--variant", default=DEFAULT_VARIANT, help=variants)
    add("--rational", action="store_true", help=f"{LP}: an equilibrium in exact fractions")
    most = f"at most N iterations in all ({DEFAULT_ITERATIONS:,}, with --until {MAX_ITERATIONS:,})"
    add("--iterations", type=number(1), metavar="N", help=most)
    add("--until", type=float, metavar="NASHCONV", help="run until NashConv is at most this")
    exponents = "alpha, beta and gamma of discounted CFR instead of the variant's own"
    add("--discounts", type=float, nargs=3, metavar=("A", "B", "G"), help=exponents)
    modes = "exact: OpenSpiel's iterates bit for bit; fast: the same up to rounding (fast)"
    add("--mode", choices=MODES, help=modes)
    add("--seed", type=number(0), help="random seed of a sampling variant (0)")
    largest = "largest tree that is built (%(default)s)"
    add("--max-nodes", type=number(1), default=MAX_NODES, help=largest)
    add("--no-cache", action="store_true", help="neither read nor write the cached tree")
    saved = "the policy to report and write: the average, the last, or the better of both (best)"
    add("--save", choices=SAVE, default="best", help=saved)
    add("--out", metavar="FILE", help="write the policy: .json, .npz for a large game")
    resume = "continue from the checkpoint beside --out, for a large game"
    add("--resume", action="store_true", help=resume)
    add("--plot", metavar="FILE.png", help="draw NashConv over iterations")
    add("--json", action="store_true", help="print one JSON object")
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    _require(args)
    if args.variant == LP:
        return _run_linear_program(args)
    limit = args.iterations or (MAX_ITERATIONS if args.until else DEFAULT_ITERATIONS)
    game = load_game(args.game, max_nodes=args.max_nodes, cached=not args.no_cache)
    if args.out:
        _require_suffix(game, args.out)
    solver = game.make_solver(args.variant, **_solver_options(args))
    checkpoint = None
    if args.out and isinstance(solver, LargeGameSolver):
        checkpoint = _Checkpoint(args, game, solver)
    if args.resume:
        if checkpoint is None:
            raise UsageError("--resume: want a large exact game and the --out of the earlier run")
        checkpoint.read()
    with progress("solving", None if limit == MAX_ITERATIONS else limit) as bar:

        def advance(done: int, note: str) -> None:
            bar(done, note)
            if checkpoint and time.monotonic() - checkpoint.written > CHECKPOINT_SECONDS:
                checkpoint.write()

        until = args.until or -math.inf
        solved = solvers.run_solver(
            solver,
            game.measure,
            iterations=limit,
            until=until,
            save=args.save,
            progress=advance,
        )
    policy = Policy(game, solved.policy)
    if args.out:
        policy.save(args.out)
    if checkpoint and solved.interrupted:
        checkpoint.write()
    elif checkpoint:
        checkpoint.path.unlink(missing_ok=True)  # a finished run needs none
    if args.plot:
        with files.replacing(args.plot) as plot:
            _plot(plot, f"{args.variant} on {game.name}", solved.curve)
    _print(args, policy, solved)
    if solved.interrupted:
        saved = f", saved {args.out}" if args.out else ""
        more = "; --resume continues from there" if checkpoint else ""
        print(f"interrupted after {solved.iterations:,} iterations{saved}{more}", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    missed = args.until and solved.measure.nash_conv > args.until
    return command.EXIT_FAILED if missed else command.EXIT_OK


def _solver_options(args: argparse.Namespace) -> dict[str, Any]:
    """The solver's options that were given; it has defaults of its own for the others."""
    options = {}
    for name in ("discounts", "mode", "seed"):
        if getattr(args, name) is not None:
            options[name] = getattr(args, name)
    return options


def _run_linear_program(args: argparse.Namespace) -> int:
    """Solve a game by its linear program, in floats or in fractions."""
    game = load_game(args.game, max_nodes=args.max_nodes, cached=not args.no_cache)
    tree = game.tree
    if args.out:
        _require_suffix(game, args.out)
    exact: ExactSolution | None = None
    if args.rational:
        exact = solve_exactly(tree)
        table = tree.table_of([float(share) for row in exact.policy for share in row])
    else:
        table = solve_zero_sum(tree).policy
    policy = Policy(game, table)
    if args.out:
        policy.save(args.out)
    measure = policy.measure()
    if args.json:
        summary = {"game": game.name, "variant": LP} | _measured_summary(policy, measure)
        if exact is not None:
            summary["exact_value"] = str(exact.value)
        print(json.dumps(summary))
        return command.EXIT_OK
    print(game.size_label)
    print("lp: the linear program in sequence form")
    print()
    print("\n".join(_measured_lines(policy, measure, exact)))
    return command.EXIT_OK


class _Checkpoint:
    """The state of a large game's solver, in a file beside the policy."""

    def __init__(self, args: argparse.Namespace, game: Game, solver: LargeGameSolver) -> None:
        self.path = Path(args.out).with_suffix(CHECKPOINT)
        self.written = time.monotonic()  # when a checkpoint was last written, or would have been
        self._solver = solver
        self._run = {
            "game": np.array(game.name),
            "variant": np.array(args.variant),
            "discounts": np.array(str(args.discounts)),
        }

    def read(self) -> None:
        """Continue from the file."""
        if not self.path.exists():
            raise UsageError(f"{self.path}: there is nothing to resume")
        state = read_arrays(self.path)
        for name, value in self._run.items():
            saved = state.get(name, "None")
            if str(saved) != str(value):
                raise UsageError(f"{self.path}: a run of {name} {saved}, not {value}")
        self._solver.set_state(state)

    def write(self) -> None:
        """Replace the file."""
        write_arrays(self.path, self._run | self._solver.get_state())
        self.written = time.monotonic()


def _require_suffix(game: Game, out: str) -> None:
    """Reject a file that no command would read back."""
    suffix = game.policy_file  # None in games that cannot be solved
    if suffix is not None and Path(out).suffix != suffix:
        raise UsageError(f"--out {out}: a policy of {game.name} is written as {suffix}")


def _require(args: argparse.Namespace) -> None:
    """Reject impossible values before the work starts."""
    if args.variant not in (*NAMES, LP):
        raise unknown("variant", args.variant, (*NAMES, LP))
    if args.until is not None and not args.until > 0:
        raise UsageError(f"--until {args.until}: want a NashConv above 0")
    if args.out:
        files.require_writable(args.out)
    if args.plot:
        files.require_png(args.plot)
    if args.discounts and (args.variant in SAMPLING or any(map(math.isnan, args.discounts))):
        raise UsageError(
            f"--discounts {args.discounts}: want three numbers, and a variant without sampling"
        )
    if args.variant == LP:
        for name in OPTIONS_OF_ITERATIONS:
            if getattr(args, name) not in (None, False, "best"):
                raise UsageError(f"--{name} cannot be combined with --variant {LP}")
    elif args.rational:
        raise UsageError(f"--rational requires --variant {LP}")


def _print(args: argparse.Namespace, policy: Policy, solved: solvers.Solved) -> None:
    if args.json:
        print(json.dumps(_summary(args, policy, solved)))
    else:
        print("\n".join(_report(args, policy, solved)))


def _summary(args: argparse.Namespace, policy: Policy, solved: solvers.Solved) -> dict[str, Any]:
    run = {
        "game": policy.game.name,
        "variant": args.variant,
        "iterations": solved.iterations,
        "holds": solved.kind,
        "curve": solved.curve,
    }
    return run | _measured_summary(policy, solved.measure)


def _measured_summary(policy: Policy, measure: Measure) -> dict[str, Any]:
    """A policy and its measure as JSON."""
    summary: dict[str, Any] = {
        "nash_conv": measure.nash_conv,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "values": measure.values,
    }
    if isinstance(policy.game, TreeGame):
        summary["players"] = to_players(policy.game.tree, policy.table)
    nearest = policy.game.nearest_equilibrium(policy.table)
    if nearest is not None:  # Kuhn poker
        summary["value"] = measure.values[0]
        summary["policy"] = to_names(policy.table)
        summary["distance"] = nearest.distance
        summary["alpha"] = nearest.alpha
    return summary


def _report(args: argparse.Namespace, policy: Policy, solved: solvers.Solved) -> Iterator[str]:
    yield policy.game.size_label
    yield f"{args.variant}: {solved.iterations:,} iterations, the {solved.kind} policy"
    yield ""
    yield from _measured_lines(policy, solved.measure)
    if args.until and solved.measure.nash_conv > args.until:
        yield f"not reached: NashConv {args.until:g}"


def _measured_lines(
    policy: Policy, measure: Measure, exact: ExactSolution | None = None
) -> Iterator[str]:
    """A policy and its measure as text; with the solution in fractions if there is one."""
    game = policy.game
    text = game.solution_text(policy.table)
    if exact is not None:
        yield from _exact_strategy(game, exact)
    elif text is not None:
        yield text
    else:
        yield from _strategy(policy)
    yield ""
    known = game.closed_form
    equilibrium = f"  (equilibrium {float(known.value):+.6f} = {known.value})" if known else ""
    yield f"value           {', '.join(f'{value:+.6f}' for value in measure.values)}{equilibrium}"
    if exact is not None:
        yield f"exact value     {exact.value}  (player_0's)"
    gains = ", ".join(f"{gain:.2e}" for gain in measure.gains)
    yield f"NashConv        {measure.nash_conv:.4e}  (gains {gains})"
    yield f"exploitability  {measure.exploitability:.4e}  (NashConv / {game.num_players} players)"
    if game.pot is not None:
        shares = f"NashConv {game.share_of_pot(measure.nash_conv)}"
        shares += f", exploitability {game.share_of_pot(measure.exploitability)}"
        yield f"in percent      {shares} of {game.pot:,} chips"
    nearest = game.nearest_equilibrium(policy.table)
    if nearest is not None:
        equilibrium = f"the equilibrium of alpha {nearest.alpha:.4f}"
        yield f"distance        {nearest.distance:.4e} to {equilibrium}"


def _exact_strategy(game: Game, exact: ExactSolution) -> Iterator[str]:
    """The first information sets of a solution, in fractions."""
    rows = []
    for infoset, shares in enumerate(exact.policy[:MAX_ROWS]):
        actions = np.flatnonzero(game.tree.legal[infoset]).tolist()
        words = [
            f"{game.action_label(infoset, action)}: {share}"
            for action, share in zip(actions, shares, strict=True)
        ]
        label = command.shortened(game.infoset_label(infoset), MAX_LABEL)
        rows.append((label, "  ".join(words)))
    yield command.table(("information set", "action: probability"), rows, left=2)
    if len(exact.policy) > MAX_ROWS:
        yield f"... and {len(exact.policy) - MAX_ROWS:,} more"


def _strategy(policy: Policy) -> Iterator[str]:
    """The first rows of a table; with one table per player the same number of each."""
    game = policy.game.require_exact()
    rows = []
    for row in game.first_rows(policy.table, MAX_ROWS):
        words = [
            f"{game.action_label(row.infoset, action, row.player)}: {probability:.4f}"
            for action, probability in zip(row.actions, row.probabilities, strict=True)
        ]
        label = command.shortened(game.infoset_label(row.infoset, row.player), MAX_LABEL)
        rows.append((label, "  ".join(words)))
    yield command.table(("information set", "action: probability"), rows, left=2)
    more = sum(len(table) for table in arrays_of(policy.table)) - len(rows)
    if more > 0:
        yield f"... and {more:,} more (--out writes all)"


def _plot(path: Path, title: str, curve: Sequence[solvers.CurvePoint]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", title=title)
    axes.set(xlabel="iterations", ylabel="NashConv (chips per hand)")
    iterations, nash_convs = zip(*curve, strict=True)
    axes.plot(iterations, nash_convs)
    axes.grid(which="both", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
