"""The adapter to Stable-Baselines3: self-play environments and the callback that trains on them.

```python
model = MaskablePPO("MlpPolicy", SelfPlayVecEnv(1024, "leduc_poker"), n_steps=2)
model.learn(1_000_000, callback=SelfPlay())
```
"""

from typing import TYPE_CHECKING

from kuhn_bridge.lazy import lazy_names

if TYPE_CHECKING:
    from algorithms.self_play.callback import SelfPlay
    from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv

__all__ = ["SelfPlay", "SelfPlayEnv", "SelfPlayVecEnv"]

if not TYPE_CHECKING:  # a type checker should report unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "algorithms.self_play.environments": "SelfPlayEnv SelfPlayVecEnv",
            "algorithms.self_play.callback": "SelfPlay",
        },
    )
