"""Leduc poker in words, beside OpenSpiel's own states."""

import re

import pytest

from algorithms.games import load_game

NAMES = ("leduc_poker", "leduc_poker(suit_isomorphism=True)")
CASES = {
    "[Observer: 0][Private: 0][Round 1][Player: 0][Pot: 2][Money: 99 99][Round1: ][Round2: ]": (
        "player_0 with J♠ to start",
        {1: "check", 2: "raise"},
    ),
    "[Observer: 1][Private: 5][Round 1][Player: 1][Pot: 4][Money: 97 99][Round1: 2][Round2: ]": (
        "player_1 with K♥ after raise",
        {0: "fold", 1: "call", 2: "raise"},
    ),
    "[Observer: 1][Private: 2][Round 2][Player: 1][Pot: 6][Money: 97 97][Public: 4]"
    "[Round1: 1 2 1][Round2: 1]": (
        "player_1 with Q♠, board K♠, round 1 check-raise-call, round 2 check",
        {1: "check", 2: "raise"},
    ),
    "[Observer: 0][Private: 3][Round 2][Player: 0][Pot: 2][Money: 99 99][Public: 1]"
    "[Round1: 1 1][Round2: ]": (
        "player_0 with Q♥, board J♥, round 1 check-check, round 2 to start",
        {1: "check", 2: "raise"},
    ),
}


@pytest.mark.parametrize("key", CASES)
def test_named_states(key):
    label, actions = CASES[key]
    game = load_game("leduc_poker")
    infoset = game.tree.keys.index(key)
    assert game.infoset_label(infoset) == label
    assert {action: game.action_label(infoset, action) for action in actions} == actions


@pytest.mark.parametrize("name", NAMES)
def test_every_information_set_has_its_own_label_and_says_what_openspiel_says(name):
    game = load_game(name)
    tree = game.tree
    suits = "iso" not in name
    labels = [game.infoset_label(infoset) for infoset in range(len(tree.keys))]
    assert len(set(labels)) == len(labels)
    for infoset, (label, key) in enumerate(zip(labels, tree.keys, strict=True)):
        card = int(re.search(r"Private: (\d+)", key)[1])
        rank = "JQK"[card // 2 if suits else card]
        assert label.startswith(f"player_{tree.owner[infoset]} with {rank}")
        assert ("board" in label) == ("[Public" in key)
        betting = re.search(r"\[Round1: ([\d ]*)\]\[Round2: ([\d ]*)\]", key)
        raises = sum(round_.count("2") for round_ in betting.groups())
        assert label.count("raise") == raises


def test_the_words_of_actions_are_openspiels_except_that_a_free_call_is_a_check():
    game = load_game("leduc_poker")
    for infoset in range(0, len(game.tree.keys), 7):
        state = game.state_of(infoset)
        for action in state.legal_actions():
            theirs = state.action_to_string(action).lower()
            free = theirs == "call" and 0 not in state.legal_actions()
            wanted = "check" if free else theirs
            assert game.action_label(infoset, action) == wanted


def test_chance_deals_to_players_then_the_board():
    game = load_game("leduc_poker")
    root = game.chance_labels(0)
    assert root == [f"player_0 gets {rank}{suit}" for rank in "JQK" for suit in "♠♥"]
    second = game.chance_labels(int(game.tree.first_child[0]))
    assert second == [label.replace("player_0", "player_1") for label in root[1:]]
    last = int((game.tree.player == -1).nonzero()[0][-1])
    assert all(label.startswith("board ") for label in game.chance_labels(last))


def test_chance_elsewhere_is_called_what_openspiel_calls_it():
    assert load_game("kuhn").chance_labels(0) == [f"player_0 gets {card}" for card in "JQK"]
    dice = load_game("liars_dice(numdice=1,dice_sides=3)")
    assert dice.chance_labels(0) == ["Roll 1", "Roll 2", "Roll 3"]
    assert load_game(NAMES[1]).chance_labels(0) == [f"player_0 gets {card}" for card in "JQK"]
