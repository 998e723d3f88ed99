"""Policies by name or from a file: what commands accept as POLICY."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np

from algorithms.exact.kuhn import LARGEST_ALPHA, nash
from algorithms.exact.solving import DEFAULT_ITERATIONS, DEFAULT_VARIANT
from algorithms.exact.solving import NAMES as VARIANTS
from algorithms.exact.values import pure_policy
from algorithms.games import KUHN, Game, as_game, load_game, make_solver, same_game
from algorithms.policies import formats
from algorithms.policies.kuhn import STYLES, style
from algorithms.policies.network import Network, network_table, require_fits
from algorithms.policies.policy import Policy
from algorithms.support.errors import UsageError, unknown
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

T = TypeVar("T", int, Fraction)

FILES = (".json", ".npz", ".zip", ".onnx")
BEST_RESPONSE = "best-response"
MAX_ITERATIONS = 10_000_000  # of a variant that is solved when it is named
MAX_SEED = 2**64 - 1
FORMS = ("uniform", "random:<seed>", "<variant>:<iterations>", *(f"policy{end}" for end in FILES))
KUHN_FORMS = ("nash:<alpha>", *STYLES)
HELP = (
    f"one of {', '.join(FORMS)}, where a variant is {', '.join(VARIANTS)}; "
    f"for {KUHN} also {', '.join(KUHN_FORMS)}"
)
GAME_HELP = f"{KUHN} or an OpenSpiel game (default: the game of the first file, or {KUHN})"


@dataclass(frozen=True, slots=True)
class Source:
    """A policy whose game is known before it is built.

    `build` takes the game and the policy that `best-response` responds to.
    """

    name: str
    game: str | None  # the game that a file names
    build: Callable[[Game, Policy | None], Policy]

    def policy(self, game: Game, *, against: Policy | None = None) -> Policy:
        """The policy of `game`; an error if the file names another one."""
        if not is_file(self.name):
            return self.build(game, against)
        with _naming(self.name):
            _require_same_game("policy", self.game, game)
            return self.build(game, against)


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


def load_model(
    path: str | Path, *, game: Game | None = None, trust: bool = False
) -> tuple[Network, Game]:
    """The network in a model file, and its game: `game`, or that of the file, or `kuhn`."""
    network = read_model(path, trust=trust)
    with _naming(path):
        found = game or load_game(network.game or KUHN)
        _require_same_game("model", network.game, found)
        require_fits(network, found)
    return network, found


def read_model(path: str | Path, *, trust: bool = False) -> Network:
    """The network in a `.zip` or an `.onnx` file, without running code from the file.

    Args:
        path: file to read.
        trust: whether SB3 may load a zip, which runs code from it, and an ONNX file may have any
            operators and sizes.
    """
    with _naming(path):
        if Path(path).suffix == ".onnx":
            from algorithms.policies.onnx import read_onnx

            network = read_onnx(Path(path), trust=trust)
        else:
            from algorithms.policies.sb3 import read_sb3

            network = read_sb3(Path(path), trust=trust)
        if not isinstance(network.game, str | None):
            raise PolicyError(f"{short_repr(network.game)} is not the name of a game")
    return network


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
    """The source of a name or a file; a file is opened here, once."""
    if isinstance(given, Source):
        return given
    if not is_file(given):
        return Source(given, None, lambda game, other: _named(given, game, other))
    with _naming(given):
        suffix = Path(given).suffix
        if suffix == ".json":
            return _open_json(given)
        return _open_npz(given) if suffix == ".npz" else _open_model(given, trust=trust)


def is_file(name: str) -> bool:
    """Whether a source is a file, by its suffix."""
    return Path(name).suffix in FILES


def solve(
    game: Game | str, variant: str = DEFAULT_VARIANT, *, iterations: int = DEFAULT_ITERATIONS
) -> Policy:
    """The average policy of a run of the CFR family.

    Args:
        game: a `Game` or its name.
        variant: `cfr+` (the default), `cfr`, `lcfr`, `dcfr`, `pcfr+`, `cfr-simultaneous`,
            `es-mccfr` or `os-mccfr`.
        iterations: number of iterations (1,000 by default).
    """
    loaded = as_game(game)
    solver = make_solver(loaded, variant)
    solver.run(iterations)
    return Policy(loaded, solver.average_policy())


def best_response(policy: Policy) -> Policy:
    """Every player's best response to the other players of `policy`."""
    game, actions = policy.game, policy.measure().best_responses
    if game.fits_tree:
        return Policy(game, pure_policy(game.tree, actions))
    return Policy(game, tuple(np.eye(game.num_actions, dtype=np.float32)[own] for own in actions))


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Turn an error in the block into a `PolicyError` that begins with the name of the file."""
    try:
        yield
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    except BridgeError as error:
        raise PolicyError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None


def _require_same_game(what: str, name: str | None, game: Game) -> None:
    """Raise an error if a file names another game than `game`."""
    if name is not None and not same_game(name, game.name):
        raise PolicyError(f"a {what} of {name}, not of {game.name}")


def _open_json(path: str) -> Source:
    name, document = formats.parse(read_bytes(path, max_bytes=formats.MAX_BYTES))

    def build(game: Game, _: Policy | None) -> Policy:
        if not game.fits_tree:
            kinds = "model.zip, policy.onnx" + ", policy.npz" * game.is_exact
            raise PolicyError(f"{game.name} is too large for a tree; want {kinds}")
        return Policy(game, formats.to_table(document, game))

    return Source(path, name, build)


def _open_npz(path: str) -> Source:
    name, tables = formats.read_npz(path)

    def build(game: Game, _: Policy | None) -> Policy:
        if game.fits_tree:
            raise PolicyError(f"{game.name} has a tree; its policies are .json")
        return Policy(game, tables)

    return Source(path, name, build)


def _open_model(path: str, *, trust: bool) -> Source:
    network = read_model(path, trust=trust)

    def build(game: Game, _: Policy | None) -> Policy:
        require_fits(network, game)
        if game.fits_tree:
            return Policy(game, network_table(network, game))
        return Policy(game, network=network)

    return Source(path, network.game, build)


def _named(name: str, game: Game, other: Policy | None) -> Policy:
    kind, colon, argument = name.removesuffix("-legal").partition(":")  # random-legal is random
    if name == BEST_RESPONSE:
        if other is None:
            raise UsageError(f"{BEST_RESPONSE} needs another POLICY")
        return best_response(other)
    if kind in VARIANTS or (kind == "random" and colon):
        _require_exact(name, game)
    if kind in VARIANTS:
        want = f"{kind}:<iterations>, from 1 to {MAX_ITERATIONS:,}: {kind}:1000"
        iterations = _number(argument, int, low=1, high=MAX_ITERATIONS, want=want)
        return solve(game, kind, iterations=iterations)
    if kind == "random" and colon:
        want = f"random:<seed>, a whole number from 0 to {MAX_SEED:,}"
        return Policy.random(game, _number(argument, int, low=0, high=MAX_SEED, want=want))
    if kind in {"uniform", "random"} and not colon:
        return Policy.uniform(game)
    if kind == "nash" and colon:
        _require_kuhn(name, game)
        want = "nash:<alpha>, a number in [0, 1/3]: nash:1/3"
        alpha = _number(argument, _fraction, low=Fraction(0), high=LARGEST_ALPHA, want=want)
        return Policy(game, nash(alpha))
    if kind in STYLES and not colon:
        _require_kuhn(name, game)
        return Policy(game, style(kind))
    forms = (*FORMS, *KUHN_FORMS) if game.name == KUHN else FORMS
    names = (*forms, BEST_RESPONSE, *(f"{variant}:1000" for variant in VARIANTS))
    raise unknown("policy", name, names, kind=PolicyError)


def _require_exact(name: str, game: Game) -> None:
    if not game.is_exact:
        raise UsageError(
            f"{name}: {game.name} is too large for a table; its policies are uniform, model.zip, "
            "policy.onnx"
        )


def _require_kuhn(name: str, game: Game) -> None:
    if game.name != KUHN:
        raise UsageError(f"{name} is a policy of {KUHN}, not of {game.name}")


def _fraction(text: str) -> Fraction:
    """`"1/3"` or `"0.2"`; decimals go through float, so that `"1e999999"` is infinite, not long."""
    return Fraction(text) if "/" in text else Fraction(repr(float(text)))


def _number(text: str, kind: Callable[[str], T], *, low: T, high: T, want: str) -> T:
    """`text` as a number from `low` to `high`; `want` says what would be right."""
    try:
        number = kind(text)
        if low <= number <= high:
            return number
    except (ValueError, ZeroDivisionError):
        pass
    raise UsageError(f"{short_repr(text)} is not a valid number; use {want}")
