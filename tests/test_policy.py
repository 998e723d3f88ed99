"""TabularPolicy: made, refused, and carried across every form it has."""

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python import policy as openspiel_policy

from algorithms.policies.openspiel import to_pyspiel_tabular, to_python_tabular
from kuhn_bridge import INFORMATION_STATES, Action, BridgeError, Policy
from kuhn_bridge.errors import PolicyError
from tests.games import LEGAL
from tests.strategies import policies

GAMES = ["kuhn_poker", "python_kuhn_bridge"]


def test_reading_a_policy():
    policy = Policy.uniform("kuhn")
    assert policy.table.shape == (12, 3)
    assert policy["2pb"] == {Action.CHECK_OR_CALL: 0.5, Action.FOLD: 0.5}
    assert len(str(policy).splitlines()) == 13
    assert "1pb   player_0  Q     check-bet         0.5000       -  0.5000" in str(policy)
    with pytest.raises(BridgeError, match="is not an information state"):
        policy["2pp"]


def test_the_likeliest_actions():
    policy = Policy.from_percentages(PRINTED).greedy()
    assert policy["2"] == {Action.CHECK_OR_CALL: 0.0, Action.BET: 1.0}
    assert policy["1b"] == {Action.CHECK_OR_CALL: 0.0, Action.FOLD: 1.0}
    assert Policy.uniform("kuhn").greedy()["0"][Action.CHECK_OR_CALL] == 1


def test_a_policy_is_a_frozen_value():
    policy = Policy.random("kuhn", 7)
    assert policy == Policy.random("kuhn", 7) != Policy.random("kuhn", 8)
    assert hash(policy) == hash(copy.deepcopy(policy))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert eval(repr(policy)) == policy
    assert policy != "a policy"
    with pytest.raises(AttributeError):
        policy.table = None
    with pytest.raises(ValueError, match="read-only"):
        policy.table[0, 0] = 1
    with pytest.raises(AttributeError, match="frozen"):
        del policy.table
    with pytest.raises(ValueError, match="WRITEABLE"):
        policy.table.setflags(write=True)
    with pytest.raises(ValueError, match="WRITEABLE"):
        LEGAL.setflags(write=True)


def test_numbers_may_be_of_any_real_kind():
    wanted = Policy.uniform("kuhn")
    for kind in (Fraction, np.float32, np.float16, float):
        table = [[kind(float(p)) for p in row] for row in wanted.table]
        assert Policy("kuhn", table) == wanted
    assert Policy("kuhn", (wanted.table * 2).astype(int) / 2) == wanted


def test_a_policy_does_not_follow_the_table_it_was_made_from():
    table = Policy.uniform("kuhn").table.copy()
    policy = Policy("kuhn", table)
    table[:] = 0
    assert policy == Policy.uniform("kuhn")


def test_random_policies_are_uniform():
    """A share drawn uniformly lands in each tenth equally often: 24,000 draws, 5 deviations."""
    tables = np.stack([Policy.random("kuhn", seed).table for seed in range(2000)])
    shares = tables[:, LEGAL][:, ::2].ravel()  # the first of each row's two legal actions
    counts = np.histogram(shares, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 2400).max() < 5 * np.sqrt(24_000 * 0.1 * 0.9)


@pytest.mark.parametrize("seed", [-1, 1.5, None, "1", True])
def test_what_is_no_seed(seed):
    with pytest.raises(BridgeError, match="is not a whole number from 0 up"):
        Policy.random("kuhn", seed)


@pytest.mark.parametrize(("off", "passes"), [(0.9e-6, True), (1.1e-6, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_tolerance_of_a_row(off, passes, sign):
    table = edited(at3_0=0.5 + sign * off)
    if passes:
        assert Policy("kuhn", table).table[3].sum() != 1
    else:
        with pytest.raises(PolicyError, match="'0p': the probabilities sum to"):
            Policy("kuhn", table)


@pytest.mark.parametrize(("off", "passes"), [(0.019, True), (0.021, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_tolerance_of_percentages(off, passes, sign):
    rows = [[50, 50, 50, 50]] * 3
    rounded = [[50, 50, 50, 50], [50, 50 + sign * off, 50, 50], [50, 50, 50, 50]]
    if passes:
        policy = Policy.from_percentages([rows, rounded])
        assert policy["1p"][Action.BET] == pytest.approx(0.5, abs=1e-4)
        assert policy["1p"][Action.BET] != 0.5
    else:
        with pytest.raises(PolicyError, match=r"player_1 Q.*does not sum to 100"):
            Policy.from_percentages([rows, rounded])


@given(policies())
def test_json_round_trips_exactly(policy):
    assert TabularPolicy.from_json(policy.to_json()) == policy
    assert TabularPolicy.from_dict(policy.to_dict()) == policy


@pytest.mark.parametrize("game", GAMES)
@given(policy=policies())
def test_both_kinds_of_openspiel_policy_round_trip_exactly(game, policy):
    game = pyspiel.load_game(game)
    assert (
        Policy.from_openspiel(to_python_tabular(policy.game, policy.table, game), "kuhn") == policy
    )
    assert (
        Policy.from_openspiel(to_pyspiel_tabular(policy.game, policy.table, game), "kuhn") == policy
    )


@given(policies())
def test_percentages_carry_a_policy(policy):
    back = Policy.from_percentages(policy.to_percentages())
    np.testing.assert_allclose(back.table, policy.table, rtol=0, atol=1e-14)


# What a hand-written CFR program prints: [check, bet, fold, call] for J, Q, K of each player.
PRINTED = (
    ((79.31, 20.69, 100.0, 0.0), (100.0, 0.0, 45.5, 54.5), (38.0, 62.0, 0.0, 100.0)),
    ((66.67, 33.33, 100.0, 0.0), (100.0, 0.0, 66.6, 33.4), (0.0, 100.0, 0.0, 100.0)),
)


def test_printed_percentages_come_back_as_printed():
    policy = Policy.from_percentages(PRINTED)
    assert policy.to_percentages() == PRINTED
    assert policy["0"][Action.BET] == pytest.approx(0.2069)
    assert policy["1pb"][Action.CHECK_OR_CALL] == pytest.approx(0.545)
    assert policy["0p"][Action.BET] == pytest.approx(0.3333)
    assert policy["1b"][Action.FOLD] == pytest.approx(0.666)


@pytest.mark.parametrize(
    ("percentages", "message"),
    [
        ([[[50, 50, 50, 50]] * 3], "2 players x 3 cards x 4"),
        ("abc", "numbers"),
        ([[[50, 50, 50, 50]] * 3, [[50, 50, 50, 51]] * 3], "player_1 J.*does not sum to 100"),
        ([[[0.8, 0.2, 1, 0]] * 3] * 2, "player_0 J.*seem to be fractions: multiply them by 100"),
        ([[[50, 50, 50, float("nan")]] * 3] * 2, "does not sum to 100"),
        ([[[150, -50, 50, 50]] * 3] * 2, "are not probabilities"),
        ([[[10**400, 50, 50, 50]] * 3] * 2, "percentages are numbers"),
        ([[["50", "50", "50", "50"]] * 3] * 2, "percentages are numbers"),
        ([[range(10**9)] * 3] * 2, "percentages are numbers"),
        ([[[50j, 50, 50, 50]] * 3] * 2, "percentages are numbers"),
        ([[[1e308, 1e308, 50, 50]] * 3] * 2, "does not sum to 100"),
        ([[[np.inf, -np.inf, 50, 50]] * 3] * 2, "does not sum to 100"),
    ],
)
def test_bad_percentages(percentages, message):
    with pytest.raises(PolicyError, match=message):
        Policy.from_percentages(percentages)


ITSELF = []
ITSELF.append(ITSELF)


def edited(**changes):
    table = Policy.uniform("kuhn").table.copy()
    for where, value in changes.items():
        row, column = map(int, where.removeprefix("at").split("_"))
        table[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (edited(at0_0=float("nan")), "are not probabilities"),
        (edited(at0_0=float("inf")), "are not probabilities"),
        (edited(at0_0=-0.5, at0_1=1.5), "are not probabilities"),
        (edited(at0_0=0.4), "sum to 0.9, not 1"),
        (edited(at0_0=0.4, at0_2=0.1), "FOLD is illegal there"),
        (edited(at6_0=0.4, at6_1=0.1), "BET is illegal there"),
        (np.ones((12, 2)), "12 rows x 3 actions"),
        (np.ones((6, 3)) / 3, "12 rows x 3 actions"),
        ("nonsense", "table of numbers"),
        ([[10**400, 0, 0]] * 12, "table of numbers"),
        ([["0.5", "0.5", "0"]] * 12, "table of numbers"),
        (Policy.uniform("kuhn").table + 0j, "table of numbers"),
        (edited(at0_0=1e308, at0_1=1e308), "sum to inf, not 1"),
        (iter([]), "table of numbers"),
        (range(10**9), "table of numbers"),
        (range(10**30), "table of numbers"),
        ([[1, 0, 0]] * 11 + [range(10**9)], "table of numbers"),
        (None, "12 rows x 3 actions"),
        ([[Fraction(1, 2), "0.5", 0]] * 12, "table of numbers"),
        ([[Fraction(1), None, 0]] * 12, "table of numbers"),
        (ITSELF, "table of numbers"),
    ],
)
def test_what_is_no_policy(table, message):
    with pytest.raises(PolicyError, match=message) as error:
        Policy("kuhn", table)
    assert "\n" not in str(error.value)


def broken(edit):
    data = json.loads(Policy.uniform("kuhn").to_json())
    edit(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "broken"),
        ("{", "broken"),
        ("[]", "format"),
        ("{}", "format"),
        (broken(lambda d: d.update(format="leduc-policy")), "format"),
        (broken(lambda d: d.update(version=2)), "version 2"),
        (broken(lambda d: d.update(policy=[])), "must map"),
        (broken(lambda d: d["policy"].pop("2pb")), "an incomplete policy.*2pb"),
        (broken(lambda d: d["policy"].update({"9": {}})), "include 9"),
        (broken(lambda d: d["policy"]["0"].pop("BET")), "lack BET"),
        (broken(lambda d: d["policy"]["0"].update(FOLD=0.0)), "include FOLD"),
        (broken(lambda d: d["policy"]["0"].update(BET="half")), "is not a probability"),
        (broken(lambda d: d["policy"]["0"].update(BET=True)), "is not a probability"),
        (broken(lambda d: d["policy"]["0"].update(BET=1.5)), "BET: 1.5 is not a probability"),
        (broken(lambda d: d["policy"]["0"].update(BET=float("nan"))), "is not a probability"),
        (broken(lambda d: d["policy"]["0"].update(BET=10**400)), "is not a probability"),
        (broken(lambda d: d["policy"]["0"].update(BET=10**4000)), "is not a probability"),
        (broken(lambda d: d.update(version=10**4000)), "version 1000"),
        (broken(lambda d: d["policy"].update({"x" * 10**6: {}})), "include xxx"),
        (broken(lambda d: d["policy"].update({"x\ny": {}})), r"include 'x\\ny'"),
        ("[" * 100_000, "broken"),
        (None, "broken"),
        (b"\xff\xfe", "broken"),
        (broken(lambda d: d["policy"]["0"].update(BET=0.7)), "sum to 1.2"),
        (broken(lambda d: d["policy"].update({"0": 5})), "must be a map"),
    ],
)
def test_corrupted_json(text, message):
    with pytest.raises(PolicyError, match=message) as error:
        TabularPolicy.from_json(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_files(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(Policy.random("kuhn", 1).to_json())
    assert TabularPolicy.load(path) == Policy.random("kuhn", 1)
    with pytest.raises(PolicyError, match="No such file"):
        TabularPolicy.load(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="not text"):
        TabularPolicy.load(path)
    path.write_text("{")
    with pytest.raises(PolicyError, match=r"policy.json: not a policy: the JSON is broken"):
        TabularPolicy.load(path)
    path.write_text(Policy.random("kuhn", 1).to_json().ljust(2**20))  # as large as may be
    assert TabularPolicy.load(path) == Policy.random("kuhn", 1)
    for endless in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(PolicyError, match="larger than 1,048,576 bytes"):
            TabularPolicy.load(endless)
    for name in (None, 5.0, "a\0b"):
        with pytest.raises(PolicyError, match="is not the name of a file"):
            TabularPolicy.load(name)


def test_an_incomplete_policy_from_openspiel_is_an_error():
    game = pyspiel.load_game("kuhn_poker")
    with pytest.raises(PolicyError, match="an incomplete policy"):
        from_openspiel_policy(pyspiel.TabularPolicy({"0": [(0, 1.0)]}))
    with pytest.raises(PolicyError, match=r"it covers players \[0\], not both"):
        from_openspiel_policy(openspiel_policy.TabularPolicy(game, players=(0,)))


def test_what_is_illegal_has_no_probability_in_openspiel():
    game = pyspiel.load_game("python_kuhn_bridge")
    table = to_python_policy(Policy.random("kuhn", 1), game).action_probability_array
    assert table.shape == (12, 3)
    assert table.sum(axis=1) == pytest.approx(1)


def test_a_policy_that_hides_its_ids_is_not_guessed_at():
    """Facing a bet 0 alone means fold in kuhn_poker and call in ours."""
    rows = {name: [(0, 1.0)] for name in INFORMATION_STATES}
    with pytest.raises(PolicyError, match="list all legal actions"):
        Policy.from_openspiel(pyspiel.TabularPolicy(rows), "kuhn")
    with pytest.raises(PolicyError, match="another game: it has 3"):
        from_openspiel_policy(pyspiel.TabularPolicy(rows | {"3": [(0, 1.0)]}))
    with pytest.raises(PolicyError, match="not an OpenSpiel policy"):
        Policy.from_openspiel(Policy.uniform("kuhn"), "kuhn")


def test_minus_zero_is_zero():
    table = Policy.uniform("kuhn").table.copy()
    table[0] = 1.0, -0.0, -0.0
    other = np.where(table == 0, 0.0, table)
    assert Policy("kuhn", table) == Policy("kuhn", other)
    assert hash(Policy("kuhn", table)) == hash(Policy("kuhn", other))


def test_policies_of_other_games_do_not_cross():
    leduc = pyspiel.load_game("leduc_poker")
    with pytest.raises(PolicyError, match="not to leduc_poker"):
        to_python_policy(Policy.uniform("kuhn"), leduc)
    with pytest.raises(PolicyError, match="not to leduc_poker"):
        Policy.from_openspiel(openspiel_policy.UniformRandomPolicy(leduc), "kuhn")
    three = pyspiel.load_game("kuhn_poker(players=3)")
    for cross in (to_python_policy, to_pyspiel_policy):
        with pytest.raises(PolicyError, match=r"not to kuhn_poker\(players=3\)"):
            cross(Policy.uniform("kuhn"), three)
    with pytest.raises(PolicyError, match=r"not to kuhn_poker\(players=3\)"):
        Policy.from_openspiel(openspiel_policy.UniformRandomPolicy(three), "kuhn")


@pytest.mark.parametrize("game", GAMES)
def test_what_openspiels_solvers_return_crosses_as_it_is(game):
    game = pyspiel.load_game(game)
    solver = pyspiel.CFRSolver(game)
    for _ in range(20):
        solver.evaluate_and_update_policy()
    direct = Policy.from_openspiel(solver.average_policy(), "kuhn")
    assert Policy.from_openspiel(solver.tabular_average_policy(), "kuhn") == direct
    assert Policy.from_openspiel(pyspiel.UniformRandomPolicy(game), "kuhn") == Policy.uniform(
        "kuhn"
    )
    ours, theirs = to_pyspiel_tabular(direct.game, direct.table, game), solver.average_policy()
    assert pyspiel.nash_conv(game, ours) == pytest.approx(
        pyspiel.nash_conv(game, theirs), abs=1e-12
    )


def test_rows_are_in_the_order_of_the_information_states():
    assert INFORMATION_STATES[:4] == ("0", "1", "2", "0p")
    assert LEGAL.sum() == 24
