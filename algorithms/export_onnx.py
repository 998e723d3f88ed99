"""`python -m algorithms.export_onnx model.zip`: write a trained policy as a checked ONNX file."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.games import KUHN
from algorithms.policies import Policy
from algorithms.policies.load import game_of, open_source
from algorithms.support.command import EXIT_OK, Parser
from algorithms.support.errors import UsageError
from algorithms.support.files import require_writable


def main(argv: Sequence[str] | None = None) -> int:
    """Write a trained policy as a checked ONNX file."""
    parser = Parser(prog="python -m algorithms.export_onnx", description=main.__doc__)
    parser.add_argument("model", help="a MaskablePPO or PPO zip, e.g. model.zip")
    parser.add_argument("--out", default="policy.onnx", help="the file to write (%(default)s)")
    parser.add_argument("--game", metavar="NAME", help=f"its game (the model's own, or {KUHN})")
    parser.add_import()
    parser.add_argument("--json", action="store_true", help="print the policy as JSON")
    parser.add_argument(
        "--trust", action="store_true", help="let SB3 load the zip, which runs code from it"
    )
    return parser.run(_run, argv)


def _run(args: argparse.Namespace) -> int:
    from algorithms.policies.onnx_writer import export

    if Path(args.out).suffix != ".onnx":  # commands know a policy's format by its suffix
        raise UsageError(f"--out {args.out}: give a name that ends in .onnx")
    require_writable(args.out)
    source = open_source(args.model, trust=args.trust)
    game = game_of([source], args.game)
    network = source.network(game)
    if args.json and game.policy_file != ".json":
        raise UsageError(f"--json: {game.name} is too large for a policy as JSON")
    difference = export(network, game, args.out)
    policy = Policy(game, network=network)
    if args.json:
        print(json.dumps(policy.to_document()))
    else:
        size = f"{Path(args.out).stat().st_size:,} bytes"
        facts = [size, str(game)]
        if game.measures_at_once:
            facts.append(f"NashConv {policy.nash_conv():.6f}")
        facts.append(f"differs from torch by {difference:.1e}")
        print(f"{args.out}: {', '.join(facts)}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
