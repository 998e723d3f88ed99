"""A river endgame in the terminal."""

from random import Random

import kuhn_bridge as kb
from algorithms import play
from algorithms.games import load_game
from algorithms.playing.endgame_terminal import EndgameTable

RIVER = "river(board=7dJc3s9hQd,pot=2000,bets=fc)"


def test_hands_are_played_to_the_end():
    answers = iter(["call", "nonsense", "1"])
    told = []

    def ask(question):
        told.append(question)
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    game = load_game(RIVER)
    table = EndgameTable(
        game=game, policy=kb.Policy.uniform(game), random=Random(5), ask=ask, tell=told.append
    )
    table.play()
    text = "\n".join(told)
    assert "you are player_0. Board 3♠ 7♦ 9♥ J♣ Q♦, pot 2000" in text
    assert "1 fold, 2 check? " in text
    assert "Answer with a move's number" in text
    assert f"After {len(table.results)} hand" in text
    assert len(table.results) in (1, 2)
    assert set(map(abs, table.results)) <= {0, 100, 1_000}


def test_what_cannot_be_played_is_refused_in_one_line(capsys):
    turn = "turn(board=7dJc3s9h,pot=2000,bets=fc)"
    assert play.main(["uniform", "--game", turn]) == 2
    assert "add --terminal" in capsys.readouterr().err
    assert play.main(["--game", RIVER]) == 2
    assert "name the POLICY" in capsys.readouterr().err
