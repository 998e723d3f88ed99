"""The Stable-Baselines3 face: self-play environments and the callback that trains on them.

model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=2)
model.learn(1_000_000, callback=SelfPlay())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kuhn_bridge.lazy import load_attribute

if TYPE_CHECKING:
    from algorithms.learning.learner import SelfPlay
    from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv

__all__ = ["SelfPlay", "SelfPlayEnv", "SelfPlayVecEnv"]

_LAZY = {
    "SelfPlay": "algorithms.learning.learner",
    "SelfPlayEnv": "algorithms.learning.environments",
    "SelfPlayVecEnv": "algorithms.learning.environments",
}


def __getattr__(name: str) -> Any:
    return load_attribute(__name__, _LAZY, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
