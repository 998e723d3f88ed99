"""Play a policy against opponents: exactly, and in a simulated match.

`python -m algorithms.evaluate model.zip --against heuristic nash:1/3 other.zip --hands 100000`
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from algorithms.exact.simulation import MAX_ERRORS, require_hands
from algorithms.games import KUHN, Game
from algorithms.learning.matches import Match, play_match
from algorithms.policies import Policy, sources
from algorithms.policies.formats import STYLES
from algorithms.policies.sources import game_of, open_source
from algorithms.support import command
from algorithms.support.progress import progress

KUHN_OPPONENTS = (*STYLES, "nash:0", "nash:1/3", sources.BEST_RESPONSE)
OPPONENTS = ("uniform", "cfr+:100", sources.BEST_RESPONSE)
NATIVE_OPPONENTS = ("uniform", sources.BEST_RESPONSE)  # solving takes minutes


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if a match is further from the exact value than chance explains."""
    parser = command.Parser(
        prog="python -m algorithms.evaluate",
        description=command.summary(__doc__),
    )
    add = parser.add_argument
    add("policy", metavar="POLICY", help=sources.HELP)
    add("--game", metavar="NAME", help=sources.GAME_HELP)
    add(
        "--against",
        nargs="+",
        metavar="OPPONENT",
        help=f"any POLICY, or {sources.BEST_RESPONSE} (to the policy); by default "
        f"{' '.join(OPPONENTS)}, for {KUHN} {' '.join(KUHN_OPPONENTS)}, for games without a tree "
        "those that are found within seconds",
    )
    add("--hands", type=int, default=100_000, help="number of hands per seat (%(default)s)")
    add("--seed", type=int, default=0, help="random seed of deals and draws (%(default)s)")
    add(
        "--deterministic", action="store_true", help="always play the policy's most probable action"
    )
    add("--trust", action="store_true", help="let a model's file run code")
    add("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    require_hands(args.hands, args.seed)
    policy, others = _loaded(args)
    matches = {}
    for name, other in others.items():
        with progress("playing", policy.game.num_players * args.hands) as bar:
            matches[name] = play_match(
                (policy, other), hands=args.hands, seed=args.seed, progress=bar
            )
    if args.json:
        shown = {name: _as_json(policy.game, match) for name, match in matches.items()}
        head = {"source": args.policy, "game": policy.game.name, "seed": args.seed}
        print(json.dumps(head | {"against": shown}))
    else:
        hands = policy.game.num_players * args.hands
        print(f"what {args.policy} wins, chips per hand, over {hands:,} hands per match")
        print(_table(policy.game, matches))
    off = [sample.errors_off for match in matches.values() for sample in match.seats]
    return command.EXIT_FAILED if max(off) > MAX_ERRORS else command.EXIT_OK


def _loaded(args: argparse.Namespace) -> tuple[Policy, dict[str, Policy]]:
    """The policy, and its opponents by name."""
    given = [open_source(name, trust=args.trust) for name in (args.policy, *(args.against or ()))]
    game = game_of(given, args.game)
    policy = given[0].policy(game)
    policy = policy.greedy() if args.deterministic else policy
    others = given[1:] or [open_source(name) for name in _usual_opponents(game)]
    return policy, {other.name: other.policy(game, against=policy) for other in others}


def _usual_opponents(game: Game) -> tuple[str, ...]:
    if game.name == KUHN:
        return KUHN_OPPONENTS
    if game.fits_tree:
        return OPPONENTS
    return NATIVE_OPPONENTS if game.is_exact else NATIVE_OPPONENTS[:1]


def _table(game: Game, matches: Mapping[str, Match]) -> str:
    seats = game.agents if not game.is_exact else [f"exact as {agent}" for agent in game.agents]
    header = ("against", *seats, *(["exact"] * game.is_exact), "match", "95% interval")
    rows = []
    for name, match in matches.items():
        if game.is_exact:
            columns = [f"{sample.exact:+.5f}" for sample in (*match.seats, match.together)]
        else:
            columns = [f"{sample.mean:+.5f}" for sample in match.seats]
        low, high = match.together.interval
        rows.append((name, *columns, f"{match.together.mean:+.5f}", f"[{low:+.5f}, {high:+.5f}]"))
    return command.table(header, rows)


def _as_json(game: Game, match: Match) -> dict[str, object]:
    named = zip((*game.agents, "both"), (*match.seats, match.together), strict=True)
    return {name: asdict(sample) | {"interval": sample.interval} for name, sample in named}


if __name__ == "__main__":
    sys.exit(main())
