"""The errors that are raised for a user's mistake: subclasses of `BridgeError`, a `ValueError`."""

MAX_REPR = 80  # characters


def short_repr(value: object) -> str:
    """`repr(value)` on one line of at most `MAX_REPR` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_REPR else f"{text[: MAX_REPR - 3]}..."


class BridgeError(ValueError):
    """The base class of the errors of this project."""


class CardError(BridgeError):
    """Not a card of the deck, or the same card twice."""


class ActionError(BridgeError):
    """Not an action ID."""


class IllegalActionError(ActionError):
    """The action is illegal in this state."""


class HistoryError(BridgeError):
    """Not a history of the game, or not one that this method accepts."""


class SeatError(BridgeError):
    """Not a seat or an agent of this game."""


class PolicyError(BridgeError):
    """Not a complete, valid policy."""


class GameError(BridgeError):
    """Not a game that can be loaded, or one that is too large for this."""
