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
    given = {"decisions": (decisions, 1), "hands": (hands, MIN_HANDS), "cpus": (cpus, 1)}
    for name, (value, least) in given.items():
        if value < least:
            raise UsageError(f"{name}={value}: want at least {least:,}")
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)}: want different whole numbers from 0 up")
