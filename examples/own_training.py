"""Train your own MaskablePPO by self-play with one callback, and measure it exactly."""

from __future__ import annotations

import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv

GAME = "kuhn"  # or any OpenSpiel game, such as "leduc_poker"
STEPS = 200_000  # to be quick: two million take about half a minute


def main() -> None:
    """Train for a few seconds and print NashConv."""
    torch.set_num_threads(1)  # the network is small: more threads would only wait for each other
    callback = SelfPlay()
    model = MaskablePPO(
        "MlpPolicy",
        SelfPlayVecEnv(1_024, GAME),  # 1,024 hands at once
        n_steps=2,
        batch_size=2_048,  # the whole rollout
        seed=0,
        device="cpu",  # or "cuda"
    )
    model.learn(STEPS, callback=callback)
    uniform = kb.Policy.uniform(GAME).nash_conv()
    print(f"NashConv: {uniform:.3f} playing at random, {callback.curve[-1].last:.3f} now")
    print(f"          {callback.curve[-1].average:.3f} the average of all policies so far")


if __name__ == "__main__":
    main()
