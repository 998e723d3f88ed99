"""`python -m parity.check --candidate WHERE:WHAT`: compare any Kuhn poker with OpenSpiel's."""

import importlib
import json
import math
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pyspiel
from pettingzoo import AECEnv

from algorithms.support.command import EXIT_FAILED, EXIT_OK
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import DEALS, PLAYERS, Card
from parity import implementations
from parity.implementations import ActionIds, Deal, Implementation, error_text
from parity.registry import Tally

WORDS = ("check", "bet", "call", "fold")
METHODS = ("is_terminal", "get_current_player", "get_payoff")
ACTIONS_FORM = '"0=check/call,1=bet,2=fold"'
SEEDS = 300  # each of six deals is then missed with probability 6 * (5/6)**300 < 1e-22
MAX_DEVIATIONS = 6  # standard deviations by which the counts of fair deals may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A candidate in all interpretations, and the faults that all of these share.

    The interpretations differ in the meaning of action IDs and in the names of the cards.
    """

    kind: str
    interpretations: Sequence[Implementation]
    faults: Sequence[str] = ()
    compare_information: Callable[[Implementation, Implementation, Tally], None] | None = None
    with_cards_from_1: Sequence[Implementation] = ()  # for a hint to the author


def report(spec: str, *, actions: str | None, as_json: bool) -> int:
    """Print how the candidate differs from OpenSpiel; return 1 if it does, else 0."""
    action_ids = None if actions is None else parse_actions(actions)
    try:
        candidate = recognise(load(spec), action_ids)
    except BridgeError:
        raise
    except Exception as error:  # the code of a candidate may fail in any way
        raise UsageError(f"the candidate {spec!r} cannot be played: {error_text(error)}") from None
    tally = judge(candidate)
    advice = hint(candidate, tally)
    if as_json:
        result = {
            "candidate": spec,
            "kind": candidate.kind,
            "compared": tally.compared,
            "wrong": tally.wrong,
            "cases": tally.cases,
            "hint": advice,
        }
        print(json.dumps(result, indent=2))
    else:
        print(f"{spec}: {candidate.kind}", *tally.cases, sep="\n  ")
        if advice:
            print(f"hint: {advice}")
        verdict = f"{tally.wrong} differ" if tally.wrong else "it agrees with OpenSpiel"
        print(f"{tally.compared} comparisons over all deals and histories: {verdict}")
    return EXIT_FAILED if tally.wrong else EXIT_OK


def judge(candidate: Candidate) -> Tally:
    """Compare a candidate in the interpretation that has the fewest mismatches."""
    if not candidate.interpretations:
        return _tally_of_faults(candidate)
    best = None
    for implementation in candidate.interpretations:
        tally = _tally_of_faults(candidate)
        implementations.compare(implementation, implementations.REFERENCE, tally)
        if best is None or tally.wrong < best.wrong:
            best = tally
            best_implementation = implementation
    assert best is not None  # noqa: S101  # there is an interpretation
    only_faults = best.wrong == len(candidate.faults)
    if candidate.compare_information and only_faults:
        candidate.compare_information(best_implementation, implementations.REFERENCE, best)
    return best


def _tally_of_faults(candidate: Candidate) -> Tally:
    """A tally in which only the faults of all interpretations are counted."""
    number = len(candidate.faults)
    return Tally(ours="", compared=number, wrong=number, cases=list(candidate.faults))


def hint(candidate: Candidate, tally: Tally) -> str:
    """A hint that the cards are 1 to 3; empty unless that explains mismatches."""
    if not tally.wrong or not candidate.with_cards_from_1:
        return ""
    renumbered = replace(candidate, interpretations=candidate.with_cards_from_1)
    wrong = judge(renumbered).wrong
    if wrong >= tally.wrong:
        return ""
    rest = f"{wrong} would differ" if wrong else "it would agree"
    return f"its cards seem to be 1 to 3, but J, Q, K are 0, 1, 2 here; renumbered, {rest}"


# ---------------------------------------------------------------------------------------------
# Which object, and of what kind
# ---------------------------------------------------------------------------------------------


def load(spec: str) -> Any:
    """The object that `package.module:object`, `file.py:object` or a game string names."""
    place, colon, what = spec.partition(":")
    game_name = spec.partition("(")[0]
    if not colon and game_name not in pyspiel.registered_names():
        raise UsageError(
            f"cannot load the candidate {spec!r}: no such OpenSpiel game; "
            "for a file or a module, name an object: kuhn.py:KuhnPoker"
        )
    try:
        if not colon:
            return pyspiel.load_game(spec)
        named: Any = _module(place)
        for name in what.split("."):
            named = getattr(named, name)
        return named
    except (Exception, SystemExit) as error:  # the module of a candidate may fail in any way
        raise UsageError(f"cannot load the candidate {spec!r}: {error_text(error)}") from None


def _module(place: str) -> ModuleType:
    """The module of a file, which may import its neighbours as in `python FILE`, or of a name."""
    if place.endswith(".py"):
        sys.path.insert(0, str(Path(place).parent.resolve()))
        module = ModuleType(Path(place).stem)
        vars(module).update(runpy.run_path(place, run_name=module.__name__))
        return module
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # at the end, so that it shadows no other module
    return importlib.import_module(place)


def recognise(thing: Any, action_ids: ActionIds | None = None) -> Candidate:
    """A candidate of the kind that an object's type and methods suggest."""
    if isinstance(thing, str):
        return recognise(load(thing), action_ids)
    if all(callable(getattr(thing, method, None)) for method in METHODS):
        return _recognise_rulebook(thing() if isinstance(thing, type) else thing)
    if isinstance(thing, pyspiel.Game):
        return _recognise_openspiel(thing, action_ids)
    if isinstance(thing, AECEnv):
        return _recognise_env(thing, action_ids)
    if isinstance(thing, ModuleType) and hasattr(thing, "env"):
        return recognise(thing.env, action_ids)
    if callable(thing):
        made = thing()
        if not callable(made) or isinstance(made, (AECEnv, pyspiel.Game)):
            return recognise(made, action_ids)
    kinds = f"a rulebook with {', '.join(METHODS)}, a PettingZoo AEC environment or factory"
    raise UsageError(f"a candidate is {kinds}, or an OpenSpiel game; got {type(thing).__name__}")


def _recognise_rulebook(book: Any) -> Candidate:
    def with_cards_from(lowest_card: int) -> list[Implementation]:
        return [
            implementations.from_rulebook(book, lowest_card, history_first=False),
            implementations.from_rulebook(book, lowest_card, history_first=True),
        ]

    return Candidate(
        kind="a rulebook in letters",
        interpretations=with_cards_from(0),
        with_cards_from_1=with_cards_from(1),
    )


def _recognise_openspiel(game: pyspiel.Game, action_ids: ActionIds | None) -> Candidate:
    if game.num_players() != len(PLAYERS):
        raise UsageError(f"{game} has {game.num_players()} players, not 2")
    possible_ids = list(meanings(game.num_distinct_actions(), action_ids))
    return Candidate(
        kind="an OpenSpiel game",
        interpretations=[implementations.from_openspiel(game, ids, 0) for ids in possible_ids],
        compare_information=implementations.compare_infosets,
        with_cards_from_1=[implementations.from_openspiel(game, ids, 1) for ids in possible_ids],
    )


# ---------------------------------------------------------------------------------------------
# The meaning of action IDs
# ---------------------------------------------------------------------------------------------


def parse_actions(text: str) -> ActionIds:
    """`"0=check/call,1=bet,2=fold"` -> the ID of each word."""
    action_ids: dict[str, int] = {}
    for part in text.split(","):
        number, _, words = part.partition("=")
        for word in map(str.strip, words.split("/")):
            if word not in WORDS or not number.strip().isdigit():
                raise UsageError(f"--actions has the form {ACTIONS_FORM}; got {part!r}")
            if action_ids.setdefault(word, int(number)) != int(number):
                raise UsageError(f"--actions gives {word} two IDs")
    missing = [word for word in WORDS if word not in action_ids]
    if missing:
        raise UsageError(f"--actions gives no ID for {', '.join(missing)}")
    for one, other in (("check", "bet"), ("call", "fold")):
        if action_ids[one] == action_ids[other]:
            raise UsageError(f"--actions gives {one} and {other} the same ID")
    return action_ids


def meanings(num_actions: int, given: ActionIds | None = None) -> Iterator[ActionIds]:
    """The given meaning of the action IDs, or all possible ones."""
    if given is not None:
        largest = max(given.values())
        if largest >= num_actions:
            raise UsageError(f"--actions names ID {largest}; the IDs are 0 to {num_actions - 1}")
        yield given
        return
    if num_actions not in {2, 3, 4}:
        raise UsageError(f"the candidate has {num_actions} actions; Kuhn poker has 2, 3 or 4")
    for check, bet, call, fold in product(range(num_actions), repeat=len(WORDS)):
        all_used = len({check, bet, call, fold}) == num_actions
        if check != bet and call != fold and all_used:
            yield {"check": check, "bet": bet, "call": call, "fold": fold}


# ---------------------------------------------------------------------------------------------
# PettingZoo environments
# ---------------------------------------------------------------------------------------------

FirstObservations: TypeAlias = tuple[str, ...]
"""What each agent observes after the deal, as text."""


def _recognise_env(env: AECEnv, action_ids: ActionIds | None) -> Candidate:
    """An AEC environment says neither which observation is which card nor what its IDs mean.

    So the interpretation of cards and actions that agrees best with OpenSpiel is taken.
    """
    kind = "a PettingZoo AEC environment"
    if len(env.possible_agents) != len(PLAYERS):
        raise UsageError(f"the candidate has {len(env.possible_agents)} agents, not 2")
    dealt = [_first_observations(env, seed) for seed in range(SEEDS)]
    seeds = {observations: dealt.index(observations) for observations in dealt}
    for observations, seed in seeds.items():
        if _first_observations(env, seed) != observations:
            raise UsageError(f"the candidate's reset(seed={seed}) does not repeat its deal")
    of_each_seat = [sorted(set(of_seat)) for of_seat in zip(*dealt, strict=True)]
    faults = [
        f"at the start player_{seat} has {len(different)} different observations; "
        "three cards make 3"
        for seat, different in enumerate(of_each_seat)
        if len(different) != len(Card)
    ]
    if faults:
        return Candidate(kind=kind, interpretations=(), faults=faults)
    starts = list(_possible_starts(seeds, of_each_seat))
    if not starts:
        return Candidate(
            kind=kind, interpretations=(), faults=["both players can hold the same card"]
        )
    num_actions = int(env.action_space(env.possible_agents[0]).n)
    possible_ids = meanings(num_actions, action_ids)
    read = implementations.aec_reader(env)
    return Candidate(
        kind=kind,
        interpretations=[
            implementations.from_aec(read, start, ids)
            for ids, start in product(possible_ids, starts)
        ],
        faults=_unfair_deals(dealt),
        compare_information=implementations.compare_observations,
    )


def _first_observations(env: AECEnv, seed: int) -> FirstObservations:
    env.reset(seed=seed)
    agents = env.possible_agents
    return tuple(implementations.observation_text(env.observe(agent)) for agent in agents)


def _possible_starts(
    seeds: Mapping[FirstObservations, int], of_each_seat: Sequence[Sequence[str]]
) -> Iterator[dict[Deal, int]]:
    """A seed for each deal, for all ways to name observations so that no deal has a card twice."""
    for order0, order1 in product(permutations(Card), repeat=2):
        card0 = dict(zip(of_each_seat[0], order0, strict=True))
        card1 = dict(zip(of_each_seat[1], order1, strict=True))
        start = {(card0[seen0], card1[seen1]): seed for (seen0, seen1), seed in seeds.items()}
        if all(one != other for one, other in start):
            yield start


def _unfair_deals(dealt: Sequence[FirstObservations]) -> list[str]:
    """The fault that one deal comes up too often, if it does."""
    most = max(Counter(dealt).values())
    fair = SEEDS / len(DEALS)
    if most - fair <= MAX_DEVIATIONS * math.sqrt(fair):
        return []
    return [f"one deal comes up {most} times in {SEEDS} seeds, where {fair:.0f} are fair"]
