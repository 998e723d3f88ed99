"""Games by name: trees, observations, labels, and errors."""

import pickle
import subprocess
import sys

import numpy as np
import pyspiel
import pytest

from algorithms.games import SampledGame, TreeGame, as_game, kuhn, load_game, openspiel, same_game
from algorithms.tree import TreeBuilder
from kuhn_bridge import BridgeError, kuhn_v0
from kuhn_bridge.bridge import INFORMATION_STATES, information_state
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import DEALS
from parity.registry import CheckSettings, run
from parity.tree_games import TREE_GAMES
from tests.games import DICE, GAMES, KUHN3, LEDUC, altered


def test_players_are_numbered_from_0():
    assert load_game(KUHN3).agents == ("player_0", "player_1", "player_2")


def test_observations_of_kuhn():
    game = kuhn()
    assert game.observations.shape == (12, 10)
    assert game.observations.dtype == np.float32
    env = kuhn_v0.env()
    for deal in DEALS:
        env.reset(options={"cards": deal})
        row = INFORMATION_STATES.index(information_state(deal[0], ""))
        assert np.array_equal(game.observations[row], env.observe("player_0")["observation"])
    with pytest.raises(ValueError, match="read-only"):
        game.observations[0, 0] = 1
    assert game.closed_form.value == pytest.approx(-1 / 18)


@pytest.mark.parametrize("name", [*GAMES[1:], DICE])
def test_trees_and_observations_are_openspiels(name):
    for row in ("tree", "observations"):
        result = run(TREE_GAMES.checks[row], CheckSettings(game=load_game(name)))
        assert result.cases == []
        assert result.compared > 0 or "information state tensor" in result.note


@pytest.mark.parametrize("name", [KUHN3, DICE, GAMES[7], GAMES[-1], "python_kuhn_poker"])
def test_labels_are_openspiels(name):
    game = load_game(name)
    for infoset, player in enumerate(game.tree.owner.tolist()):
        state = game.state_of(infoset)
        assert state.current_player() == player
        assert state.information_state_string() == game.tree.keys[infoset]
        assert game.infoset_label(infoset).startswith(f"player_{player} at ")
        for action in state.legal_actions():
            assert game.action_label(infoset, action) == state.action_to_string(player, action)


@pytest.mark.parametrize("name", GAMES)
def test_the_name_loads_it_again(name):
    game = load_game(name)
    again = pickle.loads(pickle.dumps(game))
    assert again.name == game.name
    assert again.tree.keys == game.tree.keys
    assert np.array_equal(again.tree.returns, game.tree.returns)
    kind = pyspiel.load_game(name).get_type() if name != "kuhn" else None
    if kind and kind.dynamics.name == "SIMULTANEOUS":
        assert game.name.startswith("turn_based_simultaneous_game(game=")


def test_as_game():
    leduc = load_game(LEDUC)
    assert as_game(leduc) is leduc
    assert as_game(LEDUC) is leduc
    assert as_game(pyspiel.load_game(LEDUC)).name == LEDUC
    turn_based = "turn_based_simultaneous_game(game=matrix_pd())"
    assert as_game(pyspiel.load_game("matrix_pd")).name == turn_based


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("kuhn", "kuhn", True),
        ("kuhn", "kuhn_poker", False),
        ("kuhn_poker", "kuhn_poker(players=2)", True),
        ("liars_dice(numdice=1,dice_sides=4)", "liars_dice(dice_sides=4,numdice=1)", True),
        ("matrix_pd", "turn_based_simultaneous_game(game=matrix_pd())", True),
        (LEDUC, "leduc_poker(players=3)", False),
    ],
)
def test_the_same_game(one, other, same):
    assert same_game(one, other) is same
    assert same_game(other, one) is same


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leduk_poker", "did you mean 'leduc_poker'"),
        ("nfg_game", "nfg_game: OpenSpiel cannot load it"),
        ("efg_game(filename=/nowhere)", "OpenSpiel cannot load it"),
        ("efg_game", "made from a text has no name by which it can be loaded"),
        ("kuhn_poker(players=99)", "OpenSpiel cannot load it"),
        ("kuhn_poker(", "OpenSpiel cannot load it"),
        ("backgammon", "has no information state strings"),
        ("negotiation", "samples chance outcomes"),
        ("mfg_crowd_modelling", "mean_field"),
        ("liars_dice_ir(numdice=1,dice_sides=3)", "forgotten"),
        ("cursor_go", "too large for a tree: random hands suggest .* nodes and .* GiB or more"),
        ("hearts", "too large for a tree.*; training, matches and nashconv need no tree"),
        ("chat_game", "chat_game: the legal actions at .* and it has 2 action IDs"),
    ],
)
def test_refusals(name, words):
    with pytest.raises(BridgeError, match=words) as refused:
        _ = load_game(name).tree
    assert "\n" not in str(refused.value)


def test_networks_need_distinct_tensors():
    with pytest.raises(GameError, match="134 information sets, but only 70 distinct"):
        _ = load_game("dark_hex(board_size=2)").observations
    with pytest.raises(GameError, match="no information state tensor"):
        _ = load_game("oshi_zumo(coins=3,horizon=3)").observations


def with_observations(observations):
    """Kuhn with other observations."""
    game = altered(kuhn(), _observations=lambda self: np.array(observations, np.float32))
    game.observation_size = 1
    return game


def test_one_player_with_the_same_observation_twice_is_refused():
    with pytest.raises(GameError, match="12 information sets, but only 10 distinct"):
        _ = with_observations([[0], [0], *([i] for i in range(10))]).observations


def test_players_who_share_an_observation_get_a_one_hot_of_the_seat():
    owner = kuhn().tree.owner
    order = [[int((owner[:i] == owner[i]).sum())] for i in range(12)]
    shared = with_observations(order)
    assert shared.appends_seat
    assert not kuhn().appends_seat
    inputs = shared.network_inputs()
    assert inputs.shape == (12, 3)
    assert len(np.unique(inputs, axis=0)) == 12
    assert (inputs[:, 1:].argmax(axis=1) == owner).all()
    assert shared.network_inputs(1).shape == (12, 1)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(openspiel, "MAX_BYTES", 2**20)
    with pytest.raises(GameError, match="too large for a tree"):
        _ = load_game("leduc_poker(players=2)").tree


def test_the_estimate_is_right_on_average():
    assert openspiel.estimated_nodes(pyspiel.load_game("kuhn_poker")) == pytest.approx(58, rel=0.1)
    leduc = openspiel.estimated_nodes(pyspiel.load_game(LEDUC), probes=2000)
    assert leduc == pytest.approx(9_457, rel=0.15)
    assert openspiel.estimated_nodes(pyspiel.load_game("chess"), enough=1e12) >= 1e12


def test_the_estimate_of_memory_is_near_what_is_used():
    """The peak of a process that builds a tree and a solver, divided by the estimate."""
    code = (
        "import re, sys; from pathlib import Path\n"
        "from algorithms.games import openspiel, load_game\n"
        "from algorithms.compiled.cfr_exact import ExactSolver\n"
        "status = Path('/proc/self/status')\n"  # the peak of this process alone
        "used = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1])\n"
        "ExactSolver(load_game('kuhn').tree).run(1)\n"
        "theirs = openspiel.load_pyspiel('liars_dice(numdice=1,dice_sides=5)')\n"
        "before = used(); tree = openspiel.openspiel_tree(theirs); ExactSolver(tree).run(1)\n"
        "sizes = {'nodes': tree.num_nodes, 'infosets': len(tree.keys)}\n"
        "estimate = openspiel.bytes_needed(theirs, **sizes) + sum(map(sys.getsizeof, tree.keys))\n"
        "print((used() - before) / estimate)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.3 < float(done.stdout) < 1.5


@pytest.mark.parametrize(("name", "nodes"), [("kuhn_poker", 58), (LEDUC, 9_457)])
def test_a_game_with_one_node_too_many_has_no_tree(name, nodes):
    """Although its size is only estimated at first."""
    assert isinstance(load_game(name, max_nodes=nodes), TreeGame)
    assert isinstance(load_game(name, max_nodes=nodes - 1), SampledGame)


def test_an_error_in_our_own_code_is_not_called_the_games(monkeypatch):
    def broken(self, node):
        raise TypeError("ours")

    monkeypatch.setattr(TreeBuilder, "add", broken)
    with pytest.raises(TypeError, match="ours"):
        openspiel.openspiel_tree(pyspiel.load_game("kuhn_poker"))


@pytest.mark.parametrize(("name", "nodes"), [("kuhn_poker", 58), (LEDUC, 9_457)])
def test_the_limit_of_nodes_is_exact(name, nodes):
    theirs = pyspiel.load_game(name)
    assert openspiel.openspiel_tree(theirs, max_nodes=nodes).num_nodes == nodes
    with pytest.raises(GameError, match=f"too large for a tree.*, and {nodes - 1:,} nodes"):
        openspiel.openspiel_tree(theirs, max_nodes=nodes - 1)
