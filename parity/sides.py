"""A side: any implementation of Kuhn poker behind one function.

`view(deal, letters)` gives who acts at a node, the legal moves and the returns. Any two sides can
be walked in lockstep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from kuhn_bridge.bridge import information_state, letters_to_actions
from kuhn_bridge.rules import BETTING, DEALS, DECISIONS, Card
from kuhn_bridge.state import State
from parity.tally import Tally, format_value

Deal: TypeAlias = tuple[Card, Card]
Chance: TypeAlias = Mapping[tuple[int, ...], Mapping[int, float]]
"""The probability of each card after the cards dealt so far."""
Encoding: TypeAlias = Mapping[str, int]
"""The action ID of each word: check, bet, call, fold."""
Moves: TypeAlias = tuple[int, ...]

OURS: Encoding = {"check": 0, "bet": 1, "call": 0, "fold": 2}
PASS_BET: Encoding = {"check": 0, "bet": 1, "call": 1, "fold": 0}


@dataclass(frozen=True, slots=True)
class View:
    """One node of a side.

    `legal` is `None` for a side that does not list legal moves; `returns` may be player_0's only.
    """

    actor: int | None
    legal: frozenset[str] | None
    returns: tuple[float, ...]
    information_state: Hashable = None  # the actor's, by any name


@dataclass(frozen=True, slots=True)
class Side:
    """An implementation: its name, its nodes, and its chance nodes, none by default."""

    name: str
    view: Callable[[Deal, str], View]
    chance: Callable[[], Chance] = dict


class UnreachableError(Exception):
    """A side does not have a node that the game has."""


def action_words(ids: Sequence[int], letters: str, encoding: Encoding) -> frozenset[str]:
    """Legal action IDs as words; an ID without a meaning at this node becomes `action 2`."""
    words = ("call", "fold") if BETTING[letters].faces_bet else ("check", "bet")
    meaning = {encoding[word]: word for word in words} if letters in DECISIONS else {}
    return frozenset(meaning.get(int(i), f"action {i}") for i in ids)


def _core_view(deal: Deal, letters: str) -> View:
    state = State.new(*deal)
    for action in letters_to_actions(letters):
        state = state.act(action)
    legal = action_words(state.legal_actions, letters, OURS)
    if state.actor is None:
        return View(None, legal, state.returns)
    name = information_state(state.cards[state.actor], letters)
    return View(state.actor, legal, state.returns, name)


def deal_probabilities(deals: Sequence[Deal] = DEALS) -> Chance:
    """The probability of each card, if all `deals` are equally likely."""
    counts = Counter(deal[:n] for deal in deals for n in (0, 1, 2))
    return {
        dealt: {
            int(card): counts[*dealt, card] / counts[dealt] for card in Card if counts[*dealt, card]
        }
        for dealt in [(), *((card,) for card in Card)]
    }


CORE = Side("the core", _core_view, deal_probabilities)


def rulebook(book: Any, *, lowest: int = 0) -> Side:
    """An object with `is_terminal`, `get_current_player` and `get_payoff` over letters.

    `lowest` is its number of the jack.
    """

    def view(deal: Deal, letters: str) -> View:
        if book.is_terminal(letters):
            cards = [lowest + int(card) for card in deal]
            return View(None, None, (float(book.get_payoff(cards, letters)),))
        return View(book.get_current_player(letters), None, ())

    return Side("the rulebook", view)


def openspiel(game: pyspiel.Game, encoding: Encoding = PASS_BET, *, lowest: int = 0) -> Side:
    """An OpenSpiel game that deals three cards by chance; `lowest` is its number of the jack."""

    def state_at(deal: Sequence[int], letters: str = "") -> pyspiel.State:
        state = game.new_initial_state()
        for card in deal:
            state.apply_action(lowest + int(card))
        for depth, word in enumerate(BETTING[letters].words):
            if encoding[word] not in state.legal_actions():
                before = letters[:depth] or "the deal"
                raise UnreachableError(f"{word} is not possible after {before}")
            state.apply_action(encoding[word])
        return state

    def view(deal: Deal, letters: str) -> View:
        state = state_at(deal, letters)
        if state.is_chance_node():
            raise UnreachableError("chance deals a third time")
        if state.is_terminal():
            return View(None, frozenset(), tuple(state.returns()))
        actor = state.current_player()
        legal = action_words(state.legal_actions(), letters, encoding)
        return View(actor, legal, tuple(state.returns()), state.information_state_string(actor))

    def chance() -> Chance:
        return {
            dealt: {card - lowest: share for card, share in state_at(dealt).chance_outcomes()}
            for dealt in [(), *((int(card),) for card in Card)]
        }

    return Side("OpenSpiel", view, chance)


def reference() -> Side:
    """OpenSpiel's C++ `kuhn_poker`, which all other sides are compared with."""
    return openspiel(pyspiel.load_game("kuhn_poker"))


# An AEC environment is played once through every action sequence of each deal. What is recorded
# can then be read with any meaning of its action IDs.


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """One node of a recorded hand, in the environment's own action IDs."""

    actor: int
    legal: Moves
    end: str = ""  # how the hand ended, if it did
    rewards: tuple[float, ...] = ()
    observation: bytes = b""


def recorded(
    records: Mapping[Deal, Mapping[Moves, RecordedNode]], encoding: Encoding = OURS, *, name: str
) -> Side:
    """A recorded AEC environment."""

    def view(deal: Deal, letters: str) -> View:
        if deal not in records:
            raise UnreachableError("this deal never comes up")
        record, words = records[deal], BETTING[letters].words
        path = tuple(encoding[word] for word in words)
        for depth in range(len(path) + 1):
            if path[:depth] not in record:
                raise UnreachableError(f"{words[depth - 1]} is not possible there")
            node = record[path[:depth]]
            if node.end and (depth < len(path) or node.end != "over"):
                moves = ", ".join(words[:depth])
                raise UnreachableError(f"the hand is {node.end} after [{moves}]")
        if node.end:
            return View(None, frozenset(), node.rewards)
        legal = action_words(node.legal, letters, encoding)
        return View(node.actor, legal, (0, 0), (node.actor, node.observation))

    return Side(name, view)


def record_hands(reset: Callable[[], Any]) -> dict[Moves, RecordedNode]:
    """Every sequence of legal actions from one deal, up to one move more than Kuhn's longest.

    `reset` returns the environment with that deal.
    """
    has_mask = _mask(reset()) is not None
    record: dict[Moves, RecordedNode] = {}
    queue: list[Moves] = [()]
    for path in queue:
        env = reset()
        try:
            for action in path:
                env.step(action)
        except (Exception, SystemExit) as error:  # the code of a candidate may fail in any way
            parent = record[path[:-1]]
            if has_mask:
                record[path] = RecordedNode(parent.actor, (), f"broken off by {error_text(error)}")
            else:  # without masks, an illegal action is one that raises
                legal = tuple(action for action in parent.legal if action != path[-1])
                record[path[:-1]] = replace(parent, legal=legal)
            continue
        record[path] = node = _recorded_node(env)
        if not node.end and len(path) <= max(map(len, BETTING)):
            queue.extend((*path, action) for action in node.legal)
    return record


def _recorded_node(env: Any) -> RecordedNode:
    actor = env.possible_agents.index(env.agent_selection)
    if any(env.truncations.values()):
        return RecordedNode(actor, (), "truncated")
    if any(env.terminations.values()):
        try:
            return RecordedNode(actor, (), "over", tuple(final_rewards(env)))
        except UnreachableError as error:
            return RecordedNode(actor, (), f"over, but {error},")
    mask = _mask(env) or [1] * int(env.action_space(env.agent_selection).n)
    legal = tuple(action for action, allowed in enumerate(mask) if allowed)
    observation = observation_bytes(env.observe(env.agent_selection))
    return RecordedNode(actor, legal, observation=observation)


def _mask(env: Any) -> list[int] | None:
    """The mask of the agent to act, from its observation or its info."""
    observation, _, _, _, info = env.last()
    for source in (observation, info):
        if isinstance(source, Mapping) and "action_mask" in source:
            return list(source["action_mask"])
    return None


def observation_bytes(observation: Any) -> bytes:
    """An observation as bytes, without its mask."""
    if isinstance(observation, Mapping):
        keys = sorted(key for key in observation if key != "action_mask")
        return b"".join(observation_bytes(observation[key]) for key in keys)
    if isinstance(observation, (list, tuple)):
        return b"".join(map(observation_bytes, observation))
    if isinstance(observation, str):
        return observation.encode()
    return np.asarray(observation, np.float64).tobytes()


def final_rewards(env: Any) -> list[float]:
    """Each agent's last reward, read by `last()` in the dead steps, as PettingZoo's users do."""
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(len(rewards)):
        rewards[agent] = float(env.last()[1])
        env.step(None)
    if env.agents:
        raise UnreachableError("finished agents do not leave on step(None)")
    return list(rewards.values())


def hand(deal: Deal, letters: str) -> str:
    """A node in a message: `pp with K against Q`."""
    return f"{letters or 'the deal'} with {deal[0].name} against {deal[1].name}"


def compare(ours: Side, theirs: Side, tally: Tally) -> None:
    """Walk both sides through all 54 dealt nodes, and the 4 chance nodes if both have them."""
    try:
        if chance := ours.chance():
            _compare_chance(chance, theirs.chance(), tally)
    except Exception as error:  # the code of a candidate may fail in any way
        tally.fail(f"dealing: {error_text(error)}, {theirs.name} deals two cards")
    for deal, letters in product(DEALS, BETTING):
        _compare_node(deal, letters, ours, theirs, tally)


def compare_information_states(ours: Side, theirs: Side, tally: Tally) -> None:
    """Two nodes share an information state on one side exactly if they do on the other."""
    for (here, mine, right), (there, mine2, right2) in combinations(_decisions(ours, theirs), 2):
        shared = (mine.actor, mine.information_state) == (mine2.actor, mine2.information_state)
        expected = (right.actor, right.information_state) == (
            right2.actor,
            right2.information_state,
        )
        phrase = "has the same information state at both: {}"
        tally.same(f"{here} / {there}", phrase, shared, expected)


def compare_observations(ours: Side, theirs: Side, tally: Tally) -> None:
    """Nodes that share an information state on their side have the same observation on ours."""
    first: dict[Hashable, tuple[str, Hashable]] = {}
    for where, mine, right in _decisions(ours, theirs):
        here = (where, mine.information_state)
        there, observation = first.setdefault(right.information_state, here)
        claim = f"player_{right.actor} observes the same as at {there}"
        tally.holds(where, claim, mine.information_state == observation)


def _decisions(ours: Side, theirs: Side) -> Iterator[tuple[str, View, View]]:
    """Each decision node: its label and both sides' views."""
    for deal, letters in product(DEALS, DECISIONS):
        yield hand(deal, letters), ours.view(deal, letters), theirs.view(deal, letters)


def _compare_chance(ours: Chance, theirs: Chance, tally: Tally) -> None:
    for dealt, outcomes in theirs.items():
        where = f"dealing after {[Card(card).name for card in dealt]}"
        mine = ours.get(dealt, {})
        for card in Card:
            phrase = f"deals {card.name} with probability {{}}"
            tally.close(where, phrase, mine.get(card, 0.0), outcomes.get(card, 0.0), 1e-15)


def _compare_node(deal: Deal, letters: str, ours: Side, theirs: Side, tally: Tally) -> None:
    where, right = hand(deal, letters), theirs.view(deal, letters)
    try:
        mine = ours.view(deal, letters)
    except (Exception, SystemExit) as error:
        plays = f"pays {format_value(right.returns[0])}" if right.actor is None else "plays on"
        tally.fail(f"{where}: {error_text(error)}, {theirs.name} {plays}")
        return
    tally.same(where, "lets {} act", _agent(mine.actor), _agent(right.actor))
    if mine.legal is not None:
        tally.same(where, "allows {}", mine.legal, right.legal)
    if right.actor is None:
        tally.same(where, "pays {}", mine.returns[0] if mine.returns else None, right.returns[0])
        if len(mine.returns) > 1:
            tally.same(where, "pays both together {}", sum(mine.returns), sum(right.returns))


def error_text(error: BaseException) -> str:
    """An error of a side in one line."""
    if isinstance(error, UnreachableError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _agent(seat: int | None) -> str | None:
    return None if seat is None else f"player_{seat}"
