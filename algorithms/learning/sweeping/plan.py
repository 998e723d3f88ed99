"""What a sweep runs: settings and seeds, checked before anything starts, and kept in a file."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, get_type_hints

from algorithms.learning.settings import Settings, configure
from algorithms.support import files
from algorithms.support.errors import UsageError, unknown

FILE = "plan.json"
MODEL, ABOUT = "model.zip", "trial.json"  # of each trial, in its own folder
FAILURE = "failed.json"  # of a trial that Ray gave up
FORMAT = "kuhn-bridge-sweep"
LONGEST = 120  # characters of a folder's name
MOST_SEEDS = 100_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One training run: a setting and a seed."""

    setting: str
    config: Settings

    @property
    def folder(self) -> PurePosixPath:
        """Where its files go, in the sweep's folder; no other trial has the same."""
        return PurePosixPath(folder_name(self.setting), f"seed-{self.config.seed}")

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.setting}, seed {self.config.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All training runs of a sweep: every setting with every seed, then the best on fresh seeds."""

    settings: Mapping[str, Settings]  # by name; their own seed is of no meaning
    seeds: tuple[int, ...]
    confirm: int = 0  # how many of the best settings run again
    fresh_seeds: int = 0  # on how many seeds
    storage: str = ""  # Ray's; "" is in the sweep's own folder
    checkpoint_every: int = 1_000_000
    chosen: tuple[str, ...] = ()  # the best settings, once known

    def trials(self) -> list[Trial]:
        """To choose by: every setting with every seed."""
        return self._trials(self.settings, self.seeds)

    def fresh_trials(self) -> list[Trial]:
        """To confirm with: the chosen settings, with seeds that had no part in the choice."""
        first = max(self.seeds) + 1
        return self._trials(self.chosen, range(first, first + self.fresh_seeds))

    def _trials(self, settings: Iterable[str], seeds: Iterable[int]) -> list[Trial]:
        pairs = itertools.product(settings, seeds)
        return [Trial(name, replace(self.settings[name], seed=seed)) for name, seed in pairs]

    def steps(self) -> int:
        """Of all its training runs; a guess where it is not known yet which are confirmed."""
        first = sum(trial.config.steps for trial in self.trials())
        return first + first * self.confirm * self.fresh_seeds // len(self.trials())

    def write(self, folder: Path) -> None:
        """Keep it in the sweep's folder."""
        text = json.dumps({"format": FORMAT, "version": 1, **asdict(self)}, indent=1)
        files.write_text(folder / FILE, text + "\n")


def read_plan(folder: Path) -> Plan:
    """What `Plan.write` kept there."""
    path = folder / FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if (stored.pop("format"), stored.pop("version")) != (FORMAT, 1):
            raise ValueError
        settings = {name: Settings(**config) for name, config in stored.pop("settings").items()}
        seeds, chosen = tuple(stored.pop("seeds")), tuple(stored.pop("chosen"))
        return Plan(settings=settings, seeds=seeds, chosen=chosen, **stored)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder}: there is no sweep (no {FILE})") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{path}: not a sweep's plan, or of another version") from None


def settings_grid(choices: Mapping[str, Sequence[Any]]) -> dict[str, Settings]:
    """Every combination of the values of settings, by name."""
    varied = [name for name, values in choices.items() if len(values) > 1] or list(choices)
    combinations = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    return {
        ",".join(f"{name}={_text(given[name])}" for name in varied) or "default": configure(given)
        for given in combinations
    }


def sampled(settings: Mapping[str, Settings], count: int) -> dict[str, Settings]:
    """`count` of the settings in their order, drawn at random but always the same."""
    if not 1 <= count <= len(settings):
        raise UsageError(f"--trials {count}: want 1 to {len(settings)}, the number of combinations")
    drawn = set(random.Random(0).sample(list(settings), count))
    return {name: config for name, config in settings.items() if name in drawn}


def parse_choices(texts: Iterable[str]) -> dict[str, list[Any]]:
    """`["net=table,mlp", "lr=0.1,0.3"]` -> the values of each setting, in the setting's type."""
    types = get_type_hints(Settings)
    names = [field.name for field in fields(Settings) if field.name != "seed"]
    choices: dict[str, list[Any]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if name == "seed":
            raise UsageError("--set seed: seeds have an option of their own, --seeds")
        if name not in names:
            raise unknown("setting", name, names)
        if not separator or name in choices:
            raise UsageError(f"--set {text}: want each setting once, as {name}=VALUE,VALUE,...")
        choices[name] = [_value(name, types[name], value) for value in _parts(values)]
        if len(set(choices[name])) < len(choices[name]):
            raise UsageError(f"--set {text}: a value is there twice")
    return choices


def parse_seeds(text: str) -> tuple[int, ...]:
    """`"0-9"`, `"0,3,7"`, or a count: `"10"` -> the seeds."""
    if text.isdecimal():
        text = f"0-{int(text) - 1}" if int(text) else ""
    seeds: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (1, 0)
        if not first <= last < first + MOST_SEEDS:
            raise UsageError(f"--seeds {text or 0}: want 0-9, or 0,3,7, or how many")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"--seeds {text}: a seed is there twice")
    return tuple(seeds)


def folder_name(setting: str) -> str:
    """A setting's name as the name of a folder: itself, unless a disk would not have it."""
    name = re.sub(r"[^\w.=+,()-]", "_", setting)[:LONGEST]
    return name if name == setting else f"{name}-{random.Random(setting).getrandbits(32):08x}"


def _value(name: str, kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise UsageError(f"--set {name}={text}: want {wanted}") from None


def _text(value: Any) -> str:
    """A value as people write it: 16, not 16.0."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if type(value)(short) == value else str(value)


def _parts(text: str) -> list[str]:
    """Split at commas, but not inside brackets: names of games have their own commas."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
