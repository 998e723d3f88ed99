"""Everything that a caller can get wrong, as one family of `ValueError`s."""


class KuhnError(ValueError):
    """The base of every error this project raises on bad input."""


class CardError(KuhnError):
    """Not a card of the deck, or the same card twice."""


class ActionError(KuhnError):
    """Not an action ID."""


class IllegalActionError(ActionError):
    """The mask forbids this action here."""


class HistoryError(KuhnError):
    """Not a history of the game, or not one that this question fits."""


class SeatError(KuhnError):
    """Not a seat or an agent of this hand."""


class PolicyError(KuhnError):
    """Not a complete, valid policy."""
