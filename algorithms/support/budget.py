"""The budget of trained best responses; here because help texts print the defaults."""

DECISIONS = 5_000_000  # decisions that each training run learns from
HANDS = 200_000  # hands on which each player's response is measured on states
TREE_HANDS = 2_000_000  # the same on a tree, where hands take less time
SEEDS = (0,)  # each seed adds two training runs per player
MIN_HANDS = 1_000  # fewer do not give a usable standard error
MATCH_HANDS = 100_000  # of a match in a game that is not measured exactly, in each seat
