"""`python -m parity.check --candidate WHERE:WHAT`: compare any Kuhn poker with OpenSpiel's."""

import importlib
import json
import math
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspiel
from pettingzoo import AECEnv

from algorithms.support.command import EXIT_FAILED, EXIT_OK
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import DEALS, PLAYERS, Card
from parity import sides
from parity.registry import Tally
from parity.sides import Encoding, Side, error_text

WORDS = ("check", "bet", "call", "fold")
METHODS = ("is_terminal", "get_current_player", "get_payoff")
SEEDS = 300  # each of six deals is then missed with probability 6 * (5/6)**300 < 1e-22
MAX_DEVIATIONS = 6  # standard deviations by which the counts of fair deals may differ


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: its kind, all ways to interpret it, and the faults that all of them share."""

    kind: str
    sides: Sequence[Side]
    faults: Sequence[str] = ()
    compare_information: Callable[[Side, Side, Tally], None] | None = None
    one_based: Sequence[Side] = ()  # the same with cards 1 to 3, for a hint to the author


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
        print(f"{spec}: {candidate.kind}", *tally.cases, sep="\n  ")
        if advice:
            print(f"hint: {advice}")
        verdict = f"{tally.wrong} differ" if tally.wrong else "it agrees with OpenSpiel"
        print(f"{tally.compared} comparisons over all deals and histories: {verdict}")
    return EXIT_FAILED if tally.wrong else EXIT_OK


def judge(candidate: Candidate) -> Tally:
    """Compare a candidate in the interpretation that has the fewest mismatches."""
    faults = candidate.faults

    def compared(side: Side | None) -> Tally:
        tally = Tally(ours="", compared=len(faults), wrong=len(faults), cases=list(faults))
        if side:
            sides.compare(side, sides.REFERENCE, tally)
        return tally

    tallies = [(compared(side), side) for side in candidate.sides or (None,)]
    best, side = min(tallies, key=lambda found: found[0].wrong)
    if side and candidate.compare_information and best.wrong == len(faults):
        candidate.compare_information(side, sides.REFERENCE, best)
    return best


def hint(candidate: Candidate, tally: Tally) -> str:
    """A hint that the cards are 1 to 3; empty unless that explains mismatches."""
    if not tally.wrong or not candidate.one_based:
        return ""
    wrong = judge(replace(candidate, sides=candidate.one_based)).wrong
    if wrong >= tally.wrong:
        return ""
    rest = f"{wrong} would differ" if wrong else "it would agree"
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
        found: Any = _module(where)
        for name in what.split("."):
            found = getattr(found, name)
        return found
    except (Exception, SystemExit) as error:  # the module of a candidate may fail in any way
        raise UsageError(f"cannot load the candidate {spec!r}: {error_text(error)}") from None


def _module(where: str) -> ModuleType:
    """The module of a file, which may import its neighbours as in `python FILE`, or of a name."""
    if where.endswith(".py"):
        sys.path.insert(0, str(Path(where).parent.resolve()))
        module = ModuleType(Path(where).stem)
        vars(module).update(runpy.run_path(where, run_name=module.__name__))
        return module
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # at the end, so that it shadows no other module
    return importlib.import_module(where)


def recognise(thing: Any, encoding: Encoding | None = None) -> Candidate:
    """A candidate of the kind that an object's type and methods suggest."""
    if isinstance(thing, str):
        return recognise(load(thing), encoding)
    if all(callable(getattr(thing, method, None)) for method in METHODS):
        book = thing() if isinstance(thing, type) else thing
        from_0, from_1 = (
            [sides.rulebook(book, lowest=lowest, history_first=first) for first in (False, True)]
            for lowest in (0, 1)
        )
        return Candidate("a rulebook in letters", from_0, one_based=from_1)
    if isinstance(thing, pyspiel.Game):
        if thing.num_players() != len(PLAYERS):
            raise UsageError(f"{thing} has {thing.num_players()} players, not 2")
        possible = list(encodings(thing.num_distinct_actions(), encoding))
        from_0, from_1 = (
            [sides.openspiel(thing, one, lowest=lowest) for one in possible] for lowest in (0, 1)
        )
        return Candidate("an OpenSpiel game", from_0, (), sides.compare_infosets, from_1)
    if isinstance(thing, AECEnv):
        return _recognise_env(thing, encoding)
    if isinstance(thing, ModuleType) and hasattr(thing, "env"):
        return recognise(thing.env, encoding)
    if callable(thing):
        made = thing()
        if not callable(made) or isinstance(made, (AECEnv, pyspiel.Game)):
            return recognise(made, encoding)
    kinds = f"a rulebook with {', '.join(METHODS)}, a PettingZoo AEC environment or factory"
    raise UsageError(f"a candidate is {kinds}, or an OpenSpiel game; got {type(thing).__name__}")


def parse_actions(text: str) -> Encoding:
    """`"0=check/call,1=bet,2=fold"` -> the ID of each word."""
    found: dict[str, int] = {}
    for part in text.split(","):
        number, _, words = part.partition("=")
        for word in map(str.strip, words.split("/")):
            if word not in WORDS or not number.strip().isdigit():
                form = '"0=check/call,1=bet,2=fold"'
                raise UsageError(f"--actions has the form {form}; got {part!r}")
            if found.setdefault(word, int(number)) != int(number):
                raise UsageError(f"--actions gives {word} two IDs")
    if missing := [word for word in WORDS if word not in found]:
        raise UsageError(f"--actions gives no ID for {', '.join(missing)}")
    for one, other in (("check", "bet"), ("call", "fold")):
        if found[one] == found[other]:
            raise UsageError(f"--actions gives {one} and {other} the same ID")
    return found


def encodings(size: int, given: Encoding | None = None) -> Iterator[Encoding]:
    """The given meaning of the action IDs, or all possible meanings of `size` IDs."""
    if given is not None:
        if (largest := max(given.values())) >= size:
            raise UsageError(f"--actions names ID {largest}; the IDs are 0 to {size - 1}")
        yield given
        return
    if size not in {2, 3, 4}:
        raise UsageError(f"the candidate has {size} actions; Kuhn poker has 2, 3 or 4")
    for check, bet, call, fold in product(range(size), repeat=len(WORDS)):
        if check != bet and call != fold and len({check, bet, call, fold}) == size:
            yield dict(zip(WORDS, (check, bet, call, fold), strict=True))


def _recognise_env(env: AECEnv, encoding: Encoding | None) -> Candidate:
    """An AEC environment says neither which observation is which card nor what its IDs mean.

    So the interpretation of cards and actions that agrees best with OpenSpiel is taken.
    """
    kind = "a PettingZoo AEC environment"
    if len(env.possible_agents) != len(PLAYERS):
        raise UsageError(f"the candidate has {len(env.possible_agents)} agents, not 2")

    def first_observations(seed: int) -> tuple[str, ...]:
        env.reset(seed=seed)
        return tuple(sides.observation_text(env.observe(agent)) for agent in env.possible_agents)

    pairs = list(map(first_observations, range(SEEDS)))
    seeds = {pair: pairs.index(pair) for pair in pairs}
    for pair, seed in seeds.items():
        if first_observations(seed) != pair:
            raise UsageError(f"the candidate's reset(seed={seed}) does not repeat its deal")
    observed = [sorted(set(of_seat)) for of_seat in zip(*pairs, strict=True)]
    faults = [
        f"at the start player_{seat} has {len(found)} different observations; three cards make 3"
        for seat, found in enumerate(observed)
        if len(found) != len(Card)
    ]
    if faults:
        return Candidate(kind, (), faults)
    possible = encodings(int(env.action_space(env.possible_agents[0]).n), encoding)
    starts = []  # a seed for each deal, for all names of cards so that no deal has a card twice
    for order0, order1 in product(permutations(Card), repeat=2):
        first = dict(zip(observed[0], order0, strict=True))
        second = dict(zip(observed[1], order1, strict=True))
        deals = {(first[one], second[two]): seed for (one, two), seed in seeds.items()}
        if all(one != two for one, two in deals):
            starts.append(deals)
    if not starts:
        return Candidate(kind, (), ["both players can hold the same card"])
    read, fair, most = sides.aec_reader(env), SEEDS / len(DEALS), max(Counter(pairs).values())
    if most - fair > MAX_DEVIATIONS * math.sqrt(fair):
        faults = [f"one deal comes up {most} times in {SEEDS} seeds, where {fair:.0f} are fair"]
    views = [sides.aec(read, deals, one) for one, deals in product(possible, starts)]
    return Candidate(kind, views, faults, sides.compare_observations)
