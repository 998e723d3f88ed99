"""Policies to and from OpenSpiel, and OpenSpiel's own measure of them.

Functions take a game and its table `(I, A)`. For `kuhn` the OpenSpiel game is `kuhn_poker`, whose
two action IDs are translated, or `python_kuhn_bridge`, which has ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.exact.values import Measure
from algorithms.games import KUHN, Game, as_game
from algorithms.games.openspiel import identity, load_pyspiel, state_of
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from kuhn_bridge.bridge import (
    INFORMATION_STATES,
    LETTERS,
    from_openspiel,
    letters_to_actions,
    parse_information_state,
    to_openspiel,
)
from kuhn_bridge.errors import PolicyError
from kuhn_bridge.rules import BETTING, Action, Card

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
    """The game and the table `(I, A)` of an OpenSpiel policy, or of a function of states.

    Args:
        policy: has `action_probabilities(state)`, or is called with a state; both return a map or
            pairs from action to probability, or probabilities by action ID.
        game: a `Game`, its name or a `pyspiel.Game`; needed if the policy has no `game`.
    """
    own = getattr(policy, "game", None)
    if game is None and own is None:
        raise PolicyError(f"{type(policy).__name__} does not name its game: pass `game`")
    loaded = as_game(own if game is None else game)
    theirs = own if own is not None else _default_game(loaded)
    _require_same_game(loaded, theirs)
    _require_all_players(policy, loaded)
    ask = getattr(policy, "action_probabilities", policy)
    if not callable(ask):
        raise PolicyError(f"{type(policy).__name__} is neither an OpenSpiel policy nor a function")
    answers = _answers(ask, loaded, theirs)
    return loaded, _kuhn_table(answers) if loaded.name == KUHN else _table(answers, loaded)


def to_openspiel_policy(game: Game, table: Float64Array) -> Any:
    """An `open_spiel.python.policy.Policy` that looks up (player, information state)."""
    from open_spiel.python import policy as openspiel_policy

    if game.name == KUHN:
        return to_python_tabular(game, table)
    rows = {
        (owner, key): {a: float(row[a]) for a in np.flatnonzero(legal).tolist()}
        for owner, key, row, legal in zip(
            game.tree.owner.tolist(), game.tree.keys, table, game.tree.legal, strict=True
        )
    }

    class TablePolicy(openspiel_policy.Policy):
        def action_probabilities(self, state: Any, player_id: Any = None) -> dict[int, float]:
            player = state.current_player() if player_id is None else player_id
            return dict(rows[player, state.information_state_string(player)])

    theirs = _default_game(game)
    return TablePolicy(theirs, list(range(theirs.num_players())))


def to_python_tabular(game: Game, table: Float64Array, target: Any = None) -> Any:
    """The policy as `open_spiel.python.policy.TabularPolicy` of `target`, a `pyspiel.Game`."""
    from open_spiel.python import policy as openspiel_policy

    theirs = openspiel_policy.TabularPolicy(target or _default_game(game))
    theirs.action_probability_array[:] = 0
    for key, row in _rows_by_key(game, table, theirs.game).items():
        for action, probability in row:
            theirs.action_probability_array[theirs.state_lookup[key], action] = probability
    return theirs


def to_pyspiel_tabular(game: Game, table: Float64Array, target: Any = None) -> Any:
    """The policy as C++'s `pyspiel.TabularPolicy` of `target`, a `pyspiel.Game`."""
    import pyspiel

    return pyspiel.TabularPolicy(_rows_by_key(game, table, target or _default_game(game)))


def measured_by_openspiel(game: Game, table: Float64Array) -> OpenSpielMeasure:
    """NashConv, gains and values as OpenSpiel's Python finds them on its own states."""
    try:
        from open_spiel.python.algorithms import expected_game_score, exploitability
    except ImportError as error:
        raise UsageError(
            f"OpenSpiel is not installed ({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    policy = to_openspiel_policy(game, table)
    theirs = policy.game
    found = exploitability.nash_conv(theirs, policy, return_only_nash_conv=False)
    players = [policy] * theirs.num_players()
    values = expected_game_score.policy_value(theirs.new_initial_state(), players)
    gains = tuple(float(gain) for gain in found.player_improvements)
    return OpenSpielMeasure(float(found.nash_conv), gains, tuple(map(float, values)))


def _default_game(game: Game) -> Any:
    """The `pyspiel.Game` that a policy of `game` belongs to."""
    if game.name == KUHN:
        return load_pyspiel(KUHN_POKER)
    return load_pyspiel(game.name) if game.origin is None else game.origin


def _require_same_game(game: Game, theirs: Any) -> None:
    if game.name == KUHN:
        right = theirs.get_type().short_name in (KUHN_POKER, KUHN_BRIDGE)
        if not right or theirs.num_players() != game.num_players:
            raise PolicyError(
                f"policies of {KUHN} convert to {KUHN_POKER} and {KUHN_BRIDGE}, not to {theirs}"
            )
    elif identity(theirs) != identity(_default_game(game)):
        raise PolicyError(f"a policy of {theirs}, not of {game.name}")


def _require_all_players(policy: Any, game: Game) -> None:
    players = set(range(game.num_players))
    covered = set(getattr(policy, "player_ids", players))
    if covered != players:
        raise PolicyError(
            f"an incomplete policy: it covers players {sorted(covered)} of {sorted(players)}"
        )
    if hasattr(policy, "policy_table"):  # C++'s has no game, only names of information states
        given, wanted = set(policy.policy_table()), set(game.tree.keys)
        if unknown := sorted(given - wanted):
            raise PolicyError(f"a policy of another game than {game.name}: it has {unknown[0]!r}")
        if missing := sorted(wanted - given):
            raise PolicyError(f"an incomplete policy of {game.name}: it lacks {missing[0]!r}")


def _answers(ask: Callable[[Any], Any], game: Game, theirs: Any) -> list[dict[int, float]]:
    """What a policy answers at one state of each information set, in the IDs of `theirs`."""
    answers = []
    for infoset, key in enumerate(game.tree.keys):
        state = _kuhn_state(theirs, key) if game.name == KUHN else None
        try:
            answer = _as_map(ask(state or state_of(theirs, game.tree, infoset)))
            if not answer:
                raise LookupError("it gives no probabilities")
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            where = f"player_{game.tree.owner[infoset]} at {key!r}"
            raise PolicyError(f"the policy has no answer for {where} ({error})") from None
        answers.append(answer)
    return answers


def _as_map(answer: Any) -> dict[int, float]:
    if isinstance(answer, Mapping):
        return {int(action): float(p) for action, p in answer.items()}
    answer = list(answer)
    if answer and np.ndim(answer[0]):
        return {int(action): float(p) for action, p in answer}
    return {action: float(p) for action, p in enumerate(answer)}


def _table(answers: list[dict[int, float]], game: Game) -> Float64Array:
    table = np.zeros(game.tree.legal.shape)
    for infoset, answer in enumerate(answers):
        unknown = [action for action in answer if not 0 <= action < game.num_actions]
        if unknown:
            where = game.infoset_label(infoset)
            raise PolicyError(f"{where}: {unknown[0]} is not an action ID of {game.name}")
        table[infoset, list(answer.keys())] = list(answer.values())
    return table


def _kuhn_table(answers: list[dict[int, float]]) -> Float64Array:
    """Kuhn's table, from our action IDs or OpenSpiel's Pass and Bet: only ours have FOLD."""
    facing = [BETTING[parse_information_state(name)[1]].faces_bet for name in INFORMATION_STATES]
    facing_bet = {a for bet, answer in zip(facing, answers, strict=True) if bet for a in answer}
    if facing_bet == {0}:  # folding there in kuhn_poker, calling in ours
        raise PolicyError("the policy lists action 0 alone facing a bet: list all legal actions")
    ours = Action.FOLD in facing_bet
    table = np.zeros((len(INFORMATION_STATES), len(Action)))
    for row, bet, answer in zip(table, facing, answers, strict=True):
        for action, probability in answer.items():
            row[Action(action) if ours else from_openspiel(action, bet)] = probability
    return table


def _kuhn_state(theirs: Any, name: str) -> Any:
    """A state of `kuhn_poker` or of our game at an information state such as `"2pb"`."""
    card, letters = parse_information_state(name)
    other = next(c for c in Card if c != card)
    deal = (card, other) if BETTING[letters].actor == 0 else (other, card)
    ours = theirs.get_type().short_name == KUHN_BRIDGE
    moves = letters_to_actions(letters) if ours else map(LETTERS.index, letters)
    state = theirs.new_initial_state()
    for action in (*deal, *moves):
        state.apply_action(int(action))
    return state


def _rows_by_key(
    game: Game, table: Float64Array, theirs: Any
) -> dict[str, list[tuple[int, float]]]:
    """`{information state: [(action, probability), ...]}` in the IDs of `theirs`, ascending."""
    _require_same_game(game, theirs)
    translated = theirs.get_type().short_name == KUHN_POKER and game.name == KUHN
    rows: dict[str, list[tuple[int, float]]] = {}
    for key, row, legal in zip(game.tree.keys, table, game.tree.legal, strict=True):
        found = [(action, float(row[action])) for action in np.flatnonzero(legal).tolist()]
        if translated:
            faces = BETTING[key[1:]].faces_bet
            found = sorted((to_openspiel(action, faces), p) for action, p in found)
        if rows.setdefault(key, found) != found:
            raise PolicyError(
                f"{game.name}: two players share {key!r} and play differently there, which "
                "OpenSpiel's tables cannot hold; use Policy.to_openspiel"
            )
    return rows
