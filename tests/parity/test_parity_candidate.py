"""`parity.check --candidate`: Kuhn poker by other authors against OpenSpiel's."""

import json
import sys

import numpy as np
import pyspiel
import pytest

from kuhn_bridge.openspiel import KuhnBridgeGame, KuhnBridgeState
from kuhn_bridge.rules import DEALS
from parity import candidate, check, implementations

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
    document = json.loads(capsys.readouterr().out)
    assert (document["wrong"], document["kind"]) == (6, "a rulebook in letters")


@pytest.mark.parametrize(
    "spec",
    [
        *(f"{HERE}:{name}" for name in ("HistoryFirst", "OtherName", "FourActions", "Maskless")),
        "parity.kuhn_adapters:corrected_shimmy",
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


def test_cards_from_1_to_3_get_a_hint(capsys):
    assert check.main(["--candidate", f"{HERE}:FromOne"]) == 1
    assert "hint: its cards seem to be 1 to 3" in capsys.readouterr().out
    assert check.main(["--candidate", f"{HERE}:FromOneAndWrong", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hint"].endswith("; renumbered, 6 would differ")


def test_action_ids_may_be_named(capsys):
    spec = f"{HERE}:FourActions"
    right = "3=check,1=bet,0=call,2=fold"
    wrong = "0=check,1=bet,2=call,3=fold"
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


def judged(**methods):
    """The verdict on our OpenSpiel game with other methods of its states, and the hint."""
    state = type("OtherState", (KuhnBridgeState,), methods)

    class Other(KuhnBridgeGame):
        def new_initial_state(self):
            return state(self)

    recognised = candidate.recognise(Other())
    tally = candidate.judge(recognised)
    return tally.cases, candidate.hint(recognised, tally)


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


def test_players_may_share_names_of_information_states_but_not_know_both_cards():
    shared = judged(information_state_string=lambda s, p: f"{int(s.cards[p])}{'b' in s.letters}")
    assert shared == ([], "")
    cases, _ = judged(information_state_string=lambda s, p: f"{s.cards}{s.letters}")
    assert "has the same information state at both: False" in cases[0]


def test_a_game_that_cannot_deal_is_a_mismatch():
    def outcomes(self):
        raise ZeroDivisionError("no cards")

    cases, _ = judged(chance_outcomes=outcomes)
    assert cases == ["dealing: ZeroDivisionError: no cards, OpenSpiel deals two cards"]


@pytest.mark.parametrize(
    ("game", "encoding", "letters", "message"),
    [
        (
            "kuhn_poker",
            {**implementations.PASS_BET_IDS, "bet": 2},
            "pb",
            "^bet is not possible after p$",
        ),
        ("leduc_poker", {"check": 1, "bet": 2}, "pp", "chance deals a third time"),
    ],
)
def test_nodes_that_a_game_does_not_have(game, encoding, letters, message):
    side = implementations.from_openspiel(pyspiel.load_game(game), encoding)
    with pytest.raises(implementations.UnreachableError, match=message):
        side.view(DEALS[0], letters)


def test_a_mask_is_not_part_of_an_observation():
    one, other = ({"observation": np.ones(2), "action_mask": np.full(3, i)} for i in (0, 1))
    assert implementations.observation_text(one) == implementations.observation_text(other)
