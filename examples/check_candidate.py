"""Compare a Kuhn poker of your own with OpenSpiel's at every node; this one has a common error.

The command is `python -m parity.check --candidate check_candidate.py:MyKuhn`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


class MyKuhn:
    """Kuhn poker in letters, p = pass and b = bet, as in many CFR tutorials."""

    check_check_pays = 2  # the error: nobody bet, so the winner gets only the other's ante of 1

    def is_terminal(self, history: str) -> bool:
        """Whether the hand is over."""
        return history in {"pp", "bp", "bb", "pbp", "pbb"}

    def get_current_player(self, history: str) -> int:
        """Players act in turn."""
        return len(history) % 2

    def get_payoff(self, cards: Sequence[int], history: str) -> int:
        """What player_0 wins, in chips."""
        if history.endswith("bp"):
            return 1 if history == "bp" else -1
        stake = self.check_check_pays if history == "pp" else 2
        return stake if cards[0] > cards[1] else -stake


class Corrected(MyKuhn):
    """Check-check pays 1."""

    check_check_pays = 1


def main() -> None:
    """Check both versions: the command exits 1 if a candidate differs from OpenSpiel."""
    for candidate in (MyKuhn, Corrected):
        spec = f"{__file__}:{candidate.__name__}"
        command = [sys.executable, "-m", "parity.check", "--candidate", spec]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        print(f"{done.stdout}{candidate.__name__}: exit {done.returncode}\n")


if __name__ == "__main__":
    main()
