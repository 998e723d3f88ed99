"""The settings of a training run: their defaults, meanings and limits."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from algorithms.games import KUHN, Game, load_game
from algorithms.learning.states import origin
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.errors import short_repr

# Defaults depend on what is trained. table, network: on the game's tree, with statistics per
# information set. states: a network without them. usual: the recipe found in tutorials.
Kind: TypeAlias = Literal["table", "network", "states", "usual"]
KINDS: tuple[Kind, ...] = ("table", "network", "states", "usual")
RECIPES = ("self-play", "usual")
ENVS = ("tree", "states", "aec")
NETS = ("table", "mlp")
AUTO = "auto"  # replaced by a value that depends on the game
CURVE_POINTS, LARGE_TREE_POINTS, NATIVE_POINTS = 200, 50, 5  # measuring large games takes longer
LARGE_TREE = 100_000  # nodes
WEAKER_PULL_AFTER = 4_000_000  # decisions: a network that trains longer ends with a weaker pull


def _setting(
    default: Any,
    meaning: str,
    *,
    least: float = 0,
    most: float = sys.float_info.max,
    **by_kind: Any,
) -> Any:
    """A field with its meaning, range, and defaults by kind; None if it has no effect on a kind."""
    metadata = {"help": meaning, "least": least, "most": most, "by_kind": by_kind}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a training run: on one machine, equal settings train the same policy."""

    recipe: str = _setting(
        "self-play", "self-play, or usual: the recipe that fails, for comparison"
    )
    game: str = _setting(KUHN, "kuhn, or any OpenSpiel game such as leduc_poker or phantom_ttt")
    env: str = _setting(
        AUTO,
        "tree: compiled; states: OpenSpiel's, for games too large for a tree; aec: PettingZoo, "
        "move by move; by default tree where the game fits one",
    )
    net: str = _setting(
        AUTO,
        "table: one weight per information set and action; mlp: a network; by default table where "
        "the game fits a tree",
    )
    steps: int = _setting(
        20_000_000, "number of decisions to learn from", least=1, states=10_000_000, usual=30_000
    )
    seed: int = _setting(0, "random seed of deals, draws and initial weights", most=2**32 - 1)
    n_envs: int = _setting(
        1024, "number of hands that are played at once", least=1, most=2**20, states=512, usual=1
    )
    n_steps: int = _setting(
        8,
        "decisions per hand between two updates; more by default where a game has more "
        "information sets, and in longer runs of a table",
        least=1,
        most=2**16,
        states=32,
        usual=2048,
    )
    batch_size: int = _setting(
        0,
        "decisions per gradient step; 0: all",
        most=2**31,
        table=None,
        network=None,
        states=1024,
        usual=64,
    )
    epochs: int = _setting(
        1, "passes over each rollout", least=1, most=1000, table=None, network=6, usual=10
    )
    step_size: float = _setting(
        1.0,
        "step of an information set per update, relative to its possible gain; decreases during "
        "the run",
        network=2.0,
        states=None,
        usual=None,
    )
    learning_rate: float = _setting(
        1.0,
        "Adam's learning rate; decreases during the run",
        most=10**6,
        table=None,
        network=6e-3,
        states=2e-3,
        usual=3e-4,
    )
    kl: float = _setting(
        0.2,
        "weight of the KL divergence from the magnet at the start, in standard deviations of "
        "returns",
        states=0.1,
        usual=None,
    )
    kl_end: float = _setting(
        0.1,
        "weight of the KL divergence at the end; by default smaller in longer runs of a network",
        states=0.1,
        usual=None,
    )
    magnet_rate: float = _setting(
        0.01,
        "rate at which the magnet follows the policy per update; 0: it does not move",
        most=1,
        states=None,
        usual=None,
    )
    ent_coef: float = _setting(
        0.0, "weight of the entropy at the start", table=None, network=None, states=0.1
    )
    ent_coef_end: float = _setting(
        0.0, "weight of the entropy at the end", table=None, network=None, states=0.03, usual=None
    )
    clip_range: float = _setting(
        0.2, "PPO's clip range", least=1e-6, table=None, network=None, states=0.1
    )
    vf_coef: float = _setting(0.5, "weight of the value loss")
    width: int = _setting(
        128, "units of each of two hidden layers", least=1, most=4096, table=None, usual=None
    )
    points: int = _setting(
        CURVE_POINTS,
        "points of the learning curve after the first; fewer by default where measuring takes "
        "long; 0: the first and the last, and in a game without a tree no figures",
        most=10_000,
        usual=None,
    )
    bound_decisions: int = _setting(
        0,
        "decisions of each best response that is trained at a point of the curve, for a lower "
        "bound of NashConv in a game without an exact measure; 0: no bounds",
        table=None,
        network=None,
        usual=None,
    )
    init: str = _setting("", "a model.zip of the same game to start from", usual=None)

    @property
    def kind(self) -> Kind:
        """The kind of the run, which determines the defaults."""
        if self.recipe == "usual":
            return "usual"
        if self.env == "states":
            return "states"
        return "table" if self.net == "table" else "network"


FIELDS = {setting.name: setting for setting in fields(Settings)}
CHOICES = {"recipe": RECIPES, "env": (*ENVS, AUTO), "net": (*NETS, AUTO)}


def default(name: str, kind: Kind) -> Any:
    """The default of a setting; None if it has no effect on this kind."""
    return FIELDS[name].metadata["by_kind"].get(kind, FIELDS[name].default)


def kl_end_after(kind: Kind, steps: int) -> float:
    """The default of `kl_end`, which for networks falls with the root of the decisions.

    A weaker pull ends closer to equilibrium, but the policy rotates unless the updates are many.
    """
    end = float(default("kl_end", kind))
    return end * min(1.0, (WEAKER_PULL_AFTER / steps) ** 0.5) if kind == "network" else end


def enough_steps(kind: Kind, infosets: int, *, n_envs: int, steps: int) -> int:
    """The default of `n_steps`: playing takes as long as an update does per information set.

    A table has at most as many updates as in a run of default length. A longer run has larger
    rollouts instead, because more updates from noisy gradients would not come closer to
    equilibrium.
    """
    work = infosets * (35 if kind == "network" else 1)
    least = 8 * (max(1.0, steps / default("steps", kind)) if kind == "table" else 1)
    return min(128, round(max(least, work / n_envs)))


def default_points(game: Game, *, bounds: bool = False) -> int:
    """The default of `points`: few where a point takes many seconds."""
    if game.native or bounds:
        return NATIVE_POINTS
    large = game.fits_tree and game.tree.num_nodes >= LARGE_TREE
    return LARGE_TREE_POINTS if large else CURVE_POINTS


def is_measured(settings: Settings, game: Game) -> bool:
    """Whether the learning curve has exact NashConv or lower bounds of it."""
    return game.fits_tree or (bool(settings.points) and game.native is not None)


def is_bounded(settings: Settings, game: Game) -> bool:
    """Whether the learning curve has lower bounds of NashConv."""
    return bool(settings.points and settings.bound_decisions) and not game.is_exact


def configure(given: Mapping[str, Any]) -> Settings:
    """The settings that follow from those that are given."""
    for name, value in given.items():
        _require_possible(name, value)
    if given.get("recipe") == "usual":
        chosen = {"env": "aec", "net": "mlp", "game": KUHN}
        if any(given.get(name, AUTO) not in (AUTO, value) for name, value in chosen.items()):
            raise UsageError("the usual recipe has its own environment, network and game")
        made = Settings(**{**_defaults(given, "usual"), **given, **chosen})
        decisions = made.n_envs * made.n_steps
        batch_size = made.batch_size or decisions
        if 1 in (batch_size, decisions % batch_size):
            raise UsageError(
                f"n_steps={made.n_steps}, batch_size={made.batch_size}: "
                "the advantages of a batch of a single decision cannot be normalised"
            )
        return made
    game = load_game(given.get("game", KUHN))
    env, net = given.get("env", AUTO), given.get("net", AUTO)
    if env == AUTO:
        env = "tree" if game.fits_tree else "states"
    if net == AUTO:
        net = "mlp" if env == "states" else "table"
    if (env, net) == ("states", "table"):
        raise UsageError("net=table needs a game that fits a tree, and env=tree")
    kind: Kind = "states" if env == "states" else "table" if net == "table" else "network"
    values = {**_defaults(given, kind), **given}
    if values["bound_decisions"] and game.is_exact:
        raise UsageError(f"bound_decisions: NashConv of {game.name} is measured exactly")
    by_rule: dict[str, Any] = {
        "kl_end": kl_end_after(kind, values["steps"]),
        "points": default_points(game, bounds=bool(values["bound_decisions"])),
    }
    if kind != "states":
        by_rule["n_steps"] = enough_steps(
            kind, len(game.tree.keys), n_envs=values["n_envs"], steps=values["steps"]
        )
    return Settings(**{**values, **by_rule, **given, "env": env, "net": net})


def _require_possible(name: str, value: Any) -> None:
    if name not in FIELDS:
        raise unknown("setting", name, FIELDS)
    if value not in CHOICES.get(name, (value,)):
        raise unknown(name, str(value), CHOICES[name])
    least, most = FIELDS[name].metadata["least"], FIELDS[name].metadata["most"]
    if not (isinstance(value, str) or least <= value <= most):  # so neither NaN nor infinity
        span = f"{least} up" if most == sys.float_info.max else f"{least} to {most}"
        raise UsageError(f"{name}={short_repr(value)}: want a number from {span}")


def _defaults(given: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The defaults of all settings; given ones that have no effect on this kind are refused."""
    values = {name: default(name, kind) for name in FIELDS}
    for name, value in given.items():
        if values[name] is None and value != FIELDS[name].default:
            raise UsageError(f"{name}={short_repr(value)}: it has no effect on a {_WORDS[kind]}")
    return {n: FIELDS[n].default if value is None else value for n, value in values.items()}


def require_trainable(settings: Settings) -> None:
    """Refuse, before a run starts, a game whose observations a network cannot distinguish."""
    game = load_game(settings.game)
    if settings.kind in ("table", "network") and not len(game.tree.keys):
        raise UsageError(f"game={settings.game}: it has no information sets")
    if settings.kind == "network" or settings.env == "aec":
        _ = game.observations  # raises
    if settings.kind == "states":
        origin(game)  # raises


def describe(name: str) -> str:
    """A setting's meaning and its defaults, for help texts and docs."""
    meaning: str = FIELDS[name].metadata["help"]
    if FIELDS[name].default in ("", AUTO):
        return meaning
    used = {kind: value for kind in KINDS if (value := default(name, kind)) is not None}
    general = used.pop("table", next(iter(used.values())) if len(set(used.values())) == 1 else None)
    others = [f"{_SHORT[kind]} {_readable(v)}" for kind, v in used.items() if v != general]
    values = others if general is None else [_readable(general), *others]
    return f"{meaning} ({'; '.join(values)})"


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


_WORDS: Mapping[Kind, str] = {
    "table": "table",
    "network": "network on the game's tree",
    "states": "network on states",
    "usual": "run of the usual recipe",
}
_SHORT: Mapping[Kind, str] = {"network": "mlp", "states": "on states", "usual": "usual recipe"}
