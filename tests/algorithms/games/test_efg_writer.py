"""The writer of Gambit's `.efg` files: what is written reads back as the same game."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from algorithms.games import load_game
from algorithms.games.efg_reader import read_efg
from algorithms.games.efg_writer import recovered_fractions, write_efg
from algorithms.nashconv import evaluate_policy
from algorithms.tree import CHANCE, TERMINAL, TreeBuilder, Visit
from kuhn_bridge.errors import GameError

GAMES = [
    "kuhn",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "liars_dice(numdice=1,dice_sides=3)",
    "tiny_hanabi",
    "matching_pennies_3p",
    "blotto(coins=4)",
    "goofspiel(imp_info=True,num_cards=3,points_order=descending)",
]


@dataclass
class Texts:
    """Labels that are the same everywhere."""

    action: str = "move"
    outcome: str = "draw"

    def action_label(self, infoset, action):
        return self.action

    def chance_labels(self, node):
        return [self.outcome] * 2


def small_tree(name="game", probability=0.5, payoffs=(1.0, -1.0), key="key"):
    visits = [
        Visit(0, CHANCE),
        Visit(1, 0, 0, probability, key, (0, 1)),
        Visit(2, TERMINAL, 0, returns=payoffs),
        Visit(2, TERMINAL, 1, returns=(0.0, 0.0)),
        Visit(1, TERMINAL, 1, 1 - probability, returns=(0.25, 1e-7)),
    ]
    return TreeBuilder(name, 2, 2).build(visits)


def written(tmp_path, tree, labels, players=("A", "B")):
    path = tmp_path / "game.efg"
    write_efg(path, tree, labels, players)
    return path


@pytest.mark.parametrize("name", GAMES)
def test_a_game_reads_back_with_the_same_measures(name, tmp_path):
    game = load_game(name)
    again = read_efg(written(tmp_path, game.tree, game, game.agents)).tree
    assert (again.num_nodes, again.num_choices) == (game.tree.num_nodes, game.tree.num_choices)
    # Rows may have another order, so that the keys say which is which.
    rows = {(p, k): i for i, (p, k) in enumerate(zip(again.owner, keys(again), strict=True))}
    order = [rows[p, k] for p, k in zip(game.tree.owner, keys(game.tree), strict=True)]
    for seed in range(3):
        table = game.tree.random(seed)
        other = np.zeros(again.legal.shape)
        for row, legal, infoset in zip(table, game.tree.legal, order, strict=True):
            other[infoset][again.legal[infoset]] = row[legal]
        ours = evaluate_policy(game.tree, table)
        theirs = evaluate_policy(again, other)
        assert theirs.gains == pytest.approx(ours.gains, abs=1e-12)
        assert theirs.values == pytest.approx(ours.values, abs=1e-12)


def keys(tree):
    """Information states as a file has them."""
    return [" ".join(key.split()) for key in tree.keys]


def test_the_text_of_a_small_game(tmp_path):
    path = written(tmp_path, small_tree(payoffs=(1.0, -2.5)), Texts())
    assert path.read_text(encoding="utf-8").splitlines() == [
        'EFG 2 R "game" { "A" "B" }',
        '"Written by kuhn-bridge"',
        "",
        'c "" 1 "" { "draw" 1/2 "draw #2" 1/2 } 0',
        'p "" 1 1 "key" { "move" "move #2" } 0',
        't "" 1 "1 -2.5" { 1 -2.5 }',
        't "" 2 "0 0" { 0 0 }',
        't "" 3 "0.25 1e-07" { 0.25 1e-07 }',
    ]


@pytest.mark.parametrize(
    "key", ['a "quoted" word', "two\nlines", "back\\slash", " é  ♠ ", "", "\\"]
)
def test_any_text_can_be_written(tmp_path, key):
    path = written(tmp_path, small_tree(key=key), Texts(action=key, outcome=key), (key, "B"))
    game = read_efg(path)
    label = " ".join(key.replace("\\", "/").split())
    assert game.tree.keys == (label or "#1",)
    assert game.actions == ((label or "#1", f"{label} #2".strip()),)


THIRD = 1 / 3
FRACTIONS = [
    ([THIRD, THIRD, 1 - 2 * THIRD], ["1/3", "1/3", "1/3"]),
    ([0.1, 0.2, 0.7], ["1/10", "1/5", "7/10"]),
    ([5 / 6 * 0.5, 0.5, 1 - 0.5 - 5 / 6 * 0.5], ["5/12", "1/2", "1/12"]),
    ([1 / 999_983, 1 - 1 / 999_983], ["1/999983", "999982/999983"]),
    ([0.0, 1.0], ["0", "1"]),
]


@pytest.mark.parametrize(("probabilities", "fractions"), FRACTIONS)
def test_fractions_are_recovered(probabilities, fractions):
    recovered = recovered_fractions(probabilities)
    assert recovered == [Fraction(text) for text in fractions]
    assert sum(recovered) == 1


@pytest.mark.parametrize("probability", [2**-0.5, 1 / 3 + 1e-12, 1e-9])
def test_a_number_that_is_no_small_fraction_is_refused(tmp_path, probability):
    path = tmp_path / "game.efg"
    with pytest.raises(GameError, match=r"game, after the actions \[\]: the chance probability"):
        write_efg(path, small_tree(probability=probability), Texts(), ("A", "B"))
    assert not path.exists()


def test_fractions_that_do_not_sum_to_1_are_refused():
    with pytest.raises(GameError, match="chance probabilities sum to 5/6, not 1: '1/2 1/3'"):
        recovered_fractions([0.5, 1 / 3])
