"""The settings of a training run: their defaults, meanings and limits."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, TypeAlias, get_type_hints

import numpy as np

from algorithms.games import KUHN, ExactGame, Game, load_game
from algorithms.self_play.seen_infosets import infosets_recur, recurrence
from algorithms.self_play.states import playable_pyspiel_game
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.errors import short_repr

# Defaults depend on what is trained. table, network: a table of regrets, saved as it is or in a
# network that is fitted to it. states: a network by PPO's gradient, on OpenSpiel's states.
Kind: TypeAlias = Literal["table", "network", "states"]
KINDS: tuple[Kind, ...] = ("table", "network", "states")
IN_ERRORS: Mapping[Kind, str] = {
    "table": "table",
    "network": "network that is fitted to what regrets have learned",
    "states": "network that learns by PPO",
}
IN_HELP: Mapping[Kind, str] = {  # before a default
    "table": "",
    "network": "mlp ",
    "states": "with PPO ",
}
AUTO = "auto"  # replaced by a value that depends on the game
CHOICES = {
    "env": ("tree", "states", "aec", AUTO),
    "net": ("table", "mlp", AUTO),
    "learner": ("regrets", "ppo", AUTO),
}
CURVE_POINTS = 200  # fewer where a measure takes long: see `Game.curve_points`
BOUND_POINTS = 5  # of a curve of lower bounds
DECISIONS_PER_UPDATE = 4_096  # on a tree, at least
UP = sys.float_info.max  # no upper limit, except that infinity is none


class ByKind(NamedTuple):
    """A setting's default for each kind of run; None where the setting has no effect."""

    table: Any
    network: Any
    states: Any


def _setting(
    meaning: str, default: Any, *, unused: Any = None, least: float = 0, most: float = UP
) -> Any:
    """A field of `Settings`: its meaning for help texts, its defaults, and its limits.

    Args:
        meaning: what the setting is.
        default: one value for all kinds of runs, or a `ByKind`.
        unused: the value in runs on which the setting has no effect.
        least: the smallest number that is accepted.
        most: the largest one.
    """
    by_kind = default if isinstance(default, ByKind) else ByKind(default, default, default)
    metadata = {"help": meaning, "range": (least, most), "by_kind": by_kind}
    return field(default=by_kind.table if unused is None else unused, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a training run: on one machine, equal settings train the same policy."""

    game: str = _setting(
        "kuhn, an OpenSpiel game such as leduc_poker or phantom_ttt, or an .efg file", KUHN
    )
    env: str = _setting(
        "tree: compiled; states: OpenSpiel's, for games too large for a tree; aec: PettingZoo, "
        "move by move; by default tree where the game fits one",
        AUTO,
    )
    net: str = _setting(
        "table: the policy as it was learned (default with a tree); mlp: in a network, which is "
        "fitted to it at the end unless PPO trains it",
        AUTO,
    )
    learner: str = _setting(
        "regrets: of every information set; ppo: a network on states; by default regrets on a "
        "tree, and on states where play comes back to nearly all information sets",
        AUTO,
    )
    steps: int = _setting(
        "number of decisions to learn from; on states 10,000,000",
        ByKind(table=20_000_000, network=20_000_000, states=10_000_000),
        least=1,
        most=10**12,
    )
    seed: int = _setting("random seed of deals, draws and initial weights", 0, most=2**32 - 1)
    n_envs: int = _setting(
        "number of hands that are played at once",
        ByKind(table=1024, network=1024, states=512),
        least=1,
        most=2**20,
    )
    n_steps: int = _setting(
        "decisions per hand between updates; more in larger games with a tree",
        ByKind(table=4, network=4, states=32),
        least=1,
        most=2**16,
    )
    batch_size: int = _setting(
        "decisions per gradient step; 0: all",
        ByKind(table=None, network=None, states=1024),
        unused=0,
        most=2**31,
    )
    epochs: int = _setting(
        "passes over each rollout",
        ByKind(table=None, network=None, states=1),
        unused=1,
        least=1,
        most=1000,
    )
    exploration: float = _setting(
        "share of decisions that are drawn at random, for which learning corrects",
        ByKind(table=0.3, network=0.3, states=None),
        most=1,
    )
    learning_rate: float = _setting(
        "Adam's learning rate; falls over time",
        ByKind(table=None, network=None, states=4e-3),
        unused=1.0,
        most=10**6,
    )
    kl: float = _setting(
        "initial weight of the KL divergence from the magnet, in standard deviations of returns",
        ByKind(table=None, network=None, states=0.3),
        unused=0.0,
    )
    kl_end: float = _setting(
        "weight of the KL divergence at the end",
        ByKind(table=None, network=None, states=0.3),
        unused=0.0,
    )
    ent_coef: float = _setting(
        "weight of the entropy at the start",
        ByKind(table=None, network=None, states=0.1),
        unused=0.0,
    )
    ent_coef_end: float = _setting(
        "weight of the entropy at the end",
        ByKind(table=None, network=None, states=0.01),
        unused=0.0,
    )
    clip_range: float = _setting(
        "PPO's clip range", ByKind(table=None, network=None, states=0.1), unused=0.2, least=1e-6
    )
    vf_coef: float = _setting(
        "weight of the value loss", ByKind(table=None, network=None, states=0.5), unused=0.5
    )
    width: int = _setting(
        "units of each of two hidden layers",
        ByKind(table=None, network=128, states=128),
        unused=128,
        least=1,
        most=4096,
    )
    points: int = _setting(
        "points of the learning curve after the first; fewer by default where measuring takes "
        "long; 0: the first and the last, and in a game without a tree no figures",
        CURVE_POINTS,
        most=10_000,
    )
    bound_decisions: int = _setting(
        "decisions of each best response that is trained at a point of the curve, for a lower "
        "bound of NashConv in a game without an exact measure; 0: no bounds",
        ByKind(table=None, network=None, states=0),
        unused=0,
    )
    init: str = _setting("a model.zip of the same game to start from", "")

    @property
    def kind(self) -> Kind:
        """The kind of the run, which determines the defaults."""
        if self.learner == "ppo":
            return "states"
        return "table" if self.net == "table" else "network"


FIELDS = {setting.name: setting for setting in fields(Settings)}


def default(name: str, kind: Kind) -> Any:
    """The default of a setting; None if it has no effect on this kind."""
    return getattr(FIELDS[name].metadata["by_kind"], kind)


def _enough_steps(infosets: int, *, n_envs: int) -> int:
    """The default of `n_steps` for regrets: playing takes as long as an update, or longer."""
    decisions = max(DECISIONS_PER_UPDATE, infosets / 4)
    return min(128, math.ceil(decisions / n_envs))


def default_points(game: Game, *, bounds: bool = False) -> int:
    """The default of `points`: few where a point takes many seconds."""
    return BOUND_POINTS if bounds else game.curve_points


def is_measured(settings: Settings, game: Game) -> bool:
    """Whether the learning curve has exact NashConv."""
    return game.measures_curve(settings.points)


def is_bounded(settings: Settings, game: Game) -> bool:
    """Whether the learning curve has lower bounds of NashConv."""
    has_bounds = bool(settings.points and settings.bound_decisions)
    return has_bounds and not isinstance(game, ExactGame)


def configure(chosen: Mapping[str, Any]) -> Settings:
    """All settings, where the user has chosen some of them."""
    for name, value in chosen.items():
        require_possible(name, value)
    game = load_game(chosen.get("game", KUHN))
    env = chosen.get("env", AUTO)
    net = chosen.get("net", AUTO)
    if env == AUTO:
        env = game.backend
    if net == AUTO:
        net = "mlp" if env == "states" else "table"
    if (env, net) == ("states", "table"):
        raise UsageError("net=table needs a game that fits a tree, and env=tree")
    learner = chosen.get("learner", AUTO)
    if learner == AUTO:
        learner = _learner_of(chosen, game) if env == "states" else "regrets"
    if learner == "ppo" and env != "states":
        raise UsageError("learner=ppo needs env=states")
    kind = Settings(env=env, net=net, learner=learner).kind
    values = {name: _default_value(name, kind) for name in FIELDS}
    if env == "states":
        values["steps"] = default("steps", "states")
    for name, value in chosen.items():
        if default(name, kind) is None and value != values[name]:
            raise _no_effect(name, value, kind)
    bound_decisions = chosen.get("bound_decisions", values["bound_decisions"])
    if bound_decisions and isinstance(game, ExactGame):
        raise UsageError(f"bound_decisions: NashConv of {game.name} is measured exactly")
    values["points"] = default_points(game, bounds=bool(bound_decisions))
    if kind != "states":
        n_envs = chosen.get("n_envs", values["n_envs"])
        infosets = recurrence(game).seen if env == "states" else len(game.tree.keys)
        values["n_steps"] = _enough_steps(infosets, n_envs=n_envs)
    return Settings(**{**values, **chosen, "env": env, "net": net, "learner": learner})


def _learner_of(chosen: Mapping[str, Any], game: Game) -> str:
    """The learner on states, where nobody has chosen it."""
    of_ppo = {
        name
        for name in FIELDS
        if default(name, "network") is None and default(name, "states") is not None
    }
    if of_ppo & set(chosen) or chosen.get("init"):  # regrets cannot start from weights
        return "ppo"
    return "regrets" if infosets_recur(game) else "ppo"


def _default_value(name: str, kind: Kind) -> Any:
    """The value of a setting that nobody chose, also where it has no effect."""
    by_kind = default(name, kind)
    return FIELDS[name].default if by_kind is None else by_kind


def require_effect(name: str, value: Any, kind: Kind) -> None:
    """Raise an error for a setting that has no effect on this kind of training."""
    if default(name, kind) is None:
        raise _no_effect(name, value, kind)


def _no_effect(name: str, value: Any, kind: Kind) -> UsageError:
    return UsageError(f"{name}={short_repr(value)}: it has no effect on a {IN_ERRORS[kind]}")


def require_possible(name: str, value: Any, *, called: str | None = None) -> None:
    """Raise an error unless the value is one that this setting, or argument, can have."""
    if name not in FIELDS:
        raise unknown("setting", name, FIELDS)
    if value not in CHOICES.get(name, (value,)):
        raise unknown(name, str(value), CHOICES[name])
    argument = f"{called or name}={short_repr(value)}"
    kind = get_type_hints(Settings)[name]
    if kind is str:
        if not isinstance(value, str):
            raise UsageError(f"{argument}: want a text")
        return
    least, most = FIELDS[name].metadata["range"]
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    number = whole or (kind is float and isinstance(value, float | np.floating))
    if not (number and least <= value <= most):  # so neither NaN nor infinity
        want = "a whole number" if kind is int else "a number"
        span = f"{least} up" if most == UP else f"{least} to {most}"
        raise UsageError(f"{argument}: want {want} from {span}")


def require_trainable(settings: Settings) -> None:
    """Refuse, before a run starts, a game whose observations a network cannot distinguish."""
    game = load_game(settings.game)
    if settings.env == "states":
        playable_pyspiel_game(game)  # raises
        return
    if not len(game.tree.keys):
        raise UsageError(f"game={settings.game}: it has no information sets")
    if settings.kind == "network" or settings.env == "aec":
        _ = game.observations  # raises


def describe(name: str) -> str:
    """A setting's meaning and its defaults, for help texts."""
    meaning: str = FIELDS[name].metadata["help"]
    texts: dict[Kind, str] = {}
    for kind in KINDS:
        value = default(name, kind)
        if value not in (None, "", AUTO):
            texts[kind] = _as_text(value)
    if not texts:
        return meaning
    if len(set(texts.values())) == 1:  # the same wherever the setting has an effect
        return f"{meaning} ({next(iter(texts.values()))})"
    # A table's default comes first; others only where they differ from it.
    parts = [texts["table"]] if "table" in texts else []
    for kind, text in texts.items():
        if text != texts.get("table"):
            parts.append(IN_HELP[kind] + text)
    return f"{meaning} ({'; '.join(parts)})"


def _as_text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
