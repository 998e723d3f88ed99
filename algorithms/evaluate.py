"""Play a policy against opponents: what it wins exactly in each seat, and in a simulated match.

`python -m algorithms.evaluate model.zip --against heuristic nash:1/3 other.zip --hands 100000`
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from algorithms.exact.simulation import MAX_ERRORS, Sample, all_seats, require_hands, simulate
from algorithms.games import KUHN, Game
from algorithms.policies import Policy, sources
from algorithms.policies.kuhn import STYLES
from algorithms.policies.sources import game_of, open_source
from algorithms.support import command
from algorithms.support.progress import progress

KUHN_OPPONENTS = (*STYLES, "nash:0", "nash:1/3", sources.BEST_RESPONSE)
OPPONENTS = ("uniform", "cfr+:100", sources.BEST_RESPONSE)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; exit 1 if a match is further from the exact value than chance explains."""
    parser = command.Parser(
        prog="python -m algorithms.evaluate",
        description="Play a policy against opponents: exactly, and in a simulated match.",
    )
    add = parser.add_argument
    add("policy", metavar="POLICY", help=sources.HELP)
    add("--game", metavar="NAME", help=sources.GAME_HELP)
    add(
        "--against",
        nargs="+",
        metavar="OPPONENT",
        help=f"any POLICY, or {sources.BEST_RESPONSE} (to the policy); by default "
        f"{' '.join(OPPONENTS)}, for {KUHN} {' '.join(KUHN_OPPONENTS)}",
    )
    add("--hands", type=int, default=100_000, help="per seat (%(default)s)")
    add("--seed", type=int, default=0, help="of the deals and draws (%(default)s)")
    add("--deterministic", action="store_true", help="always the policy's likeliest action")
    add("--trust", action="store_true", help="let a model's file run code")
    add("--json", action="store_true", help="one JSON object")
    args = parser.parse_args(argv)
    return command.run(lambda: _run(args), parser.prog)


def _run(args: argparse.Namespace) -> int:
    require_hands(args.hands, args.seed)
    policy, others = _loaded(args)
    matches = {name: _match(policy, other, args) for name, other in others.items()}
    if args.json:
        shown = {name: _as_json(policy.game, samples) for name, samples in matches.items()}
        head = {"source": args.policy, "game": policy.game.name, "seed": args.seed}
        print(json.dumps(head | {"against": shown}))
    else:
        hands = policy.game.num_players * args.hands
        print(f"what {args.policy} wins, chips per hand, over {hands:,} hands per match")
        print(_table(policy.game, matches))
    off = [sample.errors_off for samples in matches.values() for sample in samples]
    return command.EXIT_FAILED if max(off) > MAX_ERRORS else command.EXIT_OK


def _loaded(args: argparse.Namespace) -> tuple[Policy, dict[str, Policy]]:
    """The policy, and its opponents by name."""
    given = [open_source(name, trust=args.trust) for name in (args.policy, *(args.against or ()))]
    game = game_of(given, args.game)
    policy = given[0].policy(game)
    policy = policy.greedy() if args.deterministic else policy
    usual = KUHN_OPPONENTS if game.name == KUHN else OPPONENTS
    others = given[1:] or [open_source(name) for name in usual]
    return policy, {other.name: other.policy(game, against=policy) for other in others}


def _match(policy: Policy, other: Policy, args: argparse.Namespace) -> tuple[Sample, ...]:
    with progress("playing", policy.game.num_players * args.hands) as bar:
        tables = (policy.table, other.table)
        return simulate(policy.game.tree, tables, hands=args.hands, seed=args.seed, progress=bar)


def _table(game: Game, matches: Mapping[str, tuple[Sample, ...]]) -> str:
    seats = (f"exact as {agent}" for agent in game.agents)
    header = ("against", *seats, "exact", "match", "95% interval")
    rows = []
    for name, samples in matches.items():
        together = all_seats(samples)
        exact = [f"{sample.exact:+.5f}" for sample in (*samples, together)]
        low, high = together.interval
        rows.append((name, *exact, f"{together.mean:+.5f}", f"[{low:+.5f}, {high:+.5f}]"))
    return command.table(header, rows)


def _as_json(game: Game, samples: tuple[Sample, ...]) -> dict[str, object]:
    named = zip((*game.agents, "both"), (*samples, all_seats(samples)), strict=True)
    return {name: asdict(sample) | {"interval": sample.interval} for name, sample in named}


if __name__ == "__main__":
    sys.exit(main())
