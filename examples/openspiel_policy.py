"""Measure a policy of OpenSpiel's own solver on Leduc poker, and list where it loses chips."""

from __future__ import annotations

import pyspiel

import kuhn_bridge as kb

ITERATIONS = 20


def main() -> None:
    """Run a few iterations of OpenSpiel's CFR+, measure, and compare with OpenSpiel's NashConv."""
    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(ITERATIONS):
        solver.evaluate_and_update_policy()
    policy = kb.Policy.from_openspiel(solver.average_policy(), game)
    measure = policy.measure()
    leduc = policy.game
    gains = " and ".join(f"{gain:.4f}" for gain in measure.gains)
    print(f"NashConv {measure.nash_conv:.4f}, gains {gains}")
    for loss in measure.losses[:3]:
        played, best = (leduc.action_label(loss.infoset, a) for a in (loss.played, loss.best))
        print(f"loses {loss.lost:.4f} per hand as {leduc.infoset_label(loss.infoset)}")
        print(f"  where it plays {played} with probability {loss.probability:.2f}; best: {best}")
    assert abs(measure.nash_conv - pyspiel.nash_conv(game, solver.average_policy())) < 1e-9


if __name__ == "__main__":
    main()
