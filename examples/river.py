"""A river endgame of hold'em: solve it, measure two policies exactly, and see where one loses."""

from __future__ import annotations

import kuhn_bridge as kb

GAME = "river(board=7dJc3s9hQd,pot=2000)"
POT = 2_000


def main() -> None:
    """Two seconds, most of them for loading what is compiled."""
    uniform = kb.Policy.uniform(GAME)
    print(f"uniform play: NashConv {uniform.nash_conv():.4f} chips per hand")

    policy = kb.solve(GAME, until=0.01 * POT)
    measure = policy.measure()
    print(f"solved: NashConv {100 * measure.nash_conv / POT:.2f}% of the pot")
    print(f"the pot is worth {measure.values[0]:+.0f} chips to player_0")

    worst = uniform.measure().losses[0]
    where = uniform.game.infoset_label(worst.infoset, worst.player)
    best = uniform.game.action_label(worst.infoset, worst.best, worst.player)
    print(f"{where}: {best} is best, and uniform play loses {worst.lost:.2f} chips per hand")


if __name__ == "__main__":
    main()
