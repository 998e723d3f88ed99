"""Anyone's Kuhn poker against OpenSpiel's: `python -m parity.check --candidate WHERE:WHAT`."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pyspiel
from pettingzoo import AECEnv

from algorithms.support.command import EXIT_FAILED, EXIT_OK
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.rules import BETTING, DEALS, PLAYERS, Card
from parity.sides import (
    DeadEndError,
    Deal,
    Encoding,
    Side,
    View,
    compare,
    compare_knowledge,
    compare_sight,
    leaving_rewards,
    legal_ids,
    mask_of,
    named,
    openspiel,
    reference,
    rulebook,
    told,
)
from parity.tally import Tally

WORDS = ("check", "bet", "call", "fold")
METHODS = ("is_terminal", "get_current_player", "get_payoff")
SEEDS = 300  # each of six deals is then missed with probability 6 * (5/6)**300 < 1e-22
LUCK = 6  # standard deviations that a fair deck may be off by
Sight: TypeAlias = tuple[bytes, bytes]
"""What both players see first."""
SHAPES = (
    "a rulebook with is_terminal, get_current_player and get_payoff, a PettingZoo AEC environment "
    "or factory, or an OpenSpiel game"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was found: its kind, every way to read it, faults that no reading has to do with.

    `from_one` reads it with cards 1 to 3, to tell its author.
    """

    kind: str
    readings: tuple[Side, ...]
    faults: tuple[str, ...] = ()
    knowledge: Callable[[Side, Side, Tally], None] | None = None
    from_one: tuple[Side, ...] = ()


def report(spec: str, *, actions: str | None, as_json: bool) -> int:
    """Print how the candidate differs from OpenSpiel; 0 = it does not, 1 = it does."""
    meaning = None if actions is None else parse_actions(actions)
    try:
        candidate = recognise(load(spec), meaning)
    except BridgeError:
        raise
    except (Exception, SystemExit) as error:  # a stranger's code may fail in any way
        raise UsageError(f"the candidate {spec!r} cannot be played: {told(error)}") from None
    tally = judge(candidate)
    advice = hint(candidate, tally)
    if as_json:
        found = {"kind": candidate.kind, "compared": tally.compared, "wrong": tally.wrong}
        more = {"cases": tally.cases, "hint": advice}
        print(json.dumps({"candidate": spec, **found, **more}, indent=2))
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
    """The comparison under the reading that fits best: what is wrong under all is wrong."""
    right = _remembered(reference())
    best = Tally(ours="")
    for fault in candidate.faults:
        best.fail(fault)
    tallies: list[tuple[int, int, Tally, Side]] = []
    for side in candidate.readings:
        tally = Tally(ours="")
        compare(side, right, tally)
        tallies.append((tally.wrong, len(tallies), tally, side))
        if not tally.wrong:
            break
    if tallies:
        *_, fits, side = min(tallies)
        if candidate.knowledge and not fits.wrong:
            candidate.knowledge(side, right, fits)
        best.add(fits)
    return best


def hint(candidate: Candidate, tally: Tally) -> str:
    """What its author may have meant; empty where nothing is wrong or nothing would help."""
    if not tally.wrong or not candidate.from_one:
        return ""
    numbered = judge(replace(candidate, readings=candidate.from_one))
    if numbered.wrong >= tally.wrong:
        return ""
    rest = f"{numbered.wrong} would differ" if numbered.wrong else "it would agree"
    return f"its cards seem to be 1 to 3, but J, Q, K are 0, 1, 2 here; renumbered, {rest}"


def load(spec: str) -> Any:
    """The object that `package.module:object`, `file.py:object` or a game string names."""
    where, colon, what = spec.partition(":")
    if not colon and spec.partition("(")[0] not in pyspiel.registered_names():
        raise UsageError(
            f"cannot load the candidate {spec!r}: no such OpenSpiel game; "
            "a file or a module wants an object: kuhn.py:KuhnPoker"
        )
    try:
        if not colon:
            return pyspiel.load_game(spec)
        module = _from_file(Path(where)) if where.endswith(".py") else _from_module(where)
        found: Any = module
        for name in what.split("."):
            found = getattr(found, name)
        return found
    except (Exception, SystemExit) as error:  # so may a stranger's module
        raise UsageError(f"cannot load the candidate {spec!r}: {told(error)}") from None


def recognise(thing: Any, encoding: Encoding | None = None) -> Candidate:
    """What kind of Kuhn poker an object is, by its methods."""
    if isinstance(thing, str):
        return recognise(load(thing), encoding)
    if all(callable(getattr(thing, method, None)) for method in METHODS):
        book = thing() if isinstance(thing, type) else thing
        orders = (book, HistoryFirst(book))
        return Candidate(
            "a rulebook in letters",
            tuple(rulebook(order) for order in orders),
            from_one=tuple(rulebook(order, lowest=1) for order in orders),
        )
    if isinstance(thing, pyspiel.Game):
        if thing.num_players() != len(PLAYERS):
            raise UsageError(f"{thing} has {thing.num_players()} players, not 2")
        ways = list(encodings(thing.num_distinct_actions(), encoding))
        return Candidate(
            "an OpenSpiel game",
            tuple(openspiel(thing, way) for way in ways),
            knowledge=compare_knowledge,
            from_one=tuple(openspiel(thing, way, lowest=1) for way in ways),
        )
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
            if found.setdefault(word.strip(), int(number)) != int(number):
                raise UsageError(f"--actions gives {word.strip()} two IDs")
    missing = [word for word in WORDS if word not in found]
    if missing:
        raise UsageError(f"--actions does not say what is {', '.join(missing)}")
    for one, other in (("check", "bet"), ("call", "fold")):
        if found[one] == found[other]:
            raise UsageError(f"--actions gives {one} and {other} the same ID")
    return found


def encodings(size: int, given: Encoding | None = None) -> Iterator[Encoding]:
    """The given meaning of action IDs, or every possible one of `size` IDs."""
    if given is not None:
        if max(given.values()) >= size:
            raise UsageError(
                f"--actions names ID {max(given.values())}; the IDs are 0 to {size - 1}"
            )
        yield given
        return
    if size not in {2, 3, 4}:
        raise UsageError(f"the candidate has {size} actions; Kuhn poker is read with 2, 3 or 4")
    for ids in product(range(size), repeat=len(WORDS)):
        meaning = dict(zip(WORDS, ids, strict=True))
        together = meaning["check"] != meaning["bet"] and meaning["call"] != meaning["fold"]
        if together and len(set(ids)) == size:
            yield meaning


def _from_module(name: str) -> ModuleType:
    """A module by name; those of the working directory come last, so they shadow none of ours."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    """The module of a file, as `python path` would find it and what stands beside it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class HistoryFirst:
    """A rulebook read as one whose author put the history before the cards."""

    book: Any

    def is_terminal(self, history: str) -> bool:
        """As the book says."""
        return bool(self.book.is_terminal(history))

    def get_current_player(self, history: str) -> int:
        """As the book says."""
        return int(self.book.get_current_player(history))

    def get_payoff(self, cards: Sequence[int], history: str) -> float:
        """The other way round."""
        return float(self.book.get_payoff(history, cards))


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
    sight: bytes = b""


def _recognise_env(env: AECEnv, encoding: Encoding | None) -> Candidate:
    kind = "a PettingZoo AEC environment"
    starts, counts = _starts(env)
    sights = [sorted({sight[seat] for sight in starts}) for seat in (0, 1)]
    faults = [
        f"at the start player_{seat} sees {len(found)} different things; three cards make 3"
        for seat, found in enumerate(sights)
        if len(found) != len(Card)
    ]
    if faults:
        return Candidate(kind, (), tuple(faults))
    records = {sight: _record(env, seed) for sight, seed in starts.items()}
    ways = encodings(int(env.action_space(env.possible_agents[0]).n), encoding)
    cards = list(_card_readings(sights, records))
    if not cards:
        return Candidate(kind, (), ("both players can hold the same card",))
    readings = tuple(_reading(way, names, records) for way, names in product(ways, cards))
    fair, most = SEEDS / len(DEALS), max(counts.values())
    loaded = f"one deal comes up {most} times in {SEEDS} seeds, where {fair:.0f} are fair"
    faults = [loaded] if most - fair > LUCK * math.sqrt(fair) else []
    return Candidate(kind, readings, tuple(faults), compare_sight)


def _starts(env: AECEnv) -> tuple[dict[Sight, int], Counter[Sight]]:
    """A seed for each different pair of first observations, and how often each comes up."""
    if len(env.possible_agents) != 2:
        raise UsageError(f"the candidate has {len(env.possible_agents)} agents, not 2")
    starts: dict[Sight, int] = {}
    counts: Counter[Sight] = Counter()
    for seed in range(SEEDS):
        sight = _sights(env, seed)
        starts.setdefault(sight, seed)
        counts[sight] += 1
    for sight, seed in starts.items():
        if _sights(env, seed) != sight:
            raise UsageError(f"the candidate's reset(seed={seed}) does not repeat its deal")
    return starts, counts


def _sights(env: AECEnv, seed: int) -> Sight:
    env.reset(seed=seed)
    first, second = (_bytes(env.observe(agent)) for agent in env.possible_agents)
    return first, second


def _bytes(seen: Any) -> bytes:
    """An observation as bytes, without its mask."""
    if isinstance(seen, Mapping):
        return b"".join(_bytes(seen[key]) for key in sorted(seen) if key != "action_mask")
    if isinstance(seen, (list, tuple)):
        return b"".join(map(_bytes, seen))
    return seen.encode() if isinstance(seen, str) else np.asarray(seen, np.float64).tobytes()


def _record(env: AECEnv, seed: int) -> dict[tuple[int, ...], Moment]:
    """Every sequence of legal actions from one deal, one move longer than Kuhn's longest."""
    env.reset(seed=seed)
    masked = mask_of(env) is not None
    record: dict[tuple[int, ...], Moment] = {}
    queue: list[tuple[int, ...]] = [()]
    for path in queue:
        env.reset(seed=seed)
        try:
            for action in path:
                env.step(action)
        except (Exception, SystemExit) as error:
            parent = record[path[:-1]]
            if masked:
                record[path] = Moment(parent.actor, (), f"broken off by {told(error)}")
            else:  # that is how an environment without masks says that an action is illegal
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
        try:
            return Moment(actor, (), "over", tuple(leaving_rewards(env)))
        except DeadEndError as end:
            return Moment(actor, (), f"over, but {end},")
    return Moment(actor, legal_ids(env), sight=_bytes(env.observe(env.agent_selection)))


def _card_readings(
    sights: Sequence[Sequence[bytes]], records: Iterable[Sight]
) -> Iterator[dict[Deal, Sight]]:
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
    cards: dict[Deal, Sight],
    records: dict[Sight, dict[tuple[int, ...], Moment]],
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
            if moment.ended and (depth < len(path) or moment.ended != "over"):
                shown = ", ".join(words[:depth])
                raise DeadEndError(f"the hand is {moment.ended} after [{shown}]")
        if moment.ended:
            return View(None, frozenset(), moment.rewards)
        legal = named(moment.legal, letters, way)
        return View(moment.actor, legal, (0, 0), (moment.actor, moment.sight))

    return Side("the candidate", look)
