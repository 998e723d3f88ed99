"""Writes a game tree in Gambit's `.efg` format, which `efg_reader` describes.

Gambit refuses chance probabilities that do not sum to exactly 1, so that they are written as
fractions. A tree has them as floating-point numbers: 0.3333333333333333 stands for 1/3. A fraction
is recovered if its denominator is at most a million. Two such fractions differ by at least 1e-12,
thousands of times the rounding error, so there is never a choice between two.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from algorithms.support.files import replacing
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.errors import GameError, short_repr

MAX_DENOMINATOR = 1_000_000
ROUNDING = 2e-15  # relative error of a probability: a few roundings of a division or a product


class Labels(Protocol):
    """The texts of a game: a `Game` has them."""

    def action_label(self, infoset: int, action: int) -> str:
        """An action of an information set, e.g. `call`."""

    def chance_labels(self, node: int) -> list[str]:
        """The outcomes of a chance node, e.g. `player_0 gets J`."""


def write_efg(
    path: str | Path, tree: Tree, labels: Labels, players: Sequence[str], *, title: str = ""
) -> None:
    """Write the tree as an `.efg` file: the whole file or nothing; the title is its name.

    An information set's label is its key, with single spaces instead of other white space. Rows of
    the tree that is read back are in the order in which its nodes first occur.
    """
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        names = " ".join(map(_quoted, players))
        file.write(f"EFG 2 R {_quoted(title or tree.name)} {{ {names} }}\n")
        file.write('"Written by kuhn-bridge"\n\n')
        for line in _node_lines(tree, labels):
            file.write(line)


def recovered_fractions(probabilities: Sequence[float]) -> list[Fraction]:
    """The fractions that probabilities stand for, which sum to 1; a `GameError` if there are none.

    For example, 0.3333333333333333 and 0.6666666666666666 are 1/3 and 2/3.
    """
    fractions = []
    for probability in probabilities:
        fraction = Fraction(probability).limit_denominator(MAX_DENOMINATOR)
        if abs(fraction - Fraction(probability)) > ROUNDING * probability:
            raise GameError(
                f"the chance probability {probability!r} is no fraction with a denominator up to "
                f"{MAX_DENOMINATOR:,}, so that an .efg file cannot give it exactly"
            )
        fractions.append(fraction)
    total = sum(fractions)
    if total != 1:
        shares = short_repr(" ".join(map(str, fractions)))
        raise GameError(f"chance probabilities sum to {total}, not 1: {shares}")
    return fractions


def _node_lines(tree: Tree, labels: Labels) -> Iterator[str]:
    """One line per node, each node before its children."""
    infosets = _infoset_texts(tree, labels)
    chance_texts: dict[tuple[float, ...], list[Fraction]] = {}
    outcomes: dict[tuple[float, ...], str] = {}  # payoffs and the text of their outcome
    events = 0
    stack = [0]
    while stack:
        node = stack.pop()
        first, stop = (int(child) for child in tree.first_child[node : node + 2])
        player = int(tree.player[node])
        if player == TERMINAL:
            payoffs = tuple(tree.returns[:, node].tolist())
            if payoffs not in outcomes:
                outcomes[payoffs] = _outcome_text(len(outcomes) + 1, payoffs)
            yield f't "" {outcomes[payoffs]}\n'
        elif player == CHANCE:
            events += 1
            probabilities = tuple(tree.chance_probability[first:stop].tolist())
            if probabilities not in chance_texts:
                chance_texts[probabilities] = _fractions_at(tree, node, probabilities)
            texts = _distinct(labels.chance_labels(node))
            pairs = zip(texts, chance_texts[probabilities], strict=True)
            actions = " ".join(f"{_quoted(text)} {share}" for text, share in pairs)
            yield f'c "" {events} "" {{ {actions} }} 0\n'
        else:
            yield f'p "" {infosets[int(tree.infoset[node])]} 0\n'
        stack.extend(range(stop - 1, first - 1, -1))


def _fractions_at(tree: Tree, node: int, probabilities: tuple[float, ...]) -> list[Fraction]:
    """`recovered_fractions` of a chance node; an error names the game and the node."""
    try:
        return recovered_fractions(probabilities)
    except GameError as error:
        history = short_repr(tree.history(node))
        raise GameError(f"{tree.name}, after the actions {history}: {error}") from None


def _infoset_texts(tree: Tree, labels: Labels) -> list[str]:
    """What follows the name of a node in each information set, up to its outcome."""
    numbers = [0] * tree.num_players  # information sets so far
    keys: set[tuple[int, str]] = set()
    texts = []
    for infoset, key in enumerate(tree.keys):
        owner = int(tree.owner[infoset])
        numbers[owner] += 1
        label = _cleaned(key)
        if (owner, label) in keys or not label:
            label = f"{label} #{numbers[owner]}".strip()
        keys.add((owner, label))
        legal = tree.legal[infoset].nonzero()[0].tolist()
        actions = _distinct([labels.action_label(infoset, action) for action in legal])
        listed = " ".join(map(_quoted, actions))
        texts.append(f"{owner + 1} {numbers[owner]} {_quoted(label)} {{ {listed} }}")
    return texts


def _outcome_text(number: int, payoffs: tuple[float, ...]) -> str:
    """An outcome with its label and payoffs, e.g. `3 "1 -1" { 1 -1 }`."""
    numbers = " ".join(map(_number_text, payoffs))
    return f'{number} "{numbers}" {{ {numbers} }}'


def _number_text(value: float) -> str:
    """A payoff that reads back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _distinct(texts: Sequence[str]) -> list[str]:
    """The texts, with a number behind those that are empty or occur twice."""
    seen: set[str] = set()
    result = []
    for number, text in enumerate(texts, start=1):
        label = _cleaned(text)
        if label in seen or not label:
            label = f"{label} #{number}".strip()
        seen.add(label)
        result.append(label)
    return result


def _cleaned(text: str) -> str:
    """A text as Gambit takes a label: on one line, and with single spaces.

    A backslash becomes a slash, because Gambit reads it in another way before a quote.
    """
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.replace("\\", "/").split())


def _quoted(text: str) -> str:
    """A text as it stands in a file."""
    escaped = _cleaned(text).replace('"', '\\"')
    return f'"{escaped}"'
