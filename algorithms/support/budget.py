"""The budget of trained best responses; here because help texts print the defaults."""

from collections.abc import Sequence

from algorithms.support.errors import UsageError

DECISIONS = 5_000_000  # decisions that each training run learns from
HANDS = 200_000  # hands on which each player's response is measured on states
TREE_HANDS = 2_000_000  # the same on a tree, where hands take less time
SEEDS = (0,)  # each seed adds two training runs per player
MIN_HANDS = 1_000  # fewer do not give a usable standard error


def require_budget(
    *,
    decisions: int = DECISIONS,
    hands: int = HANDS,
    seeds: Sequence[int] = SEEDS,
    cpus: int = 1,
) -> None:
    """Refuse impossible budgets before any work."""
    if decisions < 1:
        raise UsageError(f"decisions={decisions}: want at least 1")
    if hands < MIN_HANDS:
        raise UsageError(f"hands={hands}: want at least {MIN_HANDS:,}")
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)}: want different whole numbers from 0 up")
    if cpus < 1:
        raise UsageError(f"cpus={cpus}: want at least 1")
