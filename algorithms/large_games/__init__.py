"""Large games that are measured exactly without a tree."""

from typing import Any

from algorithms.large_games.large_game import NativeGame
from algorithms.large_games.liars_dice import find_liars_dice
from algorithms.large_games.phantom.game import dark_hex, phantom_tic_tac_toe
from algorithms.large_games.phantom.rules import MAX_CELLS


def find_native(game: Any) -> NativeGame | None:
    """The native form of a `pyspiel.Game`, or `None` if it has none or is too large.

    A phantom game may not reveal the number of turns and has at most nine cells; a policy of Liar's
    Dice takes at most 4 GiB.
    """
    name, settings = game.get_type().short_name, game.get_parameters()
    if name == "liars_dice":
        return find_liars_dice(
            settings["numdice"], settings["dice_sides"], settings["bidding_rule"]
        )
    if settings.get("obstype") != "reveal-nothing":
        return None
    if name == "phantom_ttt":
        return phantom_tic_tac_toe(abrupt=settings["gameversion"] == "abrupt")
    rows, cols = settings.get("num_rows", 0), settings.get("num_cols", 0)
    if name == "dark_hex" and rows * cols <= MAX_CELLS:
        return dark_hex(rows, cols, abrupt=settings["gameversion"] == "adh")
    return None
