"""The Stable-Baselines3 face: self-play environments and the callback that trains on them.

```python
model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=2)
model.learn(1_000_000, callback=SelfPlay())
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kuhn_bridge.lazy import load_attribute

if TYPE_CHECKING:
    from algorithms.learning.best_response import LowerBound, lower_bound
    from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv
    from algorithms.learning.learner import SelfPlay

__all__ = ["LowerBound", "SelfPlay", "SelfPlayEnv", "SelfPlayVecEnv", "lower_bound"]

_LAZY = {
    "LowerBound": "algorithms.learning.best_response",
    "SelfPlay": "algorithms.learning.learner",
    "SelfPlayEnv": "algorithms.learning.environments",
    "SelfPlayVecEnv": "algorithms.learning.environments",
    "lower_bound": "algorithms.learning.best_response",
}


if not TYPE_CHECKING:  # a type checker should report unknown names

    def __getattr__(name: str) -> Any:
        return load_attribute(__name__, _LAZY, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
