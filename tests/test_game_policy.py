"""Policies of any game: validated, to and from JSON, OpenSpiel and networks, to the last bit."""

import json
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr

from algorithms.exact.values import nash_conv
from algorithms.games import kuhn, load_game
from algorithms.nashconv import main as measure
from algorithms.policies import (
    Policy,
    from_network,
    from_openspiel,
    to_openspiel,
    to_pyspiel_tabular,
    to_python_tabular,
)
from algorithms.policies import policy as policy_module
from algorithms.policies.openspiel import (
    measured_by_openspiel,
    to_pyspiel_tabular,
    to_python_tabular,
)
from algorithms.solve import main as solve
from kuhn_bridge import BridgeError
from kuhn_bridge.errors import PolicyError
from tests.games import GAMES, KUHN3, LEDUC
from tests.shared_strings import SHARED


@pytest.mark.parametrize("name", GAMES)
def test_openspiel_measures_the_same(name):
    policy = Policy.random(name, 3)
    theirs, ours = measured_by_openspiel(policy), policy.measure()
    assert theirs.gap(ours) < 1e-10
    assert ours.nash_conv > 1e-3  # so that agreeing says something


def test_openspiel_would_notice_another_policy():
    theirs = measured_by_openspiel(Policy.random(LEDUC, 3))
    assert theirs.gap(Policy.random(LEDUC, 4).measure()) > 1e-3


@pytest.mark.parametrize("name", GAMES)
def test_solved_written_read_and_converted_to_the_last_bit(name, tmp_path, capsys):
    out = tmp_path / "policy.json"
    assert solve(["--game", name, "--iterations", "20", "--out", str(out)]) == 0
    capsys.readouterr()
    assert measure([str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    policy = Policy.load(out)
    game = policy.game
    assert found["nash_conv"] == policy.nash_conv()
    assert Policy.from_players(game, found["players"]) == policy
    assert from_openspiel(to_openspiel(policy), game) == policy
    if name != SHARED:
        assert from_openspiel(to_python_tabular(policy), game) == policy
        assert from_openspiel(to_pyspiel_tabular(policy), game) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_players_that_share_a_string_are_kept_apart():
    policy = Policy.random(SHARED, 1)
    tree = policy.game.tree
    assert len(set(tree.keys)) < len(tree.keys)
    assert Policy.from_json(policy.to_json()) == policy
    for to_table in (to_python_tabular, to_pyspiel_tabular):
        with pytest.raises(PolicyError, match="two players share 'saw 0"):
            to_table(policy)
    both = Policy.uniform(SHARED)
    shared = from_openspiel(to_openspiel(both), SHARED)
    assert shared == both


def test_a_player_may_be_asked_while_another_acts():
    """A bidder knows what to bid as soon as both know their values."""
    policy = Policy.random("first_sealed_auction(max_value=4)", 1)
    theirs = to_openspiel(policy)
    state = theirs.game.new_initial_state().child(3).child(4)
    wanted = {int(bid): share for bid, share in policy.to_players()[1]["p1 val 4"].items()}
    assert state.current_player() == 0
    assert theirs.action_probabilities(state, 1) == wanted


def test_kuhn_is_the_public_policy():
    ours = Policy.random("kuhn", 5)
    policy = ours
    assert policy == ours
    assert policy.to_json() == ours.to_json()  # version 1, as ever
    assert Policy.from_json(ours.to_json()) == policy
    assert Policy.from_openspiel(to_openspiel(policy), "kuhn") == ours
    with pytest.raises(PolicyError, match="a policy of leduc_poker is not one of kuhn"):
        Policy.uniform(LEDUC)


def test_version_2_of_kuhn_reads_too():
    policy = Policy.random("kuhn", 2)
    head = {"format": "kuhn-bridge-policy", "version": 2, "game": "kuhn"}
    assert Policy.from_json(json.dumps(head | {"players": policy.to_players()})) == policy


def test_openspiels_own_policies():
    theirs = pyspiel.load_game(LEDUC)
    solver = cfr.CFRPlusSolver(theirs)
    solver.evaluate_and_update_policy()
    solved = from_openspiel(solver.average_policy())
    assert solved.game.name == LEDUC
    assert solved.nash_conv() == pytest.approx(
        pyspiel.nash_conv(theirs, to_pyspiel_tabular(solved)), abs=1e-12
    )
    uniform = openspiel_policy.UniformRandomPolicy(theirs)
    assert from_openspiel(uniform) == Policy.uniform(LEDUC)
    assert from_openspiel(pyspiel.UniformRandomPolicy(theirs), theirs) == Policy.uniform(LEDUC)
    first = openspiel_policy.FirstActionPolicy(theirs)
    assert from_openspiel(first).table.argmax(axis=1)[0] == 1  # Leduc starts with call or raise


def test_a_function_of_states():
    def careful(state):
        return {min(state.legal_actions()): 1.0}

    def pairs(state):
        return [(min(state.legal_actions()), 1.0)]

    def numbers(state):
        row = np.zeros(3)
        row[min(state.legal_actions())] = 1
        return row

    tree = load_game(LEDUC).tree
    for function in (careful, pairs, numbers):
        policy = from_openspiel(function, LEDUC)
        assert np.array_equal(policy.table.argmax(axis=1), tree.legal.argmax(axis=1))


def test_a_network_is_a_function_of_tensors():
    leduc = load_game(LEDUC)
    weights = np.random.default_rng(0).normal(size=(30, 3))
    policy = from_network(leduc, lambda seen: seen @ weights)
    for row in range(0, len(leduc.tree.keys), 37):
        legal = np.flatnonzero(leduc.tree.legal[row])
        shares = np.exp((leduc.observations[row] @ weights)[legal])
        assert policy.table[row, legal] == pytest.approx(shares / shares.sum())
    shares = from_network(leduc, lambda seen: np.ones((len(seen), 3)), output="probabilities")
    assert shares.table == pytest.approx(Policy.uniform(leduc).table)
    assert from_network("kuhn", lambda seen: np.zeros((12, 3))) == Policy.uniform("kuhn")


def test_a_torch_module_is_a_network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(30, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    policy = from_network(LEDUC, network)
    with torch.no_grad():
        answers = from_network(LEDUC, lambda seen: network(torch.tensor(seen)))
    assert policy == answers
    assert 1 < policy.nash_conv() < 6


def test_logits_of_any_size_are_a_policy():
    sure = from_network("kuhn", lambda seen: np.tile([1e4, -1e4, 0.0], (12, 1)))
    assert sure == Policy.uniform("kuhn").greedy()


def test_what_a_network_is_shown_is_its_own_and_its_gradients_stay_there():
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(10, 3)

    def network(seen):
        seen *= 2
        return linear(torch.tensor(seen / 2))

    assert from_network("kuhn", network) == from_network("kuhn", linear)


@pytest.mark.parametrize(
    ("network", "options", "words"),
    [
        (lambda seen: seen, {}, r"answers \(936, 30\); leduc_poker wants 936 x 3"),
        (lambda seen: np.full((936, 3), np.nan), {}, "not probabilities"),
        (lambda seen: -np.ones((936, 3)), {"output": "shares"}, "'logits' or 'probabilities'"),
        (lambda seen: np.zeros((936, 3)), {"output": "probabilities"}, "not probabilities"),
    ],
)
def test_networks_that_are_no_policies(network, options, words):
    with pytest.raises(PolicyError, match=words):
        from_network(LEDUC, network, **options)


def test_networks_need_tensors_that_tell():
    with pytest.raises(BridgeError, match="134 information sets, but only 70"):
        from_network("dark_hex(board_size=2)", lambda seen: np.zeros((134, 4)))


def rows(**changes):
    """Kuhn's uniform policy in OpenSpiel's IDs, with changes by player and key."""
    players = Policy.uniform("kuhn_poker").to_players()
    for key, row in changes.get("put", {}).items():
        players[0][key] = row
    for key in changes.get("drop", ()):
        del players[0][key]
    return players[: changes.get("keep", 2)]


@pytest.mark.parametrize(
    ("players", "words"),
    [
        (rows(keep=1), "list of 2 maps, one per player of kuhn_poker"),
        ({}, "list of 2 maps"),
        (None, "list of 2 maps"),
        ([[], {}], "must be a map"),
        (rows(drop=["0", "1pb"]), "incomplete policy: .* of player_0 lack '0', '1pb'"),
        (rows(drop=["0", "1", "0pb"]), "lack '0', '0pb', '1'$"),
        (rows(drop=["0", "1", "2", "0pb"]), "lack '0', '0pb', '1' and 1 more$"),
        (rows(put={"9": {"0": 1.0}}), "include '9', which do not exist"),
        (rows(put={"0": {"0": 1.5, "1": 0.0}}), "action 0: 1.5 is no probability"),
        (rows(put={"0": {"0": 1.0}}), "actions of player_0 at '0' lack '1'"),
        (rows(put={"0": {"0": 0.5, "1": 0.5, "2": 0.0}}), "include '2'"),
        (rows(put={"0": {"0": 0.5, "1": "0.5"}}), "0.5 is no probability"),
        (rows(put={"0": {"0": True, "1": 0.0}}), "True is no probability"),
        (rows(put={"0": {"0": 10**400, "1": 0.0}}), "is no probability"),
        (rows(put={"0": {"0": float("nan"), "1": 0.0}}), "nan is no probability"),
        (rows(put={"0": {"0": 0.5, "1": 0.4}}), "player_0 at '0': .* are not probabilities"),
    ],
)
def test_files_that_are_no_policies(players, words):
    with pytest.raises(PolicyError, match=words):
        Policy.from_players("kuhn_poker", players)


@pytest.mark.parametrize(
    "wrong",
    [0.5 + 1e-5, 0.5 - 1e-5, -0.5, np.nan, np.inf, 1.7e308, "x", "0.5", 0.5j, 10**400],
    ids=lambda x: str(x)[:9],
)
def test_tables_are_validated(wrong):
    table = Policy.uniform(LEDUC).table.astype(object)
    table[0, 1] = wrong  # instead of a half
    with pytest.raises(PolicyError):
        Policy(LEDUC, table)


def test_seeds_are_whole_numbers_from_0_up():
    for seed in (-1, 1.5, None, "1"):
        with pytest.raises(BridgeError, match="is not a whole number from 0 up"):
            Policy.random(LEDUC, seed)


HEAD = '{"format": "kuhn-bridge-policy"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff{}", "the file is not text"),
        ("{", "the JSON is broken"),
        (HEAD + "}", "policy version None; this reads 1 and 2"),
        (HEAD + ', "version": 3}', "policy version 3; this reads 1 and 2"),
        (HEAD + ', "version": 2}', '"game" must name its game'),
        ("[]", 'want an object with "format"'),
        ('{"version": 2, "game": "kuhn_poker"}', 'want an object with "format"'),
        (Policy.uniform("kuhn_poker").to_json(), "a policy of kuhn_poker, not of leduc_poker"),
        (Policy.uniform("kuhn").to_json(), "a policy of kuhn, not of leduc_poker"),
    ],
)
def test_what_a_file_claims_to_be_is_checked(text, words):
    with pytest.raises(PolicyError, match=words):
        Policy.from_json(text, LEDUC)


def test_the_likeliest_actions():
    table = Policy.uniform(LEDUC).greedy().table
    legal = load_game(LEDUC).tree.legal
    assert np.array_equal(table.argmax(axis=1), legal.argmax(axis=1))  # the lowest among equals
    assert (table.max(axis=1) == 1).all()


def test_files_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    path.write_text(Policy.uniform("kuhn").to_json())
    assert Policy.load(path) == Policy.uniform("kuhn")
    monkeypatch.setattr(policy_module, "MAX_CONTAINERS", 14)  # 12 rows, a map of them, the object
    assert Policy.load(path) == Policy.uniform("kuhn")
    monkeypatch.setattr(policy_module, "MAX_CONTAINERS", 13)
    with pytest.raises(PolicyError, match="more than 13 maps and lists"):
        Policy.load(path)
    with pytest.raises(PolicyError, match="more than 13 maps and lists"):
        Policy.from_json("[" * 7 + '{"a":' * 7)
    assert policy_module.MAX_BYTES == 512 * 2**20  # as docs/reliability.md says
    monkeypatch.setattr(policy_module, "MAX_BYTES", 100)
    for endless in (path, "/dev/zero"):
        with pytest.raises(BridgeError, match="larger than 100 bytes"):
            Policy.load(endless)


def test_a_game_within_a_game_without_end_is_refused():
    """20,000 of them took OpenSpiel's stack, and the program with it."""
    name = f"{'misere(game=' * 20_000}{LEDUC}(){')' * 20_000}"
    text = json.dumps(json.loads(Policy.uniform(LEDUC).to_json()) | {"game": name})
    with pytest.raises(BridgeError, match="is not the name of a game"):
        Policy.from_json(text)


def test_minus_0_is_0():
    table = Policy.uniform(LEDUC).greedy().table
    policy = Policy(LEDUC, np.where(table == 0, -0.0, table))
    assert not np.signbit(policy.table).any()
    assert hash(policy) == hash(Policy(LEDUC, table))


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(PolicyError, match=r"none.json: No such file or directory$"):
        Policy.load(tmp_path / "none.json")


def test_actions_never_and_always_played_are_read_back():
    policy = Policy.uniform(LEDUC).greedy()
    assert Policy.from_json(policy.to_json()) == policy


def test_rounding_is_welcome_and_illegal_actions_are_not():
    table = Policy.uniform(LEDUC).table.copy()
    assert Policy(LEDUC, table.astype(np.float32)).nash_conv() == pytest.approx(4.747222)
    row = int((~load_game(LEDUC).tree.legal).any(axis=1).argmax())
    table[row] = 1 / 3
    with pytest.raises(PolicyError, match="are not probabilities of the legal actions"):
        Policy(LEDUC, table)
    with pytest.raises(PolicyError, match="has 936 x 3 numbers; got shape"):
        Policy(LEDUC, table[:10])


def test_frozen():
    policy = Policy.random(LEDUC, 0)
    with pytest.raises(AttributeError):
        policy.table = policy.table
    with pytest.raises(AttributeError):
        del policy.game
    with pytest.raises(ValueError, match="read-only"):
        policy.table[0] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        policy.table.setflags(write=True)
    assert len({policy, Policy.random(LEDUC, 0), Policy.random(LEDUC, 1)}) == 2
    assert policy != Policy.random(LEDUC, 1)
    assert Policy.uniform("kuhn_poker") != Policy.uniform("misere(game=kuhn_poker())")
    assert policy != "policy"
    assert repr(policy) == "<Policy of leduc_poker, 936 information sets>"


def test_a_policy_is_an_array():
    policy = Policy.random(LEDUC, 0)
    assert nash_conv(policy.game.tree, policy) == policy.nash_conv()


class Half(openspiel_policy.Policy):
    def __init__(self, players=(0,)):
        super().__init__(pyspiel.load_game(LEDUC), list(players))

    def action_probabilities(self, state, player_id=None):
        raise KeyError("who knows")


@pytest.mark.parametrize(
    ("policy", "game", "words"),
    [
        (Half(), None, r"incomplete policy: it covers players \[0\] of \[0, 1\]"),
        (Half((0, 1)), None, "no answer for player_0 at .*who knows"),
        (pyspiel.TabularPolicy({}), None, "does not know its game"),
        (pyspiel.TabularPolicy({}), LEDUC, "incomplete policy of leduc_poker: it lacks"),
        (pyspiel.TabularPolicy({"x": [(0, 1.0)]}), LEDUC, "another game than leduc_poker"),
        (to_python_tabular(Policy.uniform(LEDUC)), "kuhn_poker", "not of kuhn_poker"),
        (to_python_tabular(Policy.uniform(KUHN3)), "kuhn_poker", "not of kuhn_poker"),
        (7, LEDUC, "int is neither an OpenSpiel policy nor a function"),
        (lambda state: None, LEDUC, "no answer"),
        (lambda state: {9: 1.0}, LEDUC, "no answer"),
        (lambda state: {}, LEDUC, "not probabilities"),
    ],
)
def test_what_is_no_policy_of_the_game(policy, game, words):
    with pytest.raises(PolicyError, match=words):
        from_openspiel(policy, game)


def test_kuhn_through_the_bridge():
    policy = Policy.random("kuhn", 8)
    assert from_openspiel(to_python_tabular(policy), kuhn()) == policy
    assert from_openspiel(to_pyspiel_tabular(policy), "kuhn") == policy
