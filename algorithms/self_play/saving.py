"""The files of a training run: the model, its learning curve, its settings and results.

A model is an SB3 zip that loads anywhere: it has only SB3's own classes and numbers.
"""

import json
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch import nn

import kuhn_bridge
from algorithms.games import Game
from algorithms.policies import load_policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.policies.policy import Policy
from algorithms.self_play.curve import BOUND, draw, to_csv
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.infoset_policy import InfosetPolicy
from algorithms.self_play.settings import is_bounded, is_measured
from algorithms.self_play.training_run import NEVER, Training, imitate
from algorithms.support import files
from kuhn_bridge.errors import GameError

PACKAGES = ("gymnasium", "numpy", "pettingzoo", "sb3-contrib", "stable-baselines3", "torch")
LAST = ".last.zip"  # the suffix of the last policy if both are saved
MAX_PLACED_WEIGHTS = 10_000_000  # of a layer with one unit per information set
HIDDEN = (128, 128)

# PPO's settings to continue learning from a saved model: those of our training, with small steps.
COMMON: dict[str, Any] = {"n_epochs": 1, "gamma": 1.0, "gae_lambda": 1.0}
TABLE = COMMON | {"learning_rate": 3e-4, "n_steps": 8, "batch_size": None}
TABLE |= {"normalize_advantage": False, "max_grad_norm": 0.5}
# Weights that information sets share need larger rollouts and smaller steps.
NETWORK = TABLE | {"learning_rate": 1e-5, "n_steps": 64}
STATES = COMMON | {"learning_rate": 1e-5, "n_steps": 32, "batch_size": 1024, "ent_coef": 0.03}
STATES |= {"clip_range": 0.1}


def holds_models(game: Game) -> bool:
    """Whether a network can play this game; only then is a policy saved as model.zip."""
    try:
        return bool(game.observations.size if game.fits_tree else game.observation_size)
    except GameError:
        return False


def save_model(training: Training, path: Path, *, holds: str) -> None:
    """Write a zip with SB3's `MlpPolicy` that plays the `last` or the `average` policy.

    It has the layers of the trained network, or for a table one unit per information set if these
    are not too many. It names its game. The file is written whole or not at all.
    """
    game, trained, plays = training.game, training.model.policy, getattr(training.learner, holds)
    tabular = isinstance(trained, InfosetPolicy) and trained.tabular
    inputs = game.network_inputs() if tabular else np.empty(0)
    placed = tabular and inputs.size <= MAX_PLACED_WEIGHTS and np.isin(inputs, (0, 1)).all()
    if tabular:
        options, layers = TABLE, [len(plays)] if placed else list(HIDDEN)
        kwargs: dict[str, Any] = {"net_arch": layers, "activation_fn": nn.ReLU}
    else:
        options = STATES if isinstance(plays, nn.Module) else NETWORK
        names = ("net_arch", "activation_fn", "optimizer_kwargs")
        kwargs = {name: getattr(trained, name) for name in names}
    env = SelfPlayVecEnv(1, game, on="states" if options is STATES else "tree")
    model: Any = MaskablePPO("MlpPolicy", env, policy_kwargs=kwargs, device="cpu", **options)
    actor = actor_of(model.policy)
    if not tabular:
        model.policy.load_state_dict(trained.state_dict())
    if placed:
        _place(model.policy, torch.tensor(inputs), plays, values=trained.outputs()[1])
    elif isinstance(plays, nn.Module):
        actor.load_state_dict(plays.state_dict())
    elif np.abs(network_table(actor, game) - plays).max() > 1e-6:
        imitate(actor, game, plays)
    model.num_timesteps, model.game, model.holds = training.model.num_timesteps, game.name, holds
    with files.replacing(path) as temporary:
        model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])


def _place(policy: Any, inputs: torch.Tensor, table: Any, *, values: torch.Tensor) -> None:
    """Give each information set a hidden unit that is active at its observation alone.

    For binary observations `x` and `y`, `(2y - 1) x` is `sum(y)` if they are equal, and less by at
    least 1 otherwise. With the bias `1 - sum(y)` and a ReLU the unit is 1 at `y` and 0 at all other
    observations. The next layer is therefore a table, exact for every policy.
    """
    logs = torch.as_tensor(np.log(np.maximum(table, NEVER))).float()
    extractor = policy.mlp_extractor
    with torch.no_grad():
        for first in (extractor.policy_net[0], extractor.value_net[0]):
            first.weight.copy_(2 * inputs - 1)
            first.bias.copy_(1 - inputs.sum(1))
        for head, columns in ((policy.action_net, logs), (policy.value_net, values)):
            head.weight.copy_(columns.T)
            head.bias.zero_()


def save_results(
    training: Training, out: Path, *, which: str = "best", picture: bool = True
) -> dict[str, Any]:
    """Write the model, curve, settings and results; return the results, measured on the file."""
    recorder, game, settings = training.recorder, training.game, training.settings
    end, measured = recorder.points[-1], is_measured(settings, game)
    best = "last" if measured and end.last < end.average else "average"
    holds = {"best": best, "both": "average"}.get(which, which)
    if holds_models(game):
        save_model(training, out, holds=holds)
        if which == "both":
            save_model(training, out.with_suffix(LAST), holds="last")
    own = {"python": platform.python_version(), "kuhn-bridge": kuhn_bridge.__version__}
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
        "config": asdict(settings),
        "versions": own | {name: metadata.version(name) for name in PACKAGES},
    }
    files.write_text(out.with_suffix(".csv"), to_csv(recorder.points, recorder.measure))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    if picture and measured:
        draw({settings.recipe: recorder.points}, out.with_suffix(".png"), game)
    return result


def _policy_and_measure(training: Training, out: Path, holds: str) -> dict[str, Any]:
    """The saved policy and its NashConv; without a tree only the figures of the curve."""
    end, game = training.recorder.points[-1], training.game
    found: dict[str, Any] = {"source": str(out)}
    if is_bounded(training.settings, game):
        return found | {f"{BOUND}_last": end.last, f"{BOUND}_average": end.average}
    if not is_measured(training.settings, game):
        return found
    nash_conv = float(getattr(end, holds))
    if game.fits_tree:
        if holds_models(game):
            policy, source = load_policy(out, game=game), out
        else:
            table = np.asarray(getattr(training.learner, holds))
            policy, source = Policy(game, table), out.with_suffix(".json")
        measure = policy.measure()
        nash_conv = measure.nash_conv
        found = policy.to_document()
        found |= {"source": str(source), "gains": measure.gains, "values": measure.values}
        found |= {"value": measure.values[0]} if game.closed_form else {}
    return found | {
        "nash_conv": nash_conv,
        "exploitability": nash_conv / game.num_players,
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": game.measure(game.uniform_table()).nash_conv,
    }
