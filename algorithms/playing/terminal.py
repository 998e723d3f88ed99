"""The game in a terminal, with the same words and verdicts as on the page."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from algorithms.exact.kuhn import VALUE, exact_nash, move_costs
from algorithms.playing.opponents import PERFECT_ALPHA, Opponent
from algorithms.policies import Policy
from kuhn_bridge.bridge import information_state
from kuhn_bridge.rules import DEALS, Action, Card
from kuhn_bridge.state import State

RULES = """\
Three cards: the Jack is lowest, the King highest. Each player gets one; the third stays hidden.
Both put 1 chip into the pot. Whoever acts first checks or bets 1 chip; after a check the other
may check or bet too. A bet is answered once: call it with 1 chip, or fold and lose the pot.
If nobody folds, the higher card wins. A hand wins or loses 1 chip, or 2 when a bet was called.
Answer with a word or its first letter; h shows this again, q ends the game."""

_NAMES = {Card.J: "Jack", Card.Q: "Queen", Card.K: "King"}


class Leave(Exception):  # noqa: N818  # not an error
    """The person quits."""


@dataclass
class Sitting:
    """A person who plays against a policy; `tell` gets every line for the person.

    `ask` is given a question and returns a line, or raises `EOFError` when there are no more.
    """

    policy: Policy
    chance: Random
    ask: Callable[[str], str]
    tell: Callable[[str], None]
    results: list[tuple[int, int]] = field(default_factory=list)  # seat, chips
    given_away: float = 0.0

    def play(self) -> None:
        """Play hands in alternating seats until the person quits."""
        try:
            for number in count(1):
                self.hand(number)
        except (Leave, EOFError, KeyboardInterrupt):
            self.tell(self.summary())

    def hand(self, number: int) -> None:
        """One hand from the deal to the verdict."""
        seat = (number - 1) % 2
        state = State.new(*self.chance.choice(DEALS))
        own = _NAMES[state.cards[seat]]
        self.tell(f"\nHand {number}: you act {('first', 'second')[seat]} and hold the {own}.")
        costs: list[tuple[str, float]] = []
        while state.actor is not None:
            if state.actor == seat:
                action = self.decide(state)
                costs.append((_word(state, action), _cost(state, action)))
            else:
                action = self.bot_action(state)
                self.tell(f"The bot {_word(state, action)}s.")
            state = state.act(action)
        self.results.append((seat, state.returns[seat]))
        self.given_away += sum(cost for _, cost in costs)
        self.tell(f"{_result(state, seat)} {_verdict(costs)}")

    def decide(self, state: State) -> Action:
        """Ask the person until the answer is a legal move."""
        moves = {_word(state, action): action for action in state.legal_actions}
        letters = {word[0]: action for word, action in moves.items()}
        question = f"{' or '.join(moves)}? "
        while True:
            answer = self.ask(question).strip().lower()
            if answer in ("q", "quit", "exit"):
                raise Leave
            if answer in ("h", "help", "?"):
                self.tell(RULES)
            elif answer in moves or answer in letters:
                return (moves | letters)[answer]
            else:
                wanted = ", ".join(f"{word[0]} ({word})" for word in moves)
                self.tell(f"Please answer {wanted}, h for the rules or q to quit.")

    def bot_action(self, state: State) -> Action:
        """A move drawn from the policy at the bot's information state."""
        row = self.policy[information_state(state.cards[state.actor or 0], state.letters)]
        return Action(self.chance.choices(list(row), list(row.values()))[0])

    def summary(self) -> str:
        """The totals, in words."""
        if not self.results:
            return "\nNo hand was finished."
        total = sum(chips for _, chips in self.results)
        share = float(sum((VALUE if seat == 0 else -VALUE) for seat, _ in self.results))
        hands = f"{len(self.results)} hand{'' if len(self.results) == 1 else 's'}"
        return (
            f"\nAfter {hands}: {chips(total, signed=True)}. With perfect play on both sides "
            f"your seats are worth {share:+.2f}. Your moves gave away {chips(self.given_away)}."
        )


def play(opponent: Opponent, *, seed: int | None = None) -> None:
    """Play on standard input and output until the person leaves or the input ends."""
    print(f"Kuhn poker against: {opponent.name}. {opponent.about}".strip())
    print(RULES)
    accept_strange_bytes()
    chance = Random(seed)  # a game, not a secret
    Sitting(opponent.policy, chance, ask_on_terminal, lambda line: print(line, flush=True)).play()


def accept_strange_bytes() -> None:
    """Make undecodable input a wrong answer instead of an error; call it before the first read."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def ask_on_terminal(question: str) -> str:
    """A line from standard input."""
    answer = input(question)
    if not sys.stdin.isatty():
        print(answer)  # a terminal has shown what was typed; a pipe has not
    return answer


def _word(state: State, action: Action) -> str:
    return state.act(action).history[-1]


_COSTS = move_costs(exact_nash(PERFECT_ALPHA))


def _cost(state: State, action: Action) -> float:
    """The cost of the actor's move against perfect play."""
    return float(_COSTS[information_state(state.cards[state.actor or 0], state.letters)][action])


def _result(state: State, seat: int) -> str:
    won, last = state.returns[seat], state.history[-1]
    verb = "win" if won > 0 else "lose"
    if last == "fold":
        return f"You {verb} {chips(abs(won))}."
    own, other = (_NAMES[state.cards[player]] for player in (seat, 1 - seat))
    return f"Your {own} meets the {other}: you {verb} {chips(abs(won))}."


def _verdict(costs: list[tuple[str, float]]) -> str:
    """`Your check cost nothing, your call 1 chip.`; empty if the person had no move."""
    if not costs:
        return ""
    (first, cost), *others = costs
    said = f"Your {first} cost {chips(cost)}"
    return f"{said}{''.join(f', your {word} {chips(cost)}' for word, cost in others)}."


def chips(amount: float, *, signed: bool = False) -> str:
    """An amount in words, e.g. `0.25 chips`, `nothing`."""
    if abs(amount) < 0.005 and not signed:
        return "nothing"
    number = f"{amount:{'+' if signed else ''}.2f}".removesuffix(".00")
    return f"{number} chip{'' if number.lstrip('+-') == '1' else 's'}"
