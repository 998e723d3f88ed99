"""Matches between two policies in games of any size: on the tree, or on OpenSpiel's states."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from algorithms.exact.simulation import Sample, all_seats, simulate
from algorithms.learning.common_hands import hand_streams, state_returns
from algorithms.policies import Policy
from algorithms.support.arrays import Float64Array
from algorithms.support.progress import Advance


@dataclass(frozen=True, slots=True)
class Match:
    """The results of a policy in each seat against another policy, and in all seats together."""

    seats: tuple[Sample, ...]
    together: Sample


def play_match(
    policies: tuple[Policy, Policy], *, hands: int, seed: int = 0, progress: Advance | None = None
) -> Match:
    """The results of the first policy in each seat, with the second policy in all others.

    On states all seatings play the same hands (`common_hands`), which reduces the variance of the
    mean over seats. On the tree, where hands cost almost nothing, they play different hands.

    Args:
        policies: two policies of one game.
        hands: number of hands in each seat.
        seed: random seed of deals and draws.
        progress: function that is called with the number of hands so far, and a note.
    """
    game = policies[0].game
    if game.fits_tree:
        tables = [policy.table for policy in policies]
        samples = simulate(game.tree, tables, hands=hands, seed=seed, progress=progress)
        return Match(samples, all_seats(samples))
    players, streams = range(game.num_players), hand_streams(seed, hands)
    won, exact = np.empty((len(players), hands)), list[float]()
    for seat in players:
        seated = [policies[player != seat] for player in players]
        play = [policy.probabilities for policy in seated]
        show = partial(_show, progress, seat * hands)
        won[seat] = state_returns(game, play, streams, show)[:, seat]
        if game.is_exact:
            table = tuple(policy.table[player] for player, policy in enumerate(seated))
            exact.append(game.measure(table).values[seat])
    seats = tuple(_sample(won[i], exact[i] if exact else None) for i in players)
    together = _sample(won.mean(axis=0), sum(exact) / len(exact) if exact else None)
    return Match(seats, replace(together, hands=won.size))


def _show(progress: Advance | None, before: int, hands: int) -> None:
    if progress:
        progress(before + hands, "hands")


def _sample(won: Float64Array, exact: float | None) -> Sample:
    """The mean over independent hands `(n,)`, and its standard error."""
    error = float(won.std(ddof=1)) / math.sqrt(len(won))
    return Sample(len(won), float(won.mean()), error, exact)
