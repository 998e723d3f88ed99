"""Policies of any game to and from OpenSpiel's, and what OpenSpiel itself says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.exact.values import Measure
from algorithms.games import KUHN, Game, as_game
from algorithms.games.openspiel import identity, load_pyspiel, state_of
from algorithms.policies.policy import Policy
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from kuhn_bridge.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Theirs:
    """What OpenSpiel's own `exploitability` says of a policy."""

    nash_conv: float
    gains: tuple[float, ...]
    values: tuple[float, ...]

    def gap(self, ours: Measure) -> float:
        """The largest difference to our numbers."""
        theirs = (self.nash_conv, *self.gains, *self.values)
        return max(
            abs(a - b)
            for a, b in zip(theirs, (ours.nash_conv, *ours.gains, *ours.values), strict=True)
        )


def from_openspiel(policy: Any, game: Any = None) -> Policy:
    """An OpenSpiel policy of all players, Python's or C++'s, or a function of states.

    Args:
        policy: has `action_probabilities(state)`, or is called with a state; both give a map or
            pairs from action to probability, or probabilities by action ID.
        game: a `Game`, its name or a `pyspiel.Game`; needed where the policy does not know its own.
    """
    own = getattr(policy, "game", None)
    if game is None and own is None:
        raise PolicyError(f"{type(policy).__name__} does not know its game: name it as `game`")
    loaded = as_game(own if game is None else game)
    if loaded.name == KUHN:
        from kuhn_bridge.openspiel import from_openspiel_policy

        return Policy.from_kuhn(from_openspiel_policy(policy))
    if own is not None and identity(own) != identity(_theirs(loaded)):
        raise PolicyError(f"a policy of {own}, not of {loaded.name}")
    _require_all_players(policy, loaded)
    ask = getattr(policy, "action_probabilities", policy)
    if not callable(ask):
        raise PolicyError(f"{type(policy).__name__} is neither an OpenSpiel policy nor a function")
    return Policy(loaded, _table(ask, loaded))


def to_openspiel(policy: Policy) -> Any:
    """An `open_spiel.python.policy.Policy` that looks up (player, information state).

    For `kuhn` it speaks the IDs of OpenSpiel's `kuhn_poker`.
    """
    from open_spiel.python import policy as openspiel_policy

    if policy.game.name == KUHN:
        return to_python_tabular(policy)
    rows = policy.to_players()

    class Looked(openspiel_policy.Policy):
        def action_probabilities(self, state: Any, player_id: Any = None) -> dict[int, float]:
            player = state.current_player() if player_id is None else player_id
            row = rows[player][state.information_state_string(player)]
            return {int(action): share for action, share in row.items()}

    game = _theirs(policy.game)
    return Looked(game, list(range(game.num_players())))


def to_python_tabular(policy: Policy) -> Any:
    """The policy as `open_spiel.python.policy.TabularPolicy`."""
    from open_spiel.python import policy as openspiel_policy

    if policy.game.name == KUHN:
        from kuhn_bridge.openspiel import to_python_policy

        return to_python_policy(policy.to_kuhn())
    theirs = openspiel_policy.TabularPolicy(_theirs(policy.game))
    for key, row in _by_key(policy).items():
        theirs.action_probability_array[theirs.state_lookup[key]] = row
    return theirs


def to_pyspiel_tabular(policy: Policy) -> Any:
    """The policy as C++'s `pyspiel.TabularPolicy`."""
    import pyspiel

    if policy.game.name == KUHN:
        from kuhn_bridge.openspiel import to_pyspiel_policy

        return to_pyspiel_policy(policy.to_kuhn())
    legal = dict(zip(policy.game.tree.keys, policy.game.tree.legal, strict=True))
    return pyspiel.TabularPolicy(
        {
            key: [(a, float(row[a])) for a in np.flatnonzero(legal[key]).tolist()]
            for key, row in _by_key(policy).items()
        }
    )


def measured_by_openspiel(policy: Policy) -> Theirs:
    """NashConv, gains and values as OpenSpiel's Python finds them on its own states."""
    try:
        from open_spiel.python.algorithms import expected_game_score, exploitability
    except ImportError as error:
        raise UsageError(
            f"--openspiel: not installed ({error}); pip install 'kuhn-bridge[openspiel]'"
        ) from None
    theirs = to_openspiel(policy)
    game = theirs.game
    found = exploitability.nash_conv(game, theirs, return_only_nash_conv=False)
    players = [theirs] * game.num_players()
    values = expected_game_score.policy_value(game.new_initial_state(), players)
    gains = tuple(float(gain) for gain in found.player_improvements)
    return Theirs(float(found.nash_conv), gains, tuple(map(float, values)))


def _theirs(game: Game) -> Any:
    """The `pyspiel.Game` that a `Game` was made from."""
    return load_pyspiel(game.name) if game.origin is None else game.origin


def _require_all_players(policy: Any, game: Game) -> None:
    players = set(range(game.num_players))
    covered = set(getattr(policy, "player_ids", players))
    if covered != players:
        raise PolicyError(
            f"an incomplete policy: it covers players {sorted(covered)} of {sorted(players)}"
        )
    if hasattr(policy, "policy_table"):  # C++'s knows no game, only names of information states
        given, wanted = set(policy.policy_table()), set(game.tree.keys)
        if strange := sorted(given - wanted):
            raise PolicyError(f"a policy of another game than {game.name}: it has {strange[0]!r}")
        if missing := sorted(wanted - given):
            raise PolicyError(f"an incomplete policy of {game.name}: it lacks {missing[0]!r}")


def _table(ask: Callable[[Any], Any], game: Game) -> Float64Array:
    """What a policy answers at one state of each information set: `(I, A)`."""
    tree, theirs = game.tree, _theirs(game)
    table = np.zeros(tree.legal.shape)
    for row, key in enumerate(tree.keys):
        try:
            shares = _shares(ask(state_of(theirs, tree, row)))
            table[row, list(shares)] = list(shares.values())
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            where = f"player_{tree.owner[row]} at {key!r}"
            raise PolicyError(f"the policy has no answer for {where} ({error})") from None
    return table


def _shares(answer: Any) -> dict[int, float]:
    if isinstance(answer, Mapping):
        return {int(action): float(share) for action, share in answer.items()}
    if len(answer) and np.ndim(answer[0]):
        return {int(action): float(share) for action, share in answer}
    return {action: float(share) for action, share in enumerate(answer)}


def _by_key(policy: Policy) -> dict[str, Float64Array]:
    """Rows by information state string alone, as OpenSpiel's tables have them."""
    tree = policy.game.tree
    rows: dict[str, Float64Array] = {}
    for key, row in zip(tree.keys, policy.table, strict=True):
        if not np.array_equal(rows.setdefault(key, row), row):
            raise PolicyError(
                f"{policy.game.name}: two players share {key!r} and play differently there, which "
                "OpenSpiel's tables cannot hold; use to_openspiel"
            )
    return rows
