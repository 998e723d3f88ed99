"""A game with a tree in a terminal: one seat for the person, the others for a policy."""

import io
import math
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from algorithms.compiled.nashconv import action_values, expected_values
from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.tree import CHANCE, TERMINAL

HELP = "Answer with a move's number, name or first letters; h shows this again, q ends the game."
QUIT_ANSWERS = ("q", "quit", "exit")
WITHIN_95 = 1.96  # standard errors on either side of a mean
MIN_HANDS = 30  # fewer do not give a usable standard error
NOTHING = 0.005  # chips that are not worth a word


@dataclass
class TerminalGame:
    """A person who plays against the first of some policies; all of them give the costs of moves.

    Attributes:
        game: game with a tree.
        policies: policies by the names that the person reads.
        random: draws for chance and for the opponent.
        ask: is given a question and returns a line, or raises `EOFError` when there are no more.
        tell: gets every line for the person.
        results: chips that the person won, by hand.
        total_costs: chips that the person's moves cost, by the name of a policy.
    """

    game: Game
    policies: Mapping[str, Policy]
    random: Random
    ask: Callable[[str], str]
    tell: Callable[[str], None]
    results: list[float] = field(default_factory=list)
    total_costs: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.help = self.game.rules_text + HELP
        tables = {name: policy.table for name, policy in self.policies.items()}
        self.opponent_table = next(iter(tables.values()))
        self.costs = {
            name: action_values(self.game.tree, table).costs for name, table in tables.items()
        }

    def play(self) -> None:
        """Play hands, with changing seats, until the person leaves."""
        try:
            for number in count():
                self.play_hand(number)
        except (EOFError, KeyboardInterrupt):
            self.tell(self.summary())

    def play_hand(self, number: int) -> None:
        """One hand from the first step to the result; seats take turns."""
        tree = self.game.tree
        seat = number % self.game.num_players
        self.tell(f"\nHand {number + 1}: you are player_{seat}.")
        node = 0
        steps: list[str] = []
        while tree.player[node] != TERMINAL:
            player = int(tree.player[node])
            child = self.chosen_child(node) if player == seat else self.drawn_child(node)
            label = self._labels(node)[child]
            steps.append(label if player == CHANCE else f"player_{player}: {label}")
            node = int(tree.first_child[node]) + child
        won = float(tree.returns[seat, node])
        self.results.append(won)
        verb = "lose" if won < 0 else "win"
        self.tell(f"You {verb} {chips(abs(won))}. The hand: {', '.join(steps)}.")

    def chosen_child(self, node: int) -> int:
        """The index of the child that the person chooses; an `EOFError` to leave."""
        labels = self._labels(node)
        infoset = int(self.game.tree.infoset[node])
        self.tell(f"You are {self.game.infoset_label(infoset)}.")
        moves = [f"{number} {label}" for number, label in enumerate(labels, start=1)]
        question = f"{', '.join(moves)}? "
        while True:
            answer = " ".join(self.ask(question).lower().split())
            if answer in QUIT_ANSWERS:
                raise EOFError
            child = named_move(answer, labels)
            if child is not None:
                self._tell_costs(infoset, child, labels[child])
                return child
            self.tell(self.help if answer == "h" else HELP)

    def drawn_child(self, node: int) -> int:
        """The index of the child that chance or the policy chooses."""
        tree = self.game.tree
        infoset = int(tree.infoset[node])
        if tree.player[node] == CHANCE:
            children = slice(int(tree.first_child[node]), int(tree.first_child[node + 1]))
            weights = tree.chance_probability[children].tolist()
        else:
            weights = self.opponent_table[infoset, tree.legal[infoset]].tolist()
        return self.random.choices(range(len(weights)), weights)[0]

    def summary(self) -> str:
        """The total with a 95% interval, what the seats are worth, and the cost of the moves."""
        if not self.results:
            return "\nNo hand was finished."
        number = len(self.results)
        hands = "1 hand" if number == 1 else f"{number} hands"
        total = sum(self.results)
        result = f"After {hands}: {chips(total, signed=True)}"
        if number >= MIN_HANDS:
            margin = WITHIN_95 * statistics.stdev(self.results) * math.sqrt(number)
            result += f" (95% interval {total - margin:+.1f} to {total + margin:+.1f})"
        name = list(self.policies)[-1]
        values = expected_values(self.game.tree, self.policies[name].table)
        fair = sum(values[hand % len(values)] for hand in range(number))
        text = f"\n{result}. With {name} in every seat, yours are worth {fair:+z.2f}."
        if self.total_costs:
            costs = [f"{chips(cost)} against {name}" for name, cost in self.total_costs.items()]
            text += f" Your moves cost {' and '.join(costs)}."
        return text

    def _labels(self, node: int) -> list[str]:
        """The steps from a node in words, one per child."""
        infoset = int(self.game.tree.infoset[node])
        if infoset < 0:
            return self.game.chance_labels(node)
        actions = self.game.tree.legal[infoset].nonzero()[0].tolist()
        return [self.game.action_label(infoset, action) for action in actions]

    def _tell_costs(self, infoset: int, child: int, label: str) -> None:
        """Tell the cost of a move, and add it to the totals."""
        choice = int(self.game.tree.first_choice[infoset]) + child
        texts = []
        for name, costs in self.costs.items():
            cost = float(costs[choice])
            if math.isnan(cost):
                texts.append(f"an unknown amount against {name}, which never arrives here")
            else:
                texts.append(f"{chips(cost)} against {name}")
                self.total_costs[name] = self.total_costs.get(name, 0.0) + cost
        self.tell(f"Your {label} cost {', '.join(texts)}.")


def play(
    game: Game, policies: Mapping[str, Policy], *, about: str = "", seed: int | None = None
) -> None:
    """Play on standard input and output until the person leaves or the input ends.

    Args:
        game: game with a tree.
        policies: policies that give the costs of moves, by name; the first is the opponent.
        about: a sentence about the opponent.
        seed: random seed of chance and the opponent.
    """
    accept_strange_bytes()
    terminal_game = TerminalGame(
        game=game,
        policies=policies,
        random=Random(seed),
        ask=ask,
        tell=partial(print, flush=True),
    )
    opponent = next(iter(policies))
    print(f"{game.name} against {opponent}. {about}".strip())
    print(terminal_game.help)
    terminal_game.play()


def accept_strange_bytes() -> None:
    """Strange bytes on standard input are a wrong answer, not an error."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def ask(question: str) -> str:
    """A line from standard input."""
    answer = input(question)
    if not sys.stdin.isatty():
        print(answer)  # a terminal has shown what was typed; a pipe has not
    return answer


def named_move(answer: str, labels: list[str]) -> int | None:
    """The index of the move that an answer names: by number, label, or unique start of a label."""
    if answer.isdecimal():
        names = [str(number) for number, _ in enumerate(labels, start=1)]
    else:
        names = [" ".join(label.lower().split()) for label in labels]
    if answer in names:
        return names.index(answer)
    if answer:
        starting = [index for index, name in enumerate(names) if name.startswith(answer)]
        if len(starting) == 1:
            return starting[0]
    return None


def chips(amount: float, *, signed: bool = False) -> str:
    """An amount in words, e.g. `0.25 chips`, `nothing`."""
    if abs(amount) < NOTHING and not signed:
        return "nothing"
    number = f"{amount:+.2f}" if signed else f"{amount:.2f}"
    number = number.removesuffix(".00")
    is_one = number.lstrip("+-") == "1"
    return f"{number} chip" if is_one else f"{number} chips"
