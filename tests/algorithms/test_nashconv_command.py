"""The command that measures policies, as a user runs it."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from open_spiel.python.algorithms import exploitability

from algorithms.games import load_game
from algorithms.nashconv import main
from algorithms.policies.openspiel_policies import measured_by_openspiel
from algorithms.reports.measure_report import report, verdict
from kuhn_bridge import Action, Policy, solve
from tests.games import KUHN3, LEDUC, from_names
from tests.models import Spaces, save_model
from tests.strategies import policies


def printed(capsys, *argv, code=0):
    """What the command prints on standard output."""
    assert main([*argv]) == code
    return capsys.readouterr().out


def from_players(game, players):
    head = {"format": "kuhn-bridge-policy", "version": 2}
    return Policy.from_document(head | {"game": game, "players": players})


def test_one_policy(capsys):
    out = printed(capsys, "uniform", "--openspiel")
    assert out.startswith("uniform: NashConv 0.916667, as far from equilibrium as uniform play")
    assert "gain                      +0.375000000  +0.541666667" in out
    assert "gain, by OpenSpiel        +0.375000000  +0.541666667" in out
    assert "value against -1/18  +0.180556" in out
    assert "agrees: the largest difference is" in out
    assert "dominated            0.5000 on player_1 with K after bet: fold" in out
    table = out.split("\n\n")[1].splitlines()
    assert len(table) == 14
    assert table[12].split() == ["2pb", "0.5000", "-", "0.5000", "0.5000", "-", "0.5000", "call"]


def test_an_equilibrium(capsys):
    out = printed(capsys, "nash:0.25", "--max", "1e-9")
    assert "an equilibrium, up to rounding" in out
    assert "distance             0.000000 to the equilibrium of alpha 0.2500" in out
    assert "dominated actions    none played" in out
    assert "where chips are lost" not in out


def test_another_game(capsys):
    out = printed(capsys, "random:3", "--game", LEDUC, "--openspiel", "--losses", "2")
    assert out.startswith("random:3: NashConv 5.03496, worse than uniform play (4.7472)\n")
    assert "leduc_poker: 9,457 nodes, 936 information sets" in out
    assert "gain, by OpenSpiel        +2.413779443  +2.621177211" in out
    assert "exploitability       2.51748 (NashConv / 2 players)" in out
    first = next(line for line in out.splitlines() if line.startswith("player_1 with K♥"))
    assert first.split()[-6:] == ["0.1042", "fold", "0.60", "raise", "0.376742", "7%"]
    assert "... and 934 more that lose" in out
    assert out.endswith(" together (--losses N)\n")


def test_several_at_once(capsys):
    lines = printed(capsys, "uniform", "nash:0", "random:3", "--openspiel").splitlines()
    assert lines[0].split()[0] == "policy"
    assert [line.split()[0] for line in lines[1:4]] == ["uniform", "nash:0", "random:3"]
    assert lines[1].split()[1] == lines[1].split()[-1] == "0.916667"
    assert lines[4] == "uniform play has NashConv 0.916667, an equilibrium 0"


@pytest.mark.parametrize(
    ("options", "shown"), [([], 10), (["--losses", "0"], 0), (["--losses", "12"], 12)]
)
def test_ten_losses_are_listed_by_default(options, shown, capsys):
    assert printed(capsys, "uniform", "--game", LEDUC, *options).count("\nplayer_") == shown


def test_verdicts():
    for nash_conv, words in {
        0: "an equilibrium",
        1e-8: "100.0% of the way",
        1e-3: "99.9% of the way",
        11 / 48: "75.0% of the way",
        11 / 12: "as far from equilibrium as uniform play (0.9167)",
        1: "worse than uniform",
    }.items():
        assert words in verdict(nash_conv, 11 / 12)


def test_the_limit(capsys):
    assert main(["uniform", "--max", "0.95"]) == 0
    assert main(["nash:0.1", "uniform", "--max", "0.9"]) == 1
    assert capsys.readouterr().err == "uniform: NashConv is above 0.9\n"


def test_deterministic_play(capsys):
    document = json.loads(printed(capsys, "nash:0.1", "--deterministic", "--json"))
    assert document["nash_conv"] > 0.1
    assert {p for row in document["policy"].values() for p in row.values()} == {0, 1}


def test_json_of_kuhn(capsys):
    document = json.loads(printed(capsys, "random:1", "--json", "--openspiel"))
    assert document["source"] == "random:1"
    assert document["openspiel"]["gap"] < 1e-9
    assert document["values"] == pytest.approx(document["openspiel"]["values"])
    assert document["value"] == document["values"][0]
    assert from_names(document["policy"]) == Policy.random("kuhn", 1)
    named = {key: Action[name] for key, name in document["best_response"].items()}
    assert named == document["best_response_players"][0] | document["best_response_players"][1]


@pytest.mark.parametrize("game", ["kuhn", KUHN3])
def test_json_of_any_game(game, capsys):
    document = json.loads(printed(capsys, "random:3", "--game", game, "--json"))
    players = document["players"]
    responses = document["best_response_players"]
    policy = Policy.random(game, 3)
    assert document["game"] == game
    assert from_players(game, players) == policy
    assert document["nash_conv"] == policy.nash_conv()
    assert document["exploitability"] == pytest.approx(document["nash_conv"] / len(players))
    assert ("value" in document) == ("policy" in document) == (game == "kuhn")
    assert sum(loss["lost"] for loss in document["losses"]) == pytest.approx(document["nash_conv"])
    for loss in document["losses"]:
        row = players[loss["player"]][loss["key"]]
        assert loss["probability"] == max(row.values()) == row[str(loss["played"])]
        assert loss["best"] == responses[loss["player"]][loss["key"]]
    for player, response in enumerate(responses):
        best = {
            key: {action: float(int(action) == response[key]) for action in row}
            for key, row in players[player].items()
        }
        against = [*players[:player], best, *players[player + 1 :]]
        won = from_players(game, against).measure().values[player]
        assert won == pytest.approx(document["best_response_values"][player])


def test_json_of_several_is_a_list_and_a_best_response_is_measured_too(capsys):
    out = printed(capsys, "uniform", "best-response", "cfr+:10", "--json")
    uniform, response, solved = json.loads(out)
    assert response["source"] == "best-response"
    assert response["best_response_values"] != uniform["best_response_values"]
    assert {p for row in response["policy"].values() for p in row.values()} == {0, 1}
    assert solved["nash_conv"] == pytest.approx(0.06537, abs=1e-5)


def test_a_file_names_its_game_and_a_flag_may_not_contradict_it(tmp_path, capsys):
    out = str(tmp_path / "leduc.json")
    solve(LEDUC, iterations=10).save(out)
    assert json.loads(printed(capsys, out, "--json"))["game"] == LEDUC
    assert main([out, "uniform", "--game", "leduc_poker(players=2)"]) == 0  # the same game
    assert "uniform play has NashConv 4.747222" in printed(capsys, out, "uniform")
    for other in ("kuhn", "kuhn_poker", "leduc_poker(suit_isomorphism=True)"):
        assert main([out, "--game", other]) == 2
        assert capsys.readouterr().err.endswith(f"a policy of leduc_poker, not of {other}\n")
    assert main([out, "nash:0"]) == 2
    assert "nash:0 is a policy of kuhn, not of leduc_poker" in capsys.readouterr().err


UNIFORM = json.dumps(Policy.uniform("kuhn").to_document())
BROKEN = {
    "format.json": '{"format": "kuhn-bridge-game-policy", "version": 1, "game": "leduc_poker"}',
    "version.json": '{"format": "kuhn-bridge-policy", "version": 3, "game": "leduc_poker"}',
    "unknown.json": '{"format": "kuhn-bridge-policy", "version": 2, "game": "unknown.j"}',
    "cut.json": UNIFORM[:100],
    "sum.json": UNIFORM.replace("0.5", "0.4"),
    "binary.json": "\udcff",
    "cut.zip": "PK",
}


@pytest.mark.parametrize("name", [*BROKEN, "missing.json", "unifrom", "nash:2", "missing.zip"])
def test_a_mistake_is_one_line_that_names_it(name, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    if name in BROKEN:
        (tmp_path / name).write_text(BROKEN[name], errors="surrogateescape")
    assert name.split(":")[-1].removesuffix("son") in refused(main, ["uniform", name])


# Calling with J, folding K, checking K behind; once those are gone, betting Q.
DOMINATED = {
    **dict.fromkeys(("0b", "0pb", "2p"), Action.CHECK_OR_CALL),
    **dict.fromkeys(("2b", "2pb"), Action.FOLD),
    **dict.fromkeys(("1", "1p"), Action.BET),
}


@given(policies())
def test_the_report_on_any_policy_of_kuhn(policy):
    report_of_policy = report("any", policy, openspiel=True)
    assert report_of_policy.by_openspiel.gap(report_of_policy.measure) < 1e-10
    expected = max(policy[key][action] for key, action in DOMINATED.items())
    assert max((one.probability for one in report_of_policy.exposures), default=0) == expected


def test_the_gap_to_openspiel_is_the_largest_difference_of_any_number():
    policy = Policy.uniform("kuhn")
    ours = policy.measure()
    right = measured_by_openspiel(policy.game, policy.table)
    for wrong in (
        replace(right, nash_conv=right.nash_conv + 1),
        replace(right, gains=(right.gains[0], right.gains[1] + 1)),
        replace(right, values=(right.values[0] - 1, right.values[1])),
    ):
        assert wrong.gap(ours) == pytest.approx(1)


@pytest.mark.parametrize(
    ("game", "off", "agrees"), [("kuhn", 5e-10, False), (LEDUC, 5e-10, True), (LEDUC, 5e-9, False)]
)
def test_openspiel_disagrees_above_rounding_at_the_stakes_of_the_game(
    game, off, agrees, monkeypatch, capsys
):
    right = exploitability.nash_conv

    def wrong(*args, **options):
        found = right(*args, **options)
        return found._replace(nash_conv=found.nash_conv + off)

    monkeypatch.setattr(exploitability, "nash_conv", wrong)
    out = printed(capsys, "uniform", "--game", game, "--openspiel", code=0 if agrees else 1)
    assert ("DISAGREES" in out) is not agrees


# ---------------------------------------------------------------------------------------------
# Trained best responses
# ---------------------------------------------------------------------------------------------

FEW = ("--decisions", "8000", "--hands", "1000")
LARGE_EXACT = "dark_hex(num_rows=2,num_cols=4)"
UNMEASURED = "dark_hex(num_rows=2,num_cols=4,obstype=reveal-numturns)"


def test_a_bound_is_put_beside_the_exact_figure(capsys):
    out = printed(capsys, "uniform", "--respond", *FEW)
    assert out.startswith("uniform: NashConv 0.916667")
    assert "uniform: NashConv at least 0." in out
    assert re.search(r"exact NashConv 0\.916667: the responses found \d+%", out)
    bound = json.loads(printed(capsys, "uniform", "--respond", "--json", *FEW))["lower_bound"]
    assert bound["share_found"] == pytest.approx(bound["nash_conv_at_least"] * 12 / 11)
    assert (bound["decisions"], bound["hands"]) == (8_000, 1_000)


def test_a_game_without_an_exact_measure_has_a_bound(capsys):
    assert main(["uniform", "--game", UNMEASURED, "--json", "--max", "0.001", *FEW]) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"{UNMEASURED} has no exact measure: training best responses")
    assert err.endswith("uniform: NashConv is above 0.001\n")
    document = json.loads(out)
    assert document["nash_conv_at_least"] == document["uniform_nash_conv_at_least"] > 0
    low, high = document["interval"]
    assert low < document["nash_conv_at_least"] < high
    assert "nash_conv" not in document


def test_a_bound_cannot_show_that_nash_conv_is_small(tmp_path, capsys):
    loaded = load_game(UNMEASURED)
    path = str(tmp_path / "model.zip")
    spaces = Spaces(loaded.observation_size + 2, loaded.num_actions)
    save_model(tmp_path / "model.zip", spaces=spaces, game=UNMEASURED)
    assert main([path, "--max", "9", *FEW]) == 2
    out, err = capsys.readouterr()
    assert f"{path}: NashConv at least" in out
    assert "uniform play, measured in the same way: " in out
    assert err.splitlines()[-1].endswith("but a bound cannot show that NashConv is small")


def test_a_table_of_a_native_game_is_responded_to(tmp_path, capsys):
    path = str(tmp_path / "policy.npz")
    Policy.random(LARGE_EXACT, 0).save(path)
    document = json.loads(printed(capsys, path, "--respond", "--json", *FEW))
    assert 0 < document["lower_bound"]["interval"][0] < document["nash_conv"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["uniform", "--losses", "-1"], "--losses: want at least 0, not -1"),
        (["uniform", "--max", "nan"], "--max: want at least 0, not nan"),
        (["uniform", "--respond", "--decisions", "0"], "--decisions: want at least 1, not 0"),
        (["uniform", "--respond", "--hands", "0"], "--hands: want at least 1,000, not 0"),
        (["uniform", "--respond", "--seeds", "0"], "seeds 0: must be like 0-9, or 0,3,7"),
        (["uniform", "--respond", "--cpus", "0"], "--cpus: want at least 1, not 0"),
        (["uniform", "--decisions", "10"], "--decisions requires --respond"),
        (["uniform", "--game", UNMEASURED, "--openspiel"], "--openspiel measures on a tree"),
        (["uniform", "--game", LARGE_EXACT, "--openspiel"], "--openspiel measures on a tree"),
        (["uniform", "--game", "connect_four"], "has no information state tensor"),
        (["uniform", "--game", "negotiation"], "samples chance outcomes"),
        (["uniform", "--game", "repeated_leduc_poker"], "has forgotten its earlier actions"),
        (["policy.json", "--game", UNMEASURED], "too large for a tree; want model.zip"),
        (["small.zip", "--game", UNMEASURED], "10 inputs .* has 222 inputs, or 224 with"),
    ],
)
def test_mistakes_about_options_and_bounds_are_one_line(
    argv, words, tmp_path, monkeypatch, refused
):
    monkeypatch.chdir(tmp_path)
    head = {"format": "kuhn-bridge-policy", "version": 2, "game": UNMEASURED}
    (tmp_path / "policy.json").write_text(json.dumps(head | {"players": [{}, {}]}))
    save_model(tmp_path / "small.zip")
    assert re.search(words, refused(main, argv))
