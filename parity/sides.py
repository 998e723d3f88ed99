"""A side: any implementation of Kuhn poker as a function from nodes to views.

`view(deal, letters)` gives the player to act at a node, the legal moves and the returns. Any two
sides can be compared node by node.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

    @property
    def infoset(self) -> tuple[int | None, Hashable]:
        """The actor and its information state: players may share names."""
        return self.actor, self.information_state


@dataclass(frozen=True, slots=True)
class Side:
    """An implementation: its nodes, and its chance nodes if it shows them."""

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


CORE = Side(_core_view, deal_probabilities)


def rulebook(book: Any, *, lowest: int = 0) -> Side:
    """An object with `is_terminal`, `get_current_player` and `get_payoff` over letters.

    `lowest` is its number of the jack.
    """

    def view(deal: Deal, letters: str) -> View:
        if book.is_terminal(letters):
            cards = [lowest + int(card) for card in deal]
            return View(None, None, (float(book.get_payoff(cards, letters)),))
        return View(book.get_current_player(letters), None, ())

    return Side(view)


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

    return Side(view, chance)


def reference() -> Side:
    """OpenSpiel's C++ `kuhn_poker`, which all other sides are compared with."""
    return openspiel(pyspiel.load_game("kuhn_poker"))


@dataclass(frozen=True, slots=True)
class AECNode:
    """One node of an AEC environment, in its own action IDs."""

    actor: int
    legal: Moves
    end: str = ""  # how the hand ended, if it did
    rewards: tuple[float, ...] = ()
    observation: str = ""


def aec_reader(reset: Callable[[Any], Any]) -> Callable[[Any, Moves], AECNode]:
    """Reads the node of an AEC environment after `reset(start)` and a sequence of actions.

    Each node is read once, so that it can be interpreted in many ways.
    """

    def play(start: Any, moves: Moves) -> Any:
        env = reset(start)
        for action in moves:
            env.step(action)
        return env

    def accepts(start: Any, moves: Moves) -> bool:
        try:
            play(start, moves)
        except Exception:  # the code of a candidate may fail in any way
            return False
        return True

    @cache
    def read(start: Any, moves: Moves) -> AECNode:
        env = play(start, moves)
        agent = env.agent_selection
        actor = env.possible_agents.index(agent)
        if any(env.truncations.values()):
            return AECNode(actor, (), "truncated")
        if any(env.terminations.values()):
            return AECNode(actor, (), "over", tuple(final_rewards(env)))
        mask, observation = _mask(env), observation_text(env.observe(agent))
        actions = range(int(env.action_space(agent).n))
        if mask is None:  # then an illegal action is one that raises
            mask = [accepts(start, (*moves, action)) for action in actions]
        legal = tuple(action for action in actions if mask[action])
        return AECNode(actor, legal, observation=observation)

    return read


def aec(
    read: Callable[[Any, Moves], AECNode], starts: Mapping[Deal, Any], encoding: Encoding
) -> Side:
    """An AEC environment; `starts` says how it is reset for each deal."""

    def view(deal: Deal, letters: str) -> View:
        if deal not in starts:
            raise UnreachableError("this deal never comes up")
        words = BETTING[letters].words
        moves = tuple(encoding[word] for word in words)
        for depth, word in enumerate((*words, None)):
            node = read(starts[deal], moves[:depth])
            if node.end == "truncated" or (node.end and word):
                raise UnreachableError(f"the hand is {node.end} after [{', '.join(words[:depth])}]")
            if word and encoding[word] not in node.legal:
                raise UnreachableError(f"{word} is not possible there")
        if node.end:
            return View(None, frozenset(), node.rewards)
        legal = action_words(node.legal, letters, encoding)
        return View(node.actor, legal, (0, 0), (node.actor, node.observation))

    return Side(view)


def _mask(env: Any) -> list[int] | None:
    """The mask of the agent to act, from its observation or its info."""
    observation, _, _, _, info = env.last()
    for source in (observation, info):
        if isinstance(source, Mapping) and "action_mask" in source:
            return list(source["action_mask"])
    return None


def observation_text(observation: Any) -> str:
    """An observation as text, without its mask: equal for equal observations."""
    if isinstance(observation, Mapping):
        observation = {key: observation[key] for key in observation if key != "action_mask"}
    return json.dumps(observation, default=lambda x: np.asarray(x).tolist(), sort_keys=True)


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
        tally.fail(f"dealing: {error_text(error)}, {tally.theirs} deals two cards")
    for deal, letters in product(DEALS, BETTING):
        _compare_node(deal, letters, ours, theirs, tally)


def compare_information_states(ours: Side, theirs: Side, tally: Tally) -> None:
    """Two nodes share an information state on one side exactly if they do on the other."""
    for (here, mine, right), (there, mine2, right2) in combinations(_decisions(ours, theirs), 2):
        shared = mine.infoset == mine2.infoset
        phrase = "has the same information state at both: {}"
        tally.same(f"{here} / {there}", phrase, shared, right.infoset == right2.infoset)


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
    except Exception as error:
        plays = f"pays {format_value(right.returns[0])}" if right.actor is None else "plays on"
        tally.fail(f"{where}: {error_text(error)}, {tally.theirs} {plays}")
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
