"""A policy that OpenSpiel made, measured on Leduc poker: how far from equilibrium, and where."""

from __future__ import annotations

import pyspiel

from algorithms.policies import from_openspiel

ITERATIONS = 20


def main() -> None:
    """Solve a little with OpenSpiel, measure with us, compare with OpenSpiel's own figure."""
    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(ITERATIONS):
        solver.evaluate_and_update_policy()
    policy = from_openspiel(solver.average_policy(), game)
    measure = policy.measure()
    print(
        f"NashConv {measure.nash_conv:.4f}, gains {measure.gains[0]:.4f} and {measure.gains[1]:.4f}"
    )
    for loss in measure.losses[:3]:
        played, best = (
            policy.game.action_label(loss.infoset, move) for move in (loss.played, loss.best)
        )
        print(f"loses {loss.lost:.4f} per hand as {policy.game.infoset_label(loss.infoset)}")
        print(f"  where it plays {played} with probability {loss.probability:.2f}; best: {best}")
    assert abs(measure.nash_conv - pyspiel.nash_conv(game, solver.average_policy())) < 1e-9


if __name__ == "__main__":
    main()
