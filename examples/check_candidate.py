"""Your own Kuhn poker, held against OpenSpiel's at every node; this one has a common fault.

The same from the command line: `python -m parity.check --candidate check_candidate.py:MyKuhn`.
"""

from __future__ import annotations

from collections.abc import Sequence

from parity.candidate import judge, recognise


class MyKuhn:
    """Kuhn poker in letters, p = pass and b = bet, as a first CFR program has it."""

    check_check_pays = 2  # the fault: nobody bet, so only the antes are at stake

    def is_terminal(self, history: str) -> bool:
        """Whether the hand is over."""
        return history in {"pp", "bp", "bb", "pbp", "pbb"}

    def get_current_player(self, history: str) -> int:
        """Players act in turn."""
        return len(history) % 2

    def get_payoff(self, cards: Sequence[int], history: str) -> int:
        """What player_0 wins."""
        if history.endswith("bp"):
            return 1 if history == "bp" else -1
        stake = self.check_check_pays if history == "pp" else 2
        return stake if cards[0] > cards[1] else -stake


class Mended(MyKuhn):
    """Check-check pays 1."""

    check_check_pays = 1


def main() -> None:
    """Judge both."""
    for candidate in (MyKuhn, Mended):
        tally = judge(recognise(candidate))
        print(f"{candidate.__name__}: {tally.compared} comparisons, {tally.wrong} differ")
        for case in tally.cases:
            print(f"  {case}")


if __name__ == "__main__":
    main()
