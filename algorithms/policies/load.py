"""Policies by name or from a file: what commands accept as POLICY."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from algorithms.games import KUHN, Game, as_game, kuhn, load_game
from algorithms.games.efg_game import is_efg
from algorithms.large_games.solver import Tables
from algorithms.policies import json_files, npz_files
from algorithms.policies.json_files import Document
from algorithms.policies.network import Network, require_fits
from algorithms.policies.policy import Policy
from algorithms.solvers import NAMES as VARIANTS
from algorithms.solvers import Save, run_solver
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

FILES = (".json", ".npz", ".zip", ".onnx")
BEST_RESPONSE = "best-response"
MAX_ITERATIONS = 10_000_000  # of a variant that is solved when it is named
MAX_SEED = 2**64 - 1
FORMS = (
    "uniform",
    "random:<seed>",
    "<variant>:<iterations>[:average|:last]",
    *(f"policy{end}" for end in FILES),
)
HELP = (
    f"one of {', '.join(FORMS)}, where a variant is {', '.join(VARIANTS)}; "
    f"for {KUHN} also {', '.join(kuhn().own_policies)}"
)
GAMES = f"{KUHN}, an OpenSpiel game or an .efg file"
GAME_HELP = f"{GAMES} (default: the game of the first file, or {KUHN})"

# Of a `.json`, a `.npz` or a model, or a policy in memory.
Content: TypeAlias = Document | Tables | Network | Policy


@dataclass(frozen=True, slots=True)
class Source:
    """A policy whose game is known before it is built: a name, or a file that was read."""

    name: str
    game: str | None = None  # the game that a file names
    content: Content | None = None  # of a file

    def policy(self, game: Game, *, against: Policy | None = None) -> Policy:
        """The policy of `game`; `best-response` is that to `against`."""
        if self.content is None:
            return _named(self.name, game, against)
        if isinstance(self.content, Policy):
            return self.content
        with _naming(self.name):
            if isinstance(self.content, Network):
                return Policy(game, network=self.network(game))
            json_files.require_same_game(self.game, game)
            suffix = ".json" if isinstance(self.content, Document) else ".npz"
            if suffix != game.policy_file:
                raise PolicyError(game.wrong_policy_file)
            if isinstance(self.content, Document):
                return Policy(game, json_files.to_table(self.content, game))
            return Policy(game, self.content)

    def network(self, game: Game) -> Network:
        """The network in a model file, which must be one of `game`."""
        with _naming(self.name):
            if not isinstance(self.content, Network):
                raise PolicyError("not a model; want a .zip or an .onnx file")
            json_files.require_same_game(self.game, game)
            require_fits(self.content, game)
        return self.content


def in_memory(name: str, policy: Policy) -> Source:
    """The source of a policy that is not in a file."""
    return Source(name, policy.game.name, policy)


def load_policy(
    source: str | Path, game: Game | str | None = None, *, trust: bool = False
) -> Policy:
    """A policy by name, such as `cfr+:1000`, or from a `.json`, `.npz`, `.zip` or `.onnx` file.

    Args:
        source: name or file of the policy.
        game: game of the policy; by default the game that the file names, or `kuhn`.
        trust: whether to load a model with SB3's own loader, which runs code from the file.
    """
    if not isinstance(source, str | Path):
        raise PolicyError(
            f"{short_repr(source)}: want a name or a file; a live model is Policy.from_sb3(model)"
        )
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
                _require_game_file(source.game)
                return load_game(source.game)
    return kuhn()


def _require_game_file(name: str) -> None:
    """Raise an error if a policy's game is an `.efg` file that has moved."""
    if is_efg(name) and not Path(name).exists():
        raise PolicyError(
            f"its game is the file {name}, which is not there; name the game by its path now"
        )


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
        game, content = _read(Path(given), trust=trust)
        return Source(given, game, content)


def _read(path: Path, *, trust: bool) -> tuple[str | None, Content]:
    """The game that a file names, and its content."""
    if path.suffix == ".json":
        document = json_files.read(path)
        return document.game, document
    if path.suffix == ".npz":
        return npz_files.read(path)
    if path.suffix == ".onnx":
        from algorithms.policies.onnx_files import read_onnx

        return read_onnx(path, trust=trust)
    from algorithms.policies.model_zip import read_sb3

    return read_sb3(path, trust=trust)


def is_file(name: str) -> bool:
    """Whether a source is a file, by its suffix."""
    return Path(name).suffix in FILES


def best_response(policy: Policy) -> Policy:
    """Every player's best response to the other players of `policy`."""
    game = policy.game
    return Policy(game, game.pure(policy.measure().best_responses))


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
    """The policy of a name; `best-response` is that to `other`."""
    if name == BEST_RESPONSE:
        if other is None:
            raise UsageError(f"{BEST_RESPONSE} needs another POLICY")
        return best_response(other)
    # In Kuhn `random` is one of the opponents, and in every game it is uniform play.
    if name in ("uniform", "random", "random-legal"):
        return Policy.uniform(game)
    kind, _, argument = name.partition(":")
    if kind in VARIANTS or kind == "random":
        _require_table(name, game)
    if kind in VARIANTS:
        return _solved(kind, argument, game)
    if kind == "random":
        want = f"random:<seed>, a whole number from 0 to {MAX_SEED:,}"
        return Policy.random(game, _number(argument, 0, MAX_SEED, want))
    table = game.named_table(name)
    if table is not None:
        return Policy(game, table)
    if kuhn().named_table(name) is not None:
        raise UsageError(f"{name} is a policy of {KUHN}, not of {game.name}")
    forms = (*FORMS, *game.own_policies, BEST_RESPONSE)
    names = (*forms, *(f"{variant}:1000" for variant in VARIANTS))
    raise unknown("policy", name, names, kind=PolicyError)


def _solved(variant: str, argument: str, game: Game) -> Policy:
    """The policy of a variant after `iterations`, or `iterations:average`, `iterations:last`."""
    count, colon, kind = argument.partition(":")
    want = f"{variant}:<iterations>, from 1 to {MAX_ITERATIONS:,}: {variant}:1000"
    iterations = _number(count, 1, MAX_ITERATIONS, want)
    kinds: dict[str, Save] = {"average": "average", "last": "last"}
    if colon and kind not in kinds:
        raise unknown("policy of a solver", kind, kinds)
    solved = run_solver(
        game.make_solver(variant),
        game.measure,
        iterations=iterations,
        save=kinds.get(kind, "best"),
        along=False,
    )
    return Policy(game, solved.policy)


def _require_table(name: str, game: Game) -> None:
    """Raise an error for a name that stands for a table, in a game whose policies are networks."""
    if game.policy_file is None:
        kinds = ", ".join(["uniform", "model.zip", "policy.onnx"])
        raise UsageError(f"{name}: {game.name} is too large for a table; its policies are {kinds}")


def _number(text: str, low: int, high: int, want: str) -> int:
    """`text` as a whole number from `low` to `high`; `want` says what would be right."""
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise UsageError(f"{short_repr(text)} is not a valid number; use {want}")
    return number
