"""What a training run leaves behind: the model, its learning curve, and how it was made."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import kuhn_bridge
from algorithms.exact.values import nash_conv
from algorithms.games import Game
from algorithms.learning.curve import Point, draw, to_csv
from algorithms.learning.training import Training
from algorithms.policies.policy import Policy
from algorithms.policies.sb3 import load_policy
from algorithms.support import files
from kuhn_bridge.errors import GameError

PACKAGES = ("gymnasium", "numpy", "pettingzoo", "sb3-contrib", "stable-baselines3", "torch")
LAST = ".last.zip"  # where `which="both"` puts the last policy


def holds_models(game: Game) -> bool:
    """Whether a network can play this game, so that a policy fits into a model.zip."""
    if not game.fits_tree:
        return bool(game.observation_size)
    try:
        return bool(game.observations.size)
    except GameError:
        return False


def save_results(
    training: Training, out: Path, *, which: str = "best", picture: bool = True
) -> dict[str, Any]:
    """Write the model, its curve and how it was made; the results, measured on the saved file."""
    end, game = training.curve[-1], training.game
    holds = {"best": _better(end), "both": "average"}.get(which, which)
    if holds_models(game):
        training.save_model(out, holds=holds)
        if which == "both":
            training.save_model(out.with_suffix(LAST), holds="last")
    result = {
        **_policy_and_measure(training, out, holds),
        "game": game.name,
        "holds": holds,
        "steps": end.steps,
        "seconds": end.seconds,
        "steps_per_second": end.steps / end.seconds,
        "finished": not training.stopped,
        "config": asdict(training.settings),
        "versions": _versions(),
    }
    recorder = training.callback.recorder
    files.write_text(out.with_suffix(".csv"), to_csv(training.curve, recorder.measure))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    if picture and game.fits_tree:
        draw({training.settings.recipe: training.curve}, out.with_suffix(".png"), game)
    return result


def _better(end: Point) -> str:
    """Which policy of a curve's last point is better; the average if that is not known."""
    return "last" if end.last < end.average else "average"


def _policy_and_measure(training: Training, out: Path, holds: str) -> dict[str, Any]:
    """The saved policy and its NashConv; without a tree only what the curve measured."""
    end, game = training.curve[-1], training.game
    if not game.fits_tree:
        measured = (
            {}
            if math.isnan(end.last)
            else {training.callback.recorder.measure: getattr(end, holds)}
        )
        return {"source": str(out), **measured}
    if holds_models(game):
        policy, source = load_policy(out, game=game), out
    else:
        table = training.average if holds == "average" else training.last
        policy, source = Policy(game, np.asarray(table)), out.with_suffix(".json")
    measure = policy.measure()
    return {
        **policy.to_document(),
        "source": str(source),
        "nash_conv": measure.nash_conv,
        "exploitability": measure.exploitability,
        "gains": measure.gains,
        "values": measure.values,
        **({"value": measure.values[0]} if game.closed_form else {}),
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": nash_conv(game.tree, game.tree.uniform()),
    }


def _versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "kuhn-bridge": kuhn_bridge.__version__}
    return own | {name: metadata.version(name) for name in PACKAGES}
