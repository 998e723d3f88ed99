"""Anyone's Kuhn poker against OpenSpiel's: `python -m parity.check --candidate WHERE:WHAT`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyspiel
from pettingzoo import AECEnv

from algorithms.cli import DOES_NOT_HOLD, HOLDS, UsageError, first_line
from kuhn_bridge.errors import KuhnError
from kuhn_bridge.rules import BETTING, PLAYERS, Card
from parity.sides import (
    DeadEndError,
    Deal,
    Encoding,
    Side,
    View,
    compare,
    leaving_rewards,
    mask_of,
    named,
    openspiel,
    reference,
    rulebook,
)
from parity.tally import Tally

WORDS = ("check", "bet", "call", "fold")
METHODS = ("is_terminal", "get_current_player", "get_payoff")
SEEDS = 300  # each of six deals is then missed with probability 6 * (5/6)**300 < 1e-22
SHAPES = (
    "a rulebook with is_terminal, get_current_player and get_payoff, a PettingZoo AEC environment "
    "or factory, or an OpenSpiel game"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was found: its kind, and every way in which it may be read."""

    kind: str
    readings: tuple[Side, ...]
    faults: tuple[str, ...] = ()


def report(spec: str, *, actions: str | None, as_json: bool) -> int:
    """Print how the candidate differs from OpenSpiel; 0 = it does not, 1 = it does."""
    meaning = None if actions is None else parse_actions(actions)
    try:
        candidate = recognise(load(spec), meaning)
    except KuhnError:
        raise
    except Exception as error:  # a stranger's code may fail in any way
        raise UsageError(f"the candidate {spec!r} cannot be played: {_told(error)}") from None
    tally = judge(candidate)
    if as_json:
        found = {"kind": candidate.kind, "compared": tally.compared, "wrong": tally.wrong}
        print(json.dumps({"candidate": spec, **found, "cases": tally.cases}, indent=2))
    else:
        print(f"{spec}: {candidate.kind}")
        for case in tally.cases:
            print(f"  {case}")
        verdict = f"{tally.wrong} differ" if tally.wrong else "it agrees with OpenSpiel"
        print(f"{tally.compared} comparisons over all deals and histories: {verdict}")
    return DOES_NOT_HOLD if tally.wrong else HOLDS


def judge(candidate: Candidate) -> Tally:
    """The comparison under the reading that fits best: what is wrong under all is wrong."""
    right = _remembered(reference())
    tallies = []
    for side in candidate.readings:
        tally = Tally(ours="")
        compare(side, right, tally)
        tallies.append(tally)
        if not tally.wrong:
            break
    best = min(tallies, key=lambda tally: tally.wrong)
    for fault in reversed(candidate.faults):
        best.wrong += 1
        best.cases.insert(0, fault)
    return best


def load(spec: str) -> Any:
    """The object that `package.module:object`, `file.py:object` or a game string names."""
    where, colon, what = spec.partition(":")
    try:
        if not colon:
            return pyspiel.load_game(spec)
        module = (
            _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        )
        found: Any = module
        for name in what.split("."):
            found = getattr(found, name)
        return found
    except Exception as error:  # so may a stranger's module
        raise UsageError(f"cannot load the candidate {spec!r}: {_told(error)}") from None


def recognise(thing: Any, encoding: Encoding | None = None) -> Candidate:
    """What kind of Kuhn poker an object is, by its methods."""
    if isinstance(thing, str):
        return recognise(load(thing), encoding)
    if all(callable(getattr(thing, method, None)) for method in METHODS):
        book = thing() if isinstance(thing, type) else thing
        return Candidate("a rulebook in letters", (rulebook(_ordered(book)),))
    if isinstance(thing, pyspiel.Game):
        if thing.num_players() != len(PLAYERS):
            raise UsageError(f"{thing} has {thing.num_players()} players, not 2")
        ways = encodings(thing.num_distinct_actions(), encoding)
        return Candidate("an OpenSpiel game", tuple(openspiel(thing, way) for way in ways))
    if isinstance(thing, AECEnv):
        return _recognise_env(thing, encoding)
    if isinstance(thing, ModuleType) and hasattr(thing, "env"):
        return recognise(thing.env, encoding)
    if callable(thing):
        made = thing()
        if not callable(made) or isinstance(made, (AECEnv, pyspiel.Game)):
            return recognise(made, encoding)
    raise UsageError(f"a candidate is {SHAPES}; got {type(thing).__name__}")


def parse_actions(text: str) -> Encoding:
    """`"0=check/call,1=bet,2=fold"` -> the ID of each word."""
    found: dict[str, int] = {}
    for part in text.split(","):
        number, _, words = part.partition("=")
        for word in words.split("/"):
            if word.strip() not in WORDS or not number.strip().isdigit():
                raise UsageError(f'--actions reads "0=check/call,1=bet,2=fold"; got {part!r}')
            found[word.strip()] = int(number)
    missing = [word for word in WORDS if word not in found]
    if missing:
        raise UsageError(f"--actions does not say what is {', '.join(missing)}")
    return found


def encodings(size: int, given: Encoding | None = None) -> Iterator[Encoding]:
    """The given meaning of action IDs, or every possible one of `size` IDs."""
    if given is not None:
        yield given
        return
    if size not in {2, 3, 4}:
        raise UsageError(f"the candidate has {size} actions; Kuhn poker is read with 2, 3 or 4")
    for ids in product(range(size), repeat=len(WORDS)):
        meaning = dict(zip(WORDS, ids, strict=True))
        together = meaning["check"] != meaning["bet"] and meaning["call"] != meaning["fold"]
        if together and len(set(ids)) == size:
            yield meaning


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ordered(book: Any) -> Any:
    """A rulebook whose `get_payoff` takes cards first, whichever order its author chose."""
    names = list(inspect.signature(book.get_payoff).parameters)
    if not names[0].startswith("h"):
        return book

    class CardsFirst:
        is_terminal = staticmethod(book.is_terminal)
        get_current_player = staticmethod(book.get_current_player)

        @staticmethod
        def get_payoff(cards: Sequence[int], history: str) -> float:
            return float(book.get_payoff(history, cards))

    return CardsFirst


def _remembered(side: Side) -> Side:
    return Side(side.name, cache(side.look), side.chance)


# A stranger's AEC environment says neither which card is which nor what its action IDs mean. Both
# are found by trying: play every sequence from a seed for each deal, then take the reading of
# cards and actions that agrees best with OpenSpiel.


@dataclass(frozen=True, slots=True)
class Moment:
    """One point of a recorded hand, in the environment's own IDs."""

    actor: int
    legal: tuple[int, ...]
    ended: str = ""
    rewards: tuple[float, ...] = ()


def _recognise_env(env: AECEnv, encoding: Encoding | None) -> Candidate:
    kind = "a PettingZoo AEC environment"
    starts = _starts(env)
    sights = [sorted({sight[seat] for sight in starts}) for seat in (0, 1)]
    faults = [
        f"at the start player_{seat} sees {len(found)} different things; three cards make 3"
        for seat, found in enumerate(sights)
        if len(found) != len(Card)
    ]
    if faults:
        return Candidate(kind, (Side(kind, _nothing),), tuple(faults))
    records = {sight: _record(env, seed) for sight, seed in starts.items()}
    ways = encodings(int(env.action_space(env.possible_agents[0]).n), encoding)
    readings = [
        _reading(way, cards, records) for way in ways for cards in _card_readings(sights, records)
    ]
    return Candidate(kind, tuple(readings))


def _nothing(deal: Deal, letters: str) -> View:
    raise DeadEndError("its cards cannot be told apart")


def _starts(env: AECEnv) -> dict[tuple[bytes, bytes], int]:
    """A seed for each different pair of first observations."""
    if len(env.possible_agents) != 2:
        raise UsageError(f"the candidate has {len(env.possible_agents)} agents, not 2")
    starts: dict[tuple[bytes, bytes], int] = {}
    for seed in range(SEEDS):
        starts.setdefault(_sights(env, seed), seed)
    for sight, seed in starts.items():
        if _sights(env, seed) != sight:
            raise UsageError(f"the candidate's reset(seed={seed}) does not repeat its deal")
    return starts


def _sights(env: AECEnv, seed: int) -> tuple[bytes, bytes]:
    env.reset(seed=seed)
    first, second = (_bytes(env.observe(agent)) for agent in env.possible_agents)
    return first, second


def _bytes(seen: Any) -> bytes:
    seen = seen.get("observation", seen) if isinstance(seen, dict) else seen
    return seen.encode() if isinstance(seen, str) else np.asarray(seen).tobytes()


def _record(env: AECEnv, seed: int) -> dict[tuple[int, ...], Moment]:
    """Every sequence of legal actions from one deal, one move longer than Kuhn's longest."""
    record: dict[tuple[int, ...], Moment] = {}
    queue: list[tuple[int, ...]] = [()]
    for path in queue:
        env.reset(seed=seed)
        try:
            for action in path:
                env.step(action)
        except Exception:  # an environment without masks says so that an action is illegal
            parent = record[path[:-1]]
            left = tuple(action for action in parent.legal if action != path[-1])
            record[path[:-1]] = replace(parent, legal=left)
            continue
        record[path] = moment = _moment(env)
        if not moment.ended and len(path) <= max(map(len, BETTING)):
            queue.extend((*path, action) for action in moment.legal)
    return record


def _moment(env: AECEnv) -> Moment:
    actor = env.possible_agents.index(env.agent_selection)
    if any(env.truncations.values()):
        return Moment(actor, (), "truncated")
    if any(env.terminations.values()):
        return Moment(actor, (), "over", tuple(leaving_rewards(env)))
    return Moment(actor, tuple(i for i, allowed in enumerate(mask_of(env)) if allowed))


def _card_readings(
    sights: Sequence[Sequence[bytes]], records: Iterable[tuple[bytes, bytes]]
) -> Iterator[dict[Deal, tuple[bytes, bytes]]]:
    """Every way to call what the players see J, Q and K, with no card held twice."""
    for order0, order1 in product(permutations(Card), repeat=2):
        names = [
            dict(zip(seen, order, strict=True))
            for seen, order in zip(sights, (order0, order1), strict=True)
        ]
        deals = {(names[0][a], names[1][b]): (a, b) for a, b in records}
        if all(deal[0] != deal[1] for deal in deals):
            yield deals


def _reading(
    way: Encoding,
    cards: dict[Deal, tuple[bytes, bytes]],
    records: dict[tuple[bytes, bytes], dict[tuple[int, ...], Moment]],
) -> Side:
    def look(deal: Deal, letters: str) -> View:
        if deal not in cards:
            raise DeadEndError("this deal never comes up")
        record, words = records[cards[deal]], BETTING[letters].words
        path = tuple(way[word] for word in words)
        for depth in range(len(path) + 1):
            if path[:depth] not in record:
                raise DeadEndError(f"{words[depth - 1]} is not possible there")
            moment = record[path[:depth]]
            if moment.ended and (depth < len(path) or moment.ended == "truncated"):
                shown = ", ".join(words[:depth])
                raise DeadEndError(f"the hand is {moment.ended} after [{shown}]")
        if moment.ended:
            return View(None, frozenset(), moment.rewards)
        return View(moment.actor, named(moment.legal, letters, way), (0, 0))

    return Side("the candidate", look)
