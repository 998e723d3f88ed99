"""How to train, as data: what is asked for, what a recipe wants, and what cannot be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from algorithms.games import KUHN, load_game
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.errors import short_repr

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All that a training run depends on: with equal ones, one machine trains the same policy."""

    recipe: str = "self-play"
    game: str = KUHN
    env: str = "vector"
    net: str = "table"
    steps: int = 20_000_000
    seed: int = 0
    n_envs: int = 2048  # hands at a time
    n_steps: int = 4  # decisions of each between updates
    lr: float = 1.0  # how far an information set moves in an update, relative to what it can gain
    entropy: float = 0.2  # pull towards the magnet at the start, in standard deviations of returns
    entropy_end: float = 0.1  # the same at the end
    magnet: float = 0.01  # how far the magnet follows the policy in an update; 0: it stays uniform
    vf_coef: float = 0.5
    # Of networks alone:
    width: int = 128  # units of each of two hidden layers
    fit: int = 1  # steps of Adam an update, in which the network follows
    fit_lr: float = 1.0  # Adam's learning rate; falls to a third
    init: str = ""  # a model to start from


RECIPES = ("self-play", "tutorial")
ENVS = ("vector", "aec")
NETS = ("table", "mlp")

# What a network or a recipe wants otherwise than above.
_MLP: Settings = {"fit": 6, "fit_lr": 6e-3}
_TUTORIAL: Settings = {
    "env": "aec",
    "net": "mlp",
    "steps": 30_000,
    "n_envs": 1,
    "n_steps": 2048,
    "lr": 3e-4,
    "entropy": 0.0,
    "entropy_end": 0.0,
    "magnet": 0.0,
    "vf_coef": 0.5,
}


@dataclass(frozen=True, slots=True)
class FallingRate:
    """A learning rate that is constant for the first half and falls to almost 0 in the second.

    Models saved by version 0.1 name this class.
    """

    rate: float

    def __call__(self, remaining: float) -> float:
        """The rate when `remaining`, 1 to 0, of the training is left."""
        return self.rate * min(1.0, max(0.002, 2 * remaining))


def configure(given: Settings) -> Config:
    """The configuration that follows from the settings a user gave."""
    choices = {"recipe": RECIPES, "env": ENVS, "net": NETS}
    for name, known in choices.items():
        if given.get(name, known[0]) not in known:
            raise unknown(name, given[name], known)
    usual: Settings = {}
    if given.get("recipe") == "tutorial":
        usual = _TUTORIAL
    elif given.get("net") == "mlp":
        usual = _MLP
    made = Config(**{**usual, **given})
    if made.recipe == "self-play" and "n_steps" not in given:
        made = replace(made, n_steps=_enough(made))
    if made.recipe == "tutorial" and (made.env, made.net, made.game) != ("aec", "mlp", KUHN):
        raise UsageError("the tutorial recipe has its own environment, network and game")
    _require_sense(made)
    return made


def _enough(config: Config) -> int:
    """Decisions per update that take about as long as what an update does for every row."""
    rows = len(load_game(config.game).tree.keys) * (35 if config.net == "mlp" else 1)
    return min(64, max(4, round(rows / max(config.n_envs, 1))))


_MOST = {"magnet": 1, "seed": 2**32 - 1, "n_envs": 2**20, "n_steps": 2**16, "fit": 1000}
_MOST |= {"width": 4096, "fit_lr": 10**6}
_BATCH = 64  # of the tutorial recipe: SB3's own
_AT_LEAST_ONE = {"steps", "n_envs", "n_steps", "width", "fit"}


def _require_sense(config: Config) -> None:
    """Refuse impossible values."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, str):
            continue
        least = 1 if field.name in _AT_LEAST_ONE else 0
        most = _MOST.get(field.name, sys.float_info.max)  # so neither NaN nor infinity
        if not least <= value <= most:
            span = f"{least} to {most}" if field.name in _MOST else f"{least} up"
            wrong = f"--{field.name.replace('_', '-')} {short_repr(value)}"
            raise UsageError(f"{wrong}: want a number from {span}")
    if config.recipe == "tutorial" and config.lr > _MOST["fit_lr"]:
        raise UsageError(
            f"--lr {config.lr}: want a number from 0 to {_MOST['fit_lr']}, as Adam does"
        )
    if config.recipe == "tutorial" and config.n_envs * config.n_steps % _BATCH == 1:
        raise UsageError(
            f"--n-steps {config.n_steps}: a batch of a single decision would be left over, which "
            "this recipe cannot normalise; want one more"
        )
    if config.net == "table" and config.fit != 1:
        raise UsageError("--fit: a table follows at once; only a network is fitted")


def require_savable(config: Config) -> None:
    """Refuse before the training run starts what networks cannot tell apart; a table can."""
    game = load_game(config.game)
    if not len(game.tree.keys):
        raise UsageError(f"--game {config.game}: it has no information sets")
    if config.net != "table" or config.env != "vector":
        _ = game.observations  # raises
