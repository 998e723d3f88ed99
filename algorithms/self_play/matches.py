"""Hands between policies in games of any size: on the tree, or on OpenSpiel's states.

Common random numbers: every hand has its own stream of random numbers, and its j-th move, of chance
or of a player, uses the j-th number. The hands of each policy are independent and correctly
distributed. Two policies play a hand identically until they choose different actions. The mean
difference of their returns is therefore unbiased, and has a smaller variance than with independent
hands.
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from algorithms.compiled.jit import STEP, mixed
from algorithms.compiled.nashconv import expected_values
from algorithms.compiled.simulator import new_stream, play_hands, play_out, playable_tree
from algorithms.games import ExactGame, Game, TreeGame
from algorithms.nashconv import joint_policy
from algorithms.policies import Policy, load
from algorithms.self_play.states import (
    Observer,
    StatePolicy,
    draw_actions,
    draw_outcome,
    playable_pyspiel_game,
    probabilities_of,
)
from algorithms.support import command
from algorithms.support.arrays import Float64Array, UInt64Array
from algorithms.support.errors import MAX_SEED, UsageError, whole_number
from algorithms.support.progress import Advance, progress
from algorithms.tree import CHANCE, Tree

# A table `(I, A)`, played on the tree, or a function, played on OpenSpiel's states.
SeatPolicy: TypeAlias = Float64Array | StatePolicy

QUANTILE = 1.959964  # standard deviations around the mean that hold 95% of a normal distribution
AT_ONCE = 4096  # hands played at a time on states: enough for a network's batches
CHUNK = 1 << 20  # hands played at a time on a tree
MIN_HANDS = 30  # fewer do not give a usable standard error
MAX_HANDS = 10**12
MAX_HANDS_ON_STATES = 10**8  # 8 bytes each per seat, and hours of playing
MAX_ERRORS = 5.0  # a correct mean differs by more in one of two million matches


def interval_around(mean: float, standard_error: float) -> tuple[float, float]:
    """The 95% interval around the mean of many independent hands."""
    half = QUANTILE * standard_error
    return mean - half, mean + half


@dataclass(frozen=True, slots=True)
class Sample:
    """A policy's mean return in chips per hand, and its exact value where that is known."""

    hands: int
    mean: float
    standard_error: float
    exact: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean."""
        return interval_around(self.mean, self.standard_error)

    @property
    def errors_off(self) -> float:
        """How many standard errors lie between the mean and the exact value; 0 if unknown."""
        gap = 0.0 if self.exact is None else abs(self.mean - self.exact)
        if gap < 1e-9:
            return 0.0
        return gap / self.standard_error if self.standard_error else math.inf


@dataclass(frozen=True, slots=True)
class Match:
    """What a policy wins in each seat with another one in all others, in chips per hand.

    As a sequence it has one number per seat.

    Attributes:
        values: mean returns by seat.
        mean: mean over all seats.
        interval: 95% interval of the mean; both ends are the mean if it is exact.
        is_exact: whether the values are exact, and not estimates from simulated hands.
    """

    values: tuple[float, ...]
    mean: float
    interval: tuple[float, float]
    is_exact: bool

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __getitem__(self, seat: int) -> float:
        return self.values[seat]

    def __len__(self) -> int:
        return len(self.values)


def match(one: Policy, other: Policy, *, hands: int, seed: int = 0) -> Match:
    """The results of `one` in each seat with `other` in all others: `Policy.versus`."""
    game = one.game
    if not isinstance(other, Policy):
        kind = type(other).__name__
        raise UsageError(f"a {kind} cannot play: want a Policy of {game.name}")
    if other.game.name != game.name:
        raise UsageError(f"a policy of {other.game.name} cannot play {game.name}")
    hands = whole_number("hands", hands, least=MIN_HANDS, most=MAX_HANDS)
    seed = whole_number("seed", seed, least=0, most=MAX_SEED)
    if isinstance(game, ExactGame):
        values = tuple(
            _exact_value(game, _seating(one, other, seat), seat) for seat in range(game.num_players)
        )
        mean = sum(values) / len(values)
        return Match(values=values, mean=mean, interval=(mean, mean), is_exact=True)
    *seats, together = play_match(one, other, hands=hands, seed=seed)
    return Match(
        values=tuple(sample.mean for sample in seats),
        mean=together.mean,
        interval=together.interval,
        is_exact=False,
    )


def _seating(one: Policy, other: Policy, seat: int) -> list[Policy]:
    """`one` in a seat, and `other` in all others."""
    return [one if player == seat else other for player in range(one.game.num_players)]


def _exact_value(game: ExactGame, seating: Sequence[Policy], seat: int) -> float:
    """What the policy in a seat wins, in a game that is measured exactly."""
    table = game.seated([policy.table for policy in seating])
    return float(game.measure(table).values[seat])


def with_best_response(policy: Policy, player: int) -> Policy:
    """A policy with a best response in one seat: `Policy.best_response`."""
    game = policy.game
    if player not in range(game.num_players):
        raise UsageError(f"player={player!r}: want a seat from 0 to {game.num_players - 1}")
    exact_game = game.require_exact()
    responses = Policy(game, exact_game.pure(policy.measure().best_responses))
    seating = _seating(responses, policy, player)
    return Policy(game, exact_game.seated([one.table for one in seating]))


def add_options(parser: command.Parser) -> None:
    """Add the options of a command that plays matches."""
    add = parser.add_argument
    add("--game", metavar="NAME", help=load.GAME_HELP)
    parser.add_import()
    hands = command.number(MIN_HANDS, MAX_HANDS)
    add("--hands", type=hands, default=100_000, help="number of hands per seat (%(default)s)")
    seed = "random seed of deals and draws (%(default)s)"
    add("--seed", type=command.number(0), default=0, help=seed)
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
    game = one.game
    with progress("playing", game.num_players * hands) as show:
        if isinstance(game, TreeGame):
            tables = [one.table, other.table]
            samples = simulate(game.tree, tables, hands=hands, seed=seed, progress=show)
            return (*samples, all_seats(samples))
        return _play_match_on_states(one, other, hands=hands, seed=seed, progress=show)


def _play_match_on_states(
    one: Policy, other: Policy, *, hands: int, seed: int, progress: Advance
) -> tuple[Sample, ...]:
    """`play_match` in a game without a tree."""
    if hands > MAX_HANDS_ON_STATES:
        raise UsageError(
            f"{hands:,} hands: in a game without a tree, where they are kept in memory, a match "
            f"has at most {MAX_HANDS_ON_STATES:,} per seat"
        )
    game = one.game
    players = range(game.num_players)
    seatings = [_seating(one, other, seat) for seat in players]
    streams = hand_streams(seed, hands)
    won = np.empty((len(players), hands))  # by the seat of `one`
    for first in range(0, hands, AT_ONCE):
        batch = slice(first, first + AT_ONCE)
        for seat, seating in enumerate(seatings):
            functions = [policy.seat_policy for policy in seating]
            won[seat, batch] = hand_returns(game, functions, streams[batch])[:, seat]
        progress(first * len(players), "hands")
    if isinstance(game, ExactGame):
        exact = [_exact_value(game, seating, seat) for seat, seating in enumerate(seatings)]
        samples = [_sample(won[seat], exact[seat]) for seat in players]
        together = _sample(won.mean(axis=0), sum(exact) / len(players))
    else:
        samples = [_sample(won[seat], None) for seat in players]
        together = _sample(won.mean(axis=0), None)
    return (*samples, replace(together, hands=won.size))


def simulate(
    tree: Tree, policies: Sequence[Float64Array], *, hands: int, seed: int, progress: Advance
) -> list[Sample]:
    """The returns of `policies[0]` in each seat against `policies[1]` in all others, per seat."""
    one, other = policies
    players = range(tree.num_players)
    stream = new_stream(seed)
    samples = []
    for seat in players:
        policy = joint_policy(tree, [one if player == seat else other for player in players])
        playable = playable_tree(tree, dict.fromkeys(players, policy))
        count = np.zeros(tree.num_nodes, np.int64)  # (N,) how many hands end at each node
        for start in range(0, hands, CHUNK):
            count += play_out(playable, min(CHUNK, hands - start), stream)
            progress(seat * hands + start, "hands")
        won = tree.returns[seat]  # (N,)
        mean = float(count @ won) / hands
        variance = float(count @ (won - mean) ** 2) / max(hands - 1, 1)
        sample = Sample(
            hands=hands,
            mean=mean,
            standard_error=math.sqrt(variance / hands),
            exact=expected_values(tree, policy)[seat],
        )
        samples.append(sample)
    return samples


def all_seats(samples: Sequence[Sample]) -> Sample:
    """The mean over all seats of a tree, with equal weights."""
    hands, means, errors, exact = zip(*map(astuple, samples), strict=True)
    seats = len(samples)
    return Sample(
        hands=sum(hands),
        mean=sum(means) / seats,
        standard_error=math.hypot(*errors) / seats,
        exact=sum(exact) / seats,
    )


def _sample(won: Float64Array, exact: float | None) -> Sample:
    """The mean over independent hands `(n,)`, and its standard error."""
    return Sample(
        hands=len(won),
        mean=float(won.mean()),
        standard_error=float(won.std(ddof=1)) / math.sqrt(len(won)),
        exact=exact,
    )


def hand_streams(seed: int | Sequence[int], hands: int) -> UInt64Array:
    """The first states of the random streams of many hands: `(hands,)`."""
    return np.random.default_rng(seed).integers(2**64, size=hands, dtype=np.uint64)


def hand_returns(game: Game, policies: Sequence[SeatPolicy], streams: UInt64Array) -> Float64Array:
    """All players' returns in each hand, with one policy per seat: `(hands, P)`."""
    tables = [policy for policy in policies if isinstance(policy, np.ndarray)]
    if tables:
        ends = play_hands(playable_tree(game.tree, dict(enumerate(tables))), streams)
        return np.asarray(game.tree.returns.T[ends], np.float64)
    functions = [policy for policy in policies if not isinstance(policy, np.ndarray)]
    starts = range(0, len(streams), AT_ONCE)
    return np.concatenate([_play_states(game, functions, streams[i : i + AT_ONCE]) for i in starts])


def _play_states(game: Game, policies: Sequence[StatePolicy], streams: UInt64Array) -> Float64Array:
    """The returns `(n, P)` of n hands that are played move by move, in parallel."""
    playable_pyspiel_game(game)  # raises an error if the game has no states that networks can play
    observe = Observer(game)
    states = [game.first_state(random.Random(stream)) for stream in streams.tolist()]
    streams = streams.copy()
    unfinished = np.arange(len(states))
    while len(unfinished):
        streams += STEP
        bits: Any = mixed(streams[unfinished])  # type: ignore[arg-type]  # compiled for arrays too
        numbers = (bits >> np.uint64(11)) * 2.0**-53  # (unfinished,) in [0, 1)
        players = np.array([states[hand].current_player() for hand in unfinished])
        for player in np.unique(players).tolist():
            acts = players == player
            hands = [states[hand] for hand in unfinished[acts]]
            drawn = numbers[acts]
            if player == CHANCE:
                actions = [
                    draw_outcome(state.chance_outcomes(), number)
                    for state, number in zip(hands, drawn, strict=True)
                ]
            else:
                observations, legal = observe(hands, players[acts])
                probabilities = probabilities_of(
                    policies[player], states=hands, observations=observations, legal=legal
                )
                actions = draw_actions(probabilities, legal, drawn)
            for state, action in zip(hands, actions, strict=True):
                state.apply_action(action)
        unfinished = unfinished[[not states[hand].is_terminal() for hand in unfinished]]
    return np.array([state.returns() for state in states])
