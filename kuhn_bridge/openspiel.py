"""The OpenSpiel face: importing this module registers the game `python_kuhn_bridge`.

The game has our three action IDs and the information states of OpenSpiel's `kuhn_poker` (`"2pb"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyspiel

from kuhn_bridge.bridge import LONGEST, letters_to_actions
from kuhn_bridge.encoding import encode_card, encode_history, one_hot
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Betting, Card, as_card, as_deal
from kuhn_bridge.state import State

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

    def make_py_observer(
        self,
        iig_obs_type: pyspiel.IIGObservationType | None = None,
        params: dict[str, Any] | None = None,
    ) -> KuhnBridgeObserver:
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
    def betting(self) -> Betting:
        """The row of the betting table."""
        return BETTING[self.hand.letters if self.hand else ""]

    @property
    def actor(self) -> int | None:
        """The player to act; `None` while cards are dealt and at the end."""
        return self.hand.actor if self.hand else None

    def current_player(self) -> int:
        """The player to act, or OpenSpiel's number for chance or a terminal state."""
        if self.hand is None:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL) if self.hand.actor is None else self.hand.actor

    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self.hand is not None and self.hand.is_terminal

    def returns(self) -> list[float]:
        """Net chips of both players; (0, 0) before the end."""
        return [float(chips) for chips in (self.hand.returns if self.hand else (0, 0))]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The cards left in the deck, equally likely."""
        left = [int(card) for card in Card if card not in self.cards]
        return [(card, 1 / len(left)) for card in left]

    def _legal_actions(self, player: int) -> list[int]:
        return [int(action) for action in self.hand.legal_actions] if self.hand else []

    def _apply_action(self, action: int) -> None:
        if self.hand:
            self.hand = self.hand.act(action)
        elif self.cards:
            deal = as_deal((*self.cards, action))
            self.cards, self.hand = deal, State.new(*deal)
        else:
            self.cards = (as_card(action),)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"Deal:{Card(action).name}"
        return Action(action).name

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> KuhnBridgeState:
        """A state of the same information state of `player`: the other card is drawn again.

        OpenSpiel's Python ISMCTS calls it. `sampler` draws from [0, 1).
        """
        other, own = 1 - player, _own_card(self, player)
        state = self.get_game().new_initial_state()
        cards = dict(enumerate(self.cards))
        if other in cards:
            left = [card for card in Card if card is not own]
            cards[other] = left[int(sampler() * len(left))]
        for move in (*cards.values(), *letters_to_actions(self.betting.letters)):
            state.apply_action(int(move))
        return cast(KuhnBridgeState, state)

    def __str__(self) -> str:
        cards = " ".join(card.name for card in self.cards)
        return " ".join([cards, *self.hand.history]) if self.hand else cards


Tensor: TypeAlias = npt.NDArray[np.float32]
Encoder: TypeAlias = Callable[[KuhnBridgeState, int], Tensor]
Describer: TypeAlias = Callable[[KuhnBridgeState, int], str]


def _own_card(state: KuhnBridgeState, player: int) -> Card | None:
    return state.cards[player] if player < len(state.cards) else None


def _betting_tensor(state: KuhnBridgeState, player: int) -> Tensor:
    """float32 `(3, 3)`: our action ID, one-hot, of each move so far."""
    moves = letters_to_actions(state.betting.letters)
    return np.stack(
        [one_hot(action, len(Action)) for action in (*moves, *[None] * LONGEST)[:LONGEST]]
    )


# name: (shape, tensor, text); an observer is a list of these
_PIECES: dict[str, tuple[tuple[int, ...], Encoder, Describer]] = {
    "card": (
        (3,),
        lambda state, player: encode_card(_own_card(state, player)),
        lambda state, player: "".join(str(int(c)) for c in state.cards[player : player + 1]),
    ),
    "cards": (
        (2, 3),
        lambda state, player: np.stack([encode_card(_own_card(state, p)) for p in PLAYERS]),
        lambda state, player: "".join(str(int(card)) for card in state.cards),
    ),
    "betting": (
        (LONGEST, len(Action)),
        _betting_tensor,
        lambda state, player: state.betting.letters,
    ),
    "history": (
        (5,),
        lambda state, player: encode_history(state.betting),
        lambda state, player: "end" if state.is_terminal() else f"[{state.betting.letters}]",
    ),
    "actor": (
        (2,),
        lambda state, player: one_hot(state.actor, len(AGENTS)),
        lambda state, player: "" if state.actor is None else AGENTS[state.actor],
    ),
}
_PRIVATE = {
    pyspiel.PrivateInfoType.NONE: (),
    pyspiel.PrivateInfoType.SINGLE_PLAYER: ("card",),
    pyspiel.PrivateInfoType.ALL_PLAYERS: ("cards",),
}


class KuhnBridgeObserver:
    """Observations in OpenSpiel's form: `tensor`, `dict` and text.

    By default the 10 numbers of `encoding.encode`; with perfect recall the card and the moves so
    far, float32 `(12,)`.
    """

    def __init__(self, obs_type: pyspiel.IIGObservationType, params: dict[str, Any] | None) -> None:
        if params:
            raise ValueError(f"observers of {SHORT_NAME} take no parameters; got {params}")
        public = ("betting",) if obs_type.perfect_recall else ("history", "actor")
        self.names = (*_PRIVATE[obs_type.private_info], *(public if obs_type.public_info else ()))
        shapes = {name: _PIECES[name][0] for name in self.names}
        sizes = np.cumsum([0, *(np.prod(shape, dtype=int) for shape in shapes.values())])
        self.tensor = np.zeros(sizes[-1], np.float32)
        self.dict = {
            name: self.tensor[start:stop].reshape(shapes[name])
            for name, start, stop in zip(self.names, sizes[:-1], sizes[1:], strict=True)
        }
        self._separator = "" if obs_type.perfect_recall else " "

    def set_from(self, state: KuhnBridgeState, player: int) -> None:
        """Fill `tensor` and `dict` with the observation of `player`."""
        for name in self.names:
            self.dict[name][:] = _PIECES[name][1](state, player)

    def string_from(self, state: KuhnBridgeState, player: int) -> str:
        """The observation of `player` as text; with perfect recall OpenSpiel's `"2pb"`."""
        return self._separator.join(
            filter(None, (_PIECES[name][2](state, player) for name in self.names))
        )


pyspiel.register_game(_TYPE, KuhnBridgeGame)
