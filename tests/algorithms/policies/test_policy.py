"""Policies of any game: construction, files, OpenSpiel's policies, networks."""

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr

from algorithms.games.kuhn_policies import to_percentages
from algorithms.policies import json_files
from algorithms.policies.network import Network
from algorithms.policies.openspiel_policies import (
    measured_by_openspiel,
    to_pyspiel_tabular,
    to_python_tabular,
)
from kuhn_bridge import (
    INFORMATION_STATES,
    Action,
    BridgeError,
    Policy,
    PolicyError,
    load_game,
    load_policy,
    solve,
)
from tests.games import GAMES, KUHN3, LEDUC
from tests.shared_strings import SHARED
from tests.strategies import policies

FACES = ["kuhn_poker", "python_kuhn_bridge"]  # OpenSpiel's game and ours, registered with it


# Reading


def test_the_probabilities_of_an_information_state():
    policy = Policy.uniform("kuhn")
    assert policy["2pb"] == policy[0, "2pb"] == {Action.CHECK_OR_CALL: 0.5, Action.FOLD: 0.5}
    assert all(type(action) is Action for action in policy["2pb"])
    assert Policy.uniform("kuhn_poker")["2pb"] == {0: 0.5, 1: 0.5}
    for key in ("2pp", (1, "2pb"), ""):
        with pytest.raises(PolicyError, match="is not an information state of kuhn; they are '0'"):
            policy[key]


def test_where_players_share_a_string_the_player_is_part_of_the_key():
    policy = Policy.random(SHARED, 1)
    keys = policy.game.tree.keys
    owner = policy.game.tree.owner.tolist()
    shared = next(key for key in keys if keys.count(key) > 1)
    for infoset, (player, key) in enumerate(zip(owner, keys, strict=True)):
        row = policy.table[infoset, policy.game.tree.legal[infoset]]
        assert list(policy[player, key].values()) == row.tolist()
    with pytest.raises(PolicyError, match=r"players share .*; give \(player, "):
        policy[shared]


def test_kuhn_as_text():
    lines = str(Policy.uniform("kuhn")).splitlines()
    assert len(lines) == 13
    assert "1pb   player_0  Q     check-bet         0.5000       -  0.5000" in lines
    assert str(Policy.uniform(LEDUC)) == "<Policy of leduc_poker, 936 information sets>"


@pytest.mark.parametrize("name", ["kuhn", LEDUC])
def test_the_greedy_policy_takes_the_most_probable_action_and_the_lowest_of_equals(name):
    policy = Policy.random(name, 1)
    greedy = policy.greedy().table
    assert np.array_equal(greedy.argmax(axis=1), policy.table.argmax(axis=1))
    assert (greedy.max(axis=1) == 1).all()
    lowest = policy.game.tree.legal.argmax(axis=1)
    assert np.array_equal(Policy.uniform(name).greedy().table.argmax(axis=1), lowest)


# Construction


@pytest.mark.parametrize("name", ["kuhn", LEDUC])
def test_a_policy_is_a_frozen_value(name):
    policy = Policy.random(name, 7)
    for twin in (Policy.random(name, 7), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert policy == twin
        assert hash(policy) == hash(twin)
    assert policy not in (Policy.random(name, 8), "policy")
    for change in (lambda: setattr(policy, "table", None), lambda: delattr(policy, "game")):
        with pytest.raises(AttributeError, match="cannot"):
            change()
    with pytest.raises(ValueError, match="read-only"):
        policy.table[0] = 0


def test_networks_are_compared_without_evaluating_them():
    """In a game without any table, and in one where a table takes minutes."""
    for name in ("dark_hex(num_rows=2,num_cols=4,obstype=reveal-numturns)", "phantom_ttt"):

        def never(observations):
            raise AssertionError("the network was evaluated")

        game = load_game(name)
        network = Network(never, game.observation_size, game.num_actions)
        policy = Policy(game, network=network)
        assert policy == Policy(game, network=network)
        assert hash(policy) == hash(Policy(game, network=network))
        assert policy != Policy(game, network=Network(never, game.observation_size, 9))
        assert policy not in (Policy.uniform(game), Policy.uniform("kuhn"), "policy")


def test_a_policy_copies_its_table_of_any_real_type():
    assert Policy.uniform("kuhn_poker") != Policy.uniform("misere(game=kuhn_poker())")
    uniform = Policy.uniform("kuhn")
    for kind in (Fraction, np.float32, np.float16, float):
        table = [[kind(float(p)) for p in row] for row in uniform.table]
        assert Policy("kuhn", table) == uniform
    policy = Policy("kuhn", table := np.array(uniform.table))
    table[:] = 0
    assert policy == uniform
    table = Policy.uniform(LEDUC).greedy().table
    policy = Policy(LEDUC, np.where(table == 0, -0.0, table))
    assert not np.signbit(policy.table).any()
    assert hash(policy) == hash(Policy(LEDUC, table))


def test_random_policies_are_uniform():
    """A probability lands in each tenth equally often: 24,000 draws, 5 standard deviations."""
    tables = np.stack([Policy.random("kuhn", seed).table for seed in range(2000)])
    first = tables[:, load_game("kuhn").tree.legal][:, ::2].ravel()  # of each row's two actions
    counts = np.histogram(first, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 2400).max() < 5 * np.sqrt(24_000 * 0.1 * 0.9)


def with_row(infoset, *row):
    table = np.array(Policy.uniform("kuhn").table)
    table[infoset] = row
    return table


def test_rows_may_be_rounded():
    for off in (0.9e-6, -0.9e-6):
        assert Policy("kuhn", with_row(3, 0.5 + off, 0.5, 0)).table[3].sum() != 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (with_row(3, 0.5 + 1.1e-6, 0.5, 0), "player_1 at '0p': .* are not probabilities"),
        (with_row(3, 0.5 - 1.1e-6, 0.5, 0), "legal actions .0, 1., which sum to 1"),
        (with_row(0, np.nan, 0.5, 0), "player_0 at '0'"),
        (with_row(0, np.inf, 0.5, 0), "player_0 at '0'"),
        (with_row(0, 1.7e308, 1.7e308, 0), "player_0 at '0'"),
        (with_row(0, -0.5, 1.5, 0), "player_0 at '0'"),
        (with_row(0, 0.4, 0.5, 0.1), "legal actions .0, 1."),
        (with_row(6, 0.4, 0.1, 0.5), "player_1 at '0b': .* legal actions .0, 2."),
        (np.ones((12, 2)), r"12 x 3 numbers; got shape \(12, 2\)"),
        (None, "a policy has a table or a network; got neither"),
        ("nonsense", "table of numbers"),
        ([[0.5, 0.5]] * 11 + [[1]], "table of numbers"),
    ],
)
def test_invalid_tables(table, message):
    with pytest.raises(PolicyError, match=message) as error:
        Policy("kuhn", table)
    assert "\n" not in str(error.value)


# What a hand-written CFR program prints: [check, bet, fold, call] for J, Q, K of each player.
PRINTED = (
    ((79.31, 20.69, 100.0, 0.0), (100.0, 0.0, 45.5, 54.5), (38.0, 62.0, 0.0, 100.0)),
    ((66.67, 33.33, 100.0, 0.0), (100.0, 0.0, 66.6, 33.4), (0.0, 100.0, 0.0, 100.0)),
)


def test_printed_percentages_come_back_as_printed():
    policy = Policy.from_percentages(PRINTED)
    assert to_percentages(policy.table) == PRINTED
    found = policy["0"][Action.BET], policy["1pb"][Action.CHECK_OR_CALL]
    found += policy["0p"][Action.BET], policy["1b"][Action.FOLD]
    assert found == pytest.approx((0.2069, 0.545, 0.3333, 0.666))


@given(policies())
def test_percentages_hold_a_policy(policy):
    back = Policy.from_percentages(to_percentages(policy.table))
    np.testing.assert_allclose(back.table, policy.table, rtol=0, atol=1e-14)


HALVES = [[50, 50, 50, 50]] * 3


def with_pair(*pair):
    """Percentages in which player_1 plays `pair` with Q after a check."""
    return [HALVES, [HALVES[0], [*pair, 50, 50], HALVES[0]]]


def test_percentages_may_be_rounded():
    for off in (0.019, -0.019):
        bet = Policy.from_percentages(with_pair(50, 50 + off))["1p"][Action.BET]
        assert bet == pytest.approx(0.5, abs=1e-4)
        assert bet != 0.5


@pytest.mark.parametrize(
    ("percentages", "message"),
    [
        (with_pair(50, 50.021), "player_1 Q.*does not sum to 100$"),
        (with_pair(50, 49.979), "player_1 Q.*does not sum to 100$"),
        (with_pair(50, float("nan")), "does not sum to 100"),
        (with_pair(150, -50), "does not sum to 100"),
        (with_pair(0.8, 0.2), "seem to be fractions: multiply them by 100"),
        ([HALVES], "percentages are numbers: 2 players x 3 cards x 4"),
        ("abc", "percentages are numbers"),
    ],
)
def test_bad_percentages(percentages, message):
    with pytest.raises(PolicyError, match=message):
        Policy.from_percentages(percentages)


# JSON


@given(policies())
def test_json_round_trips_exactly(policy):
    document = policy.to_document()
    assert Policy.from_document(document) == policy
    assert Policy.from_document(json.dumps(document)) == policy


def test_kuhn_is_written_as_version_1_and_other_games_as_version_2():
    kuhn, other = (Policy.uniform(name).to_document() for name in ("kuhn", "kuhn_poker"))
    head = {"format": "kuhn-bridge-policy"}
    assert kuhn == head | {"version": 1, "policy": kuhn["policy"]}
    assert list(kuhn["policy"]) == list(INFORMATION_STATES)
    assert kuhn["policy"]["2pb"] == {"CHECK_OR_CALL": 0.5, "FOLD": 0.5}
    head |= {"version": 2}
    assert other == head | {"game": "kuhn_poker", "players": other["players"]}
    assert other["players"][0]["2pb"] == other["players"][1]["0p"] == {"0": 0.5, "1": 0.5}
    policy = Policy.random("kuhn", 2)  # of which version 2 is read too
    players = json_files.to_players(policy.game.tree, policy.table)
    assert Policy.from_document(head | {"game": "kuhn", "players": players}) == policy


def edited(edit, game="kuhn"):
    """The document of the uniform policy after `edit(document)`."""
    document = Policy.uniform(game).to_document()
    edit(document)
    return document


def kuhn_row(**row):
    return edited(lambda d: d["policy"]["0"].update(row))


def leduc_players(edit):
    return edited(lambda d: edit(d["players"]), LEDUC)


FIRST = load_game(LEDUC).tree.keys[0]  # player_0's


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "the JSON is broken"),
        ("[" * 100_000, "the JSON is broken"),
        ("[]", 'want an object with "format": "kuhn-bridge-policy"'),
        (edited(lambda d: d.update(format="leduc-policy")), 'want an object with "format"'),
        (edited(lambda d: d.pop("version")), "version None; this reads 1 and 2"),
        (edited(lambda d: d.update(version=10**4000)), "version 1000.*; this reads 1 and 2"),
        (edited(lambda d: d.update(version=2)), '"game" must name its game'),
        (edited(lambda d: d.update(policy=[])), r"information states must be a map; got \[\]"),
        (edited(lambda d: d["policy"].pop("2pb")), "incomplete policy: .* lack '2pb'"),
        (edited(lambda d: d["policy"].update({"9": {}})), "include '9', which do not exist"),
        (edited(lambda d: d["policy"].update({"x" * 10**6: {}})), "include 'xxx"),
        (edited(lambda d: d["policy"].update({"x\ny": {}})), r"include 'x\\ny'"),
        (edited(lambda d: d["policy"].update({"0": 5})), "actions at '0' must be a map"),
        (edited(lambda d: d["policy"]["0"].pop("BET")), "actions at '0' lack 'BET'"),
        (kuhn_row(FOLD=0.0), "actions at '0' include 'FOLD'"),
        (kuhn_row(BET="half"), "'0', action BET: 'half' is not a probability"),
        (kuhn_row(BET=True), "True is not a probability"),
        (kuhn_row(BET=-0.1), "-0.1 is not a probability"),
        (kuhn_row(BET=float("nan")), "nan is not a probability"),
        (kuhn_row(BET=10**400), "is not a probability"),
        (kuhn_row(BET=0.7), "player_0 at '0': .* are not probabilities of the legal actions"),
        (edited(lambda d: d.pop("players"), LEDUC), "list of 2 maps, one per player of leduc"),
        (leduc_players(lambda p: p.__setitem__(0, [])), "of player_0 must be a map"),
        (leduc_players(lambda p: p[0].pop(FIRST)), "information states of player_0 lack '.Obs"),
        (leduc_players(lambda p: p[1].clear()), "of player_1 lack .* and 465 more$"),
        (leduc_players(lambda p: p[1].update(x={})), "of player_1 include 'x'"),
        (leduc_players(lambda p: p[0][FIRST].update({"0": 0.0})), "include '0'"),
        (leduc_players(lambda p: p[0][FIRST].update({"1": 0.4})), "are not probabilities"),
    ],
)
def test_invalid_documents(document, message):
    with pytest.raises(PolicyError, match=message) as error:
        Policy.from_document(document)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("own", ["kuhn", "kuhn_poker", KUHN3])
def test_the_game_of_a_document_is_checked(own, tmp_path):
    policy = Policy.uniform(own)
    path = tmp_path / "policy.json"
    policy.save(path)
    with pytest.raises(PolicyError, match=r"^a policy of kuhn.*, not of leduc_poker"):
        Policy.from_document(policy.to_document(), LEDUC)
    with pytest.raises(PolicyError, match=r"policy.json: a policy of kuhn.*, not of leduc_poker"):
        load_policy(path, LEDUC)


def test_a_deeply_nested_game_name_is_refused():
    """OpenSpiel's parser would run out of stack."""
    name = f"{'misere(game=' * 20_000}{LEDUC}(){')' * 20_000}"
    with pytest.raises(BridgeError, match="is not the name of a game"):
        Policy.from_document(edited(lambda d: d.update(game=name), LEDUC))


def test_a_broken_file_is_named_in_the_error(tmp_path):
    for content in (b"\xff\xfe\x00", b"{", b"\xff{}"):
        (tmp_path / "policy.json").write_bytes(content)
        with pytest.raises(PolicyError, match=r"policy.json: not a policy: the (file|JSON) is"):
            load_policy(tmp_path / "policy.json")
    with pytest.raises(PolicyError, match=r"none.json: No such file or directory$"):
        load_policy(tmp_path / "none.json")


def test_other_files_are_not_written(tmp_path):
    with pytest.raises(PolicyError, match=r"policy.npz: a policy of kuhn is written as .json"):
        Policy.uniform("kuhn").save(tmp_path / "policy.npz")
    assert not list(tmp_path.iterdir())


def test_files_are_bounded_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    Policy.uniform("kuhn").save(path)
    monkeypatch.setattr(json_files, "MAX_CONTAINERS", 14)  # 12 rows, a map of them, the object
    assert load_policy(path) == Policy.uniform("kuhn")
    monkeypatch.setattr(json_files, "MAX_CONTAINERS", 13)
    for read in (lambda: load_policy(path), lambda: Policy.from_document("[" * 7 + '{"a":' * 7)):
        with pytest.raises(PolicyError, match="more than 13 maps and lists"):
            read()
    monkeypatch.setattr(json_files, "MAX_BYTES", 100)
    with pytest.raises(BridgeError, match="larger than 100 bytes"):
        load_policy(path)


# OpenSpiel


def three_kinds(policy, target=None):
    """The policy as each kind of OpenSpiel policy that can hold it."""
    yield policy.to_openspiel()
    if policy.game.name != SHARED:  # tables that are keyed by strings cannot hold it
        yield to_python_tabular(policy.game, policy.table, target)
        yield to_pyspiel_tabular(policy.game, policy.table, target)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_files_and_openspiel_give_every_policy_back_to_the_last_bit(name, tmp_path):
    policy = solve(name, iterations=20)
    policy.save(tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json") == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    for theirs in three_kinds(policy):
        assert Policy.from_openspiel(theirs, policy.game) == policy


@pytest.mark.parametrize("face", FACES)
@given(policy=policies())
def test_kuhn_crosses_exactly_in_both_sets_of_action_ids(face, policy):
    for theirs in three_kinds(policy, pyspiel.load_game(face)):
        assert Policy.from_openspiel(theirs, "kuhn") == policy


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_openspiel_measures_the_same(name):
    policy = Policy.random(name, 3)
    theirs = measured_by_openspiel(policy.game, policy.table)
    assert theirs.gap(policy.measure()) < 1e-10
    assert policy.nash_conv() > 1e-3
    assert theirs.gap(Policy.random(name, 4).measure()) > 1e-4  # another policy


def test_a_player_may_be_asked_while_another_acts():
    """A bidder knows what to bid as soon as both know their values."""
    policy = Policy.random("first_sealed_auction(max_value=4)", 1)
    theirs = policy.to_openspiel()
    state = theirs.game.new_initial_state().child(3).child(4)
    assert state.current_player() == 0
    assert theirs.action_probabilities(state, 1) == policy[1, "p1 val 4"]


@pytest.mark.parametrize("face", FACES)
def test_what_openspiels_cpp_solver_returns_for_kuhn(face):
    game = pyspiel.load_game(face)
    solver = pyspiel.CFRSolver(game)
    for _ in range(20):
        solver.evaluate_and_update_policy()
    policy = Policy.from_openspiel(solver.average_policy(), "kuhn")
    assert Policy.from_openspiel(solver.tabular_average_policy(), "kuhn") == policy
    theirs = pyspiel.nash_conv(game, solver.average_policy())
    assert policy.nash_conv() == pytest.approx(theirs, abs=1e-12)
    uniform = Policy.from_openspiel(pyspiel.UniformRandomPolicy(game), "kuhn")
    assert uniform == Policy.uniform("kuhn")


def test_what_openspiels_python_solver_returns_names_its_game():
    theirs = pyspiel.load_game(LEDUC)
    solver = cfr.CFRPlusSolver(theirs)
    solver.evaluate_and_update_policy()
    policy = Policy.from_openspiel(solver.average_policy())
    assert policy.game.name == LEDUC
    table = to_pyspiel_tabular(policy.game, policy.table)
    assert policy.nash_conv() == pytest.approx(pyspiel.nash_conv(theirs, table), abs=1e-12)
    uniform = openspiel_policy.UniformRandomPolicy(theirs)
    assert Policy.from_openspiel(uniform) == Policy.uniform(LEDUC)
    uniform = pyspiel.UniformRandomPolicy(theirs)
    assert Policy.from_openspiel(uniform, theirs) == Policy.uniform(LEDUC)


def test_a_function_of_states_is_a_policy():
    for answer in (
        lambda state: {min(state.legal_actions()): 1.0},
        lambda state: [(min(state.legal_actions()), 1.0)],
        lambda state: np.eye(3)[min(state.legal_actions())],
    ):
        assert Policy.from_openspiel(answer, LEDUC) == Policy.uniform(LEDUC).greedy()


def test_a_policy_of_kuhn_that_does_not_show_its_ids_is_refused():
    """Facing a bet 0 alone means fold in kuhn_poker and call in ours."""
    rows = {name: [(0, 1.0)] for name in INFORMATION_STATES}
    with pytest.raises(PolicyError, match="list all legal actions"):
        Policy.from_openspiel(pyspiel.TabularPolicy(rows), "kuhn")


class Unfinished(openspiel_policy.Policy):
    """A policy of Leduc for some players, without an answer for the first state."""

    def __init__(self, *players):
        super().__init__(pyspiel.load_game(LEDUC), list(players))

    def action_probabilities(self, state, player_id=None):
        raise KeyError("not trained yet")


UNIFORM_LEDUC = openspiel_policy.UniformRandomPolicy(pyspiel.load_game(LEDUC))
UNIFORM_KUHN3 = openspiel_policy.UniformRandomPolicy(pyspiel.load_game(KUHN3))


@pytest.mark.parametrize(
    ("policy", "game", "message"),
    [
        (Unfinished(0), None, r"incomplete policy: it covers players \[0\] of \[0, 1\]"),
        (Unfinished(0, 1), None, "no answer for player_0 at .*not trained yet"),
        (pyspiel.TabularPolicy({}), None, "does not name its game"),
        (
            pyspiel.TabularPolicy({}),
            LEDUC,
            "incomplete policy, or of another game than leduc",
        ),
        (pyspiel.TabularPolicy({"x": [(0, 1.0)]}), LEDUC, "another game than leduc_poker"),
        (UNIFORM_LEDUC, "kuhn_poker", "a policy of leduc_poker.*, not of kuhn_poker"),
        (UNIFORM_KUHN3, "kuhn_poker", r"a policy of kuhn_poker\(players=3\), not of kuhn_poker"),
        (UNIFORM_LEDUC, "kuhn", "not to leduc_poker"),
        (UNIFORM_KUHN3, "kuhn", r"not to kuhn_poker\(players=3\)"),
        (7, LEDUC, "int is neither an OpenSpiel policy nor a function"),
        (lambda state: None, LEDUC, "no answer for player_0"),
        (lambda state: {}, LEDUC, "no answer for player_0"),
        (lambda state: {9: 1.0}, LEDUC, "9. are not action IDs of leduc_poker"),
        (lambda state: {0: 1.0}, LEDUC, "are not probabilities of the legal actions"),
    ],
)
def test_invalid_openspiel_policies(policy, game, message):
    with pytest.raises(PolicyError, match=message):
        Policy.from_openspiel(policy, game)


@pytest.mark.parametrize("to_table", [to_python_tabular, to_pyspiel_tabular])
def test_policies_are_not_written_into_tables_that_cannot_hold_them(to_table):
    policy = Policy.uniform("kuhn")
    for target in map(pyspiel.load_game, (LEDUC, KUHN3)):
        with pytest.raises(PolicyError, match="to kuhn_poker and python_kuhn_bridge, not to"):
            to_table(policy.game, policy.table, target)
    policy = Policy.random(SHARED, 1)
    with pytest.raises(PolicyError, match=r"two players share 'saw 0.*use Policy.to_openspiel"):
        to_table(policy.game, policy.table)


# Networks


def test_a_network_may_give_probabilities_or_large_logits():
    ones = Policy.from_network(lambda x: np.ones((len(x), 3)), LEDUC, output="probabilities")
    assert ones.table == pytest.approx(Policy.uniform(LEDUC).table)
    sure = Policy.from_network(lambda x: np.tile([1e4, -1e4, 0.0], (12, 1)), "kuhn")
    assert sure == Policy.uniform("kuhn").greedy()


def test_a_torch_module_is_a_network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    linear = torch.nn.Linear(10, 3)

    def changes_its_input(observations):
        observations *= 2
        return linear(torch.tensor(observations / 2))

    policy = Policy.from_network(linear, "kuhn")
    assert policy == Policy.from_network(changes_its_input, "kuhn")
    assert policy != Policy.uniform("kuhn")


@pytest.mark.parametrize(
    ("network", "output", "message"),
    [
        (lambda x: x, "logits", r"has shape \(936, 30\); want \(936, 3\)"),
        (lambda x: np.full((len(x), 3), np.nan), "logits", "output is not finite"),
        (lambda x: np.zeros((len(x), 3)), "probabilities", "or 0 for all legal actions"),
        (lambda x: np.ones((len(x), 3)), "shares", "want 'logits' or 'probabilities'"),
    ],
)
def test_invalid_networks(network, output, message):
    with pytest.raises(PolicyError, match=message):
        Policy.from_network(network, LEDUC, output=output)
