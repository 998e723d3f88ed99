"""The files of a training run: the model, its learning curve, its settings and results.

A model is an SB3 zip that loads anywhere: it has only SB3's own classes and numbers.
"""

import json
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch import nn

import kuhn_bridge
from algorithms.games import TreeGame
from algorithms.policies import load_policy
from algorithms.policies.distillation import StoredDataset
from algorithms.policies.distilled_policy import default_points, distil, fit_network
from algorithms.policies.model_zip import actor_of
from algorithms.policies.model_zip_writer import (
    STATES_SETTINGS,
    Layers,
    layers_of,
    make_model,
    write_model,
)
from algorithms.policies.policy import Policy
from algorithms.self_play.curve import BOUND, draw, to_csv
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.infoset_learner import InfosetLearner
from algorithms.self_play.settings import is_bounded, is_measured
from algorithms.self_play.training_run import Training
from algorithms.support import files
from algorithms.support.arrays import Float32Array, Float64Array

PACKAGES = (
    "gymnasium",
    "numba",
    "numpy",
    "open_spiel",
    "pettingzoo",
    "sb3-contrib",
    "stable-baselines3",
    "torch",
)
LAST = ".last.zip"  # the suffix of the last policy if both are saved
MAX_LOOK_UP_WEIGHTS = 10_000_000  # of a layer with one unit per information set
MAX_LOST = 0.2  # share of NashConv by which a network may be worse than the policy it was fitted to
NEGLIGIBLE = 1e-3  # share of uniform play's NashConv that is not worth a warning
NEVER_PLAYED = 1e-9  # a network's probability of an action that is never played


def save_model(training: Training, path: Path, *, holds: str) -> None:
    """Write a zip with SB3's `MlpPolicy` that plays the `last` or the `average` policy.

    The zip names its game, and is written whole or not at all.
    """
    game = training.game
    model = _model_of(training, holds)
    model.num_timesteps = training.model.num_timesteps
    model.game = game.name
    model.holds = holds
    write_model(model, path)


def _model_of(training: Training, holds: str) -> Any:
    """A stock model that plays the `last` or the `average` policy."""
    learner = training.learner
    if isinstance(learner, InfosetLearner):
        return _model_of_seen_infosets(training, learner, holds)
    policy = getattr(learner, holds)
    if isinstance(policy, nn.Module):
        return _model_of_network(training, policy)
    return _model_of_table(training, policy)


def _model_of_network(training: Training, actor: nn.Module) -> Any:
    """A stock model like the trained one, which plays a network of the same layers."""
    trained = training.model.policy
    names = ("net_arch", "activation_fn", "optimizer_kwargs")
    model: Any = MaskablePPO(
        "MlpPolicy",
        SelfPlayVecEnv(1, training.game, on="states"),
        policy_kwargs={name: getattr(trained, name) for name in names},
        device="cpu",
        **STATES_SETTINGS,
    )
    model.policy.load_state_dict(trained.state_dict())
    actor_of(model.policy).load_state_dict(actor.state_dict())
    return model


def _model_of_table(training: Training, table: Float64Array) -> Any:
    """A stock model that plays a table `(I, A)`.

    It has one hidden unit per information set, and plays the table exactly, if these are not too
    many and observations are binary. Otherwise, and if a network was asked for (`net=mlp`), a
    network of the settings' width is fitted to the table.
    """
    game = training.game
    inputs = game.network_inputs()
    binary = bool(np.isin(inputs, (0, 1)).all())
    exactly = training.settings.kind != "network"
    if exactly and inputs.size <= MAX_LOOK_UP_WEIGHTS and binary:
        values = game.infoset_values(table)
        critic = np.zeros(len(table)) if values is None else values.values
        return make_model(
            game,
            actor=_look_up_layers(inputs, np.log(np.maximum(table, NEVER_PLAYED))),
            critic=_look_up_layers(inputs, critic[:, np.newaxis]),
        )
    settings = training.settings
    return distil(Policy(game, table), width=settings.width, seed=settings.seed).to_sb3()


def _model_of_seen_infosets(training: Training, learner: InfosetLearner, holds: str) -> Any:
    """A stock model of the settings' width, fitted to a policy at the information sets seen."""
    game = training.game
    settings = training.settings
    rows, weights = learner.rows(holds)
    fitted = fit_network(
        game,
        StoredDataset(rows, weights),
        width=settings.width,
        seed=settings.seed,
        points=default_points(game) if is_measured(settings, game) else 0,
    )
    layers = layers_of(fitted.actor)
    assert layers is not None  # noqa: S101  # the network is made of plain layers
    return make_model(game, actor=layers, backend="states")


def _look_up_layers(inputs: Float32Array, outputs: Float64Array) -> Layers:
    """The layers that give each of the binary inputs `(I, size)` its row of `outputs` `(I, n)`.

    Each input has a hidden unit that is active there alone. For binary `x` and `y`, `(2y - 1) x` is
    `sum(y)` if they are equal, and less by at least 1 otherwise. With the bias `1 - sum(y)` and a
    ReLU the unit is 1 at `y` and 0 at all other inputs. The next layer is therefore a table, exact
    for every policy.
    """
    size = inputs.shape[1]
    rows = torch.from_numpy(np.array(inputs))
    hidden = nn.Linear(size, len(inputs))
    last = nn.Linear(len(inputs), outputs.shape[1])
    with torch.no_grad():
        hidden.weight.copy_(2 * rows - 1)
        hidden.bias.copy_(1 - rows.sum(dim=1))
        last.weight.copy_(torch.from_numpy(outputs.T))
        last.bias.zero_()
    return Layers(linear=(hidden, last), activation=nn.ReLU)


def save_results(
    training: Training, out: Path, *, which: str = "best", picture: bool = True
) -> dict[str, Any]:
    """Write the model, curve, settings and results; return the results, measured on the file."""
    recorder = training.recorder
    game = training.game
    settings = training.settings
    end = recorder.points[-1]
    measured = is_measured(settings, game)
    best = "last" if measured and end.last < end.average else "average"
    holds = {"best": best, "both": "average"}.get(which, which)  # the policy in the model's file
    start = time.process_time()
    if game.plays_networks:
        save_model(training, out, holds=holds)
        if which == "both":
            save_model(training, out.with_suffix(LAST), holds="last")
    fitting_cpu_seconds = time.process_time() - start
    result = {
        **_policy_and_measure(training, out, holds),
        "game": game.name,
        "holds": holds,
        "steps": end.steps,
        "seconds": end.seconds,
        "cpu_seconds": recorder.cpu_seconds,
        "measuring_cpu_seconds": recorder.measuring_cpu_seconds,
        "fitting_cpu_seconds": fitting_cpu_seconds,
        "steps_per_second": end.steps / end.seconds,
        "finished": not training.stopped,
        "config": asdict(settings),
        "versions": _versions(),
    }
    result["warnings"] = warnings_about(result)
    files.write_text(out.with_suffix(".csv"), to_csv(recorder.points, recorder.measure))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    if picture and measured:
        draw({"self-play": recorder.points}, out.with_suffix(".png"), game)
    return result


def _versions() -> dict[str, str]:
    """The versions of Python and of the packages that a result depends on, where they are known."""
    versions = {"python": platform.python_version(), "kuhn-bridge": kuhn_bridge.__version__}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # OpenSpiel may be built from source
            versions[name] = metadata.version(name)
    return versions


def warnings_about(result: Mapping[str, Any]) -> list[str]:
    """What went wrong in a run with these results, in sentences; empty if nothing did."""
    if "nash_conv_uniform" not in result:
        return []
    nash_conv = result["nash_conv"]
    uniform = result["nash_conv_uniform"]
    learned = result[f"nash_conv_{result['holds']}"]
    sentences = []
    if nash_conv > uniform:
        sentences.append(
            f"the result is worse than uniform play: NashConv {nash_conv:.5f}, uniform play "
            f"{uniform:.5f}"
        )
    if nash_conv > (1 + MAX_LOST) * learned + NEGLIGIBLE * uniform:
        sentences.append(
            f"the network could not be fitted to the policy: NashConv {nash_conv:.5f}, the policy "
            f"that was learned {learned:.5f}; a larger --width may help"
        )
    return sentences


def _policy_and_measure(training: Training, out: Path, holds: str) -> dict[str, Any]:
    """The saved policy and its NashConv; without a tree only the figures of the curve."""
    end = training.recorder.points[-1]
    game = training.game
    document: dict[str, Any] = {"source": str(out)}
    if is_bounded(training.settings, game):
        return document | {f"{BOUND}_last": end.last, f"{BOUND}_average": end.average}
    if not is_measured(training.settings, game):
        return document
    nash_conv = float(getattr(end, holds))
    if isinstance(game, TreeGame):
        if game.plays_networks:
            policy = load_policy(out, game=game)
            source = out
        else:
            policy = Policy(game, np.asarray(getattr(training.learner, holds)))
            source = out.with_suffix(".json")
        measure = policy.measure()
        nash_conv = measure.nash_conv
        document = policy.to_document()
        document |= {"source": str(source), "gains": measure.gains, "values": measure.values}
        if game.closed_form:
            document["value"] = measure.values[0]
    elif isinstance(training.learner, InfosetLearner):  # the network was fitted after the run
        nash_conv = load_policy(out, game=game).nash_conv()
    return document | {
        "nash_conv": nash_conv,
        "exploitability": nash_conv / game.num_players,
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": game.measure(game.uniform()).nash_conv,
    }
