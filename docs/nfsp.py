"""OpenSpiel's NFSP on Leduc poker, measured while it learns: the red curve of leduc.png.

pip install dm-tree        # OpenSpiel's PyTorch agents import it
python docs/nfsp.py 600    # CPU seconds; writes docs/curves/leduc_nfsp.csv
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
from open_spiel.python import rl_environment
from open_spiel.python.pytorch import nfsp

from algorithms.compiled.nashconv import nash_conv
from algorithms.games import Game, load_game
from algorithms.support.arrays import Float64Array

LEDUC = "leduc_poker"
OUT = Path(__file__).parent / "curves" / "leduc_nfsp.csv"
HANDS = 200  # between two checks of the clock


def agents(env: rl_environment.Environment) -> list[nfsp.NFSP]:
    """One per seat, with the settings of OpenSpiel's example for Leduc."""
    size = env.observation_spec()["info_state"][0]
    actions = env.action_spec()["num_actions"]
    inner = {"epsilon_decay_duration": 20_000_000, "epsilon_start": 0.06, "epsilon_end": 0.001}
    inner |= {"replay_buffer_capacity": 200_000}
    return [nfsp.NFSP(seat, size, actions, [128], 2_000_000, 0.1, **inner) for seat in range(2)]


def play(env: rl_environment.Environment, players: list[nfsp.NFSP]) -> None:
    """Play one hand and learn from it."""
    step = env.reset()
    while not step.last():
        seat = step.observations["current_player"]
        step = env.step([players[seat].step(step).action])
    for player in players:
        player.step(step)


def average(players: list[nfsp.NFSP], game: Game) -> Float64Array:
    """The average policy of both seats, `(I, A)`."""
    tree = game.tree
    table = np.zeros(tree.legal.shape)
    for infoset, seat in enumerate(tree.owner):
        observations = {
            "info_state": [game.observations[infoset].tolist()] * 2,
            "legal_actions": [np.flatnonzero(tree.legal[infoset]).tolist()] * 2,
            "current_player": int(seat),
        }
        step = rl_environment.TimeStep(observations, None, None, None)
        with players[seat].temp_mode_as(nfsp.MODE.AVERAGE_POLICY):
            table[infoset] = players[seat].step(step, is_evaluation=True).probs
    return table / table.sum(axis=1, keepdims=True)


def main(seconds: float) -> None:
    """Learn for `seconds` CPU seconds, without the time of the measurements."""
    torch.set_num_threads(1)
    env = rl_environment.Environment(LEDUC)
    game = load_game(LEDUC)
    players = agents(env)
    hands = 0
    spent = 0.0
    due = 5.0
    lines = ["hands,seconds,nash_conv"]
    while spent < seconds:
        began = time.process_time()
        for _ in range(HANDS):
            play(env, players)
        hands += HANDS
        spent += time.process_time() - began
        if spent >= min(due, seconds):
            due = 1.2 * spent
            lines.append(f"{hands},{spent:.1f},{nash_conv(game.tree, average(players, game))}")
            print(lines[-1], flush=True)
            OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
