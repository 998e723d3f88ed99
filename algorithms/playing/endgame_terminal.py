"""A poker endgame in a terminal: one seat for the person, the other for a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from algorithms.games.game import PyspielState, per_player
from algorithms.large_games.poker import PokerEndgame
from algorithms.playing import terminal
from algorithms.playing.terminal import HELP, QUIT_ANSWERS, chips, named_move
from algorithms.policies import Policy


@dataclass
class EndgameTable:
    """A person who plays an endgame against a policy, on OpenSpiel's states.

    Attributes:
        game: the endgame.
        policy: the opponent.
        random: draws for the deal and for the opponent.
        ask: is given a question and returns a line, or raises `EOFError` when there are no more.
        tell: gets every line for the person.
        results: chips that the person won, by hand.
    """

    game: PokerEndgame
    policy: Policy
    random: Random
    ask: Callable[[str], str]
    tell: Callable[[str], None]
    results: list[float] = field(default_factory=list)

    def play(self) -> None:
        """Play hands, with changing seats, until the person leaves."""
        try:
            for number in count():
                self.play_hand(number)
        except (EOFError, KeyboardInterrupt):
            self.tell(self.summary())

    def play_hand(self, number: int) -> None:
        """One hand from the deal to the result; seats take turns."""
        seat = number % 2
        board = " ".join(self.game.card_label(card) for card in self.game.boards[0].cards)
        self.tell(f"\nHand {number + 1}: you are player_{seat}. Board {board}, pot {self.game.pot}")
        state = self._dealt_state()
        hands = self._hands(state)
        self.tell(f"Your hand: {hands[seat]}")
        node = 0
        while not state.is_terminal():
            if state.is_chance_node():
                action = self._dealt(state)
                self.tell(f"The next card: {self.game.card_label(action)}")
            elif state.current_player() == seat:
                action = self._chosen(node)
            else:
                action = self._opponents(state)
                label = self.game.public_action_label(node, action)
                self.tell(f"player_{1 - seat}: {label}")
            state.apply_action(action)
            node = self.game.next_node(node, action)
        won = float(state.returns()[seat])
        self.results.append(won)
        verb = "lose" if won < 0 else "win"
        self.tell(f"You {verb} {chips(abs(won))}; player_{1 - seat} had {hands[1 - seat]}.")

    def summary(self) -> str:
        """The total."""
        if not self.results:
            return "\nNo hand was finished."
        number = len(self.results)
        hands = "1 hand" if number == 1 else f"{number} hands"
        return f"\nAfter {hands}: {chips(sum(self.results), signed=True)}."

    def _dealt_state(self) -> PyspielState:
        """A state in which both players have their hands."""
        state = self.game.first_state(self.random)
        while state.is_chance_node():
            state.apply_action(self._dealt(state))
        return state

    def _hands(self, state: PyspielState) -> list[str]:
        """Both hands in words."""
        cards = [self.game.cards_seen(state, player) for player in range(2)]
        return [
            "".join(self.game.card_label(card) for card in sorted(hand, reverse=True))
            for hand in cards
        ]

    def _chosen(self, node: int) -> int:
        """The action that the person chooses; an `EOFError` to leave."""
        actions = self.game.actions_at(node).tolist()
        labels = [self.game.public_action_label(node, action) for action in actions]
        moves = [f"{number} {label}" for number, label in enumerate(labels, start=1)]
        question = f"{', '.join(moves)}? "
        while True:
            answer = " ".join(self.ask(question).lower().split())
            if answer in QUIT_ANSWERS:
                raise EOFError
            chosen = named_move(answer, labels)
            if chosen is not None:
                return int(actions[chosen])
            self.tell(HELP)

    def _opponents(self, state: PyspielState) -> int:
        """The action that the policy draws."""
        player = state.current_player()
        infoset = self.game.infoset_of_state(state)
        row = per_player(self.policy.table)[player][infoset]
        actions = state.legal_actions()
        return self._drawn(actions, row[actions].tolist())

    def _dealt(self, state: PyspielState) -> int:
        """The outcome that chance draws."""
        outcomes = state.chance_outcomes()
        return self._drawn([action for action, _ in outcomes], [share for _, share in outcomes])

    def _drawn(self, outcomes: Sequence[int], weights: Sequence[float]) -> int:
        """One of the outcomes, in proportion to weights."""
        return int(self.random.choices(outcomes, weights)[0])


def play(game: PokerEndgame, policy: Policy, opponent: str, *, seed: int | None = None) -> None:
    """Play on standard input and output until the person leaves or the input ends.

    `opponent` is the policy's name.
    """
    terminal.accept_strange_bytes()
    print(f"{game.name} against {opponent}.\n{terminal.HELP}")
    table = EndgameTable(
        game=game,
        policy=policy,
        random=Random(seed),
        ask=terminal.ask,
        tell=partial(print, flush=True),
    )
    table.play()
