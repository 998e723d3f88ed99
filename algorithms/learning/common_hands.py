"""The same hands played by several policies: common random numbers.

Hand k has a stream of random numbers of its own, and its j-th move, be it chance's or a player's,
takes the j-th of them. Each policy alone plays hands that are independent and distributed as they
should be. Two policies play a hand alike until they choose different actions, so the difference of
their returns, averaged over hands, is unbiased and varies less than between different hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.exact.simulator import play_hands, running_sums
from algorithms.exact.tree import CHANCE, Tree
from algorithms.games import Game
from algorithms.learning.states import StatePolicy, observer, origin
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, UInt64Array
from algorithms.support.compiled import compiled
from algorithms.support.draws import STEP, mixed

AT_ONCE = 4096  # hands on states: enough for a network's batches


def hand_streams(seed: int | Sequence[int], hands: int) -> UInt64Array:
    """The first states of the random streams of many hands, for `play_hands`: `(hands,)`."""
    return np.random.default_rng(seed).integers(2**64, size=hands, dtype=np.uint64)


def tree_returns(tree: Tree, policy: npt.ArrayLike, streams: UInt64Array) -> Float64Array:
    """What all players win in each hand under a joint policy `(I, A)`: `(hands, P)`."""
    return np.asarray(tree.returns.T[play_hands(tree, policy, streams)], np.float64)


def state_returns(
    game: Game, policies: Sequence[StatePolicy], streams: UInt64Array
) -> Float64Array:
    """What all players win in each hand with one policy per seat, on states: `(hands, P)`."""
    parts = np.split(streams, range(AT_ONCE, len(streams), AT_ONCE))
    return np.concatenate([_play_states(game, policies, part) for part in parts])


def _play_states(game: Game, policies: Sequence[StatePolicy], streams: UInt64Array) -> Float64Array:
    """The returns `(n, P)` of n hands, all of which take a move at a time."""
    new_state, observe = origin(game).new_initial_state, _Observer(game)
    states = [new_state() for _ in streams]
    waiting, move = np.arange(len(states)), 0
    while len(waiting):
        move += 1
        numbers = _numbers(streams[waiting], move)
        players = np.array([states[hand].current_player() for hand in waiting])
        for player in np.unique(players).tolist():
            turn = players == player
            hands = [states[hand] for hand in waiting[turn]]
            if player == CHANCE:
                actions = [_chance(s, x) for s, x in zip(hands, numbers[turn], strict=True)]
            else:
                actions = _drawn(policies[player], *observe(hands, player), numbers[turn])
            for state, action in zip(hands, actions, strict=True):
                state.apply_action(action)
        waiting = waiting[[not states[hand].is_terminal() for hand in waiting]]
    return np.array([state.returns() for state in states])


class _Observer:
    """What a player observes in each of many states, and the legal actions."""

    def __init__(self, game: Game) -> None:
        self._game, (self._tensor, self._write) = game, observer(game)

    def __call__(self, states: Sequence[Any], player: int) -> tuple[Float32Array, BoolArray]:
        """Observations `(n, size)` as training has them, and masks `(n, A)`."""
        game, size = self._game, self._game.observation_size
        seats = game.num_players * game.appends_seat
        observations = np.zeros((len(states), size + seats), np.float32)
        masks = np.zeros((len(states), game.num_actions), np.bool_)
        for i, state in enumerate(states):
            self._write(state, player)
            observations[i, :size] = self._tensor
            masks[i, state.legal_actions()] = True
        if seats:
            observations[:, size + player] = 1
        return observations, masks


def _chance(state: Any, number: float) -> int:
    """The outcome of chance that a number in [0, 1) stands for."""
    outcomes = state.chance_outcomes()
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return int(action)
    return int(outcomes[-1][0])  # by rounding


def _drawn(
    policy: StatePolicy, observations: Float32Array, masks: BoolArray, numbers: Float64Array
) -> list[int]:
    """The actions of a policy that numbers in [0, 1) stand for."""
    sums = running_sums(np.asarray(policy(observations, masks)) * masks)
    actions: list[int] = (sums <= numbers[:, None]).sum(axis=1).tolist()
    return actions


@compiled
def _numbers(streams: UInt64Array, move: int) -> Float64Array:
    """The number in [0, 1) that each stream has for a move, counted from 1."""
    numbers = np.zeros(len(streams))
    for i in range(len(streams)):
        bits = mixed(streams[i] + np.uint64(move) * STEP)
        numbers[i] = float(bits >> np.uint64(11)) * 2.0**-53
    return numbers
