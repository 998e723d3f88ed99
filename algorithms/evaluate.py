"""Play a policy against opponents: exactly, and in a simulated match.

`python -m algorithms.evaluate model.zip --against heuristic nash:1/3 other.zip --hands 100000`
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from algorithms.games import KUHN, Game
from algorithms.policies import Policy, load
from algorithms.policies.json_files import STYLES
from algorithms.self_play import matches
from algorithms.support import command

KUHN_OPPONENTS = (*STYLES, "nash:0", "nash:1/3", load.BEST_RESPONSE)
OPPONENTS = ("uniform", "cfr+:100", load.BEST_RESPONSE)
NATIVE_OPPONENTS = ("uniform", load.BEST_RESPONSE)  # solving takes minutes


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if a match is further from the exact value than chance explains."""
    parser = command.Parser(prog="python -m algorithms.evaluate", description=__doc__)
    parser.add_argument("policy", metavar="POLICY", help=load.HELP)
    against = (
        f"any POLICY, or {load.BEST_RESPONSE} (to the policy); by default "
        f"{' '.join(OPPONENTS)}, for {KUHN} {' '.join(KUHN_OPPONENTS)}, for games without a tree "
        "those that are found within seconds"
    )
    parser.add_argument("--against", nargs="+", metavar="OPPONENT", help=against)
    greedy = "always play the policy's most probable action"
    parser.add_argument("--deterministic", action="store_true", help=greedy)
    matches.add_options(parser)
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    policy, others = _loaded(args)
    played = {
        name: matches.play_match(policy, other, hands=args.hands, seed=args.seed)
        for name, other in others.items()
    }
    if args.json:
        names = (*policy.game.agents, "both")
        results = {name: matches.as_json(names, match) for name, match in played.items()}
        head = {"source": args.policy, "game": policy.game.name, "seed": args.seed}
        print(json.dumps(head | {"against": results}))
    else:
        hands = policy.game.num_players * args.hands
        print(f"what {args.policy} wins, chips per hand, over {hands:,} hands per match")
        print(_table(policy.game, played))
    return matches.exit_code(played.values())


def _loaded(args: argparse.Namespace) -> tuple[Policy, dict[str, Policy]]:
    """The policy, and its opponents by name."""
    names = (args.policy, *(args.against or ()))
    given = [load.open_source(name, trust=args.trust) for name in names]
    game = load.game_of(given, args.game)
    policy = given[0].policy(game)
    policy = policy.greedy() if args.deterministic else policy
    others = given[1:] or [load.open_source(name) for name in _usual_opponents(game)]
    return policy, {other.name: other.policy(game, against=policy) for other in others}


def _usual_opponents(game: Game) -> tuple[str, ...]:
    if game.fits_tree:
        return KUHN_OPPONENTS if game.name == KUHN else OPPONENTS
    return NATIVE_OPPONENTS if game.is_exact else NATIVE_OPPONENTS[:1]


def _table(game: Game, played: Mapping[str, Sequence[matches.Sample]]) -> str:
    """Exact values where there are any, beside the match in all seats."""
    agents = [f"exact as {agent}" for agent in game.agents] if game.is_exact else game.agents
    header = ("against", *agents, *(["exact"] * game.is_exact), "match", "95% interval")
    rows = []
    for name, match in played.items():
        *seats, together = match
        figures = [s.exact for s in match] if game.is_exact else [s.mean for s in seats]
        columns = [f"{figure:+.5f}" for figure in (*figures, together.mean)]
        low, high = together.interval
        rows.append((name, *columns, f"[{low:+.5f}, {high:+.5f}]"))
    return command.table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
