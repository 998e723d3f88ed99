"""Many hands at once on OpenSpiel states: for games that are too large for a tree."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
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

RECALL_HANDS, RECALL_DECISIONS = 3_000, 20_000  # at most, in the test of perfect recall
RECALL_SECONDS = 5.0  # of CPU time, likewise: a deal of bridge takes half a second


class StateSimulator:
    """n hands on OpenSpiel states, one decision each per step: the same interface as `Simulator`.

    It also has `observations`, float32 `(n, size)`, and `masks`, bool `(n, A)`, of the next seats.
    """

    def __init__(
        self, game: Game, hands: int, *, seed: int = 0, opponents: Opponents | None = None
    ) -> None:
        self._new_state = origin(game).new_initial_state
        self._first_state = game.first_state
        self._observer = Observer(game)
        self._opponents, self._random = dict(opponents or {}), random.Random(seed)
        self.seats, self.acted = np.zeros((2, hands), np.int8)
        self.returns = np.zeros((hands, game.num_players), np.float32)
        self.ended = np.zeros(hands, np.bool_)
        self._states: list[Any] = [None] * hands
        self.deal()

    def seed(self, seed: int) -> None:
        """Restart the random numbers."""
        self._random = random.Random(seed)

    def deal(self) -> None:
        """Start all hands anew."""
        for i in range(len(self._states)):
            self._states[i], self.seats[i] = self._new_hand()
        self._observe_and_play_opponents()

    def step(self, actions: Int64Array) -> None:
        """Play one legal action per hand `(n,)`."""
        if (shape := np.shape(actions)) != self.seats.shape:
            raise IllegalActionError(f"{len(self.seats):,} hands need as many actions; got {shape}")
        inside = (actions >= 0) & (actions < self.masks.shape[1])
        legal = inside & self.masks[np.arange(len(actions)), np.where(inside, actions, 0)]
        if not legal.all():
            hand = int(legal.argmin())
            raise IllegalActionError(f"action {actions[hand]} is illegal in hand {hand}")
        self.acted = self.seats
        self.returns, self.ended = np.zeros_like(self.returns), np.zeros_like(self.ended)
        seats = [self._apply(i, action) for i, action in enumerate(actions.tolist())]
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
        for i, history in enumerate(state["histories"]):
            self._states[i] = self._new_state()
            for action in history:
                self._states[i].apply_action(action)
            self.seats[i] = self._states[i].current_player()
        self.observations, self.masks = self._observer(self._states, self.seats)
        self._random.setstate(state["random"])

    def _new_hand(self) -> tuple[Any, int]:
        """A dealt state, and the player to act."""
        state = self._first_state(self._random)
        return state, self._play_chance(state)

    def _play_chance(self, state: Any) -> int:
        """Play chance's moves; return the player to act, or TERMINAL."""
        while (player := int(state.current_player())) == CHANCE:
            state.apply_action(draw_outcome(state.chance_outcomes(), self._random.random()))
        return player

    def _apply(self, i: int, action: int) -> int:
        """Play an action in hand i; return the player to act next, in a new hand if it ends."""
        state = self._states[i]
        state.apply_action(action)
        player = self._play_chance(state)
        if player == TERMINAL:
            self.returns[i], self.ended[i] = state.returns(), True
            self._states[i], player = self._new_hand()
        return player

    def _observe_and_play_opponents(self) -> None:
        """Fill new observations and masks; opponents act until every hand waits for the caller."""
        self.observations, self.masks = self._observer(self._states, self.seats)
        waiting = list(range(len(self._states))) if self._opponents else []
        while waiting := [i for i in waiting if int(self.seats[i]) in self._opponents]:
            returns, ended = self.returns.copy(), self.ended.copy()
            turns = {s: [i for i in waiting if self.seats[i] == s] for s in self._opponents}
            for seat, hands in turns.items():
                if hands:
                    probabilities = probabilities_of(
                        self._opponents[seat],
                        states=[self._states[i] for i in hands],
                        observations=self.observations[hands],
                        legal=self.masks[hands],
                    )
                    numbers = np.array([self._random.random() for _ in hands])
                    actions = draw_actions(probabilities, self.masks[hands], numbers)
                    for i, action in zip(hands, actions, strict=True):
                        self.seats[i] = self._apply(i, action)
            # Only the result of the hand in which the caller acted counts, not of a later hand.
            self.returns[ended], self.ended[ended] = returns[ended], True
            states = [self._states[i] for i in waiting]
            observations, masks = self._observer(states, self.seats[waiting])
            self.observations[waiting], self.masks[waiting] = observations, masks


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


def origin(game: Game) -> Any:
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
    rng, before, count = random.Random(0), dict[tuple[int, str], tuple[int, ...]](), 0
    deadline = time.process_time() + RECALL_SECONDS
    for _ in range(RECALL_HANDS):
        if time.process_time() > deadline:
            return
        state = game.first_state(rng)
        played: list[tuple[int, ...]] = [()] * game.num_players
        while not state.is_terminal() and count < RECALL_DECISIONS:
            action, player = rng.choice(state.legal_actions()), state.current_player()
            if player != CHANCE:
                key = state.information_state_string(player)
                if before.setdefault((player, key), played[player]) != played[player]:
                    forgotten = "the player has forgotten its earlier actions"
                    raise GameError(f"{game.name}: at {key!r} {forgotten}")
                played[player] += (action,)
                count += 1
            state.apply_action(action)


class Observer:
    """The observations of players in states of a game, as networks receive them."""

    def __init__(self, game: Game) -> None:
        self._tensor, self._write = _tensor_writer(game)
        self._seats = np.eye(game.num_players * game.appends_seat, dtype=np.float32)
        self._num_actions = game.num_actions

    def __call__(self, states: Sequence[Any], seats: Int8Array) -> tuple[Float32Array, BoolArray]:
        """Observations `(n, size)` and legal actions `(n, A)` of seats `(n,)`, one per state.

        If the game appends the seat, its one-hot follows the information state tensor.
        """
        tensor, write, size = self._tensor, self._write, len(self._tensor)
        observations = np.zeros((len(states), size + len(self._seats)), np.float32)
        masks = np.zeros((len(states), self._num_actions), np.bool_)
        legal, counts = list[int](), list[int]()
        for i, (state, seat) in enumerate(zip(states, seats.tolist(), strict=True)):
            write(state, seat)
            observations[i, :size] = tensor
            actions = state.legal_actions()
            legal += actions
            counts.append(len(actions))
        if len(self._seats):
            observations[:, size:] = self._seats[seats]
        masks[np.repeat(np.arange(len(states)), counts), legal] = True
        return observations, masks


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

    single = {"public_info": True, "private_info": PrivateInfoType.SINGLE_PLAYER}
    draws = random.Random(0)
    state = game.first_state(draws)
    try:
        kind = IIGObservationType(perfect_recall=True, **single)
        observation = make_observation(game.pyspiel_game, kind)
        tensor, write = observation.tensor, observation._observation.set_from
        while not state.is_terminal():
            if (player := state.current_player()) >= 0:
                write(state, player)
                copy(state, player)
                if not np.array_equal(tensor, copied):
                    return copied, copy
            state.apply_action(draws.choice(state.legal_actions()))
    except Exception:  # games without observers raise anything
        return copied, copy
    return tensor, write
