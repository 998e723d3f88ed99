"""A hand of Kuhn poker as an immutable value, and as arrays: observations and action masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kuhn_bridge import notebook, rules
from kuhn_bridge.errors import ActionError, IllegalActionError
from kuhn_bridge.rules import AGENTS, BETTING, DEALS, DECISIONS, PLAYERS, Action, Card, Phase

Observation: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.int8]

OBSERVATION_SIZE = 10


def one_hot(index: int | None, size: int) -> Observation:
    """float32 `(size,)` with a 1 at `index`; all zero for `None`."""
    vector = np.zeros(size, np.float32)
    if index is not None:
        vector[index] = 1
    return vector


def encode_history(row: rules.Betting) -> Observation:
    """float32 `(5,)`: `[]`, `[check]`, `[bet]`, `[check, bet]`, any finished history."""
    index = len(DECISIONS) if row.is_terminal else DECISIONS.index(row.letters)
    return one_hot(index, len(DECISIONS) + 1)


def encode(card: Card, letters: str) -> Observation:
    """The observation of the holder of `card` after `letters`, as `KuhnEnv` describes it."""
    row = BETTING[letters]
    actor = one_hot(row.actor, len(AGENTS))
    return np.concatenate([one_hot(card, len(Card)), encode_history(row), actor])


def encode_mask(row: rules.Betting, seat: int) -> Mask:
    """int8 `(3,)`, 1 = legal for `seat`; all zero when `seat` is not to act."""
    return np.array([seat == row.actor and a in row.after for a in Action], np.int8)


# By history, then by card or by seat. Callers get copies.
OBSERVATIONS = {at: tuple(encode(card, at) for card in Card) for at in BETTING}
MASKS = {at: tuple(encode_mask(row, seat) for seat in PLAYERS) for at, row in BETTING.items()}


@dataclass(frozen=True, slots=True)
class State:
    """One point of a hand: immutable, hashable, nothing hidden.

    A state is determined by its cards and letters; everything else is looked up in the betting
    table when it is made. `State.new` and `act` always return the same 54 objects, and so do
    copies and pickles of them.
    """

    cards: tuple[Card, Card]
    letters: str = ""
    history: tuple[str, ...] = field(init=False, compare=False)
    phase: Phase = field(init=False, compare=False)
    actor: int | None = field(init=False, compare=False)
    legal_actions: tuple[Action, ...] = field(init=False, compare=False)
    is_terminal: bool = field(init=False, compare=False)
    returns: tuple[int, int] = field(init=False, compare=False)
    _after: tuple[State | None, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        row = rules.betting(self.letters)
        cards = rules.as_deal(self.cards)
        after = [State(cards, row.after[a]) if a in row.after else None for a in Action]
        derived = {
            "cards": cards,
            "history": row.words,
            "phase": row.phase,
            "actor": row.actor,
            "legal_actions": tuple(row.after),
            "is_terminal": row.is_terminal,
            "returns": rules.payoff(cards, row),
            "_after": tuple(after),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def new(card0: Any, card1: Any) -> State:
        """A dealt hand, player_0 to act. Cards as `Card`, 0..2 or `"J"`, `"Q"`, `"K"`."""
        if type(card0) is not Card or type(card1) is not Card or card0 is card1:
            card0, card1 = rules.as_deal((card0, card1))
        return _DEALT[card0, card1]

    def act(self, action: Any) -> State:
        """The state after `action` by the player to act."""
        try:
            if type(action) is not Action:
                action = rules.as_action(action)
        except ActionError as error:
            raise ActionError(f"{error}; this was {self.describe()}") from None
        state: State | None = self._after[action]
        if state is None:
            names = " or ".join(legal.name for legal in self.legal_actions)
            turn = f"{AGENTS[self.actor or 0]} may {names}" if names else "the hand is over"
            wrong = f"illegal action {action.name} ({action.value}) {self.describe()}"
            raise IllegalActionError(f"{wrong}: {turn}")
        return state

    def observe(self, seat: int) -> Observation:
        """The observation of `seat`: float32 `(10,)`, with the indices of `KuhnEnv`."""
        return OBSERVATIONS[self.letters][self.cards[rules.as_seat(seat)]].copy()

    def mask(self, seat: int) -> Mask:
        """The action mask of `seat`: int8 `(3,)`, 1 = legal; all zero when not to act."""
        return MASKS[self.letters][rules.as_seat(seat)].copy()

    def describe(self) -> str:
        """The phase and the history, for error messages."""
        return f"in phase {self.phase.label} after [{', '.join(self.history)}]"

    def _repr_html_(self) -> str:
        """The cards, the pot, the betting and who is to act, for a notebook."""
        names = [f"{agent}: {card.name}" for agent, card in zip(AGENTS, self.cards, strict=True)]
        chips = [word for word in self.history if word in {"bet", "call"}]
        if self.is_terminal:
            returns = zip(AGENTS, self.returns, strict=True)
            ahead = "result", ", ".join(f"{agent} {chips:+d}" for agent, chips in returns)
        else:
            row = BETTING[self.letters]
            moves = [BETTING[row.after[action]].words[-1] for action in self.legal_actions]
            ahead = "to act", f"{AGENTS[self.actor or 0]}: {' or '.join(moves)}"
        about = {
            "betting": ", ".join(self.history) or "none yet",
            "pot": f"{len(PLAYERS) + len(chips)} chips",
            ahead[0]: ahead[1],
        }
        return notebook.box(
            "A hand of Kuhn poker", notebook.playing_cards(names), notebook.facts(about)
        )

    def __reduce__(self) -> tuple[Any, tuple[tuple[Card, Card], str]]:
        return _same_state, (self.cards, self.letters)

    def __repr__(self) -> str:
        cards = " vs ".join(card.name for card in self.cards)
        return f"<State {cards}, [{', '.join(self.history)}], {self.phase.label}>"


_DEALT = {deal: State(deal) for deal in DEALS}


def nodes() -> Iterator[State]:
    """All 54 dealt states, each parent before its children."""
    queue = [*_DEALT.values()]
    for state in queue:
        yield state
        queue.extend(state.act(action) for action in state.legal_actions)


_STATES = {(state.cards, state.letters): state for state in nodes()}


def _same_state(cards: tuple[Card, Card], letters: str) -> State:
    """The state that a copy or a pickle stands for."""
    return _STATES[cards, letters]
