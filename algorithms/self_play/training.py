"""A training run in memory: what `kuhn_bridge.train` does."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback

from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.self_play.callback import SelfPlay
from algorithms.self_play.curve import LearningCurve, Point
from algorithms.self_play.environments import SelfPlayVecEnv
from algorithms.self_play.learner import SCHEDULED
from algorithms.self_play.saving import save_model
from algorithms.self_play.settings import (
    Settings,
    configure,
    default,
    is_measured,
    require_possible,
    require_trainable,
)
from algorithms.self_play.training_run import Training, fast_torch, require_device
from algorithms.support.errors import UsageError
from algorithms.support.progress import Advance, progress
from kuhn_bridge.errors import short_repr

# Settings of a stock model with a network of the user's own, in games with a tree: SB3's, for
# rollouts of many hands. On states they are those of the command.
STOCK_ON_TREE: dict[str, Any] = {
    "steps": 2_000_000,
    "n_envs": 1024,
    "n_steps": 2,
    "batch_size": 2048,
    "epochs": 10,
    "learning_rate": 3e-4,
    "clip_range": 0.2,
    "vf_coef": 0.5,
}


class Trained(NamedTuple):
    """What a training run leaves: `policy, model, curve = kb.train("kuhn")`.

    Attributes:
        policy: the better of the last and the average policy by the last point of the curve; the
            average where nothing was measured.
        model: a stock `MaskablePPO` that plays it, to save or to go on with; None if no network can
            play the game. (With `policy_kwargs` it is the model that was trained, which plays the
            last policy.)
        curve: NashConv over steps, of the last policy and of the average.
    """

    policy: Policy
    model: MaskablePPO | None
    curve: LearningCurve


def train_in_memory(  # noqa: PLR0913  # by name
    game: Game,
    given: Mapping[str, Any],
    *,
    policy_kwargs: Mapping[str, Any] | None,
    callback: Any,
    show_progress: bool,
    device: str,
) -> Trained:
    """A run with these settings, as `kuhn_bridge.train` takes them."""
    callbacks = _as_callbacks(callback)
    if policy_kwargs is None:
        settings = configure({**given, "game": game.name})
        require_trainable(settings)
        with _bar(settings.steps, shown=show_progress) as show:
            return _train_as_the_command(settings, callbacks, show, device)
    if not isinstance(policy_kwargs, Mapping):
        want = 'a map such as {"net_arch": [64, 64]}'
        raise UsageError(f"policy_kwargs={short_repr(policy_kwargs)}: want {want}")
    require_device(device)
    values = _stock_settings(game, given)
    with _bar(values["steps"], shown=show_progress) as show:
        return _train_stock(game, values, dict(policy_kwargs), callbacks, show, device)


def _bar(steps: int, *, shown: bool) -> Any:
    """A progress bar, or nothing."""
    if shown:
        return progress("training", steps)
    return nullcontext(lambda steps, note: None)


def _as_callbacks(callback: Any) -> list[BaseCallback]:
    """SB3's callbacks, from what `learn` takes: one, a list, or a function."""
    if callback is None:
        return []
    callbacks = []
    for one in callback if isinstance(callback, Sequence) else [callback]:
        if isinstance(one, type):
            name = one.__name__
            raise UsageError(f"callback: {name} is a class, and an object is wanted: {name}()")
        if isinstance(one, SelfPlay):
            raise UsageError("callback: train has its own SelfPlay(); its settings are arguments")
        if isinstance(one, BaseCallback):
            callbacks.append(one)
        elif callable(one):
            callbacks.append(ConvertCallback(one))
        else:
            raise UsageError(f"callback={short_repr(one)}: it is not a callback of SB3")
    return callbacks


def _train_as_the_command(
    settings: Settings, callbacks: Sequence[BaseCallback], show: Advance, device: str
) -> Trained:
    """A run as `train_ppo` makes it."""
    training = Training(
        settings,
        watch=lambda point: show(point.steps, _note(point)),
        callbacks=callbacks,
        device=device,
    )
    training.run()
    curve = LearningCurve(training.recorder.points)
    if training.stopped:
        _warn_of_interruption(curve)
    holds = _better(curve, measured=is_measured(settings, training.game))
    if not training.game.plays_networks:
        return Trained(_policy_of(training.callback, holds), None, curve)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.zip"
        save_model(training, path, holds=holds)
        on_states = settings.env == "states"
        env = SelfPlayVecEnv(
            settings.n_envs,
            training.game,
            seed=settings.seed,
            on="states" if on_states else "tree",
        )
        model = MaskablePPO.load(path, env=env, device="cpu")
    return Trained(Policy.from_sb3(model), model, curve)


def _stock_settings(game: Game, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stock model, by name."""
    backend = given.get("env", game.backend)
    if backend not in ("tree", "states"):
        raise UsageError(f"env={backend!r}: want 'tree' or 'states' with policy_kwargs")
    values: dict[str, Any] = {"env": backend, "seed": 0, "points": None}
    for name, value in STOCK_ON_TREE.items():
        values[name] = value if backend == "tree" else default(name, "states")
    if backend == "states":
        values["ent_coef"] = default("ent_coef", "states")
    known = {*values, *SCHEDULED}
    for name, value in given.items():
        require_possible(name, value)
        if name not in known:
            raise UsageError(f"{name}={value!r}: it has no effect with policy_kwargs")
    return values | dict(given)


def _train_stock(  # noqa: PLR0913, PLR0917  # private
    game: Game,
    values: Mapping[str, Any],
    policy_kwargs: dict[str, Any],
    callbacks: Sequence[BaseCallback],
    show: Advance,
    device: str,
) -> Trained:
    """A run of a stock model with a network of the user's own."""
    env = SelfPlayVecEnv(values["n_envs"], game, seed=values["seed"], on=values["env"])
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=values["n_steps"],
        batch_size=values["batch_size"],
        n_epochs=values["epochs"],
        learning_rate=values["learning_rate"],
        clip_range=values["clip_range"],
        vf_coef=values["vf_coef"],
        ent_coef=values.get("ent_coef", 0.0),
        gamma=1.0,
        gae_lambda=1.0,
        policy_kwargs=policy_kwargs,
        seed=values["seed"],
        device=device,
    )
    self_play = SelfPlay(
        total_steps=values["steps"],
        points=values["points"],
        watch=lambda point: show(point.steps, _note(point)),
        **{name: values[name] for name in SCHEDULED if name in values},
    )
    with fast_torch():
        try:
            model.learn(values["steps"], callback=CallbackList([self_play, *callbacks]))
        except KeyboardInterrupt:
            _warn_of_interruption(self_play.curve)
    holds = _better(self_play.curve, measured=values["env"] == "tree")
    return Trained(_policy_of(self_play, holds), model, self_play.curve)


def _policy_of(callback: SelfPlay, holds: str) -> Policy:
    """The last or the average policy."""
    return callback.last_policy if holds == "last" else callback.average_policy


def _better(curve: Sequence[Point], *, measured: bool) -> str:
    """Which policy is better by the last point of a curve."""
    return "last" if measured and curve and curve[-1].last < curve[-1].average else "average"


def _note(point: Point) -> str:
    return f"NashConv {point.last:.4f}  average {point.average:.4f}"


def _warn_of_interruption(curve: Sequence[Point]) -> None:
    steps = curve[-1].steps if curve else 0
    warnings.warn(f"interrupted after {steps:,} decisions", stacklevel=2)
