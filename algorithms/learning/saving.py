"""The files of a training run: the model, its learning curve, its settings and results."""

import json
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import kuhn_bridge
from algorithms.games import Game
from algorithms.learning.curve import BOUND, Point, draw, to_csv
from algorithms.learning.settings import is_bounded, is_measured
from algorithms.learning.training import Training
from algorithms.policies import load_policy
from algorithms.policies.policy import Policy
from algorithms.support import files
from kuhn_bridge.errors import GameError

PACKAGES = ("gymnasium", "numpy", "pettingzoo", "sb3-contrib", "stable-baselines3", "torch")
LAST = ".last.zip"  # the suffix of the last policy if both are saved


def holds_models(game: Game) -> bool:
    """Whether a network can play this game; only then is a policy saved as model.zip."""
    if not game.fits_tree:
        return bool(game.observation_size)
    try:
        return bool(game.observations.size)
    except GameError:
        return False


def save_results(
    training: Training, out: Path, *, which: str = "best", picture: bool = True
) -> dict[str, Any]:
    """Write the model, curve, settings and results; return the results, measured on the file."""
    recorder, game = training.callback.recorder, training.game
    end = recorder.points[-1]
    best = _better(end) if is_measured(training.settings, game) else "average"
    holds = {"best": best, "both": "average"}.get(which, which)
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
        "cpu_seconds": recorder.cpu_seconds,
        "measuring_cpu_seconds": recorder.measuring_cpu_seconds,
        "steps_per_second": end.steps / end.seconds,
        "finished": not training.stopped,
        "config": asdict(training.settings),
        "versions": _versions(),
    }
    files.write_text(out.with_suffix(".csv"), to_csv(training.curve, recorder.measure))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    if picture and is_measured(training.settings, game):
        draw({training.settings.recipe: training.curve}, out.with_suffix(".png"), game)
    return result


def _better(end: Point) -> str:
    """The better policy of a curve's last point."""
    return "last" if end.last < end.average else "average"


def _policy_and_measure(training: Training, out: Path, holds: str) -> dict[str, Any]:
    """The saved policy and its NashConv; without a tree only the figures of the curve."""
    end, game = training.curve[-1], training.game
    if is_bounded(training.settings, game):
        bounds = {f"{BOUND}_last": end.last, f"{BOUND}_average": end.average}
        return {"source": str(out), **bounds}
    if not is_measured(training.settings, game):
        return {"source": str(out)}
    if not game.fits_tree:
        nash_conv = float(getattr(end, holds))
        return {
            "source": str(out),
            "nash_conv": nash_conv,
            "exploitability": nash_conv / game.num_players,
            **_compared(end, game),
        }
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
        **_compared(end, game),
    }


def _compared(end: Point, game: Game) -> dict[str, float]:
    """NashConv of the last policy, the average, and uniform play."""
    return {
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": game.measure(game.uniform_table()).nash_conv,
    }


def _versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "kuhn-bridge": kuhn_bridge.__version__}
    return own | {name: metadata.version(name) for name in PACKAGES}
