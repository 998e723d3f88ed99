"""Solve and train on a game from a Gambit file, and write a game for Gambit.

The game is Myerson's: Fred and Alice put 1 chip each into the pot, and Fred sees a card. He raises
by 1 or folds; Alice, who did not see the card, meets the raise or passes. Red wins for Fred, black
for Alice. In equilibrium Fred always raises red and raises black one time in three.

With `pip install 'kuhn-bridge[gambit]'` Gambit itself solves the file that is written at the end.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

import kuhn_bridge as kb
from kuhn_bridge.sb3 import SelfPlay, SelfPlayVecEnv

CARDS = """EFG 2 R "A card game" { "Fred" "Alice" }
c "" 1 "deal" { "Red" 1/2 "Black" 1/2 } 0
p "" 1 1 "red card" { "Raise" "Fold" } 0
p "" 2 1 "Fred has raised" { "Meet" "Pass" } 0
t "" 1 "" { 2 -2 }
t "" 2 "" { 1 -1 }
t "" 2
p "" 1 2 "black card" { "Raise" "Fold" } 0
p "" 2 1 0
t "" 3 "" { -2 2 }
t "" 2
t "" 4 "" { -1 1 }
"""
STEPS = 200_000  # few, to be quick


def main() -> None:
    """Solve, train, measure, write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cards.efg"
        path.write_text(CARDS, encoding="utf-8")
        game = kb.load_game(path)

        solved = kb.solve(game, "lp")
        print(f"solved: {game.players[0]} wins {solved.measure().values[0]:.4f}")
        for infoset, row in enumerate(solved.table):
            label = game.infoset_label(infoset)
            action = game.action_label(infoset, 0)
            print(f"  {label}: {action} {row[0]:.3f}")

        # The file has no tensors: the network sees a one-hot of the information set.
        torch.set_num_threads(1)
        callback = SelfPlay()
        env = SelfPlayVecEnv(1_024, game)
        model = MaskablePPO("MlpPolicy", env, n_steps=2, batch_size=2_048, seed=0, device="cpu")
        model.learn(STEPS, callback=callback)
        uniform = kb.Policy.uniform(game).nash_conv()
        trained = callback.average_policy.nash_conv()
        print(f"trained: NashConv {uniform:.3f} of uniform play, {trained:.3f} after training")

        kuhn = Path(folder) / "kuhn.efg"
        kb.load_game("kuhn").save(kuhn)
        if find_spec("pygambit") is None:
            print("pygambit is not installed")
            return
        import pygambit

        in_gambit = pygambit.read_efg(kuhn)
        equilibrium = pygambit.nash.lp_solve(in_gambit, rational=True).equilibrium
        value = equilibrium.payoffs[next(iter(in_gambit.players))]
        print(f"Gambit: Kuhn's value is {value}")


if __name__ == "__main__":
    main()
