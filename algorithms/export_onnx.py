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


def main(argv: Sequence[str] | None = None) -> int:
    """Write a trained policy as a checked ONNX file."""
    parser = Parser(prog="python -m algorithms.export_onnx", description=main.__doc__)
    add = parser.add_argument
    add("model", help="a MaskablePPO or PPO zip, e.g. model.zip")
    add("--out", default="policy.onnx", help="the file to write (%(default)s)")
    add("--game", metavar="NAME", help=f"its game (the model's own, or {KUHN})")
    add("--json", action="store_true", help="print the policy as JSON")
    add("--trust", action="store_true", help="let SB3 load the zip, which runs code from it")
    return parser.run(_run, argv)


def _run(options: argparse.Namespace) -> int:
    from algorithms.policies.onnx_writer import export

    source = open_source(options.model, trust=options.trust)
    game = game_of([source], options.game)
    network = source.network(game)
    if options.json and not game.fits_tree:
        raise UsageError(f"--json: {game.name} is too large for a policy as JSON")
    difference = export(network, game, options.out)
    policy = Policy(game, network=network)
    if options.json:
        print(json.dumps(policy.to_document()))
        return EXIT_OK
    measure = f", NashConv {policy.nash_conv():.6f}" if game.fits_tree else ""
    size = f"{Path(options.out).stat().st_size:,} bytes"
    print(f"{options.out}: {size}, {game}{measure}, differs from torch by {difference:.1e}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
