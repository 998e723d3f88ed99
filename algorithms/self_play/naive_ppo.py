"""Naive self-play, a baseline that fails: one environment whose "agent" is the player to act.

This is the usual recipe of tutorials, with stock PPO and SB3's own settings. Its fault is in one
place: the reward of the last actor ends a trajectory in which the seats took turns, so whatever
comes before is credited to the *other* seat with the same sign. In a zero-sum game that trains each
seat to help its opponent.

`python -m algorithms.train_ppo --recipe usual` makes such a run on Kuhn poker. It has nothing in
common with the other training runs but its output: a model, its learning curve and its results.
"""

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from algorithms.games import kuhn
from algorithms.policies import Policy, load_policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.self_play.callback import diverged
from algorithms.self_play.curve import Point, Recorder, draw, to_csv
from algorithms.self_play.settings import CURVE_POINTS, require_possible
from algorithms.self_play.tree_learner import AveragePolicy
from algorithms.support import command, files
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from algorithms.support.progress import progress
from kuhn_bridge.kuhn_v0 import env as kuhn_env
from kuhn_bridge.rules import Action
from kuhn_bridge.state import OBSERVATION_SIZE, Observation

NAME = "naive self-play"


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveSettings:
    """The settings of a run; those of PPO are SB3's defaults."""

    steps: int = 30_000  # decisions to learn from
    seed: int = 0
    n_envs: int = 1  # hands that are played at once
    n_steps: int = 2048  # decisions per hand between updates
    batch_size: int = 64  # decisions per gradient step
    epochs: int = 10  # passes over each rollout
    learning_rate: float = 3e-4

    def __post_init__(self) -> None:
        for setting in fields(self):
            require_possible(setting.name, getattr(self, setting.name))
        decisions = self.n_envs * self.n_steps
        if 1 in (self.batch_size, decisions % self.batch_size):
            raise UsageError(
                f"n_steps={self.n_steps}, batch_size={self.batch_size}: "
                "the advantages of a batch of a single decision cannot be normalised"
            )


class TurnsEnv(gymnasium.Env[Observation, np.int64]):
    """The PettingZoo environment with both seats' turns in one trajectory."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Box(0, 1, (OBSERVATION_SIZE,), np.float32)
        self.action_space = spaces.Discrete(len(Action))
        self._env = kuhn_env()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal a new hand; the observation is player_0's."""
        super().reset(seed=seed)
        self._env.reset(seed=seed, options=options)
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """The actor's own reward with the next actor's observation: here the sign is lost."""
        actor = self._env.agent_selection
        self._env.step(int(action))
        reward = self._env.rewards[actor]
        has_ended = self._env.terminations[actor]
        return self._observation(), reward, has_ended, False, {}

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions of the player to act: bool `(3,)`."""
        return self._env.observe(self._env.agent_selection)["action_mask"].astype(bool)

    def _observation(self) -> Observation:
        observed = self._env.observe(self._env.agent_selection)
        return np.asarray(observed["observation"], np.float32)


def make_model(settings: NaiveSettings) -> MaskablePPO:
    """Stock PPO on that environment."""
    return MaskablePPO(
        "MlpPolicy",
        DummyVecEnv([TurnsEnv] * settings.n_envs),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        device="cpu",
    )


class CurveCallback(BaseCallback):
    """Measures Kuhn's policies between updates, and leaves PPO alone."""

    model: Any

    def __init__(self, total_steps: int, watch: Callable[[Point], None] | None = None) -> None:
        super().__init__()
        self.recorder = Recorder(watch)
        self._total_steps = total_steps
        self._average = AveragePolicy(kuhn().tree)

    @property
    def last(self) -> Float64Array:
        """The table of the model's policy, `(I, A)`."""
        table: Float64Array = network_table(actor_of(self.model.policy), kuhn())
        return table

    def _measures(self) -> tuple[float, float]:
        """NashConv of the last policy and of the average."""
        last = Policy(kuhn(), self.last).nash_conv()
        average = Policy(kuhn(), self._average.table).nash_conv()
        return last, average

    def _on_training_start(self) -> None:
        self.recorder.start()

    def _on_rollout_start(self) -> None:
        self._average.add(self.last)
        steps = self.model.num_timesteps
        if self.recorder.is_due(steps, min(1.0, steps / self._total_steps), CURVE_POINTS):
            self.recorder.add(steps, self._measures)
        else:
            self.recorder.show(steps)

    def _on_step(self) -> bool:
        return True

    def record_the_end(self) -> None:
        """Measure the policies after the last update."""
        self._average.add(self.last)
        self.recorder.add(self.model.num_timesteps, self._measures)


def train(
    settings: NaiveSettings, *, watch: Callable[[Point], None] | None = None
) -> tuple[MaskablePPO, Recorder]:
    """The trained model, and its learning curve; Ctrl-C ends the run."""
    model = make_model(settings)
    callback = CurveCallback(settings.steps, watch)
    try:
        model.learn(settings.steps, callback=callback)
    except KeyboardInterrupt:
        pass
    except (ValueError, RuntimeError):  # torch refuses logits that are not finite
        if all(weight.isfinite().all() for weight in model.policy.parameters()):
            raise
        raise diverged(model) from None
    callback.record_the_end()
    return model, callback.recorder


# ---------------------------------------------------------------------------------------------
# The command: `train_ppo --recipe usual`
# ---------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> int:
    """Train and save by the arguments of `train_ppo`, of which few have a meaning here."""
    settings = settings_of(args)
    quiet = args.quiet or args.json
    if not quiet:
        print(f"Training MaskablePPO by {NAME} on kuhn: {settings.steps:,} steps")
    bar: Any = nullcontext(lambda steps, note: None)
    with bar if args.quiet else progress("training", settings.steps) as show:

        def watch(point: Point) -> None:
            show(point.steps, f"NashConv {point.last:.4f}  average {point.average:.4f}")

        model, recorder = train(settings, watch=watch)
    result = save(model, recorder, settings, args.out)
    if args.json:
        print(json.dumps(result))
    elif not quiet:
        end = recorder.points[-1]
        print(f"{args.out}: NashConv {end.last:.4f}, of the average policy {end.average:.4f}")
    if not result["finished"]:
        print(f"interrupted at step {result['steps']:,}, saved {args.out}", file=sys.stderr)
        return command.EXIT_INTERRUPTED
    return command.EXIT_OK


def settings_of(args: argparse.Namespace) -> NaiveSettings:
    """The settings among arguments of `train_ppo`; an error for those that have no meaning here."""
    names = [setting.name for setting in fields(NaiveSettings)]
    options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
    arguments = vars(args)
    for name, value in arguments.items():
        has_meaning = name in (*names, "recipe", "out", "json", "quiet", "imports")
        if not has_meaning and value != DEFAULTS.get(name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: it has no effect on {NAME}, which has {options}")
    return NaiveSettings(**{name: arguments[name] for name in names if name in arguments})


# Of options of `train_ppo` that have a default.
DEFAULTS = {
    "save": "best",
    "resume": False,
    "html": False,
    "checkpoint_every": 1_000_000,
    "device": "cpu",
}


def save(model: Any, recorder: Recorder, settings: NaiveSettings, out: Path) -> dict[str, Any]:
    """Write the model, the curve, its picture and the results, which are returned."""
    model.game = kuhn().name
    model.holds = "last"
    with files.replacing(out) as temporary:
        model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])
    end = recorder.points[-1]
    result: dict[str, Any] = {
        "source": str(out),
        "game": kuhn().name,
        "holds": "last",
        "nash_conv": load_policy(out).nash_conv(),
        "nash_conv_last": end.last,
        "nash_conv_average": end.average,
        "nash_conv_uniform": Policy.uniform(kuhn()).nash_conv(),
        "steps": end.steps,
        "seconds": end.seconds,
        "cpu_seconds": recorder.cpu_seconds,
        "finished": end.steps >= settings.steps,
        "config": {"recipe": NAME, **asdict(settings)},
    }
    files.write_text(out.with_suffix(".csv"), to_csv(recorder.points))
    files.write_text(out.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
    draw({NAME: recorder.points}, out.with_suffix(".png"), kuhn())
    return result
