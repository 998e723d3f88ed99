"""Everything that a caller can get wrong, as one family of `ValueError`s."""

from __future__ import annotations

LONGEST_SHOWN = 80


def short_repr(value: object) -> str:
    """`repr(value)` as an error can show it: one line, not too long, whatever the value is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer of too many digits, or somebody's broken __repr__
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def printable(name: object) -> str:
    """A name as it is, if it can stand in a line; anything else as it is shown."""
    return name if isinstance(name, str) and name.isprintable() else short_repr(name)


class BridgeError(ValueError):
    """The base of every error this project raises on bad input."""


class CardError(BridgeError):
    """Not a card of the deck, or the same card twice."""


class ActionError(BridgeError):
    """Not an action ID."""


class IllegalActionError(ActionError):
    """The mask forbids this action here."""


class HistoryError(BridgeError):
    """Not a history of the game, or not one that this question fits."""


class SeatError(BridgeError):
    """Not a seat or an agent of this hand."""


class PolicyError(BridgeError):
    """Not a complete, valid policy."""
