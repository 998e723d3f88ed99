"""Hands between policies in games of any size: on the tree, or on OpenSpiel's states.

Common random numbers: every hand has its own stream of random numbers, and its j-th move, of chance
or of a player, uses the j-th number. The hands of each policy are independent and correctly
distributed. Two policies play a hand identically until they choose different actions. The mean
difference of their returns is therefore unbiased, and has a smaller variance than with independent
hands.
"""

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeAlias

import numpy as np

from algorithms.exact.simulation import MAX_ERRORS, Sample, all_seats, simulate
from algorithms.exact.simulator import play_hands, rules_of
from algorithms.exact.tree import CHANCE
from algorithms.games import Game
from algorithms.learning.states import Observer, StatePolicy, draw_actions, draw_outcome, origin
from algorithms.policies import Policy, sources
from algorithms.support import command
from algorithms.support.arrays import Float64Array, UInt64Array
from algorithms.support.compiled import STEP, mixed
from algorithms.support.progress import progress

# A table `(I, A)`, played on the tree, or a function, played on OpenSpiel's states.
SeatPolicy: TypeAlias = Float64Array | StatePolicy

AT_ONCE = 4096  # hands played at a time on states: enough for a network's batches


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that plays matches."""
    add = parser.add_argument
    add("--game", metavar="NAME", help=sources.GAME_HELP)
    add("--hands", type=int, default=100_000, help="number of hands per seat (%(default)s)")
    add("--seed", type=int, default=0, help="random seed of deals and draws (%(default)s)")
    add("--trust", action="store_true", help="let a model's file run code")
    add("--json", action="store_true", help="print one JSON object")


def as_json(names: Sequence[str], samples: Sequence[Sample]) -> dict[str, Any]:
    """The samples by name, each with its interval."""
    named = zip(names, samples, strict=True)
    return {name: asdict(sample) | {"interval": sample.interval} for name, sample in named}


def exit_code(matches: Iterable[Sequence[Sample]]) -> int:
    """`EXIT_FAILED` if a seat's mean is further from the exact value than chance explains."""
    off = max(sample.errors_off for *seats, _ in matches for sample in seats)
    return command.EXIT_FAILED if off > MAX_ERRORS else command.EXIT_OK


def play_match(one: Policy, other: Policy, *, hands: int, seed: int = 0) -> tuple[Sample, ...]:
    """The results of `one` in each seat with `other` in all others, and in all seats together.

    On states all seatings play the same hands, which reduces the variance of the mean over seats.
    On the tree, where hands cost almost nothing, they play different hands. `hands` is the number
    in each seat.
    """
    game, players = one.game, range(one.game.num_players)
    with progress("playing", len(players) * hands) as show:
        if game.fits_tree:
            tables = [one.table, other.table]
            samples = simulate(game.tree, tables, hands=hands, seed=seed, progress=show)
            return (*samples, all_seats(samples))
        seatings = [[one if player == seat else other for player in players] for seat in players]
        streams, won = hand_streams(seed, hands), np.empty((len(players), hands))
        for first in range(0, hands, AT_ONCE):
            part = slice(first, first + AT_ONCE)
            for seat, seated in enumerate(seatings):
                play = [policy.probabilities for policy in seated]
                won[seat, part] = hand_returns(game, play, streams[part])[:, seat]
            show(first * len(players), "hands")
    exact: list[Any] = [None] * (len(players) + 1)
    if game.is_exact:
        tables = [tuple(policy.table[p] for p, policy in enumerate(seated)) for seated in seatings]
        values = [game.measure(table).values[seat] for seat, table in enumerate(tables)]
        exact = [*values, sum(values) / len(players)]
    *seats, together = map(_sample, (*won, won.mean(axis=0)), exact)
    return (*seats, replace(together, hands=won.size))


def _sample(won: Float64Array, exact: float | None) -> Sample:
    """The mean over independent hands `(n,)`, and its standard error."""
    error = float(won.std(ddof=1)) / math.sqrt(len(won))
    return Sample(len(won), float(won.mean()), error, exact)


def hand_streams(seed: int | Sequence[int], hands: int) -> UInt64Array:
    """The first states of the random streams of many hands: `(hands,)`."""
    return np.random.default_rng(seed).integers(2**64, size=hands, dtype=np.uint64)


def hand_returns(game: Game, policies: Sequence[Any], streams: UInt64Array) -> Float64Array:
    """All players' returns in each hand, with one `SeatPolicy` per seat: `(hands, P)`."""
    if not callable(policies[0]):
        ends = play_hands(rules_of(game.tree, dict(enumerate(policies))), streams)
        return np.asarray(game.tree.returns.T[ends], np.float64)
    starts = range(0, len(streams), AT_ONCE)
    return np.concatenate([_play_states(game, policies, streams[i : i + AT_ONCE]) for i in starts])


def _play_states(game: Game, policies: Sequence[Any], streams: UInt64Array) -> Float64Array:
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
