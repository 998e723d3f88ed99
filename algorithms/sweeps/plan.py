"""The plan of a sweep: settings and seeds, validated before anything starts, stored in a file."""

import itertools
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from algorithms.self_play.settings import Settings, configure
from algorithms.support import files
from algorithms.support.errors import UsageError

PLAN_FILE = "plan.json"
# Files in the folder of each finished trial.
MODEL_FILE = "model.zip"
TRIAL_FILE = "trial.json"
FAILURE_FILE = "failed.json"  # in the folder of a trial that failed
FORMAT = {"format": "kuhn-bridge-sweep", "version": 1}
MAX_NAME = 120  # characters of a setting in a folder's name
MAX_SEEDS = 100_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One training run: a setting and a seed."""

    setting: str
    config: Settings

    @property
    def folder(self) -> str:
        """The folder for its files, relative to the sweep's folder; different for each trial."""
        name = re.sub(r"[^\w.=+,()-]", "_", self.setting)[:MAX_NAME]
        if name != self.setting:  # a file system might refuse it
            name += f"-{random.Random(self.setting).getrandbits(32):08x}"
        return f"{name}/seed-{self.config.seed}"

    def has_ended(self, sweep: Path) -> bool:
        """Whether its results are in the sweep's folder."""
        return (sweep / self.folder / TRIAL_FILE).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All training runs of a sweep: every setting with every seed, then the best on fresh seeds."""

    settings: Mapping[str, Settings]  # by name; their seed is ignored
    seeds: tuple[int, ...]
    confirm: int = 0  # number of the best settings that are confirmed
    fresh_seeds: int = 0  # number of new seeds for that
    storage: str = ""  # Ray's; "" is a folder in the sweep's own
    checkpoint_every: int = 1_000_000
    chosen: tuple[str, ...] = ()  # the best settings, once known
    imports: tuple[str, ...] = ()  # modules that register games; workers import them too

    def trials(self) -> list[Trial]:
        """The trials that settings are chosen by: every setting with every seed."""
        return self._trials(self.settings, self.seeds)

    def fresh_trials(self) -> list[Trial]:
        """The trials that confirm the choice: the chosen settings with new seeds."""
        first = max(self.seeds) + 1
        return self._trials(self.chosen, range(first, first + self.fresh_seeds))

    def _trials(self, settings: Iterable[str], seeds: Iterable[int]) -> list[Trial]:
        return [
            Trial(name, replace(self.settings[name], seed=seed))
            for name, seed in itertools.product(settings, seeds)
        ]

    def steps(self) -> int:
        """The steps of all training runs; an estimate until the best settings are known."""
        trials = self.trials()
        to_choose = sum(trial.config.steps for trial in trials)
        num_fresh = self.confirm * self.fresh_seeds
        return to_choose + to_choose * num_fresh // len(trials)

    def write(self, folder: Path) -> None:
        """Store the plan in the sweep's folder."""
        files.write_text(folder / PLAN_FILE, json.dumps(FORMAT | asdict(self), indent=1) + "\n")


def read_plan(folder: Path) -> Plan:
    """The plan that `Plan.write` stored in a folder."""
    path = folder / PLAN_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if {name: stored.pop(name) for name in FORMAT} != FORMAT:
            raise ValueError
        settings = stored.pop("settings")
        return Plan(
            settings={name: Settings(**config) for name, config in settings.items()},
            seeds=tuple(stored.pop("seeds")),
            chosen=tuple(stored.pop("chosen")),
            imports=tuple(stored.pop("imports", ())),
            **stored,
        )
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder}: there is no sweep (no {PLAN_FILE})") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{path}: not a sweep's plan, or of another version") from None


def settings_grid(choices: Mapping[str, Sequence[Any]]) -> dict[str, Settings]:
    """Every combination of the values of settings; named by the settings that vary."""
    varied = [name for name, values in choices.items() if len(values) > 1] or list(choices)
    grid = {}
    for values in itertools.product(*choices.values()):
        values_by_name = dict(zip(choices, values, strict=True))
        label = ",".join(f"{name}={_text(values_by_name[name])}" for name in varied)
        grid[label or "default"] = configure(values_by_name)
    return grid


def sampled(settings: Mapping[str, Settings], count: int) -> dict[str, Settings]:
    """`count` random settings in their order, always the same ones."""
    if not 1 <= count <= len(settings):
        raise UsageError(f"trials {count}: must be 1 to {len(settings)}, the number of settings")
    drawn = set(random.Random(0).sample(list(settings), count))
    return {name: config for name, config in settings.items() if name in drawn}


def parse_choices(texts: Iterable[str]) -> dict[str, list[Any]]:
    """`["net=table,mlp", "steps=10,20"]` -> the values of each setting, in the setting's type."""
    types = get_type_hints(Settings)
    choices: dict[str, list[Any]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if name == "seed":
            raise UsageError("setting seed: seeds are given separately")
        if not separator or name in choices:
            raise UsageError(f"setting {text}: give each setting once, as {name}=VALUE,VALUE,...")
        kind = types.get(name, str)  # `configure` refuses unknown names
        try:
            converted = [kind(value) for value in split_values(values)]
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise UsageError(f"setting {text}: must be {expected}") from None
        if len(set(converted)) < len(converted):
            raise UsageError(f"setting {text}: a value is repeated")
        choices[name] = converted
    return choices


def parse_seeds(text: str) -> tuple[int, ...]:
    """`"0-9"`, `"0,3,7"`, or a count: `"10"` -> the seeds."""
    seeds: list[int] = []
    if text.isdecimal():
        seeds += _seed_range(text, "0", str(int(text) - 1))
    else:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            seeds += _seed_range(text, first, last if dash else first)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds {text}: a seed is repeated")
    return tuple(seeds)


def _seed_range(text: str, first: str, last: str) -> range:
    """The seeds from the first to the last; `text` is what was given."""
    if first.isdecimal() and last.isdecimal():
        start = int(first)
        stop = int(last) + 1
        if start < stop <= start + MAX_SEEDS:
            return range(start, stop)
    raise UsageError(f"seeds {text}: must be like 0-9, or 0,3,7, or a count")


def split_values(text: str) -> list[str]:
    """Split at commas, except inside brackets: names of games contain commas."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _text(value: Any) -> str:
    """A value in the name of a setting: 16, not 16.0."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
