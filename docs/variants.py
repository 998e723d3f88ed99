"""Prints the table of docs/solving.md: `python docs/variants.py`, about two minutes on one core.

NashConv of every variant of CFR in fast mode, on trees of several kinds, after 100, 1,000 and
10,000 iterations: that of the better of the average and the last policy, which is what `solve`
returns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import fmean

import numpy as np

from algorithms.cfr import VARIANTS
from algorithms.compiled.nashconv import nash_conv
from algorithms.games import load_game
from algorithms.solvers import make_solver

AFTER = (100, 1_000, 10_000)
FLOOR = 1e-12  # a smaller NashConv is rounding
MARK = "*"  # the last policy is the better one
GAMES = {
    "Kuhn": "kuhn",
    "Kuhn, 3 players": "kuhn_poker(players=3)",
    "Leduc": "leduc_poker",
    "Liar's Dice 4": "liars_dice(numdice=1,dice_sides=4)",
    "Liar's Dice 5": "liars_dice(numdice=1,dice_sides=5)",
    "Liar's Dice 6": "liars_dice(numdice=1,dice_sides=6)",
    "Goofspiel 4": "goofspiel(imp_info=True,num_cards=4,points_order=descending)",
    "Goofspiel 5": "goofspiel(imp_info=True,num_cards=5,points_order=descending)",
    "dark hex 2x2": "dark_hex(board_size=2)",
    "battleship 2x2": (
        "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=3)"
    ),
    "Oshi-Zumo": "oshi_zumo(coins=4,horizon=6)",
    "hold'em river": (
        "universal_poker(betting=nolimit,numPlayers=2,numRounds=2,blind=100 50,firstPlayer=2 1,"
        "numSuits=2,numRanks=5,numHoleCards=1,numBoardCards=0 1,stack=1200 1200,"
        "bettingAbstraction=fcpa)"
    ),
}


def measured(game: str, variant: str) -> Iterator[tuple[float, bool]]:
    """NashConv after each of `AFTER`, and whether it is the last policy's."""
    tree = load_game(game).tree
    solver = make_solver(tree, variant)
    for iterations in AFTER:
        solver.run(iterations - solver.iterations)
        average = nash_conv(tree, solver.average_policy())
        last = nash_conv(tree, solver.current_policy())
        yield min(average, last), last < average


def main() -> None:
    """Measure, and print a table in Markdown and each variant's mean rank and distance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=list(GAMES))
    games = parser.parse_args().games
    names = list(VARIANTS)
    print("| game | iterations |", *(f"`{name}` |" for name in names))
    print("|---|---|" + "---|" * len(names))
    distances = []  # per row, each variant's log10 of NashConv / the smallest of the row
    for label in games:
        by_variant = [list(measured(GAMES[label], name)) for name in names]
        for row, iterations in enumerate(AFTER):
            found = [results[row] for results in by_variant]
            values = np.maximum([value for value, _ in found], FLOOR)
            distances.append(np.log10(values / values.min()))
            texts = [f"{value:.1e}" + (MARK if is_last else "") for value, is_last in found]
            cells = [
                f"**{text}**" if value == values.min() else text
                for text, value in zip(texts, values, strict=True)
            ]
            print(f"| {label if row == 0 else ''} | {iterations:,} |", *(f"{c} |" for c in cells))
    for row, iterations in enumerate(AFTER):
        means = [fmean(distance) for distance in zip(*distances[row :: len(AFTER)], strict=True)]
        print(f"| *times the best* | {iterations:,} |", *(f"{10**mean:.3g} |" for mean in means))


if __name__ == "__main__":
    main()
