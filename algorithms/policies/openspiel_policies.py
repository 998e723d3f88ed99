"""Policies to and from OpenSpiel, and OpenSpiel's own measure of them.

Functions take a game and its table `(I, A)`. For `kuhn` the OpenSpiel game is `kuhn_poker`, whose
two action IDs are translated, or `python_kuhn_bridge`, which has ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.games import Game, TreeGame, as_game
from algorithms.games.game import PyspielGame, PyspielState
from algorithms.games.openspiel import replay
from algorithms.nashconv import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array
from kuhn_bridge.errors import PolicyError

# What a function of the user's may raise where it has no answer.
_ANSWER_ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
_TOLERANCE = 1e-6  # of the sum of probabilities


@dataclass(frozen=True, slots=True)
class OpenSpielMeasure:
    """NashConv, gains and values of a policy by OpenSpiel's own `exploitability`."""

    nash_conv: float
    gains: tuple[float, ...]
    values: tuple[float, ...]

    def gap(self, ours: Measure) -> float:
        """The largest difference to our numbers."""
        their_numbers = (self.nash_conv, *self.gains, *self.values)
        our_numbers = (ours.nash_conv, *ours.gains, *ours.values)
        return max(abs(a - b) for a, b in zip(their_numbers, our_numbers, strict=True))


def read_policy(
    policy: Any, game: Game | str | PyspielGame | None = None
) -> tuple[Game, Float64Array]:
    """The game and the table `(I, A)` of a policy as `Policy.from_openspiel` takes it.

    It has `action_probabilities(state)`, or is called with a state; both return a map or pairs from
    action to probability, or probabilities by action ID.
    """
    own_game = getattr(policy, "game", None)
    if game is None and own_game is None:
        raise PolicyError(f"{type(policy).__name__} does not name its game: pass `game`")
    loaded = _require_tree(as_game(own_game if game is None else game))
    game_of_policy = loaded.openspiel_game() if own_game is None else own_game
    loaded.require_openspiel(game_of_policy)
    players = list(range(loaded.num_players))
    covered = sorted(getattr(policy, "player_ids", players))
    if covered != players:
        raise PolicyError(f"an incomplete policy: it covers players {covered} of {players}")
    keys = loaded.tree.keys
    # A C++ policy has no game, only information states.
    known = policy.policy_table() if hasattr(policy, "policy_table") else keys
    other = sorted(set(known) ^ set(keys))
    if other:
        what = f"an incomplete policy, or of another game than {loaded.name}"
        raise PolicyError(f"{what}: only one of them has {other[0]!r}")
    ask = getattr(policy, "action_probabilities", policy)
    if not callable(ask):
        raise PolicyError(f"{type(policy).__name__} is neither an OpenSpiel policy nor a function")
    answers = [_answer(ask, loaded, game_of_policy, infoset) for infoset in range(len(keys))]
    table = np.zeros(loaded.tree.legal.shape)
    for row, answer in zip(table, loaded.from_openspiel_ids(answers), strict=True):
        row[list(answer)] = list(answer.values())
    return loaded, table


class StateFunction:
    """A policy that answers for one of OpenSpiel's states at a time, in a game without a tree.

    It plays hands and is measured by trained best responses; nothing lists all its answers.
    """

    def __init__(self, policy: Any, game: Game) -> None:
        ask = getattr(policy, "action_probabilities", policy)
        if not callable(ask):
            kind = type(policy).__name__
            raise PolicyError(f"{kind} is neither an OpenSpiel policy nor a function")
        self._ask = ask
        self._game = game

    def of_states(self, states: Sequence[PyspielState], legal: BoolArray) -> Float64Array:
        """Probabilities of actions `(n, A)` in states; `legal` is bool `(n, A)`."""
        table = np.zeros(legal.shape)
        for row, state in zip(table, states, strict=True):
            try:
                answer = _as_pairs(self._ask(state), self._game)
            except _ANSWER_ERRORS as error:
                place = f"player_{state.current_player()} after {state.history()}"
                raise PolicyError(f"the policy has no answer for {place} ({error})") from None
            row[list(answer)] = list(answer.values())
        wrong = ((table < 0) | (~legal & (table > 0))).any(axis=1)
        wrong |= ~(np.abs(table.sum(axis=1) - 1) < _TOLERANCE)
        if wrong.any():
            first = int(wrong.argmax())
            raise PolicyError(
                f"after {states[first].history()}: {table[first].tolist()} are not probabilities "
                "of legal actions that sum to 1"
            )
        return table

    def __call__(self, observations: Float32Array, legal: BoolArray) -> Float64Array:
        """An error: observations do not determine a state."""
        raise PolicyError("a function of OpenSpiel's states has no answer for an observation")


def _require_tree(game: Game) -> TreeGame:
    """The game itself; an error if it is too large to ask a policy at every information set."""
    if isinstance(game, TreeGame):
        return game
    raise PolicyError(
        f"{game.name} is too large for a tree, so OpenSpiel's policies and functions of states "
        "cannot be converted: that takes an answer at every information set. "
        "Policy.from_network(function of observations, game) needs none"
    )


def to_openspiel_policy(game: Game, table: Float64Array) -> Any:
    """An `open_spiel.python.policy.Policy` that looks up (player, information state)."""
    from open_spiel.python import policy as openspiel_policy

    openspiel_game = _require_tree(game).openspiel_game()
    rows = _rows(game, table, openspiel_game)

    class TablePolicy(openspiel_policy.Policy):
        def action_probabilities(self, state: Any, player_id: Any = None) -> dict[int, float]:
            player = state.current_player() if player_id is None else player_id
            return dict(rows[player, state.information_state_string(player)])

    return TablePolicy(openspiel_game, list(range(openspiel_game.num_players())))


def to_python_tabular(game: Game, table: Float64Array, target: PyspielGame | None = None) -> Any:
    """The policy as an `open_spiel.python.policy.TabularPolicy` of `target`, a `pyspiel.Game`."""
    from open_spiel.python import policy as openspiel_policy

    tabular = openspiel_policy.TabularPolicy(target or _require_tree(game).openspiel_game())
    tabular.action_probability_array[:] = 0
    for key, row in _rows_by_key(game, table, tabular.game).items():
        index = tabular.state_lookup[key]
        tabular.action_probability_array[index, list(row)] = list(row.values())
    return tabular


def to_pyspiel_tabular(game: Game, table: Float64Array, target: PyspielGame | None = None) -> Any:
    """The policy as a `pyspiel.TabularPolicy` (C++) of `target`, a `pyspiel.Game`."""
    import pyspiel

    rows = _rows_by_key(game, table, target or _require_tree(game).openspiel_game())
    return pyspiel.TabularPolicy({key: list(row.items()) for key, row in rows.items()})


def measured_by_openspiel(game: Game, table: Float64Array) -> OpenSpielMeasure:
    """NashConv, gains and values by OpenSpiel's Python algorithms."""
    from open_spiel.python.algorithms import expected_game_score, exploitability

    policy = to_openspiel_policy(game, table)
    result = exploitability.nash_conv(policy.game, policy, return_only_nash_conv=False)
    players = [policy] * game.num_players
    values = expected_game_score.policy_value(policy.game.new_initial_state(), players)
    gains = tuple(map(float, result.player_improvements))
    return OpenSpielMeasure(float(result.nash_conv), gains, tuple(map(float, values)))


def _answer(
    ask: Callable[[Any], Any], game: TreeGame, theirs: PyspielGame, infoset: int
) -> dict[int, float]:
    """The policy's probabilities at a state of an information set, by the IDs of `theirs`."""
    try:
        return _as_pairs(ask(replay(theirs, game.openspiel_history(infoset, theirs))), game)
    except _ANSWER_ERRORS as error:
        place = f"player_{game.tree.owner[infoset]} at {game.tree.keys[infoset]!r}"
        raise PolicyError(f"the policy has no answer for {place} ({error})") from None


def _as_pairs(answer: Any, game: Game) -> dict[int, float]:
    """Probabilities by action, from a map, pairs, or a list by action ID."""
    if isinstance(answer, Mapping):
        pairs = list(answer.items())
    else:
        answer = list(answer)
        is_pairs = np.ndim(answer[0]) > 0
        pairs = answer if is_pairs else list(enumerate(answer))
    probabilities = {int(action): float(probability) for action, probability in pairs}
    if not probabilities or not set(probabilities) <= set(range(game.num_actions)):
        raise LookupError(f"{list(probabilities)} are not action IDs of {game.name}")
    return probabilities


def _rows(
    game: Game, table: Float64Array, theirs: PyspielGame
) -> dict[tuple[int, str], dict[int, float]]:
    """`{action: probability}` by player and information state, in the IDs of `theirs`."""
    loaded = _require_tree(game)
    loaded.require_openspiel(theirs)
    tree = loaded.tree
    rows = {}
    for infoset, (player, key) in enumerate(zip(tree.owner.tolist(), tree.keys, strict=True)):
        legal = np.flatnonzero(tree.legal[infoset]).tolist()
        row = {action: float(table[infoset, action]) for action in legal}
        rows[player, key] = loaded.to_openspiel_ids(infoset, row, theirs)
    return rows


def _rows_by_key(
    game: Game, table: Float64Array, theirs: PyspielGame
) -> dict[str, dict[int, float]]:
    """`_rows` by information state alone."""
    rows: dict[str, dict[int, float]] = {}
    for (_, key), row in _rows(game, table, theirs).items():
        if rows.setdefault(key, row) != row:
            raise PolicyError(
                f"{game.name}: two players share {key!r} and play differently there, which "
                "OpenSpiel's tables cannot hold; use Policy.to_openspiel"
            )
    return rows
