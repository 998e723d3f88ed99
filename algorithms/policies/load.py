"""Policies by name or from a file: what commands accept as POLICY."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.games import KUHN, Game, as_game, load_game, make_solver
from algorithms.kuhn_equilibria import LARGEST_ALPHA, nash
from algorithms.policies import json_files
from algorithms.policies.network import Network, require_fits
from algorithms.policies.policy import Policy
from algorithms.solvers import NAMES as VARIANTS
from algorithms.solvers import run_solver
from algorithms.support.errors import UsageError, unknown
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

FILES = (".json", ".npz", ".zip", ".onnx")
BEST_RESPONSE = "best-response"
MAX_ITERATIONS = 10_000_000  # of a variant that is solved when it is named
MAX_SEED = 2**64 - 1
FORMS = ("uniform", "random:<seed>", "<variant>:<iterations>", *(f"policy{end}" for end in FILES))
KUHN_FORMS = ("nash:<alpha>", *json_files.STYLES)
HELP = (
    f"one of {', '.join(FORMS)}, where a variant is {', '.join(VARIANTS)}; "
    f"for {KUHN} also {', '.join(KUHN_FORMS)}"
)
GAME_HELP = f"{KUHN} or an OpenSpiel game (default: the game of the first file, or {KUHN})"


@dataclass(frozen=True, slots=True)
class Source:
    """A policy whose game is known before it is built: a name, or a file that was read."""

    name: str
    game: str | None = None  # the game that a file names
    content: Any = None  # of a file: a JSON object, tables, or a `Network`

    def policy(self, game: Game, *, against: Policy | None = None) -> Policy:
        """The policy of `game`; `best-response` is that to `against`."""
        if self.content is None:
            return _named(self.name, game, against)
        with _naming(self.name):
            if isinstance(self.content, Network):
                return Policy(game, network=self.network(game))
            json_files.require_same_game(self.game, game)
            if isinstance(self.content, dict):
                if not game.fits_tree:
                    kinds = "model.zip, policy.onnx" + ", policy.npz" * game.is_exact
                    raise PolicyError(f"{game.name} is too large for a tree; want {kinds}")
                return Policy(game, json_files.to_table(self.content, game))
            if game.fits_tree:
                raise PolicyError(f"{game.name} has a tree; its policies are .json")
            return Policy(game, self.content)

    def network(self, game: Game) -> Network:
        """The network in a model file, which must be one of `game`."""
        with _naming(self.name):
            if not isinstance(self.content, Network):
                raise PolicyError("not a model; want a .zip or an .onnx file")
            json_files.require_same_game(self.game, game)
            require_fits(self.content, game)
        return self.content


def load_policy(
    source: str | Path, game: Game | str | None = None, *, trust: bool = False
) -> Policy:
    """A policy by name, such as `cfr+:1000`, or from a `.json`, `.npz`, `.zip` or `.onnx` file.

    Args:
        source: name or file of the policy.
        game: game of the policy; by default the game that the file names, or `kuhn`.
        trust: whether to load a model with SB3's own loader, which runs code from the file.
    """
    return load_policies([str(source)], game, trust=trust)[0]


def load_policies(
    given: Sequence[str | Source],
    game: Game | str | None = None,
    *,
    trust: bool = False,
    deterministic: bool = False,
) -> list[Policy]:
    """Policies of one game: `game`, or that of the first file, or `kuhn`.

    `best-response` is the best response to the first other policy; `deterministic` takes the most
    probable action of each policy.
    """
    sources = [open_source(one, trust=trust) for one in given]
    loaded = game_of(sources, game)
    policies: dict[str, Policy] = {}
    for source in sorted(sources, key=lambda source: source.name == BEST_RESPONSE):
        policy = source.policy(loaded, against=next(iter(policies.values()), None))
        policies[source.name] = policy.greedy() if deterministic else policy
    return [policies[source.name] for source in sources]


def game_of(sources: Sequence[Source], game: Game | str | None = None) -> Game:
    """`game`, or the game of the first file, or `kuhn`."""
    if game is not None:
        return as_game(game)
    for source in sources:
        if source.game is not None:
            with _naming(source.name):
                return load_game(source.game)
    return load_game(KUHN)


def open_source(given: str | Source, *, trust: bool = False) -> Source:
    """The source of a name or a file; a file is read here, once.

    With `trust` SB3 may load a zip, which runs code from it, and an ONNX file may have any
    operators and sizes.
    """
    if isinstance(given, Source):
        return given
    if not is_file(given):
        return Source(given)
    with _naming(given):
        suffix = Path(given).suffix
        if suffix == ".json":
            return Source(
                given, *json_files.parse(read_bytes(given, max_bytes=json_files.MAX_BYTES))
            )
        if suffix == ".npz":
            return Source(given, *json_files.read_npz(given))
        if suffix == ".onnx":
            from algorithms.policies.onnx_files import read_onnx as read
        else:
            from algorithms.policies.model_zip import read_sb3 as read
        return Source(given, *read(Path(given), trust=trust))


def is_file(name: str) -> bool:
    """Whether a source is a file, by its suffix."""
    return Path(name).suffix in FILES


def best_response(policy: Policy) -> Policy:
    """Every player's best response to the other players of `policy`."""
    game, actions = policy.game, policy.measure().best_responses
    rows = np.eye(game.num_actions, dtype=np.float32)
    return Policy(game, rows[actions] if game.fits_tree else [rows[own] for own in actions])


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Turn an error in the block into a `PolicyError` that begins with the name of the file."""
    try:
        yield
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    except BridgeError as error:
        raise PolicyError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None


def _named(name: str, game: Game, other: Policy | None) -> Policy:
    kind, colon, argument = name.removesuffix("-legal").partition(":")  # random-legal is random
    if name == BEST_RESPONSE:
        if other is None:
            raise UsageError(f"{BEST_RESPONSE} needs another POLICY")
        return best_response(other)
    if kind in {"uniform", "random"} and not colon:
        return Policy.uniform(game)
    if (kind in VARIANTS or kind == "random") and not game.is_exact:
        kinds = "uniform, model.zip, policy.onnx"
        raise UsageError(f"{name}: {game.name} is too large for a table; its policies are {kinds}")
    if kind in VARIANTS:
        want = f"{kind}:<iterations>, from 1 to {MAX_ITERATIONS:,}: {kind}:1000"
        iterations = _number(argument, 1, MAX_ITERATIONS, want)
        solver = make_solver(game, kind)
        solved = run_solver(solver, game.measure, iterations=iterations, along=False)
        return Policy(game, solved.policy)
    if kind == "random":
        want = f"random:<seed>, a whole number from 0 to {MAX_SEED:,}"
        return Policy.random(game, _number(argument, 0, MAX_SEED, want))
    if (kind == "nash" if colon else kind in json_files.STYLES) and game.name != KUHN:
        raise UsageError(f"{name} is a policy of {KUHN}, not of {game.name}")
    if kind == "nash" and colon:
        want = "nash:<alpha>, a number in [0, 1/3]: nash:1/3"
        return Policy(game, nash(_number(argument, 0, LARGEST_ALPHA, want, kind=Fraction)))
    if kind in json_files.STYLES and not colon:
        return Policy.from_percentages([json_files.STYLES[kind]] * game.num_players)
    forms = (*FORMS, *KUHN_FORMS) if game.name == KUHN else FORMS
    names = (*forms, BEST_RESPONSE, *(f"{variant}:1000" for variant in VARIANTS))
    raise unknown("policy", name, names, kind=PolicyError)


def _number(text: str, low: int, high: Any, want: str, *, kind: Any = int) -> Any:
    """`text` as a number from `low` to `high`; `want` says what would be right."""
    try:
        if low <= (number := kind(text)) <= high:
            return number
    except (ValueError, ZeroDivisionError):
        pass
    raise UsageError(f"{short_repr(text)} is not a valid number; use {want}")
