"""The opponents of a person, described for players."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from algorithms.games import kuhn
from algorithms.policies import Policy
from algorithms.policies.sources import Source, is_file, open_source

# The equilibrium in the middle reaches every information set, so every mistake against it costs.
PERFECT_ALPHA = Fraction(1, 6)
PERFECT = f"nash:{PERFECT_ALPHA}"

_DESCRIPTIONS = {
    PERFECT: ("Perfect play", "It gives nothing away: in the long run nobody wins from it."),
    "uniform": ("Coin flips", "It decides every move by a coin toss, with every card."),
    "heuristic": ("Never bluffs", "It bets only with the King, and folds the Jack to a bet."),
    "always-bet": ("Always bets", "It bets and calls with every card."),
    "always-check": ("Always checks", "It checks with every card, and folds to every bet."),
}


@dataclass(frozen=True, slots=True)
class Opponent:
    """A policy with a name and a sentence for the person who plays against it."""

    name: str
    about: str
    policy: Policy


def opponent(source: str | Source) -> Opponent:
    """The opponent that `source` names; a file is described by its name only."""
    opened = open_source(source)
    name, about = _DESCRIPTIONS.get(opened.name) or (_name(opened.name), "")
    return Opponent(name, about, opened.policy(kuhn()))


def usual() -> list[Opponent]:
    """The opponents without a file, perfect play first."""
    return [opponent(source) for source in _DESCRIPTIONS]


def _name(source: str) -> str:
    kind, _, argument = source.partition(":")
    if is_file(source):
        return Path(source).name
    if kind == "nash":
        return f"Perfect play (alpha {argument})"
    return f"Random habits {argument}" if kind == "random" and argument else source
