"""Phantom games after both players were shown some stones: small enough to visit every history."""

import numpy as np

from algorithms.large_games.phantom.rules import Rules


def with_public_stones(rules: Rules, stones: tuple[int, int]) -> Rules:
    """The game on the other cells after both players were shown these stones.

    The remaining cells keep their order and are numbered from 0.

    Args:
        rules: the game on the whole board.
        stones: the cells that each player holds, as bit masks.
    """
    occupied = stones[0] | stones[1]
    remaining = [cell for cell in range(rules.cells) if not occupied >> cell & 1]
    # Every set of remaining cells as a bit mask, numbered from 0 and as on the whole board.
    small_sets = np.arange(2 ** len(remaining))
    board_sets = np.zeros_like(small_sets)
    for number, cell in enumerate(remaining):
        board_sets |= (small_sets >> number & 1) << cell
    wins = np.stack([rules.wins[player, board_sets | stones[player]] for player in (0, 1)])
    return Rules(len(remaining), wins, rules.abrupt)
