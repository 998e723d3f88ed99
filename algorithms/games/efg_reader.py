r"""Reads an extensive game from Gambit's `.efg` format.

A file is a prologue, `EFG 2 R "title" { "player" ... } "comment"`, and the nodes of the tree, each
before its children, from the first child to the last:

    c "node" EVENT "label" { "action" 1/3 "action" 2/3 } OUTCOME "label" { 1 -1 }
    p "node" PLAYER INFOSET "label" { "action" "action" } OUTCOME "label" { 1 -1 }
    t "node" OUTCOME "label" { 1 -1 }

Events, information sets and outcomes are numbers. They are described once; later nodes may give the
number only, or repeat the description. Outcome 0 pays nothing. Any node may have an outcome, and a
player receives the sum of those on the path. Texts may have several lines, and `\"` is a quote.

The format is described at https://gambitproject.readthedocs.io/en/latest/formats.efg.html.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from algorithms.games.openspiel import MAX_BYTES, MAX_NODES
from algorithms.support.arrays import Int32Array
from algorithms.support.files import read_bytes
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from kuhn_bridge.errors import GameError, short_repr

MAX_FILE_BYTES = 512 * 2**20
MAX_PLAYERS = 100
MAX_NUMBER_CHARS = 60  # of a payoff, a probability or an ID
MAX_EXPONENT = 300
PROBABILITY_TOLERANCE = 1e-9  # that chance probabilities may miss 1 by: some are rounded decimals
_CHECK_EVERY = 1_000  # nodes

# A text ends at the first quote without a backslash before it, as in Gambit.
_TOKEN = re.compile(
    r"""\s*(?:
        "(?P<text>.*?)(?<!\\)"
      | (?P<number>[-+]?[.\d][-+.\deE/]*)
      | (?P<open>\{)
      | (?P<close>\})
      | (?P<comma>,)
      | (?P<word>[^\s"{},]+)
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORDS = {
    "text": "a text in quotes",
    "number": "a number",
    "open": "'{'",
    "close": "'}'",
    "comma": "','",
    "word": "a word",
    "end": "the end of the file",
}


class Event(NamedTuple):
    """A chance event: its actions, and their probabilities, which sum to 1."""

    label: str
    actions: tuple[str, ...]
    probabilities: tuple[float, ...]


class Infoset(NamedTuple):
    """An information set of a player as the file describes it."""

    label: str
    actions: tuple[str, ...]


class Outcome(NamedTuple):
    """What each player receives at a node."""

    label: str
    payoffs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ExtensiveGame:
    """What a file describes: the tree, and its texts.

    Attributes:
        title: title of the game.
        players: names of the players.
        tree: game tree; column `i` of its tables is the i-th action of an information set.
        actions: labels of the actions of each information set.
        chance_actions: labels of the outcomes of each chance event.
        events: for each node the index of its chance event, -1 where chance does not act: `(N,)`.
    """

    title: str
    players: tuple[str, ...]
    tree: Tree
    actions: tuple[tuple[str, ...], ...]
    chance_actions: tuple[tuple[str, ...], ...]
    events: Int32Array


def read_efg(path: str | Path, *, name: str = "", max_nodes: int = MAX_NODES) -> ExtensiveGame:
    """The game of a `.efg` file; a `GameError` names the line of a mistake.

    Args:
        path: file to read, of up to 512 MiB.
        name: name of the tree; the path by default.
        max_nodes: largest number of nodes.
    """
    content = read_bytes(path, max_bytes=MAX_FILE_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise GameError(f"{path}, line {line}: the file is not UTF-8 text") from None
    tokens = _Tokens(str(path), text)
    tokens.advance()
    title, players = _read_prologue(tokens)
    return _BodyReader(tokens, title, players, name or str(path), max_nodes).read()


class _Tokens:
    """The tokens of a file, one at a time: the current one's kind, value and position."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.kind = ""
        self.value = ""
        self.start = 0
        self._end = 0
        self._numbers: dict[str, float] = {}

    def advance(self) -> None:
        """Go to the next token."""
        match = _TOKEN.match(self.text, self._end)
        if match is None:  # only a quote without a second one matches nothing
            self.start = self.text.find('"', self._end)
            self.fail("a text has no closing quote")
        self.kind = match.lastgroup or ""
        self.start = match.start(self.kind)
        self.value = match[self.kind]
        self._end = match.end()

    def expect(self, kind: str, what: str) -> str:
        """The value of the current token, which must be of that kind; goes to the next one."""
        if self.kind != kind:
            self.fail(f"expected {what}, found {self.found()}")
        value = self.value
        self.advance()
        return value

    def found(self) -> str:
        """The current token in an error message."""
        return short_repr(self.value) if self.value else _WORDS[self.kind]

    def text_of(self, what: str) -> str:
        """A text, which `what` describes."""
        return self.expect("text", what).replace('\\"', '"')

    def integer(self, what: str) -> int:
        """A number of a player, an information set, an event or an outcome."""
        value = self.value
        if self.kind != "number" or not value.isdecimal() or len(value) > MAX_NUMBER_CHARS:
            self.fail(f"expected {what}, found {self.found()}")
        self.advance()
        return int(value)

    def number(self, what: str) -> float:
        """A payoff or a probability: an integer, a decimal or a fraction."""
        value = self.value
        if self.kind != "number":
            self.fail(f"expected {what}, found {self.found()}")
        if value not in self._numbers:
            self._numbers[value] = self._parsed(value, what)
        self.advance()
        return self._numbers[value]

    def _parsed(self, value: str, what: str) -> float:
        exponent = value.lower().partition("e")[2].lstrip("+-")
        try:
            # Many digits and large exponents take quadratic time.
            if len(value) > MAX_NUMBER_CHARS or int(exponent[:4] or "0") > MAX_EXPONENT:
                raise ValueError
            return float(Fraction(value))
        except (ValueError, OverflowError, ZeroDivisionError):
            self.fail(f"expected {what}, found {self.found()}, which is not a number")

    def fail(self, message: str, *, start: int | None = None) -> NoReturn:
        """Raise an error with the line of the current token, or of position `start`."""
        position = self.start if start is None else start
        line = self.text.count("\n", 0, position) + 1
        raise GameError(f"{self.path}, line {line}: {message}")


def _read_prologue(tokens: _Tokens) -> tuple[str, tuple[str, ...]]:
    """Title and players; the comment is skipped."""
    if tokens.kind != "word" or tokens.value != "EFG":
        tokens.fail("not an .efg file: it does not start with 'EFG'")
    tokens.advance()
    if tokens.integer("the version, 2") != 2:
        tokens.fail("only version 2 of the format is supported")
    if tokens.value not in ("R", "D"):  # rational or decimal: once two kinds of files
        tokens.fail(f"expected 'R' after 'EFG 2', found {tokens.found()}")
    tokens.advance()
    title = tokens.text_of("the title in quotes")
    tokens.expect("open", "'{' before the players")
    players = []
    while tokens.kind == "text":
        players.append(tokens.text_of("a player"))
    tokens.expect("close", "a player's name in quotes, or '}' after the last one")
    if not players:
        tokens.fail("the game has no players")
    if len(players) > MAX_PLAYERS:
        tokens.fail(f"{len(players):,} players; at most {MAX_PLAYERS} are supported")
    if tokens.kind == "text":
        tokens.advance()
    return title, tuple(players)


class _OpenNode(NamedTuple):
    """A node on the path from the root whose children are being read."""

    player: int  # or CHANCE
    infoset: int  # the number in the tree, -1 where chance acts
    probabilities: tuple[float, ...]  # of chance's actions, () where a player acts
    num_children: int
    payoffs: tuple[float, ...]  # of the outcomes on the path so far
    arrival: int  # the player's sequence when it arrives here


class _Step(NamedTuple):
    """What leads to the next node."""

    depth: int
    action: int  # -1 at the root
    probability: float  # of the action, if it is chance's
    payoffs: tuple[float, ...]  # of the outcomes on the path before the node


class _BodyReader:
    """The nodes of a file on their way to a tree."""

    def __init__(
        self, tokens: _Tokens, title: str, players: tuple[str, ...], name: str, max_nodes: int
    ) -> None:
        self.tokens = tokens
        self.title = title
        self.players = players
        self.max_nodes = max_nodes
        self.events: dict[int, Event] = {}
        self.infosets: dict[tuple[int, int], Infoset] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.most_actions = 0  # of an information set
        # The number of actions is known when the last node has been read.
        self.builder = TreeBuilder(name, len(players), 0)
        self.depths: list[int] = []  # of each node, in the order of the file
        self.event_of_node: list[int] = []  # -1 where chance does not act
        self.event_index: dict[int, int] = {}  # events by number, in the order of the file
        self.path: list[_OpenNode] = []
        self.next_action: list[int] = []  # of each node of the path: the child that is read next
        self.sequence = [-1] * len(players)  # each player's last action on the path, as one number
        self.arrivals: list[int] = []  # its player's sequence at each information set

    def read(self) -> ExtensiveGame:
        """Read all nodes."""
        self._read_node()
        while self.path:
            self._read_node()
            while self.path and self.next_action[-1] == self.path[-1].num_children:
                self._close_node()
        if self.tokens.kind != "end":
            self.tokens.fail(f"the tree is complete, but {self.tokens.found()} follows")
        self.builder.num_actions = self.most_actions
        self._require_size()
        tree = self.builder.build()
        order = np.argsort(np.array(self.depths), kind="stable")  # the tree's order: breadth first
        numbers = [(player, int(key)) for player, key in self.builder.infosets]
        return ExtensiveGame(
            title=self.title,
            players=self.players,
            tree=replace(tree, keys=self._keys(numbers)),
            actions=tuple(self.infosets[number].actions for number in numbers),
            chance_actions=tuple(self.events[number].actions for number in self.event_index),
            events=np.array(self.event_of_node, np.int32)[order],
        )

    def _read_node(self) -> None:
        """Add the next node to the tree, and to the path if it has children."""
        start = self.tokens.start
        if len(self.depths) > self.max_nodes or len(self.depths) % _CHECK_EVERY == 0:
            self._require_size()
        step = self._next_step()
        kind = self.tokens.expect("word", "a node: 'c', 'p' or 't'")
        if kind not in ("c", "p", "t"):
            self.tokens.fail(f"expected a node: 'c', 'p' or 't', found {kind!r}", start=start)
        self.tokens.expect("text", "the node's name in quotes")
        self.depths.append(step.depth)
        self.event_of_node.append(-1)
        if kind == "t":
            payoffs = self._paid(step.payoffs)
            self.builder.add(
                Visit(step.depth, TERMINAL, step.action, step.probability, returns=payoffs)
            )
        elif kind == "c":
            self._read_chance_node(step)
        else:
            self._read_decision_node(step, start)

    def _next_step(self) -> _Step:
        """The step to the next node: the next action of the last node of the path."""
        if not self.path:
            nothing = (0.0,) * len(self.players)
            return _Step(depth=0, action=-1, probability=1.0, payoffs=nothing)
        parent = self.path[-1]
        action = self.next_action[-1]
        self.next_action[-1] += 1
        probability = 1.0
        if parent.player == CHANCE:
            probability = parent.probabilities[action]
        else:
            # Different for all actions of all information sets.
            self.sequence[parent.player] = parent.infoset + (action << 32)
        return _Step(len(self.path), action, probability, parent.payoffs)

    def _read_chance_node(self, step: _Step) -> None:
        number = self.tokens.integer("the number of a chance event")
        probabilities = self._event(number).probabilities
        payoffs = self._paid(step.payoffs)
        self.event_of_node[-1] = self.event_index.setdefault(number, len(self.event_index))
        self.builder.add(Visit(step.depth, CHANCE, step.action, step.probability))
        self._open_node(
            _OpenNode(
                player=CHANCE,
                infoset=-1,
                probabilities=probabilities,
                num_children=len(probabilities),
                payoffs=payoffs,
                arrival=-1,
            )
        )

    def _read_decision_node(self, step: _Step, start: int) -> None:
        player = self._player()
        number = self.tokens.integer("the number of an information set")
        infoset = self._infoset(player, number)
        payoffs = self._paid(step.payoffs)
        key = str(number)
        legal = range(len(infoset.actions))
        self.builder.add(Visit(step.depth, player, step.action, step.probability, key, legal))
        index = self.builder.infosets[player, key]
        if index == len(self.arrivals):  # a new information set
            self.arrivals.append(self.sequence[player])
        if self.sequence[player] != self.arrivals[index]:
            self._refuse_recall(start, player, number)
        self._open_node(
            _OpenNode(
                player=player,
                infoset=index,
                probabilities=(),
                num_children=len(legal),
                payoffs=payoffs,
                arrival=self.sequence[player],
            )
        )

    def _open_node(self, node: _OpenNode) -> None:
        """Append a node to the path; its children follow in the file."""
        self.path.append(node)
        self.next_action.append(0)

    def _close_node(self) -> None:
        """Leave the last node of the path, whose children have all been read."""
        node = self.path.pop()
        self.next_action.pop()
        if node.player != CHANCE:
            self.sequence[node.player] = node.arrival

    def _player(self) -> int:
        """The player who acts, from 0."""
        tokens = self.tokens
        start = tokens.start
        player = tokens.integer("the number of a player")
        if not 1 <= player <= len(self.players):
            tokens.fail(f"player {player}; there are players 1 to {len(self.players)}", start=start)
        return player - 1

    def _event(self, number: int) -> Event:
        """The chance event of a node, which describes it or has its number only."""
        tokens = self.tokens
        start = tokens.start
        if tokens.kind != "text":
            if number not in self.events:
                tokens.fail(f"chance event {number} has not been described")
            return self.events[number]
        label = tokens.text_of("the event's label")
        tokens.expect("open", "'{' before the actions")
        actions = []
        probabilities = []
        while tokens.kind == "text":
            actions.append(tokens.text_of("an action"))
            probabilities.append(tokens.number("a probability"))
        tokens.expect("close", "an action in quotes, or '}' after the last one")
        total = math.fsum(probabilities)
        if not actions or min(probabilities) < 0 or abs(total - 1) > PROBABILITY_TOLERANCE:
            wrong = f"probabilities that sum to {total:.12g}"
            if actions and min(probabilities) < 0:
                wrong = f"the negative probability {min(probabilities):g}"
            tokens.fail(f"chance event {number} has {wrong}; they must sum to 1", start=start)
        shares = tuple(probability / total for probability in probabilities)
        event = Event(label, tuple(actions), shares)
        if self.events.setdefault(number, event) != event:
            tokens.fail(f"chance event {number} was described differently before", start=start)
        return event

    def _infoset(self, player: int, number: int) -> Infoset:
        """The information set of a node, which describes it or has its number only."""
        tokens = self.tokens
        start = tokens.start
        name = f"information set {number} of player {player + 1}"
        if tokens.kind != "text":
            if (player, number) not in self.infosets:
                tokens.fail(f"{name} has not been described")
            return self.infosets[player, number]
        label = tokens.text_of("the information set's label")
        tokens.expect("open", "'{' before the actions")
        actions = []
        while tokens.kind == "text":
            actions.append(tokens.text_of("an action"))
        tokens.expect("close", "an action in quotes, or '}' after the last one")
        if not actions:
            tokens.fail(f"{name} has no actions", start=start)
        infoset = Infoset(label, tuple(actions))
        self.most_actions = max(self.most_actions, len(actions))
        if self.infosets.setdefault((player, number), infoset) != infoset:
            tokens.fail(f"{name} was described differently before", start=start)
        return infoset

    def _paid(self, before: tuple[float, ...]) -> tuple[float, ...]:
        """The payoffs so far, and those of a node's outcome."""
        tokens = self.tokens
        start = tokens.start
        number = tokens.integer("the number of an outcome")
        if tokens.kind == "text":
            if number == 0:
                tokens.fail("outcome 0 pays nothing, so it cannot have a label or payoffs")
            label = tokens.text_of("the outcome's label")
            tokens.expect("open", "'{' before the payoffs")
            payoffs = []
            while tokens.kind == "number":
                payoffs.append(tokens.number("a payoff"))
                if tokens.kind == "comma":
                    tokens.advance()
            tokens.expect("close", "a payoff, or '}' after the last one")
            if len(payoffs) != len(before):
                wrong = f"outcome {number} has {len(payoffs)} payoffs for {len(before)} players"
                tokens.fail(wrong, start=start)
            outcome = Outcome(label, tuple(payoffs))
            if self.outcomes.setdefault(number, outcome) != outcome:
                tokens.fail(f"outcome {number} was described differently before", start=start)
        elif number == 0:
            return before
        elif number not in self.outcomes:
            tokens.fail(f"outcome {number} has not been described", start=start)
        payoffs_here = self.outcomes[number].payoffs
        total = tuple(map(sum, zip(before, payoffs_here, strict=True)))
        if not all(map(math.isfinite, total)):
            tokens.fail("the payoffs on the path to here are too large", start=start)
        return total

    def _refuse_recall(self, start: int, player: int, number: int) -> NoReturn:
        """Raise an error for an information set where the player forgets."""
        label = self.infosets[player, number].label
        who = f"player {player + 1} {self.players[player]!r}"
        index = self.builder.infosets[player, str(number)]
        if any(node.infoset == index for node in self.path):
            wrong = f"information set {number} {label!r} of {who} occurs twice on one path"
            wrong += " (absent-mindedness)"
        else:
            wrong = f"at information set {number} {label!r}, {who} has forgotten earlier actions"
            wrong += " (imperfect recall)"
        self.tokens.fail(f"{wrong}; a game must have perfect recall", start=start)

    def _require_size(self) -> None:
        """Raise an error if the tree is too large."""
        nodes = len(self.builder)
        infosets = len(self.builder.infosets)
        bytes_of_nodes = nodes * (120 + 24 * len(self.players))
        bytes_of_infosets = infosets * (400 + 33 * self.most_actions)
        if nodes > self.max_nodes or bytes_of_nodes + bytes_of_infosets > MAX_BYTES:
            raise GameError(
                f"{self.tokens.path} is too large for a tree: more than {self.max_nodes:,} nodes, "
                f"or more than {MAX_BYTES / 2**30:.2g} GiB"
            )

    def _keys(self, numbers: list[tuple[int, int]]) -> tuple[str, ...]:
        """A name for each information set that no other one of the player has.

        It is the label, followed by the number where the label is empty or not unique.
        """
        labels = [self.infosets[player, number].label.strip() for player, number in numbers]
        owners = [player for player, _ in numbers]
        counts = Counter(zip(owners, labels, strict=True))
        keys = []
        for (player, number), label in zip(numbers, labels, strict=True):
            unique = label and counts[player, label] == 1
            keys.append(label if unique else f"{label} #{number}".strip())
        if len(set(zip(owners, keys, strict=True))) < len(keys):  # some label looks like a number
            return tuple(f"#{number}" for _, number in numbers)
        return tuple(keys)
