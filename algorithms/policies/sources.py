"""Policies by name or by file: whatever a command takes where it says POLICY."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from algorithms.exact.kuhn import nash
from algorithms.exact.solving import NAMES as VARIANTS
from algorithms.exact.solving import make_solver
from algorithms.exact.values import pure_policy
from algorithms.games import KUHN, Game, kuhn, load_game
from algorithms.policies.policy import Policy
from algorithms.policies.styles import STYLES, style
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.errors import short_repr

T = TypeVar("T")

LONGEST_NUMBER = 100  # in characters

FILES = (".json", ".zip", ".onnx")
BEST_RESPONSE = "best-response"
MOST_ITERATIONS = 10_000_000  # of a variant solved on the spot
FORMS = ("uniform", "random:<seed>", "<variant>:<iterations>", *(f"policy{end}" for end in FILES))
KUHN_FORMS = ("nash:<alpha>", *STYLES)
HELP = (
    f"one of {', '.join(FORMS)}, where a variant is {', '.join(VARIANTS)}; "
    f"for {KUHN} also {', '.join(KUHN_FORMS)}"
)
GAME_HELP = f"{KUHN} or any small OpenSpiel game (the files' own, or {KUHN})"


def load(
    source: str,
    game: Game | None = None,
    *,
    trust: bool = False,
    deterministic: bool = False,
    against: Policy | None = None,
) -> Policy:
    """The policy that `source` names.

    Args:
        source: a form of `HELP`.
        game: whose policy it must be; a file's own game, or else `kuhn`, where it is not given.
        trust: lets a model's file run code.
        deterministic: keeps the likeliest action of each row.
        against: what `best-response` responds to.
    """
    policy = (
        _read(source, game, trust=trust)
        if is_file(source)
        else _named(source, game or kuhn(), against)
    )
    return policy.likeliest() if deterministic else policy


def load_all(
    sources: Sequence[str],
    game: str | None = None,
    *,
    trust: bool = False,
    deterministic: bool = False,
) -> list[Policy]:
    """Policies of the game that `game_of` chooses; `best-response` is one to the first other."""
    chosen = game_of(sources, game, trust=trust)
    found: dict[str, Policy] = {}
    for source in sorted(sources, key=lambda source: source == BEST_RESPONSE):
        found[source] = load(
            source,
            chosen,
            trust=trust,
            deterministic=deterministic,
            against=next(iter(found.values()), None),
        )
    return [found[source] for source in sources]


def game_of(sources: Sequence[str], game: str | None = None, *, trust: bool = False) -> Game:
    """The game asked for, or that of the first file, or `kuhn`."""
    if game:
        return load_game(game)
    first = next(filter(is_file, sources), None)
    return load(first, trust=trust).game if first else kuhn()


def is_file(source: str) -> bool:
    """Whether a source is a file by its name."""
    return Path(source).suffix in FILES


def best_response(policy: Policy) -> Policy:
    """In every seat the best reply to the others' play of `policy`."""
    return Policy(policy.game, pure_policy(policy.game.tree, policy.measure().best_responses))


def _read(path: str, game: Game | None, *, trust: bool) -> Policy:
    """A policy from a file; what a kind of file needs is imported for it alone."""
    if path.endswith(".json"):
        return Policy.load(path, game)
    if path.endswith(".onnx"):
        from algorithms.policies import onnx

        return onnx.load_policy(path, game=game)
    from algorithms.policies import sb3

    return sb3.load_policy(path, game=game, trust=trust)


def _named(source: str, game: Game, against: Policy | None) -> Policy:
    name, colon, argument = source.removesuffix("-legal").partition(":")  # random-legal is random
    if source == BEST_RESPONSE:
        if against is None:
            raise UsageError(f"{BEST_RESPONSE}: here is no policy that it could respond to")
        return best_response(against)
    if name in VARIANTS:
        want = f"{name}:<iterations>, from 1 to {MOST_ITERATIONS:,}: {name}:1000"
        solver = make_solver(game.tree, name)
        solver.run(_number(_iterations, argument, want))
        return Policy(game, solver.average_policy())
    if name in _WITH_ARGUMENT and colon:
        return _WITH_ARGUMENT[name](game, argument)
    if name in {"uniform", "random"} and not colon:
        return Policy.uniform(game)
    if name in STYLES and not colon:
        _require_kuhn(source, game)
        return Policy.from_kuhn(style(name))
    forms = (*FORMS, *KUHN_FORMS) if game.name == KUHN else FORMS
    raise unknown("policy", source, (*forms, BEST_RESPONSE, *(f"{v}:1000" for v in VARIANTS)))


def _nash(game: Game, argument: str) -> Policy:
    _require_kuhn(f"nash:{argument}", game)
    alpha = _number(_fraction, argument, "nash:<alpha>, a number in [0, 1/3]: nash:1/3")
    return Policy.from_kuhn(nash(alpha))


def _random(game: Game, argument: str) -> Policy:
    return Policy.random(game, _number(_seed, argument, "random:<seed>, a whole number"))


_WITH_ARGUMENT: Mapping[str, Callable[[Game, str], Policy]] = MappingProxyType(
    {"nash": _nash, "random": _random}
)


def _require_kuhn(source: str, game: Game) -> None:
    if game.name != KUHN:
        raise UsageError(f"{source} is a policy of {KUHN}, not of {game.name}")


def _number(parse: Callable[[str], T], text: str, want: str) -> T:
    try:
        return parse(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{short_repr(text)} is not a number here; want {want}") from None


def _fraction(text: str) -> Fraction:
    """A fraction of few digits: `Fraction` itself would write out 1e5000000."""
    if len(text) > LONGEST_NUMBER or re.search(r"e[+-]?\d{4}", text, re.IGNORECASE):
        raise ValueError
    return Fraction(text)


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise ValueError
    return seed


def _iterations(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MOST_ITERATIONS:
        raise ValueError
    return count
