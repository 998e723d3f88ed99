"""The Stable-Baselines3 face: self-play environments and the callback that trains on them.

```python
model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=2)
model.learn(1_000_000, callback=SelfPlay())
```
"""

from typing import TYPE_CHECKING

from kuhn_bridge.lazy import lazy_names

if TYPE_CHECKING:
    # Not public: for `Policy.lower_bound`, whose package may not import learning.
    from algorithms.learning.best_response import LowerBound as LowerBound  # noqa: PLC0414
    from algorithms.learning.best_response import lower_bound as lower_bound  # noqa: PLC0414
    from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv
    from algorithms.learning.learner import SelfPlay

__all__ = ["SelfPlay", "SelfPlayEnv", "SelfPlayVecEnv"]

if not TYPE_CHECKING:  # a type checker should report unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "algorithms.learning.best_response": "LowerBound lower_bound",
            "algorithms.learning.environments": "SelfPlayEnv SelfPlayVecEnv",
            "algorithms.learning.learner": "SelfPlay",
        },
    )
