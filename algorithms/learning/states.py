"""Many hands at once on OpenSpiel states: for games that are too large for a tree."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from algorithms.exact.tree import CHANCE, TERMINAL
from algorithms.games import Game
from algorithms.support.arrays import BoolArray, Float32Array, Int64Array
from kuhn_bridge.errors import GameError, IllegalActionError

# Observations (n, size) float32 and masks (n, A) bool -> probabilities (n, A).
StatePolicy: TypeAlias = Callable[[Float32Array, BoolArray], Any]

RECALL_HANDS, RECALL_DECISIONS = 3_000, 20_000  # random ones, at most, that show who forgets


class StateSimulator:
    """n hands on OpenSpiel states, one decision each per step: the same interface as `Simulator`.

    Args:
        game: an OpenSpiel game with an information state tensor.
        hands: n.
        seed: of chance, and of the opponents' actions.
        opponents: policies that play some of the seats; at least one seat is left.

    Attributes:
        seats: who is to act, int8 `(n,)`.
        observations: what they observe, float32 `(n, size)`, with the seat's one-hot if the game
            appends it.
        masks: their legal actions, bool `(n, A)`.
        acted: who acted in the last step, int8 `(n,)`.
        returns: every player's returns where a hand ended in the last step, else 0: `(n, P)`.
        ended: whether a hand ended in the last step, `(n,)`.
    """

    def __init__(
        self,
        game: Game,
        hands: int,
        *,
        seed: int = 0,
        opponents: Mapping[int, StatePolicy] | None = None,
    ) -> None:
        self._new_state = origin(game).new_initial_state
        self._tensor, self._write = observer(game)
        self._opponents, self._random = dict(opponents or {}), random.Random(seed)
        self._seat_columns = (
            np.eye(game.num_players, dtype=np.float32) if game.appends_seat else None
        )
        size = game.observation_size
        self.observations = np.zeros(
            (hands, size + game.num_players * game.appends_seat), np.float32
        )
        self._tensors = self.observations[:, :size]
        self.masks = np.zeros((hands, game.num_actions), np.bool_)
        self.seats, self.acted = np.zeros((2, hands), np.int8)
        self.returns = np.zeros((hands, game.num_players), np.float32)
        self.ended = np.zeros(hands, np.bool_)
        self._states: list[Any] = [None] * hands
        self._all = list(range(hands))
        self.deal()

    def seed(self, seed: int) -> None:
        """Restart the random numbers."""
        self._random = random.Random(seed)

    def deal(self) -> None:
        """Start all hands anew."""
        for i in range(len(self._states)):
            self._states[i], self.seats[i] = self._new_hand()
        self._observe(self._all)
        self._play_opponents()

    def step(self, actions: Int64Array) -> None:
        """Play one legal action per hand `(n,)`."""
        if np.shape(actions) != self.seats.shape:
            raise IllegalActionError(
                f"{len(self.seats):,} hands take as many actions; got {np.shape(actions)}"
            )
        self._require_legal(actions)
        self.acted = self.seats
        self.returns = np.zeros_like(self.returns)
        self.ended = np.zeros_like(self.ended)
        seats = [self._apply(i, action) for i, action in enumerate(actions.tolist())]
        self.seats = np.array(seats, np.int8)
        self._observe(self._all)
        self._play_opponents()

    def get_state(self) -> dict[str, Any]:
        """All that the next step depends on, besides the opponents."""
        version, numbers, gauss = self._random.getstate()
        histories = [state.history() for state in self._states]
        return {"histories": histories, "random": [version, list(numbers), gauss]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        for i, history in enumerate(state["histories"]):
            self._states[i] = self._new_state()
            for action in history:
                self._states[i].apply_action(action)
            self.seats[i] = self._states[i].current_player()
        self._observe(self._all)
        version, numbers, gauss = state["random"]
        self._random.setstate((version, tuple(numbers), gauss))

    def _require_legal(self, actions: Int64Array) -> None:
        inside = (actions >= 0) & (actions < self.masks.shape[1])
        legal = inside & self.masks[np.arange(len(actions)), np.where(inside, actions, 0)]
        if not legal.all():
            hand = int(legal.argmin())
            raise IllegalActionError(f"action {actions[hand]} is illegal in hand {hand}")

    def _new_hand(self) -> tuple[Any, int]:
        """A dealt state, and who is to act."""
        state = self._new_state()
        return state, self._play_chance(state, state.current_player())

    def _play_chance(self, state: Any, player: int) -> int:
        """Who is to act, or TERMINAL, once chance has moved."""
        while player == CHANCE:
            state.apply_action(draw_outcome(state.chance_outcomes(), self._random.random()))
            player = state.current_player()
        return player

    def _apply(self, i: int, action: int) -> int:
        """Play an action in hand i; who is to act then, in the next hand if this one ends."""
        state = self._states[i]
        state.apply_action(action)
        player: int = state.current_player()
        if player < 0:
            player = self._play_chance(state, player)
            if player == TERMINAL:
                self.returns[i] = state.returns()
                self.ended[i] = True
                self._states[i], player = self._new_hand()
        return player

    def _observe(self, hands: Sequence[int]) -> None:
        """Write the observations and masks of some hands."""
        tensors, tensor, write = self._tensors, self._tensor, self._write
        seats = self.seats[hands]
        legal: list[int] = []
        counts: list[int] = []
        for i, seat in zip(hands, seats.tolist(), strict=True):
            state = self._states[i]
            write(state, seat)
            tensors[i] = tensor
            actions = state.legal_actions()
            legal += actions
            counts.append(len(actions))
        if self._seat_columns is not None:
            self.observations[hands, tensors.shape[1] :] = self._seat_columns[seats]
        self.masks[hands] = False
        self.masks[np.repeat(hands, counts), legal] = True

    def _play_opponents(self) -> None:
        """Let the opponents act until every hand waits for another seat."""
        waiting = self._all if self._opponents else []
        while waiting := [i for i in waiting if int(self.seats[i]) in self._opponents]:
            returns, ended = self.returns.copy(), self.ended.copy()
            turns = {s: [i for i in waiting if self.seats[i] == s] for s in self._opponents}
            for seat, hands in turns.items():
                if hands:
                    actions = self._drawn(self._opponents[seat], hands)
                    for i, action in zip(hands, actions, strict=True):
                        self.seats[i] = self._apply(i, action)
            # Only the hand in which the caller acted counts, not one that was dealt after it.
            self.returns[ended], self.ended[ended] = returns[ended], True
            self._observe(waiting)

    def _drawn(self, policy: StatePolicy, hands: list[int]) -> list[int]:
        """Actions drawn from what a policy says about some hands."""
        probabilities = np.asarray(policy(self.observations[hands], self.masks[hands]), np.float64)
        sums = np.cumsum(probabilities * self.masks[hands], axis=1)
        numbers = np.array([[self._random.random()] for _ in hands])
        actions: list[int] = (sums <= numbers * sums[:, -1:]).sum(axis=1).tolist()
        return actions


def draw_outcome(outcomes: Sequence[tuple[int, float]], number: float) -> int:
    """The outcome of chance that a number in [0, 1) means."""
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return action
    return outcomes[-1][0]  # the probabilities sum to a little less than 1


def origin(game: Game) -> Any:
    """The OpenSpiel game to play on; a `GameError` if there is none that a network can play."""
    if game.origin is None:
        raise GameError(f"{game.name} has no OpenSpiel states: it is played on its tree")
    if not game.observation_size:
        raise GameError(f"{game.name} has no information state tensor, which a network needs")
    _require_recall(game)
    return game.origin


@lru_cache(maxsize=4)
def _require_recall(game: Game) -> None:
    """Raise a `GameError` if random hands show that a player forgets its own actions."""
    rng, before, count = random.Random(0), dict[tuple[int, str], tuple[int, ...]](), 0
    for _ in range(RECALL_HANDS):
        state = game.origin.new_initial_state()
        played: list[tuple[int, ...]] = [()] * game.num_players
        while not state.is_terminal() and count < RECALL_DECISIONS:
            action, player = rng.choice(state.legal_actions()), state.current_player()
            if player != CHANCE:
                key = state.information_state_string(player)
                if before.setdefault((player, key), played[player]) != played[player]:
                    raise GameError(
                        f"{game.name}: at {key!r} the player has forgotten its earlier actions"
                    )
                played[player] += (action,)
                count += 1
            state.apply_action(action)


def observer(game: Game) -> tuple[Float32Array, Callable[[Any, int], None]]:
    """An array `(size,)`, and a function that writes a player's information state tensor into it.

    OpenSpiel's observer writes it several times as fast as `information_state_tensor` does; it is
    used where it writes the same numbers on a random hand.
    """
    from open_spiel.python.observation import make_observation
    from pyspiel import IIGObservationType, PrivateInfoType

    kind = IIGObservationType(
        perfect_recall=True, public_info=True, private_info=PrivateInfoType.SINGLE_PLAYER
    )
    try:
        observation = make_observation(game.origin, kind)
        observer: tuple[Float32Array, Callable[[Any, int], None]] = (
            observation.tensor,
            observation._observation.set_from,
        )
        if _writes_information_states(game, *observer):
            return observer
    except Exception:  # noqa: S110  # games without observers raise what they like
        pass
    tensor = np.zeros(game.observation_size, np.float32)

    def write(state: Any, player: int) -> None:
        tensor[:] = state.information_state_tensor(player)

    return tensor, write


def _writes_information_states(
    game: Game, tensor: Float32Array, write: Callable[[Any, int], None]
) -> bool:
    draws, state = random.Random(0), game.origin.new_initial_state()
    while not state.is_terminal():
        player = state.current_player()
        if player >= 0:
            write(state, player)
            wanted = np.asarray(state.information_state_tensor(player), np.float32)
            if not np.array_equal(tensor, wanted):
                return False
        state.apply_action(draws.choice(state.legal_actions()))
    return True
