"""`parity.check --candidate`: Kuhn poker by other authors against OpenSpiel's."""

import json
import sys

import numpy as np
import pyspiel
import pytest

from kuhn_bridge.openspiel import KuhnBridgeGame, KuhnBridgeState
from kuhn_bridge.rules import DEALS
from parity import candidate, check, sides

HERE = "tests.candidates"


def test_the_popular_tutorial_gets_its_wrong_hands(capsys):
    assert check.main(["--candidate", f"{HERE}:Tutorial"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{HERE}:Tutorial: a rulebook in letters\n")
    assert "pp with K against Q: pays 2, OpenSpiel pays 1\n" in out
    assert "pp with Q against K: pays -2, OpenSpiel pays -1\n" in out
    assert "6 differ" in out
    assert "hint" not in out
    assert check.main(["--candidate", f"{HERE}:Tutorial", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], found["kind"]) == (6, "a rulebook in letters")


@pytest.mark.parametrize(
    "spec",
    [
        *(f"{HERE}:{name}" for name in ("HistoryFirst", "OtherName", "shimmed")),
        *(f"{HERE}:{name}" for name in ("FourActions", "Maskless")),
        "kuhn_bridge:KuhnPoker",
        "kuhn_bridge:env",
        "kuhn_bridge:kuhn_v0",
        "kuhn_bridge.kuhn_v0:KuhnEnv",
        "kuhn_bridge.openspiel:KuhnBridgeGame",
        "kuhn_bridge.openspiel:SHORT_NAME",
        "kuhn_poker",
    ],
)
def test_faithful_games_of_every_kind_pass(spec, capsys):
    assert check.main(["--candidate", spec]) == 0
    assert "it agrees with OpenSpiel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("make_tutorial", "pp with K against Q: pays 2, OpenSpiel pays 1"),
        ("shimmy", "p with J against Q: the hand is truncated after [check]"),
        ("Crashes", "ZeroDivisionError: oops, OpenSpiel pays"),
        ("Pair", "TypeError"),
        ("OtherPlayer", "the deal with J against Q: lets player_1 act, OpenSpiel lets"),
        ("FoldAtFirst", "allows action 2 or bet or check"),
        ("NoCheck", "p with J against Q: ValueError: no checks here, OpenSpiel plays on"),
        ("Leaking", "player_1 observes the same as at"),
        ("Loaded", "one deal comes up"),
        ("FewerDeals", "this deal never comes up"),
        ("Twins", "both players can hold the same card"),
        ("Immortal", "finished agents do not leave"),
        ("Endless", "OpenSpiel allows nothing"),
        ("Peeking", "at the start player_0 has 6 different observations"),
        ("Generous", "bp with J against Q: pays 0, OpenSpiel pays 1"),
    ],
)
def test_faulty_games_get_the_reason(name, case, capsys):
    assert check.main(["--candidate", f"{HERE}:{name}"]) == 1
    assert case in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "actions", "message"),
    [
        (f"{HERE}:Forgetful", None, "does not repeat its deal"),
        (f"{HERE}:Broken", None, "cannot be played: OSError: no cards left"),
        (f"{HERE}:Three", None, "the candidate has 3 agents, not 2"),
        ("nowhere.at.all:x", None, "cannot load the candidate"),
        ("kuhn_bridge:Nothing", None, "has no attribute 'Nothing'"),
        ("no_such_game", None, "cannot load the candidate"),
        ("kuhn.py", None, "kuhn.py:KuhnPoker"),
        ("", None, "cannot load the candidate"),
        ("kuhn_poker(players=3)", None, "3 players, not 2"),
        ("math:pi", None, "a candidate is a rulebook"),
        ("os:path", None, "got module"),
        ("tic_tac_toe", None, "the candidate has 9 actions; Kuhn poker has 2, 3 or 4"),
        ("kuhn_poker", "0=check/bet,1=call/fold", "the same ID"),
        ("kuhn_poker", "0=check/fold,5=bet/call", "ID 5; the IDs are 0 to 1"),
        ("kuhn_poker", "one=check", "--actions has the form"),
        ("kuhn_poker", "0=raise", "--actions has the form"),
        ("kuhn_poker", "0=check,1=bet", "call, fold"),
        ("kuhn_poker", "0=check,1=check", "gives check two IDs"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(spec, actions, message, capfd):
    options = ["--actions", actions] if actions else []
    assert check.main(["--candidate", spec, *options]) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_cards_from_1_to_3_get_a_hint(capsys):
    assert check.main(["--candidate", f"{HERE}:FromOne"]) == 1
    assert "hint: its cards seem to be 1 to 3" in capsys.readouterr().out
    assert check.main(["--candidate", f"{HERE}:FromOneAndWrong", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hint"].endswith("; renumbered, 6 would differ")


def test_action_ids_may_be_named(capsys):
    spec = f"{HERE}:FourActions"
    right, wrong = "3=check,1=bet,0=call,2=fold", "0=check,1=bet,2=call,3=fold"
    assert check.main(["--candidate", spec, "--actions", right]) == 0
    assert check.main(["--candidate", spec, "--actions", wrong]) == 1
    capsys.readouterr()


NEIGHBOUR = """
from __future__ import annotations
from dataclasses import dataclass
import beside

@dataclass
class Kuhn(beside.KuhnPoker):
    name: str = 'mine'
"""


def test_a_file_may_import_its_neighbours(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside.py").write_text("from kuhn_bridge import KuhnPoker\n")
    (tmp_path / "mine.py").write_text(NEIGHBOUR)
    assert check.main(["--candidate", f"{tmp_path / 'mine.py'}:Kuhn"]) == 0
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    assert check.main(["--candidate", f"{tmp_path / 'leaves.py'}:x"]) == 2
    assert "cannot load the candidate" in capsys.readouterr().err


# OpenSpiel games.


def judged(**methods):
    """The verdict on our OpenSpiel game with other methods of its states, and the hint."""
    state = type("OtherState", (KuhnBridgeState,), methods)

    class Other(KuhnBridgeGame):
        def new_initial_state(self):
            return state(self)

    found = candidate.recognise(Other())
    tally = candidate.judge(found)
    return tally.cases, candidate.hint(found, tally)


def test_an_openspiel_game_that_deals_1_to_3_gets_a_hint():
    def outcomes(self):
        return [(card + 1, share) for card, share in KuhnBridgeState.chance_outcomes(self)]

    def apply_action(self, action):
        KuhnBridgeState._apply_action(self, action if self.hand else action - 1)

    def name(self, player):
        return f"{int(self.cards[player])}{self.letters}"

    cases, hint = judged(
        chance_outcomes=outcomes, _apply_action=apply_action, information_state_string=name
    )
    assert cases
    assert hint.endswith("; renumbered, it would agree")


def test_players_may_share_names_of_information_states():
    def name(self, player):
        return f"{int(self.cards[player])}{'b' in self.letters}"

    assert judged(information_state_string=name) == ([], "")


def test_an_information_state_with_both_cards_is_a_mismatch():
    def name(self, player):
        return f"{self.cards}{self.letters}"

    cases, _ = judged(information_state_string=name)
    assert "has the same information state at both: False" in cases[0]


def test_a_game_that_cannot_deal_is_a_mismatch():
    def outcomes(self):
        raise ZeroDivisionError("no cards")

    cases, _ = judged(chance_outcomes=outcomes)
    assert cases == ["dealing: ZeroDivisionError: no cards, OpenSpiel deals two cards"]


@pytest.mark.parametrize(
    ("game", "encoding", "letters", "message"),
    [
        ("kuhn_poker", {**sides.PASS_BET, "bet": 2}, "pb", "^bet is not possible after p$"),
        ("leduc_poker", {"check": 1, "bet": 2}, "pp", "chance deals a third time"),
    ],
)
def test_nodes_that_a_game_does_not_have(game, encoding, letters, message):
    side = sides.openspiel(pyspiel.load_game(game), encoding)
    with pytest.raises(sides.UnreachableError, match=message):
        side.view(DEALS[0], letters)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_id_has_a_meaning_and_no_decision_has_one_twice(size):
    for encoding in candidate.encodings(size):
        assert set(encoding.values()) == set(range(size))
        assert encoding["check"] != encoding["bet"]
        assert encoding["call"] != encoding["fold"]


def test_a_mask_is_not_part_of_an_observation():
    one, other = ({"observation": np.ones(2), "action_mask": np.full(3, i)} for i in (0, 1))
    assert sides.observation_text(one) == sides.observation_text(other)
