"""Who a person can play against, in words a player knows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from algorithms.games import kuhn
from algorithms.policies import Policy, load_policy, sources

# Of the equilibria the middle one: it comes everywhere, so each mistake against it costs something.
PERFECT_ALPHA = Fraction(1, 6)
PERFECT = f"nash:{PERFECT_ALPHA}"

_WORDS = {
    PERFECT: ("Perfect play", "It gives nothing away: in the long run nobody wins from it."),
    "uniform": ("Coin flips", "It tosses a coin over every move, whatever its card."),
    "heuristic": ("Never bluffs", "It bets with the King alone, and folds the Jack to a bet."),
    "always-bet": ("Always bets", "It bets and calls with every card."),
    "always-check": ("Always checks", "It checks with every card, and folds to every bet."),
}


@dataclass(frozen=True, slots=True)
class Opponent:
    """A policy with a name and a sentence for the person who plays against it."""

    name: str
    about: str
    policy: Policy


def opponent(source: str, *, trust: bool = False) -> Opponent:
    """The opponent that `source` names; of a file only the name is told."""
    policy = load_policy(source, kuhn(), trust=trust)
    name, about = _WORDS.get(source) or (_plain_name(source), "")
    return Opponent(name, about, policy)


def usual() -> list[Opponent]:
    """The opponents that need no file, perfect play first."""
    return [opponent(source) for source in _WORDS]


def _plain_name(source: str) -> str:
    kind, _, argument = source.partition(":")
    if sources.is_file(source):
        return Path(source).name
    if kind == "nash":
        return f"Perfect play (alpha {argument})"
    return f"Random habits {argument}" if kind == "random" and argument else source
