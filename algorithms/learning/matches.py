"""Matches between two policies in games of any size: on the tree, or on OpenSpiel's states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from algorithms.exact.simulation import Sample, all_seats, simulate
from algorithms.games import Game
from algorithms.learning.common_hands import AT_ONCE, hand_streams, state_returns
from algorithms.policies import Policy
from algorithms.support.arrays import Float64Array
from algorithms.support.progress import Advance

Pair: TypeAlias = tuple[Policy, Policy]


@dataclass(frozen=True, slots=True)
class Match:
    """What a policy won in each seat with another one in all others, and in all seats together."""

    seats: tuple[Sample, ...]
    together: Sample


def play_match(
    policies: Pair, *, hands: int, seed: int = 0, progress: Advance | None = None
) -> Match:
    """What the first policy wins in each seat against the second one in all others.

    On states all seatings play the same hands (`common_hands`), so the mean over seats varies less
    than that of different hands; on the tree, where hands cost nothing, they play different ones.

    Args:
        policies: of one game.
        hands: in each seat.
        seed: of deals and draws.
        progress: called with the number of hands so far, and a note.
    """
    game = policies[0].game
    if game.fits_tree:
        tables = [policy.table for policy in policies]
        samples = simulate(game.tree, tables, hands=hands, seed=seed, progress=progress)
        return Match(samples, all_seats(samples))
    exact = _exact_values(policies)
    won = _returns(policies, hands=hands, seed=seed, progress=progress)
    seats = tuple(_sample(own, value) for own, value in zip(won, exact, strict=True))
    known = [value for value in exact if value is not None]
    mean = sum(known) / len(exact) if len(known) == len(exact) else None
    together = _sample(won.mean(axis=0), mean)
    return Match(seats, Sample(won.size, together.mean, together.standard_error, mean))


def _returns(policies: Pair, *, hands: int, seed: int, progress: Advance | None) -> Float64Array:
    """What the first policy wins on states, in each seat and hand: `(P, hands)`."""
    game, streams = policies[0].game, hand_streams(seed, hands)
    won = np.empty((game.num_players, hands))
    for seat in range(game.num_players):
        play = [policies[player != seat].probabilities for player in range(game.num_players)]
        for start in range(0, hands, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            won[seat, part] = state_returns(game, play, streams[part])[:, seat]
            if progress:
                progress(seat * hands + start, "hands")
    return won


def _exact_values(policies: Pair) -> Sequence[float | None]:
    """The exact value of the first policy in each seat of a native game; else None."""
    game = policies[0].game
    if not game.is_exact:
        return [None] * game.num_players
    return [_exact_value(game, policies, seat) for seat in range(game.num_players)]


def _exact_value(game: Game, policies: Pair, seat: int) -> float:
    players = range(game.num_players)
    table = tuple(policies[player != seat].table[player] for player in players)
    return game.measure(table).values[seat]


def _sample(won: Float64Array, exact: float | None) -> Sample:
    """The mean over hands `(n,)`, which are independent."""
    error = float(won.std(ddof=1)) / math.sqrt(len(won))
    return Sample(len(won), float(won.mean()), error, exact)
