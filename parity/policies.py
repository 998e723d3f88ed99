"""Policies: carried across the bridge, trained, exported, and run in the browser's language."""

from __future__ import annotations

import pyspiel

from kuhn_bridge.openspiel import (
    SHORT_NAME,
    from_openspiel_policy,
    to_pyspiel_policy,
    to_python_policy,
)
from parity.registry import Settings, check
from parity.solvers import random_policies
from parity.tally import Tally

GROUP = "policies"


@check("policies", GROUP, "TabularPolicy to both kinds of OpenSpiel policy and back")
def check_policies(tally: Tally, settings: Settings) -> None:
    """Nothing is lost, on kuhn_poker and on our game, and both kinds measure the same."""
    for game in map(pyspiel.load_game, ("kuhn_poker", SHORT_NAME)):
        for where, policy in random_policies(settings):
            spot = f"{where} on {game}"
            for crossed in (to_python_policy(policy, game), to_pyspiel_policy(policy, game)):
                back = from_openspiel_policy(crossed)
                tally.holds(spot, f"{type(crossed).__name__} comes back as it was", back == policy)
