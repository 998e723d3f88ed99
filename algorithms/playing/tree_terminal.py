"""Any game with a tree in a terminal: one seat for the person, the others for a policy."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from algorithms.exact.tree import CHANCE, TERMINAL
from algorithms.exact.values import ActionValues
from algorithms.games import Game
from algorithms.playing.terminal import Leave, accept_strange_bytes, ask_on_terminal, chips
from algorithms.support.arrays import Float64Array

HELP = "Answer with the number of a move or its name; q ends the game."
WITHIN_95 = 1.96  # standard errors on either side of a mean


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """A policy whose action values give the costs of moves."""

    name: str
    table: Float64Array  # (I, A)
    values: ActionValues

    def cost(self, slot: int) -> float:
        """The cost of a move against this policy; NaN where the policy never arrives."""
        return float(self.values.costs[slot])


@dataclass
class TreeSitting:
    """A person who answers through `ask` against a policy; `tell` gets every line for the person.

    `ask` is given a question and returns a line, or raises `EOFError` when there are no more.
    """

    game: Game
    opponent: Judge
    reference: Judge | None
    chance: Random
    ask: Callable[[str], str]
    tell: Callable[[str], None]
    results: list[float] = field(default_factory=list)  # chips
    costs: dict[str, float] = field(default_factory=dict)  # by the name of a judge

    def play(self) -> None:
        """Play hands, with changing seats, until the person leaves."""
        try:
            for number in count():
                self.hand(number)
        except (Leave, EOFError, KeyboardInterrupt):
            self.tell(self.summary())

    def hand(self, number: int) -> None:
        """One hand from the first step to the result; seats take turns."""
        tree, seat, node = self.game.tree, number % self.game.num_players, 0
        self.tell(f"\nHand {number + 1}: you are player_{seat}.")
        steps: list[str] = []
        while tree.player[node] != TERMINAL:
            child = self.decide(node) if tree.player[node] == seat else self.drawn(node)
            steps.append(self.step(node, child))
            node = int(tree.first_child[node]) + child
        won = float(tree.returns[seat, node])
        self.results.append(won)
        result = f"You {'lose' if won < 0 else 'win'} {chips(abs(won))}."
        self.tell(f"{result} The hand: {', '.join(steps)}.")

    def decide(self, node: int) -> int:
        """Ask the person for a move at a node until it is legal; return the index of the child."""
        infoset = int(self.game.tree.infoset[node])
        labels = self._labels(infoset)
        self.tell(f"You are {self.game.infoset_label(infoset)}.")
        question = ", ".join(f"{place} {label}" for place, label in enumerate(labels, 1))
        while True:
            answer = " ".join(self.ask(f"{question}? ").lower().split())
            if answer in ("q", "quit", "exit"):
                raise Leave
            if (place := _chosen(answer, labels)) is not None:
                self._judge(infoset, place, labels[place])
                return place
            self.tell(HELP)

    def drawn(self, node: int) -> int:
        """The index of the child that chance or the policy chooses."""
        tree = self.game.tree
        infoset = int(tree.infoset[node])
        if infoset < 0:
            children = slice(int(tree.first_child[node]), int(tree.first_child[node + 1]))
            weights = tree.chance_probability[children].tolist()
        else:
            weights = self.opponent.table[infoset, tree.legal[infoset]].tolist()
        return self.chance.choices(range(len(weights)), weights)[0]

    def step(self, node: int, child: int) -> str:
        """A step in words, e.g. `player_0: call`."""
        player = int(self.game.tree.player[node])
        if player == CHANCE:
            return self.game.chance_labels(node)[child]
        return f"player_{player}: {self._labels(int(self.game.tree.infoset[node]))[child]}"

    def summary(self) -> str:
        """The total with a 95% interval, and the cost of the moves."""
        if not self.results:
            return "\nNo hand was finished."
        number = len(self.results)
        hands = f"{number} hand{'' if number == 1 else 's'}"
        given = " and ".join(f"{chips(cost)} against {name}" for name, cost in self.costs.items())
        costs = f" Your moves cost {given}." if given else ""
        total = chips(sum(self.results), signed=True)
        return f"\nAfter {hands}: {total}{_interval(self.results)}.{costs}"

    def _labels(self, infoset: int) -> list[str]:
        actions = self.game.tree.legal[infoset].nonzero()[0].tolist()
        return [self.game.action_label(infoset, action) for action in actions]

    def _judge(self, infoset: int, place: int, label: str) -> None:
        """Print the cost of a move, and add it to the totals."""
        slot, said = int(self.game.tree.first_slot[infoset]) + place, []
        for judge in [self.opponent, *([self.reference] if self.reference else [])]:
            cost = judge.cost(slot)
            if math.isnan(cost):
                said.append(f"an unknown amount against {judge.name}, which never arrives here")
                continue
            said.append(f"{chips(cost)} against {judge.name}")
            self.costs[judge.name] = self.costs.get(judge.name, 0.0) + cost
        self.tell(f"Your {label} cost {', '.join(said)}.")


def play(
    game: Game, opponent: Judge, reference: Judge | None = None, *, seed: int | None = None
) -> None:
    """Play on standard input and output until the person leaves or the input ends."""
    print(f"{game.name} against {opponent.name}. {HELP}")
    accept_strange_bytes()
    chance = Random(seed)  # a game, not a secret
    tell = partial(print, flush=True)
    TreeSitting(game, opponent, reference, chance, ask_on_terminal, tell).play()


def _chosen(answer: str, labels: list[str]) -> int | None:
    """The index of the move that an answer names: by number, label, or unique start of a label."""
    if answer.isascii() and answer.isdigit():
        return int(answer) - 1 if 1 <= int(answer) <= len(labels) else None
    names = [" ".join(label.lower().split()) for label in labels]
    if answer in names:
        return names.index(answer)
    starts = [place for place, name in enumerate(names) if answer and name.startswith(answer)]
    return starts[0] if len(starts) == 1 else None


def _interval(results: list[float]) -> str:
    """` (95% interval -3.1 to +9.1)`; empty below two hands."""
    if len(results) < 2:
        return ""
    margin = WITHIN_95 * statistics.stdev(results) * math.sqrt(len(results))
    low, high = sum(results) - margin, sum(results) + margin
    return f" (95% interval {low:+.1f} to {high:+.1f})"
