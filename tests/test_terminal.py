"""`algorithms.play --terminal`: whole games through a pipe and a terminal, against the core."""

import io
import os
import random
import re
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from algorithms import play
from algorithms.exact.kuhn import exact_nash, move_costs
from algorithms.playing import terminal
from algorithms.playing.opponents import opponent
from algorithms.support.server import Server
from kuhn_bridge import Card, State
from kuhn_bridge.bridge import information_state
from kuhn_bridge.state import nodes

CARDS = {"Jack": Card.J, "Queen": Card.Q, "King": Card.K}
COSTS = move_costs(exact_nash(Fraction(1, 6)))


class Person:
    """Plays a number of hands at random, and stores every line."""

    def __init__(self, hands: int) -> None:
        self.rng, self.hands, self.lines = random.Random(0), hands, [""]

    def ask(self, question: str) -> str:
        if sum(line.startswith("Hand ") for line in self.lines) > self.hands:
            raise EOFError
        answer = self.rng.choice(question.removesuffix("? ").split(" or "))
        self.lines.append(f"> {answer}")
        return str(self.rng.choice([answer, answer[0], f" {answer.upper()} "]))

    def tell(self, line: str) -> None:
        self.lines += line.split("\n")

    def finished(self) -> list[list[str]]:
        """The lines of each finished hand."""
        parts = re.split(r"\n(?=Hand \d)", "\n".join(self.lines))[1:]
        return [part.strip().split("\n") for part in parts[: self.hands]]


def in_chips(amount: Fraction | int) -> str:
    text = f"{float(amount):.2f}".removesuffix(".00")
    return "nothing" if text == "0" else f"{text} chip{'' if text == '1' else 's'}"


def test_every_hand_is_a_hand_of_the_core() -> None:
    """Cards, turns, chips and costs are those of `State` and of the exact costs."""
    person = Person(60)
    policy = opponent("uniform").policy
    sitting = terminal.Sitting(policy, random.Random(1), person.ask, person.tell)
    sitting.play()
    total, given = 0, Fraction(0)
    for number, (head, *lines, last) in enumerate(person.finished(), start=1):
        seat = (number - 1) % 2
        order, own = re.fullmatch(
            rf"Hand {number}: you act (\w+) and hold the (\w+)\.", head
        ).groups()  # type: ignore[union-attr]
        assert order == ("first", "second")[seat]
        seen = re.search(r"Your (\w+) meets the (\w+): ", last)
        assert seen is None or seen[1] == own
        other = CARDS[seen[2]] if seen else next(c for c in Card if c != CARDS[own])
        state = State.new(*((CARDS[own], other) if seat == 0 else (other, CARDS[own])))
        costs = []
        for line in lines:
            mine = line.startswith("> ")
            assert state.actor == (seat if mine else 1 - seat)
            word = line[2:] if mine else re.fullmatch(r"The bot (\w+)s\.", line)[1]  # type: ignore[index]
            action = next(a for a in state.legal_actions if state.act(a).history[-1] == word)
            if mine:
                costs.append((word, COSTS[f"{int(CARDS[own])}{state.letters}"][action]))
            state = state.act(action)
        assert state.is_terminal
        assert (seen is None) == (state.history[-1] == "fold")
        chips = state.returns[seat]
        assert f"ou {'win' if chips > 0 else 'lose'} {in_chips(abs(chips))}." in last
        said = ", your ".join(f"{word} {in_chips(cost)}" for word, cost in costs)
        assert last.endswith(f" Your {said.replace(' ', ' cost ', 1)}.")
        total, given = total + chips, given + sum(cost for _, cost in costs)
    assert sum(chips for _, chips in sitting.results) == total
    assert sitting.given_away == pytest.approx(float(given))
    assert person.lines[-1].startswith(f"After 60 hands: {total:+d} chip")
    assert "your seats are worth +0.00" in person.lines[-1]
    assert person.lines[-1].endswith(f"gave away {in_chips(given)}.")


def test_through_a_pipe_with_wrong_answers_help_and_an_end() -> None:
    command = [sys.executable, "-m", "algorithms.play", "--terminal", "uniform", "--seed", "3"]
    answers = b"x\n\xff\nh\nc\nf\nc\n"
    done, again = (
        subprocess.run(command, input=answers, capture_output=True, timeout=60, check=False)
        for _ in range(2)
    )
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.count("Please answer c (check), b (bet)") == 2
    assert text.count("the Jack is lowest, the King highest") == 2  # at the start, and for h
    assert "Kuhn poker against: Coin flips." in text
    assert "check or bet? c\n" in text  # answers from a pipe are printed
    assert "After " in text.splitlines()[-1]
    assert again.stdout == done.stdout  # the same seed


# Child processes of a background job ignore Ctrl-C.
INTERRUPTIBLE = """
import signal, sys
from algorithms import play
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(play.main(["--terminal", "always-check"]))
"""


def test_in_a_terminal_until_ctrl_c() -> None:
    """On a pseudo-terminal, which echoes what is typed, so the game does not."""
    leader, follower = os.openpty()
    ends = {"stdin": follower, "stdout": follower, "stderr": follower}
    with subprocess.Popen([sys.executable, "-c", INTERRUPTIBLE], **ends) as process:  # type: ignore[call-overload]
        os.close(follower)
        try:
            read_until(leader, b"check or bet? ")
            os.write(leader, b"b\n")
            shown = read_until(leader, b"check or bet? ")  # the bot folds, and checks next time
            process.send_signal(signal.SIGINT)
            os.write(leader, b"\n")  # wakes a read that began just after the signal came
            ending = read_until(leader, b"gave away ")
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
    os.close(leader)
    assert shown.startswith(b"b\r\nThe bot folds.\r\nYou win 1 chip. Your bet cost")
    assert b"After 1 hand: +1 chip." in ending
    assert b"Traceback" not in ending


def read_until(descriptor: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(descriptor, 4096)
    return seen


def test_a_seed_is_the_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Server, "serve_forever", lambda _: None)
    assert play.main(["--seed", "1", "--no-open"]) == 2
    error = capsys.readouterr().err
    assert error.endswith("--seed requires --terminal: the page draws its own cards\n")


def test_the_documentation_shows_the_real_output(monkeypatch, capsys):
    page = (Path(play.__file__).parents[1] / "docs" / "play.md").read_text(encoding="utf-8")
    shown = page.partition("--terminal --seed 0\n")[2].partition("```")[0]
    monkeypatch.setattr("sys.stdin", io.StringIO("c\nf\n"))
    assert play.main(["--terminal", "--seed", "0"]) == 0
    hand = capsys.readouterr().out.partition("Hand 1")[2].partition("\nHand 2")[0]
    assert f"Hand 1{hand}" == shown


def test_the_bot_plays_its_own_card():
    bot = terminal.Sitting(opponent("heuristic").policy, random.Random(1), input, print)
    for state in nodes():
        if state.actor is not None:
            row = bot.policy[information_state(state.cards[state.actor], state.letters)]
            assert row[bot.bot_action(state)] == 1  # this policy never mixes


@pytest.mark.parametrize("answers", ["", "q\n", "QUIT\n", " exit "])
def test_leaving_at_once(answers, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert play.main(["--terminal"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No hand was finished."
