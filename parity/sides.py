"""A side: any implementation of Kuhn poker, seen through one small window.

`look(deal, letters)` tells who acts, what that player may do and what the hand pays. Whatever
can be looked at so can be walked in lockstep with whatever else can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import pyspiel

from kuhn_bridge import rules
from kuhn_bridge.bridge import information_state, letters_to_actions
from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, Card
from kuhn_bridge.state import State
from parity.tally import Tally, show

Deal: TypeAlias = tuple[Card, Card]
Chance: TypeAlias = Mapping[tuple[int, ...], Mapping[int, float]]
Encoding: TypeAlias = Mapping[str, int]
"""The action ID of each word: check, bet, call, fold."""

OURS: Encoding = {"check": 0, "bet": 1, "call": 0, "fold": 2}
PASS_BET: Encoding = {"check": 0, "bet": 1, "call": 1, "fold": 0}


@dataclass(frozen=True, slots=True)
class View:
    """One node as a side sees it; `knows` is the actor's information state by any name.

    `words` is `None`, and `returns` player_0's alone, for a side that tells no more.
    """

    actor: int | None
    words: frozenset[str] | None
    returns: tuple[float, ...]
    knows: Hashable = None


@dataclass(frozen=True, slots=True)
class Side:
    """An implementation: its name, its window, and its chance nodes, none by default."""

    name: str
    look: Callable[[Deal, str], View]
    chance: Callable[[], Chance] = dict


def words_at(letters: str) -> tuple[str, ...]:
    """The two moves at a decision: check and bet, or call and fold."""
    return ("call", "fold") if BETTING[letters].faces_bet else ("check", "bet")


def named(ids: Sequence[int], letters: str, encoding: Encoding) -> frozenset[str]:
    """Legal action IDs as words; an ID that means nothing here is shown as a number."""
    meaning = {encoding[word]: word for word in words_at(letters)} if letters in DECISIONS else {}
    return frozenset(meaning.get(int(i), f"action {i}") for i in ids)


def core() -> Side:
    """The native core."""

    def look(deal: Deal, letters: str) -> View:
        state = State.new(*deal)
        for action in letters_to_actions(letters):
            state = state.act(action)
        knows = (
            None if state.actor is None else information_state(state.cards[state.actor], letters)
        )
        return View(state.actor, named(state.legal_actions, letters, OURS), state.returns, knows)

    return Side("the core", look, _counted_deals)


def _counted_deals() -> Chance:
    """Chance as it follows from the list of equally likely deals."""
    prefixes = Counter(deal[:n] for deal in rules.DEALS for n in (0, 1, 2))
    return {
        prefix: {
            int(card): prefixes[*prefix, card] / prefixes[prefix]
            for card in Card
            if prefixes[*prefix, card]
        }
        for prefix in [(), *((card,) for card in Card)]
    }


def rulebook(book: Any, *, lowest: int = 0, name: str = "the rulebook") -> Side:
    """Anything with `is_terminal`, `get_current_player` and `get_payoff` over letters.

    `lowest` is its number of the jack.
    """

    def look(deal: Deal, letters: str) -> View:
        if book.is_terminal(letters):
            cards = [lowest + int(card) for card in deal]
            return View(None, None, (float(book.get_payoff(cards, letters)),))
        return View(book.get_current_player(letters), None, ())

    return Side(name, look)


def openspiel(
    game: pyspiel.Game, encoding: Encoding = PASS_BET, *, lowest: int = 0, name: str = "OpenSpiel"
) -> Side:
    """An OpenSpiel game that deals three cards by chance; `lowest` is its number of the jack."""

    def state_at(deal: Sequence[int], letters: str = "") -> pyspiel.State:
        state = game.new_initial_state()
        for card in deal:
            state.apply_action(lowest + int(card))
        for depth, word in enumerate(BETTING[letters].words):
            action = encoding[word]
            if action not in state.legal_actions():
                raise DeadEndError(f"{word} is not possible after {letters[:depth] or 'the deal'}")
            state.apply_action(action)
        return state

    def dealt(deal: Deal, letters: str) -> pyspiel.State:
        state = state_at(deal, letters)
        if state.is_chance_node():
            raise DeadEndError("chance deals once more")
        return state

    def look(deal: Deal, letters: str) -> View:
        state = dealt(deal, letters)
        if state.is_terminal():
            return View(None, frozenset(), tuple(state.returns()))
        actor = state.current_player()
        words = named(state.legal_actions(), letters, encoding)
        return View(actor, words, tuple(state.returns()), state.information_state_string(actor))

    def chance() -> Chance:
        prefixes = [(), *((int(card),) for card in Card)]
        return {
            prefix: {card - lowest: share for card, share in state_at(prefix).chance_outcomes()}
            for prefix in prefixes
        }

    return Side(name, look, chance)


class DeadEndError(Exception):
    """A side cannot be led to a node that the game has."""


def aec(reset: Callable[[Deal], Any], encoding: Encoding = OURS, *, name: str) -> Side:
    """A PettingZoo AEC environment; `reset` gives it back with a hand dealt."""

    def look(deal: Deal, letters: str) -> View:
        env = reset(deal)
        for depth, word in enumerate(BETTING[letters].words):
            if _over(env):
                raise DeadEndError(_how_it_ended(env, letters[:depth]))
            env.step(encoding[word])
        if _over(env):
            if any(env.truncations.values()):
                raise DeadEndError(_how_it_ended(env, letters))
            return View(None, frozenset(), tuple(leaving_rewards(env)))
        actor = AGENTS.index(env.agent_selection)
        return View(actor, named(legal_ids(env), letters, encoding), tuple(env.rewards.values()))

    return Side(name, look)


def mask_of(env: Any) -> list[int] | None:
    """The mask of the agent to act, wherever the environment puts it."""
    observation, _, _, _, info = env.last()
    for place in (observation, info):
        if isinstance(place, Mapping) and "action_mask" in place:
            return list(place["action_mask"])
    return None


def legal_ids(env: Any) -> tuple[int, ...]:
    """The action IDs that the mask allows; all of them where there is no mask."""
    mask = mask_of(env) or [1] * int(env.action_space(env.agent_selection).n)
    return tuple(i for i, allowed in enumerate(mask) if allowed)


def leaving_rewards(env: Any) -> list[float]:
    """Each agent's last reward, read as agents read it: by `last()` in the dead steps."""
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(len(rewards)):
        rewards[agent] = float(env.last()[1])
        env.step(None)
    if env.agents:
        raise DeadEndError("finished agents do not leave on step(None)")
    return list(rewards.values())


def _over(env: Any) -> bool:
    return bool(any(env.terminations.values()) or any(env.truncations.values()))


def _how_it_ended(env: Any, letters: str) -> str:
    how = "truncated" if any(env.truncations.values()) else "over"
    return f"the hand is {how} after [{', '.join(BETTING[letters].words)}]"


def hand(deal: Deal, letters: str) -> str:
    """A node as people read it: `pp with K against Q`."""
    shown = letters or "the deal"
    return f"{shown} with {deal[0].name} against {deal[1].name}"


def compare(ours: Side, theirs: Side, tally: Tally) -> None:
    """Walk both sides through all 54 dealt nodes, and the 4 chance nodes where both have them."""
    try:
        if chance := ours.chance():
            _compare_chance(chance, theirs.chance(), tally)
    except Exception as error:  # a stranger's code may fail in any way
        tally.fail(f"dealing: {told(error)}, {theirs.name} deals two cards")
    for deal in rules.DEALS:
        for letters in BETTING:
            _compare_node(deal, letters, ours, theirs, tally)


def compare_knowledge(ours: Side, theirs: Side, tally: Tally) -> None:
    """Two nodes share an information state on one side exactly when they do on the other."""
    spots = [(deal, letters) for deal in rules.DEALS for letters in DECISIONS]
    views = [(hand(*spot), ours.look(*spot), theirs.look(*spot)) for spot in spots]
    for (one, mine, his), (other, my_other, his_other) in combinations(views, 2):
        shared = (mine.actor, mine.knows) == (my_other.actor, my_other.knows)
        truly = (his.actor, his.knows) == (his_other.actor, his_other.knows)
        phrase = "says the actor cannot tell them apart: {}"
        tally.same(f"{one} / {other}", phrase, shared, truly)


def compare_sight(ours: Side, theirs: Side, tally: Tally) -> None:
    """Where the actor cannot tell two nodes apart, what it is shown is the same."""
    seen: dict[Hashable, tuple[str, Hashable]] = {}
    for deal in rules.DEALS:
        for letters in DECISIONS:
            right, mine = theirs.look(deal, letters), ours.look(deal, letters)
            first, sight = seen.setdefault(right.knows, (hand(deal, letters), mine.knows))
            claim = f"player_{right.actor} is shown the same as at {first}"
            tally.holds(hand(deal, letters), claim, mine.knows == sight)


def _compare_chance(ours: Chance, theirs: Chance, tally: Tally) -> None:
    for dealt, outcomes in theirs.items():
        where = f"dealing after {[Card(card).name for card in dealt]}"
        mine = ours.get(dealt, {})
        for card in Card:
            phrase = f"deals {card.name} with probability {{}}"
            tally.close(where, phrase, mine.get(card, 0.0), outcomes.get(card, 0.0), 1e-15)


def _compare_node(deal: Deal, letters: str, ours: Side, theirs: Side, tally: Tally) -> None:
    where, right = hand(deal, letters), theirs.look(deal, letters)
    try:
        mine = ours.look(deal, letters)
    except (Exception, SystemExit) as error:
        plays = f"pays {show(right.returns[0])}" if right.actor is None else "plays on"
        tally.fail(f"{where}: {told(error)}, {theirs.name} {plays}")
        return
    tally.same(where, "lets {} act", _agent(mine.actor), _agent(right.actor))
    if mine.words is not None:
        tally.same(where, "allows {}", mine.words, right.words)
    if right.actor is None:
        tally.same(where, "pays {}", mine.returns[0] if mine.returns else None, right.returns[0])
        if len(mine.returns) > 1:
            tally.same(where, "pays both together {}", sum(mine.returns), sum(right.returns))


def told(error: BaseException) -> str:
    """What went wrong on a side, in one line."""
    if isinstance(error, DeadEndError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _agent(seat: int | None) -> str | None:
    return None if seat is None else f"player_{seat}"


def reference() -> Side:
    """OpenSpiel's C++ `kuhn_poker`: the side that is right."""
    return openspiel(pyspiel.load_game("kuhn_poker"))
