"""`algorithms.play --terminal`: whole games through a pipe and a terminal, beside the tree."""

import io
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from algorithms import play
from algorithms.games import load_game
from algorithms.playing.terminal import HELP, TerminalGame, chips
from algorithms.policies import load_policy
from tests.games import DICE, KUHN3, LEDUC

ANSWERS = {
    **{"2": 1, "call": 1, " CALL ": 1, "c": 1, "r": 2},
    **dict.fromkeys(("0", "4", "²", "9" * 5000, "", "x", "h")),
}


class Person:
    """Answers some hands at random, and stores every line."""

    def __init__(self, hands: int) -> None:
        self.rng = random.Random(0)
        self.hands = hands
        self.lines = [""]

    def ask(self, question: str) -> str:
        if sum(line.startswith("Hand ") for line in self.lines) > self.hands:
            raise EOFError
        moves = question.removesuffix("? ").split(", ")
        place = self.rng.randrange(len(moves))
        self.lines.append(f"> {moves[place].split(' ', 1)[1]}")
        return str(place + 1)

    def tell(self, line: str) -> None:
        self.lines += line.split("\n")

    def marked(self, mark: str) -> list[str]:
        return [line.removeprefix(mark) for line in self.lines if line.startswith(mark)]


def seated(name: str, ask, tell, *sources: str, seed: int = 5) -> TerminalGame:
    policies = {source: load_policy(source, name) for source in sources}
    return TerminalGame(load_game(name), policies, random.Random(seed), ask, tell)


@pytest.mark.parametrize("name", ["kuhn", LEDUC, DICE, KUHN3])
def test_whole_hands_with_costs_and_totals(name):
    game = load_game(name)
    person = Person(30)
    sources = ("random:1", "cfr+:50")
    terminal_game = seated(name, person.ask, person.tell, *sources)
    terminal_game.play()
    told = re.findall(r"The hand: .+, player_0: ", "\n".join(person.lines))
    assert len(terminal_game.results) == len(told) == 30
    seats = [int(line.removesuffix(".")[-1]) for line in person.marked("Hand ")]
    assert seats == [hand % game.num_players for hand in range(31)]
    labels = {game.infoset_label(infoset): infoset for infoset in range(len(game.tree.keys))}
    totals = dict.fromkeys(sources, 0.0)
    marks = (person.marked(mark) for mark in ("You are ", "> ", "Your "))
    for where, move, said in zip(*marks, strict=False):  # the last question is not answered
        infoset = labels[where.removesuffix(".")]
        actions = game.tree.legal[infoset].nonzero()[0].tolist()
        words = [game.action_label(infoset, action) for action in actions]
        slot = int(game.tree.first_choice[infoset]) + words.index(move)
        found = {source: float(terminal_game.costs[source][slot]) for source in sources}
        totals = {source: totals[source] + cost for source, cost in found.items()}
        wanted = ", ".join(f"{chips(cost)} against {source}" for source, cost in found.items())
        assert said == f"{move} cost {wanted}."
    assert terminal_game.total_costs == pytest.approx(totals)
    last = person.lines[-1]
    assert last.startswith(
        f"After 30 hands: {chips(sum(terminal_game.results), signed=True)} (95% inter"
    )
    worth = load_policy("cfr+:50", name).measure().values
    fair = sum(worth) * 30 / len(worth)
    assert f"With cfr+:50 in every seat, yours are worth {fair:+z.2f}." in last


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_move_by_number_by_name_or_by_its_first_letters(answer):
    lines = []
    answers = iter([answer, "q"])
    terminal_game = seated(LEDUC, lambda _: next(answers), lines.append, "uniform")
    tree = terminal_game.game.tree
    node = next(node for node in tree.members.tolist() if tree.legal[tree.infoset[node]].all())
    if (place := ANSWERS[answer]) is not None:
        assert terminal_game.chosen_child(node) == place
    else:
        with pytest.raises(EOFError):
            terminal_game.chosen_child(node)
        assert lines[-1] == HELP


@pytest.mark.parametrize(("hands", "shown"), [(29, False), (30, True)])
def test_an_interval_needs_enough_hands(hands, shown):
    """Two equal results would have a standard error of 0."""
    person = Person(hands)
    seated("kuhn", person.ask, person.tell, "uniform").play()
    assert ("95% interval" in person.lines[-1]) == shown


def test_a_policy_that_never_arrives_gives_no_cost():
    person = Person(6)
    seated("kuhn", person.ask, person.tell, "always-bet", "always-check").play()
    unknown = "an unknown amount against always-check, which never arrives here."
    assert any(line.endswith(unknown) for line in person.marked("Your "))


def test_through_a_pipe_with_wrong_answers_help_and_an_end():
    command = [sys.executable, "-m", "algorithms.play", "--terminal", "uniform", "--seed", "3"]
    answers = b"x\n\xff\nh\nc\nc\nc\n"
    done, again = (
        subprocess.run(command, input=answers, capture_output=True, timeout=60, check=False)
        for _ in range(2)
    )
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith("kuhn against Coin flips. It decides every move by a coin toss")
    assert text.count(f"called.\n{HELP}") == 2  # the rules, at the start and for `h`
    assert text.count(HELP) == 4  # also for what is not understood
    assert "1 check, 2 bet? c\n" in text  # answers from a pipe are printed
    assert "After " in text.splitlines()[-1]
    assert again.stdout == done.stdout  # the same seed


# Child processes of a background job ignore Ctrl-C.
INTERRUPTIBLE = """
import signal, sys
from algorithms import play
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(play.main(["--terminal", "always-check"]))
"""


def test_in_a_terminal_until_ctrl_c():
    """On a pseudo-terminal, which echoes what is typed, so the game does not."""
    leader, follower = os.openpty()
    ends = {"stdin": follower, "stdout": follower, "stderr": follower}
    with subprocess.Popen([sys.executable, "-c", INTERRUPTIBLE], **ends) as process:
        os.close(follower)
        try:
            read_until(leader, b"1 check, 2 bet? ")
            os.write(leader, b"b\n")
            shown = read_until(leader, b"1 check, 2 bet? ")  # the bot folds, then checks
            process.send_signal(signal.SIGINT)
            os.write(leader, b"\n")  # wakes a read that began just after the signal came
            ending = read_until(leader, b"Your moves cost ")
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
    os.close(leader)
    assert shown.startswith(b"b\r\nYour bet cost")
    assert b"player_1: fold." in shown
    assert b"After 1 hand: +1 chip." in ending
    assert b"Traceback" not in ending


def read_until(descriptor: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(descriptor, 4096)
    return seen


def test_the_documentation_shows_the_real_output(monkeypatch, capsys):
    page = (Path(play.__file__).parents[1] / "docs" / "play.md").read_text(encoding="utf-8")
    shown = page.partition("--terminal --seed 1\n")[2].partition("```")[0]
    monkeypatch.setattr("sys.stdin", io.StringIO("check\ncall\n"))
    assert play.main(["--terminal", "--seed", "1"]) == 0
    hand = capsys.readouterr().out.partition("Hand 1")[2].partition("\nHand 2")[0]
    assert f"Hand 1{hand}" == shown


@pytest.mark.parametrize("answers", ["", "q\n", "QUIT\n", " exit "])
def test_leaving_at_once(answers, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert play.main(["--terminal"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No hand was finished."
