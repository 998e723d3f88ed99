"""`parity.check --candidate`: Kuhn poker by other authors against OpenSpiel's."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest

from kuhn_bridge import BridgeError
from kuhn_bridge.kuhn_v0 import KuhnEnv
from kuhn_bridge.openspiel import KuhnBridgeGame, KuhnBridgeState
from kuhn_bridge.rules import DEALS
from parity import candidate, check, faces, sides
from tests.candidates import FILES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with candidates, whose modules are forgotten afterwards."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "kuhn", raising=False)
    return tmp_path


def test_the_popular_tutorial_gets_its_wrong_hands(folder, capsys):
    spec = f"{folder / 'kuhn.py'}:KuhnPoker"
    assert check.main(["--candidate", spec]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{spec}: a rulebook in letters\n")
    assert "pp with K against Q: pays 2, OpenSpiel pays 1\n" in out
    assert "pp with Q against K: pays -2, OpenSpiel pays -1\n" in out
    assert "6 differ" in out
    assert "hint" not in out
    assert check.main(["--candidate", spec, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], found["kind"]) == (6, "a rulebook in letters")


@pytest.mark.parametrize(
    "spec",
    [
        "kuhn.py:HistoryFirst",
        "kuhn.py:Hole",
        "kuhn.py:whole",
        "nested.py:Kuhn",
        "envs.py:FourActions",
        "envs.py:Maskless",
        "kuhn_bridge:KuhnPoker",
        "kuhn_bridge:env",
        "kuhn_bridge:kuhn_v0",
        "kuhn_bridge.kuhn_v0:KuhnEnv",
        "kuhn_bridge.openspiel:KuhnBridgeGame",
        "kuhn_bridge.openspiel:SHORT_NAME",
        "kuhn_poker",
    ],
)
def test_faithful_games_of_every_kind_pass(spec, folder, capsys):
    spec = str(folder / spec) if ".py:" in spec else spec
    assert check.main(["--candidate", spec]) == 0
    assert "it agrees with OpenSpiel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "case"),
    [
        ("kuhn.py:make", "pp with K against Q: pays 2, OpenSpiel pays 1"),
        ("kuhn.py:shimmy", "p with J against Q: the hand is truncated after [check]"),
        ("kuhn.py:Crashes", "ZeroDivisionError: oops, OpenSpiel pays"),
        ("kuhn.py:Pair", "TypeError"),
        ("kuhn.py:OtherPlayer", "the deal with J against Q: lets player_1 act, OpenSpiel lets"),
        ("envs.py:FoldAtFirst", "allows action 2 or bet or check"),
        ("envs.py:Leaking", "player_1 observes the same as at"),
        ("envs.py:Loaded", "one deal comes up"),
        ("envs.py:FewerDeals", "this deal never comes up"),
        ("envs.py:Twins", "both players can hold the same card"),
        ("envs.py:Quits", "the hand is broken off by SystemExit: enough after [check]"),
        ("envs.py:Immortal", "finished agents do not leave"),
        ("envs.py:Endless", "OpenSpiel allows nothing"),
        ("envs.py:Peeking", "at the start player_0 has 6 different observations"),
        ("envs.py:Generous", "bp with J against Q: pays 0, OpenSpiel pays 1"),
    ],
)
def test_faulty_games_get_the_reason(spec, case, folder, capsys):
    assert check.main(["--candidate", str(folder / spec)]) == 1
    assert case in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("envs.py:Forgetful", "does not repeat its deal"),
        ("envs.py:Broken", "cannot be played: OSError: no cards left"),
        ("envs.py:leave", "cannot be played: SystemExit: no cards today"),
        ("envs.py:Three", "the candidate has 3 agents, not 2"),
        ("leaves.py:x", "cannot load the candidate"),
    ],
)
def test_a_candidate_that_cannot_be_played_is_an_error(spec, message, folder, capsys):
    assert check.main(["--candidate", str(folder / spec)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "actions", "message"),
    [
        ("nowhere.at.all:x", None, "cannot load the candidate"),
        ("kuhn_bridge:Nothing", None, "has no attribute 'Nothing'"),
        ("no_such_game", None, "cannot load the candidate"),
        ("kuhn.py", None, "kuhn.py:KuhnPoker"),
        ("", None, "cannot load the candidate"),
        ("kuhn_poker(players=3)", None, "3 players, not 2"),
        ("math:pi", None, "a candidate is a rulebook"),
        ("os:path", None, "got module"),
        ("tic_tac_toe", None, "the candidate has 9 actions"),
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


def test_cards_from_1_to_3_get_a_hint(folder, capsys):
    assert check.main(["--candidate", f"{folder / 'kuhn.py'}:FromOne"]) == 1
    assert "hint: its cards seem to be 1 to 3" in capsys.readouterr().out
    assert check.main(["--candidate", f"{folder / 'kuhn.py'}:FromOneAndWrong", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hint"].endswith("; renumbered, 6 would differ")


def test_action_ids_may_be_named(folder, capsys):
    spec = str(folder / "envs.py:FourActions")
    right, wrong = "3=check,1=bet,0=call,2=fold", "0=check,1=bet,2=call,3=fold"
    assert check.main(["--candidate", spec, "--actions", right]) == 0
    assert check.main(["--candidate", spec, "--actions", wrong]) == 1
    capsys.readouterr()


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
        return f"{int(self.cards[player])}{self.betting.letters}"

    cases, hint = judged(
        chance_outcomes=outcomes, _apply_action=apply_action, information_state_string=name
    )
    assert cases
    assert hint.endswith("; renumbered, it would agree")


def test_players_may_share_names_of_information_states():
    def name(self, player):
        return f"{int(self.cards[player])}{'b' in self.betting.letters}"

    assert judged(information_state_string=name) == ([], "")


def test_an_information_state_with_both_cards_is_a_mismatch():
    def name(self, player):
        return f"{self.cards}{self.betting.letters}"

    cases, _ = judged(information_state_string=name)
    assert "has the same information state at both: False" in cases[0]


def test_a_game_that_cannot_deal_is_a_mismatch():
    def outcomes(self):
        raise ZeroDivisionError("no cards")

    cases, _ = judged(chance_outcomes=outcomes)
    assert cases == ["dealing: ZeroDivisionError: no cards, OpenSpiel deals two cards"]


# Parts.


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_id_has_a_meaning_and_no_decision_has_one_twice(size):
    for encoding in candidate.encodings(size):
        assert set(encoding.values()) == set(range(size))
        assert encoding["check"] != encoding["bet"]
        assert encoding["call"] != encoding["fold"]


@pytest.mark.parametrize("size", [1, 5])
def test_kuhn_has_two_to_four_action_ids(size):
    with pytest.raises(BridgeError, match=f"has {size} actions; Kuhn poker has 2, 3 or 4"):
        list(candidate.encodings(size))


def test_a_module_of_the_working_directory_is_found_but_shadows_none(folder, monkeypatch):
    for place, answer in (("ours", 1), ("here", 2)):
        (folder / place).mkdir()
        (folder / place / "in_two_places.py").write_text(f"answer = {answer}\n")
    (folder / "here" / "beside_us.py").write_text("answer = 7\n")
    sys.path.append(str(folder / "ours"))
    monkeypatch.chdir(folder / "here")
    assert candidate.load("beside_us:answer") == 7
    assert candidate.load("in_two_places:answer") == 1


class Particular(KuhnEnv):
    """Without masks or an end; after three moves it takes only action 0."""

    def observe(self, agent):
        return self.state()

    def last(self, observe=True):
        return self.state(), 0, False, False, {}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.moves = 0

    def step(self, action):
        if self.moves == 3 and action:
            raise ValueError(action)
        self.moves += 1


def test_hands_are_recorded_beyond_the_length_of_kuhn():
    env = Particular()
    record = sides.record_hands(lambda: env.reset(seed=0) or env)
    assert {record[path].legal for path in record if len(path) == 3} == {(0,)}


def test_a_mask_is_not_part_of_an_observation():
    seen = {"observation": np.ones(2), "action_mask": np.ones(3)}
    assert sides.observation_bytes(seen) == np.ones(2).tobytes()


@pytest.mark.parametrize(
    ("side", "letters", "message"),
    [
        (
            lambda: sides.openspiel(pyspiel.load_game("kuhn_poker"), {**sides.PASS_BET, "bet": 2}),
            "pb",
            r"^bet is not possible after p$",
        ),
        (
            lambda: sides.openspiel(
                pyspiel.load_game("leduc_poker"), {"check": 1, "bet": 2, "call": 1, "fold": 0}
            ),
            "pp",
            "chance deals a third time",
        ),
        (
            lambda: faces.shimmy_aec(faces.upstream),
            "pb",
            r"^the hand is truncated after \[check\]$",
        ),
    ],
)
def test_nodes_that_a_side_does_not_have(side, letters, message):
    with pytest.raises(sides.UnreachableError, match=message):
        side().view(DEALS[0], letters)


def test_agents_that_have_left_have_no_rewards():
    gone = SimpleNamespace(possible_agents=["a", "b"], agents=[], agent_iter=lambda most: ())
    assert sides.final_rewards(gone) == [0, 0]
