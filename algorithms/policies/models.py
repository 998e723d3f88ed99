"""Networks from model files: SB3 zips and ONNX."""

from __future__ import annotations

from pathlib import Path

from algorithms.games import Game
from algorithms.policies.network import Network, model_game, naming


def read_model(path: str | Path, *, trust: bool = False) -> Network:
    """The network in a `.zip` or an `.onnx` file, without running code from the file.

    Args:
        path: the file.
        trust: let SB3 load a zip, which runs code from it; do not limit what an ONNX file computes.
    """
    path = Path(path)
    with naming(path):
        if path.suffix == ".onnx":
            from algorithms.policies.onnx import read_onnx

            return read_onnx(path, trust=trust)
        from algorithms.policies.sb3 import read_sb3

        return read_sb3(path, trust=trust)


def load_model(
    path: str | Path, *, game: Game | None = None, trust: bool = False
) -> tuple[Network, Game]:
    """The network in a file, and its game as `model_game` finds it; the file is opened once."""
    network = read_model(path, trust=trust)
    with naming(path):
        return network, model_game(network, game)
