"""A side: any implementation of Kuhn poker as a function from nodes to views.

`view(deal, letters)` gives the player to act at a node, the legal moves and the returns. Any two
sides can be compared node by node.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from kuhn_bridge.bridge import information_state, letters_to_actions
from kuhn_bridge.rules import BETTING, DEALS, DECISIONS, Card
from kuhn_bridge.state import State
from parity.registry import Tally, format_value

Deal: TypeAlias = tuple[Card, Card]
# The probability of each card after the cards dealt so far
Chance: TypeAlias = Mapping[tuple[int, ...], Mapping[int, float]]
Encoding: TypeAlias = Mapping[str, int]  # the action ID of each word: check, bet, call, fold

OURS: Encoding = {"check": 0, "bet": 1, "call": 0, "fold": 2}
PASS_BET: Encoding = {"check": 0, "bet": 1, "call": 1, "fold": 0}
CHANCE_NODES = ((), *((card,) for card in Card))  # the cards dealt so far


@dataclass(frozen=True, slots=True)
class View:
    """One node of a side."""

    actor: int | None
    legal: frozenset[Any] | None  # none if the side does not list legal moves
    returns: Sequence[float]  # may be player_0's only
    information_state: Hashable = None  # the actor's, by any name


@dataclass(frozen=True, slots=True)
class Side:
    """An implementation: its nodes, and its chance nodes if it shows them."""

    view: Callable[[Deal, str], View]
    chance: Callable[[], Chance] = dict


class UnreachableError(Exception):
    """A side does not have a node that the game has."""


def action_words(ids: Iterable[int], letters: str, encoding: Encoding) -> frozenset[str]:
    """Legal action IDs as words; an ID without a meaning at this node becomes `action 2`."""
    words = ("call", "fold") if BETTING[letters].faces_bet else ("check", "bet")
    meaning = {encoding[word]: word for word in words} if letters in DECISIONS else {}
    return frozenset(meaning.get(int(i), f"action {i}") for i in ids)


def _core_view(deal: Deal, letters: str) -> View:
    state = State.new(*deal)
    for action in letters_to_actions(letters):
        state = state.act(action)
    legal = action_words(state.legal_actions, letters, OURS)
    name = None if state.actor is None else information_state(deal[state.actor], letters)
    return View(state.actor, legal, state.returns, name)


def _core_chance() -> Chance:
    """All deals are equally likely."""
    counts = Counter(deal[:n] for deal in DEALS for n in (0, 1, 2))
    return {
        dealt: {card: counts[*dealt, card] / counts[dealt] for card in Card}
        for dealt in CHANCE_NODES
    }


CORE = Side(_core_view, _core_chance)


def rulebook(book: Any, lowest: int = 0, *, history_first: bool = False) -> Side:
    """An object with `is_terminal`, `get_current_player` and `get_payoff` over letters.

    `lowest` is its number of the jack; `get_payoff` may take the history before the cards.
    """

    def view(deal: Deal, letters: str) -> View:
        if book.is_terminal(letters):
            cards = [lowest + int(card) for card in deal]
            arguments = (letters, cards) if history_first else (cards, letters)
            return View(None, None, (float(book.get_payoff(*arguments)),))
        return View(book.get_current_player(letters), None, ())

    return Side(view)


def openspiel(game: pyspiel.Game, encoding: Encoding = PASS_BET, lowest: int = 0) -> Side:
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
            return View(None, frozenset(), state.returns())
        actor = state.current_player()
        legal = action_words(state.legal_actions(), letters, encoding)
        return View(actor, legal, state.returns(), state.information_state_string(actor))

    def chance() -> Chance:
        return {
            dealt: {card - lowest: share for card, share in state_at(dealt).chance_outcomes()}
            for dealt in CHANCE_NODES
        }

    return Side(cache(view), chance)


REFERENCE = openspiel(pyspiel.load_game("kuhn_poker"))  # which all other sides are compared with


def aec_reader(env: Any) -> Callable[..., View]:
    """Reads each view of an AEC environment once, so that it can be interpreted in many ways.

    A reset is given as a seed, or as the cards if the environment is ours. Legal moves are the
    environment's own action IDs; they are `None` if the hand is truncated.
    """

    def play(start: Any, moves: tuple[int, ...]) -> None:
        env.reset(**{"seed": start} if isinstance(start, int) else {"options": {"cards": start}})
        for action in moves:
            env.step(action)

    @cache
    def read(start: Any, moves: tuple[int, ...]) -> View:
        play(start, moves)
        if any(env.truncations.values()):
            return View(None, None, ())
        if any(env.terminations.values()):
            return View(None, frozenset(), final_rewards(env))
        agent, (seen, _, _, _, info) = env.agent_selection, env.last()
        maps = [of for of in (seen, info) if isinstance(of, Mapping) and "action_mask" in of]
        actor, observation = env.possible_agents.index(agent), observation_text(env.observe(agent))
        actions = range(int(env.action_space(agent).n))
        legal = {action for action in actions if maps and maps[0]["action_mask"][action]}
        for action in () if maps else actions:  # then an illegal action is one that raises
            with suppress(Exception):
                play(start, (*moves, action))
                legal.add(action)
        return View(actor, frozenset(legal), (0, 0), (actor, observation))

    return read


def aec(read: Callable[..., View], starts: Mapping[Deal, Any], encoding: Encoding) -> Side:
    """An AEC environment; `starts` says how it is reset for each deal."""

    def view(deal: Deal, letters: str) -> View:
        if deal not in starts:
            raise UnreachableError("this deal never comes up")
        words = BETTING[letters].words
        moves = tuple(encoding[word] for word in words)
        for depth, word in enumerate((*words, None)):
            node = read(starts[deal], moves[:depth])
            if node.legal is None or (node.actor is None and word):
                end = "truncated" if node.legal is None else "over"
                raise UnreachableError(f"the hand is {end} after [{', '.join(words[:depth])}]")
            if word and encoding[word] not in node.legal:
                raise UnreachableError(f"{word} is not possible there")
        return replace(node, legal=action_words(node.legal or (), letters, encoding))

    return Side(view)


def observation_text(observation: Any) -> str:
    """An observation as text, without its mask: equal for equal observations."""
    if isinstance(observation, Mapping):
        observation = {key: observation[key] for key in observation if key != "action_mask"}
    return json.dumps(observation, default=lambda x: np.asarray(x).tolist(), sort_keys=True)


def final_rewards(env: Any) -> tuple[float, ...]:
    """Each agent's last reward, read by `last()` in the dead steps, as PettingZoo's users do."""
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(len(rewards)):
        rewards[agent] = float(env.last()[1])
        env.step(None)
    if env.agents:
        raise UnreachableError("finished agents do not leave on step(None)")
    return tuple(rewards.values())


def hand(deal: Deal, letters: str) -> str:
    """A node in a message: `pp with K against Q`."""
    return f"{letters or 'the deal'} with {deal[0].name} against {deal[1].name}"


def compare(ours: Side, theirs: Side, tally: Tally) -> None:
    """Walk both sides through all 54 dealt nodes, and the 4 chance nodes if both have them."""
    try:
        chance = ours.chance()
        for dealt, card in product(CHANCE_NODES if chance else (), Card):
            where = f"dealing after {[Card(card).name for card in dealt]}"
            found, share = (of.get(dealt, {}).get(card, 0.0) for of in (chance, theirs.chance()))
            tally.close(where, f"deals {card.name} with probability {{}}", found, share, 1e-15)
    except Exception as error:  # the code of a candidate may fail in any way
        tally.fail(f"dealing: {error_text(error)}, {tally.theirs} deals two cards")
    for deal, letters in product(DEALS, BETTING):
        where, right = hand(deal, letters), theirs.view(deal, letters)
        over, won = right.actor is None, right.returns[0]
        try:
            mine = ours.view(deal, letters)
        except Exception as error:
            plays = f"pays {format_value(won)}" if over else "plays on"
            tally.fail(f"{where}: {error_text(error)}, {tally.theirs} {plays}")
            continue
        actors = (None if view.actor is None else f"player_{view.actor}" for view in (mine, right))
        tally.same(where, "lets {} act", *actors)
        if mine.legal is not None:
            tally.same(where, "allows {}", mine.legal, right.legal)
        if over:
            tally.same(where, "pays {}", mine.returns[0] if mine.returns else None, won)
        if over and len(mine.returns) > 1:
            tally.same(where, "pays both together {}", sum(mine.returns), sum(right.returns))


def compare_infosets(ours: Side, theirs: Side, tally: Tally) -> None:
    """Two nodes share an information state on one side exactly if they do on the other."""
    for (here, *views), (there, *others) in combinations(_decisions(ours, theirs), 2):
        shared = (  # players may share names
            (one.actor, one.information_state) == (two.actor, two.information_state)
            for one, two in zip(views, others, strict=True)
        )
        tally.same(f"{here} / {there}", "has the same information state at both: {}", *shared)


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


def error_text(error: BaseException) -> str:
    """An error of a side in one line."""
    if isinstance(error, UnreachableError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
