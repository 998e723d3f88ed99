"""`algorithms.play --game NAME --terminal`: whole hands through a pipe, beside the tree."""

import random
import re
import subprocess
import sys

import pytest

from algorithms import play
from algorithms.exact.values import action_values
from algorithms.games import load_game
from algorithms.playing.terminal import Leave, chips
from algorithms.playing.tree_terminal import HELP, Judge, TreeSitting
from algorithms.policies import load_policy
from tests.games import DICE, KUHN3, LEDUC

ANSWERS = {
    "2": 1,
    "call": 1,
    " CALL ": 1,
    "c": 1,
    "r": 2,
    "0": None,
    "4": None,
    "²": None,
    "": None,
    "x": None,
}


def judge(name: str, source: str) -> Judge:
    game = load_game(name)
    table = load_policy(source, game).table
    return Judge(source, table, action_values(game.tree, table))


class Person:
    """Answers so many hands at random, and keeps every line."""

    def __init__(self, hands: int) -> None:
        self.rng, self.hands, self.lines, self.asked = random.Random(0), hands, [""], 0

    def ask(self, question: str) -> str:
        if sum(line.startswith("Hand ") for line in self.lines) > self.hands:
            raise EOFError
        moves = question.removesuffix("? ").split(", ")
        place = self.rng.randrange(len(moves))
        self.lines.append(f"> {moves[place].split(' ', 1)[1]}")
        return str(place + 1)

    def tell(self, line: str) -> None:
        self.lines += line.split("\n")


@pytest.mark.parametrize("name", [LEDUC, DICE, KUHN3])
def test_whole_hands_with_costs_and_totals(name: str) -> None:
    game, person = load_game(name), Person(30)
    opponent, reference = judge(name, "random:1"), judge(name, "cfr+:50")
    sitting = TreeSitting(game, opponent, reference, random.Random(5), person.ask, person.tell)
    sitting.play()
    assert len(sitting.results) == 30
    labels = {game.infoset_label(infoset): infoset for infoset in range(len(game.tree.keys))}
    costs = [0.0, 0.0]
    for where, move, said in zip(
        *(
            [line.removeprefix(mark) for line in person.lines if line.startswith(mark)]
            for mark in ("You are player_", "> ", "Your ")
        ),
        strict=False,
    ):
        infoset = labels[f"player_{where.removesuffix('.')}"]
        actions = game.tree.legal[infoset].nonzero()[0].tolist()
        words = [game.action_label(infoset, action) for action in actions]
        slot = int(game.tree.first_slot[infoset]) + words.index(move)
        found = [one.cost(slot) for one in (opponent, reference)]
        costs = [total + cost for total, cost in zip(costs, found, strict=True)]
        names = ("random:1", "cfr+:50")
        wanted = ", ".join(f"{chips(c)} against {n}" for c, n in zip(found, names, strict=True))
        assert said == f"{move} cost {wanted}."
    assert list(sitting.costs.values()) == pytest.approx(costs)
    assert person.lines[-1].startswith("After 30 hands: ")
    assert "95% interval" in person.lines[-1]


def test_seats_take_turns_and_the_hand_is_told_at_the_end() -> None:
    person = Person(6)
    opponent = judge(KUHN3, "uniform")
    TreeSitting(load_game(KUHN3), opponent, None, random.Random(1), person.ask, person.tell).play()
    hands = [line for line in person.lines if line.startswith("Hand ")]
    assert [line[-2] for line in hands[:6]] == [*"012012"]
    told = [line for line in person.lines if "The hand: " in line]
    assert len(told) == 6
    assert all(re.search(r"The hand: Deal:\d, Deal:\d, Deal:\d, player_0: \w+, ", t) for t in told)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_move_by_number_by_name_or_by_its_first_letters(answer: str) -> None:
    game = load_game(LEDUC)
    lines: list[str] = []
    answers = iter([answer, "q"])
    opponent = judge(LEDUC, "uniform")
    sitting = TreeSitting(
        game, opponent, None, random.Random(0), lambda _: next(answers), lines.append
    )
    node = next(
        n for n in game.tree.members.tolist() if game.tree.legal[game.tree.infoset[n]].all()
    )
    if (place := ANSWERS[answer]) is not None:
        assert sitting.decide(node) == place
    else:
        with pytest.raises(Leave):
            sitting.decide(node)
        assert lines[-1] == HELP


def test_the_command_in_a_pipe_and_the_same_seed_is_the_same_game() -> None:
    command = [sys.executable, "-m", "algorithms.play", "uniform", "--game", KUHN3, "--terminal"]
    outputs = [
        subprocess.run(
            [*command, "--seed", "3"],
            input="1\n2\n1\n1\n",
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    ]
    assert outputs[0].returncode == 0
    assert outputs[0].stderr == ""
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stdout.startswith(f"{KUHN3} against uniform. {HELP}\n")
    assert re.search(r"After \d hands?: ", outputs[0].stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--game", "leduc"], "unknown game 'leduc'"),
        (["heuristic", "--game", LEDUC], "heuristic is a policy of kuhn, not of leduc_poker"),
        (["--game", LEDUC, "--seed", "3"], "--seed requires --terminal"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play.main([*arguments, "--no-open"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
