"""Kuhn poker for reinforcement learning and game theory, and exact measures for other games.

The core needs numpy alone. Other libraries are imported when a name that needs them is first used:
`env` and `raw_env` import PettingZoo; `load_game`, `solve`, `Policy` and `load_policy` import the
algorithms. `import kuhn_bridge.openspiel` registers the game with OpenSpiel, and `kuhn_bridge.sb3`
has the environments and the callback for Stable-Baselines3.
"""

from typing import TYPE_CHECKING

from kuhn_bridge.bridge import INFORMATION_STATES, KuhnPoker, from_openspiel, to_openspiel
from kuhn_bridge.errors import (
    ActionError,
    BridgeError,
    CardError,
    GameError,
    HistoryError,
    IllegalActionError,
    PolicyError,
    SeatError,
)
from kuhn_bridge.lazy import lazy_names
from kuhn_bridge.rules import Action, Card, Phase
from kuhn_bridge.state import State

if TYPE_CHECKING:
    from algorithms.games import Game, load_game
    from algorithms.lower_bound import LowerBound
    from algorithms.nashconv import Loss, Measure
    from algorithms.policies import Policy, load_policy
    from algorithms.self_play.matches import Match
    from algorithms.self_play.training import Trained
    from algorithms.solve import solve
    from algorithms.train_ppo import train
    from kuhn_bridge.kuhn_v0 import env, raw_env

__version__ = "0.2.0"
__all__ = ["INFORMATION_STATES", "Action", "Card", "KuhnPoker", "Phase", "State"]
__all__ += ["Game", "Policy", "env", "load_game", "load_policy", "raw_env", "solve", "train"]
__all__ += ["Loss", "LowerBound", "Match", "Measure", "Trained"]
__all__ += ["from_openspiel", "to_openspiel"]
__all__ += ["ActionError", "BridgeError", "CardError", "GameError", "HistoryError"]
__all__ += ["IllegalActionError", "PolicyError", "SeatError"]

if not TYPE_CHECKING:  # a type checker should report unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "kuhn_bridge.kuhn_v0": "env raw_env",
            "algorithms.games": "Game load_game",
            "algorithms.lower_bound": "LowerBound",
            "algorithms.nashconv": "Loss Measure",
            "algorithms.policies": "Policy load_policy",
            "algorithms.self_play.matches": "Match",
            "algorithms.self_play.training": "Trained",
            "algorithms.solve": "solve",
            "algorithms.train_ppo": "train",
        },
    )
