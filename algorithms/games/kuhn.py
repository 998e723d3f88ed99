"""Kuhn poker as a `Game`: its tree, words and named policies, without OpenSpiel."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from algorithms.games import kuhn_policies
from algorithms.games.game import ClosedForm, PyspielGame, Table, one_table
from algorithms.games.openspiel import load_pyspiel
from algorithms.games.tree_game import TreeGame
from algorithms.kuhn_equilibria import (
    LARGEST_ALPHA,
    UNIFORM_NASH_CONV,
    VALUE,
    Nearest,
    nash,
    nearest_nash,
)
from algorithms.support.arrays import Float32Array, Float64Array
from algorithms.support.errors import UsageError
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from kuhn_bridge.bridge import (
    INFORMATION_STATES,
    LETTERS,
    from_openspiel,
    information_state,
    parse_information_state,
    to_openspiel,
)
from kuhn_bridge.errors import PolicyError, short_repr
from kuhn_bridge.rules import AGENTS, BETTING, PLAYERS, Action, Card
from kuhn_bridge.state import OBSERVATION_SIZE, State, encode

NAME = "kuhn"
KUHN_POKER = "kuhn_poker"  # in OpenSpiel
KUHN_BRIDGE = "python_kuhn_bridge"  # with our action IDs, registered with OpenSpiel
NASH = "nash"
RULES = """\
Three cards: J is lowest, K is highest. Each player gets one; the third stays hidden.
Both put 1 chip into the pot. player_0 checks or bets 1 chip; after a check player_1 may check or
bet too. A bet is answered once: call it with 1 chip, or fold and lose the pot.
If nobody folds, the higher card wins. A hand wins or loses 1 chip, or 2 when a bet was called.
"""


class KuhnGame(TreeGame):
    """Kuhn poker; rows of its tables are `INFORMATION_STATES`, columns our action IDs."""

    closed_form = ClosedForm(VALUE, UNIFORM_NASH_CONV)
    document_version: ClassVar[int] = 1
    rules_text: ClassVar[str] = RULES
    usual_opponents: ClassVar[tuple[str, ...]] = (
        *kuhn_policies.OPPONENTS,
        "nash:0",
        "nash:1/3",
        "best-response",
    )
    # The middle one of Kuhn's equilibria: it reaches every information set.
    usual_reference: ClassVar[str | None] = "nash:1/6"
    own_policies: ClassVar[tuple[str, ...]] = ("nash:<alpha>", *kuhn_policies.OPPONENTS)

    def __init__(self) -> None:
        super().__init__(
            name=NAME,
            num_players=len(PLAYERS),
            num_actions=len(Action),
            observation_size=OBSERVATION_SIZE,
        )

    def _build_tree(self) -> Tree:
        return kuhn_tree()

    def _observations(self) -> Float32Array:
        return np.stack([encode(*parse_information_state(name)) for name in INFORMATION_STATES])

    def infoset_label(self, infoset: int, player: int = 0) -> str:
        """`player_0 with J after check-bet`."""
        self._require_infoset(infoset)
        card, letters = parse_information_state(INFORMATION_STATES[infoset])
        betting = BETTING[letters]
        before = f"after {'-'.join(betting.words)}" if betting.words else "to start"
        return f"{AGENTS[betting.actor or 0]} with {card.name} {before}"

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """`check`, `call`, `bet` or `fold`."""
        self._require_infoset(infoset, action)
        after = BETTING[INFORMATION_STATES[infoset][1:]].after
        return BETTING[after[Action(action)]].words[-1]

    def _chance_labels(self, node: int, outcomes: Sequence[int]) -> list[str]:
        agent = AGENTS[len(self.tree.history(node))]
        return [f"{agent} gets {Card(card).name}" for card in outcomes]

    def action_id(self, action: int) -> Action:
        """`Action.BET`."""
        return Action(action)

    def action_name(self, action: int) -> str:
        """`BET`."""
        return Action(action).name

    def table_text(self, table: Table) -> str:
        """One line per information state."""
        return kuhn_policies.to_text(one_table(table))

    def solution_text(self, table: Table) -> str:
        """One line per information state, then the same in percent."""
        rows = one_table(table)
        lines = [kuhn_policies.to_text(rows), ""]
        lines.append("percent         [check, bet, fold, call] with J, Q, K")
        for agent, cards in zip(AGENTS, kuhn_policies.to_percentages(rows), strict=True):
            of_cards = [str([round(percent, 2) for percent in card]) for card in cards]
            lines.append(f"{agent:<15} {'  '.join(of_cards)}")
        return "\n".join(lines)

    def nearest_equilibrium(self, table: Table) -> Nearest:
        """The equilibrium nearest to a table."""
        return nearest_nash(one_table(table))

    def named_table(self, name: str) -> Float64Array | None:
        """An equilibrium such as `nash:1/3`, or an opponent such as `heuristic`."""
        kind, colon, argument = name.partition(":")
        if colon and kind == NASH:
            return nash(_alpha(argument))
        opponent = kuhn_policies.OPPONENTS.get(name)
        if opponent is None:
            return None
        return kuhn_policies.from_percentages([opponent] * len(PLAYERS))

    # OpenSpiel has two forms: `kuhn_poker` with two action IDs, and ours with the IDs of `Action`.

    def openspiel_game(self) -> PyspielGame:
        """`kuhn_poker`, whose two action IDs mean what three of ours mean."""
        return load_pyspiel(KUHN_POKER)

    def require_openspiel(self, theirs: PyspielGame) -> None:
        """Raise a `PolicyError` unless a `pyspiel.Game` is Kuhn poker of two players."""
        known = theirs.get_type().short_name in (KUHN_POKER, KUHN_BRIDGE)
        if not known or theirs.num_players() != self.num_players:
            both = f"{KUHN_POKER} and {KUHN_BRIDGE}"
            raise PolicyError(f"policies of {self.name} convert to {both}, not to {theirs}")

    def openspiel_history(self, infoset: int, theirs: PyspielGame) -> list[int]:
        """The cards and the bets that lead to an information set."""
        history = super().openspiel_history(infoset, theirs)
        if not _is_kuhn_poker(theirs):
            return history
        letters = INFORMATION_STATES[infoset][1:]
        return [*history[: len(PLAYERS)], *map(LETTERS.index, letters)]

    def to_openspiel_ids(
        self, infoset: int, row: dict[int, float], theirs: PyspielGame
    ) -> dict[int, float]:
        """Probabilities of Pass and Bet in `kuhn_poker`, in that order."""
        if not _is_kuhn_poker(theirs):
            return row
        faces_bet = BETTING[INFORMATION_STATES[infoset][1:]].faces_bet
        return dict(sorted((to_openspiel(action, faces_bet), p) for action, p in row.items()))

    def from_openspiel_ids(self, rows: list[dict[int, float]]) -> list[dict[int, float]]:
        """Rows in our action IDs; OpenSpiel's Pass and Bet are translated.

        A C++ policy does not say which IDs it uses, but only ours have FOLD.
        """
        facing = [BETTING[key[1:]].faces_bet for key in INFORMATION_STATES]
        used = set[int]()
        for faces_bet, row in zip(facing, rows, strict=True):
            if faces_bet:
                used.update(row)
        if used == {0}:  # folding there in kuhn_poker, calling in ours
            raise PolicyError(
                "the policy lists action 0 alone facing a bet: list all legal actions"
            )
        if Action.FOLD in used:
            return rows
        return [
            {from_openspiel(action, faces_bet): p for action, p in row.items()}
            for faces_bet, row in zip(facing, rows, strict=True)
        ]


@cache
def kuhn() -> KuhnGame:
    """Kuhn poker, which needs no OpenSpiel."""
    return KuhnGame()


def kuhn_tree() -> Tree:
    """The 58 nodes; rows are `INFORMATION_STATES` and columns our action IDs."""
    rows = [(BETTING[name[1:]].actor or 0, name) for name in INFORMATION_STATES]
    return TreeBuilder(NAME, len(PLAYERS), len(Action), rows).build(_visits())


def _is_kuhn_poker(theirs: PyspielGame) -> bool:
    """Whether this is OpenSpiel's form, with action IDs of its own."""
    return bool(theirs.get_type().short_name == KUHN_POKER)


def _alpha(text: str) -> Fraction:
    """The probability with which player_0 bets with J in an equilibrium."""
    try:
        alpha = Fraction(text)
    except (ValueError, ZeroDivisionError):
        alpha = Fraction(-1)
    if not 0 <= alpha <= LARGEST_ALPHA:
        want = "nash:<alpha>, a number in [0, 1/3]: nash:1/3"
        raise UsageError(f"{short_repr(text)} is not a valid number; use {want}")
    return alpha


def _visits() -> Iterator[Visit]:
    """Two levels of chance nodes, as OpenSpiel deals, then the 54 states of `kuhn_bridge`."""
    yield Visit(depth=0, player=CHANCE)
    for card0 in Card:
        yield Visit(depth=1, player=CHANCE, action=card0, probability=1 / len(Card))
        for card1 in Card:
            if card1 != card0:
                state = State.new(card0, card1)
                yield from _hand_visits(state, 2, card1, 1 / (len(Card) - 1))


def _hand_visits(
    state: State, depth: int, action: int, probability: float = 1.0
) -> Iterator[Visit]:
    """A state and those after it."""
    if state.actor is None:
        yield Visit(depth, TERMINAL, action, probability, returns=state.returns)
        return
    yield Visit(
        depth=depth,
        player=state.actor,
        action=action,
        probability=probability,
        key=information_state(state.cards[state.actor], state.letters),
        legal=state.legal_actions,
    )
    for move in state.legal_actions:
        yield from _hand_visits(state.act(move), depth + 1, move)
