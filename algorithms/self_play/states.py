"""Many hands at once on OpenSpiel states: for games that are too large for a tree."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.policies.openspiel_policies import StateFunction
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array
from algorithms.tree import CHANCE, TERMINAL
from kuhn_bridge.errors import GameError, IllegalActionError

# Observations (n, size) float32 and masks (n, A) bool -> probabilities (n, A).
StatePolicy: TypeAlias = Callable[[Float32Array, BoolArray], Any]
Opponents: TypeAlias = Mapping[int, StatePolicy]  # by seat; one seat is left

# The test of perfect recall ends at the first of these limits.
RECALL_HANDS = 3_000
RECALL_DECISIONS = 20_000
RECALL_SECONDS = 5.0  # of CPU time: a deal of bridge takes half a second


class StateSimulator:
    """n hands on OpenSpiel states, one decision each per step: the same interface as `Simulator`.

    It also has `observations`, float32 `(n, size)`, and `masks`, bool `(n, A)`, of the next seats.
    """

    def __init__(
        self, game: Game, hands: int, *, seed: int = 0, opponents: Opponents | None = None
    ) -> None:
        self._new_state = playable_pyspiel_game(game).new_initial_state
        self._first_state = game.first_state
        self._observer = Observer(game)
        self._opponents = dict(opponents or {})
        self._random = random.Random(seed)
        self.seats = np.zeros(hands, np.int8)
        self.acted = np.zeros(hands, np.int8)
        self.returns = np.zeros((hands, game.num_players), np.float32)
        self.ended = np.zeros(hands, np.bool_)
        self._states: list[Any] = [None] * hands
        self.deal()

    def seed(self, seed: int) -> None:
        """Restart the random numbers."""
        self._random = random.Random(seed)

    def deal(self) -> None:
        """Start all hands anew."""
        for hand in range(len(self._states)):
            self._states[hand], self.seats[hand] = self._new_hand()
        self._observe_and_play_opponents()

    def step(self, actions: Int64Array) -> None:
        """Play one legal action per hand `(n,)`."""
        self._require_legal(actions)
        self.acted = self.seats
        self.returns = np.zeros_like(self.returns)
        self.ended = np.zeros_like(self.ended)
        seats = [self._apply(hand, action) for hand, action in enumerate(actions.tolist())]
        self.seats = np.array(seats, np.int8)
        self._observe_and_play_opponents()

    def probabilities_of(self, policy: StatePolicy) -> Float64Array:
        """What a policy would play in each hand now: `(n, A)`."""
        return probabilities_of(
            policy, states=self._states, observations=self.observations, legal=self.masks
        )

    def get_state(self) -> dict[str, Any]:
        """Everything that the next step depends on, besides the opponents."""
        histories = [state.history() for state in self._states]
        return {"histories": histories, "random": self._random.getstate()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        for hand, history in enumerate(state["histories"]):
            replayed = self._new_state()
            for action in history:
                replayed.apply_action(action)
            self._states[hand] = replayed
            self.seats[hand] = replayed.current_player()
        self.observations, self.masks = self._observer(self._states, self.seats)
        self._random.setstate(state["random"])

    def _require_legal(self, actions: Int64Array) -> None:
        """Raise an error unless there is one legal action per hand."""
        shape = np.shape(actions)
        if shape != self.seats.shape:
            raise IllegalActionError(f"{len(self.seats):,} hands need as many actions; got {shape}")
        is_id = (actions >= 0) & (actions < self.masks.shape[1])
        ids = np.where(is_id, actions, 0)  # 0 stands for a number that is no ID
        is_legal = is_id & self.masks[np.arange(len(actions)), ids]
        if not is_legal.all():
            hand = int(is_legal.argmin())
            raise IllegalActionError(f"action {actions[hand]} is illegal in hand {hand}")

    def _new_hand(self) -> tuple[Any, int]:
        """A dealt state, and the player to act."""
        state = self._first_state(self._random)
        return state, self._play_chance(state)

    def _play_chance(self, state: Any) -> int:
        """Play chance's moves; return the player to act, or TERMINAL."""
        while state.current_player() == CHANCE:
            state.apply_action(draw_outcome(state.chance_outcomes(), self._random.random()))
        return int(state.current_player())

    def _apply(self, hand: int, action: int) -> int:
        """Play an action in a hand; return the player to act next, in a new hand if it ends."""
        state = self._states[hand]
        state.apply_action(action)
        player = self._play_chance(state)
        if player == TERMINAL:
            self.returns[hand] = state.returns()
            self.ended[hand] = True
            self._states[hand], player = self._new_hand()
        return player

    def _observe_and_play_opponents(self) -> None:
        """Fill new observations and masks; opponents act until every hand waits for the caller."""
        self.observations, self.masks = self._observer(self._states, self.seats)
        if not self._opponents:
            return
        waiting = self._waiting_for_opponents(range(len(self._states)))
        while waiting:
            returns = self.returns.copy()
            ended = self.ended.copy()
            hands_of = {
                seat: [hand for hand in waiting if self.seats[hand] == seat]
                for seat in self._opponents
            }
            for seat, hands in hands_of.items():
                if hands:
                    self._play_opponent(seat, hands)
            # Only the result of the hand in which the caller acted counts, not of a later hand.
            self.returns[ended] = returns[ended]
            self.ended[ended] = True
            states = [self._states[hand] for hand in waiting]
            observations, masks = self._observer(states, self.seats[waiting])
            self.observations[waiting] = observations
            self.masks[waiting] = masks
            waiting = self._waiting_for_opponents(waiting)

    def _waiting_for_opponents(self, hands: Iterable[int]) -> list[int]:
        """Those of these hands in which an opponent is to act."""
        return [hand for hand in hands if int(self.seats[hand]) in self._opponents]

    def _play_opponent(self, seat: int, hands: list[int]) -> None:
        """Play one decision of an opponent in each of these hands, in which its seat is to act."""
        probabilities = probabilities_of(
            self._opponents[seat],
            states=[self._states[hand] for hand in hands],
            observations=self.observations[hands],
            legal=self.masks[hands],
        )
        numbers = np.array([self._random.random() for _ in hands])
        actions = draw_actions(probabilities, self.masks[hands], numbers)
        for hand, action in zip(hands, actions, strict=True):
            self.seats[hand] = self._apply(hand, action)


def probabilities_of(
    policy: StatePolicy, *, states: Sequence[Any], observations: Float32Array, legal: BoolArray
) -> Float64Array:
    """A policy's probabilities `(n, A)` in n states, with what the players to act see there."""
    if isinstance(policy, StateFunction):
        return policy.of_states(states, legal)
    return np.asarray(policy(observations, legal), np.float64)


def draw_actions(probabilities: Float64Array, legal: BoolArray, numbers: Float64Array) -> list[int]:
    """The actions that numbers in [0, 1) `(n,)` draw by probabilities `(n, A)`."""
    sums = running_sums(probabilities * legal)
    actions: list[int] = (sums <= numbers[:, None]).sum(axis=1).tolist()
    return actions


def draw_outcome(outcomes: Sequence[tuple[int, float]], number: float) -> int:
    """The outcome of chance that a number in [0, 1) draws."""
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return action
    return outcomes[-1][0]  # the probabilities sum to a little less than 1


def playable_pyspiel_game(game: Game) -> Any:
    """The OpenSpiel game to play on; a `GameError` if there is none that a network can play."""
    if game.pyspiel_game is None:
        raise GameError(f"{game.name} has no OpenSpiel states: it is played on its tree")
    if not game.observation_size:
        raise GameError(f"{game.name} has no information state tensor, which a network needs")
    _require_recall(game)
    return game.pyspiel_game


@lru_cache(maxsize=4)
def _require_recall(game: Game) -> None:
    """Raise a `GameError` if random hands show that a player forgets its own actions."""
    draws = random.Random(0)
    # (player, information state string) -> what the player had played when it was first seen there.
    actions_before = dict[tuple[int, str], tuple[int, ...]]()
    decisions = 0
    deadline = time.process_time() + RECALL_SECONDS
    for _ in range(RECALL_HANDS):
        if time.process_time() > deadline:
            return
        state = game.first_state(draws)
        played: list[tuple[int, ...]] = [()] * game.num_players
        while not state.is_terminal() and decisions < RECALL_DECISIONS:
            action = draws.choice(state.legal_actions())
            player = state.current_player()
            if player != CHANCE:
                infoset = (player, state.information_state_string(player))
                if actions_before.setdefault(infoset, played[player]) != played[player]:
                    forgotten = "the player has forgotten its earlier actions"
                    raise GameError(f"{game.name}: at {infoset[1]!r} {forgotten}")
                played[player] += (action,)
                decisions += 1
            state.apply_action(action)


class Observer:
    """The observations of players in states of a game, as networks receive them."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._tensor, self._write = _tensor_writer(game)
        self._one_hot_seats: Float32Array | None = None
        if game.appends_seat:
            self._one_hot_seats = np.eye(game.num_players, dtype=np.float32)
        self._num_actions = game.num_actions

    def __reduce__(self) -> tuple[type[Observer], tuple[Game]]:
        """Copies and pickles are made anew: OpenSpiel's observer cannot be copied."""
        return Observer, (self._game,)

    def __call__(self, states: Sequence[Any], seats: Int8Array) -> tuple[Float32Array, BoolArray]:
        """Observations `(n, size)` and legal actions `(n, A)` of seats `(n,)`, one per state.

        If the game appends the seat, its one-hot follows the information state tensor.
        """
        tensors = np.zeros((len(states), len(self._tensor)), np.float32)
        legal = list[int]()  # the legal actions of all states, one state after another
        counts = list[int]()  # how many of them each state has
        for row, (state, seat) in enumerate(zip(states, seats.tolist(), strict=True)):
            self._write(state, seat)
            tensors[row] = self._tensor
            actions = state.legal_actions()
            legal += actions
            counts.append(len(actions))
        masks = np.zeros((len(states), self._num_actions), np.bool_)
        masks[np.repeat(np.arange(len(states)), counts), legal] = True
        if self._one_hot_seats is None:
            return tensors, masks
        return np.hstack([tensors, self._one_hot_seats[seats]]), masks


def _tensor_writer(game: Game) -> tuple[Float32Array, Callable[[Any, int], None]]:
    """An array `(size,)`, and a function that writes a player's information state tensor into it.

    OpenSpiel's observer writes it several times as fast as `information_state_tensor` does; it is
    used where it writes the same numbers on a random hand.
    """
    from open_spiel.python.observation import make_observation
    from pyspiel import IIGObservationType, PrivateInfoType

    copied = np.zeros(game.observation_size, np.float32)

    def copy(state: Any, player: int) -> None:
        copied[:] = state.information_state_tensor(player)

    draws = random.Random(0)
    state = game.first_state(draws)
    try:
        one_player = IIGObservationType(
            perfect_recall=True, public_info=True, private_info=PrivateInfoType.SINGLE_PLAYER
        )
        observation = make_observation(game.pyspiel_game, one_player)
        tensor = observation.tensor
        write = observation._observation.set_from
        while not state.is_terminal():
            player = state.current_player()
            if player != CHANCE:
                write(state, player)
                copy(state, player)
                if not np.array_equal(tensor, copied):
                    return copied, copy
            state.apply_action(draws.choice(state.legal_actions()))
    except Exception:  # games without observers raise anything
        return copied, copy
    return tensor, write
