"""Kuhn poker for reinforcement learning and game theory: one core, several faces.

The core, the bridge and policies are imported at once and need numpy alone. The PettingZoo face
(`env`, `raw_env`, `kuhn_v0`) is loaded when first asked for, and `import kuhn_bridge.openspiel`
registers the OpenSpiel face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kuhn_bridge.bridge import INFORMATION_STATES, KuhnPoker, from_openspiel, to_openspiel
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.policy import TabularPolicy
from kuhn_bridge.rules import Action, Card, Phase
from kuhn_bridge.state import State

if TYPE_CHECKING:
    from kuhn_bridge.kuhn_v0 import env, raw_env

__version__ = "0.2.0"
__all__ = [
    "INFORMATION_STATES",
    "Action",
    "BridgeError",
    "Card",
    "KuhnPoker",
    "Phase",
    "State",
    "TabularPolicy",
    "env",
    "from_openspiel",
    "raw_env",
    "to_openspiel",
]


def __getattr__(name: str) -> Any:
    if name in {"env", "raw_env"}:
        from kuhn_bridge import kuhn_v0

        return getattr(kuhn_v0, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
