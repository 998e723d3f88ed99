"""Play a policy against opponents: exactly, and in a simulated match.

`python -m algorithms.evaluate model.zip --against heuristic nash:1/3 other.zip --hands 100000`
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from algorithms.games import KUHN, Game, kuhn
from algorithms.games.tree_game import TreeGame
from algorithms.policies import Policy, load
from algorithms.self_play import matches
from algorithms.support import command

Match: TypeAlias = Sequence[matches.Sample]
"""The policy's results in each seat, then in all seats together."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if a match is further from the exact value than chance explains."""
    parser = command.Parser(prog="python -m algorithms.evaluate", description=__doc__)
    parser.add_argument("policy", metavar="POLICY", help=load.HELP)
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="OPPONENT",
        help=f"any POLICY, or {load.BEST_RESPONSE} (to the policy); by default "
        f"{' '.join(TreeGame.usual_opponents)}, for {KUHN} {' '.join(kuhn().usual_opponents)}, "
        "for games without a tree those that are found within seconds",
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="always play the policy's most probable action",
    )
    matches.add_options(parser)
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    policy, opponents = _load(args)
    game = policy.game
    played = {
        name: matches.play_match(policy, opponent, hands=args.hands, seed=args.seed)
        for name, opponent in opponents.items()
    }
    if args.json:
        together = "both" if game.num_players == 2 else "all"
        names = (*game.agents, together)
        result = {
            "source": args.policy,
            "game": game.name,
            "seed": args.seed,
            "against": {name: matches.as_json(names, match) for name, match in played.items()},
        }
        print(json.dumps(result))
    else:
        hands = game.num_players * args.hands
        print(f"what {args.policy} wins, chips per hand, over {hands:,} hands per match")
        print(_table(game, played))
    return matches.exit_code(played.values())


def _load(args: argparse.Namespace) -> tuple[Policy, dict[str, Policy]]:
    """The policy, and its opponents by name."""
    source = load.open_source(args.policy, trust=args.trust)
    named = [load.open_source(name, trust=args.trust) for name in args.against or ()]
    game = load.game_of([source, *named], args.game)
    policy = source.policy(game)
    if args.deterministic:
        policy = policy.greedy()
    if not named:
        named = [load.open_source(name) for name in game.usual_opponents]
    return policy, {one.name: one.policy(game, against=policy) for one in named}


def _table(game: Game, played: Mapping[str, Match]) -> str:
    """One row per opponent: exact values where there are any, otherwise the means per seat."""
    is_exact = all(sample.exact is not None for match in played.values() for sample in match)
    if is_exact:
        figures_header = [*(f"exact as {agent}" for agent in game.agents), "exact"]
    else:
        figures_header = list(game.agents)
    rows = []
    for name, match in played.items():
        *seats, together = match
        if is_exact:
            figures = [sample.exact for sample in match]
        else:
            figures = [sample.mean for sample in seats]
        low, high = together.interval
        rows.append(
            (
                name,
                *(f"{figure:+.5f}" for figure in figures),
                f"{together.mean:+.5f}",
                f"[{low:+.5f}, {high:+.5f}]",
            )
        )
    return command.table(["against", *figures_header, "match", "95% interval"], rows)


if __name__ == "__main__":
    sys.exit(main())
