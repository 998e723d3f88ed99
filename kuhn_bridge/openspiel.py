"""The OpenSpiel adapter: importing this module registers the game `python_kuhn_bridge`.

The game has our three action IDs and the information states of OpenSpiel's `kuhn_poker` (`"2pb"`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np
import pyspiel

from kuhn_bridge.bridge import LONGEST, letters_to_actions
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card, as_card, as_deal
from kuhn_bridge.state import State, encode_history, one_hot

SHORT_NAME = "python_kuhn_bridge"

_TYPE = pyspiel.GameType(
    short_name=SHORT_NAME,
    long_name="Kuhn poker of kuhn-bridge",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=len(PLAYERS),
    min_num_players=len(PLAYERS),
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=True,
)
_INFO = pyspiel.GameInfo(
    num_distinct_actions=len(Action),
    max_chance_outcomes=len(Card),
    num_players=len(PLAYERS),
    min_utility=-2.0,
    max_utility=2.0,
    utility_sum=0.0,
    max_game_length=LONGEST,
)


class KuhnBridgeGame(pyspiel.Game):
    """Kuhn poker with the action IDs of `kuhn_bridge.Action`."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        super().__init__(_TYPE, _INFO, params or {})

    def new_initial_state(self) -> KuhnBridgeState:
        """A hand before the deal."""
        return KuhnBridgeState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> KuhnBridgeObserver:
        """An observer of type `iig_obs_type`; by default of the observation `(10,)`."""
        default = pyspiel.IIGObservationType(perfect_recall=False)
        return KuhnBridgeObserver(iig_obs_type or default, params)


class KuhnBridgeState(pyspiel.State):
    """A hand for OpenSpiel: chance deals both cards, then our `State` is played."""

    def __init__(self, game: KuhnBridgeGame) -> None:
        super().__init__(game)
        self.cards: tuple[Card, ...] = ()
        self.hand: State | None = None

    @property
    def letters(self) -> str:
        """The moves so far."""
        return self.hand.letters if self.hand else ""

    @property
    def actor(self) -> int | None:
        """The player to act; `None` while cards are dealt and at the end."""
        return self.hand.actor if self.hand else None

    def current_player(self) -> int:
        """The player to act, or OpenSpiel's number for chance or a terminal state."""
        if self.hand is None:
            return int(pyspiel.PlayerId.CHANCE)
        if self.hand.actor is None:
            return int(pyspiel.PlayerId.TERMINAL)
        return self.hand.actor

    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self.hand is not None and self.hand.is_terminal

    def returns(self) -> list[float]:
        """Net chips of both players; (0, 0) before the end."""
        returns = self.hand.returns if self.hand else (0, 0)
        return [float(chips) for chips in returns]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The cards left in the deck, equally likely."""
        undealt = [int(card) for card in Card if card not in self.cards]
        return [(card, 1 / len(undealt)) for card in undealt]

    def _legal_actions(self, player: int) -> list[int]:
        return [int(action) for action in self.hand.legal_actions] if self.hand else []

    def _apply_action(self, action: int) -> None:
        if self.hand:
            self.hand = self.hand.act(action)
        elif self.cards:
            deal = as_deal((*self.cards, action))
            self.cards = deal
            self.hand = State.new(*deal)
        else:
            self.cards = (as_card(action),)

    def _action_to_string(self, player: int, action: int) -> str:
        return f"Deal:{Card(action).name}" if player < 0 else Action(action).name

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> KuhnBridgeState:
        """A state of the same information state of `player`: the other card is drawn again.

        OpenSpiel's Python ISMCTS calls it. `sampler` draws from [0, 1).
        """
        cards = list(self.cards)
        if 1 - player < len(cards):
            unseen = [card for card in Card if card not in cards[player : player + 1]]
            cards[1 - player] = unseen[int(sampler() * len(unseen))]
        state = self.get_game().new_initial_state()
        for move in (*cards, *letters_to_actions(self.letters)):
            state.apply_action(int(move))
        return cast(KuhnBridgeState, state)

    def __str__(self) -> str:
        cards = " ".join(card.name for card in self.cards)
        return " ".join([cards, *self.hand.history]) if self.hand else cards


_SHAPES = {"card": (3,), "cards": (2, 3), "betting": (LONGEST, 3), "history": (5,), "actor": (2,)}
_PRIVATE = {
    pyspiel.PrivateInfoType.NONE: (),
    pyspiel.PrivateInfoType.SINGLE_PLAYER: ("card",),
    pyspiel.PrivateInfoType.ALL_PLAYERS: ("cards",),
}


class KuhnBridgeObserver:
    """Observations in OpenSpiel's form: `tensor`, `dict` and text.

    By default the 10 numbers of `State.observe`; with perfect recall the card and the moves so
    far, float32 `(12,)`.
    """

    def __init__(self, obs_type: pyspiel.IIGObservationType, params: dict[str, Any] | None) -> None:
        if params:
            raise ValueError(f"observers of {SHORT_NAME} take no parameters; got {params}")
        names = list(_PRIVATE[obs_type.private_info])
        if obs_type.public_info:
            names += ["betting"] if obs_type.perfect_recall else ["history", "actor"]
        # `dict` has a view of a part of `tensor` for each name, in that order.
        self.tensor = np.zeros(sum(prod(_SHAPES[name]) for name in names), np.float32)
        self.dict = {}
        start = 0
        for name in names:
            stop = start + prod(_SHAPES[name])
            self.dict[name] = self.tensor[start:stop].reshape(_SHAPES[name])
            start = stop
        self._separator = "" if obs_type.perfect_recall else " "

    def set_from(self, state: KuhnBridgeState, player: int) -> None:
        """Fill `tensor` and `dict` with the observation of `player`."""
        self.tensor.fill(0)
        if "card" in self.dict:
            self.dict["card"][[*state.cards[player : player + 1]]] = 1
        if "cards" in self.dict:
            self.dict["cards"][range(len(state.cards)), state.cards] = 1
        if "betting" in self.dict:
            for move, action in enumerate(letters_to_actions(state.letters)):
                self.dict["betting"][move, action] = 1
        if "history" in self.dict:
            self.dict["history"][:] = encode_history(BETTING[state.letters])
            self.dict["actor"][:] = one_hot(state.actor, len(AGENTS))

    def string_from(self, state: KuhnBridgeState, player: int) -> str:
        """The observation of `player` as text; with perfect recall OpenSpiel's `"2pb"`."""
        cards = "".join(f"{card:d}" for card in state.cards)
        texts = {
            "card": cards[player : player + 1],
            "cards": cards,
            "betting": state.letters,
            "history": "end" if state.is_terminal() else f"[{state.letters}]",
            "actor": "" if state.actor is None else AGENTS[state.actor],
        }
        return self._separator.join(filter(None, (texts[name] for name in self.dict)))


pyspiel.register_game(_TYPE, KuhnBridgeGame)
