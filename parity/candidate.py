"""`python -m parity.check --candidate WHERE:WHAT`: compare any Kuhn poker with OpenSpiel's."""

import importlib
import importlib.util
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import permutations, product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pyspiel
from pettingzoo import AECEnv

from algorithms.support.command import EXIT_FAILED, EXIT_OK
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import DEALS, PLAYERS, Card
from parity.registry import Tally
from parity.sides import (
    Deal,
    Encoding,
    Side,
    aec,
    aec_reader,
    compare,
    compare_information_states,
    compare_observations,
    error_text,
    observation_text,
    openspiel,
    reference,
    rulebook,
)

WORDS = ("check", "bet", "call", "fold")
METHODS = ("is_terminal", "get_current_player", "get_payoff")
SEEDS = 300  # each of six deals is then missed with probability 6 * (5/6)**300 < 1e-22
MAX_DEVIATIONS = 6  # standard deviations by which the counts of fair deals may differ
KINDS = (
    "a rulebook with is_terminal, get_current_player and get_payoff, a PettingZoo AEC environment "
    "or factory, or an OpenSpiel game"
)
Observations: TypeAlias = tuple[str, str]
"""The first observations of both players."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: its kind, all ways to interpret it, and the faults that all of them share."""

    kind: str
    sides: tuple[Side, ...]
    faults: tuple[str, ...] = ()
    compare_information: Callable[[Side, Side, Tally], None] | None = None
    one_based: tuple[Side, ...] = ()  # the same with cards 1 to 3, for a hint to the author


def report(spec: str, *, actions: str | None, as_json: bool) -> int:
    """Print how the candidate differs from OpenSpiel; return 1 if it does, else 0."""
    encoding = None if actions is None else parse_actions(actions)
    try:
        candidate = recognise(load(spec), encoding)
    except BridgeError:
        raise
    except Exception as error:  # the code of a candidate may fail in any way
        raise UsageError(f"the candidate {spec!r} cannot be played: {error_text(error)}") from None
    tally = judge(candidate)
    advice = hint(candidate, tally)
    if as_json:
        found = {"candidate": spec, "kind": candidate.kind, "compared": tally.compared}
        more = {"wrong": tally.wrong, "cases": tally.cases, "hint": advice}
        print(json.dumps(found | more, indent=2))
    else:
        print(f"{spec}: {candidate.kind}")
        for case in tally.cases:
            print(f"  {case}")
        if advice:
            print(f"hint: {advice}")
        verdict = f"{tally.wrong} differ" if tally.wrong else "it agrees with OpenSpiel"
        print(f"{tally.compared} comparisons over all deals and histories: {verdict}")
    return EXIT_FAILED if tally.wrong else EXIT_OK


def judge(candidate: Candidate) -> Tally:
    """Compare a candidate in the interpretation that has the fewest mismatches."""
    right = reference()
    right = replace(right, view=cache(right.view))
    faults = list(candidate.faults)

    def compared(side: Side | None) -> Tally:
        tally = Tally(ours="", compared=len(faults), wrong=len(faults), cases=faults[:])
        if side:
            compare(side, right, tally)
        return tally

    tallies = [(compared(side), side) for side in candidate.sides or (None,)]
    best, side = min(tallies, key=lambda found: found[0].wrong)
    if side and candidate.compare_information and best.wrong == len(faults):
        candidate.compare_information(side, right, best)
    return best


def hint(candidate: Candidate, tally: Tally) -> str:
    """A hint that the cards are 1 to 3; empty unless that explains mismatches."""
    if not tally.wrong or not candidate.one_based:
        return ""
    renumbered = judge(replace(candidate, sides=candidate.one_based))
    if renumbered.wrong >= tally.wrong:
        return ""
    rest = f"{renumbered.wrong} would differ" if renumbered.wrong else "it would agree"
    return f"its cards seem to be 1 to 3, but J, Q, K are 0, 1, 2 here; renumbered, {rest}"


def load(spec: str) -> Any:
    """The object that `package.module:object`, `file.py:object` or a game string names."""
    where, colon, what = spec.partition(":")
    if not colon and spec.partition("(")[0] not in pyspiel.registered_names():
        raise UsageError(
            f"cannot load the candidate {spec!r}: no such OpenSpiel game; "
            "for a file or a module, name an object: kuhn.py:KuhnPoker"
        )
    try:
        if not colon:
            return pyspiel.load_game(spec)
        found: Any = _from_file(Path(where)) if where.endswith(".py") else _from_module(where)
        for name in what.split("."):
            found = getattr(found, name)
        return found
    except (Exception, SystemExit) as error:  # the module of a candidate may fail in any way
        raise UsageError(f"cannot load the candidate {spec!r}: {error_text(error)}") from None


def recognise(thing: Any, encoding: Encoding | None = None) -> Candidate:
    """A candidate of the kind that an object's type and methods suggest."""
    if isinstance(thing, str):
        return recognise(load(thing), encoding)
    if all(callable(getattr(thing, method, None)) for method in METHODS):
        book = thing() if isinstance(thing, type) else thing
        orders = (book, _history_first(book))
        return Candidate(
            "a rulebook in letters",
            tuple(rulebook(order) for order in orders),
            one_based=tuple(rulebook(order, lowest=1) for order in orders),
        )
    if isinstance(thing, pyspiel.Game):
        if thing.num_players() != len(PLAYERS):
            raise UsageError(f"{thing} has {thing.num_players()} players, not 2")
        possible = list(encodings(thing.num_distinct_actions(), encoding))
        return Candidate(
            "an OpenSpiel game",
            tuple(openspiel(thing, one) for one in possible),
            compare_information=compare_information_states,
            one_based=tuple(openspiel(thing, one, lowest=1) for one in possible),
        )
    if isinstance(thing, AECEnv):
        return _recognise_env(thing, encoding)
    if isinstance(thing, ModuleType) and hasattr(thing, "env"):
        return recognise(thing.env, encoding)
    if callable(thing):
        made = thing()
        if not callable(made) or isinstance(made, (AECEnv, pyspiel.Game)):
            return recognise(made, encoding)
    raise UsageError(f"a candidate is {KINDS}; got {type(thing).__name__}")


def parse_actions(text: str) -> Encoding:
    """`"0=check/call,1=bet,2=fold"` -> the ID of each word."""
    found: dict[str, int] = {}
    for part in text.split(","):
        number, _, words = part.partition("=")
        for word in words.split("/"):
            if word.strip() not in WORDS or not number.strip().isdigit():
                raise UsageError(
                    f'--actions has the form "0=check/call,1=bet,2=fold"; got {part!r}'
                )
            if found.setdefault(word.strip(), int(number)) != int(number):
                raise UsageError(f"--actions gives {word.strip()} two IDs")
    missing = [word for word in WORDS if word not in found]
    if missing:
        raise UsageError(f"--actions gives no ID for {', '.join(missing)}")
    for one, other in (("check", "bet"), ("call", "fold")):
        if found[one] == found[other]:
            raise UsageError(f"--actions gives {one} and {other} the same ID")
    return found


def encodings(size: int, given: Encoding | None = None) -> Iterator[Encoding]:
    """The given meaning of the action IDs, or all possible meanings of `size` IDs."""
    if given is not None:
        if max(given.values()) >= size:
            largest = max(given.values())
            raise UsageError(f"--actions names ID {largest}; the IDs are 0 to {size - 1}")
        yield given
        return
    if size not in {2, 3, 4}:
        raise UsageError(f"the candidate has {size} actions; Kuhn poker has 2, 3 or 4")
    for ids in product(range(size), repeat=len(WORDS)):
        encoding = dict(zip(WORDS, ids, strict=True))
        unambiguous = encoding["check"] != encoding["bet"] and encoding["call"] != encoding["fold"]
        if unambiguous and len(set(ids)) == size:
            yield encoding


def _from_module(name: str) -> ModuleType:
    """A module by name; the working directory is searched last, so it shadows no other module."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    """The module of a file, which may import its neighbours as in `python path`."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _history_first(book: Any) -> Any:
    """The rulebook for a `get_payoff(history, cards)`."""
    return SimpleNamespace(
        is_terminal=book.is_terminal,
        get_current_player=book.get_current_player,
        get_payoff=lambda cards, history: book.get_payoff(history, cards),
    )


# An AEC environment does not say which observation is which card, nor what its action IDs mean.
# So the interpretation of cards and actions that agrees best with OpenSpiel is taken.


def _recognise_env(env: AECEnv, encoding: Encoding | None) -> Candidate:
    kind = "a PettingZoo AEC environment"
    seeds, counts = _deals(env)
    observed = [sorted({pair[seat] for pair in seeds}) for seat in PLAYERS]
    faults = [
        f"at the start player_{seat} has {len(found)} different observations; three cards make 3"
        for seat, found in enumerate(observed)
        if len(found) != len(Card)
    ]
    if faults:
        return Candidate(kind, (), tuple(faults))
    possible = encodings(int(env.action_space(env.possible_agents[0]).n), encoding)
    deals = list(_card_names(observed, seeds))
    if not deals:
        return Candidate(kind, (), ("both players can hold the same card",))
    read = aec_reader(partial(_reset, env))
    sides = tuple(
        aec(read, {deal: seeds[pair] for deal, pair in named.items()}, one)
        for one, named in product(possible, deals)
    )
    fair, most = SEEDS / len(DEALS), max(counts.values())
    if most - fair > MAX_DEVIATIONS * math.sqrt(fair):
        faults = [f"one deal comes up {most} times in {SEEDS} seeds, where {fair:.0f} are fair"]
    return Candidate(kind, sides, tuple(faults), compare_observations)


def _deals(env: AECEnv) -> tuple[dict[Observations, int], Counter[Observations]]:
    """A seed for each pair of first observations, and how often each pair comes up."""
    if len(env.possible_agents) != len(PLAYERS):
        raise UsageError(f"the candidate has {len(env.possible_agents)} agents, not 2")
    seeds: dict[Observations, int] = {}
    counts: Counter[Observations] = Counter()
    for seed in range(SEEDS):
        pair = _first_observations(env, seed)
        seeds.setdefault(pair, seed)
        counts[pair] += 1
    for pair, seed in seeds.items():
        if _first_observations(env, seed) != pair:
            raise UsageError(f"the candidate's reset(seed={seed}) does not repeat its deal")
    return seeds, counts


def _reset(env: AECEnv, seed: int) -> AECEnv:
    env.reset(seed=seed)
    return env


def _first_observations(env: AECEnv, seed: int) -> Observations:
    first, second = map(observation_text, map(_reset(env, seed).observe, env.possible_agents))
    return first, second


def _card_names(
    observed: Sequence[Sequence[str]], pairs: Iterable[Observations]
) -> Iterator[dict[Deal, Observations]]:
    """All ways to assign J, Q and K to first observations so that no deal has a card twice."""
    for order0, order1 in product(permutations(Card), repeat=2):
        first = dict(zip(observed[0], order0, strict=True))
        second = dict(zip(observed[1], order1, strict=True))
        deals = {(first[a], second[b]): (a, b) for a, b in pairs}
        if all(deal[0] != deal[1] for deal in deals):
            yield deals
