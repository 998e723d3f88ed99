"""Implementations of Kuhn poker, ours and others, in one form that can be compared node by node.

An `Implementation` is a function `view(deal, letters)` that gives a `View` of a node: the player
to act, the legal moves and the returns. Whatever speaks letters, OpenSpiel's states or PettingZoo's
AEC interface is turned into that form here, and `compare` walks two of them side by side.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel

from kuhn_bridge.bridge import information_state, letters_to_actions
from kuhn_bridge.rules import BETTING, DEALS, DECISIONS, Card
from kuhn_bridge.state import State
from parity.registry import Tally, format_value

Deal: TypeAlias = tuple[Card, Card]
ChanceProbabilities: TypeAlias = Mapping[tuple[int, ...], Mapping[int, float]]
"""The probability of each next card, by the cards dealt so far."""
ActionIds: TypeAlias = Mapping[str, int]
"""The action ID of each word: check, bet, call, fold."""

OUR_IDS: ActionIds = {"check": 0, "bet": 1, "call": 0, "fold": 2}
PASS_BET_IDS: ActionIds = {"check": 0, "bet": 1, "call": 1, "fold": 0}  # of `kuhn_poker`
CHANCE_NODES = ((), *((card,) for card in Card))  # the cards dealt so far
CHANCE_TOLERANCE = 1e-15


@dataclass(frozen=True, slots=True)
class View:
    """What an implementation says about one node."""

    actor: int | None  # None at the end
    legal: frozenset[Any] | None  # None if the implementation does not list legal moves
    returns: Sequence[float]  # may be player_0's only
    information_state: Hashable = None  # the actor's, by any name


def _no_chance_nodes() -> ChanceProbabilities:
    return {}


@dataclass(frozen=True, slots=True)
class Implementation:
    """An implementation of Kuhn poker: its nodes, and its chance nodes if it shows them."""

    view: Callable[[Deal, str], View]
    chance: Callable[[], ChanceProbabilities] = _no_chance_nodes


class UnreachableError(Exception):
    """An implementation does not have a node that the game has."""


def action_words(ids: Iterable[int], letters: str, action_ids: ActionIds) -> frozenset[str]:
    """Legal action IDs as words; an ID without a meaning at this node becomes `action 2`."""
    meaning: dict[int, str] = {}
    if letters in DECISIONS:
        words = ("call", "fold") if BETTING[letters].faces_bet else ("check", "bet")
        meaning = {action_ids[word]: word for word in words}
    return frozenset(meaning.get(int(action), f"action {action}") for action in ids)


# ---------------------------------------------------------------------------------------------
# Our core
# ---------------------------------------------------------------------------------------------


def _core_view(deal: Deal, letters: str) -> View:
    state = State.new(*deal)
    for action in letters_to_actions(letters):
        state = state.act(action)
    name = None
    if state.actor is not None:
        name = information_state(deal[state.actor], letters)
    return View(
        actor=state.actor,
        legal=action_words(state.legal_actions, letters, OUR_IDS),
        returns=state.returns,
        information_state=name,
    )


def _core_chance() -> ChanceProbabilities:
    """All deals are equally likely, so a card's probability is its share of the deals."""
    deals_with = Counter(deal[:length] for deal in DEALS for length in (0, 1, 2))
    return {
        dealt: {card: deals_with[*dealt, card] / deals_with[dealt] for card in Card}
        for dealt in CHANCE_NODES
    }


CORE = Implementation(_core_view, _core_chance)


# ---------------------------------------------------------------------------------------------
# Rulebooks in letters
# ---------------------------------------------------------------------------------------------


def from_rulebook(
    book: Any, lowest_card: int = 0, *, history_first: bool = False
) -> Implementation:
    """An object with `is_terminal`, `get_current_player` and `get_payoff` over letters.

    Args:
        book: the object.
        lowest_card: its number of the jack.
        history_first: whether `get_payoff` takes the history before the cards.
    """

    def view(deal: Deal, letters: str) -> View:
        if not book.is_terminal(letters):
            return View(actor=book.get_current_player(letters), legal=None, returns=())
        cards = [lowest_card + int(card) for card in deal]
        if history_first:
            payoff = book.get_payoff(letters, cards)
        else:
            payoff = book.get_payoff(cards, letters)
        return View(actor=None, legal=None, returns=(float(payoff),))

    return Implementation(view)


# ---------------------------------------------------------------------------------------------
# OpenSpiel's games
# ---------------------------------------------------------------------------------------------


def from_openspiel(
    game: pyspiel.Game, action_ids: ActionIds = PASS_BET_IDS, lowest_card: int = 0
) -> Implementation:
    """An OpenSpiel game that deals the cards by chance; `lowest_card` is its number of the jack."""

    def state_at(deal: Sequence[int], letters: str = "") -> pyspiel.State:
        state = game.new_initial_state()
        for card in deal:
            state.apply_action(lowest_card + int(card))
        for depth, word in enumerate(BETTING[letters].words):
            if action_ids[word] not in state.legal_actions():
                before = letters[:depth] or "the deal"
                raise UnreachableError(f"{word} is not possible after {before}")
            state.apply_action(action_ids[word])
        return state

    def view(deal: Deal, letters: str) -> View:
        state = state_at(deal, letters)
        if state.is_chance_node():
            raise UnreachableError("chance deals a third time")
        if state.is_terminal():
            return View(actor=None, legal=frozenset(), returns=state.returns())
        actor = state.current_player()
        return View(
            actor=actor,
            legal=action_words(state.legal_actions(), letters, action_ids),
            returns=state.returns(),
            information_state=state.information_state_string(actor),
        )

    def chance() -> ChanceProbabilities:
        probabilities: dict[tuple[int, ...], Mapping[int, float]] = {}
        for dealt in CHANCE_NODES:
            outcomes = state_at(dealt).chance_outcomes()
            probabilities[dealt] = {card - lowest_card: share for card, share in outcomes}
        return probabilities

    return Implementation(cache(view), chance)


REFERENCE = from_openspiel(pyspiel.load_game("kuhn_poker"))  # compared with all others


# ---------------------------------------------------------------------------------------------
# PettingZoo's AEC environments
# ---------------------------------------------------------------------------------------------

AECReader: TypeAlias = Callable[[Any, tuple[int, ...]], View]
"""The view after a start and moves. A start is a seed, or the cards if the environment is ours.

Legal moves are the environment's own action IDs; they are None if the hand is truncated.
"""


def aec_reader(env: Any) -> AECReader:
    """Reads each view of an AEC environment once, so that it can be interpreted in many ways."""

    def replay(start: Any, moves: tuple[int, ...]) -> None:
        if isinstance(start, int):
            env.reset(seed=start)
        else:
            env.reset(options={"cards": start})
        for action in moves:
            env.step(action)

    def legal_actions(start: Any, moves: tuple[int, ...]) -> set[int]:
        """Those of the mask; without a mask, all actions that do not raise."""
        actions = range(int(env.action_space(env.agent_selection).n))
        observation, _, _, _, info = env.last()
        for holder in (observation, info):
            if isinstance(holder, Mapping) and "action_mask" in holder:
                return {action for action in actions if holder["action_mask"][action]}
        legal = set()
        for action in actions:
            with suppress(Exception):
                replay(start, (*moves, action))
                legal.add(action)
        return legal

    @cache
    def read(start: Any, moves: tuple[int, ...]) -> View:
        replay(start, moves)
        if any(env.truncations.values()):
            return View(actor=None, legal=None, returns=())
        if any(env.terminations.values()):
            return View(actor=None, legal=frozenset(), returns=final_rewards(env))
        agent = env.agent_selection
        actor = env.possible_agents.index(agent)
        observation = observation_text(env.observe(agent))
        return View(
            actor=actor,
            legal=frozenset(legal_actions(start, moves)),
            returns=(0, 0),
            information_state=(actor, observation),
        )

    return read


def from_aec(read: AECReader, starts: Mapping[Deal, Any], action_ids: ActionIds) -> Implementation:
    """An AEC environment; `starts` says how it is reset for each deal."""

    def require_possible(deal: Deal, words: Sequence[str], depth: int) -> None:
        """Raise an error unless the move `words[depth]` is possible after those before it."""
        word = words[depth]
        node = read(starts[deal], tuple(action_ids[before] for before in words[:depth]))
        if node.legal is None or node.actor is None:
            end = "truncated" if node.legal is None else "over"
            raise UnreachableError(f"the hand is {end} after [{', '.join(words[:depth])}]")
        if action_ids[word] not in node.legal:
            raise UnreachableError(f"{word} is not possible there")

    def view(deal: Deal, letters: str) -> View:
        if deal not in starts:
            raise UnreachableError("this deal never comes up")
        words = BETTING[letters].words
        for depth in range(len(words)):
            require_possible(deal, words, depth)
        node = read(starts[deal], tuple(action_ids[word] for word in words))
        if node.legal is None:
            raise UnreachableError(f"the hand is truncated after [{', '.join(words)}]")
        return replace(node, legal=action_words(node.legal, letters, action_ids))

    return Implementation(view)


def observation_text(observation: Any) -> str:
    """An observation as text, without its mask: equal for equal observations."""
    if isinstance(observation, Mapping):
        observation = {key: observation[key] for key in observation if key != "action_mask"}
    return json.dumps(observation, default=lambda x: np.asarray(x).tolist(), sort_keys=True)


def final_rewards(env: Any) -> tuple[float, ...]:
    """Each agent's last reward, read by `last()` in the dead steps, as PettingZoo's users do."""
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(len(rewards)):
        _, reward, _, _, _ = env.last()
        rewards[agent] = float(reward)
        env.step(None)
    if env.agents:
        raise UnreachableError("finished agents do not leave on step(None)")
    return tuple(rewards.values())


# ---------------------------------------------------------------------------------------------
# Comparisons
# ---------------------------------------------------------------------------------------------


def node_label(deal: Deal, letters: str) -> str:
    """A node in a message: `pp with K against Q`."""
    return f"{letters or 'the deal'} with {deal[0].name} against {deal[1].name}"


def compare(ours: Implementation, theirs: Implementation, tally: Tally) -> None:
    """Compare all 54 dealt nodes, and the 4 chance nodes if both implementations have them."""
    try:
        _compare_chance(ours.chance(), theirs, tally)
    except Exception as error:  # the code of a candidate may fail in any way
        tally.fail(f"dealing: {error_text(error)}, {tally.theirs} deals two cards")
    for deal, letters in product(DEALS, BETTING):
        _compare_node(ours, theirs, deal, letters, tally)


def _compare_chance(ours: ChanceProbabilities, theirs: Implementation, tally: Tally) -> None:
    if not ours:
        return
    expected = theirs.chance()
    for dealt, card in product(CHANCE_NODES, Card):
        tally.close(
            f"dealing after {[Card(one).name for one in dealt]}",
            f"deals {card.name} with probability {{}}",
            ours.get(dealt, {}).get(card, 0.0),
            expected.get(dealt, {}).get(card, 0.0),
            CHANCE_TOLERANCE,
        )


def _compare_node(
    ours: Implementation, theirs: Implementation, deal: Deal, letters: str, tally: Tally
) -> None:
    place = node_label(deal, letters)
    expected = theirs.view(deal, letters)
    is_over = expected.actor is None
    winnings = expected.returns[0]
    try:
        view = ours.view(deal, letters)
    except Exception as error:
        they_do = f"pays {format_value(winnings)}" if is_over else "plays on"
        tally.fail(f"{place}: {error_text(error)}, {tally.theirs} {they_do}")
        return
    tally.same(place, "lets {} act", _agent(view.actor), _agent(expected.actor))
    if view.legal is not None:
        tally.same(place, "allows {}", view.legal, expected.legal)
    if is_over:
        tally.same(place, "pays {}", view.returns[0] if view.returns else None, winnings)
        if len(view.returns) > 1:
            tally.same(place, "pays both together {}", sum(view.returns), sum(expected.returns))


def _agent(actor: int | None) -> str | None:
    return None if actor is None else f"player_{actor}"


def compare_infosets(ours: Implementation, theirs: Implementation, tally: Tally) -> None:
    """Two nodes share an information state in ours exactly if they do in theirs."""
    for first, second in combinations(_decisions(ours, theirs), 2):
        tally.same(
            f"{first.place} / {second.place}",
            "has the same information state at both: {}",
            _infoset(first.ours) == _infoset(second.ours),
            _infoset(first.theirs) == _infoset(second.theirs),
        )


def _infoset(view: View) -> tuple[int | None, Hashable]:
    """The player and the information state, whose name two players may share."""
    return view.actor, view.information_state


def compare_observations(ours: Implementation, theirs: Implementation, tally: Tally) -> None:
    """Nodes that share an information state in theirs have the same observation in ours."""
    first_with: dict[Hashable, _Decision] = {}
    for decision in _decisions(ours, theirs):
        first = first_with.setdefault(decision.theirs.information_state, decision)
        tally.holds(
            decision.place,
            f"player_{decision.theirs.actor} observes the same as at {first.place}",
            decision.ours.information_state == first.ours.information_state,
        )


class _Decision(NamedTuple):
    """A decision node and both implementations' views of it."""

    place: str
    ours: View
    theirs: View


def _decisions(ours: Implementation, theirs: Implementation) -> Iterator[_Decision]:
    for deal, letters in product(DEALS, DECISIONS):
        place = node_label(deal, letters)
        yield _Decision(place, ours.view(deal, letters), theirs.view(deal, letters))


def error_text(error: BaseException) -> str:
    """An error of an implementation in one line."""
    if isinstance(error, UnreachableError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
