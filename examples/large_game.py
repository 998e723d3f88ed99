"""A game without a tree: self-play on OpenSpiel's states, exact NashConv, and a lower bound."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv

# Dark hex on 4 x 2 cells, the smallest board without a tree, so that the example is quick;
# "phantom_ttt" or "dark_hex(board_size=3)" work alike and take minutes.
GAME = "dark_hex(num_rows=4,num_cols=2)"
STEPS = 60_000


def main() -> None:
    """Train for a few seconds, measure exactly, and see how much of that responses find."""
    torch.set_num_threads(1)  # the network is tiny: threads would only wait for each other
    model = MaskablePPO(
        "MlpPolicy",
        SelfPlayVecEnv(64, GAME),
        n_steps=16,
        batch_size=1_024,
        n_epochs=1,
        learning_rate=3e-3,
        gamma=1.0,
        gae_lambda=1.0,
        clip_range=0.1,
        ent_coef=0.1,
        policy_kwargs={"net_arch": [128, 128], "activation_fn": torch.nn.ReLU},
        seed=0,
        device="cpu",
    )
    model.learn(STEPS, callback=SelfPlay(ent_coef_end=0.03))  # from `ent_coef`
    model.game = GAME  # the file then names its game
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.zip")
        policy = kb.load_policy(Path(folder) / "model.zip")

    uniform = kb.Policy.uniform(GAME).nash_conv()
    print(f"NashConv {policy.nash_conv():.3f}; uniform play {uniform:.3f}")

    # In a game without an exact measure, this is all there is.
    bound = policy.lower_bound(decisions=20_000, hands=2_000)
    low, high = bound.interval
    print(f"at least {bound.nash_conv_at_least:.3f} (95% interval {low:.3f} to {high:.3f})")
    for seat in bound.seats:
        print(f"  player_{seat.seat}: {seat.chosen.candidate} gains {seat.chosen.gain:.3f}")


if __name__ == "__main__":
    main()
