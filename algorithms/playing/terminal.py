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

from algorithms.games import KUHN, Game
from algorithms.nashconv import action_values, expected_values
from algorithms.policies import Policy
from algorithms.tree import CHANCE, TERMINAL

KUHN_RULES = """\
Three cards: J is lowest, K is highest. Each player gets one; the third stays hidden.
Both put 1 chip into the pot. player_0 checks or bets 1 chip; after a check player_1 may check or
bet too. A bet is answered once: call it with 1 chip, or fold and lose the pot.
If nobody folds, the higher card wins. A hand wins or loses 1 chip, or 2 when a bet was called.
"""
HELP = "Answer with a move's number, name or first letters; h shows this again, q ends the game."
WITHIN_95 = 1.96  # standard errors on either side of a mean


@dataclass
class Sitting:
    """A person who plays against the first of some policies; all of them give the costs of moves.

    `ask` is given a question and returns a line, or raises `EOFError` when there are no more;
    `tell` gets every line for the person.
    """

    game: Game
    policies: Mapping[str, Policy]  # by the names that the person reads
    chance: Random
    ask: Callable[[str], str]
    tell: Callable[[str], None]
    results: list[float] = field(default_factory=list)  # chips
    given_away: dict[str, float] = field(default_factory=dict)  # chips, by the name of a policy

    def __post_init__(self) -> None:
        self.help = f"{KUHN_RULES if self.game.name == KUHN else ''}{HELP}"
        tables = {name: policy.table for name, policy in self.policies.items()}
        self.table = next(iter(tables.values()))
        self.costs = {n: action_values(self.game.tree, table).costs for n, table in tables.items()}

    def play(self) -> None:
        """Play hands, with changing seats, until the person leaves."""
        try:
            for number in count():
                self.hand(number)
        except (EOFError, KeyboardInterrupt):
            self.tell(self.summary())

    def hand(self, number: int) -> None:
        """One hand from the first step to the result; seats take turns."""
        tree, seat, node = self.game.tree, number % self.game.num_players, 0
        self.tell(f"\nHand {number + 1}: you are player_{seat}.")
        steps: list[str] = []
        while (player := int(tree.player[node])) != TERMINAL:
            child = self.decide(node) if player == seat else self.drawn(node)
            label = self._labels(node)[child]
            steps.append(label if player == CHANCE else f"player_{player}: {label}")
            node = int(tree.first_child[node]) + child
        won = float(tree.returns[seat, node])
        self.results.append(won)
        result = f"You {'lose' if won < 0 else 'win'} {chips(abs(won))}."
        self.tell(f"{result} The hand: {', '.join(steps)}.")

    def decide(self, node: int) -> int:
        """The index of the child that the person chooses; an `EOFError` to leave."""
        labels = self._labels(node)
        self.tell(f"You are {self.game.infoset_label(int(self.game.tree.infoset[node]))}.")
        question = ", ".join(f"{place} {label}" for place, label in enumerate(labels, 1))
        while True:
            answer = " ".join(self.ask(f"{question}? ").lower().split())
            if answer in ("q", "quit", "exit"):
                raise EOFError
            if (child := _chosen(answer, labels)) is not None:
                self._judge(node, child, labels[child])
                return child
            self.tell(self.help if answer == "h" else HELP)

    def drawn(self, node: int) -> int:
        """The index of the child that chance or the policy chooses."""
        tree, infoset = self.game.tree, int(self.game.tree.infoset[node])
        if infoset < 0:
            children = slice(int(tree.first_child[node]), int(tree.first_child[node + 1]))
            weights = tree.chance_probability[children].tolist()
        else:
            weights = self.table[infoset, tree.legal[infoset]].tolist()
        return self.chance.choices(range(len(weights)), weights)[0]

    def summary(self) -> str:
        """The total with a 95% interval, what the seats are worth, and the cost of the moves."""
        if not self.results:
            return "\nNo hand was finished."
        number, total, interval = len(self.results), sum(self.results), ""
        if number > 1:
            margin = WITHIN_95 * statistics.stdev(self.results) * math.sqrt(number)
            interval = f" (95% interval {total - margin:+.1f} to {total + margin:+.1f})"
        result = f"{number} hand{'' if number == 1 else 's'}: {chips(total, signed=True)}{interval}"
        (*_, (name, policy)) = self.policies.items()
        values = expected_values(self.game.tree, policy.table)
        value = sum(values[hand % len(values)] for hand in range(number))
        fair = f"With {name} in every seat, yours are worth {value:+z.2f}."
        costs = " and ".join(f"{chips(c)} against {n}" for n, c in self.given_away.items())
        return f"\nAfter {result}. {fair}{f' Your moves cost {costs}.' if costs else ''}"

    def _labels(self, node: int) -> list[str]:
        """The steps from a node in words, one per child."""
        infoset = int(self.game.tree.infoset[node])
        if infoset < 0:
            return self.game.chance_labels(node)
        actions = self.game.tree.legal[infoset].nonzero()[0].tolist()
        return [self.game.action_label(infoset, action) for action in actions]

    def _judge(self, node: int, child: int, label: str) -> None:
        """Print the cost of a move, and add it to the totals."""
        slot, said = int(self.game.tree.first_slot[self.game.tree.infoset[node]]) + child, []
        for name, costs in self.costs.items():
            cost = float(costs[slot])
            if math.isnan(cost):
                said.append(f"an unknown amount against {name}, which never arrives here")
                continue
            said.append(f"{chips(cost)} against {name}")
            self.given_away[name] = self.given_away.get(name, 0.0) + cost
        self.tell(f"Your {label} cost {', '.join(said)}.")


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
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # strange bytes are a wrong answer, not an error
    chance = Random(seed)  # a game, not a secret
    sitting = Sitting(game, policies, chance, _ask, partial(print, flush=True))
    print(f"{game.name} against {next(iter(policies))}. {about}".strip())
    print(sitting.help)
    sitting.play()


def _ask(question: str) -> str:
    """A line from standard input."""
    answer = input(question)
    if not sys.stdin.isatty():
        print(answer)  # a terminal has shown what was typed; a pipe has not
    return answer


def _chosen(answer: str, labels: list[str]) -> int | None:
    """The index of the move that an answer names: by number, label, or unique start of a label."""
    names = [" ".join(label.lower().split()) for label in labels]
    if answer.isdecimal():
        names = [str(place) for place, _ in enumerate(labels, 1)]
    if answer in names:
        return names.index(answer)
    starts = [place for place, name in enumerate(names) if answer and name.startswith(answer)]
    return starts[0] if len(starts) == 1 else None


def chips(amount: float, *, signed: bool = False) -> str:
    """An amount in words, e.g. `0.25 chips`, `nothing`."""
    if abs(amount) < 0.005 and not signed:
        return "nothing"
    number = f"{amount:{'+' if signed else ''}.2f}".removesuffix(".00")
    return f"{number} chip{'' if number.lstrip('+-') == '1' else 's'}"
