"""Games as flat arrays: what they hold, that both sources agree, and what is refused."""

import sys
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.compiled.nashconv import reach_probabilities
from algorithms.games.kuhn import kuhn_tree
from algorithms.games.openspiel import openspiel_tree
from algorithms.tree import CHANCE, TERMINAL, TreeBuilder, Visit, ranges
from kuhn_bridge import INFORMATION_STATES
from kuhn_bridge.errors import GameError
from tests.games import DICE, KUHN, KUHN3, LEDUC, LEGAL, game, tree

GAMES = [KUHN, KUHN3, LEDUC, DICE, "python_kuhn_bridge"]


def test_kuhn_from_the_core():
    kuhn = kuhn_tree()
    assert kuhn.num_nodes == 58
    assert len(kuhn.terminals) == 30
    assert kuhn.keys == INFORMATION_STATES
    assert kuhn.num_choices == 24
    assert np.array_equal(kuhn.legal, LEGAL)


def test_both_sources_give_one_tree():
    """Our plugin, walked by OpenSpiel, is our own tree in every array."""
    own = kuhn_tree()
    plugin = tree("python_kuhn_bridge")
    order = [plugin.keys.index(key) for key in own.keys]
    assert np.array_equal(plugin.legal[order], own.legal)
    names = "first_child player action chance_probability chance_reach returns terminals"
    for name in names.split():
        assert np.array_equal(getattr(plugin, name), getattr(own, name)), name
    acting = own.infoset >= 0
    ours = [own.keys[infoset] for infoset in own.infoset[acting]]
    assert ours == [plugin.keys[infoset] for infoset in plugin.infoset[acting]]


@pytest.mark.parametrize("name", GAMES)
def test_members_and_sequences(name):
    flat = tree(name)
    for infoset, key in enumerate(flat.keys):
        members = flat.members[slice(*flat.first_member[[infoset, infoset + 1]])]
        assert (flat.infoset[members] == infoset).all(), key
        assert (flat.sequence[flat.owner[infoset], members] == flat.parent_sequence[infoset]).all()
    assert len(flat.members) == (flat.infoset >= 0).sum()
    reach = reach_probabilities(flat, flat.random(3))[flat.terminal_sequence].prod(axis=0)
    ends = flat.chance_reach[flat.terminals] * reach
    assert ends.sum() == pytest.approx(1, abs=1e-12)  # every hand ends somewhere


def test_a_tree_is_frozen_and_equal_to_itself_alone():
    kuhn = kuhn_tree()
    with pytest.raises(FrozenInstanceError):
        kuhn.name = "other"
    for field in fields(kuhn):
        value = getattr(kuhn, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0
    assert len({kuhn, kuhn_tree()}) == 2


@pytest.mark.parametrize("name", [KUHN, KUHN3])
def test_a_history_leads_to_its_node(name):
    flat = tree(name)
    depths = tree(name).depths().tolist()
    for node in range(flat.num_nodes):
        history = flat.history(node)
        assert len(history) == depths[node]
        at = 0
        for action in history:
            children = np.arange(*flat.first_child[[at, at + 1]])
            (at,) = children[flat.action[children] == action]
        assert at == node


def test_random_policies_are_uniform():
    """Of two actions each share is as likely as any other: 24,000 draws, 5 deviations."""
    flat = kuhn_tree()
    tables = np.stack([flat.random(seed) for seed in range(2000)])
    assert (tables[:, ~flat.legal] == 0).all()
    assert tables.sum(axis=2) == pytest.approx(1)
    shares = tables[:, flat.legal][:, ::2].ravel()
    counts = np.histogram(shares, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 2400).max() < 5 * np.sqrt(24_000 * 0.1 * 0.9)


def test_a_long_walk_reports_progress():
    steps = []
    with pytest.raises(GameError, match="too large for a tree"):
        openspiel_tree(
            game("liars_dice"), max_nodes=25_000, progress=lambda done, _: steps.append(done)
        )
    assert steps == [10_000, 20_000]


def _twice(second_key=str, legal=(0, 1), other_legal=(0, 1)):
    """One player acts twice; what it knows the second time is `second_key` of the first action."""
    yield Visit(0, 0, key="first", legal=(0, 1))
    for action in (0, 1):
        actions = other_legal if action else legal
        yield Visit(1, 0, action, key=second_key(action), legal=actions)
        for last in actions:
            yield Visit(2, TERMINAL, last, returns=(float(action == last),))


def _coin():
    yield Visit(0, CHANCE)
    yield from (Visit(1, TERMINAL, n, 0.5, returns=(n - 0.5,)) for n in (0, 1))


@pytest.mark.parametrize(
    ("visits", "words"),
    [
        (_twice("second".format), "at 'second' the player has forgotten its earlier actions"),
        (_coin(), "no player has a decision"),
        (_twice("second".format, (0,), (1,)), "legal actions at 'second' are not always the same"),
        (_twice(legal=(1, 0)), "the legal actions at '0' are not in ascending order"),
        (_twice(other_legal=(0, 0)), "the legal actions at '1' are not in ascending order"),
    ],
)
def test_walks_that_are_no_games(visits, words):
    with pytest.raises(GameError, match=f"game: .*{words}"):
        TreeBuilder("game", 1, 2).build(visits)


def test_a_player_who_remembers():
    assert TreeBuilder("game", 1, 2).build(_twice()).keys == ("first", "0", "1")


def test_a_builder_counts_the_bytes_of_its_keys():
    builder = TreeBuilder("game", 1, 2)
    for key in ("first", "second", "first"):
        builder.add(Visit(1, 0, 0, key=key, legal=(0, 1)))
    assert builder.key_bytes == sys.getsizeof("first") + sys.getsizeof("second")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1))
def test_ranges_follow_one_another(pairs):
    starts, stops = np.array([(start, start + size) for start, size in pairs]).T
    expected = [n for start, stop in zip(starts, stops, strict=True) for n in range(start, stop)]
    assert ranges(starts, stops).tolist() == expected
