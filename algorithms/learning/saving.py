"""What a training run leaves behind: the model, its learning curve, and how it was made."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import kuhn_bridge
from algorithms.exact.values import nash_conv
from algorithms.games import Game
from algorithms.learning.curve import draw, to_csv
from algorithms.learning.training import Training
from algorithms.policies import load_policy
from algorithms.policies.policy import Policy
from algorithms.support import files
from kuhn_bridge.errors import GameError

PACKAGES = ("gymnasium", "numpy", "pettingzoo", "sb3-contrib", "stable-baselines3", "torch")
LAST = ".last.zip"  # where `which="both"` puts the last policy


def holds_models(game: Game) -> bool:
    """Whether a network can play this game, so that a policy fits into a model.zip."""
    try:
        return bool(game.observations.size)
    except GameError:
        return False


def save_results(
    training: Training, out: Path, *, which: str = "best", picture: bool = True
) -> dict[str, Any]:
    """Write the model and what belongs to it; what came out, measured on the saved file."""
    end, game = training.curve[-1], training.game
    better = "average" if end.average <= end.last else "last"
    holds = {"best": better, "both": "average"}.get(which, which)
    tables = {"last": training.last, "average": training.average}
    if holds_models(game):
        training.save_model(out, tables[holds], holds=holds)
        if which == "both":
            training.save_model(out.with_suffix(LAST), tables["last"], holds="last")
        policy, source = load_policy(out, game=game), out
    else:
        policy, source = Policy(game, tables[holds]), out.with_suffix(".json")
    measured = policy.measure()
    result = {
        **policy.to_document(),
        "source": str(source),
        "game": game.name,
        "holds": holds,
        "nash_conv": measured.nash_conv,
        "exploitability": measured.exploitability,
        "gains": measured.gains,
        "values": measured.values,
        **({"value": measured.values[0]} if game.closed_form else {}),
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": nash_conv(game.tree, game.tree.uniform()),
        "steps": end.steps,
        "seconds": end.seconds,
        "steps_per_second": end.steps / end.seconds,
        "finished": not training.stopped,
        "config": asdict(training.config),
        "versions": _versions(),
    }
    files.write_text(out.with_suffix(".csv"), to_csv(training.curve))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    if picture:
        draw({training.config.recipe: training.curve}, out.with_suffix(".png"), game)
    return result


def _versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "kuhn-bridge": kuhn_bridge.__version__}
    return own | {name: metadata.version(name) for name in PACKAGES}
