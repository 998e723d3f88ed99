"""The same hands played by several policies: common random numbers.

Every hand has its own stream of random numbers, and its j-th move, of chance or of a player, uses
the j-th number. The hands of each policy are independent and correctly distributed. Two policies
play a hand identically until they choose different actions. The mean difference of their returns is
therefore unbiased, and has a smaller variance than with independent hands.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.exact.simulator import play_hands, rules_of
from algorithms.exact.tree import CHANCE, Tree
from algorithms.games import Game
from algorithms.learning.states import Observer, StatePolicy, draw_actions, draw_outcome, origin
from algorithms.support.arrays import Float64Array, UInt64Array
from algorithms.support.draws import STEP, mixed

AT_ONCE = 4096  # hands played at a time on states: enough for a network's batches


def hand_streams(seed: int | Sequence[int], hands: int) -> UInt64Array:
    """The first states of the random streams of many hands, for `play_hands`: `(hands,)`."""
    return np.random.default_rng(seed).integers(2**64, size=hands, dtype=np.uint64)


def tree_returns(tree: Tree, policy: npt.ArrayLike, streams: UInt64Array) -> Float64Array:
    """All players' returns in each hand under a joint policy `(I, A)`: `(hands, P)`."""
    rules = rules_of(tree, dict.fromkeys(range(tree.num_players), policy))
    return np.asarray(tree.returns.T[play_hands(rules, streams)], np.float64)


def state_returns(
    game: Game,
    policies: Sequence[StatePolicy],
    streams: UInt64Array,
    progress: Callable[[int], None] = lambda hands: None,
) -> Float64Array:
    """All players' returns in each hand with one policy per seat, on states: `(hands, P)`."""
    won = np.empty((len(streams), game.num_players))
    for start in range(0, len(streams), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        won[part] = _play_states(game, policies, streams[part])
        progress(start)
    return won


def _play_states(game: Game, policies: Sequence[StatePolicy], streams: UInt64Array) -> Float64Array:
    """The returns `(n, P)` of n hands that are played move by move, in parallel."""
    new_state, observe = origin(game).new_initial_state, Observer(game)
    states = [new_state() for _ in streams]
    waiting, streams = np.arange(len(states)), streams.copy()
    while len(waiting):
        streams += STEP
        bits: Any = mixed(streams[waiting])  # type: ignore[arg-type]  # compiled for arrays too
        numbers = (bits >> np.uint64(11)) * 2.0**-53  # in [0, 1)
        players = np.array([states[hand].current_player() for hand in waiting])
        for player in np.unique(players).tolist():
            turn = players == player
            hands, drawn = [states[hand] for hand in waiting[turn]], numbers[turn]
            if player == CHANCE:
                outcomes = [state.chance_outcomes() for state in hands]
                actions = [draw_outcome(*pair) for pair in zip(outcomes, drawn, strict=True)]
            else:
                actions = draw_actions(policies[player], *observe(hands, players[turn]), drawn)
            for state, action in zip(hands, actions, strict=True):
                state.apply_action(action)
        waiting = waiting[[not states[hand].is_terminal() for hand in waiting]]
    return np.array([state.returns() for state in states])
