"""Policies to and from OpenSpiel, and OpenSpiel's own measure of them.

Functions take a game and its table `(I, A)`. For `kuhn` the OpenSpiel game is `kuhn_poker`, whose
two action IDs are translated, or `python_kuhn_bridge`, which has ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.games import KUHN, Game, as_game
from algorithms.games.openspiel import identity, load_pyspiel, replay
from algorithms.nashconv import Measure
from algorithms.support.arrays import Float64Array
from kuhn_bridge.bridge import INFORMATION_STATES, LETTERS, from_openspiel, to_openspiel
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import BETTING, PLAYERS, Action

KUHN_POKER, KUHN_BRIDGE = "kuhn_poker", "python_kuhn_bridge"


@dataclass(frozen=True, slots=True)
class OpenSpielMeasure:
    """NashConv, gains and values of a policy by OpenSpiel's own `exploitability`."""

    nash_conv: float
    gains: tuple[float, ...]
    values: tuple[float, ...]

    def gap(self, ours: Measure) -> float:
        """The largest difference to our numbers."""
        theirs = (self.nash_conv, *self.gains, *self.values)
        own = (ours.nash_conv, *ours.gains, *ours.values)
        return max(abs(a - b) for a, b in zip(theirs, own, strict=True))


def read_policy(policy: Any, game: Any = None) -> tuple[Game, Float64Array]:
    """The game and the table `(I, A)` of a policy as `Policy.from_openspiel` takes it.

    It has `action_probabilities(state)`, or is called with a state; both return a map or pairs from
    action to probability, or probabilities by action ID.
    """
    own = getattr(policy, "game", None)
    if game is None and own is None:
        raise PolicyError(f"{type(policy).__name__} does not name its game: pass `game`")
    loaded = as_game(own if game is None else game)
    theirs = own if own is not None else _default_game(loaded)
    _require_same_game(loaded, theirs)
    players, keys = list(range(loaded.num_players)), loaded.tree.keys
    if (covered := sorted(getattr(policy, "player_ids", players))) != players:
        raise PolicyError(f"an incomplete policy: it covers players {covered} of {players}")
    # A C++ policy has no game, only information states.
    given = policy.policy_table() if hasattr(policy, "policy_table") else keys
    if other := sorted(set(given) ^ set(keys)):
        what = f"an incomplete policy, or of another game than {loaded.name}"
        raise PolicyError(f"{what}: only one of them has {other[0]!r}")
    ask = getattr(policy, "action_probabilities", policy)
    if not callable(ask):
        raise PolicyError(f"{type(policy).__name__} is neither an OpenSpiel policy nor a function")
    answers = [_answer(ask, loaded, theirs, infoset) for infoset in range(len(keys))]
    if loaded.name == KUHN:
        answers = _in_our_ids(answers)
    table = np.zeros(loaded.tree.legal.shape)
    for row, answer in zip(table, answers, strict=True):
        row[list(answer)] = list(answer.values())
    return loaded, table


def to_openspiel_policy(game: Game, table: Float64Array) -> Any:
    """An `open_spiel.python.policy.Policy` that looks up (player, information state)."""
    from open_spiel.python import policy as openspiel_policy

    rows = _rows(game, table, theirs := _default_game(game))

    class TablePolicy(openspiel_policy.Policy):
        def action_probabilities(self, state: Any, player_id: Any = None) -> dict[int, float]:
            player = state.current_player() if player_id is None else player_id
            return dict(rows[player, state.information_state_string(player)])

    return TablePolicy(theirs, list(range(theirs.num_players())))


def to_python_tabular(game: Game, table: Float64Array, target: Any = None) -> Any:
    """The policy as an `open_spiel.python.policy.TabularPolicy` of `target`, a `pyspiel.Game`."""
    from open_spiel.python import policy as openspiel_policy

    theirs = openspiel_policy.TabularPolicy(target or _default_game(game))
    theirs.action_probability_array[:] = 0
    for key, row in _rows_by_key(game, table, theirs.game).items():
        index = theirs.state_lookup[key]
        theirs.action_probability_array[index, list(row)] = list(row.values())
    return theirs


def to_pyspiel_tabular(game: Game, table: Float64Array, target: Any = None) -> Any:
    """The policy as a `pyspiel.TabularPolicy` (C++) of `target`, a `pyspiel.Game`."""
    import pyspiel

    rows = _rows_by_key(game, table, target or _default_game(game))
    return pyspiel.TabularPolicy({key: list(row.items()) for key, row in rows.items()})


def measured_by_openspiel(game: Game, table: Float64Array) -> OpenSpielMeasure:
    """NashConv, gains and values by OpenSpiel's Python algorithms."""
    from open_spiel.python.algorithms import expected_game_score, exploitability

    policy = to_openspiel_policy(game, table)
    found = exploitability.nash_conv(policy.game, policy, return_only_nash_conv=False)
    players = [policy] * game.num_players
    values = expected_game_score.policy_value(policy.game.new_initial_state(), players)
    gains = tuple(map(float, found.player_improvements))
    return OpenSpielMeasure(float(found.nash_conv), gains, tuple(map(float, values)))


def _default_game(game: Game) -> Any:
    """The `pyspiel.Game` that a policy of `game` belongs to."""
    return load_pyspiel(KUHN_POKER) if game.name == KUHN else game.origin


def _require_same_game(game: Game, theirs: Any) -> None:
    if game.name == KUHN:
        known = theirs.get_type().short_name in (KUHN_POKER, KUHN_BRIDGE)
        if not known or theirs.num_players() != game.num_players:
            both = f"{KUHN_POKER} and {KUHN_BRIDGE}"
            raise PolicyError(f"policies of {KUHN} convert to {both}, not to {theirs}")
    elif identity(theirs) != identity(_default_game(game)):
        raise PolicyError(f"a policy of {theirs}, not of {game.name}")


def _answer(ask: Callable[[Any], Any], game: Game, theirs: Any, infoset: int) -> dict[int, float]:
    """The policy's probabilities at a state of an information set, by the IDs of `theirs`."""
    tree = game.tree
    history = tree.history(int(tree.members[tree.first_member[infoset]]))
    if _is_translated(game, theirs):
        history = [*history[: len(PLAYERS)], *map(LETTERS.index, tree.keys[infoset][1:])]
    try:
        answer = ask(replay(theirs, history))
        if not isinstance(answer, Mapping):
            answer = list(answer)
            answer = dict(answer if np.ndim(answer[0]) else enumerate(answer))
        found = {int(action): float(p) for action, p in answer.items()}
        if not found or not set(found) <= set(range(game.num_actions)):
            raise LookupError(f"{list(found)} are not action IDs of {game.name}")
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        where = f"player_{tree.owner[infoset]} at {tree.keys[infoset]!r}"
        raise PolicyError(f"the policy has no answer for {where} ({error})") from None
    return found


def _in_our_ids(answers: list[dict[int, float]]) -> list[dict[int, float]]:
    """Kuhn's answers in our action IDs; OpenSpiel's Pass and Bet are translated.

    A C++ policy does not say which IDs it uses, but only ours have FOLD.
    """
    facing = [BETTING[key[1:]].faces_bet for key in INFORMATION_STATES]
    pairs = list(zip(facing, answers, strict=True))
    used = {action for bet, answer in pairs if bet for action in answer}
    if used == {0}:  # folding there in kuhn_poker, calling in ours
        raise PolicyError("the policy lists action 0 alone facing a bet: list all legal actions")
    if Action.FOLD in used:
        return answers
    return [{from_openspiel(action, bet): p for action, p in one.items()} for bet, one in pairs]


def _is_translated(game: Game, theirs: Any) -> bool:
    """Whether the two games have different action IDs: ours, and Pass and Bet."""
    return game.name == KUHN and theirs.get_type().short_name == KUHN_POKER


def _rows(game: Game, table: Float64Array, theirs: Any) -> dict[tuple[int, str], dict[int, float]]:
    """`{action: probability}` by player and information state, in the IDs of `theirs`."""
    _require_same_game(game, theirs)
    rows, tree = {}, game.tree
    for player, key, row, legal in zip(tree.owner, tree.keys, table, tree.legal, strict=True):
        found = [(action, float(row[action])) for action in np.flatnonzero(legal).tolist()]
        if _is_translated(game, theirs):
            faces_bet = BETTING[key[1:]].faces_bet
            found = sorted((to_openspiel(action, faces_bet), p) for action, p in found)
        rows[int(player), key] = dict(found)
    return rows


def _rows_by_key(game: Game, table: Float64Array, theirs: Any) -> dict[str, dict[int, float]]:
    """`_rows` by information state alone."""
    rows: dict[str, dict[int, float]] = {}
    for (_, key), row in _rows(game, table, theirs).items():
        if rows.setdefault(key, row) != row:
            raise PolicyError(
                f"{game.name}: two players share {key!r} and play differently there, which "
                "OpenSpiel's tables cannot hold; use Policy.to_openspiel"
            )
    return rows
